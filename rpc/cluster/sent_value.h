#ifndef WEIR_RPC_CLUSTER_SENT_VALUE_H_
#define WEIR_RPC_CLUSTER_SENT_VALUE_H_

#include <grpcpp/support/byte_buffer.h>

#include "weir/core/runtime/rendezvous.h"

namespace weir::rpc {

// A value on its way between tasks: the bytes of a RecvTensorResponse. They refer to the tensor's
// memory, which stays alive as long. INTERNAL, as in TensorFlow, for a tensor that protobuf cannot
// hold (2 GiB); UNIMPLEMENTED for a variant that exists only on its task, such as a data set.
absl::StatusOr<grpc::ByteBuffer> EncodeSentValue(const SentValue& sent);

// Reads such a message. INVALID_ARGUMENT for anything else. `*require_ack`: the sender keeps the
// value until it is told that it has arrived.
absl::StatusOr<SentValue> DecodeSentValue(grpc::ByteBuffer* bytes, bool* require_ack);

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_SENT_VALUE_H_
