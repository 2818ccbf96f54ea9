#include "weir/core/io/bundle_format.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "weir/core/io/coding.h"
#include "weir/core/io/crc32c.h"
#include "weir/proto/tensor_bundle.pb.h"

namespace weir::internal {
namespace {

constexpr int kVersion = 1;  // of the format, as a producer
constexpr int kMaxShards = 100000;

}  // namespace

std::string BundleIndexName(absl::string_view prefix) { return absl::StrCat(prefix, ".index"); }

std::string BundleDataName(absl::string_view prefix, int shard, int num_shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, shard, num_shards);
}

std::string SerializeBundleHeader(const BundleHeader& header) {
  proto::BundleHeaderProto p;
  p.set_num_shards(header.num_shards);
  p.mutable_version()->set_producer(kVersion);
  return p.SerializeAsString();
}

absl::StatusOr<BundleHeader> ParseBundleHeader(absl::string_view bytes, absl::string_view file) {
  proto::BundleHeaderProto p;
  if (!p.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || p.num_shards() < 1 ||
      p.num_shards() > kMaxShards) {
    return DataLoss(file, ": the header entry is malformed");
  }
  if (p.version().min_consumer() > kVersion) {
    return Unimplemented(file, ": the checkpoint needs a reader of version ",
                         p.version().min_consumer(), " of the format; this one knows version ",
                         kVersion);
  }
  return BundleHeader{p.num_shards(), p.endianness() == proto::BundleHeaderProto::BIG};
}

std::string DescribeBundleKey(absl::string_view key) {
  std::string name;
  TensorSlice slice;
  if (!key.empty() && key[0] == '\0' && DecodeSliceKey(key, &name, &slice)) {
    return absl::StrCat(absl::Utf8SafeCHexEscape(name), ", slice ", slice.ToString());
  }
  return absl::Utf8SafeCHexEscape(key);
}

// ---- Elements. Plain types are stored as their bytes in memory. Strings are stored as the lengths
// of all strings (varints), a masked 4-byte checksum of the lengths, and the characters of all
// strings. The checksum of the whole covers each length as a fixed 4-byte number (8 bytes if it
// needs more), the four checksum bytes, and the characters.
namespace {

// Small enough to stay in cache between checksum and copy.
constexpr size_t kChunk = size_t{1} << 18;
constexpr size_t kLarge = size_t{1} << 20;  // large enough for a second thread: 100 us of checksum

absl::Status WritePlain(const Tensor& tensor, BufferedFile* file, ThreadPool* pool, uint32_t* crc) {
  absl::string_view left(static_cast<const char*>(tensor.raw()), tensor.num_bytes());
  if (pool != nullptr && pool->num_threads() > 1 && left.size() >= kLarge) {
    absl::Status written;
    pool->ForEach(2, [&](int i) {
      if (i == 0) {
        written = file->Append(left);
      } else {
        *crc = ExtendCrc32c(*crc, left);
      }
    });
    return written;
  }
  while (!left.empty()) {
    const absl::string_view piece = left.substr(0, kChunk);
    *crc = ExtendCrc32c(*crc, piece);
    WEIR_RETURN_IF_ERROR(file->Append(piece));
    left.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

uint32_t ExtendWithLength(uint32_t crc, uint64_t length) {
  std::string bytes;
  length <= UINT32_MAX ? PutFixed32(&bytes, static_cast<uint32_t>(length))
                       : PutFixed64(&bytes, length);
  return ExtendCrc32c(crc, bytes);
}

absl::Status WriteStrings(const Tensor& tensor, BufferedFile* file, uint32_t* crc) {
  std::string lengths;
  for (const std::string& s : tensor.flat<std::string>()) {
    PutVarint64(&lengths, s.size());
    *crc = ExtendWithLength(*crc, s.size());
  }
  std::string checksum;
  PutFixed32(&checksum, MaskCrc32c(*crc));
  *crc = ExtendCrc32c(*crc, checksum);
  WEIR_RETURN_IF_ERROR(file->Append(lengths));
  WEIR_RETURN_IF_ERROR(file->Append(checksum));
  for (const std::string& s : tensor.flat<std::string>()) {
    *crc = ExtendCrc32c(*crc, s);
    WEIR_RETURN_IF_ERROR(file->Append(s));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteTensorData(const Tensor& tensor, BufferedFile* file, ThreadPool* pool,
                             BundleEntry* entry) {
  if (tensor.dtype() == DT_VARIANT) return Unimplemented("variants cannot be saved");
  if (tensor.dtype() != DT_STRING && !IsPlain(tensor.dtype())) {
    return InvalidArgument("a tensor of type ", DataTypeName(tensor.dtype()), " cannot be saved");
  }
  uint32_t crc = 0;
  entry->offset = static_cast<int64_t>(file->size());
  WEIR_RETURN_IF_ERROR(tensor.dtype() == DT_STRING ? WriteStrings(tensor, file, &crc)
                                                   : WritePlain(tensor, file, pool, &crc));
  entry->size = static_cast<int64_t>(file->size()) - entry->offset;
  entry->crc = MaskCrc32c(crc);
  return absl::OkStatus();
}

namespace {

// The location of a defect, for messages.
struct EntryLocation {
  const ReadableFile& file;
  const BundleEntry& entry;
  absl::string_view key;

  template <class... Args>
  absl::Status Bad(const Args&... why) const {
    return DataLoss(file.path(), ": tensor ", DescribeBundleKey(key), " (",
                    DataTypeName(entry.dtype), entry.shape.ToString(), ") at offset ", entry.offset,
                    ", ", entry.size, " bytes: ", why...);
  }
  absl::Status Mismatch(uint32_t stored, uint32_t computed) const {
    return Bad("Checksum does not match: stored ", absl::StrFormat("%08x", stored),
               " vs. calculated on the restored bytes ", absl::StrFormat("%08x", computed));
  }
};

// Checks the entry's size against the file before allocating memory.
absl::Status CheckExtent(const EntryLocation& location) {
  const BundleEntry& entry = location.entry;
  const int64_t elements = entry.shape.num_elements();
  if (entry.dtype == DT_STRING) {
    // Each string takes at least one byte for its length, plus the checksum.
    if (elements > entry.size - 4) return location.Bad("the size does not fit the shape");
  } else if (!IsPlain(entry.dtype)) {
    return Unimplemented(location.file.path(), ": tensor ", DescribeBundleKey(location.key),
                         ": restoring ", DataTypeName(entry.dtype), " is not implemented");
  } else {
    const auto width = static_cast<int64_t>(ElementSize(entry.dtype));
    if (entry.size % width != 0 || entry.size / width != elements)
      return location.Bad("the size does not fit the shape");
  }
  const auto end = static_cast<uint64_t>(entry.offset) + static_cast<uint64_t>(entry.size);
  if (end > location.file.size()) {
    return location.Bad("the file is truncated: it has ", location.file.size(), " bytes, and ", end,
                        " are needed");
  }
  return absl::OkStatus();
}

// Reads and verifies the bytes of a plain entry. `out` is null or has room for them.
absl::Status ReadPlain(const EntryLocation& location, char* out) {
  const auto size = static_cast<size_t>(location.entry.size);
  std::string scratch;
  if (out == nullptr) scratch.resize(std::min(kChunk, size));
  uint32_t crc = 0;
  for (size_t done = 0; done < size;) {
    const size_t piece = std::min(kChunk, size - done);
    char* to = out != nullptr ? out + done : scratch.data();
    WEIR_RETURN_IF_ERROR(ReadTensorBytes(location.file, location.entry, done, piece, to, &crc));
    done += piece;
  }
  return CheckTensorChecksum(location.file, location.entry, location.key, crc);
}

absl::Status ReadStrings(const EntryLocation& location, Tensor* tensor) {
  std::string bytes(static_cast<size_t>(location.entry.size), '\0');
  WEIR_RETURN_IF_ERROR(
      location.file.Read(static_cast<uint64_t>(location.entry.offset), bytes.size(), bytes.data()));
  absl::string_view in = bytes;
  const auto elements = static_cast<size_t>(location.entry.shape.num_elements());
  std::vector<uint64_t> lengths(elements);
  uint32_t crc = 0;
  uint64_t sum = 0;
  for (uint64_t& length : lengths) {
    if (!GetVarint64(&in, &length) || length > bytes.size())
      return location.Bad("the lengths of the strings are damaged");
    crc = ExtendWithLength(crc, length);
    sum += length;
  }
  if (in.size() < 4) return location.Bad("the lengths of the strings are damaged");
  const uint32_t stored = LoadFixed32(in.data());
  if (stored != MaskCrc32c(crc)) return location.Mismatch(stored, MaskCrc32c(crc));
  if (sum != in.size() - 4)
    return location.Bad("the lengths of the strings do not add up to the size");
  crc = ExtendCrc32c(crc, in);
  if (MaskCrc32c(crc) != location.entry.crc)
    return location.Mismatch(location.entry.crc, MaskCrc32c(crc));
  in.remove_prefix(4);
  for (size_t i = 0; i < elements && tensor != nullptr; ++i) {
    tensor->data<std::string>()[i].assign(in.data(), lengths[i]);
    in.remove_prefix(lengths[i]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTensorExtent(const ReadableFile& file, const BundleEntry& entry,
                               absl::string_view key) {
  return CheckExtent({file, entry, key});
}

absl::Status ReadTensorBytes(const ReadableFile& file, const BundleEntry& entry, uint64_t begin,
                             size_t size, char* out, uint32_t* crc) {
  const uint64_t start = static_cast<uint64_t>(entry.offset) + begin;
  for (size_t done = 0; done < size;) {
    const size_t piece = std::min(kChunk, size - done);
    WEIR_RETURN_IF_ERROR(file.Read(start + done, piece, out + done));
    if (crc != nullptr) *crc = ExtendCrc32c(*crc, out + done, piece);
    done += piece;
  }
  return absl::OkStatus();
}

absl::Status CheckTensorChecksum(const ReadableFile& file, const BundleEntry& entry,
                                 absl::string_view key, uint32_t crc) {
  if (MaskCrc32c(crc) == entry.crc) return absl::OkStatus();
  return EntryLocation{file, entry, key}.Mismatch(entry.crc, MaskCrc32c(crc));
}

void SwapElementBytes(DataType dtype, char* data, size_t size) {
  const size_t width = ElementSize(dtype) / (IsComplex(dtype) ? 2 : 1);
  for (size_t i = 0; i < size; i += width) std::reverse(data + i, data + i + width);
}

absl::StatusOr<Tensor> ReadTensorData(const ReadableFile& file, const BundleEntry& entry,
                                      bool big_endian, absl::string_view key) {
  const EntryLocation location{file, entry, key};
  WEIR_RETURN_IF_ERROR(CheckExtent(location));
  WEIR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(HostAllocator(), entry.dtype, entry.shape));
  if (entry.dtype == DT_STRING) {
    if (big_endian) return Unimplemented(file.path(), ": strings of a big-endian checkpoint");
    WEIR_RETURN_IF_ERROR(ReadStrings(location, &tensor));
  } else {
    WEIR_RETURN_IF_ERROR(ReadTensorDataInto(file, entry, big_endian, key, &tensor));
  }
  return tensor;
}

absl::Status ReadTensorDataInto(const ReadableFile& file, const BundleEntry& entry, bool big_endian,
                                absl::string_view key, Tensor* out) {
  const EntryLocation location{file, entry, key};
  WEIR_RETURN_IF_ERROR(CheckExtent(location));
  WEIR_RETURN_IF_ERROR(ReadPlain(location, static_cast<char*>(out->raw())));
  if (big_endian) SwapElementBytes(entry.dtype, static_cast<char*>(out->raw()), out->num_bytes());
  return absl::OkStatus();
}

absl::Status CheckTensorData(const ReadableFile& file, const BundleEntry& entry, bool big_endian,
                             absl::string_view key) {
  const EntryLocation location{file, entry, key};
  WEIR_RETURN_IF_ERROR(CheckExtent(location));
  if (entry.dtype != DT_STRING) return ReadPlain(location, nullptr);
  if (big_endian) return Unimplemented(file.path(), ": strings of a big-endian checkpoint");
  return ReadStrings(location, nullptr);
}

}  // namespace weir::internal
