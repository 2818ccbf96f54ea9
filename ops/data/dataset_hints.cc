#include "absl/strings/str_cat.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/data/dataset_internal.h"

// Hints on how to compute a dataset, and the resources that they name.
namespace weir {

namespace {

OpSpec ResourceOp(absl::string_view name, absl::string_view doc) {
  OpSpec op(name);
  op.Stateful().InferShape(ScalarShape).NotDifferentiable().Doc(doc);
  return op;
}

void AddHintResources(OpRegistry* ops) {
  for (const char* name : {"ThreadPoolHandle", "ExperimentalThreadPoolHandle"}) {
    ops->Add(ResourceOp(name,
                        "Returns a handle for ThreadPoolDataset. No threads are started: all "
                        "datasets share the session's.")
                 .Out("handle: resource")
                 .Attr("num_threads: int")
                 .Attr("max_intra_op_parallelism: int = 1")
                 .Attr("display_name: string")
                 .Attr("container: string = ''")
                 .Attr("shared_name: string = ''"));
  }
  for (const char* name :
       {"StatsAggregatorHandle", "ExperimentalStatsAggregatorHandle", "StatsAggregatorHandleV2"}) {
    ops->Add(ResourceOp(name, "Returns a handle for SetStatsAggregatorDataset.")
                 .Out("handle: resource")
                 .Attr("container: string = ''")
                 .Attr("shared_name: string = ''"));
  }
  for (const char* name : {"StatsAggregatorSummary", "ExperimentalStatsAggregatorSummary"}) {
    ops->Add(ResourceOp(name,
                        "Returns a serialized Summary without values: nothing collects "
                        "statistics of datasets.")
                 .In("iterator: resource")
                 .Out("summary: string"));
  }
  ops->Add(ResourceOp("StatsAggregatorSetSummaryWriter",
                      "Checks its argument: nothing collects statistics of datasets.")
               .In("stats_aggregator: resource, summary: resource")
               .InferShape(NoOutputs));
}

void AddTransparentOps(OpRegistry* ops) {
  ops->Add(DatasetTransformOp("PrefetchDataset", "input_dataset: variant, buffer_size: int64",
                              "Prefetches up to `buffer_size` elements of a dataset.")
               .Attr("slack_period: int = 0")
               .Attr("legacy_autotune: bool = true")
               .Attr("buffer_size_min: int = 0")
               .Attr(kDatasetMetadata));
  ops->Add(DatasetTransformOp("OptionsDataset", "input_dataset: variant",
                              "Returns the dataset unchanged: the options affect only performance.",
                              "serialized_options: string")
               .Attr(kDatasetMetadata));
  constexpr char kThreads[] =
      "Returns the dataset unchanged: all datasets share the session's threads.";
  for (const char* prefix : {"", "Experimental"}) {
    ops->Add(DatasetTransformOp(absl::StrCat(prefix, "MaxIntraOpParallelismDataset"),
                                "input_dataset: variant, max_intra_op_parallelism: int64",
                                kThreads));
    ops->Add(DatasetTransformOp(absl::StrCat(prefix, "PrivateThreadPoolDataset"),
                                "input_dataset: variant, num_threads: int64", kThreads));
    ops->Add(DatasetTransformOp(absl::StrCat(prefix, "ThreadPoolDataset"),
                                "input_dataset: variant, thread_pool: resource", kThreads)
                 .Stateful()
                 .Has(Effect::kObserves));
    ops->Add(DatasetTransformOp(
                 absl::StrCat(prefix, "SetStatsAggregatorDataset"),
                 "input_dataset: variant, stats_aggregator: resource, tag: string, "
                 "counter_prefix: string",
                 "Returns the dataset unchanged: there is nothing that collects statistics.")
                 .Stateful()
                 .Has(Effect::kObserves));
  }
  ops->Add(
      DatasetTransformOp("OptimizeDataset", "input_dataset: variant, optimizations: string",
                         "Returns the dataset unchanged: optimizations do not change its elements.")
          .Attr("optimization_configs: list(string) = []"));
  ops->Add(
      DatasetTransformOp("OptimizeDatasetV2",
                         "input_dataset: variant, optimizations_enabled: string, "
                         "optimizations_disabled: string, optimizations_default: string",
                         "Returns the dataset unchanged: optimizations do not change its elements.")
          .Attr("optimization_configs: list(string) = []"));
  ops->Add(
      DatasetTransformOp("RewriteDataset", "input_dataset: variant, rewrite_name: string",
                         "Returns the dataset unchanged: rewrites do not change its elements."));
  ops->Add(DatasetTransformOp("FinalizeDataset", "input_dataset: variant",
                              "Returns the dataset unchanged: there are no options to apply.",
                              "has_captured_ref: bool = false"));
  for (const char* name : {"NonSerializableDataset", "ExperimentalNonSerializableDataset"}) {
    ops->Add(DatasetTransformOp(name, "input_dataset: variant",
                                "Returns the dataset unchanged: no dataset is serialized."));
  }
  for (const char* name :
       {"LatencyStatsDataset", "BytesProducedStatsDataset", "ExperimentalLatencyStatsDataset",
        "ExperimentalBytesProducedStatsDataset"}) {
    ops->Add(DatasetTransformOp(
        name, "input_dataset: variant, tag: string",
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

}  // namespace

void AddDatasetHintOps(OpRegistry* ops) {
  AddTransparentOps(ops);
  AddHintResources(ops);
}

}  // namespace weir
