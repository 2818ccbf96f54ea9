#include "weir/core/bundle_format.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "weir/core/coding.h"
#include "weir/core/crc32c.h"
#include "weir/proto/tensor_bundle.pb.h"

namespace weir::internal {
namespace {

constexpr int kVersion = 1;  // of the format, as producer
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

std::string SerializeBundleEntry(const BundleEntry& entry) {
  proto::BundleEntryProto p;
  p.set_dtype(static_cast<proto::DataType>(entry.dtype));
  p.mutable_shape();
  for (const int64_t dim : entry.shape.dims()) p.mutable_shape()->add_dim()->set_size(dim);
  p.set_shard_id(entry.shard);
  p.set_offset(entry.offset);
  p.set_size(entry.size);
  p.set_crc32c(entry.crc);
  for (const TensorSlice& slice : entry.slices) {
    proto::TensorSliceProto* out = p.add_slices();
    for (const TensorSlice::Extent& e : slice.extents) {
      proto::TensorSliceProto::Extent* extent = out->add_extent();
      if (e.length == TensorSlice::Extent::kAll) continue;
      extent->set_start(e.start);
      extent->set_length(e.length);
    }
  }
  return p.SerializeAsString();
}

namespace {

absl::Status SlicesFromProto(const proto::BundleEntryProto& p, BundleEntry* entry) {
  for (const proto::TensorSliceProto& in : p.slices()) {
    TensorSlice slice;
    for (const proto::TensorSliceProto::Extent& e : in.extent()) {
      slice.extents.push_back({e.start(), e.has_length() ? e.length() : TensorSlice::Extent::kAll});
    }
    WEIR_RETURN_IF_ERROR(slice.ShapeIn(entry->shape).status());
    entry->slices.push_back(std::move(slice));
  }
  return absl::OkStatus();
}

// What an entry says, before anybody has looked whether it makes sense.
struct EntryFields {
  int dtype = 0, shard = 0;
  absl::InlinedVector<int64_t, 4> dims;
  int64_t offset = 0, size = 0;
  uint32_t crc = 0;
};

// Reads the number of field `tag` from the front of `*in`, or 0 if another field, or none, stands
// there. False if it is no number up to `max`.
bool GetField(absl::string_view* in, char tag, uint64_t max, uint64_t* value) {
  *value = 0;
  if (in->empty() || (*in)[0] != tag) return true;
  in->remove_prefix(1);
  return GetVarint64(in, value) && *value <= max;
}

// A message in front of `*in` whose tag has been seen there.
bool GetMessage(absl::string_view* in, absl::string_view* message) {
  in->remove_prefix(1);
  uint64_t length = 0;
  if (!GetVarint64(in, &length) || length > in->size()) return false;
  *message = in->substr(0, length);
  in->remove_prefix(length);
  return true;
}

// What writers make of a tensor that is stored as a whole: the fields in the order of their
// numbers, each once. A checkpoint has thousands of these, and protobuf takes ten times as long,
// most of it for the memory of messages inside messages. False for everything else, which may be
// right all the same.
bool GetPlainEntry(absl::string_view in, EntryFields* entry) {
  uint64_t dtype, shard, offset, size, dim;
  if (!GetField(&in, 0x08, INT32_MAX, &dtype)) return false;
  absl::string_view shape, extent;
  if (!in.empty() && in[0] == 0x12 && !GetMessage(&in, &shape)) return false;
  while (!shape.empty()) {
    if (shape[0] != 0x12 || !GetMessage(&shape, &extent)) return false;
    if (!GetField(&extent, 0x08, INT64_MAX, &dim) || !extent.empty()) return false;
    entry->dims.push_back(static_cast<int64_t>(dim));
  }
  if (!GetField(&in, 0x18, INT32_MAX, &shard) || !GetField(&in, 0x20, INT64_MAX, &offset) ||
      !GetField(&in, 0x28, INT64_MAX, &size) || in.size() != 5 || in[0] != 0x35)
    return false;
  entry->dtype = static_cast<int>(dtype);
  entry->shard = static_cast<int>(shard);
  entry->offset = static_cast<int64_t>(offset);
  entry->size = static_cast<int64_t>(size);
  entry->crc = LoadFixed32(in.data() + 1);
  return true;
}

// OK, or what is wrong with the fields.
absl::Status CheckFields(const EntryFields& fields, BundleEntry* entry) {
  entry->dtype = static_cast<DataType>(fields.dtype);
  if (static_cast<int>(entry->dtype) != fields.dtype || !IsKnown(entry->dtype) ||
      IsRef(entry->dtype) || entry->dtype == DT_INVALID)
    return DataLoss("unknown dtype ", fields.dtype);
  if (std::any_of(fields.dims.begin(), fields.dims.end(), [](int64_t dim) { return dim < 0; }))
    return DataLoss("negative dimension");
  absl::StatusOr<Shape> shape = Shape::Make(fields.dims);
  if (!shape.ok()) return DataLoss("bad shape");
  if (fields.shard < 0 || fields.offset < 0 || fields.size < 0 ||
      fields.size > INT64_MAX - fields.offset)
    return DataLoss("shard ", fields.shard, ", offset ", fields.offset, " and size ", fields.size,
                    " make no sense");
  entry->shape = *std::move(shape);
  entry->shard = fields.shard;
  entry->offset = fields.offset;
  entry->size = fields.size;
  entry->crc = fields.crc;
  return absl::OkStatus();
}

absl::Status EntryFromProto(absl::string_view bytes, BundleEntry* entry) {
  proto::BundleEntryProto p;
  if (!p.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return DataLoss("malformed");
  if (p.shape().unknown_rank()) return DataLoss("bad shape");
  EntryFields fields = {.dtype = static_cast<int>(p.dtype()), .shard = p.shard_id()};
  for (const auto& dim : p.shape().dim()) fields.dims.push_back(dim.size());
  fields.offset = p.offset();
  fields.size = p.size();
  fields.crc = p.crc32c();
  WEIR_RETURN_IF_ERROR(CheckFields(fields, entry));
  return SlicesFromProto(p, entry);
}

}  // namespace

absl::StatusOr<BundleEntry> ParseBundleEntry(absl::string_view bytes, absl::string_view key,
                                             absl::string_view file) {
  BundleEntry entry;
  EntryFields fields;
  const absl::Status status =
      GetPlainEntry(bytes, &fields) ? CheckFields(fields, &entry) : EntryFromProto(bytes, &entry);
  if (status.ok()) return entry;
  return DataLoss(file, ": entry of ", DescribeBundleKey(key), ": ", status.message());
}

std::string DescribeBundleKey(absl::string_view key) {
  std::string name;
  TensorSlice slice;
  if (!key.empty() && key[0] == '\0' && DecodeSliceKey(key, &name, &slice)) {
    return absl::StrCat(absl::Utf8SafeCHexEscape(name), ", slice ", slice.ToString());
  }
  return absl::Utf8SafeCHexEscape(key);
}

// ---- Elements. Plain types are their bytes in memory. Strings: the length of each as a varint, a
// masked checksum of the lengths in four bytes, then the characters of all. Their checksum runs
// over each length as a fixed 4-byte number (8 if it needs more), the four bytes, and the
// characters.
namespace {

constexpr size_t kPiece = size_t{1}
                          << 18;  // small enough to stay in the cache between checksum and copy

constexpr size_t kLarge = size_t{1} << 20;  // worth a second thread: 100 us of checksum

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
    const absl::string_view piece = left.substr(0, kPiece);
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

// Says where something is wrong.
struct Place {
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

// What the entry promises must fit what the file has before memory is asked for.
absl::Status CheckExtent(const Place& place) {
  const BundleEntry& entry = place.entry;
  const int64_t elements = entry.shape.num_elements();
  if (entry.dtype == DT_STRING) {
    // A length and the checksum take at least this.
    if (elements > entry.size - 4) return place.Bad("the size does not fit the shape");
  } else if (!IsPlain(entry.dtype)) {
    return Unimplemented(place.file.path(), ": tensor ", DescribeBundleKey(place.key),
                         ": restoring ", DataTypeName(entry.dtype), " is not implemented");
  } else {
    const auto width = static_cast<int64_t>(ElementSize(entry.dtype));
    if (entry.size % width != 0 || entry.size / width != elements)
      return place.Bad("the size does not fit the shape");
  }
  const auto end = static_cast<uint64_t>(entry.offset) + static_cast<uint64_t>(entry.size);
  if (end > place.file.size()) {
    return place.Bad("the file is truncated: it has ", place.file.size(), " bytes, and ", end,
                     " are needed");
  }
  return absl::OkStatus();
}

// Reads and checks the bytes of a plain entry; `out` is null or has room for them.
absl::Status ReadPlain(const Place& place, char* out) {
  std::string scratch;
  if (out == nullptr)
    scratch.resize(std::min<size_t>(kPiece, static_cast<size_t>(place.entry.size)));
  uint32_t crc = 0;
  for (uint64_t done = 0; done < static_cast<uint64_t>(place.entry.size);) {
    const size_t piece = std::min<uint64_t>(kPiece, static_cast<uint64_t>(place.entry.size) - done);
    char* to = out != nullptr ? out + done : scratch.data();
    WEIR_RETURN_IF_ERROR(
        place.file.Read(static_cast<uint64_t>(place.entry.offset) + done, piece, to));
    crc = ExtendCrc32c(crc, to, piece);
    done += piece;
  }
  if (MaskCrc32c(crc) != place.entry.crc) return place.Mismatch(place.entry.crc, MaskCrc32c(crc));
  return absl::OkStatus();
}

absl::Status ReadStrings(const Place& place, Tensor* tensor) {
  std::string bytes(static_cast<size_t>(place.entry.size), '\0');
  WEIR_RETURN_IF_ERROR(
      place.file.Read(static_cast<uint64_t>(place.entry.offset), bytes.size(), bytes.data()));
  absl::string_view in = bytes;
  const auto elements = static_cast<size_t>(place.entry.shape.num_elements());
  std::vector<uint64_t> lengths(elements);
  uint32_t crc = 0;
  uint64_t sum = 0;
  for (uint64_t& length : lengths) {
    if (!GetVarint64(&in, &length) || length > bytes.size())
      return place.Bad("the lengths of the strings are damaged");
    crc = ExtendWithLength(crc, length);
    sum += length;
  }
  if (in.size() < 4) return place.Bad("the lengths of the strings are damaged");
  const uint32_t stored = LoadFixed32(in.data());
  if (stored != MaskCrc32c(crc)) return place.Mismatch(stored, MaskCrc32c(crc));
  if (sum != in.size() - 4)
    return place.Bad("the lengths of the strings do not add up to the size");
  crc = ExtendCrc32c(crc, in);
  if (MaskCrc32c(crc) != place.entry.crc) return place.Mismatch(place.entry.crc, MaskCrc32c(crc));
  in.remove_prefix(4);
  for (size_t i = 0; i < elements && tensor != nullptr; ++i) {
    tensor->data<std::string>()[i].assign(in.data(), lengths[i]);
    in.remove_prefix(lengths[i]);
  }
  return absl::OkStatus();
}

void SwapBytes(Tensor* tensor) {
  const size_t width = ElementSize(tensor->dtype()) / (IsComplex(tensor->dtype()) ? 2 : 1);
  char* const end = static_cast<char*>(tensor->raw()) + tensor->num_bytes();
  for (char* p = static_cast<char*>(tensor->raw()); p < end; p += width) std::reverse(p, p + width);
}

}  // namespace

absl::StatusOr<Tensor> ReadTensorData(const ReadableFile& file, const BundleEntry& entry,
                                      bool big_endian, absl::string_view key) {
  const Place place{file, entry, key};
  WEIR_RETURN_IF_ERROR(CheckExtent(place));
  WEIR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(HostAllocator(), entry.dtype, entry.shape));
  if (entry.dtype == DT_STRING) {
    if (big_endian) return Unimplemented(file.path(), ": strings of a big-endian checkpoint");
    WEIR_RETURN_IF_ERROR(ReadStrings(place, &tensor));
  } else {
    WEIR_RETURN_IF_ERROR(ReadTensorDataInto(file, entry, big_endian, key, &tensor));
  }
  return tensor;
}

absl::Status ReadTensorDataInto(const ReadableFile& file, const BundleEntry& entry, bool big_endian,
                                absl::string_view key, Tensor* out) {
  const Place place{file, entry, key};
  WEIR_RETURN_IF_ERROR(CheckExtent(place));
  WEIR_RETURN_IF_ERROR(ReadPlain(place, static_cast<char*>(out->raw())));
  if (big_endian) SwapBytes(out);
  return absl::OkStatus();
}

absl::Status CheckTensorData(const ReadableFile& file, const BundleEntry& entry, bool big_endian,
                             absl::string_view key) {
  const Place place{file, entry, key};
  WEIR_RETURN_IF_ERROR(CheckExtent(place));
  if (entry.dtype != DT_STRING) return ReadPlain(place, nullptr);
  if (big_endian) return Unimplemented(file.path(), ": strings of a big-endian checkpoint");
  return ReadStrings(place, nullptr);
}

}  // namespace weir::internal
