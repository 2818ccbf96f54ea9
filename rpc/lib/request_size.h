#ifndef WEIR_RPC_LIB_REQUEST_SIZE_H_
#define WEIR_RPC_LIB_REQUEST_SIZE_H_

#include <cstdint>

#include "google/protobuf/io/zero_copy_stream.h"
#include "google/protobuf/message_lite.h"
#include "weir/core/tensor/status.h"

namespace weir::rpc {

// Returns how many bytes of memory a request takes when `bytes` is parsed into an arena as a
// message like `request`, without parsing it: the upper limit of an estimate that counts
// submessages, map entries, strings and numbers on the wire. Memory and stack use do not depend on
// the contents.
//
// Returns INVALID_ARGUMENT if the bytes are malformed, or nested more deeply than protobuf parses.
absl::StatusOr<uint64_t> ParsedSize(google::protobuf::io::ZeroCopyInputStream* bytes,
                                    const google::protobuf::MessageLite& request);

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_REQUEST_SIZE_H_
