#include "weir/tools/ckpt/gguf_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "weir/core/io/coding.h"
#include "weir/core/io/file.h"
#include "weir/tools/ckpt/array_reader.h"
#include "weir/tools/ckpt/gguf_blocks.h"
#include "weir/tools/ckpt/gguf_metadata.h"

namespace weir::tools {

namespace {

constexpr absl::string_view kMagic = "GGUF";
constexpr uint32_t kVersion = 3;
constexpr uint64_t kAlignment = 32;
constexpr char kAlignmentKey[] = "general.alignment";
// ggml's limits: dimensions of a tensor, and bytes of its name with a zero at the end.
constexpr uint32_t kMaxRank = 4;
constexpr size_t kMaxNameBytes = 63;

uint64_t AlignUp(uint64_t n, uint64_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

// ---- reading

struct StoredTensor {
  const GgufType* type = nullptr;
  uint64_t offset = 0, bytes = 0;  // in the data
};

// Decodes blocks as they are needed.
class DecodedStream final : public TensorStream {
 public:
  DecodedStream(const GgufType& type, std::unique_ptr<TensorStream> blocks)
      : type_(type),
        blocks_(std::move(blocks)),
        block_(type.block_bytes),
        values_(static_cast<size_t>(type.block)),
        at_(values_.size()) {}

  absl::Status Read(size_t size, char* out) override {
    auto* to = reinterpret_cast<float*>(out);
    for (size_t count = size / sizeof(float); count > 0;) {
      if (at_ == values_.size()) {
        WEIR_RETURN_IF_ERROR(blocks_->Read(block_.size(), block_.data()));
        type_.decode(block_.data(), values_.data());
        at_ = 0;
      }
      const size_t piece = std::min(count, values_.size() - at_);
      std::copy_n(values_.data() + at_, piece, to);
      at_ += piece;
      to += piece;
      count -= piece;
    }
    return absl::OkStatus();
  }

 private:
  const GgufType& type_;
  const std::unique_ptr<TensorStream> blocks_;
  std::vector<char> block_;
  std::vector<float> values_;
  size_t at_;  // in values_
};

class GgufReader final : public ArrayReader {
 public:
  using ArrayReader::ArrayReader;

  absl::Status Open(Metadata* metadata) {
    WEIR_ASSIGN_OR_RETURN(file_, Files().Open(path()));
    GgufCursor cursor(*file_);
    if (cursor.Bytes(kMagic.size()) != kMagic) return Bad("it is not a GGUF file");
    const uint32_t version = cursor.Fixed32();
    if (version > 0xffff) return Unimplemented(path(), ": big-endian GGUF files are not read");
    if (version < 2 || version > kVersion)
      return Unimplemented(path(), ": its version is ", version, "; 2 and 3 are known");
    const uint64_t num_tensors = cursor.Fixed64(), num_entries = cursor.Fixed64();
    // Each has more than one byte.
    if (num_tensors > file_->size() || num_entries > file_->size())
      return Bad("it would have ", num_tensors, " tensors and ", num_entries, " metadata");
    for (uint64_t i = 0; i < num_entries && cursor.status().ok(); ++i)
      metadata->push_back(ReadGgufMetadata(&cursor));
    for (uint64_t i = 0; i < num_tensors && cursor.status().ok(); ++i)
      cursor.Fail(ReadTensor(&cursor));
    WEIR_RETURN_IF_ERROR(cursor.status());
    WEIR_ASSIGN_OR_RETURN(const uint64_t alignment, Alignment(*metadata));
    data_ = AlignUp(cursor.position(), alignment);
    return CheckRanges(alignment);
  }

  absl::StatusOr<std::unique_ptr<TensorStream>> Stream(absl::string_view name) override {
    WEIR_RETURN_IF_ERROR(Find(name).status());
    const StoredTensor& stored = stored_.find(name)->second;
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<TensorStream> bytes,
                          FileStream::Open(*file_, data_ + stored.offset, stored.bytes));
    if (stored.type->decode == nullptr) return bytes;
    auto ahead = std::make_unique<ReadAheadStream>(std::move(bytes), stored.bytes);
    return std::make_unique<DecodedStream>(*stored.type, std::move(ahead));
  }

 private:
  absl::Status ReadTensor(GgufCursor* cursor) {
    const std::string name = cursor->Text();
    const uint32_t rank = cursor->Fixed32();
    if (rank > kMaxRank) return DataLoss("tensor '", name, "' has ", rank, " dimensions");
    std::vector<int64_t> dims(rank);
    for (uint32_t i = rank; i-- > 0;) dims[i] = static_cast<int64_t>(cursor->Fixed64());
    const uint32_t code = cursor->Fixed32();
    StoredTensor stored{FindGgufType(code), cursor->Fixed64()};
    WEIR_RETURN_IF_ERROR(cursor->status());
    if (stored.type == nullptr || stored.type->dtype == DT_INVALID) {
      return Unimplemented(
          "tensor '", name, "' has the type ",
          stored.type == nullptr ? absl::StrCat(code) : std::string(stored.type->name),
          ", which is not read");
    }
    const absl::StatusOr<Shape> shape = Shape::Make(dims);
    if (!shape.ok() || !shape->IsFullyDefined())
      return DataLoss("tensor '", name, "' has a bad shape");
    const int64_t row = rank == 0 ? 1 : dims.back();
    const auto blocks = static_cast<uint64_t>(shape->num_elements() / stored.type->block);
    if (row % stored.type->block != 0 || blocks > file_->size())
      return DataLoss("tensor '", name, "' of type ", stored.type->name, " has the shape ",
                      shape->ToString());
    stored.bytes = blocks * stored.type->block_bytes;
    stored_[name] = stored;
    return Add(name, stored.type->dtype, *shape);
  }

  absl::StatusOr<uint64_t> Alignment(const Metadata& metadata) const {
    uint64_t alignment = kAlignment;
    for (const MetadataEntry& entry : metadata) {
      if (entry.key != kAlignmentKey) continue;
      if (entry.type != "uint32") return Bad(kAlignmentKey, " has the type ", entry.type);
      alignment = LoadFixed32(entry.gguf.data() + sizeof(uint32_t));
    }
    const bool is_power = alignment != 0 && (alignment & (alignment - 1)) == 0;
    if (!is_power) return Bad(kAlignmentKey, " is ", alignment);
    return alignment;
  }

  absl::Status CheckRanges(uint64_t alignment) const {
    std::vector<std::pair<uint64_t, uint64_t>> sorted;
    for (const auto& [name, stored] : stored_) {
      const uint64_t size = file_->size() - std::min(data_, file_->size());
      if (stored.offset % alignment != 0 || stored.offset > size ||
          stored.bytes > size - stored.offset) {
        return Bad("tensor '", name, "' has ", stored.bytes, " bytes at offset ", stored.offset,
                   " of the data, which has ", size);
      }
      if (stored.bytes > 0) sorted.emplace_back(stored.offset, stored.offset + stored.bytes);
    }
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i].first < sorted[i - 1].second)
        return Bad("two tensors overlap at offset ", sorted[i].first, " of the data");
    }
    return absl::OkStatus();
  }

  std::unique_ptr<ReadableFile> file_;
  uint64_t data_ = 0;  // the offset of the data in the file
  std::map<std::string, StoredTensor, std::less<>> stored_;
};

// ---- writing

bool IsQuantized(const OutputTensor& tensor, const Output& output) {
  return output.quantize && IsFloating(tensor.dtype) && tensor.shape.rank() >= 2 &&
         tensor.shape.dim(-1) % kQ8Block == 0;
}

uint64_t StoredBytes(const OutputTensor& tensor, const Output& output) {
  if (!IsQuantized(tensor, output))
    return static_cast<uint64_t>(BytesOf(tensor.dtype, tensor.shape));
  return static_cast<uint64_t>(tensor.shape.num_elements() / kQ8Block) * GgufQ8().block_bytes;
}

std::string SerializeHeader(const Output& output) {
  std::string out(kMagic), entries;
  uint64_t num_entries = 0;
  for (const MetadataEntry& entry : output.metadata) {
    if (entry.key == kAlignmentKey) continue;
    entries += SerializeGgufMetadata(entry);
    ++num_entries;
  }
  PutFixed32(&out, kVersion);
  PutFixed64(&out, output.tensors.size());
  PutFixed64(&out, num_entries);
  out += entries;
  uint64_t offset = 0;
  for (const OutputTensor& tensor : output.tensors) {
    PutGgufText(&out, tensor.name);
    PutFixed32(&out, static_cast<uint32_t>(tensor.shape.rank()));
    for (int i = tensor.shape.rank() - 1; i >= 0; --i)
      PutFixed64(&out, static_cast<uint64_t>(tensor.shape.dim(i)));
    PutFixed32(&out, IsQuantized(tensor, output) ? GgufQ8().code : GgufTypeOf(tensor.dtype)->code);
    PutFixed64(&out, offset);
    offset = AlignUp(offset + StoredBytes(tensor, output), kAlignment);
  }
  out.resize(AlignUp(out.size(), kAlignment), '\0');
  return out;
}

// Pieces have whole blocks: both sizes are powers of two.
absl::Status WriteQ8(OutputTensor tensor, BufferedFile* file) {
  tensor.dtype = DT_FLOAT;
  std::vector<char> block(GgufQ8().block_bytes);
  return CopyElements(tensor, [&](absl::string_view piece) -> absl::Status {
    const auto* const values = reinterpret_cast<const float*>(piece.data());
    const size_t count = piece.size() / sizeof(float);
    for (size_t i = 0; i < count; ++i) {
      if (!(std::abs(values[i]) <= kMaxQ8)) {
        return InvalidArgument("tensor '", tensor.name, "' has NaNs or magnitudes above ", kMaxQ8,
                               " and cannot be quantized");
      }
    }
    for (size_t i = 0; i < count; i += kQ8Block) {
      EncodeQ8(values + i, block.data());
      WEIR_RETURN_IF_ERROR(file->Append(absl::string_view(block.data(), block.size())));
    }
    return absl::OkStatus();
  });
}

absl::Status WriteData(const Output& output, ProgressBar& progress, BufferedFile* file) {
  for (const OutputTensor& tensor : output.tensors) {
    const auto append = [&](absl::string_view piece) { return file->Append(piece); };
    WEIR_RETURN_IF_ERROR(IsQuantized(tensor, output) ? WriteQ8(tensor, file)
                                                     : CopyElements(tensor, append));
    const std::string padding(AlignUp(file->size(), kAlignment) - file->size(), '\0');
    WEIR_RETURN_IF_ERROR(file->Append(padding));
    progress.Add(1);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenGguf(const std::string& path,
                                                           Metadata* metadata) {
  auto reader = std::make_unique<GgufReader>(path);
  WEIR_RETURN_IF_ERROR(reader->Open(metadata));
  return reader;
}

bool IsGguf(const ReadableFile& file) { return BeginsWith(file, kMagic); }

bool GgufHolds(DataType dtype) { return GgufTypeOf(dtype) != nullptr; }

absl::Status CheckGgufTensor(const OutputTensor& tensor) {
  if (tensor.name.size() > kMaxNameBytes) {
    return InvalidArgument("tensor name '", tensor.name, "' has more than ", kMaxNameBytes,
                           " bytes, the limit of GGUF; rename the tensor with --rename");
  }
  if (tensor.shape.rank() <= static_cast<int>(kMaxRank)) return absl::OkStatus();
  return InvalidArgument("tensor '", tensor.name, "' of shape ", tensor.shape.ToString(),
                         " has more than ", kMaxRank, " dimensions, the limit of GGUF");
}

absl::Status WriteGguf(const std::string& path, const Output& output, ProgressBar& progress) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<WriteLock> lock, WriteLock::Acquire(path));
  return WriteFileAtomically(path, [&](BufferedFile* file) -> absl::Status {
    WEIR_RETURN_IF_ERROR(file->Append(SerializeHeader(output)));
    return WriteData(output, progress, file);
  });
}

}  // namespace weir::tools
