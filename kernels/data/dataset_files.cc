#include <algorithm>

#include "weir/kernels/data/byte_stream.h"
#include "weir/kernels/data/dataset.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Datasets that read files sequentially, one record or line at a time.
namespace weir {

namespace {

using MaybeText = absl::StatusOr<std::optional<std::string>>;

class Records {
 public:
  static absl::StatusOr<std::unique_ptr<Records>> Open(const std::string& path,
                                                       const std::string& compression) {
    WEIR_ASSIGN_OR_RETURN(RecordStream stream, RecordStream::Open(path, compression));
    return std::unique_ptr<Records>(new Records(std::move(stream)));
  }
  MaybeText Next() { return stream_.Next(); }

 private:
  explicit Records(RecordStream stream) : stream_(std::move(stream)) {}
  RecordStream stream_;
};

// Reads lines without line ends and without carriage returns. The last line may lack a line end,
// unless it is empty.
class Lines {
 public:
  static absl::StatusOr<std::unique_ptr<Lines>> Open(const std::string& path,
                                                     const std::string& compression) {
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> bytes, ByteStream::Open(path, compression));
    return std::unique_ptr<Lines>(new Lines(std::move(bytes)));
  }

  MaybeText Next() {
    std::string line;
    for (;;) {
      const size_t end = buffer_.find('\n', place_);
      line.append(buffer_, place_, end == std::string::npos ? end : end - place_);
      if (end != std::string::npos) {
        place_ = end + 1;
        break;
      }
      WEIR_ASSIGN_OR_RETURN(const bool more, Fill());
      if (!more && line.empty()) return std::nullopt;
      if (!more) break;
    }
    line.erase(std::remove(line.begin(), line.end(), '\r'), line.end());
    return line;
  }

 private:
  explicit Lines(std::unique_ptr<ByteStream> bytes) : bytes_(std::move(bytes)) {}

  absl::StatusOr<bool> Fill() {
    constexpr size_t kPiece = size_t{1} << 18;
    buffer_.resize(kPiece);
    place_ = 0;
    const absl::StatusOr<size_t> size = bytes_->Read(kPiece, buffer_.data());
    buffer_.resize(size.ok() ? *size : 0);
    if (!size.ok()) return size.status();
    return *size > 0;
  }

  const std::unique_ptr<ByteStream> bytes_;
  std::string buffer_;
  size_t place_ = 0;
};

template <class Reader>
absl::Status FileDataset(KernelContext& c) {
  if (c.input(0).rank() > 1) return InvalidArgument("`filenames` must be a scalar or a vector.");
  WEIR_ASSIGN_OR_RETURN(const std::string compression, ReadString(c.input(1), "compression_type"));
  WEIR_ASSIGN_OR_RETURN(const int64_t buffer_size, ReadInt(c.input(2), "buffer_size"));
  // For records, -1 leaves the size to the file system.
  constexpr bool kIsText = std::is_same_v<Reader, Lines>;
  if (buffer_size < (kIsText ? 0 : -1))
    return InvalidArgument("`buffer_size` must be >= 0 (0 == default)");
  // TensorFlow ignores it for TFRecordDataset.
  if (kIsText) {
    if (compression != "" && compression != "ZLIB" && compression != "GZIP")
      return InvalidArgument("Unsupported compression_type: ", compression);
  }
  const auto flat = c.input(0).flat<std::string>();
  const std::vector<std::string> files(flat.begin(), flat.end());
  c.SetOutput(0, DatasetTensor(DatasetOf([files, compression] {
                return IteratorOf(
                    [files, compression, next = size_t{0}, reader = std::unique_ptr<Reader>()](
                        const DatasetContext&) mutable -> MaybeElement {
                      for (;;) {
                        if (reader == nullptr) {
                          if (next == files.size()) return std::nullopt;
                          WEIR_ASSIGN_OR_RETURN(reader, Reader::Open(files[next++], compression));
                        }
                        WEIR_ASSIGN_OR_RETURN(std::optional<std::string> text, reader->Next());
                        if (text) return Tensors{Tensor::Scalar(*std::move(text))};
                        reader = nullptr;
                      }
                    });
              })));
  return absl::OkStatus();
}

}  // namespace

void AddDatasetFileKernels(KernelRegistry* r) {
  r->Add("TFRecordDataset", kCpu, FileDataset<Records>);
  r->Add("TextLineDataset", kCpu, FileDataset<Lines>);
}

}  // namespace weir
