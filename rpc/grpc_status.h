#ifndef WEIR_RPC_GRPC_STATUS_H_
#define WEIR_RPC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "weir/core/status.h"

namespace weir::rpc {

// The codes are the same numbers. A message travels in a header, which has little room: what is
// too long is cut in the middle.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace weir::rpc

#endif  // WEIR_RPC_GRPC_STATUS_H_
