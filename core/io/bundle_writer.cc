#include <algorithm>
#include <map>
#include <optional>

#include "weir/core/io/bundle.h"
#include "weir/core/io/bundle_commit.h"
#include "weir/core/io/bundle_format.h"
#include "weir/core/io/crc32c.h"
#include "weir/core/io/file.h"
#include "weir/core/io/sstable.h"
#include "weir/core/io/sstable_writer.h"

namespace weir {

using internal::BundleDataName;
using internal::BundleEntry;
using internal::BundleIndexName;

namespace {

// For a synced bundle, writeback is started each time this many bytes have been written.
constexpr uint64_t kSyncInterval = uint64_t{64} << 20;

using Entries = std::map<std::string, BundleEntry, std::less<>>;

// Writes an index file at a temporary path.
absl::Status WriteIndex(const std::string& path, int num_shards, const Entries& entries,
                        Durability durability) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> created, Files().Create(path));
  BufferedFile file(std::move(created));
  {
    SSTableWriter table(&file);
    WEIR_RETURN_IF_ERROR(table.Add("", internal::SerializeBundleHeader({num_shards})));
    for (const auto& [key, entry] : entries) {
      WEIR_RETURN_IF_ERROR(table.Add(key, internal::SerializeBundleEntry(entry)));
    }
    WEIR_RETURN_IF_ERROR(table.Finish());
  }
  if (durability == Durability::kSynced) WEIR_RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

absl::Status DuplicateKey(absl::string_view key) {
  return InvalidArgument("Adding duplicate key: ", internal::DescribeBundleKey(key));
}

}  // namespace

struct BundleWriter::Impl {
  std::string prefix;
  std::unique_ptr<WriteLock> lock;
  std::optional<TemporaryFile> data_file, index_file;
  Durability durability = Durability::kSynced;
  ThreadPool* pool = nullptr;
  std::unique_ptr<BufferedFile> data;
  uint64_t started = 0;  // bytes whose writeback has started
  Entries entries;
  // The tensor that is added in pieces, how many of its bytes are missing, and the checksum of the
  // others.
  Entries::iterator open = entries.end();
  uint64_t missing = 0;
  uint32_t crc = 0;
  absl::Status status;
  bool finished = false;

  absl::StatusOr<Entries::iterator> PlaceOf(absl::string_view key);
  void StartSync();
  absl::Status Add(absl::string_view key, const Tensor& tensor);
  absl::Status Begin(absl::string_view name, DataType dtype, const Shape& shape);
  absl::Status Append(absl::string_view bytes);
  void EndTensor();
  absl::Status Finish();
};

BundleWriter::BundleWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<BundleWriter>> BundleWriter::Create(const std::string& prefix,
                                                                   Durability durability,
                                                                   ThreadPool* pool) {
  if (prefix.empty()) return InvalidArgument("the path of a checkpoint is empty");
  const std::string directory = DirectoryOf(prefix);
  if (!Files().IsDirectory(directory)) {
    const absl::Status made = Files().MakeDirectory(directory);
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
    if (durability == Durability::kSynced)
      WEIR_RETURN_IF_ERROR(Files().SyncDirectory(DirectoryOf(directory)));
  }
  auto impl = std::make_unique<Impl>();
  impl->prefix = prefix;
  WEIR_ASSIGN_OR_RETURN(impl->lock, WriteLock::Acquire(prefix));
  internal::SweepCheckpoints(directory);
  impl->durability = durability;
  impl->pool = pool;
  impl->data_file.emplace(BundleDataName(prefix, 0, 1));
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                        Files().Create(impl->data_file->path()));
  impl->data = std::make_unique<BufferedFile>(std::move(file));
  return std::unique_ptr<BundleWriter>(new BundleWriter(std::move(impl)));
}

BundleWriter::~BundleWriter() = default;

// Returns where an entry with this key is to be inserted.
absl::StatusOr<Entries::iterator> BundleWriter::Impl::PlaceOf(absl::string_view key) {
  if (open != entries.end()) {
    return FailedPrecondition("tensor ", open->first, " lacks ", missing,
                              " bytes; append them before another tensor");
  }
  if (key.empty()) return InvalidArgument("a tensor without a name cannot be saved");
  // Names usually arrive in order.
  const bool is_last = entries.empty() || entries.rbegin()->first < key;
  const auto place = is_last ? entries.end() : entries.lower_bound(key);
  if (place != entries.end() && place->first == key) return DuplicateKey(key);
  return place;
}

void BundleWriter::Impl::StartSync() {
  if (durability != Durability::kSynced || data->size() - started < kSyncInterval) return;
  data->StartSync();
  started = data->size();
}

absl::Status BundleWriter::Impl::Add(absl::string_view key, const Tensor& tensor) {
  WEIR_ASSIGN_OR_RETURN(const Entries::iterator place, PlaceOf(key));
  if (!tensor.host_accessible()) return Internal("the tensor ", key, " is not in host memory");
  BundleEntry entry;
  entry.dtype = tensor.dtype();
  entry.shape = tensor.shape();
  WEIR_RETURN_IF_ERROR(Annotate(internal::WriteTensorData(tensor, data.get(), pool, &entry),
                                internal::DescribeBundleKey(key)));
  StartSync();
  entries.emplace_hint(place, std::string(key), std::move(entry));
  return absl::OkStatus();
}

absl::Status BundleWriter::Impl::Begin(absl::string_view name, DataType dtype, const Shape& shape) {
  WEIR_ASSIGN_OR_RETURN(const Entries::iterator place, PlaceOf(name));
  if (!IsPlain(dtype) || IsRef(dtype) || !shape.IsFullyDefined()) {
    return InvalidArgument("tensor ", name, " of type ", DataTypeName(dtype), " and shape ",
                           shape.ToString(), " cannot be saved in pieces");
  }
  const auto elements = static_cast<uint64_t>(shape.num_elements());
  if (elements > static_cast<uint64_t>(INT64_MAX) / ElementSize(dtype))
    return InvalidArgument("tensor ", name, " of shape ", shape.ToString(), " is too large");
  missing = elements * ElementSize(dtype);
  BundleEntry entry;
  entry.dtype = dtype;
  entry.shape = shape;
  entry.offset = static_cast<int64_t>(data->size());
  entry.size = static_cast<int64_t>(missing);
  crc = 0;
  open = entries.emplace_hint(place, std::string(name), std::move(entry));
  if (missing == 0) EndTensor();
  return absl::OkStatus();
}

absl::Status BundleWriter::Impl::Append(absl::string_view bytes) {
  if (open == entries.end() && bytes.empty()) return absl::OkStatus();
  if (open == entries.end() || bytes.size() > missing) {
    return FailedPrecondition(bytes.size(), " bytes are appended, but ",
                              open == entries.end()
                                  ? "no tensor has begun"
                                  : absl::StrCat(open->first, " lacks ", missing));
  }
  crc = ExtendCrc32c(crc, bytes);
  WEIR_RETURN_IF_ERROR(data->Append(bytes));
  StartSync();
  missing -= bytes.size();
  if (missing == 0) EndTensor();
  return absl::OkStatus();
}

void BundleWriter::Impl::EndTensor() {
  open->second.crc = MaskCrc32c(crc);
  open = entries.end();
}

void BundleWriter::Reserve(uint64_t bytes) { impl_->data->Reserve(bytes); }

absl::Status BundleWriter::Add(absl::string_view name, const Tensor& tensor) {
  if (impl_->status.ok()) impl_->status = impl_->Add(name, tensor);
  return impl_->status;
}

absl::Status BundleWriter::Begin(absl::string_view name, DataType dtype, const Shape& shape) {
  if (impl_->status.ok()) impl_->status = impl_->Begin(name, dtype, shape);
  return impl_->status;
}

absl::Status BundleWriter::Append(absl::string_view bytes) {
  if (impl_->status.ok()) impl_->status = impl_->Append(bytes);
  return impl_->status;
}

absl::Status BundleWriter::AddSlice(absl::string_view name, const Shape& full,
                                    const TensorSlice& slice, const Tensor& tensor) {
  if (!impl_->status.ok()) return impl_->status;
  const absl::StatusOr<Shape> shape = slice.ShapeIn(full);
  if (!shape.ok()) return impl_->status = shape.status();
  if (*shape != tensor.shape()) {
    return impl_->status = InvalidArgument("tensor ", name, " of shape ", tensor.shape().ToString(),
                                           ": slice ", slice.ToString(), " of ", full.ToString(),
                                           " has shape ", shape->ToString());
  }
  if (*shape == full) return Add(name, tensor);
  const auto found = impl_->entries.find(name);
  if (found != impl_->entries.end() && found->second.slices.empty())
    return impl_->status = DuplicateKey(name);
  BundleEntry& entry = impl_->entries[std::string(name)];
  if (entry.dtype != DT_INVALID && (entry.dtype != tensor.dtype() || entry.shape != full)) {
    return impl_->status = InvalidArgument(
               "slices of tensor ", name, " disagree: ", DataTypeName(entry.dtype),
               entry.shape.ToString(), " and ", DataTypeName(tensor.dtype()), full.ToString());
  }
  entry.dtype = tensor.dtype();
  entry.shape = full;
  entry.slices.push_back(slice);
  return Add(EncodeSliceKey(name, slice), tensor);
}

absl::Status BundleWriter::Impl::Finish() {
  if (open != entries.end())
    return FailedPrecondition("tensor ", open->first, " lacks ", missing, " bytes");
  if (durability == Durability::kSynced) WEIR_RETURN_IF_ERROR(data->Sync());
  WEIR_RETURN_IF_ERROR(data->Close());
  index_file.emplace(BundleIndexName(prefix));
  WEIR_RETURN_IF_ERROR(WriteIndex(index_file->path(), 1, entries, durability));
  WEIR_RETURN_IF_ERROR(internal::CommitBundle(
      prefix, {{data_file->path(), BundleDataName(prefix, 0, 1)}}, index_file->path(), durability));
  data_file->SetRenamed();
  index_file->SetRenamed();
  lock = nullptr;
  return absl::OkStatus();
}

absl::Status BundleWriter::Finish() {
  if (impl_->finished)
    return FailedPrecondition("the checkpoint ", impl_->prefix, " is already finished");
  if (impl_->status.ok()) impl_->status = impl_->Finish();
  impl_->finished = impl_->status.ok();
  return impl_->status;
}

// ---- Merging.
namespace {

struct Merger {
  Entries entries;
  std::map<std::string, int> shards;   // data file of a part -> shard number in the result
  std::vector<std::string> files;      // the same files, in shard order
  std::vector<std::string> leftovers;  // files of the parts to remove afterwards

  absl::Status AddPart(const std::string& prefix);
  absl::Status AddEntry(const std::string& prefix, int num_shards, absl::string_view key,
                        BundleEntry entry);
};

absl::Status Merger::AddPart(const std::string& prefix) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, Files().Open(BundleIndexName(prefix)));
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<SSTableReader> table,
                        SSTableReader::Open(std::move(file)));
  leftovers.push_back(BundleIndexName(prefix));
  int num_shards = 0;
  return table->ForEach([&](absl::string_view key, absl::string_view value) -> absl::Status {
    if (num_shards == 0) {
      if (!key.empty()) return DataLoss(table->path(), ": no header entry");
      WEIR_ASSIGN_OR_RETURN(const internal::BundleHeader header,
                            internal::ParseBundleHeader(value, table->path()));
      if (header.big_endian)
        return Unimplemented(table->path(), ": merging big-endian checkpoints");
      num_shards = header.num_shards;
      // Renamed by the time of the removal, unless no tensor is stored in it.
      for (int i = 0; i < num_shards; ++i)
        leftovers.push_back(BundleDataName(prefix, i, num_shards));
      return absl::OkStatus();
    }
    WEIR_ASSIGN_OR_RETURN(BundleEntry entry, internal::ParseBundleEntry(value, key, table->path()));
    return AddEntry(prefix, num_shards, key, std::move(entry));
  });
}

absl::Status Merger::AddEntry(const std::string& prefix, int num_shards, absl::string_view key,
                              BundleEntry entry) {
  const auto found = entries.find(key);
  if (found != entries.end()) {
    if (found->second.slices.empty() || entry.slices.empty()) {
      return InvalidArgument("Duplicate tensor keyed by ", internal::DescribeBundleKey(key),
                             " encountered, when merging prefix: ", prefix);
    }
    if (found->second.dtype != entry.dtype || found->second.shape != entry.shape) {
      return InvalidArgument("slices of tensor ", key,
                             " disagree: ", DataTypeName(found->second.dtype),
                             found->second.shape.ToString(), " and ", DataTypeName(entry.dtype),
                             entry.shape.ToString(), " in ", prefix);
    }
    for (TensorSlice& slice : entry.slices) found->second.slices.push_back(std::move(slice));
    return absl::OkStatus();
  }
  const std::string file = BundleDataName(prefix, entry.shard, num_shards);
  const auto [shard, is_new] = shards.emplace(file, static_cast<int>(shards.size()));
  if (is_new) files.push_back(file);
  entry.shard = shard->second;
  entries.emplace(std::string(key), std::move(entry));
  return absl::OkStatus();
}

}  // namespace

absl::Status MergeBundles(absl::Span<const std::string> parts, const std::string& prefix,
                          bool allow_missing, Durability durability) {
  if (prefix.empty()) return InvalidArgument("the path of a checkpoint is empty");
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<WriteLock> lock, WriteLock::Acquire(prefix));
  internal::SweepCheckpoints(DirectoryOf(prefix));
  Merger merger;
  for (const std::string& part : parts) {
    if (allow_missing && !Files().Exists(BundleIndexName(part))) continue;
    WEIR_RETURN_IF_ERROR(merger.AddPart(part));
  }
  if (merger.leftovers.empty()) return NotFound("no checkpoints to merge to ", prefix);
  const int num_data = static_cast<int>(merger.files.size());
  const int num_shards = std::max(num_data, 1);
  TemporaryFile index(BundleIndexName(prefix));
  WEIR_RETURN_IF_ERROR(WriteIndex(index.path(), num_shards, merger.entries, durability));
  std::vector<std::pair<std::string, std::string>> data;
  for (int i = 0; i < num_data; ++i)
    data.emplace_back(merger.files[i], BundleDataName(prefix, i, num_shards));
  WEIR_RETURN_IF_ERROR(internal::CommitBundle(prefix, data, index.path(), durability));
  index.SetRenamed();
  if (std::find(parts.begin(), parts.end(), prefix) != parts.end()) return absl::OkStatus();
  for (const std::string& path : merger.leftovers) Files().Remove(path).IgnoreError();
  return absl::OkStatus();
}

}  // namespace weir
