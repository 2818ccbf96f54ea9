#include "weir/rpc/cluster/sent_value.h"

#include <chrono>
#include <memory>
#include <vector>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/tensor/variant.h"
#include "weir/proto/worker.pb.h"
#include "weir/rpc/lib/message_bytes.h"

// The tensor is the last field of the message, and its elements are the last field of the tensor:
// so a header of a few bytes and the tensor's own memory are the whole message.
namespace weir::rpc {

namespace {

using google::protobuf::io::CodedOutputStream;

constexpr size_t kMaxBytes = (size_t{1} << 31) - 1024;
// Smaller tensors are copied: a slice of its own costs more.
constexpr size_t kCopiedBytes = 1024;
// Field numbers with wire type 2, a length and bytes.
constexpr uint32_t kTensorTag = proto::RecvTensorResponse::kTensorFieldNumber << 3 | 2;
constexpr uint32_t kContentTag = proto::TensorProto::kTensorContentFieldNumber << 3 | 2;

int64_t NowMicros() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

grpc::Slice SliceOf(const Tensor& tensor) {
  const size_t bytes = tensor.num_bytes();
  if (bytes <= kCopiedBytes) return grpc::Slice(tensor.raw(), bytes);
  return grpc::Slice(
      const_cast<void*>(tensor.raw()), bytes, [](void* keep) { delete static_cast<Tensor*>(keep); },
      new Tensor(tensor));
}

}  // namespace

absl::StatusOr<grpc::ByteBuffer> EncodeSentValue(const SentValue& sent) {
  proto::RecvTensorResponse response;
  response.set_is_dead(sent.is_dead);
  response.set_send_start_micros(NowMicros());
  if (sent.is_dead) {
    TensorToProtoContent(Tensor::Vector<float>({}), response.mutable_tensor());
    return ToBytes(response);
  }
  const Tensor& tensor = sent.value;
  if (tensor.dtype() == DT_VARIANT) WEIR_RETURN_IF_ERROR(CheckHasParts(tensor));
  const bool is_plain = IsPlain(tensor.dtype());
  if (!is_plain) TensorToProtoContent(tensor, response.mutable_tensor());
  if ((is_plain ? tensor.num_bytes() : response.ByteSizeLong()) > kMaxBytes)
    return absl::InternalError("Cannot encode a Tensor that exceeds the 2GB protobuf limit.");
  if (!is_plain) return ToBytes(response);
  proto::TensorProto header;
  header.set_dtype(static_cast<proto::DataType>(tensor.dtype()));
  ShapeToProto(tensor.shape(), header.mutable_tensor_shape());
  std::string prefix = response.SerializeAsString();
  {
    const auto bytes = static_cast<uint32_t>(tensor.num_bytes());
    const size_t length = header.ByteSizeLong() + CodedOutputStream::VarintSize32(kContentTag) +
                          CodedOutputStream::VarintSize32(bytes) + bytes;
    google::protobuf::io::StringOutputStream stream(&prefix);
    CodedOutputStream out(&stream);
    out.WriteTag(kTensorTag);
    out.WriteVarint32(static_cast<uint32_t>(length));
    header.SerializeToCodedStream(&out);
    out.WriteTag(kContentTag);
    out.WriteVarint32(bytes);
  }
  const grpc::Slice slices[] = {grpc::Slice(prefix), SliceOf(tensor)};
  return grpc::ByteBuffer(slices, tensor.num_bytes() > 0 ? 2 : 1);
}

absl::StatusOr<SentValue> DecodeSentValue(grpc::ByteBuffer* bytes, bool* require_ack) {
  proto::RecvTensorResponse response;
  if (!FromBytes(*bytes, &response))
    return InvalidArgument("Cannot parse the answer of RecvTensor");
  bytes->Clear();
  *require_ack = response.require_ack();
  if (response.is_dead()) return SentValue{.value = {}, .is_dead = true};
  WEIR_ASSIGN_OR_RETURN(Tensor value, TensorFromProto(std::move(*response.mutable_tensor())));
  return SentValue{.value = std::move(value), .is_dead = false};
}

}  // namespace weir::rpc
