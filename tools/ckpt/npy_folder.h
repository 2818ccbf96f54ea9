#ifndef WEIR_TOOLS_CKPT_NPY_FOLDER_H_
#define WEIR_TOOLS_CKPT_NPY_FOLDER_H_

#include <memory>
#include <string>

#include "weir/tools/ckpt/output.h"

// Folders of array files: "hidden/w.npy" is the tensor hidden/w, "hidden/b.bf16.npy" one of
// bfloat16 (core/io/npy.h), and "words.json" one of strings (tools/lib/value_file.h).
namespace weir::tools {

// Opens a folder. Symbolic links to folders are not followed, to avoid cycles; other files are
// ignored. INVALID_ARGUMENT for two files of one tensor.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenNpyFolder(const std::string& path);

// See CheckpointFormat::write and check_name (formats.h).
absl::Status WriteNpyFolder(const std::string& path, const Output& output, ProgressBar& progress);
absl::Status CheckFileName(const std::string& name);

// Whether a folder has array files, and whether it has nothing else, so that WriteNpyFolder may
// replace it.
bool HasArrayFiles(const std::string& path);
bool IsNpyFolder(const std::string& path);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_NPY_FOLDER_H_
