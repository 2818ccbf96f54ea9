#ifndef WEIR_CORE_BUNDLE_READER_H_
#define WEIR_CORE_BUNDLE_READER_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/bundle.h"
#include "weir/core/bundle_format.h"
#include "weir/core/table.h"

// The two kinds of CheckpointReader, and what they share.
namespace weir::internal {

// Puts a tensor (or the box `want` of it) together from the parts that overlap it. `read` gives the
// elements of a part. DATA_LOSS, with `what`, if parts overlap each other or do not cover it.
absl::StatusOr<Tensor> AssembleSlices(
    DataType dtype, const Shape& full, const Box& want, const std::vector<TensorSlice>& parts,
    absl::FunctionRef<absl::StatusOr<Tensor>(const TensorSlice&)> read, absl::string_view what);

// An index read as a whole, for who looks up many keys.
class BundleIndex {
 public:
  static absl::StatusOr<BundleIndex> Read(TableReader& table);
  // Null if there is no such key. `*hint` is where to look first: 0, or as the search before left
  // it, so that who asks in the order of keys need not search.
  const BundleEntry* Find(absl::string_view key, size_t* hint) const;

 private:
  absl::string_view Key(size_t i) const {
    return absl::string_view(keys_).substr(starts_[i], starts_[i + 1] - starts_[i]);
  }

  std::string keys_;  // one after another, ascending
  std::vector<size_t> starts_ = {0};
  std::vector<BundleEntry> entries_;
};

// V2. Looks up keys under a lock, and reads data without. Reads the bundle that was there when it
// was opened, even if another one has taken its place since, or fails with ABORTED. Who looks up
// many names has the whole index read at once.
class BundleReader : public CheckpointReader {
 public:
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(const std::string& prefix);
  absl::StatusOr<std::vector<CheckpointTensor>> List() override;
  absl::StatusOr<CheckpointTensor> Find(absl::string_view name) override;
  absl::StatusOr<Tensor> Read(absl::string_view name) override;
  absl::Status Check(absl::string_view name) override;
  absl::Status ReadInto(absl::string_view name, Tensor* out) override;
  absl::StatusOr<Tensor> ReadSlice(absl::string_view name, const TensorSlice& slice) override;
  absl::Status FindMany(absl::Span<const absl::string_view> names, Found found) override;
  void ReadMany(absl::Span<const absl::string_view> names, ThreadPool& pool, Take take) override;

 private:
  BundleReader(const std::string& prefix, std::unique_ptr<TableReader> index)
      : prefix_(prefix), index_(std::move(index)) {}
  static absl::StatusOr<std::unique_ptr<BundleReader>> OpenOnce(const std::string& prefix);
  bool IsCurrent() const;
  absl::StatusOr<std::optional<BundleEntry>> Lookup(absl::string_view key);
  // The whole index, if `lookups` more make that worth while and it is sound; else null.
  const BundleIndex* WholeIndex(size_t lookups);
  const BundleIndex* WholeIndexLocked(size_t lookups);
  absl::StatusOr<BundleEntry> Entry(absl::string_view name);
  absl::StatusOr<const ReadableFile*> DataFile(int shard);
  // The elements stored under a key of its own: what `read` (of ReadTensorData and its like) says
  // of the data file.
  absl::Status Stored(const BundleEntry& entry,
                      absl::FunctionRef<absl::Status(const ReadableFile&)> read);
  absl::StatusOr<Tensor> ReadStored(absl::string_view key, const BundleEntry& entry);
  absl::StatusOr<Tensor> ReadParts(absl::string_view name, const BundleEntry& entry,
                                   const Box& want);
  // What ReadMany reads in one go: bytes [offset, end) of a data file, and the tensors there.
  struct Neighbor {
    size_t number;  // of the name
    absl::string_view name;
    const BundleEntry* entry;
  };
  struct Run {
    int shard;
    int64_t offset, end;
    absl::Span<const Neighbor> tensors;
  };
  bool IsSmall(const BundleEntry& entry) const;
  static std::vector<Run> FindRuns(absl::Span<const Neighbor> tensors);
  void ReadRun(const Run& run, Take take);

  const std::string prefix_;
  std::string data_suffix_;
  BundleHeader header_;
  std::mutex mutex_;  // guards what is below
  const std::unique_ptr<TableReader> index_;
  std::map<int, std::unique_ptr<ReadableFile>> data_;
  size_t lookups_ = 0;
  std::unique_ptr<const BundleIndex> whole_;  // once it is there, it stays
  size_t hint_ = 0;                           // for it
};

// V1: see checkpoint_v1.cc.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpointV1(const std::string& pattern);

absl::Status KeyNotFound(absl::string_view name, absl::string_view prefix);

}  // namespace weir::internal

#endif  // WEIR_CORE_BUNDLE_READER_H_
