#include "absl/strings/str_cat.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/data/dataset_internal.h"

// Datasets that group, reorder, choose, batch or make elements in less common ways.
namespace weir {

namespace {

// Ops that older graphs know by a name with this prefix.
constexpr const char* kNames[] = {"", "Experimental"};

bool IsOld(absl::string_view prefix) { return !prefix.empty(); }

void AddWindows(OpRegistry* ops) {
  ops->Add(DatasetTransformOp("WindowDataset",
                              "input_dataset: variant, size: int64, shift: int64, stride: int64, "
                              "drop_remainder: bool",
                              "Creates a dataset of windows: datasets of `size` elements, `stride` "
                              "apart, that begin `shift` elements apart.")
               .Attr(kDatasetMetadata));
  OpSpec window = DatasetOp("WindowOp", "Creates a dataset of the elements in a list.");
  ops->Add(WithElements(window.In("inputs: Tinputs")).Attr("Tinputs: list(type) >= 1"));
  for (const char* prefix : kNames) {
    ops->Add(DatasetTransformOp(
        absl::StrCat(prefix, "SlidingWindowDataset"),
        "input_dataset: variant, window_size: int64, window_shift: int64, window_stride: int64",
        "Creates a dataset of windows, as batches.",
        IsOld(prefix) ? "" : "drop_remainder: bool = true"));
  }
}

void AddGroups(OpRegistry* ops) {
  for (const char* prefix : kNames) {
    OpSpec window = DatasetOp(absl::StrCat(prefix, "GroupByWindowDataset"),
                              "Groups the elements by a key. Another function makes a dataset of "
                              "each group that is as large as the window of its key.");
    window
        .In("input_dataset: variant, key_func_other_arguments: Tkey_func_other_arguments, "
            "reduce_func_other_arguments: Treduce_func_other_arguments, "
            "window_size_func_other_arguments: Twindow_size_func_other_arguments")
        .Attr("key_func: func")
        .Attr("reduce_func: func")
        .Attr("window_size_func: func")
        .Attr("Tkey_func_other_arguments: list(type) >= 0")
        .Attr("Treduce_func_other_arguments: list(type) >= 0")
        .Attr("Twindow_size_func_other_arguments: list(type) >= 0");
    WithElements(window);
    if (!IsOld(prefix)) window.Attr(kDatasetMetadata);
    ops->Add(std::move(window));
    OpSpec reducer = DatasetOp(absl::StrCat(prefix, "GroupByReducerDataset"),
                               "Reduces the elements of each key to one element.");
    reducer
        .In("input_dataset: variant, key_func_other_arguments: Tkey_func_other_arguments, "
            "init_func_other_arguments: Tinit_func_other_arguments, "
            "reduce_func_other_arguments: Treduce_func_other_arguments, "
            "finalize_func_other_arguments: Tfinalize_func_other_arguments")
        .Attr("key_func: func")
        .Attr("init_func: func")
        .Attr("reduce_func: func")
        .Attr("finalize_func: func")
        .Attr("Tkey_func_other_arguments: list(type) >= 0")
        .Attr("Tinit_func_other_arguments: list(type) >= 0")
        .Attr("Treduce_func_other_arguments: list(type) >= 0")
        .Attr("Tfinalize_func_other_arguments: list(type) >= 0");
    ops->Add(WithElements(reducer).Stateful().Has(Effect::kObserves));
  }
  OpSpec generator = DatasetOp("GeneratorDataset",
                               "Creates a dataset of the results of a function of a state, which "
                               "ends when the function fails with OUT_OF_RANGE.");
  generator
      .In("init_func_other_args: Tinit_func_args, next_func_other_args: Tnext_func_args, "
          "finalize_func_other_args: Tfinalize_func_args")
      .Attr("init_func: func")
      .Attr("next_func: func")
      .Attr("finalize_func: func")
      .Attr("Tinit_func_args: list(type) >= 0")
      .Attr("Tnext_func_args: list(type) >= 0")
      .Attr("Tfinalize_func_args: list(type) >= 0");
  ops->Add(WithElements(generator).Attr(kDatasetMetadata).Stateful().Has(Effect::kObserves));
}

void AddRandomOrders(OpRegistry* ops) {
  constexpr char kReshuffle[] = "reshuffle_each_iteration: bool = true";
  constexpr char kShuffleAndRepeat[] =
      "Shuffles and repeats a dataset. The order differs from epoch to epoch.";
  ops->Add(DatasetTransformOp("ShuffleAndRepeatDataset",
                              "input_dataset: variant, buffer_size: int64, seed: int64, "
                              "seed2: int64, count: int64",
                              kShuffleAndRepeat)
               .Attr(kReshuffle)
               .Attr(kDatasetMetadata));
  ops->Add(DatasetTransformOp("ShuffleAndRepeatDatasetV2",
                              "input_dataset: variant, buffer_size: int64, seed: int64, "
                              "seed2: int64, count: int64, seed_generator: resource",
                              kShuffleAndRepeat, kReshuffle)
               .Attr(kDatasetMetadata)
               .Stateful()
               .Has(Effect::kObserves));
  ops->Add(DatasetTransformOp("ShuffleDatasetV2",
                              "input_dataset: variant, buffer_size: int64, "
                              "seed_generator: resource",
                              "Like ShuffleDataset, with the seeds of a generator.")
               .Attr(kDatasetMetadata)
               .Stateful()
               .Has(Effect::kObserves));
  ops->Add(DatasetTransformOp("SamplingDataset",
                              "input_dataset: variant, rate: float, seed: int64, seed2: int64",
                              "Keeps each element of a dataset with probability `rate`."));
  constexpr char kRandom[] = "Creates a dataset of random numbers in [0, 2^32), without end.";
  for (const char* name : {"RandomDataset", "ExperimentalRandomDataset", "RandomDatasetV2"}) {
    OpSpec op = DatasetOp(name, kRandom);
    op.In("seed: int64, seed2: int64").Stateful().Has(Effect::kObserves);
    if (absl::string_view(name) == "RandomDatasetV2")
      op.In("seed_generator: resource").Attr("rerandomize_each_iteration: bool = false");
    WithElements(op);
    if (absl::string_view(name) != "ExperimentalRandomDataset") op.Attr(kDatasetMetadata);
    ops->Add(std::move(op));
  }
}

void AddChoices(OpRegistry* ops) {
  for (const char* prefix : kNames) {
    OpSpec directed = DatasetTransformOp(
        absl::StrCat(prefix, "DirectedInterleaveDataset"),
        "selector_input_dataset: variant, data_input_datasets: N * variant",
        "Takes each element from the dataset whose index is the selector's next element.");
    directed.Attr("N: int >= 1");
    if (!IsOld(prefix)) directed.Attr("stop_on_empty_dataset: bool = false");
    ops->Add(std::move(directed));
    OpSpec fastest = DatasetOp(absl::StrCat(prefix, "ChooseFastestDataset"),
                               "Reads the first elements of several equal datasets, and then only "
                               "from the fastest.");
    fastest.In("input_datasets: N * variant").Attr("N: int >= 2").Attr("num_experiments: int");
    ops->Add(WithElements(fastest));
  }
  OpSpec branch = DatasetOp("ChooseFastestBranchDataset",
                            "Makes the first elements by several equal functions of a dataset in "
                            "turn, and the rest by the fastest.");
  branch
      .In("input_dataset: variant, ratio_numerator: int64, ratio_denominator: int64, "
          "other_arguments: Targuments")
      .Attr("Targuments: list(type) >= 0")
      .Attr("num_elements_per_branch: int >= 1")
      .Attr("branches: list(func) >= 1")
      .Attr("other_arguments_lengths: list(int) >= 1");
  ops->Add(WithElements(branch));
}

void AddSelections(OpRegistry* ops) {
  for (const char* prefix : kNames) {
    OpSpec unique =
        DatasetTransformOp(absl::StrCat(prefix, "UniqueDataset"), "input_dataset: variant",
                           "Drops elements that are equal to an earlier one.");
    if (!IsOld(prefix)) unique.Attr(kDatasetMetadata);
    ops->Add(std::move(unique));
    ops->Add(DatasetTransformOp(absl::StrCat(prefix, "IgnoreErrorsDataset"),
                                "input_dataset: variant", "Drops elements that are errors.")
                 .Attr("log_warning: bool = false"));
    ops->Add(DatasetTransformOp(absl::StrCat(prefix, "SleepDataset"),
                                "input_dataset: variant, sleep_microseconds: int64",
                                "Waits before each element."));
    OpSpec shard = DatasetTransformOp(
        absl::StrCat(prefix, "AutoShardDataset"),
        "input_dataset: variant, num_workers: int64, index: int64",
        "Returns the elements of one of several workers. Only the policy DATA (2) divides them.",
        "auto_shard_policy: int = 0");
    if (!IsOld(prefix)) shard.Attr("num_replicas: int = 0");
    ops->Add(std::move(shard));
  }
  ops->Add(DatasetTransformOp("AssertCardinalityDataset",
                              "input_dataset: variant, cardinality: int64",
                              "Fails unless a dataset has as many elements as stated."));
}

void AddOtherBatches(OpRegistry* ops) {
  for (const char* prefix : kNames) {
    ops->Add(DatasetTransformOp(absl::StrCat(prefix, "RebatchDataset"),
                                "input_dataset: variant, num_replicas: int64",
                                "Splits each batch into as many parts as there are replicas.")
                 .Attr("use_fallback: bool = true"));
  }
  ops->Add(DatasetTransformOp("RebatchDatasetV2",
                              "input_dataset: variant, batch_sizes: int64, drop_remainder: bool",
                              "Divides the rows of all batches into batches of the given sizes, in "
                              "turn."));
}

void AddSparse(OpRegistry* ops) {
  for (const char* prefix : kNames) {
    ops->Add(DatasetTransformOp(
        absl::StrCat(prefix, "DenseToSparseBatchDataset"),
        "input_dataset: variant, batch_size: int64, row_shape: int64",
        "Creates a dataset of batches, as sparse tensors that DeserializeSparse reads."));
  }
  ops->Add(DatasetOp("SparseTensorSliceDataset",
                     "Creates a dataset whose elements are the slices of a sparse tensor along "
                     "dimension 0: indices, values and shape of each.")
               .In("indices: int64, values: Tvalues, dense_shape: int64")
               .Attr("Tvalues: type")
               .Stateful()
               .Has(Effect::kObserves));
}

void AddIndexed(OpRegistry* ops) {
  ops->Add(
      DatasetTransformOp("GlobalShuffleDataset",
                         "input_dataset: variant, seed: int64, seed2: int64, "
                         "seed_generator: resource",
                         "Returns the elements of a dataset in random order, without a buffer: "
                         "by their indices.",
                         "reshuffle_each_iteration: bool = true")
          .Attr(kDatasetMetadata)
          .Stateful()
          .Has(Effect::kObserves));
  OpSpec flat = DatasetOp("IndexFlatMapDataset",
                          "Returns rows of the results of a function of each element. Another "
                          "function of a row's index returns the index of its element, and an "
                          "offset.");
  flat.In("input_dataset: variant, map_func_other_args: Tmap_func_args, "
          "index_map_func_other_args: Tindex_map_func_args, output_cardinality: int64")
      .Attr("map_func: func")
      .Attr("index_map_func: func")
      .Attr("Tmap_func_args: list(type) >= 0")
      .Attr("Tindex_map_func_args: list(type) >= 0");
  ops->Add(WithElements(flat).Attr(kDatasetMetadata));
  OpSpec weighted =
      DatasetOp("WeightedFlatMapDataset",
                "Concatenates the first elements of several datasets, as many of each "
                "as their weights allow until one is exhausted.");
  weighted.In("input_datasets: N * variant, weights: M * double")
      .Attr("N: int >= 2")
      .Attr("M: int >= 2");
  ops->Add(WithElements(weighted).Attr(kDatasetMetadata));
}

}  // namespace

void AddDatasetTransformOps(OpRegistry* ops) {
  AddWindows(ops);
  AddGroups(ops);
  AddRandomOrders(ops);
  AddChoices(ops);
  AddSelections(ops);
  AddOtherBatches(ops);
  AddSparse(ops);
  AddIndexed(ops);
}

}  // namespace weir
