#ifndef WEIR_TOOLS_CKPT_HDF5_FILE_H_
#define WEIR_TOOLS_CKPT_HDF5_FILE_H_

#include <memory>
#include <string>

#include "weir/tools/ckpt/hdf5_reader.h"
#include "weir/tools/ckpt/output.h"

// HDF5 files (https://docs.hdfgroup.org/hdf5/v1_10/): Keras 3's weights (.weights.h5, where
// "layers/dense/vars/0" is the kernel of a layer), and Keras's older whole models and weights (.h5,
// "model_weights/hidden/hidden/kernel:0"). A tensor has the name that is the path of its dataset,
// so that files keep their layout when they are rewritten, with the attributes that are texts: the
// configuration of a model, and the names of layers and weights. There are no checksums.
namespace weir::tools {

// Opens a file. Errors are those of Hdf5Process::Start.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenHdf5(const std::string& path,
                                                           Metadata* metadata);
// Opens an HDF5 file inside another one, which the reader keeps open. Messages begin with `path`.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenHdf5Part(std::unique_ptr<ReadableFile> file,
                                                               uint64_t offset, uint64_t size,
                                                               const std::string& path,
                                                               Metadata* metadata);

// Whether a file begins as HDF5 files do.
bool IsHdf5(const ReadableFile& file);

// See CheckpointFormat (formats.h). The datasets are contiguous.
absl::Status CheckHdf5Tensor(const OutputTensor& tensor);
absl::Status WriteHdf5(const std::string& path, const Output& output, ProgressBar& progress);
// Writes the file itself, not aside.
absl::Status WriteHdf5InPlace(const std::string& path, const Output& output, ProgressBar& progress);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_HDF5_FILE_H_
