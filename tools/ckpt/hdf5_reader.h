#ifndef WEIR_TOOLS_CKPT_HDF5_READER_H_
#define WEIR_TOOLS_CKPT_HDF5_READER_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/core/io/bundle.h"
#include "weir/tools/ckpt/hdf5_types.h"
#include "weir/tools/ckpt/output.h"

namespace weir::tools {

// A part of a file.
struct FilePart {
  const ReadableFile& file;
  uint64_t offset = 0, size = 0;  // in bytes
};

// What an HDF5 file has: datasets, named by their paths without the first slash, in the library's
// order; and those attributes that are texts or lists of texts, of the root ("keras_version") and
// of other objects ("layers/dense/vars@name").
struct Hdf5Contents {
  std::vector<CheckpointTensor> tensors;
  Metadata metadata;
};

// Reads an HDF5 file by HDF5's library. The library does not withstand every damaged file, so this
// runs in a process of its own (hdf5_process.h). Not thread-safe.
class Hdf5Reader {
 public:
  // Opens the file and checks what can be checked without checksums: that it is complete, that
  // nothing follows it, that each dataset has the storage that its shape needs, and that no two
  // share some. The part's file outlives the reader.
  //
  //   DATA_LOSS      damaged, truncated, or no HDF5 file
  //   UNIMPLEMENTED  datasets of other types (strings), in other files, virtual, with chunks above
  //                  64 MB, or compressed by other filters than those of the library; links to
  //                  other places
  static absl::StatusOr<std::unique_ptr<Hdf5Reader>> Open(const FilePart& part);

  const Hdf5Contents& contents() const { return contents_; }
  // Reads `count` elements from element `first`, in row-major order, of a dataset.
  absl::Status Read(size_t tensor, uint64_t first, uint64_t count, char* out);

 private:
  // A range of the file, with the dataset whose elements it has.
  struct Storage {
    uint64_t begin = 0, end = 0;
    haddr_t object = 0;  // the dataset's header
    std::string name;
  };

  explicit Hdf5Reader(const FilePart& part) : part_(part) {}
  absl::Status Scan();
  absl::Status AddLink(const std::string& name, const H5L_info_t& link);
  absl::Status AddDataset(const std::string& name, haddr_t object);
  absl::Status CheckStorage(hid_t dataset, const CheckpointTensor& tensor, haddr_t object);
  absl::Status CheckOverlaps();

  const FilePart part_;
  uint64_t end_ = 0;  // of the HDF5 file, as it says
  Hdf5Handle file_;
  Hdf5Contents contents_;
  std::vector<Storage> storage_;  // of contiguous datasets
  size_t opened_ = SIZE_MAX;      // the tensor whose dataset is open
  Hdf5Handle dataset_, memory_type_;
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_HDF5_READER_H_
