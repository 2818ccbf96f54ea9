#include "weir/kernels/data/dataset_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "weir/core/tensor/heap.h"
#include "weir/kernels/data/byte_stream.h"
#include "weir/kernels/data/dataset_ahead.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Datasets that read files sequentially, one record or line at a time.
namespace weir {

DatasetPtr FilesDataset(size_t count, OpenElements open) {
  return DatasetOf([count, open = std::move(open)] {
    return IteratorOf([count, open, next = size_t{0},
                       elements = FileElements()](const DatasetContext&) mutable -> MaybeElement {
      for (;;) {
        if (elements == nullptr) {
          if (next == count) return std::nullopt;
          WEIR_ASSIGN_OR_RETURN(elements, open(next++));
        }
        MaybeElement element = elements();
        const bool has_next =
            element.ok() ? element->has_value() : absl::IsInvalidArgument(element.status());
        if (!has_next) elements = nullptr;
        if (has_next || !element.ok()) return element;
      }
    });
  });
}

absl::Status ForEachElement(
    KernelContext& c, int input,
    absl::FunctionRef<absl::Status(const DatasetContext&, const Tensors&)> fn) {
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr dataset, DatasetIn(c.input(input)));
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<DatasetIterator> in, dataset->Iterate());
  AheadGroup ahead;
  const DatasetContext x{c.step(), c.node(), ahead};
  for (;;) {
    if (c.cancellation() != nullptr && c.cancellation()->cancelled())
      return c.cancellation()->status();
    CountHeapAnew();  // other threads free what this one has read
    WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> element, in->Next(x));
    if (!element) return absl::OkStatus();
    WEIR_RETURN_IF_ERROR(fn(x, *element));
  }
}

absl::StatusOr<std::vector<std::string>> ReadStrings(const KernelContext& c, int i) {
  const std::string& name = c.node().op().inputs()[static_cast<size_t>(i)].name;
  if (c.input(i).rank() > 1) return InvalidArgument("`", name, "` must be a scalar or a vector.");
  const auto flat = c.input(i).flat<std::string>();
  return std::vector<std::string>(flat.begin(), flat.end());
}

absl::StatusOr<std::string> ReadCompression(const KernelContext& c, int i) {
  WEIR_ASSIGN_OR_RETURN(std::string compression, ReadString(c.input(i), "compression_type"));
  if (compression == "" || compression == "ZLIB" || compression == "GZIP") return compression;
  return InvalidArgument("Unsupported compression_type: ", compression);
}

namespace {

using MaybeText = absl::StatusOr<std::optional<std::string>>;

// Returns the elements of a reader of strings.
template <class Reader>
FileElements TextElements(Reader reader) {
  return [reader = std::make_shared<Reader>(std::move(reader))]() -> MaybeElement {
    WEIR_ASSIGN_OR_RETURN(std::optional<std::string> text, reader->Next());
    if (!text) return std::nullopt;
    return Tensors{Tensor::Scalar(*std::move(text))};
  };
}

// ---- lines

// Reads lines without line ends and without carriage returns. The last line may lack a line end,
// unless it is empty.
class Lines {
 public:
  explicit Lines(std::unique_ptr<ByteStream> bytes) : bytes_(std::move(bytes)) {}

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
  absl::StatusOr<bool> Fill() {
    constexpr size_t kPiece = size_t{1} << 18;
    buffer_.resize(kPiece);
    place_ = 0;
    const absl::StatusOr<size_t> size = bytes_->Read(kPiece, buffer_.data());
    buffer_.resize(size.ok() ? *size : 0);
    if (!size.ok()) return size.status();
    return *size > 0;
  }

  std::unique_ptr<ByteStream> bytes_;
  std::string buffer_;
  size_t place_ = 0;
};

absl::Status TextLineDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> files, ReadStrings(c, 0));
  WEIR_ASSIGN_OR_RETURN(const std::string compression, ReadCompression(c, 1));
  WEIR_ASSIGN_OR_RETURN(const int64_t buffer_size, ReadInt(c.input(2), "buffer_size"));
  if (buffer_size < 0) return InvalidArgument("`buffer_size` must be >= 0 (0 == default)");
  const auto open = [files, compression](size_t i) -> absl::StatusOr<FileElements> {
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> bytes,
                          ByteStream::Open(files[i], compression));
    return TextElements(Lines(std::move(bytes)));
  };
  c.SetOutput(0, DatasetTensor(FilesDataset(files.size(), open)));
  return absl::OkStatus();
}

// ---- TFRecord files

// Returns the offset of the first record to read of each file; of further files, it is 0.
absl::StatusOr<std::vector<int64_t>> ReadOffsets(const KernelContext& c) {
  if (c.num_inputs() < 4) return std::vector<int64_t>();
  const Tensor& given = c.input(3);
  if (given.rank() > 1) return InvalidArgument("`byte_offsets` must be a scalar or a vector.");
  if (given.rank() != c.input(0).rank())
    return InvalidArgument("`byte_offsets` must be of same size as `filenames`");
  const auto flat = given.flat<int64_t>();
  return std::vector<int64_t>(flat.begin(), flat.end());
}

absl::Status TFRecordDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> files, ReadStrings(c, 0));
  // Checked when a file is opened, as in TensorFlow.
  WEIR_ASSIGN_OR_RETURN(const std::string compression, ReadString(c.input(1), "compression_type"));
  WEIR_ASSIGN_OR_RETURN(const int64_t buffer_size, ReadInt(c.input(2), "buffer_size"));
  // -1 leaves the size to the file system.
  if (buffer_size < -1) return InvalidArgument("`buffer_size` must be >= 0 (0 == default)");
  WEIR_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, ReadOffsets(c));
  const auto open = [=](size_t i) -> absl::StatusOr<FileElements> {
    WEIR_ASSIGN_OR_RETURN(RecordStream stream, RecordStream::Open(files[i], compression));
    if (i < offsets.size()) WEIR_RETURN_IF_ERROR(stream.Skip(offsets[i]));
    return TextElements(std::move(stream));
  };
  c.SetOutput(0, DatasetTensor(FilesDataset(files.size(), open)));
  return absl::OkStatus();
}

// ---- records of a fixed length

struct RecordLayout {
  int64_t header = 0, record = 0, footer = 0;  // in bytes

  // Says that the size of a file's body is wrong.
  std::string Misfit(absl::string_view path, int64_t body) const {
    return absl::StrCat("Excluding the header (", header, " bytes) and footer (", footer,
                        " bytes), input file \"", path, "\" has body length ", body,
                        " bytes, which is not an exact multiple of the record length (", record,
                        " bytes).");
  }
};

// Reads the records between a file's header and footer. The size of a compressed file is unknown
// before it is decompressed, so the bytes that may be its footer are read ahead.
class FixedLengthRecords {
 public:
  FixedLengthRecords(std::string path, const RecordLayout& layout,
                     std::unique_ptr<ByteStream> bytes)
      : path_(std::move(path)), layout_(layout), bytes_(std::move(bytes)) {}

  MaybeText Next() {
    const auto record = static_cast<uint64_t>(layout_.record);
    const uint64_t wanted = record + static_cast<uint64_t>(layout_.footer);
    WEIR_ASSIGN_OR_RETURN(const std::string more, ReadBytes(*bytes_, wanted - ahead_.size()));
    ahead_ += more;
    if (ahead_.size() == static_cast<uint64_t>(layout_.footer)) return std::nullopt;
    if (ahead_.size() < wanted) {
      const auto rest = static_cast<int64_t>(ahead_.size()) - layout_.footer;
      return DataLoss(layout_.Misfit(path_, returned_ + rest));
    }
    std::string value = ahead_.substr(0, record);
    ahead_.erase(0, record);
    returned_ += layout_.record;
    return value;
  }

 private:
  std::string path_;
  RecordLayout layout_;
  std::unique_ptr<ByteStream> bytes_;
  std::string ahead_;
  int64_t returned_ = 0;  // bytes
};

// Checks the size of a file that is not compressed.
absl::Status CheckSize(const std::string& path, const RecordLayout& layout) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, Files().Open(path));
  int64_t body = static_cast<int64_t>(file->size()) - layout.header;
  const bool overflow = __builtin_sub_overflow(body, layout.footer, &body);
  if (!overflow && body >= 0 && body % layout.record == 0) return absl::OkStatus();
  return InvalidArgument(layout.Misfit(path, body));
}

absl::StatusOr<RecordLayout> ReadLayout(const KernelContext& c) {
  RecordLayout layout;
  WEIR_ASSIGN_OR_RETURN(layout.header, ReadInt(c.input(1), "header_bytes"));
  WEIR_ASSIGN_OR_RETURN(layout.record, ReadInt(c.input(2), "record_bytes"));
  WEIR_ASSIGN_OR_RETURN(layout.footer, ReadInt(c.input(3), "footer_bytes"));
  if (layout.header < 0) return InvalidArgument("`header_bytes` must be >= 0");
  if (layout.record <= 0) return InvalidArgument("`record_bytes` must be > 0");
  if (layout.footer < 0) return InvalidArgument("`footer_bytes` must be >= 0");
  return layout;
}

absl::Status FixedLengthRecordDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> files, ReadStrings(c, 0));
  WEIR_ASSIGN_OR_RETURN(const RecordLayout layout, ReadLayout(c));
  WEIR_ASSIGN_OR_RETURN(const int64_t buffer_size, ReadInt(c.input(4), "buffer_size"));
  if (buffer_size < 0) return InvalidArgument("`buffer_size` must be >= 0 (0 == default)");
  std::string compression;
  if (c.num_inputs() > 5) {
    WEIR_ASSIGN_OR_RETURN(compression, ReadCompression(c, 5));
  }
  const auto open = [=](size_t i) -> absl::StatusOr<FileElements> {
    if (compression.empty()) WEIR_RETURN_IF_ERROR(CheckSize(files[i], layout));
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> bytes,
                          ByteStream::Open(files[i], compression));
    WEIR_RETURN_IF_ERROR(SkipBytes(*bytes, static_cast<uint64_t>(layout.header)).status());
    return TextElements(FixedLengthRecords(files[i], layout, std::move(bytes)));
  };
  c.SetOutput(0, DatasetTensor(FilesDataset(files.size(), open)));
  return absl::OkStatus();
}

// ---- names of files

// The files, not folders, that match each pattern in turn, in the order of their names.
absl::Status MatchingFilesDataset(KernelContext& c) {
  const auto flat = c.input(0).flat<std::string>();
  const std::vector<std::string> patterns(flat.begin(), flat.end());
  const auto open = [patterns](size_t i) -> absl::StatusOr<FileElements> {
    const std::string folder = FixedFolder(patterns[i]);
    if (!folder.empty() && !Files().Exists(folder))
      return NotFound(folder, "; No such file or directory");
    WEIR_ASSIGN_OR_RETURN(std::vector<std::string> paths, MatchFiles(patterns[i]));
    std::erase_if(paths, [](const std::string& path) { return Files().IsDirectory(path); });
    if (!absl::StrContains(patterns[i], '/')) {  // as TensorFlow names files of the working folder
      for (std::string& path : paths) path.insert(0, "./");
    }
    return FileElements([paths = std::move(paths), next = size_t{0}]() mutable -> MaybeElement {
      if (next == paths.size()) return std::nullopt;
      return Tensors{Tensor::Scalar(paths[next++])};
    });
  };
  const DatasetPtr names = FilesDataset(patterns.size(), open);
  c.SetOutput(0, DatasetTensor(DatasetOf([names]() -> MaybeIterator {
                WEIR_ASSIGN_OR_RETURN(std::unique_ptr<DatasetIterator> in, names->Iterate());
                return IteratorOf([names, in = std::move(in),
                                   any = false](const DatasetContext& x) mutable -> MaybeElement {
                  WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> name, in->Next(x));
                  if (!name && !any) return NotFound("Don't find any matched files");
                  any = true;
                  return name;
                });
              })));
  return absl::OkStatus();
}

}  // namespace

void AddDatasetFileKernels(KernelRegistry* r) {
  AddDatasetCacheKernels(r);
  AddDatasetCsvKernels(r);
  AddDatasetExampleKernels(r);
  AddDatasetSaveKernels(r);
  AddDatasetSnapshotKernels(r);
  AddDatasetSqlKernels(r);
  AddDatasetTableKernels(r);
  r->Add("ExperimentalMatchingFilesDataset", kCpu, MatchingFilesDataset);
  r->Add("FixedLengthRecordDataset", kCpu, FixedLengthRecordDataset);
  r->Add("FixedLengthRecordDatasetV2", kCpu, FixedLengthRecordDataset);
  r->Add("MatchingFilesDataset", kCpu, MatchingFilesDataset);
  r->Add("TFRecordDataset", kCpu, TFRecordDataset);
  r->Add("TFRecordDatasetV2", kCpu, TFRecordDataset);
  r->Add("TextLineDataset", kCpu, TextLineDataset);
}

}  // namespace weir
