#ifndef WEIR_CORE_IO_BUNDLE_H_
#define WEIR_CORE_IO_BUNDLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "weir/core/io/file.h"
#include "weir/core/io/tensor_slice.h"
#include "weir/core/runtime/thread_pool.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/tensor.h"

// Checkpoints: files of named tensors in TensorFlow's formats. A bundle (format V2) with prefix P
// consists of an index file, P.index, and one or more data files, P.data-SSSSS-of-NNNNN. A
// checkpoint in the older format V1 is a single file, or one file per shard.
// docs/checkpoint_format.md specifies the bytes.
//
// A bundle appears atomically: its index is renamed to its final name after all data is on disk.
// While a bundle overwrites an older one of the same prefix, CheckpointReader can still read the
// older one: see bundle_commit.h.
namespace WEIR_API weir {

// Writes a bundle with one data file. Not thread-safe. A writer destroyed before Finish removes the
// files it wrote. After an error, every call returns that error.
class BundleWriter {
 public:
  // Creates the directory of `prefix` if its parent exists. Returns NOT_FOUND with the path if the
  // parent is missing too, INVALID_ARGUMENT for an empty prefix. With a pool, the checksums of
  // large tensors are computed while their bytes are written.
  static absl::StatusOr<std::unique_ptr<BundleWriter>> Create(
      const std::string& prefix, Durability durability = Durability::kSynced,
      ThreadPool* pool = nullptr);
  ~BundleWriter();
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  // Hints, before the first tensor, at the total size of the tensors in bytes. Writing a large
  // bundle takes 1.5 times as long without the hint.
  void Reserve(uint64_t bytes);
  // Adds a tensor. The data file stores tensors in the order in which they are added; TensorFlow
  // adds them sorted by name. The tensor is in host memory; its dtype is any plain type or string.
  // Returns INVALID_ARGUMENT for an empty or duplicate name and for resources, UNIMPLEMENTED for
  // variants.
  absl::Status Add(absl::string_view name, const Tensor& tensor);
  // Adds a slice of a tensor of shape `full`. Slices may be added in any order, and may be spread
  // over several bundles that are merged later.
  absl::Status AddSlice(absl::string_view name, const Shape& full, const TensorSlice& slice,
                        const Tensor& tensor);
  // Adds a tensor of plain type in pieces, without holding all of it: Begin, and then Append until
  // all of its elements are there, in row-major order and in their in-memory representation. A
  // piece may end within an element. Until then every other call returns FAILED_PRECONDITION, as
  // does Append without Begin and with more bytes than the tensor has.
  absl::Status Begin(absl::string_view name, DataType dtype, const Shape& shape);
  absl::Status Append(absl::string_view bytes);
  // Commits the bundle: makes it durable (unless Durability is kUnsynced) and visible. No other
  // call may follow.
  absl::Status Finish();

 private:
  struct Impl;
  explicit BundleWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Merges bundles (the shards of one save) into one bundle at `prefix`. The data files of `parts`
// are renamed to be its data files, in the order of `parts`, and the parts are removed. Returns
// INVALID_ARGUMENT if two parts contain the same tensor as a whole; NOT_FOUND if a part is missing,
// unless `allow_missing` is set and at least one part exists.
absl::Status MergeBundles(absl::Span<const std::string> parts, const std::string& prefix,
                          bool allow_missing = false, Durability durability = Durability::kSynced);

// An entry of a V1 checkpoint: the slice `slice` of a tensor of shape `shape`.
struct SavedSlice {
  std::string name;   // the tensor's
  Shape shape;        // of the whole tensor
  TensorSlice slice;  // the part of it that `tensor` holds
  Tensor tensor;      // in host memory, with the shape of the slice
};

// Writes a V1 checkpoint. The file appears atomically and is durable by default. Slices may be in
// any order, and other slices of the same tensors may be in the files of other shards. Returns
// INVALID_ARGUMENT for an empty path, a duplicate slice, a slice that does not fit its tensor,
// slices that disagree about dtype or shape, and a slice larger than 2 GiB; UNIMPLEMENTED for
// dtypes that the format lacks (bfloat16, the newer integers).
absl::Status WriteCheckpointV1(const std::string& path, const std::vector<SavedSlice>& slices,
                               Durability durability = Durability::kSynced);

// The metadata that a checkpoint stores for a tensor.
struct CheckpointTensor {
  std::string name;                 // its key in the checkpoint
  DataType dtype = DT_INVALID;      // of the elements; never a reference type
  Shape shape;                      // of the whole tensor
  std::vector<TensorSlice> slices;  // the slices it is stored in; empty if it is stored whole
};

// Same, for whole tensors that do not fit into memory together. Calls read(i) once for each of
// `tensors`, in the order of the file, for a tensor of that dtype and shape. Holds one tensor at a
// time, with its message and its block: about four times its size.
absl::Status WriteCheckpointV1(const std::string& path,
                               const std::vector<CheckpointTensor>& tensors,
                               absl::FunctionRef<absl::StatusOr<Tensor>(size_t i)> read,
                               Durability durability = Durability::kSynced);

// Reads the elements of one tensor in order, without holding all of them. Not thread-safe. The
// reader that opened it outlives it.
class TensorStream {
 public:
  virtual ~TensorStream() = default;
  // Reads the next `size` bytes of the elements, in their in-memory representation: a multiple of
  // the element's size, and at most what remains. The call that reads the last byte verifies the
  // checksum of the tensor: what earlier calls returned is unverified until that call returns OK.
  virtual absl::Status Read(size_t size, char* out) = 0;
};

// Reads a checkpoint of either format. Verifies the checksum of every element it reads, except in
// ReadSliceUnverified.
// Thread-safe. Errors:
//   NOT_FOUND           no such checkpoint; "Key <name> not found in checkpoint"; no data file
//   DATA_LOSS           damaged or truncated: file, tensor, offset, stored and computed checksums
//   INVALID_ARGUMENT    a slice that does not fit the tensor
//   RESOURCE_EXHAUSTED  out of memory
class CheckpointReader {
 public:
  virtual ~CheckpointReader() = default;
  // Opens the checkpoint saved with `prefix`. For V1, `prefix` is the file, or a pattern that
  // matches its shards ("P-*-of-00002").
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(const std::string& prefix);

  // Returns all tensors, sorted by name.
  virtual absl::StatusOr<std::vector<CheckpointTensor>> List() = 0;
  // Returns the metadata of one tensor, or all of its elements in host memory.
  virtual absl::StatusOr<CheckpointTensor> Find(absl::string_view name) = 0;
  virtual absl::StatusOr<Tensor> Read(absl::string_view name) = 0;
  // Checks whether Read would succeed: reads and verifies every byte, without keeping the data
  // where possible.
  virtual absl::Status Check(absl::string_view name);
  // Reads into an existing tensor. `out` is in host memory, has an unshared buffer, and has the
  // tensor's dtype and shape (otherwise INVALID_ARGUMENT). After an error the contents of `out` are
  // unspecified.
  virtual absl::Status ReadInto(absl::string_view name, Tensor* out);
  // Reads the slice `slice` of the tensor, regardless of the slices in which it is stored.
  virtual absl::StatusOr<Tensor> ReadSlice(absl::string_view name, const TensorSlice& slice) = 0;
  // Same, but where the format allows it (V2, plain types), reads only the bytes of the slice, and
  // therefore does not verify the checksum, which covers the whole tensor.
  virtual absl::StatusOr<Tensor> ReadSliceUnverified(absl::string_view name,
                                                     const TensorSlice& slice) {
    return ReadSlice(name, slice);
  }
  // Opens a tensor of plain type for reading in pieces. INVALID_ARGUMENT for strings. The stream of
  // a tensor in a V2 checkpoint holds a few megabytes; if the tensor is stored in parts, opening it
  // verifies their checksums, so all bytes are read twice. Other streams hold the whole tensor.
  virtual absl::StatusOr<std::unique_ptr<TensorStream>> Stream(absl::string_view name);

  // For thousands of tensors; lookups and reads are fastest in name order.
  //
  // Calls found(i, dtype, shape) with the result of Find for names[i], in order. Stops at the first
  // name that is missing and at the first call that returns an error.
  using Found = absl::FunctionRef<absl::Status(size_t i, DataType dtype, const Shape& shape)>;
  virtual absl::Status FindMany(absl::Span<const absl::string_view> names, Found found);
  // Calls take(i, bytes) once for each of `names`, either with the verified elements of the tensor
  // in their in-memory representation or with the error. `bytes` is valid only during the call.
  // Calls happen on several threads, in any order. Small tensors that are adjacent in a file are
  // read together; each large tensor is in memory as a whole. Tensors of strings are
  // INVALID_ARGUMENT.
  using Take = absl::FunctionRef<void(size_t i, const absl::StatusOr<absl::string_view>& bytes)>;
  virtual void ReadMany(absl::Span<const absl::string_view> names, ThreadPool& pool, Take take);
};

// Returns the shape that ReadFromCheckpoint would read, without reading the tensor. Same errors as
// ReadFromCheckpoint except those for damaged elements.
absl::StatusOr<Shape> ShapeInCheckpoint(CheckpointReader& reader, const std::string& name,
                                        const std::string& shape_and_slice, DataType dtype);

// Same as above, for a tensor of known dtype and shape.
absl::StatusOr<Shape> ShapeInCheckpoint(absl::string_view name, DataType stored_dtype,
                                        const Shape& stored, absl::string_view shape_and_slice,
                                        DataType dtype);

// Implements RestoreV2: reads tensor `name`, which must have this dtype, or the slice of it given
// by `shape_and_slice` ("7 2 3,2:0,2"; empty: the whole tensor). Returns INVALID_ARGUMENT, with the
// tensor's name and both sides, if the checkpoint has another dtype or shape.
absl::StatusOr<Tensor> ReadFromCheckpoint(CheckpointReader& reader, const std::string& name,
                                          const std::string& shape_and_slice, DataType dtype);

// A defect of a bundle: in bytes [offset, offset + size) of a file, in the tensor `name`, or both.
struct BundleProblem {
  std::string file;               // path; empty if no file is concerned
  uint64_t offset = 0, size = 0;  // in bytes
  std::string name;               // of the tensor; empty if no tensor is concerned
  std::string message;            // what is wrong, for people
};

// The result of VerifyBundle.
struct BundleReport {
  int64_t tensors = 0;                  // number of names; the slices of one tensor count once
  int64_t index_bytes = 0;              // total bytes read and verified; V1 has none
  int64_t data_bytes = 0;               // total bytes of the data files that were read and verified
  std::vector<BundleProblem> problems;  // all defects, in the order in which they were found
  std::vector<CheckpointTensor> lost;   // sorted: the tensors in the index that cannot be read
  bool index_is_sound = true;           // if false, an unknown set of names may be lost too
};

// Reads a whole bundle (V2) and accounts for every byte of its files: each byte belongs to a block
// of the index or to one tensor, and its checksum is correct. Continues after damage where
// possible, in order to report all of it. Does the same for a V1 checkpoint (a file, or a pattern
// of its shards), whose blocks hold list and tensors. Returns an error, NOT_FOUND, only if nothing
// can be read.
absl::StatusOr<BundleReport> VerifyBundle(const std::string& prefix);

// Checks, without reading elements, that a bundle (V2) is complete: every block of the index is
// sound, and the data files have all the bytes that it names. Returns NOT_FOUND for a missing file,
// DATA_LOSS for a damaged index or a truncated data file.
absl::Status CheckBundleIsComplete(const std::string& prefix);

// The readable part of a damaged bundle (V2). Not thread-safe.
class SalvagedBundle {
 public:
  // Reads the whole bundle, like VerifyBundle.
  static absl::StatusOr<std::unique_ptr<SalvagedBundle>> Open(const std::string& prefix);
  virtual ~SalvagedBundle() = default;
  virtual const BundleReport& report() const = 0;
  // Names of the tensors whose elements are all intact, sorted.
  virtual std::vector<std::string> names() const = 0;
  // Entries recovered from damaged parts of the index whose elements match the stored checksum,
  // sorted. No checksum covers the names, so the caller must know them from elsewhere.
  virtual std::vector<CheckpointTensor> doubtful() const = 0;
  // Reads one of the tensors listed by names() or doubtful(), and verifies it again.
  virtual absl::StatusOr<Tensor> Read(const std::string& name) = 0;
};

}  // namespace weir

#endif  // WEIR_CORE_IO_BUNDLE_H_
