#ifndef WEIR_KERNELS_DATA_ELEMENT_FILES_H_
#define WEIR_KERNELS_DATA_ELEMENT_FILES_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/kernels/data/byte_stream.h"
#include "weir/kernels/data/captured_function.h"
#include "weir/kernels/data/dataset.h"

// Datasets on disk, in TensorFlow's format of tf.data snapshots:
//
//   P/snapshot.metadata                      describes the elements and names the run
//   P/RUN/00000000.shard/00000000.snapshot   the elements of shard 0, and so on
//
// An element file is a TFRecord file in which each component of an element is a record, a
// serialized TensorProto. Source: tensorflow/core/data/snapshot_utils.cc.
namespace weir {

// What the metadata file says.
struct SavedDataset {
  std::string run_id;
  int64_t created_us = 0;  // microseconds since 1970
  DataTypes types;
  int64_t num_elements = 0;
  bool finalized = false;  // whether all elements have been written
};
// Reads the metadata of the dataset in a folder. NOT_FOUND if there is none, DATA_LOSS for a
// damaged file, UNIMPLEMENTED for an unknown version of the format.
absl::StatusOr<SavedDataset> ReadSavedDataset(const std::string& path);
// Microseconds since 1970.
int64_t NowUs();
// Replaces the metadata. The file is durable then.
absl::Status WriteSavedDataset(const std::string& path, const SavedDataset& saved);

// Returns a compression that element files have: "", "GZIP" or "SNAPPY", which AUTO means.
// INVALID_ARGUMENT for others.
absl::StatusOr<std::string> ElementCompression(absl::string_view name);

// Reads the elements of a shard's folder, or of one file. The types are those of the components.
DatasetPtr ShardDataset(const std::string& folder, const std::string& compression,
                        const DataTypes& types, int64_t start_index = 0);
DatasetPtr ElementFileDataset(const std::string& path, const std::string& compression,
                              const DataTypes& types);
// The elements of a dataset of datasets, one after the other.
DatasetPtr FlattenedDataset(DatasetPtr datasets);
// Returns the dataset whose elements are the datasets of a run's shards, in the order of their
// numbers.
absl::StatusOr<DatasetPtr> ShardDatasets(const std::string& run_folder,
                                         const std::string& compression, const DataTypes& types);

// Writes a new run of a dataset, which becomes the dataset of the folder when it is finished. A run
// that is not finished stays beside it, unused. Not thread-safe.
class ElementWriter {
 public:
  // Creates the folder of the run. With `announce`, the metadata says at once that the run is being
  // written.
  static absl::StatusOr<std::unique_ptr<ElementWriter>> Create(const std::string& path,
                                                               const std::string& compression,
                                                               const DataTypes& types,
                                                               bool announce);
  // Appends an element to a shard, or fails with the error that there is in its place.
  absl::Status Write(const absl::StatusOr<int64_t>& shard, const Tensors& element);
  // Completes the files and replaces the metadata. No other call may follow. Returns the error of a
  // Write that failed: a run without an element never becomes the dataset.
  absl::Status Finish();

 private:
  ElementWriter(std::string path, std::string compression, SavedDataset saved)
      : path_(std::move(path)), compression_(std::move(compression)), saved_(std::move(saved)) {}
  absl::Status Append(int64_t shard, const Tensors& element);
  std::string RunFolder() const { return JoinPath(path_, saved_.run_id); }

  const std::string path_, compression_;
  SavedDataset saved_;
  std::map<int64_t, std::unique_ptr<ByteSink>> shards_;
  absl::Status failed_;
};

// Calls a shard_func, which returns the number of the element's shard; without one there is only
// shard 0.
absl::StatusOr<int64_t> ShardOf(const std::optional<CapturedFunction>& shard_func,
                                const DatasetContext& x, const Tensors& element);
// Calls a reader_func, which makes a dataset of the elements from the dataset of the shards.
absl::StatusOr<DatasetPtr> ElementsOf(const CapturedFunction& reader_func, const DatasetContext& x,
                                      DatasetPtr shards);

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_ELEMENT_FILES_H_
