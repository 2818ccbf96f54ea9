#include <string>
#include <utility>

#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/data/iterator_handle.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Hints on how to compute a dataset, which do not change its elements, and the resources that they
// name.
namespace weir {

namespace {

// Appends the node's options to those of the input.
absl::StatusOr<Kernel> MakeOptions(const KernelInit& init) {
  return Kernel([options = init.attr<std::string>("serialized_options")](KernelContext& c) {
    const absl::StatusOr<DatasetPtr> input = DatasetIn(c.input(0));
    if (!input.ok()) return input.status();
    DatasetTraits traits = (*input)->traits();
    traits.options += options;
    const auto iterate = [input = *input] { return input->Iterate(); };
    c.SetOutput(0, DatasetTensor(DatasetOf(iterate, std::move(traits))));
    return absl::OkStatus();
  });
}

absl::StatusOr<Kernel> MakeModel(const KernelInit& init) {
  for (const auto& [name, attr] :
       {std::pair("CPU", "cpu_budget"), std::pair("RAM", "ram_budget")}) {
    const auto budget = init.attr<int64_t>(attr);
    if (budget < 0) return InvalidArgument(name, " budget must be positive but is ", budget, ".");
  }
  return Kernel([](KernelContext& c) { return SameDataset(c); });
}

absl::Status CheckThreads(absl::string_view name, int64_t count) {
  if (count < 0) return InvalidArgument("`", name, "` must be >= 0, not ", count);
  constexpr int64_t kThreadLimit = 65536;
  if (name == "num_threads" && count >= kThreadLimit)
    return InvalidArgument("`num_threads` must be < ", kThreadLimit, ", not ", count);
  return absl::OkStatus();
}

absl::Status ThreadsDataset(KernelContext& c) {
  const std::string& name = c.node().op().inputs()[1].name;
  WEIR_ASSIGN_OR_RETURN(const int64_t count, ReadInt(c.input(1), name));
  WEIR_RETURN_IF_ERROR(CheckThreads(name, count));
  return SameDataset(c);
}

// The arguments behind the dataset are hints of this rank.
template <int kRank>
absl::Status HintedDataset(KernelContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    const std::string& name = c.node().op().inputs()[static_cast<size_t>(i)].name;
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(i), kRank, name));
  }
  return SameDataset(c);
}

// ---- threads and statistics: all datasets share the session's threads, and none collects
// statistics

struct ThreadPoolHint final : public Resource {
  std::string Describe() const override { return "thread pool of datasets"; }
};
struct StatsAggregator final : public Resource {
  std::string Describe() const override { return "statistics of datasets"; }
};

template <class T>
absl::StatusOr<Kernel> MakeHintHandle(const KernelInit& init) {
  return MakeHandleKernel<T>(init, [](const ResourceName&) { return std::make_shared<T>(); });
}

absl::StatusOr<Kernel> MakeThreadPool(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int64_t count, NarrowAttr(init.node, "num_threads"));
  WEIR_RETURN_IF_ERROR(CheckThreads("num_threads", count));
  WEIR_RETURN_IF_ERROR(NarrowAttr(init.node, "max_intra_op_parallelism").status());
  return MakeHintHandle<ThreadPoolHint>(init);
}

// The dataset with a resource at input 1; texts follow.
template <class T>
absl::Status ResourceHint(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(c.resource<T>(1).status());
  for (int i = 2; i < c.num_inputs(); ++i) {
    const std::string& name = c.node().op().inputs()[static_cast<size_t>(i)].name;
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(i), 0, name));
  }
  return SameDataset(c);
}

// A summary without values.
absl::Status StatsSummary(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(0), 0, "resource_handle"));
  WEIR_RETURN_IF_ERROR(c.resource<StatsAggregator>(0).status());
  c.SetOutput(0, Tensor::Scalar(std::string()));
  return absl::OkStatus();
}

absl::Status SetStatsWriter(KernelContext& c) {
  for (int i = 0; i < 2; ++i) {
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(i), 0, "resource_handle"));
  }
  return c.resource<StatsAggregator>(0).status();
}

}  // namespace

void AddDatasetHintKernels(KernelRegistry* r) {
  for (const char* op :
       {"ExperimentalNonSerializableDataset", "FinalizeDataset", "NonSerializableDataset"})
    r->Add(op, kCpu, SameDataset);
  for (const char* op :
       {"BytesProducedStatsDataset", "ExperimentalBytesProducedStatsDataset",
        "ExperimentalLatencyStatsDataset", "LatencyStatsDataset", "RewriteDataset"})
    r->Add(op, kCpu, HintedDataset<0>);
  r->Add("ModelDataset", kCpu, MakeModel);
  r->Add("OptionsDataset", kCpu, MakeOptions);
  for (const char* op :
       {"ExperimentalMaxIntraOpParallelismDataset", "ExperimentalPrivateThreadPoolDataset",
        "MaxIntraOpParallelismDataset", "PrivateThreadPoolDataset"})
    r->Add(op, kCpu, ThreadsDataset);
  for (const char* op : {"OptimizeDataset", "OptimizeDatasetV2"})
    r->Add(op, kCpu, HintedDataset<1>);
  for (const char* op : {"ExperimentalSetStatsAggregatorDataset", "SetStatsAggregatorDataset"})
    r->Add(op, kCpu, ResourceHint<StatsAggregator>);
  for (const char* op :
       {"ExperimentalStatsAggregatorHandle", "StatsAggregatorHandle", "StatsAggregatorHandleV2"})
    r->Add(op, kCpu, MakeHintHandle<StatsAggregator>);
  for (const char* op : {"ExperimentalStatsAggregatorSummary", "StatsAggregatorSummary"})
    r->Add(op, kCpu, StatsSummary);
  r->Add("StatsAggregatorSetSummaryWriter", kCpu, SetStatsWriter);
  for (const char* op : {"ExperimentalThreadPoolDataset", "ThreadPoolDataset"})
    r->Add(op, kCpu, ResourceHint<ThreadPoolHint>);
  for (const char* op : {"ExperimentalThreadPoolHandle", "ThreadPoolHandle"})
    r->Add(op, kCpu, MakeThreadPool);
}

}  // namespace weir
