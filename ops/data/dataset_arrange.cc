#include <algorithm>
#include <limits>

#include "weir/core/graph/scope.h"
#include "weir/ops/data/dataset_build_internal.h"
#include "weir/ops/lib/array_internal.h"

// Data sets that select, reorder, combine and keep the elements of others.
namespace weir {

// ---- order and selection

Dataset Dataset::Shuffle(const Ints& buffer_size, std::optional<int64_t> seed,
                         bool reshuffle_each_iteration) const {
  if (!variant_.valid()) return {};
  Graph& graph = variant_.graph();
  const Output size = buffer_size.In(graph, "buffer_size", DT_INT64);
  const auto [seed1, seed2] = SeedTensors(graph, seed);
  return AddDataset("ShuffleDataset", {variant_, size, seed1, seed2}, spec_,
                    {{"reshuffle_each_iteration", reshuffle_each_iteration}});
}

Dataset Dataset::ShuffleAndRepeat(const Ints& buffer_size, const Ints& count,
                                  std::optional<int64_t> seed) const {
  if (!variant_.valid()) return {};
  Graph& graph = variant_.graph();
  const Output size = buffer_size.In(graph, "buffer_size", DT_INT64);
  const Output times = count.In(graph, "count", DT_INT64);
  const auto [seed1, seed2] = SeedTensors(graph, seed);
  return AddDataset("ShuffleAndRepeatDataset", {variant_, size, seed1, seed2, times}, spec_);
}

namespace {

Dataset AddCounted(const Dataset& dataset, absl::string_view op, const Ints& count) {
  if (!dataset.variant().valid()) return {};
  const Output number = count.In(dataset.variant().graph(), "count", DT_INT64);
  return AddDataset(op, {dataset.variant(), number}, dataset.element_spec());
}

}  // namespace

Dataset Dataset::Repeat(const Ints& count) const {
  return AddCounted(*this, "RepeatDataset", count);
}
Dataset Dataset::Take(const Ints& count) const { return AddCounted(*this, "TakeDataset", count); }
Dataset Dataset::Skip(const Ints& count) const { return AddCounted(*this, "SkipDataset", count); }

Dataset Dataset::Shard(const Ints& num_shards, const Ints& index) const {
  if (!variant_.valid()) return {};
  Graph& graph = variant_.graph();
  const Output shards = num_shards.In(graph, "num_shards", DT_INT64);
  return AddDataset("ShardDataset", {variant_, shards, index.In(graph, "index", DT_INT64)}, spec_);
}

Dataset Dataset::Concatenate(const Dataset& other) const {
  const auto spec = CommonSpec("Concatenate", {*this, other});
  if (!spec) return {};
  return AddDataset("ConcatenateDataset", {variant_, other.variant_}, *spec);
}

Dataset Dataset::Enumerate(const Ints& start) const {
  if (!variant_.valid()) return {};
  const Dataset numbers = Range(variant_.graph(), start, std::numeric_limits<int64_t>::max());
  return Zip({ReplicateOnSplit(numbers), *this});
}

Dataset Dataset::Unique() const {
  if (!variant_.valid()) return {};
  const DataType type = types()[0];
  if (types().size() != 1 || (type != DT_INT32 && type != DT_INT64 && type != DT_STRING)) {
    variant_.graph().Fail(InvalidArgument(
        "Unique: expected one component of type int32, int64 or string, but elements are ",
        TypesText(types())));
    return {};
  }
  return AddDataset("UniqueDataset", {variant_}, spec_);
}

Dataset Dataset::IgnoreErrors(bool log_warning) const {
  return AddDataset("IgnoreErrorsDataset", {variant_}, spec_, {{"log_warning", log_warning}});
}

// ---- several data sets

Dataset Dataset::Zip(const std::vector<Dataset>& datasets) {
  if (!AllValid(datasets)) return {};
  ElementSpec spec;
  Outputs variants;
  for (const Dataset& dataset : datasets) {
    variants.push_back(dataset.variant_);
    spec.types.insert(spec.types.end(), dataset.types().begin(), dataset.types().end());
    spec.shapes.insert(spec.shapes.end(), dataset.shapes().begin(), dataset.shapes().end());
  }
  return AddDataset("ZipDataset", {variants}, spec);
}

namespace {

Dataset AddChoice(absl::string_view method, const Dataset& selector,
                  const std::vector<Dataset>& datasets, bool stop_on_empty_dataset) {
  const auto spec = CommonSpec(method, datasets);
  if (!spec) return {};
  Outputs variants;
  for (const Dataset& dataset : datasets) variants.push_back(dataset.variant());
  return AddDataset("DirectedInterleaveDataset", {selector.variant(), variants}, *spec,
                    {{"stop_on_empty_dataset", stop_on_empty_dataset}});
}

// Draws the index of one of `count` data sets. `args`: two random numbers as seeds, and the
// logarithms of the weights unless these are equal.
Output DrawIndex(const Outputs& args, size_t count) {
  Graph& body = args[0].graph();
  const NodeScope scope(body, {}, "StatelessMultinomial");
  Output logits;
  if (args.size() > 1) {
    logits = args[1];
  } else {
    Tensor equal(DT_FLOAT, Shape({1, static_cast<int64_t>(count)}));
    std::fill_n(equal.data<float>(), count, 1.0f);
    logits = Const(body, std::move(equal), "logits");
  }
  const Output once = Const(body, 1, "num_samples");
  return AddOp("StatelessMultinomial", {logits, once, args[0]}, {}, scope.name());
}

}  // namespace

Dataset Dataset::ChooseFromDatasets(const std::vector<Dataset>& datasets, const Dataset& choices,
                                    bool stop_on_empty_dataset) {
  if (!AllValid(datasets) || !choices.variant_.valid()) return {};
  if (choices.types() != DataTypes{DT_INT64} || !choices.shapes()[0].IsCompatibleWith(Shape())) {
    choices.variant_.graph().Fail(
        InvalidArgument("ChooseFromDatasets: the choices must be int64 scalars, but they are ",
                        TypesText(choices.types())));
    return {};
  }
  return AddChoice("ChooseFromDatasets", ReplicateOnSplit(choices), datasets,
                   stop_on_empty_dataset);
}

Dataset Dataset::SampleFromDatasets(const std::vector<Dataset>& datasets,
                                    std::vector<float> weights, std::optional<int64_t> seed,
                                    bool stop_on_empty_dataset) {
  if (!AllValid(datasets)) return {};
  Graph& graph = datasets[0].variant_.graph();
  if (!weights.empty() && weights.size() != datasets.size()) {
    graph.Fail(InvalidArgument("SampleFromDatasets: ", weights.size(), " weights for ",
                               datasets.size(), " data sets; expected as many"));
    return {};
  }
  // A data set that is never chosen would keep the result from ending.
  std::vector<Dataset> sampled;
  std::vector<float> positive;
  for (size_t i = 0; i < datasets.size(); ++i) {
    if (!weights.empty() && !(weights[i] > 0)) continue;
    sampled.push_back(datasets[i]);
    positive.push_back(weights.empty() ? 1.0f : weights[i]);
  }
  if (sampled.empty()) return datasets[0].Take(0);
  if (sampled.size() == 1) return sampled[0];
  Outputs captured;
  if (!weights.empty())
    captured.push_back(ExpandDims(Log(Const(graph, positive, "weights"), "logits"), 0));
  const Dataset seeds = Random(graph, seed).Batch(2);
  if (!seeds.variant_.valid()) return {};
  const auto select =
      TraceFunction(graph, "Dataset_map_select_dataset_constant_logits", seeds.spec_, captured,
                    [&](const Outputs& args) {
                      return Outputs{Squeeze(DrawIndex(args, sampled.size()), {0, 1})};
                    });
  if (!select) return {};
  const Dataset selector = AddDataset(
      "MapDataset", {seeds.variant_, captured}, select->results,
      {{"f", select->ref}, {"use_inter_op_parallelism", false}, {"preserve_cardinality", true}});
  return AddChoice("SampleFromDatasets", selector, sampled, stop_on_empty_dataset);
}

// ---- computing ahead and keeping elements

Dataset Dataset::Prefetch(const Ints& buffer_size) const {
  if (!variant_.valid()) return {};
  const Output size = buffer_size.In(variant_.graph(), "buffer_size", DT_INT64);
  const ColocateWith input(variant_.graph(), variant_);
  return AddDataset("PrefetchDataset", {variant_, size}, spec_, {{"legacy_autotune", false}});
}

Dataset Dataset::Cache(const TensorArg& filename) const {
  if (!variant_.valid()) return {};
  const Output file = filename.In(variant_.graph(), DT_STRING, "filename");
  return AddDataset("CacheDataset", {variant_, file}, spec_);
}

namespace {

// Traces a function that reads the files of a snapshot, which are data sets, one after the other.
std::optional<TracedFunction> TraceReader(Graph& graph, absl::string_view name,
                                          const ElementSpec& spec) {
  return TraceDatasetFunction(graph, name, {{DT_VARIANT}, {Shape()}}, {}, [&](const Outputs& args) {
    // The elements of `args` are data sets of elements.
    const Dataset files = Dataset::FromVariant(args[0], {{DT_VARIANT}, {Shape()}});
    return files.FlatMap([&](const Outputs& file) { return Dataset::FromVariant(file[0], spec); });
  });
}

}  // namespace

Dataset Dataset::Snapshot(const TensorArg& path, absl::string_view compression) const {
  const Dataset numbered = Enumerate();
  if (!numbered.variant_.valid()) return {};
  Graph& graph = variant_.graph();
  const auto reader = TraceReader(graph, "Dataset_snapshot_reader_lambda", numbered.spec_);
  const auto shard =
      TraceScalarFunction(graph, "Dataset_snapshot_shard_lambda", numbered.spec_, {}, DT_INT64,
                          [](const Outputs& args) { return Const(args[0].graph(), int64_t{0}); });
  if (!reader || !shard) return {};
  Dataset kept;
  {
    const NodeScope scope(graph, {}, "SnapshotDatasetV2");
    const Output folder = path.In(graph, DT_STRING, "path");
    kept = FromVariant(AddOp("SnapshotDatasetV2", {numbered.variant_, folder, Outputs(), Outputs()},
                             ElementAttrs(numbered.spec_, {{"compression", compression},
                                                           {"reader_func", reader->ref},
                                                           {"shard_func", shard->ref}}),
                             scope.name()),
                       numbered.spec_);
  }
  return kept.Map(
      [](const Outputs& element) { return Outputs(element.begin() + 1, element.end()); });
}

Operation Dataset::Save(const TensorArg& path, absl::string_view compression) const {
  if (!variant_.valid()) return {};
  Graph& graph = variant_.graph();
  const Output folder = path.In(graph, DT_STRING, "path");
  const auto shard =
      TraceFunction(graph, "save_lambda", spec_, {}, [](const Outputs&) { return Outputs(); });
  if (!shard) return {};
  return Operation(AddNode(
      "SaveDataset", {variant_, folder, Outputs()},
      {{"compression", compression}, {"shard_func", shard->ref}, {"use_shard_func", false}}));
}

Dataset Dataset::Load(Graph& graph, const TensorArg& path, ElementSpec spec,
                      absl::string_view compression) {
  const auto reader = TraceReader(graph, "load_lambda", spec);
  if (!reader) return FromVariant(Output(), std::move(spec));
  const NodeScope scope(graph, {}, "LoadDataset");
  const Output folder = path.In(graph, DT_STRING, "path");
  return FromVariant(
      AddOp("LoadDataset", {folder, Outputs()},
            ElementAttrs(spec, {{"compression", compression}, {"reader_func", reader->ref}}),
            scope.name()),
      spec);
}

// ---- without an iterator

Output Dataset::Cardinality() const { return AddOp("DatasetCardinality", {variant_}); }

Outputs Dataset::GetSingleElement() const {
  return AllOutputs(AddNode("DatasetToSingleElement", {variant_}, ElementAttrs(spec_)),
                    spec_.types.size());
}

}  // namespace weir
