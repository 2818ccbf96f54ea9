#ifndef WEIR_RPC_LIB_GRPC_STATUS_H_
#define WEIR_RPC_LIB_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "weir/core/tensor/status.h"

namespace weir::rpc {

// Converts a Status; the codes are numerically equal. A message is sent in a header, which has
// limited space: the middle of a long message is cut out.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_GRPC_STATUS_H_
