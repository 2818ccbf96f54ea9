#ifndef WEIR_RPC_LIB_CALLER_H_
#define WEIR_RPC_LIB_CALLER_H_

#include <memory>

#include "weir/core/tensor/status.h"
#include "weir/rpc/lib/clients.h"

namespace grpc {
class ServerContextBase;
}

namespace weir::rpc {

// Returns the client that makes a call, by the bearer token in its metadata
// ("authorization: Bearer TOKEN") or else by the names in its certificate. Returns null if
// `clients` is null: the server does not distinguish its clients. Returns the errors of
// Clients::Identify.
absl::StatusOr<std::shared_ptr<Client>> CallerOf(const grpc::ServerContextBase& context,
                                                 const Clients* clients);

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_CALLER_H_
