#include "weir/tools/ckpt/array_reader.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "weir/tools/ckpt/output.h"

namespace weir::tools {

bool BeginsWith(const ReadableFile& file, absl::string_view bytes) {
  std::string start(bytes.size(), '\0');
  return file.size() >= start.size() && file.Read(0, start.size(), start.data()).ok() &&
         start == bytes;
}

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
  return CopyElements(CopyOf(*this, tensor), [](absl::string_view) { return absl::OkStatus(); });
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

absl::Status ReadAheadStream::Read(size_t size, char* out) {
  while (size > 0) {
    if (at_ == buffer_.size()) {
      buffer_.resize(std::min<uint64_t>(left_, kPieceBytes));
      if (buffer_.empty()) return OutOfRange("the tensor is at its end");
      WEIR_RETURN_IF_ERROR(from_->Read(buffer_.size(), buffer_.data()));
      left_ -= buffer_.size();
      at_ = 0;
    }
    const size_t piece = std::min(size, buffer_.size() - at_);
    std::memcpy(out, buffer_.data() + at_, piece);
    at_ += piece;
    out += piece;
    size -= piece;
  }
  return absl::OkStatus();
}

absl::Status NpyStream::Read(size_t size, char* out) {
  WEIR_RETURN_IF_ERROR(bytes_->Read(size, out));
  DecodeNpyElements(header_, out, size);
  return absl::OkStatus();
}

absl::StatusOr<NpyHeader> ReadNpyHeader(TensorStream& file, uint64_t size, absl::string_view what) {
  std::string head;
  const auto read_up_to = [&](uint64_t end) {
    const size_t begin = head.size();
    head.resize(std::max<uint64_t>(begin, std::min(end, size)));
    return file.Read(head.size() - begin, head.data() + begin);
  };
  WEIR_RETURN_IF_ERROR(read_up_to(kNpyPreambleBytes));
  const absl::StatusOr<size_t> header_bytes = NpyHeaderBytes(head);
  if (!header_bytes.ok()) return Annotate(header_bytes.status(), what);
  WEIR_RETURN_IF_ERROR(read_up_to(std::min(*header_bytes, kMaxNpyHeaderBytes)));
  WEIR_RETURN_IF_ERROR(Annotate(CheckNpySize(head, size), what));
  return ParseNpyHeader(head);
}

}  // namespace weir::tools
