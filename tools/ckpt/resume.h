#ifndef WEIR_TOOLS_CKPT_RESUME_H_
#define WEIR_TOOLS_CKPT_RESUME_H_

#include <ostream>
#include <string>

#include "weir/tools/ckpt/formats.h"

namespace weir::tools {

// Whether WriteResumable can write the format: V2 and folders of arrays, which consist of files
// that can be written separately.
bool CanResume(const CheckpointFormat& format);

// Writes an output in parts of up to a gigabyte, in the folder PATH.weir-resume, and then joins
// them: a V2 checkpoint has a data file for each. After an error, or if the process is killed, the
// folder stays. The next call with the same tensors, from an input whose files have not changed,
// keeps the parts that are complete and whose checksums are right, and writes the others; `notes`
// says how many. ABORTED if another process writes the same output.
//
// `input` is where the tensors come from: a prefix, a file or a folder.
absl::Status WriteResumable(const CheckpointFormat& format, const std::string& path,
                            const Output& output, const std::string& input, ProgressBar& progress,
                            std::ostream& notes);

// Removes the folder that a call left which was killed after it had joined the parts. `path` is
// there.
void RemoveJoinedParts(const CheckpointFormat& format, const std::string& path);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_RESUME_H_
