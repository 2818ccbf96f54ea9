#ifndef WEIR_TOOLS_CKPT_FORMATS_H_
#define WEIR_TOOLS_CKPT_FORMATS_H_

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "weir/core/io/bundle.h"
#include "weir/tools/ckpt/output.h"

// The file formats of `weir ckpt`: TensorFlow's two, and those in which tensors are exchanged with
// other programs. Each has a row in one table; all are read through CheckpointReader.
namespace weir::tools {

// What is known of a format.
struct CheckpointFormat {
  absl::string_view name;    // as of --format
  absl::string_view ending;  // of the file's name; empty if any path may be one
  bool has_checksums;        // of all elements
  // Whether the format has the type. A type it lacks is an error, or is converted on request.
  bool (*holds)(DataType dtype);
  // Returns the error for a name or a shape that the format cannot hold.
  absl::Status (*check)(const OutputTensor& tensor);
  // Whether a file is of the format, by its contents; null if they do not tell.
  bool (*recognizes)(const ReadableFile& file);
  // Opens a file or folder, and appends to the metadata what it has.
  absl::StatusOr<std::unique_ptr<CheckpointReader>> (*open)(const std::string& path,
                                                            Metadata* metadata);
  // Writes a file or folder that appears as a whole or not at all. What is there is replaced. The
  // output's names and types have been checked.
  absl::Status (*write)(const std::string& path, const Output& output, ProgressBar& progress);
};

// Returns the format with this name; null if there is none.
const CheckpointFormat* FindFormat(absl::string_view name);
// Returns the format whose ending the path has; otherwise V2.
const CheckpointFormat& FormatOfPath(absl::string_view path);
// Returns "v2, v1, npy, ...".
std::string FormatNames();

// Where a checkpoint is: a prefix, a file or a folder.
struct CheckpointLocation {
  std::string path;
  const CheckpointFormat* format = nullptr;
};
// Returns what `path` denotes: a file by its contents, or by its ending if these do not tell; a
// checkpoint as CheckpointPrefix finds it (checkpoint_path.h); otherwise a folder of array files.
// Notes about what was found go to `notes` unless it is null.
absl::StatusOr<CheckpointLocation> LocateCheckpoint(const std::string& path,
                                                    std::ostream* notes = nullptr);

// A checkpoint that was opened for reading, in any format.
struct OpenedCheckpoint {
  std::string path;  // of its location
  const CheckpointFormat* format = nullptr;
  std::unique_ptr<CheckpointReader> reader;
  Metadata metadata;
};
// Locates a checkpoint and opens it.
absl::StatusOr<OpenedCheckpoint> OpenCheckpoint(const std::string& path,
                                                std::ostream* notes = nullptr);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_FORMATS_H_
