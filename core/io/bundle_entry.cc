#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "weir/core/io/bundle_format.h"
#include "weir/core/io/coding.h"
#include "weir/proto/tensor_bundle.pb.h"

// Index entries. Entries of tensors that are stored whole are serialized and parsed without
// protobuf: a checkpoint may have ten thousand of them, and protobuf takes ten times as long,
// mostly to allocate nested messages.
namespace weir::internal {
namespace {

// Proto 3 omits numbers that are 0.
void PutField(std::string* out, char tag, uint64_t value) {
  if (value == 0) return;
  out->push_back(tag);
  PutVarint64(out, value);
}

std::string SerializePlainEntry(const BundleEntry& entry) {
  std::string shape, extent, out;
  for (const int64_t dim : entry.shape.dims()) {
    extent.clear();
    PutField(&extent, 0x08, static_cast<uint64_t>(dim));
    shape.push_back(0x12);
    PutVarint64(&shape, extent.size());
    shape += extent;
  }
  PutField(&out, 0x08, static_cast<uint64_t>(entry.dtype));
  out.push_back(0x12);
  PutVarint64(&out, shape.size());
  out += shape;
  PutField(&out, 0x18, static_cast<uint64_t>(entry.shard));
  PutField(&out, 0x20, static_cast<uint64_t>(entry.offset));
  PutField(&out, 0x28, static_cast<uint64_t>(entry.size));
  if (entry.crc != 0) {
    out.push_back(0x35);
    PutFixed32(&out, entry.crc);
  }
  return out;
}

}  // namespace

std::string SerializeBundleEntry(const BundleEntry& entry) {
  if (entry.slices.empty()) return SerializePlainEntry(entry);
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

// The fields of an entry before validation.
struct EntryFields {
  int dtype = 0, shard = 0;
  absl::InlinedVector<int64_t, 4> dims;
  int64_t offset = 0, size = 0;
  uint32_t crc = 0;
};

// Parses the number in field `tag` at the front of `*in`; the result is 0 if another field, or
// none, is there. Returns false if the field is not a number up to `max`.
bool GetField(absl::string_view* in, char tag, uint64_t max, uint64_t* value) {
  *value = 0;
  if (in->empty() || (*in)[0] != tag) return true;
  in->remove_prefix(1);
  return GetVarint64(in, value) && *value <= max;
}

// Parses the message at the front of `*in` whose tag has already been consumed.
bool GetMessage(absl::string_view* in, absl::string_view* message) {
  in->remove_prefix(1);
  uint64_t length = 0;
  if (!GetVarint64(in, &length) || length > in->size()) return false;
  *message = in->substr(0, length);
  in->remove_prefix(length);
  return true;
}

// Parses the encoding that writers produce for a tensor that is stored whole: every field once, in
// the order of the field numbers. Returns false for every other encoding, which may still be valid.
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

// Returns OK, or the defect of the fields.
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
    return DataLoss("invalid shard ", fields.shard, ", offset ", fields.offset, " and size ",
                    fields.size, " make no sense");
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

}  // namespace weir::internal
