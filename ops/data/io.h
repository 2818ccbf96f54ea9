#ifndef WEIR_OPS_DATA_IO_H_
#define WEIR_OPS_DATA_IO_H_

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Ops that read and write files and checkpoints in a graph, and string ops for file names. Saver
// (session/model/saver.h) is built from these.
namespace WEIR_API weir {

// Writes a checkpoint at `prefix`, a scalar: tensors[i] under the name tensor_names[i].
// shape_and_slices[i] is empty or specifies a slice of a partitioned tensor ("7 2 3,2:0,2"). The
// checkpoint becomes visible atomically, after its bytes are on disk. Errors are those of
// BundleWriter (core/io/bundle.h).
Operation SaveV2(Output prefix, Output tensor_names, Output shape_and_slices,
                 const Outputs& tensors, absl::string_view name = {});
// Reads tensors from a checkpoint of either format. Returns nothing unless all tensors could be
// read and have the requested dtypes. INVALID_ARGUMENT for another dtype or a slice that does not
// match; NOT_FOUND and DATA_LOSS as in CheckpointReader.
Outputs RestoreV2(Output prefix, Output tensor_names, Output shape_and_slices,
                  const DataTypes& dtypes, absl::string_view name = {});
// Like SaveV2, in the older format V1: one file, `filename`. Errors are those of WriteCheckpointV1.
Operation SaveSlices(Output filename, Output tensor_names, Output shapes_and_slices,
                     const Outputs& data, absl::string_view name = {});
// Merges the checkpoints that the shards of one save have written, and removes them with their
// directories.
Operation MergeV2Checkpoints(Output checkpoint_prefixes, Output destination_prefix,
                             bool delete_old_dirs = true, bool allow_missing_files = false,
                             absl::string_view name = {});

// Return "base-00001-of-00004" and "base-?????-of-00004".
Output ShardedFilename(Output basename, Output shard, Output num_shards,
                       absl::string_view name = {});
Output ShardedFilespec(Output basename, Output num_shards, absl::string_view name = {});

// Returns the contents of a file.
Output ReadFile(Output filename, absl::string_view name = {});
// Writes a file. Creates its directory if it does not exist.
Operation WriteFile(Output filename, Output contents, absl::string_view name = {});
// Returns the sorted list of files that match any of the patterns (*, ?, [...] within one path
// component).
Output MatchingFiles(Output pattern, absl::string_view name = {});

// Joins strings elementwise; scalars broadcast to any shape.
Output StringJoin(const Outputs& inputs, absl::string_view separator = {},
                  absl::string_view name = {});
// Returns whether each string fully matches `pattern`, a regular expression in RE2's syntax.
Output StaticRegexFullMatch(Output input, absl::string_view pattern, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_DATA_IO_H_
