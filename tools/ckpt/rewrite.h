#ifndef WEIR_TOOLS_CKPT_REWRITE_H_
#define WEIR_TOOLS_CKPT_REWRITE_H_

#include <map>
#include <string>
#include <vector>

#include "weir/tools/ckpt/formats.h"
#include "weir/tools/ckpt/output.h"
#include "weir/tools/lib/command.h"

// What the subcommands that write a new checkpoint share: their options, the choice of tensors, and
// the checks before anything is written.
namespace weir::tools {

// Where a new checkpoint goes, and how.
struct RewriteOptions {
  std::string out, format, like;
  bool force = false, dry_run = false, json = false, convert_types = false, resume = false;
};

// Adds --format, --like, --convert-types, --dry-run and --json.
void AddRewriteOptions(Command& command, RewriteOptions* options);
// Adds --force.
void AddForceOption(Command& command, RewriteOptions* options);

// A selection of tensors by names: --keep and --drop.
struct NameFilter {
  std::string keep, drop;  // regular expressions; empty: all, none
};
void AddFilterOptions(Command& command, NameFilter* filter);

// Returns the tensors that the filter keeps. INVALID_ARGUMENT for an invalid expression, NOT_FOUND
// if none remains.
absl::StatusOr<std::vector<CheckpointTensor>> Choose(const NameFilter& filter,
                                                     std::vector<CheckpointTensor> tensors);

// Parses the name of a floating-point type; DT_INVALID for an empty text.
absl::StatusOr<DataType> FloatType(const std::string& text);

// The tensors of a new checkpoint, by name.
using OutputTensors = std::map<std::string, OutputTensor>;

// Adds a tensor; INVALID_ARGUMENT, with both sources, if another one has the name.
absl::Status AddOutput(OutputTensor tensor, OutputTensors* tensors);
// Returns the output with these tensors.
Output MakeOutput(OutputTensors tensors);

// Checks the whole output before anything is written: that it does not overwrite one of `inputs`,
// that the target does not exist (unless --force is given), and that the format holds all names and
// types, to which --convert-types converts. A model in a .keras file is like the one passed with
// --like, or like the first input that is one. Returns the format.
absl::StatusOr<const CheckpointFormat*> CheckOutput(const RewriteOptions& options,
                                                    const std::vector<std::string>& inputs,
                                                    Output* output);

// Checks the output, writes it, unless --dry-run is given, and prints what was written. The last of
// `inputs` is where the tensors are, for options.resume (resume.h).
absl::Status Rewrite(const RewriteOptions& options, const std::vector<std::string>& inputs,
                     Output output, Console& console);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_REWRITE_H_
