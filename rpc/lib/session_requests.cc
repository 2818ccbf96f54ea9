#include "weir/rpc/lib/session_requests.h"

#include "weir/core/io/graph_io.h"
#include "weir/proto/master.pb.h"

namespace weir::rpc {

namespace {

// What a tensor takes in a response on the wire.
uint64_t BytesOf(const Tensor& value) {
  if (value.dtype() != DT_STRING)
    return static_cast<uint64_t>(value.num_elements()) * ElementSize(value.dtype());
  constexpr uint64_t kBytesPerString = 2;  // tag and length of a short one
  uint64_t bytes = 0;
  for (const std::string& text : value.flat<std::string>()) bytes += text.size() + kBytesPerString;
  return bytes;
}

}  // namespace

std::shared_ptr<MemoryQuota> SessionMemory(std::shared_ptr<MemoryQuota> outer, int64_t bytes) {
  if (bytes == 0) return outer;
  return MemoryQuota::New(std::move(outer), "this session (weir serve --session-memory-mb)", bytes);
}

std::shared_ptr<MemoryQuota> StepMemory(std::shared_ptr<MemoryQuota> outer, int64_t bytes) {
  if (bytes == 0) return outer;
  return MemoryQuota::New(std::move(outer), "this step (weir serve --step-memory-mb)", bytes);
}

absl::StatusOr<Tensor> CountMemory(Tensor tensor) {
  MemoryQuota* const memory = MemoryQuota::Current();
  if (memory == nullptr) return tensor;
  WEIR_RETURN_IF_ERROR(MemoryQuota::ChargeStrings(tensor));
  return memory->Adopt(std::move(tensor));
}

absl::StatusOr<Tensor> TakeFeed(const std::string& name, proto::TensorProto* value) {
  absl::StatusOr<Tensor> tensor = TensorFromProto(std::move(*value));
  if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("Invalid feed for ", name));
  return CountMemory(*std::move(tensor));
}

absl::Status TakeFeeds(proto::RunStepRequest& request, std::vector<std::string>* names,
                       std::vector<Tensor>* values) {
  for (proto::NamedTensorProto& feed : *request.mutable_feed()) {
    names->push_back(feed.name());
    WEIR_ASSIGN_OR_RETURN(values->emplace_back(), TakeFeed(feed.name(), feed.mutable_tensor()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> TakeFeeds(const std::vector<std::string>& names,
                                              proto::RunCallableRequest& request) {
  if (request.feed_size() != static_cast<int>(names.size())) {
    return InvalidArgument("Expected ", names.size(), " feed tensors, but got ",
                           request.feed_size());
  }
  std::vector<Tensor> values;
  for (int i = 0; i < request.feed_size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(values.emplace_back(), TakeFeed(names[i], request.mutable_feed(i)));
  }
  return values;
}

absl::Status ReserveResponse(const std::vector<Tensor>& values, uint64_t report_bytes,
                             const ResponseLimit& limit, Call& call) {
  uint64_t bytes = report_bytes;
  uint64_t memory = bytes;
  for (const Tensor& value : values) {
    bytes += BytesOf(value);
    if (value.dtype() == DT_STRING)
      memory += static_cast<uint64_t>(value.num_elements()) * sizeof(std::string);
  }
  WEIR_RETURN_IF_ERROR(
      limit.Check(bytes, "The response, with the fetched values and the trace of the step,"));
  // The message, and the bytes that gRPC makes of it.
  return call.response_memory.Take(memory + 2 * bytes, "the response of the step");
}

}  // namespace weir::rpc
