#ifndef WEIR_RPC_LIB_RESPONSE_LIMIT_H_
#define WEIR_RPC_LIB_RESPONSE_LIMIT_H_

#include <cstdint>

#include "weir/core/tensor/status.h"

namespace weir::rpc {

// The most that one response may have, of a step or of a model, over gRPC and REST (weir serve
// --max-response-mb).
class ResponseLimit {
 public:
  // 0: 2 GB, the most that protobuf and gRPC can send.
  explicit ResponseLimit(int64_t bytes = 0);

  // The limit.
  uint64_t bytes() const { return bytes_; }
  // Returns RESOURCE_EXHAUSTED if `what` ("the response") has more bytes.
  absl::Status Check(uint64_t bytes, absl::string_view what) const;

 private:
  uint64_t bytes_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_RESPONSE_LIMIT_H_
