#include "weir/core/graph/shape_context.h"
#include "weir/ops/data/dataset_internal.h"
#include "weir/ops/lib/ranked_internal.h"

namespace weir {

absl::Status DatasetElementShapes(ShapeContext& c) {
  const auto shapes = c.attr<std::vector<Shape>>("output_shapes");
  if (static_cast<int>(shapes.size()) != c.num_outputs())
    return InvalidArgument("`output_shapes` must be the same length as `output_types` (",
                           shapes.size(), " vs. ", c.num_outputs(), ")");
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[i]);
  return absl::OkStatus();
}

OpSpec DatasetOp(absl::string_view name, absl::string_view doc) {
  // The ranks of numbers and strings; each op has some of them.
  constexpr char kRanks[] =
      "batch_size: 0, drop_remainder: 0, buffer_size: 0, seed: 0, seed2: 0, seed_generator: 0, "
      "count: 0, filename: 0, num_shards: 0, index: 0, start: 0, stop: 0, step: 0, "
      "compression_type: 0, filenames: <=1, size: 0, shift: 0, stride: 0, window_size: 0, "
      "window_shift: 0, window_stride: 0, rate: 0, cardinality: 0, sleep_microseconds: 0, "
      "row_shape: 1, transformations: 1";
  OpSpec op(name);
  op.Out("handle: variant").InferShape(Ranked(kRanks, ScalarShape)).NotDifferentiable().Doc(doc);
  return op;
}

OpSpec& WithElements(OpSpec& op) { return op.Attr(kDatasetTypes).Attr(kDatasetShapes); }

OpSpec DatasetTransformOp(absl::string_view name, absl::string_view inputs, absl::string_view doc,
                          absl::string_view attr) {
  OpSpec op = DatasetOp(name, doc);
  op.In(inputs);
  if (!attr.empty()) op.Attr(attr);
  WithElements(op);
  return op;
}

namespace {

OpSpec FileOp(absl::string_view name, absl::string_view doc) {
  OpSpec op = DatasetOp(name, doc);
  op.In("filenames: string, compression_type: string, buffer_size: int64")
      .Attr(kDatasetMetadata)
      .Stateful()
      .Has(Effect::kObserves);
  return op;
}

void AddSources(OpRegistry* ops) {
  OpSpec list = DatasetOp("ListDataset", "Creates a dataset of the elements in a list.");
  list.In("tensors: Tinput_types").Attr("Tinput_types: list(type) >= 1");
  ops->Add(WithElements(list).Attr(kDatasetMetadata).Stateful().Has(Effect::kObserves));
  ops->Add(DatasetOp("TensorDataset", "Creates a dataset with one element: these tensors.")
               .In("components: Toutput_types")
               .Attr("Toutput_types: list(type) >= 1")
               .Attr(kDatasetShapes)
               .Attr(kDatasetMetadata)
               .Stateful()
               .Has(Effect::kObserves));
  ops->Add(
      DatasetOp("TensorSliceDataset",
                "Creates a dataset whose elements are the slices of tensors along dimension 0.")
          .In("components: Toutput_types")
          .Attr("Toutput_types: list(type) >= 1")
          .Attr(kDatasetShapes)
          .Attr("is_files: bool = false")
          .Attr(kDatasetMetadata)
          .Attr("replicate_on_split: bool = false")
          .Stateful()
          .Has(Effect::kObserves));
  OpSpec range = DatasetOp(
      "RangeDataset", "Creates a dataset of the numbers start, start + step, ... before stop.");
  ops->Add(WithElements(range.In("start: int64, stop: int64, step: int64"))
               .Attr(kDatasetMetadata)
               .Attr("replicate_on_split: bool = false")
               .Stateful()
               .Has(Effect::kObserves));
  ops->Add(FileOp("TFRecordDataset", "Creates a dataset of the records of TFRecord files."));
  ops->Add(FileOp("TextLineDataset", "Creates a dataset of the lines of text files."));
}

OpSpec FunctionalOp(absl::string_view name, absl::string_view inputs, absl::string_view function,
                    absl::string_view doc, absl::string_view second_attr = {}) {
  OpSpec op = DatasetOp(name, doc);
  op.In(inputs).Attr(function);
  if (!second_attr.empty()) op.Attr(second_attr);
  op.Attr("Targuments: list(type) >= 0");
  WithElements(op);
  return op;
}

constexpr char kMapInputs[] = "input_dataset: variant, other_arguments: Targuments";

void AddFunctional(OpRegistry* ops) {
  ops->Add(FunctionalOp("MapDataset", kMapInputs, "f: func",
                        "Creates a dataset that applies a function to each element.")
               .Attr("use_inter_op_parallelism: bool = true")
               .Attr("preserve_cardinality: bool = false")
               .Attr("force_synchronous: bool = false")
               .Attr(kDatasetMetadata));
  ops->Add(FunctionalOp("ParallelMapDataset",
                        "input_dataset: variant, other_arguments: Targuments, "
                        "num_parallel_calls: int32",
                        "f: func",
                        "Like MapDataset, with several elements in parallel. The order is "
                        "deterministic, regardless of the attributes.")
               .Attr("use_inter_op_parallelism: bool = true")
               .Attr("sloppy: bool = false")
               .Attr("preserve_cardinality: bool = false")
               .Attr(kDatasetMetadata));
  ops->Add(FunctionalOp("ParallelMapDatasetV2",
                        "input_dataset: variant, other_arguments: Targuments, "
                        "num_parallel_calls: int64",
                        "f: func",
                        "Like MapDataset, with several elements in parallel. The order is "
                        "deterministic, regardless of the attributes.")
               .Attr("use_inter_op_parallelism: bool = true")
               .Attr("deterministic: string = 'default'")
               .Attr("preserve_cardinality: bool = false")
               .Attr("use_unbounded_threadpool: bool = false")
               .Attr(kDatasetMetadata));
  ops->Add(FunctionalOp("FilterDataset", kMapInputs, "predicate: func",
                        "Creates a dataset of the elements for which a function returns true.")
               .Attr(kDatasetMetadata));
  ops->Add(FunctionalOp("FlatMapDataset", kMapInputs, "f: func",
                        "Applies a function that returns a dataset to each element, and "
                        "concatenates the datasets.")
               .Attr(kDatasetMetadata));
  ops->Add(FunctionalOp("ParallelFilterDataset",
                        "input_dataset: variant, other_arguments: Targuments, "
                        "num_parallel_calls: int64",
                        "predicate: func", "Like FilterDataset, with several elements in parallel.",
                        "deterministic: string = 'default'")
               .Attr(kDatasetMetadata));
  for (const bool old : {false, true}) {
    OpSpec op = FunctionalOp(old ? "ExperimentalTakeWhileDataset" : "TakeWhileDataset", kMapInputs,
                             "predicate: func",
                             "Creates a dataset of the elements before the first one for which a "
                             "function returns false.");
    if (!old) op.Attr(kDatasetMetadata);
    ops->Add(std::move(op));
  }
  for (const bool old : {false, true}) {
    OpSpec op =
        FunctionalOp(old ? "ExperimentalMapAndBatchDataset" : "MapAndBatchDataset",
                     "input_dataset: variant, other_arguments: Targuments, batch_size: int64, "
                     "num_parallel_calls: int64, drop_remainder: bool",
                     "f: func", "Applies a function to each element and batches the results.");
    op.Attr("preserve_cardinality: bool = false");
    if (!old) op.Attr(kDatasetMetadata);
    ops->Add(std::move(op));
  }
}

// The interleave ops: the inputs of each after the function's arguments, and its attributes.
struct InterleaveOp {
  const char *name, *numbers, *before_types;
  std::vector<const char*> attrs;
};

void AddInterleaved(OpRegistry* ops) {
  const char* const kBuffers =
      "cycle_length: int64, block_length: int64, buffer_output_elements: int64, "
      "prefetch_input_elements: int64";
  const char* const kSloppyBuffers =
      "cycle_length: int64, block_length: int64, sloppy: bool, buffer_output_elements: int64, "
      "prefetch_input_elements: int64";
  const char* const kCalls = "cycle_length: int64, block_length: int64, num_parallel_calls: int64";
  const std::string buffers_calls = absl::StrCat(kBuffers, ", num_parallel_calls: int64");
  const char* const kDeterministic = "deterministic: string = 'default'";
  const InterleaveOp all[] = {
      {"InterleaveDataset", "cycle_length: int64, block_length: int64", "", {kDatasetMetadata}},
      {"ExperimentalParallelInterleaveDataset", kSloppyBuffers, "", {}},
      {"ParallelInterleaveDataset", kSloppyBuffers, "", {kDatasetMetadata}},
      {"LegacyParallelInterleaveDatasetV2", kBuffers, kDeterministic, {kDatasetMetadata}},
      {"ParallelInterleaveDatasetV2", kCalls, "", {"sloppy: bool = false", kDatasetMetadata}},
      {"ParallelInterleaveDatasetV3", kCalls, kDeterministic, {kDatasetMetadata}},
      {"ParallelInterleaveDatasetV4", buffers_calls.c_str(), kDeterministic, {kDatasetMetadata}},
  };
  for (const InterleaveOp& op : all) {
    OpSpec spec = FunctionalOp(
        op.name, absl::StrCat("input_dataset: variant, other_arguments: Targuments, ", op.numbers),
        "f: func",
        "Applies a function that returns a dataset to `cycle_length` elements at a time, and "
        "interleaves `block_length` elements of each dataset.",
        op.before_types);
    for (const char* attr : op.attrs) spec.Attr(attr);
    ops->Add(std::move(spec));
  }
}

void AddReduceAndScan(OpRegistry* ops) {
  for (const char* name : {"ReduceDataset", "ScanDataset", "ExperimentalScanDataset"}) {
    const bool reduce = absl::string_view(name) == "ReduceDataset";
    OpSpec op(name);
    op.In("input_dataset: variant, initial_state: Tstate, other_arguments: Targuments")
        .Out(reduce ? "components: output_types" : "handle: variant")
        .Attr("f: func")
        .Attr("Tstate: list(type) >= 1")
        .Attr("Targuments: list(type) >= 0");
    WithElements(op);
    if (reduce) op.Attr("use_inter_op_parallelism: bool = true").Attr(kDatasetMetadata).Stateful();
    if (!reduce) op.Attr("preserve_cardinality: bool = false");
    if (absl::string_view(name) == "ScanDataset")
      op.Attr("use_default_device: bool = true").Attr(kDatasetMetadata);
    ops->Add(
        op.InferShape(reduce ? DatasetElementShapes : ScalarShape)
            .NotDifferentiable()
            .Doc(reduce
                     ? "Reduces a dataset: applies a function to a state and each element in turn."
                     : "Applies a function to a state and each element. The function returns the "
                       "new state and the result."));
  }
}

void AddBatches(OpRegistry* ops) {
  ops->Add(DatasetTransformOp("BatchDataset", "input_dataset: variant, batch_size: int64",
                              "Creates a dataset of batches: `batch_size` elements stacked.")
               .Attr(kDatasetMetadata));
  ops->Add(DatasetTransformOp(
               "BatchDatasetV2", "input_dataset: variant, batch_size: int64, drop_remainder: bool",
               "Creates a dataset of batches: `batch_size` elements stacked. The last "
               "batch may be smaller, or is dropped.",
               "parallel_copy: bool = false")
               .Attr(kDatasetMetadata));
  ops->Add(DatasetTransformOp("ParallelBatchDataset",
                              "input_dataset: variant, batch_size: int64, "
                              "num_parallel_calls: int64, drop_remainder: bool",
                              "Like BatchDatasetV2, with batches made ahead.",
                              "parallel_copy: bool = false")
               .Attr("deterministic: string = 'default'")
               .Attr(kDatasetMetadata));
  for (const bool v2 : {false, true}) {
    OpSpec op = DatasetOp(v2 ? "PaddedBatchDatasetV2" : "PaddedBatchDataset",
                          "Creates a dataset of batches of elements padded to the same shape. An "
                          "unknown dimension is that of the longest element.");
    op.In(
        "input_dataset: variant, batch_size: int64, padded_shapes: N * int64, "
        "padding_values: Toutput_types");
    if (v2) op.In("drop_remainder: bool").Attr("parallel_copy: bool = false");
    ops->Add(op.Attr("Toutput_types: list(type) >= 1")
                 .Attr(kDatasetShapes)
                 .Attr("N: int >= 1")
                 .Attr(kDatasetMetadata));
  }
}

void AddSelectionOps(OpRegistry* ops) {
  ops->Add(DatasetTransformOp(
               "ShuffleDataset",
               "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64",
               "Shuffles a dataset: each element is drawn from a buffer of the next `buffer_size`. "
               "Equal seeds give equal orders; two zero seeds give a different order each time.",
               "reshuffle_each_iteration: bool = true")
               .Attr(kDatasetMetadata));
  ops->Add(
      DatasetTransformOp("ShuffleDatasetV3",
                         "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, "
                         "seed_generator: resource",
                         "Like ShuffleDataset. The dataset, not `seed_generator`, holds the seeds.",
                         "reshuffle_each_iteration: bool = true")
          .Attr(kDatasetMetadata)
          .Stateful()
          .Has(Effect::kObserves));
  const std::pair<const char*, const char*> counted[] = {
      {"RepeatDataset", "Repeats a dataset `count` times, or forever if `count` is negative."},
      {"SkipDataset",
       "Skips the first `count` elements of a dataset, or all if `count` is negative."},
      {"TakeDataset",
       "Returns the first `count` elements of a dataset, or all if `count` is negative."},
  };
  for (const auto& [name, doc] : counted)
    ops->Add(DatasetTransformOp(name, "input_dataset: variant, count: int64", doc)
                 .Attr(kDatasetMetadata));
  ops->Add(DatasetTransformOp("ConcatenateDataset",
                              "input_dataset: variant, another_dataset: variant",
                              "Concatenates two datasets.")
               .Attr(kDatasetMetadata));
  ops->Add(DatasetTransformOp("CacheDataset", "input_dataset: variant, filename: string",
                              "Reads a dataset once and caches it in memory.")
               .Attr(kDatasetMetadata));
  ops->Add(
      DatasetTransformOp("ShardDataset", "input_dataset: variant, num_shards: int64, index: int64",
                         "Returns every `num_shards`-th element of a dataset, starting at `index`.",
                         "require_non_empty: bool = false")
          .Attr(kDatasetMetadata));
  for (const bool old : {false, true}) {
    OpSpec op = DatasetTransformOp(old ? "ExperimentalUnbatchDataset" : "UnbatchDataset",
                                   "input_dataset: variant",
                                   "Returns the rows of each element, one after the other.");
    if (!old) op.Attr(kDatasetMetadata);
    ops->Add(std::move(op));
  }
  ops->Add(DatasetTransformOp("ZipDataset", "input_datasets: N * variant",
                              "Zips several datasets. The result ends with the shortest one.")
               .Attr("N: int >= 1")
               .Attr(kDatasetMetadata));
}

}  // namespace

void AddDatasetOps(OpRegistry* ops) {
  AddSources(ops);
  AddFunctional(ops);
  AddInterleaved(ops);
  AddReduceAndScan(ops);
  AddBatches(ops);
  AddSelectionOps(ops);
}

}  // namespace weir
