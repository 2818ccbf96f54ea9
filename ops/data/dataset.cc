#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

constexpr char kElementTypes[] = "output_types: list(type) >= 1";
constexpr char kElementShapes[] = "output_shapes: list(shape) >= 1";
constexpr char kMetadata[] = "metadata: string = ''";

absl::Status ElementShapes(ShapeContext& c) {
  const auto shapes = c.attr<std::vector<Shape>>("output_shapes");
  if (static_cast<int>(shapes.size()) != c.num_outputs())
    return InvalidArgument("`output_shapes` must be the same length as `output_types` (",
                           shapes.size(), " vs. ", c.num_outputs(), ")");
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[i]);
  return absl::OkStatus();
}

// The scalar inputs (numbers and strings) of dataset ops. Each op has some of them.
constexpr char kScalars[] =
    "batch_size: 0, drop_remainder: 0, buffer_size: 0, seed: 0, seed2: 0, seed_generator: 0, "
    "count: 0, filename: 0, num_shards: 0, index: 0, start: 0, stop: 0, step: 0, "
    "compression_type: 0, filenames: <=1";

// Returns the part that all dataset ops have in common: one scalar handle output and no gradient.
OpSpec DatasetOp(absl::string_view name, absl::string_view doc) {
  OpSpec op(name);
  op.Out("handle: variant").InferShape(Ranked(kScalars, ScalarShape)).NotDifferentiable().Doc(doc);
  return op;
}

OpSpec& WithElements(OpSpec& op) { return op.Attr(kElementTypes).Attr(kElementShapes); }

OpSpec FileOp(absl::string_view name, absl::string_view doc) {
  OpSpec op = DatasetOp(name, doc);
  op.In("filenames: string, compression_type: string, buffer_size: int64")
      .Attr(kMetadata)
      .Stateful()
      .Has(Effect::kObserves);
  return op;
}

void AddSources(OpRegistry* ops) {
  ops->Add(DatasetOp("TensorDataset", "Creates a dataset with one element: these tensors.")
               .In("components: Toutput_types")
               .Attr("Toutput_types: list(type) >= 1")
               .Attr(kElementShapes)
               .Attr(kMetadata)
               .Stateful()
               .Has(Effect::kObserves));
  ops->Add(
      DatasetOp("TensorSliceDataset",
                "Creates a dataset whose elements are the slices of tensors along dimension 0.")
          .In("components: Toutput_types")
          .Attr("Toutput_types: list(type) >= 1")
          .Attr(kElementShapes)
          .Attr("is_files: bool = false")
          .Attr(kMetadata)
          .Attr("replicate_on_split: bool = false")
          .Stateful()
          .Has(Effect::kObserves));
  OpSpec range = DatasetOp(
      "RangeDataset", "Creates a dataset of the numbers start, start + step, ... before stop.");
  ops->Add(WithElements(range.In("start: int64, stop: int64, step: int64"))
               .Attr(kMetadata)
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
               .Attr(kMetadata));
  ops->Add(FunctionalOp("ParallelMapDataset",
                        "input_dataset: variant, other_arguments: Targuments, "
                        "num_parallel_calls: int32",
                        "f: func",
                        "Like MapDataset, with several elements in parallel. The order is "
                        "deterministic, regardless of the attributes.")
               .Attr("use_inter_op_parallelism: bool = true")
               .Attr("sloppy: bool = false")
               .Attr("preserve_cardinality: bool = false")
               .Attr(kMetadata));
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
               .Attr(kMetadata));
  ops->Add(FunctionalOp("FilterDataset", kMapInputs, "predicate: func",
                        "Creates a dataset of the elements for which a function returns true.")
               .Attr(kMetadata));
  ops->Add(FunctionalOp("FlatMapDataset", kMapInputs, "f: func",
                        "Applies a function that returns a dataset to each element, and "
                        "concatenates the datasets.")
               .Attr(kMetadata));
  ops->Add(FunctionalOp("ParallelFilterDataset",
                        "input_dataset: variant, other_arguments: Targuments, "
                        "num_parallel_calls: int64",
                        "predicate: func", "Like FilterDataset, with several elements in parallel.",
                        "deterministic: string = 'default'")
               .Attr(kMetadata));
  ops->Add(FunctionalOp("TakeWhileDataset", kMapInputs, "predicate: func",
                        "Creates a dataset of the elements before the first one for which a "
                        "function returns false.")
               .Attr(kMetadata));
  ops->Add(FunctionalOp("MapAndBatchDataset",
                        "input_dataset: variant, other_arguments: Targuments, batch_size: int64, "
                        "num_parallel_calls: int64, drop_remainder: bool",
                        "f: func", "Applies a function to each element and batches the results.")
               .Attr("preserve_cardinality: bool = false")
               .Attr(kMetadata));
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
      {"InterleaveDataset", "cycle_length: int64, block_length: int64", "", {kMetadata}},
      {"ParallelInterleaveDataset", kSloppyBuffers, "", {kMetadata}},
      {"LegacyParallelInterleaveDatasetV2", kBuffers, kDeterministic, {kMetadata}},
      {"ParallelInterleaveDatasetV2", kCalls, "", {"sloppy: bool = false", kMetadata}},
      {"ParallelInterleaveDatasetV3", kCalls, kDeterministic, {kMetadata}},
      {"ParallelInterleaveDatasetV4", buffers_calls.c_str(), kDeterministic, {kMetadata}},
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
  for (const bool reduce : {false, true}) {
    OpSpec op(reduce ? "ReduceDataset" : "ScanDataset");
    op.In("input_dataset: variant, initial_state: Tstate, other_arguments: Targuments")
        .Out(reduce ? "components: output_types" : "handle: variant")
        .Attr("f: func")
        .Attr("Tstate: list(type) >= 1")
        .Attr("Targuments: list(type) >= 0");
    WithElements(op);
    if (reduce) op.Attr("use_inter_op_parallelism: bool = true").Attr(kMetadata).Stateful();
    if (!reduce) {
      op.Attr("preserve_cardinality: bool = false")
          .Attr("use_default_device: bool = true")
          .Attr(kMetadata);
    }
    ops->Add(
        op.InferShape(reduce ? ElementShapes : ScalarShape)
            .NotDifferentiable()
            .Doc(reduce
                     ? "Reduces a dataset: applies a function to a state and each element in turn."
                     : "Applies a function to a state and each element. The function returns the "
                       "new state and the result."));
  }
}

// Returns an op that takes a dataset and some scalars.
OpSpec TransformOp(absl::string_view name, absl::string_view inputs, absl::string_view doc,
                   absl::string_view attr = {}) {
  OpSpec op = DatasetOp(name, doc);
  op.In(inputs);
  if (!attr.empty()) op.Attr(attr);
  WithElements(op);
  return op;
}

void AddBatches(OpRegistry* ops) {
  ops->Add(TransformOp("BatchDataset", "input_dataset: variant, batch_size: int64",
                       "Creates a dataset of batches: `batch_size` elements stacked.")
               .Attr(kMetadata));
  ops->Add(TransformOp("BatchDatasetV2",
                       "input_dataset: variant, batch_size: int64, drop_remainder: bool",
                       "Creates a dataset of batches: `batch_size` elements stacked. The last "
                       "batch may be smaller, or is dropped.",
                       "parallel_copy: bool = false")
               .Attr(kMetadata));
  for (const bool v2 : {false, true}) {
    OpSpec op = DatasetOp(v2 ? "PaddedBatchDatasetV2" : "PaddedBatchDataset",
                          "Creates a dataset of batches of elements padded to the same shape. An "
                          "unknown dimension is that of the longest element.");
    op.In(
        "input_dataset: variant, batch_size: int64, padded_shapes: N * int64, "
        "padding_values: Toutput_types");
    if (v2) op.In("drop_remainder: bool").Attr("parallel_copy: bool = false");
    ops->Add(op.Attr("Toutput_types: list(type) >= 1")
                 .Attr(kElementShapes)
                 .Attr("N: int >= 1")
                 .Attr(kMetadata));
  }
}

void AddSelectionOps(OpRegistry* ops) {
  ops->Add(TransformOp(
               "ShuffleDataset",
               "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64",
               "Shuffles a dataset: each element is drawn from a buffer of the next `buffer_size`. "
               "Equal seeds give equal orders; two zero seeds give a different order each time.",
               "reshuffle_each_iteration: bool = true")
               .Attr(kMetadata));
  ops->Add(TransformOp("ShuffleDatasetV3",
                       "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, "
                       "seed_generator: resource",
                       "Like ShuffleDataset. The dataset, not `seed_generator`, holds the seeds.",
                       "reshuffle_each_iteration: bool = true")
               .Attr(kMetadata)
               .Stateful()
               .Has(Effect::kObserves));
  ops->Add(OpSpec("DummySeedGenerator")
               .Out("handle: resource")
               .Stateful()
               .Has(Effect::kObserves)
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns a placeholder seed generator for a ShuffleDatasetV3, which holds its "
                    "seeds itself."));
  const std::pair<const char*, const char*> counted[] = {
      {"RepeatDataset", "Repeats a dataset `count` times, or forever if `count` is negative."},
      {"SkipDataset",
       "Skips the first `count` elements of a dataset, or all if `count` is negative."},
      {"TakeDataset",
       "Returns the first `count` elements of a dataset, or all if `count` is negative."},
  };
  for (const auto& [name, doc] : counted)
    ops->Add(TransformOp(name, "input_dataset: variant, count: int64", doc).Attr(kMetadata));
  ops->Add(TransformOp("ConcatenateDataset", "input_dataset: variant, another_dataset: variant",
                       "Concatenates two datasets.")
               .Attr(kMetadata));
  ops->Add(TransformOp("CacheDataset", "input_dataset: variant, filename: string",
                       "Reads a dataset once and caches it in memory.")
               .Attr(kMetadata));
  ops->Add(TransformOp("ShardDataset", "input_dataset: variant, num_shards: int64, index: int64",
                       "Returns every `num_shards`-th element of a dataset, starting at `index`.",
                       "require_non_empty: bool = false")
               .Attr(kMetadata));
  ops->Add(TransformOp("UnbatchDataset", "input_dataset: variant",
                       "Returns the rows of each element, one after the other.")
               .Attr(kMetadata));
  ops->Add(TransformOp("ZipDataset", "input_datasets: N * variant",
                       "Zips several datasets. The result ends with the shortest one.")
               .Attr("N: int >= 1")
               .Attr(kMetadata));
}

void AddHints(OpRegistry* ops) {
  ops->Add(TransformOp("PrefetchDataset", "input_dataset: variant, buffer_size: int64",
                       "Prefetches up to `buffer_size` elements of a dataset.")
               .Attr("slack_period: int = 0")
               .Attr("legacy_autotune: bool = true")
               .Attr("buffer_size_min: int = 0")
               .Attr(kMetadata));
  ops->Add(TransformOp("OptionsDataset", "input_dataset: variant",
                       "Returns the dataset unchanged: the options affect only performance.",
                       "serialized_options: string")
               .Attr(kMetadata));
  ops->Add(TransformOp("MaxIntraOpParallelismDataset",
                       "input_dataset: variant, max_intra_op_parallelism: int64",
                       "Returns the dataset unchanged: all datasets share the session's threads."));
  ops->Add(TransformOp("PrivateThreadPoolDataset", "input_dataset: variant, num_threads: int64",
                       "Returns the dataset unchanged: all datasets share the session's threads."));
  ops->Add(TransformOp("OptimizeDataset", "input_dataset: variant, optimizations: string",
                       "Returns the dataset unchanged: optimizations do not change its elements.")
               .Attr("optimization_configs: list(string) = []"));
  ops->Add(TransformOp("OptimizeDatasetV2",
                       "input_dataset: variant, optimizations_enabled: string, "
                       "optimizations_disabled: string, optimizations_default: string",
                       "Returns the dataset unchanged: optimizations do not change its elements.")
               .Attr("optimization_configs: list(string) = []"));
  ops->Add(TransformOp("RewriteDataset", "input_dataset: variant, rewrite_name: string",
                       "Returns the dataset unchanged: rewrites do not change its elements."));
  ops->Add(TransformOp("FinalizeDataset", "input_dataset: variant",
                       "Returns the dataset unchanged: there are no options to apply.",
                       "has_captured_ref: bool = false"));
  for (const char* name : {"NonSerializableDataset", "ExperimentalNonSerializableDataset"}) {
    ops->Add(TransformOp(name, "input_dataset: variant",
                         "Returns the dataset unchanged: no dataset is serialized."));
  }
  for (const char* name :
       {"LatencyStatsDataset", "BytesProducedStatsDataset", "ExperimentalLatencyStatsDataset",
        "ExperimentalBytesProducedStatsDataset"}) {
    ops->Add(
        TransformOp(name, "input_dataset: variant, tag: string",
                    "Returns the dataset unchanged: there is nothing that collects statistics."));
  }
  OpSpec model =
      DatasetOp("ModelDataset", "Returns the dataset unchanged: there is nothing to tune.");
  model.In("input_dataset: variant")
      .Attr("algorithm: int = 0")
      .Attr("cpu_budget: int = 0")
      .Attr("ram_budget: int = 0");
  ops->Add(WithElements(model));
}

OpSpec IteratorOp(absl::string_view name, absl::string_view doc) {
  OpSpec op(name);
  op.Stateful().InferShape(ScalarShape).NotDifferentiable().Doc(doc);
  return op;
}

void AddIterators(OpRegistry* ops) {
  for (const char* name : {"Iterator", "IteratorV2"}) {
    OpSpec op =
        IteratorOp(name, "Returns a handle to an iterator, which MakeIterator initializes.");
    op.Out("handle: resource").Attr("shared_name: string").Attr("container: string");
    ops->Add(WithElements(op));
  }
  OpSpec one_shot =
      IteratorOp("OneShotIterator",
                 "Returns an iterator over the dataset that a function creates, for one pass.");
  one_shot.Out("handle: resource").Attr("dataset_factory: func");
  ops->Add(WithElements(one_shot).Attr("container: string = ''").Attr("shared_name: string = ''"));
  ops->Add(IteratorOp("MakeIterator", "Initializes an iterator to the start of a dataset.")
               .In("dataset: variant, iterator: resource")
               .InferShape(NoOutputs));
  for (const char* name : {"IteratorGetNext", "IteratorGetNextSync"}) {
    OpSpec op = IteratorOp(name, "Returns the next element. Fails with OUT_OF_RANGE at the end.");
    op.In("iterator: resource").Out("components: output_types");
    op.Waits(WaitsFor::kValue).InferShape(Ranked("iterator: 0", ElementShapes));
    ops->Add(WithElements(op));
  }
  ops->Add(
      IteratorOp("IteratorToStringHandle",
                 "Returns a string handle of an iterator, to be fed to IteratorFromStringHandle.")
          .In("resource_handle: resource")
          .Out("string_handle: string"));
  for (const char* name : {"IteratorFromStringHandle", "IteratorFromStringHandleV2"}) {
    ops->Add(
        IteratorOp(name,
                   "Returns the iterator of this session for a string from IteratorToStringHandle.")
            .In("string_handle: string")
            .Out("resource_handle: resource")
            .Attr("output_types: list(type) >= 0 = []")
            .Attr("output_shapes: list(shape) >= 0 = []"));
  }
}

}  // namespace

void AddDatasetOps(OpRegistry* ops) {
  AddSources(ops);
  AddFunctional(ops);
  AddInterleaved(ops);
  AddReduceAndScan(ops);
  AddBatches(ops);
  AddSelectionOps(ops);
  AddHints(ops);
  AddIterators(ops);
}

}  // namespace weir
