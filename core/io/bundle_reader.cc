#include "weir/core/io/bundle_reader.h"

#include <algorithm>
#include <cstring>

#include "weir/core/io/bundle_commit.h"
#include "weir/core/io/file.h"

namespace weir {

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(
    const std::string& prefix) {
  if (prefix.empty()) return InvalidArgument("the path of a checkpoint is empty");
  if (Files().Exists(internal::BundleIndexName(prefix)))
    return internal::BundleReader::Open(prefix);
  return internal::OpenCheckpointV1(prefix);
}

absl::Status CheckpointReader::Check(absl::string_view name) { return Read(name).status(); }

absl::Status CheckpointReader::ReadInto(absl::string_view name, Tensor* out) {
  WEIR_ASSIGN_OR_RETURN(const Tensor read, Read(name));
  if (read.dtype() != out->dtype() || read.shape() != out->shape()) {
    return InvalidArgument("tensor_name = ", name, "; ", read.Description(),
                           " cannot be read into ", out->Description());
  }
  if (read.num_elements() == 0) return absl::OkStatus();
  if (IsPlain(read.dtype())) {
    std::memcpy(out->raw(), read.raw(), read.num_bytes());
  } else {
    const auto strings = read.flat<std::string>();
    std::copy(strings.begin(), strings.end(), out->data<std::string>());
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> ShapeInCheckpoint(CheckpointReader& reader, const std::string& name,
                                        const std::string& shape_and_slice, DataType dtype) {
  WEIR_ASSIGN_OR_RETURN(const CheckpointTensor stored, reader.Find(name));
  return ShapeInCheckpoint(name, stored.dtype, stored.shape, shape_and_slice, dtype);
}

absl::StatusOr<Shape> ShapeInCheckpoint(absl::string_view name, DataType stored_dtype,
                                        const Shape& stored, absl::string_view shape_and_slice,
                                        DataType dtype) {
  if (stored_dtype != dtype) {
    return InvalidArgument("tensor_name = ", name, "; expected dtype ", DataTypeName(dtype),
                           " does not equal original dtype ", DataTypeName(stored_dtype));
  }
  if (shape_and_slice.empty()) return stored;
  WEIR_ASSIGN_OR_RETURN(const ShapeAndSlice parsed, ShapeAndSlice::Parse(shape_and_slice));
  if (parsed.shape != stored) {
    return InvalidArgument("tensor_name = ", name, "; shape in shape_and_slice spec ",
                           parsed.shape.ToString(),
                           " does not match the shape stored in checkpoint: ", stored.ToString());
  }
  return parsed.slice_shape;
}

absl::StatusOr<Tensor> ReadFromCheckpoint(CheckpointReader& reader, const std::string& name,
                                          const std::string& shape_and_slice, DataType dtype) {
  WEIR_RETURN_IF_ERROR(ShapeInCheckpoint(reader, name, shape_and_slice, dtype).status());
  if (shape_and_slice.empty()) return reader.Read(name);
  WEIR_ASSIGN_OR_RETURN(const ShapeAndSlice parsed, ShapeAndSlice::Parse(shape_and_slice));
  return reader.ReadSlice(name, parsed.slice);
}

namespace internal {

absl::Status KeyNotFound(absl::string_view name, absl::string_view prefix) {
  return NotFound("Key ", name, " not found in checkpoint ", prefix);
}

namespace {

// A slice that overlaps the wanted box, and the overlap.
struct NeededSlice {
  const TensorSlice* slice;
  Box overlap;
};

// Collects the slices that overlap `want`, and checks that every element is covered exactly once:
// no two slices overlap, and the element counts add up.
absl::StatusOr<std::vector<NeededSlice>> NeededSlices(const Shape& full, const Box& want,
                                                      const std::vector<TensorSlice>& parts,
                                                      absl::string_view what) {
  std::vector<NeededSlice> needed;
  std::vector<Box> overlaps;
  const int64_t wanted = want.num_elements();
  int64_t covered = 0;
  for (const TensorSlice& part : parts) {
    const std::optional<Box> overlap = IntersectBoxes(ResolveSlice(part, full), want);
    if (!overlap || wanted == 0) continue;
    covered += std::min(overlap->num_elements(), wanted - covered + 1);
    needed.push_back({&part, *overlap});
    overlaps.push_back(*overlap);
  }
  if (covered != wanted || !AreDisjoint(overlaps)) {
    return DataLoss(what, ": the ", parts.size(), " stored slices of shape ", full.ToString(),
                    covered > wanted || covered == wanted ? " overlap"
                                                          : " do not cover the requested elements");
  }
  return needed;
}

}  // namespace

absl::StatusOr<Tensor> AssembleSlices(
    DataType dtype, const Shape& full, const Box& want, const std::vector<TensorSlice>& parts,
    absl::FunctionRef<absl::StatusOr<Tensor>(const TensorSlice&)> read, absl::string_view what) {
  const auto read_overlap = [&](const TensorSlice& slice,
                                const Box& overlap) -> absl::StatusOr<Tensor> {
    WEIR_ASSIGN_OR_RETURN(Tensor whole, read(slice));
    const Box box = ResolveSlice(slice, full);
    if (box.size == overlap.size) return whole;
    WEIR_ASSIGN_OR_RETURN(Tensor part,
                          Tensor::Allocate(HostAllocator(), dtype, Shape(overlap.size)));
    CopyBox(whole, box, overlap, overlap, &part);
    return part;
  };
  return AssembleBoxes(dtype, full, want, parts, read_overlap, what);
}

absl::StatusOr<Tensor> AssembleBoxes(
    DataType dtype, const Shape& full, const Box& want, const std::vector<TensorSlice>& parts,
    absl::FunctionRef<absl::StatusOr<Tensor>(const TensorSlice&, const Box& part)> read,
    absl::string_view what) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<NeededSlice> needed,
                        NeededSlices(full, want, parts, what));
  Tensor out;
  for (const NeededSlice& each : needed) {
    // Reads the slices before allocating the result: a damaged index may promise more than there
    // is.
    WEIR_ASSIGN_OR_RETURN(const Tensor part, read(*each.slice, each.overlap));
    if (!out.initialized()) {
      WEIR_ASSIGN_OR_RETURN(out, Tensor::Allocate(HostAllocator(), dtype, Shape(want.size)));
    }
    CopyBox(part, each.overlap, each.overlap, want, &out);
  }
  if (!out.initialized()) return Tensor::Allocate(HostAllocator(), dtype, Shape(want.size));
  return out;
}

namespace {

constexpr int kInitiallyOpened = 16;  // data files
constexpr int kAttempts = 20;         // attempts to open a bundle that is being overwritten
// Looking up a name takes a search in the index's blocks and the decoding of the entry. After
// kFullIndexLookups lookups, the whole index is decoded, unless it is larger than
// kMaxFullIndexBytes: a caller that reads a few names out of many should not pay for all.
constexpr size_t kFullIndexLookups = 100;
constexpr uint64_t kMaxFullIndexBytes = uint64_t{64} << 20;

}  // namespace

// Files are replaced by renaming, so an open file never changes. The index is opened first and the
// data files after it. If the index at the prefix is still the one that was opened, and the data
// files still have the same names, then no writer has interfered (see bundle_commit.cc), and all
// open files belong to one bundle. In a bundle with many shards, the remaining data files are
// opened on demand and checked in the same way.
absl::StatusOr<std::unique_ptr<CheckpointReader>> BundleReader::Open(const std::string& prefix) {
  for (int i = 0; i < kAttempts; ++i) {
    absl::StatusOr<std::unique_ptr<BundleReader>> reader = OpenOnce(prefix);
    if (!reader.ok()) return reader.status();
    const int count = std::min((*reader)->header_.num_shards, kInitiallyOpened);
    // A missing data file is an error only for the tensors in it.
    for (int shard = 0; shard < count; ++shard) (*reader)->DataFile(shard).status().IgnoreError();
    if ((*reader)->IsCurrent()) return *std::move(reader);
  }
  return OverwrittenError(prefix);
}

absl::StatusOr<std::unique_ptr<BundleReader>> BundleReader::OpenOnce(const std::string& prefix) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, Files().Open(BundleIndexName(prefix)));
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<SSTableReader> index, SSTableReader::Open(std::move(file)));
  std::unique_ptr<BundleReader> reader(new BundleReader(prefix, std::move(index)));
  WEIR_ASSIGN_OR_RETURN(const std::optional<std::string> header, reader->index_->Get(""));
  if (!header) return DataLoss(reader->index_->path(), ": Unable to find the header entry");
  WEIR_ASSIGN_OR_RETURN(reader->header_, ParseBundleHeader(*header, reader->index_->path()));
  reader->data_suffix_ = LiveDataSuffix(prefix);
  return reader;
}

bool BundleReader::IsCurrent() const {
  return IsUnchanged(index_->file(), index_->path()) && LiveDataSuffix(prefix_) == data_suffix_;
}

absl::StatusOr<std::optional<BundleEntry>> BundleReader::Lookup(absl::string_view key) {
  std::optional<std::string> bytes;
  {
    const MutexLock lock(mutex_);
    if (const BundleIndex* whole = FullIndexLocked(1)) {
      const BundleEntry* const entry = whole->Find(key, &hint_);
      return entry == nullptr ? std::nullopt : std::optional(*entry);
    }
    WEIR_ASSIGN_OR_RETURN(bytes, index_->Get(key));
  }
  if (!bytes || key.empty()) return std::nullopt;
  WEIR_ASSIGN_OR_RETURN(BundleEntry entry, ParseBundleEntry(*bytes, key, index_->path()));
  return entry;
}

const BundleIndex* BundleReader::FullIndex(size_t lookups) {
  const MutexLock lock(mutex_);
  return FullIndexLocked(lookups);
}

// Tried once. If any part of the index is damaged, lookups continue one by one, so undamaged
// entries remain readable.
const BundleIndex* BundleReader::FullIndexLocked(size_t lookups) {
  const bool were_few = lookups_ < kFullIndexLookups;
  lookups_ += lookups;
  if (were_few && lookups_ >= kFullIndexLookups && index_->file_size() <= kMaxFullIndexBytes) {
    absl::StatusOr<BundleIndex> read = BundleIndex::Read(*index_);
    if (read.ok()) full_index_ = std::make_unique<const BundleIndex>(*std::move(read));
  }
  return full_index_.get();
}

absl::StatusOr<BundleEntry> BundleReader::Entry(absl::string_view name) {
  WEIR_ASSIGN_OR_RETURN(std::optional<BundleEntry> entry, Lookup(name));
  if (!entry) return KeyNotFound(name, prefix_);
  return *std::move(entry);
}

absl::StatusOr<std::vector<CheckpointTensor>> BundleReader::List() {
  std::vector<CheckpointTensor> tensors;
  const MutexLock lock(mutex_);
  WEIR_RETURN_IF_ERROR(
      index_->ForEach([&](absl::string_view key, absl::string_view value) -> absl::Status {
        if (key.empty() || key[0] == '\0')
          return absl::OkStatus();  // the header, and slices of tensors
        WEIR_ASSIGN_OR_RETURN(BundleEntry entry, ParseBundleEntry(value, key, index_->path()));
        tensors.push_back(
            {std::string(key), entry.dtype, std::move(entry.shape), std::move(entry.slices)});
        return absl::OkStatus();
      }));
  return tensors;
}

absl::StatusOr<CheckpointTensor> BundleReader::Find(absl::string_view name) {
  WEIR_ASSIGN_OR_RETURN(BundleEntry entry, Entry(name));
  return CheckpointTensor{std::string(name), entry.dtype, std::move(entry.shape),
                          std::move(entry.slices)};
}

absl::StatusOr<const ReadableFile*> BundleReader::DataFile(int shard) {
  if (shard >= header_.num_shards) {
    return DataLoss(index_->path(), ": an entry is in shard ", shard, " of ", header_.num_shards);
  }
  const MutexLock lock(mutex_);
  std::unique_ptr<ReadableFile>& file = data_[shard];
  if (file == nullptr) {
    const std::string path = BundleDataName(prefix_, shard, header_.num_shards);
    absl::StatusOr<std::unique_ptr<ReadableFile>> opened = Files().Open(path + data_suffix_);
    if (absl::IsNotFound(opened.status()) && !data_suffix_.empty()) opened = Files().Open(path);
    const bool replaced = shard >= kInitiallyOpened && !IsCurrent();
    if (replaced) return OverwrittenError(prefix_);
    if (!opened.ok()) return opened.status();
    file = *std::move(opened);
  }
  return file.get();
}

absl::Status BundleReader::WithDataFile(const BundleEntry& entry,
                                        absl::FunctionRef<absl::Status(const ReadableFile&)> read) {
  const absl::StatusOr<const ReadableFile*> file = DataFile(entry.shard);
  const absl::Status status = file.ok() ? read(**file) : file.status();
  const bool gone = file.ok() ? absl::IsDataLoss(status) : absl::IsNotFound(status);
  return gone && !IsCurrent() ? OverwrittenError(prefix_) : status;
}

absl::StatusOr<Tensor> BundleReader::ReadStored(absl::string_view key, const BundleEntry& entry) {
  Tensor out;
  WEIR_RETURN_IF_ERROR(WithDataFile(entry, [&](const ReadableFile& file) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(out, ReadTensorData(file, entry, header_.big_endian, key));
    return absl::OkStatus();
  }));
  return out;
}

absl::Status BundleReader::CheckStored(absl::string_view key, const BundleEntry& entry) {
  return WithDataFile(entry, [&](const ReadableFile& file) {
    return CheckTensorData(file, entry, header_.big_endian, key);
  });
}

absl::Status BundleReader::Check(absl::string_view name) {
  WEIR_ASSIGN_OR_RETURN(const BundleEntry entry, Entry(name));
  return entry.slices.empty() ? CheckStored(name, entry) : CheckpointReader::Check(name);
}

absl::Status BundleReader::ReadInto(absl::string_view name, Tensor* out) {
  WEIR_ASSIGN_OR_RETURN(const BundleEntry entry, Entry(name));
  const bool as_stored = entry.slices.empty() && entry.dtype == out->dtype() &&
                         entry.shape == out->shape() && IsPlain(entry.dtype);
  if (!as_stored) return CheckpointReader::ReadInto(name, out);
  return WithDataFile(entry, [&](const ReadableFile& file) {
    return ReadTensorDataInto(file, entry, header_.big_endian, name, out);
  });
}

absl::StatusOr<BundleEntry> BundleReader::PartEntry(absl::string_view name,
                                                    const BundleEntry& entry,
                                                    const TensorSlice& slice) {
  const std::string key = EncodeSliceKey(name, slice);
  WEIR_ASSIGN_OR_RETURN(std::optional<BundleEntry> part, Lookup(key));
  if (!part) return DataLoss(index_->path(), ": no entry for ", DescribeBundleKey(key));
  if (part->dtype == entry.dtype && part->shape == *slice.ShapeIn(entry.shape))
    return *std::move(part);
  return DataLoss(index_->path(), ": the entry of ", DescribeBundleKey(key), " says ",
                  DataTypeName(part->dtype), part->shape.ToString(),
                  ", which is not that slice of ", DataTypeName(entry.dtype),
                  entry.shape.ToString());
}

absl::StatusOr<Tensor> BundleReader::ReadParts(absl::string_view name, const BundleEntry& entry,
                                               const Box& want) {
  const auto read = [&](const TensorSlice& slice) -> absl::StatusOr<Tensor> {
    WEIR_ASSIGN_OR_RETURN(const BundleEntry part, PartEntry(name, entry, slice));
    return ReadStored(EncodeSliceKey(name, slice), part);
  };
  return AssembleSlices(entry.dtype, entry.shape, want, entry.slices, read,
                        absl::StrCat(index_->path(), ": tensor ", name));
}

absl::StatusOr<Tensor> BundleReader::Read(absl::string_view name) {
  WEIR_ASSIGN_OR_RETURN(const BundleEntry entry, Entry(name));
  if (entry.slices.empty()) return ReadStored(name, entry);
  return ReadParts(name, entry, ResolveSlice(TensorSlice::Full(entry.shape.rank()), entry.shape));
}

absl::StatusOr<Tensor> BundleReader::ReadSlice(absl::string_view name, const TensorSlice& slice) {
  WEIR_ASSIGN_OR_RETURN(const BundleEntry entry, Entry(name));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, slice.ShapeIn(entry.shape));
  if (shape == entry.shape) return Read(name);
  const Box want = ResolveSlice(slice, entry.shape);
  if (!entry.slices.empty()) return ReadParts(name, entry, want);
  WEIR_ASSIGN_OR_RETURN(const Tensor whole, ReadStored(name, entry));
  WEIR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(HostAllocator(), entry.dtype, shape));
  CopyBox(whole, ResolveSlice(TensorSlice::Full(entry.shape.rank()), entry.shape), want, want,
          &out);
  return out;
}

}  // namespace internal
}  // namespace weir
