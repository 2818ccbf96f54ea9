#include "weir/ops/data/io.h"

#include "weir/core/graph/shape_context.h"
#include "weir/core/io/tensor_slice.h"
#include "weir/ops/lib/registry.h"

namespace weir {

Operation SaveV2(Output prefix, Output tensor_names, Output shape_and_slices,
                 const Outputs& tensors, absl::string_view name) {
  return Operation(AddNode("SaveV2", {prefix, tensor_names, shape_and_slices, tensors}, {}, name));
}

Outputs RestoreV2(Output prefix, Output tensor_names, Output shape_and_slices,
                  const DataTypes& dtypes, absl::string_view name) {
  Node* node =
      AddNode("RestoreV2", {prefix, tensor_names, shape_and_slices}, {{"dtypes", dtypes}}, name);
  Outputs outputs(dtypes.size());
  for (size_t i = 0; i < dtypes.size() && node != nullptr; ++i)
    outputs[i] = node->output(static_cast<int>(i));
  return outputs;
}

Operation SaveSlices(Output filename, Output tensor_names, Output shapes_and_slices,
                     const Outputs& data, absl::string_view name) {
  return Operation(
      AddNode("SaveSlices", {filename, tensor_names, shapes_and_slices, data}, {}, name));
}

Operation MergeV2Checkpoints(Output checkpoint_prefixes, Output destination_prefix,
                             bool delete_old_dirs, bool allow_missing_files,
                             absl::string_view name) {
  return Operation(AddNode(
      "MergeV2Checkpoints", {checkpoint_prefixes, destination_prefix},
      {{"delete_old_dirs", delete_old_dirs}, {"allow_missing_files", allow_missing_files}}, name));
}

Output ShardedFilename(Output basename, Output shard, Output num_shards, absl::string_view name) {
  return AddOp("ShardedFilename", {basename, shard, num_shards}, {}, name);
}

Output ShardedFilespec(Output basename, Output num_shards, absl::string_view name) {
  return AddOp("ShardedFilespec", {basename, num_shards}, {}, name);
}

Output ReadFile(Output filename, absl::string_view name) {
  return AddOp("ReadFile", {filename}, {}, name);
}

Operation WriteFile(Output filename, Output contents, absl::string_view name) {
  return Operation(AddNode("WriteFile", {filename, contents}, {}, name));
}

Output MatchingFiles(Output pattern, absl::string_view name) {
  return AddOp("MatchingFiles", {pattern}, {}, name);
}

Output StringJoin(const Outputs& inputs, absl::string_view separator, absl::string_view name) {
  return AddOp("StringJoin", {inputs}, {{"separator", separator}}, name);
}

Output StaticRegexFullMatch(Output input, absl::string_view pattern, absl::string_view name) {
  return AddOp("StaticRegexFullMatch", {input}, {{"pattern", pattern}}, name);
}

namespace {

absl::Status AllScalars(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  c.set_all_outputs(Shape());
  return absl::OkStatus();
}

// Checks a scalar path and vectors of `count` strings (-1: of any length) at inputs 1 to `last`.
absl::Status CheckNames(ShapeContext& c, int last, int64_t count) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  for (int i = 1; i <= last; ++i) {
    WEIR_ASSIGN_OR_RETURN(const Shape shape, c.WithRank(i, 1));
    const absl::StatusOr<int64_t> merged = MergeDims(shape.dim(0), count);
    if (!merged.ok()) {
      return InvalidArgument(i == 1 ? "tensor_names" : "shape_and_slices", " has ", shape.dim(0),
                             " elements for ", count, " tensors");
    }
  }
  return absl::OkStatus();
}

template <int kLast>
absl::Status SaveShape(ShapeContext& c) {
  return CheckNames(c, kLast, c.num_inputs() - 1 - kLast);
}

absl::Status RestoreShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(CheckNames(c, 2, c.num_outputs()));
  const Tensor* slices = c.input_value(2);
  if (slices == nullptr || slices->dtype() != DT_STRING ||
      slices->num_elements() != c.num_outputs()) {
    return absl::OkStatus();
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    const std::string& text = slices->data<std::string>()[i];
    if (text.empty()) continue;
    WEIR_ASSIGN_OR_RETURN(const ShapeAndSlice parsed, ShapeAndSlice::Parse(text));
    c.set_output(i, parsed.slice_shape);
  }
  return absl::OkStatus();
}

absl::Status MergeShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  return c.WithRank(1, 0).status();
}

absl::Status RestoreV1Shape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  const Tensor* slice = c.num_inputs() == 3 ? c.input_value(2) : nullptr;
  if (slice == nullptr || slice->dtype() != DT_STRING || slice->num_elements() != 1)
    return absl::OkStatus();
  if (slice->scalar<std::string>().empty()) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const ShapeAndSlice parsed,
                        ShapeAndSlice::Parse(slice->scalar<std::string>()));
  c.set_output(0, parsed.slice_shape);
  return absl::OkStatus();
}

absl::Status MatchingFilesShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRankAtMost(0, 1).status());
  c.set_output(0, Shape({Shape::kUnknown}));
  return absl::OkStatus();
}

absl::Status JoinShape(ShapeContext& c) {
  Shape out;
  bool known = true;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.input(i).has_rank()) known = false;
    if (!c.input(i).has_rank() || c.input(i).IsScalar()) continue;
    if (out.IsScalar()) {
      out = c.input(i);
    } else {
      WEIR_ASSIGN_OR_RETURN(out, out.MergeWith(c.input(i)));
    }
  }
  // An input of unknown rank may be a scalar, so the output shape is unknown.
  if (known || !out.IsScalar()) c.set_output(0, std::move(out));
  return absl::OkStatus();
}

void AddCheckpointOps(OpRegistry* ops) {
  ops->Add(
      OpSpec("SaveV2")
          .In("prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes")
          .Attr("dtypes: list(type) >= 1")
          .Stateful()
          .InferShape(SaveShape<2>)
          .Doc("Writes tensors to a checkpoint (V2), each under its name, whole or as a slice of a "
               "larger tensor."));
  ops->Add(OpSpec("RestoreV2")
               .In("prefix: string, tensor_names: string, shape_and_slices: string")
               .Out("tensors: dtypes")
               .Attr("dtypes: list(type) >= 1")
               .Stateful()
               .InferShape(RestoreShape)
               .Doc("Reads tensors or slices of tensors by name from a checkpoint, V2 or V1. Reads "
                    "all of them or none."));
  ops->Add(OpSpec("MergeV2Checkpoints")
               .In("checkpoint_prefixes: string, destination_prefix: string")
               .Attr("delete_old_dirs: bool = true")
               .Attr("allow_missing_files: bool = false")
               .Stateful()
               .InferShape(MergeShape)
               .Doc("Merges the checkpoints that the shards of one save wrote into one, with the "
                    "same number of data files."));
  ops->Add(OpSpec("Save")
               .In("filename: string, tensor_names: string, data: T")
               .Attr("T: list(type) >= 1")
               .Stateful()
               .InferShape(SaveShape<1>)
               .Doc("Writes tensors to a checkpoint of the older format (V1), a single file."));
  ops->Add(OpSpec("SaveSlices")
               .In("filename: string, tensor_names: string, shapes_and_slices: string, data: T")
               .Attr("T: list(type) >= 1")
               .Stateful()
               .InferShape(SaveShape<2>)
               .Doc("Like Save, for tensors that may be slices of larger ones."));
  ops->Add(OpSpec("Restore")
               .In("file_pattern: string, tensor_name: string")
               .Out("tensor: dt")
               .Attr("dt: type")
               .Attr("preferred_shard: int = -1")
               .Stateful()
               .InferShape(RestoreV1Shape)
               .Doc("Reads one tensor from a checkpoint."));
  ops->Add(OpSpec("RestoreSlice")
               .In("file_pattern: string, tensor_name: string, shape_and_slice: string")
               .Out("tensor: dt")
               .Attr("dt: type")
               .Attr("preferred_shard: int = -1")
               .Stateful()
               .InferShape(RestoreV1Shape)
               .Doc("Reads a slice of one tensor from a checkpoint."));
}

void AddFileOps(OpRegistry* ops) {
  ops->Add(OpSpec("ShardedFilename")
               .In("basename: string, shard: int32, num_shards: int32")
               .Out("filename: string")
               .InferShape(AllScalars)
               .Doc("Returns the name of one of several shards: basename-00001-of-00004."));
  ops->Add(OpSpec("ShardedFilespec")
               .In("basename: string, num_shards: int32")
               .Out("filename: string")
               .InferShape(AllScalars)
               .Doc("Returns the pattern that the names of all shards match, with question marks "
                    "for the shard."));
  ops->Add(OpSpec("ReadFile")
               .In("filename: string")
               .Out("contents: string")
               .InferShape(AllScalars)
               .Doc("Returns the contents of a file as one string."));
  ops->Add(
      OpSpec("WriteFile")
          .In("filename: string, contents: string")
          .Stateful()
          .InferShape(AllScalars)
          .Doc("Replaces the contents of a file. Creates its directory if it does not exist."));
  ops->Add(OpSpec("MatchingFiles")
               .In("pattern: string")
               .Out("filenames: string")
               .InferShape(MatchingFilesShape)
               .Doc("Returns the names of the files that match a pattern, or any of several "
                    "patterns, sorted."));
  ops->Add(OpSpec("StringJoin")
               .In("inputs: N * string")
               .Out("output: string")
               .Attr("N: int >= 0")
               .Attr("separator: string = ''")
               .InferShape(JoinShape)
               .NotDifferentiable()
               .Doc("Joins strings elementwise, with a separator between them."));
  ops->Add(
      OpSpec("StaticRegexFullMatch")
          .In("input: string")
          .Out("output: bool")
          .Attr("pattern: string")
          .InferShape(SameShape)
          .Doc("Returns whether each string fully matches a regular expression (RE2 syntax)."));
}

}  // namespace

void AddIoOps(OpRegistry* ops) {
  AddCheckpointOps(ops);
  AddFileOps(ops);
}

}  // namespace weir
