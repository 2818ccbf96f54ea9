#include "weir/tools/ckpt/output.h"

#include <algorithm>
#include <utility>

#include "weir/tools/ckpt/convert_elements.h"
#include "weir/tools/lib/text_table.h"

namespace weir::tools {

namespace {

// Converts the elements of another stream.
class ConvertedStream final : public TensorStream {
 public:
  ConvertedStream(std::unique_ptr<TensorStream> from, const TensorSource& source,
                  const OutputTensor& tensor)
      : from_(std::move(from)),
        source_(source),
        dtype_(tensor.dtype),
        allow_overflow_(tensor.allow_overflow) {}

  absl::Status Read(size_t size, char* out) override {
    const size_t width = ElementSize(source_.dtype), to = ElementSize(dtype_);
    for (size_t count = size / to; count > 0;) {
      const size_t piece = std::min(count, kPieceBytes / width);
      scratch_.resize(piece * width);
      WEIR_RETURN_IF_ERROR(from_->Read(scratch_.size(), scratch_.data()));
      const int64_t bad = ConvertElements(source_.dtype, scratch_.data(), dtype_, out, piece);
      if (bad >= 0 && !allow_overflow_) {
        return absl::OutOfRangeError(
            absl::StrCat("tensor ", source_.name, ": element ", done_ + bad, ", of type ",
                         DataTypeName(source_.dtype), ", is too large for ", DataTypeName(dtype_),
                         "; --allow-overflow makes it infinite"));
      }
      done_ += static_cast<int64_t>(piece);
      out += piece * to;
      count -= piece;
    }
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<TensorStream> from_;
  const TensorSource source_;
  const DataType dtype_;
  const bool allow_overflow_;
  int64_t done_ = 0;  // elements
  std::string scratch_;
};

// The mean of several streams of doubles.
class MeanStream final : public TensorStream {
 public:
  explicit MeanStream(std::vector<std::unique_ptr<TensorStream>> streams)
      : streams_(std::move(streams)) {}

  absl::Status Read(size_t size, char* out) override {
    auto* const means = reinterpret_cast<double*>(out);
    const size_t count = size / sizeof(double);
    WEIR_RETURN_IF_ERROR(streams_[0]->Read(size, out));
    scratch_.resize(count);
    for (size_t s = 1; s < streams_.size(); ++s) {
      WEIR_RETURN_IF_ERROR(streams_[s]->Read(size, reinterpret_cast<char*>(scratch_.data())));
      for (size_t i = 0; i < count; ++i) means[i] += scratch_[i];
    }
    for (size_t i = 0; i < count; ++i) means[i] /= static_cast<double>(streams_.size());
    return absl::OkStatus();
  }

 private:
  const std::vector<std::unique_ptr<TensorStream>> streams_;
  std::vector<double> scratch_;
};

absl::StatusOr<std::unique_ptr<TensorStream>> OpenSource(const TensorSource& source,
                                                         const OutputTensor& tensor) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<TensorStream> stream, source.reader->Stream(source.name));
  if (source.dtype == tensor.dtype) return stream;
  return std::make_unique<ConvertedStream>(std::move(stream), source, tensor);
}

}  // namespace

OutputTensor CopyOf(CheckpointReader& reader, const CheckpointTensor& tensor) {
  return {tensor.name, tensor.dtype, tensor.shape, {{&reader, tensor.name, tensor.dtype}}};
}

int64_t BytesOf(DataType dtype, const Shape& shape) {
  return IsPlain(dtype) ? shape.num_elements() * static_cast<int64_t>(ElementSize(dtype)) : 0;
}

int64_t BytesOf(const Output& output) {
  int64_t bytes = 0;
  for (const OutputTensor& tensor : output.tensors) bytes += BytesOf(tensor.dtype, tensor.shape);
  return bytes;
}

absl::StatusOr<std::unique_ptr<TensorStream>> OpenStream(const OutputTensor& tensor) {
  if (tensor.sources.size() == 1) return OpenSource(tensor.sources[0], tensor);
  OutputTensor wide = tensor;
  wide.dtype = DT_DOUBLE;
  std::vector<std::unique_ptr<TensorStream>> streams;
  for (const TensorSource& source : tensor.sources) {
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<TensorStream> stream, OpenSource(source, wide));
    streams.push_back(std::move(stream));
  }
  auto mean = std::make_unique<MeanStream>(std::move(streams));
  if (tensor.dtype == DT_DOUBLE) return mean;
  return std::make_unique<ConvertedStream>(std::move(mean),
                                           TensorSource{nullptr, tensor.name, DT_DOUBLE}, tensor);
}

absl::StatusOr<Tensor> ReadWhole(const OutputTensor& tensor) {
  if (tensor.dtype == DT_STRING) return tensor.sources[0].reader->Read(tensor.sources[0].name);
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<TensorStream> stream, OpenStream(tensor));
  WEIR_ASSIGN_OR_RETURN(Tensor whole,
                        Tensor::Allocate(HostAllocator(), tensor.dtype, tensor.shape));
  WEIR_RETURN_IF_ERROR(stream->Read(whole.num_bytes(), static_cast<char*>(whole.raw())));
  return whole;
}

absl::Status CopyElements(const OutputTensor& tensor,
                          absl::FunctionRef<absl::Status(absl::string_view piece)> write) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<TensorStream> stream, OpenStream(tensor));
  const auto total = static_cast<size_t>(BytesOf(tensor.dtype, tensor.shape));
  std::vector<char> piece(std::min(total, kPieceBytes));
  for (size_t done = 0; done < total;) {
    const size_t size = std::min(kPieceBytes, total - done);
    WEIR_RETURN_IF_ERROR(stream->Read(size, piece.data()));
    WEIR_RETURN_IF_ERROR(write(absl::string_view(piece.data(), size)));
    done += size;
  }
  return absl::OkStatus();
}

}  // namespace weir::tools
