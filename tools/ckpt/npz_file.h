#ifndef WEIR_TOOLS_CKPT_NPZ_FILE_H_
#define WEIR_TOOLS_CKPT_NPZ_FILE_H_

#include <memory>
#include <string>

#include "weir/tools/ckpt/output.h"

// NumPy's .npz files: zip archives of .npy files, stored (numpy.savez) or deflated
// (numpy.savez_compressed). The member "w.npy" is the tensor w; bfloat16 arrays are in members
// named "w.bf16.npy" (core/io/npy.h). Each member has a checksum.
namespace weir::tools {

// Opens an archive; members that are not .npy files are ignored. INVALID_ARGUMENT for a file that
// is no archive, DATA_LOSS if its directory is damaged, UNIMPLEMENTED for encrypted members and
// other compressions than deflate.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenNpz(const std::string& path,
                                                          Metadata* metadata);

// See CheckpointFormat (formats.h).
bool IsNpz(const ReadableFile& file);
bool NpzHolds(DataType dtype);
absl::Status CheckNpzTensor(const OutputTensor& tensor);
absl::Status WriteNpz(const std::string& path, const Output& output, ProgressBar& progress);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_NPZ_FILE_H_
