#ifndef WEIR_OPS_IO_H_
#define WEIR_OPS_IO_H_

#include "weir/core/graph.h"

// Files and checkpoints from within a graph, and the strings they need. Saver (session/saver.h) is
// made of these.
namespace weir {

// Writes a checkpoint at `prefix`, a scalar: tensors[i] under tensor_names[i]. shape_and_slices[i]
// is empty, or says which part of a partitioned tensor it is ("7 2 3,2:0,2"). The checkpoint
// becomes visible in one step, after its bytes are on disk. Errors are those of BundleWriter
// (core/bundle.h).
Operation SaveV2(Output prefix, Output tensor_names, Output shape_and_slices,
                 const Outputs& tensors, absl::string_view name = {});
// Reads tensors from a checkpoint, of either format. Nothing is returned unless all could be read
// and have the dtypes asked for. INVALID_ARGUMENT for another dtype, or a slice that does not fit;
// NOT_FOUND, DATA_LOSS as CheckpointReader.
Outputs RestoreV2(Output prefix, Output tensor_names, Output shape_and_slices,
                  const DataTypes& dtypes, absl::string_view name = {});
// SaveV2 in the older format, V1: one file, `filename`. Errors are those of WriteCheckpointV1.
Operation SaveSlices(Output filename, Output tensor_names, Output shapes_and_slices,
                     const Outputs& data, absl::string_view name = {});
// Joins the checkpoints that shards of one save have written, and removes them with their
// directories.
Operation MergeV2Checkpoints(Output checkpoint_prefixes, Output destination_prefix,
                             bool delete_old_dirs = true, bool allow_missing_files = false,
                             absl::string_view name = {});

// "base-00001-of-00004"; "base-?????-of-00004".
Output ShardedFilename(Output basename, Output shard, Output num_shards,
                       absl::string_view name = {});
Output ShardedFilespec(Output basename, Output num_shards, absl::string_view name = {});

// The contents of a file.
Output ReadFile(Output filename, absl::string_view name = {});
// Makes the directory of the file if it is missing.
Operation WriteFile(Output filename, Output contents, absl::string_view name = {});
// The files that match any of the patterns (*, ?, [...] within one path component), sorted.
Output MatchingFiles(Output pattern, absl::string_view name = {});

// Element by element; scalars go with any shape.
Output StringJoin(const Outputs& inputs, absl::string_view separator = {},
                  absl::string_view name = {});
// Whether all of each string matches `pattern`, a regular expression in RE2's syntax.
Output StaticRegexFullMatch(Output input, absl::string_view pattern, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_IO_H_
