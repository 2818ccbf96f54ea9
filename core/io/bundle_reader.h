#ifndef WEIR_CORE_IO_BUNDLE_READER_H_
#define WEIR_CORE_IO_BUNDLE_READER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/bundle_format.h"
#include "weir/core/io/sstable.h"
#include "weir/core/tensor/mutex.h"

// The two implementations of CheckpointReader, and their shared code.
namespace weir::internal {

// Assembles a tensor (or the box `want` of it) from the slices that overlap it. `read` returns the
// elements of a slice. Returns DATA_LOSS, with `what`, if slices overlap each other or do not cover
// the tensor.
absl::StatusOr<Tensor> AssembleSlices(
    DataType dtype, const Shape& full, const Box& want, const std::vector<TensorSlice>& parts,
    absl::FunctionRef<absl::StatusOr<Tensor>(const TensorSlice&)> read, absl::string_view what);
// Same, for a `read` that returns only the elements of the box `part` of a slice.
absl::StatusOr<Tensor> AssembleBoxes(
    DataType dtype, const Shape& full, const Box& want, const std::vector<TensorSlice>& parts,
    absl::FunctionRef<absl::StatusOr<Tensor>(const TensorSlice&, const Box& part)> read,
    absl::string_view what);

// A fully decoded index, for callers that look up many keys.
class BundleIndex {
 public:
  static absl::StatusOr<BundleIndex> Read(SSTableReader& table);
  // Returns null if the key does not exist. `*hint` is the position where the search starts: 0, or
  // the value left by the previous search, so that lookups in key order need no binary search.
  const BundleEntry* Find(absl::string_view key, size_t* hint) const;

 private:
  absl::string_view Key(size_t i) const {
    return absl::string_view(keys_).substr(starts_[i], starts_[i + 1] - starts_[i]);
  }

  std::string keys_;  // concatenated, in ascending order
  std::vector<size_t> starts_ = {0};
  std::vector<BundleEntry> entries_;
};

// The reader of V2 checkpoints. It looks up keys under a lock, and reads data without it. It reads
// the bundle that existed when it was opened, even if that bundle has been replaced since, or fails
// with ABORTED. For callers that look up many names, it decodes the whole index at once.
class BundleReader : public CheckpointReader {
 public:
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(const std::string& prefix);
  absl::StatusOr<std::vector<CheckpointTensor>> List() override;
  absl::StatusOr<CheckpointTensor> Find(absl::string_view name) override;
  absl::StatusOr<Tensor> Read(absl::string_view name) override;
  absl::Status Check(absl::string_view name) override;
  absl::Status ReadInto(absl::string_view name, Tensor* out) override;
  absl::StatusOr<Tensor> ReadSlice(absl::string_view name, const TensorSlice& slice) override;
  absl::StatusOr<Tensor> ReadSliceUnverified(absl::string_view name,
                                             const TensorSlice& slice) override;
  absl::StatusOr<std::unique_ptr<TensorStream>> Stream(absl::string_view name) override;
  absl::Status FindMany(absl::Span<const absl::string_view> names, Found found) override;
  void ReadMany(absl::Span<const absl::string_view> names, ThreadPool& pool, Take take) override;

 private:
  BundleReader(const std::string& prefix, std::unique_ptr<SSTableReader> index)
      : prefix_(prefix), index_(std::move(index)) {}
  static absl::StatusOr<std::unique_ptr<BundleReader>> OpenOnce(const std::string& prefix);
  bool IsCurrent() const;
  absl::StatusOr<std::optional<BundleEntry>> Lookup(absl::string_view key);
  // Returns the decoded index if `lookups` more lookups justify decoding it and it is undamaged;
  // otherwise null.
  const BundleIndex* FullIndex(size_t lookups);
  const BundleIndex* FullIndexLocked(size_t lookups) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<BundleEntry> Entry(absl::string_view name);
  absl::StatusOr<const ReadableFile*> DataFile(int shard);
  // Applies `read` (ReadTensorData or a variant of it) to the data file of an entry that has a key
  // of its own.
  absl::Status WithDataFile(const BundleEntry& entry,
                            absl::FunctionRef<absl::Status(const ReadableFile&)> read);
  absl::StatusOr<Tensor> ReadStored(absl::string_view key, const BundleEntry& entry);
  absl::StatusOr<Tensor> ReadParts(absl::string_view name, const BundleEntry& entry,
                                   const Box& want);
  // Returns the entry of a slice of the partitioned tensor `name`, whose entry is `entry`.
  absl::StatusOr<BundleEntry> PartEntry(absl::string_view name, const BundleEntry& entry,
                                        const TensorSlice& slice);
  absl::StatusOr<Tensor> ReadBoxUnverified(absl::string_view key, const BundleEntry& entry,
                                           const Box& box);
  absl::Status CheckStored(absl::string_view key, const BundleEntry& entry);
  // One coalesced read of ReadMany: bytes [offset, end) of a data file, and the tensors stored
  // there.
  struct SmallTensor {
    size_t number;  // position in `names`
    absl::string_view name;
    const BundleEntry* entry;
  };
  struct CoalescedRead {
    int shard;
    int64_t offset, end;
    absl::Span<const SmallTensor> tensors;
  };
  bool IsSmall(const BundleEntry& entry) const;
  static std::vector<CoalescedRead> CoalesceReads(absl::Span<const SmallTensor> tensors);
  void ReadCoalesced(const CoalescedRead& run, Take take);

  const std::string prefix_;
  std::string data_suffix_;
  BundleHeader header_;
  Mutex mutex_;
  const std::unique_ptr<SSTableReader> index_;  // reading its blocks requires the lock
  std::map<int, std::unique_ptr<ReadableFile>> data_ ABSL_GUARDED_BY(mutex_);
  size_t lookups_ ABSL_GUARDED_BY(mutex_) = 0;
  // Never changes once set.
  std::unique_ptr<const BundleIndex> full_index_ ABSL_GUARDED_BY(mutex_);
  size_t hint_ ABSL_GUARDED_BY(mutex_) = 0;  // position for the next lookup in full_index_
};

// V1, implemented in checkpoint_v1.cc.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpointV1(const std::string& pattern);
// VerifyBundle for V1.
absl::StatusOr<BundleReport> VerifyCheckpointV1(const std::string& pattern);

absl::Status KeyNotFound(absl::string_view name, absl::string_view prefix);

}  // namespace weir::internal

#endif  // WEIR_CORE_IO_BUNDLE_READER_H_
