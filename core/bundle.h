#ifndef WEIR_CORE_BUNDLE_H_
#define WEIR_CORE_BUNDLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "weir/core/file.h"
#include "weir/core/tensor.h"
#include "weir/core/tensor_slice.h"
#include "weir/core/thread_pool.h"

// Checkpoints on disk: named tensors in TensorFlow's formats. A bundle (V2) with prefix P is an
// index, P.index, and one data file or several, P.data-SSSSS-of-NNNNN; one of the older V1 is a
// single file, or one a shard. docs/checkpoint_format.md has the bytes.
//
// A bundle comes into being in one step, when its index is renamed to its final name after all data
// is on disk. One that is written over an older one of the same prefix leaves the older one
// readable (by CheckpointReader) until then: see bundle_commit.h.
namespace weir {

// Writes a bundle of one data file. For one thread at a time. A writer that is destroyed before
// Finish removes what it wrote. After an error every call returns it.
class BundleWriter {
 public:
  // Makes the directory of `prefix` if only that is missing; NOT_FOUND with the path if its parent
  // is missing too, INVALID_ARGUMENT for an empty prefix.
  // With a pool, large tensors' checksums are computed while their bytes are handed to the system.
  static absl::StatusOr<std::unique_ptr<BundleWriter>> Create(
      const std::string& prefix, Durability durability = Durability::kSynced,
      ThreadPool* pool = nullptr);
  ~BundleWriter();
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  // A hint, before the first tensor, that there will be so many bytes of them: without it large
  // bundles take half as long again.
  void Reserve(uint64_t bytes);
  // Tensors lie in the data file in the order they are added; TensorFlow adds them sorted by name.
  // The tensor is in host memory and of any plain type, or of strings. INVALID_ARGUMENT for an
  // empty name, a name that came before, or resources; UNIMPLEMENTED for variants.
  absl::Status Add(absl::string_view name, const Tensor& tensor);
  // A part of a tensor of shape `full`. Parts come in any order, and of different bundles if these
  // are merged.
  absl::Status AddSlice(absl::string_view name, const Shape& full, const TensorSlice& slice,
                        const Tensor& tensor);
  // Makes the bundle durable (unless it is unsynced) and visible. The last call.
  absl::Status Finish();

 private:
  struct Impl;
  explicit BundleWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Joins bundles (the shards of one save) to one at `prefix`: their data files are renamed to be its
// data files, in the order of `parts`, and the parts are gone. INVALID_ARGUMENT for a tensor that
// is whole in two of them. NOT_FOUND for a part that is missing, unless `allow_missing` and there
// is at least one.
absl::Status MergeBundles(absl::Span<const std::string> parts, const std::string& prefix,
                          bool allow_missing = false, Durability durability = Durability::kSynced);

// What a checkpoint of V1 holds under a name: the part `slice` of a tensor of shape `shape`.
struct SavedSlice {
  std::string name;
  Shape shape;
  TensorSlice slice;
  Tensor tensor;
};

// Writes a checkpoint of V1, whose file appears, complete and (by default) durable, in one step.
// Slices come in any order, and of other shards' files too. INVALID_ARGUMENT for an empty path, a
// slice that comes twice or does not fit, slices that disagree about dtype or shape, and one of
// more than 2 GiB; UNIMPLEMENTED for dtypes that the format does not have (bfloat16, the newer
// integers).
absl::Status WriteCheckpointV1(const std::string& path, const std::vector<SavedSlice>& slices,
                               Durability durability = Durability::kSynced);

// What a checkpoint says of a tensor without reading its elements.
struct CheckpointTensor {
  std::string name;
  DataType dtype = DT_INVALID;
  Shape shape;
  std::vector<TensorSlice> slices;  // the parts it is stored in; empty if it is stored as a whole
};

// Reads a checkpoint of either format. Every element read has been checked against its checksum.
// Safe to use from many threads. Errors:
//   NOT_FOUND         no such checkpoint; "Key <name> not found in checkpoint"; a data file is
//   missing DATA_LOSS         damaged or truncated: file, tensor, offset, and the stored and
//   computed checksums INVALID_ARGUMENT  a slice that does not fit the tensor RESOURCE_EXHAUSTED
class CheckpointReader {
 public:
  virtual ~CheckpointReader() = default;
  // `prefix` as the checkpoint was saved with; of V1, the file, or a pattern of its shards
  // ("P-*-of-00002").
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(const std::string& prefix);

  // Sorted by name.
  virtual absl::StatusOr<std::vector<CheckpointTensor>> List() = 0;
  virtual absl::StatusOr<CheckpointTensor> Find(absl::string_view name) = 0;
  virtual absl::StatusOr<Tensor> Read(absl::string_view name) = 0;
  // Whether Read would succeed: reads and checks every byte, and keeps none where it can.
  virtual absl::Status Check(absl::string_view name);
  // Reads into memory at hand: `out` lies on the host, is nobody else's, and has the tensor's dtype
  // and shape (else INVALID_ARGUMENT). After an error its elements may be anything.
  virtual absl::Status ReadInto(absl::string_view name, Tensor* out);
  // The part `slice` of the tensor, whatever parts it is stored in.
  virtual absl::StatusOr<Tensor> ReadSlice(absl::string_view name, const TensorSlice& slice) = 0;

  // For thousands of tensors, which are looked up and read fastest in the order of names.
  // Calls found(i, dtype, shape) with what Find says of names[i], in order, until one is not there
  // or one of the calls returns an error.
  using Found = absl::FunctionRef<absl::Status(size_t i, DataType dtype, const Shape& shape)>;
  virtual absl::Status FindMany(absl::Span<const absl::string_view> names, Found found);
  // Calls take(i, bytes) once for each of `names`: with the tensor's elements as they lie in
  // memory, checked and good during the call, or with the error. On several threads, in any order.
  // Of small tensors those that lie side by side in a file are read in one go; each large one is in
  // memory as a whole. INVALID_ARGUMENT for tensors of strings.
  using Take = absl::FunctionRef<void(size_t i, const absl::StatusOr<absl::string_view>& bytes)>;
  virtual void ReadMany(absl::Span<const absl::string_view> names, ThreadPool& pool, Take take);
};

// The shape of what ReadFromCheckpoint reads, which it gives without reading; the same errors, but
// for those of damaged elements.
absl::StatusOr<Shape> ShapeInCheckpoint(CheckpointReader& reader, const std::string& name,
                                        const std::string& shape_and_slice, DataType dtype);

// The same, of a tensor that is known to have this dtype and shape.
absl::StatusOr<Shape> ShapeInCheckpoint(absl::string_view name, DataType stored_dtype,
                                        const Shape& stored, absl::string_view shape_and_slice,
                                        DataType dtype);

// What RestoreV2 reads: tensor `name`, which must have this dtype, or the part of it that
// `shape_and_slice` says
// ("7 2 3,2:0,2"; empty: all). INVALID_ARGUMENT, naming tensor and both sides, if the checkpoint
// has another dtype or shape.
absl::StatusOr<Tensor> ReadFromCheckpoint(CheckpointReader& reader, const std::string& name,
                                          const std::string& shape_and_slice, DataType dtype);

// Something wrong with a bundle: in bytes [offset, offset + size) of a file, or with the tensor
// `name` (or both).
struct BundleProblem {
  std::string file;
  uint64_t offset = 0, size = 0;
  std::string name;
  std::string message;
};

struct BundleReport {
  int64_t tensors = 0;      // names; parts of one tensor count once
  int64_t index_bytes = 0;  // that were read and found sound, in all
  int64_t data_bytes = 0;
  std::vector<BundleProblem> problems;
  std::vector<CheckpointTensor> lost;  // sorted: of what the index names, what cannot be read
  bool index_is_sound = true;          // else names may be lost too, nobody knows which
};

// Reads a whole bundle (V2) and accounts for every byte of its files: each belongs to a block of
// the index or to one tensor, and its checksum is right. Goes on where it can after damage, so that
// all of it is named. An error only where nothing can be read: NOT_FOUND.
absl::StatusOr<BundleReport> VerifyBundle(const std::string& prefix);

// What can still be read of a damaged bundle (V2). For one thread at a time.
class SalvagedBundle {
 public:
  // Reads all of it, as VerifyBundle does.
  static absl::StatusOr<std::unique_ptr<SalvagedBundle>> Open(const std::string& prefix);
  virtual ~SalvagedBundle() = default;
  virtual const BundleReport& report() const = 0;
  // Names of tensors all of whose elements were sound, sorted.
  virtual std::vector<std::string> names() const = 0;
  // What can be made out in damaged parts of the index, and whose elements agree with the checksum
  // that stands there, sorted. No checksum covers a name: who uses one knows it from elsewhere.
  virtual std::vector<CheckpointTensor> doubtful() const = 0;
  // One of all these, read and checked once more.
  virtual absl::StatusOr<Tensor> Read(const std::string& name) = 0;
};

}  // namespace weir

#endif  // WEIR_CORE_BUNDLE_H_
