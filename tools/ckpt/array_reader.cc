#include "weir/tools/ckpt/array_reader.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "weir/tools/ckpt/output.h"

namespace weir::tools {

absl::Status ArrayReader::Add(const std::string& name, DataType dtype, const Shape& shape) {
  if (tensors_.emplace(name, CheckpointTensor{name, dtype, shape, {}}).second)
    return absl::OkStatus();
  return InvalidArgument(path_, ": two tensors have the name '", absl::Utf8SafeCHexEscape(name),
                         "'");
}

absl::StatusOr<std::vector<CheckpointTensor>> ArrayReader::List() {
  std::vector<CheckpointTensor> tensors;
  for (const auto& [name, tensor] : tensors_) tensors.push_back(tensor);
  return tensors;
}

absl::StatusOr<CheckpointTensor> ArrayReader::Find(absl::string_view name) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return NotFound("Key ", name, " not found in checkpoint ", path_);
  return found->second;
}

absl::StatusOr<Tensor> ArrayReader::Read(absl::string_view name) {
  WEIR_ASSIGN_OR_RETURN(const CheckpointTensor tensor, Find(name));
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<TensorStream> stream, Stream(name));
  WEIR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(HostAllocator(), tensor.dtype, tensor.shape));
  WEIR_RETURN_IF_ERROR(stream->Read(out.num_bytes(), static_cast<char*>(out.raw())));
  return out;
}

absl::Status ArrayReader::Check(absl::string_view name) {
  WEIR_ASSIGN_OR_RETURN(const CheckpointTensor tensor, Find(name));
  if (!IsPlain(tensor.dtype)) return Read(name).status();
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<TensorStream> stream, Stream(name));
  const auto total = static_cast<size_t>(BytesOf(tensor.dtype, tensor.shape));
  std::vector<char> piece(std::min(total, kPieceBytes));
  for (size_t done = 0; done < total; done += piece.size()) {
    piece.resize(std::min(piece.size(), total - done));
    WEIR_RETURN_IF_ERROR(stream->Read(piece.size(), piece.data()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ArrayReader::ReadSlice(absl::string_view name, const TensorSlice& slice) {
  WEIR_ASSIGN_OR_RETURN(const CheckpointTensor tensor, Find(name));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, slice.ShapeIn(tensor.shape));
  WEIR_ASSIGN_OR_RETURN(const Tensor whole, Read(name));
  WEIR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(HostAllocator(), tensor.dtype, shape));
  const Box box = ResolveSlice(slice, tensor.shape);
  CopyBox(whole, ResolveSlice(TensorSlice::Full(tensor.shape.rank()), tensor.shape), box, box,
          &out);
  return out;
}

absl::StatusOr<std::unique_ptr<FileStream>> FileStream::Open(const ReadableFile& file,
                                                             uint64_t offset, uint64_t size) {
  if (offset > file.size() || size > file.size() - offset) {
    return DataLoss(file.path(), ": the file is truncated: it has ", file.size(), " bytes, but ",
                    size, " are needed at offset ", offset);
  }
  return std::unique_ptr<FileStream>(new FileStream(file, offset, size));
}

absl::Status FileStream::Read(size_t size, char* out) {
  if (size > missing_) return OutOfRange(file_.path(), ": the tensor is at its end");
  WEIR_RETURN_IF_ERROR(file_.Read(offset_, size, out));
  offset_ += size;
  missing_ -= size;
  return absl::OkStatus();
}

absl::Status NpyStream::Read(size_t size, char* out) {
  WEIR_RETURN_IF_ERROR(bytes_->Read(size, out));
  const size_t width = ElementSize(header_.dtype) / (IsComplex(header_.dtype) ? 2 : 1);
  if (header_.big_endian) {
    for (size_t i = 0; i < size; i += width) std::reverse(out + i, out + i + width);
  }
  if (header_.dtype == DT_BOOL) {
    for (size_t i = 0; i < size; ++i) out[i] = out[i] != 0;
  }
  return absl::OkStatus();
}

namespace {

class HeldStream final : public TensorStream {
 public:
  explicit HeldStream(Tensor tensor) : tensor_(std::move(tensor)) {}
  absl::Status Read(size_t size, char* out) override {
    if (size > tensor_.num_bytes() - done_) return OutOfRange("the tensor is at its end");
    if (size > 0) std::memcpy(out, static_cast<const char*>(tensor_.raw()) + done_, size);
    done_ += size;
    return absl::OkStatus();
  }

 private:
  const Tensor tensor_;
  size_t done_ = 0;
};

}  // namespace

std::unique_ptr<TensorStream> StreamOf(Tensor tensor) {
  return std::make_unique<HeldStream>(std::move(tensor));
}

}  // namespace weir::tools
