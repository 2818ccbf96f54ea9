#include <limits>

#include "absl/strings/str_cat.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/data/dataset_build_internal.h"
#include "weir/ops/lib/array_internal.h"

// Data sets that combine several elements of one data set: batches, windows, groups.
namespace weir {

Dataset Dataset::Batch(const Ints& batch_size, bool drop_remainder,
                       const ParallelOptions& options) const {
  if (!variant_.valid()) return {};
  Graph& graph = variant_.graph();
  const Output size = batch_size.In(graph, "batch_size", DT_INT64);
  const Output drop = Const(graph, drop_remainder, "drop_remainder");
  const ElementSpec spec = {
      spec_.types, BatchedShapes(spec_.shapes, drop_remainder ? LiteralValue(batch_size) : -1)};
  if (!options.num_parallel_calls)
    return AddDataset("BatchDatasetV2", {variant_, size, drop}, spec);
  const Output calls = options.num_parallel_calls->In(graph, "num_parallel_calls", DT_INT64);
  return AddDataset("ParallelBatchDataset", {variant_, size, calls, drop}, spec,
                    {{"deterministic", DeterminismAttr(options.deterministic)}});
}

// ---- padded batches

namespace {

// Returns an error unless each shape pads values of the component's shape.
absl::Status CheckPaddedShapes(const std::vector<Shape>& padded, const ElementSpec& spec) {
  if (padded.size() != spec.shapes.size()) {
    return InvalidArgument("PaddedBatch: ", padded.size(), " padded shapes for ",
                           spec.shapes.size(), " components");
  }
  for (size_t i = 0; i < padded.size(); ++i) {
    const Shape &to = padded[i], &from = spec.shapes[i];
    bool fits = to.has_rank() && (!from.has_rank() || from.rank() == to.rank());
    for (int d = 0; fits && d < from.rank(); ++d)
      fits = to.dim(d) < 0 || from.dim(d) < 0 || from.dim(d) <= to.dim(d);
    if (fits) continue;
    return InvalidArgument("PaddedBatch: The padded shape ", to.ToString(),
                           " is not compatible with the shape ", from.ToString(),
                           " of the corresponding input component ", i,
                           ". Padded shapes have a rank, and dimensions that are not smaller");
  }
  return absl::OkStatus();
}

// Returns the scalars that pad the components.
absl::StatusOr<Outputs> PaddingValues(Graph& graph, const Outputs& given, const DataTypes& types) {
  if (!given.empty() && given.size() != types.size()) {
    return InvalidArgument("PaddedBatch: ", given.size(), " padding values for ", types.size(),
                           " components");
  }
  Outputs values;
  for (size_t i = 0; i < types.size(); ++i) {
    if (given.empty() || !given[i].valid()) {
      if (types[i] == DT_STRING) {
        values.push_back(Const(graph, "", "padding_value"));
        continue;
      }
      WEIR_ASSIGN_OR_RETURN(Tensor zero, ScalarTensor(types[i], 0));
      values.push_back(Const(graph, std::move(zero), "padding_value"));
    } else if (given[i].dtype() == types[i] && given[i].shape().IsCompatibleWith(Shape())) {
      values.push_back(given[i]);
    } else {
      return InvalidArgument("PaddedBatch: The padding value of component ", i, " must be a ",
                             DataTypeName(types[i]), " scalar, but ", given[i].name(), " is ",
                             DataTypeName(given[i].dtype()), " of shape ",
                             given[i].shape().ToString());
    }
  }
  return values;
}

// `padded_shapes`: one int64 vector per component. `shapes`: what is known of them.
Dataset PaddedBatchTo(const Dataset& dataset, const Output& batch_size,
                      const Outputs& padded_shapes, std::vector<Shape> shapes, int64_t static_batch,
                      const PaddedBatchOptions& options) {
  Graph& graph = dataset.variant().graph();
  absl::StatusOr<Outputs> values = PaddingValues(graph, options.padding_values, dataset.types());
  if (!values.ok()) {
    graph.Fail(values.status());
    return {};
  }
  const Output drop = Const(graph, options.drop_remainder, "drop_remainder");
  shapes = BatchedShapes(shapes, options.drop_remainder ? static_batch : -1);
  return Dataset::FromVariant(
      AddOp("PaddedBatchDatasetV2",
            {dataset.variant(), batch_size, padded_shapes, *std::move(values), drop},
            {{"output_shapes", shapes}}),
      {dataset.types(), shapes});
}

}  // namespace

Dataset Dataset::PaddedBatch(const Ints& batch_size, const PaddedBatchOptions& options) const {
  if (!variant_.valid()) return {};
  Graph& graph = variant_.graph();
  const std::vector<Shape>& padded = options.padded_shapes ? *options.padded_shapes : spec_.shapes;
  if (const absl::Status status = CheckPaddedShapes(padded, spec_); !status.ok()) {
    graph.Fail(status);
    return {};
  }
  const Output size = batch_size.In(graph, "batch_size", DT_INT64);
  Outputs shapes;
  for (const Shape& shape : padded)
    shapes.push_back(Const(graph, Tensor::Vector<int64_t>(shape.dims())));
  return PaddedBatchTo(*this, size, shapes, padded, LiteralValue(batch_size), options);
}

namespace {

// TensorFlow passes the elements of these data sets through a function, which there makes dense and
// other tensors alike.
Dataset Normalized(const Dataset& dataset) {
  if (!dataset.variant().valid()) return {};
  const auto f =
      TraceFunction(dataset.variant().graph(), "Dataset_map_normalize", dataset.element_spec(), {},
                    [](const Outputs& args) { return args; });
  if (!f) return {};
  return AddDataset("MapDataset", {dataset.variant(), Outputs()}, dataset.element_spec(),
                    {{"f", f->ref}});
}

}  // namespace

Dataset Dataset::Unbatch() const {
  ElementSpec rows = spec_;
  for (size_t i = 0; i < rows.shapes.size(); ++i) {
    Shape& shape = rows.shapes[i];
    if (shape.rank() == 0 && variant_.valid()) {
      variant_.graph().Fail(InvalidArgument(
          "Unbatch: Cannot unbatch an input with scalar components, such as component ", i));
      return {};
    }
    if (shape.has_rank() && shape.rank() > 0) shape.RemoveDim(0);
  }
  const Dataset normal = Normalized(*this);
  if (!normal.variant().valid()) return {};
  return AddDataset("UnbatchDataset", {normal.variant()}, rows);
}

Dataset Dataset::Rebatch(const Ints& batch_sizes, bool drop_remainder) const {
  ElementSpec spec = spec_;
  for (size_t i = 0; i < spec.shapes.size(); ++i) {
    Shape& shape = spec.shapes[i];
    if (shape.rank() == 0 && variant_.valid()) {
      variant_.graph().Fail(
          InvalidArgument("Rebatch: elements must be batches, but component ", i, " is a scalar"));
      return {};
    }
    if (shape.has_rank() && shape.rank() > 0)
      shape.set_dim(0, drop_remainder ? LiteralValue(batch_sizes) : -1);
  }
  const Dataset normal = Normalized(*this);
  if (!normal.variant().valid()) return {};
  Graph& graph = variant_.graph();
  const NodeScope scope(graph, {}, "RebatchDatasetV2");
  const Output sizes = batch_sizes.In(graph, "batch_sizes", DT_INT64);
  const Output drop = Const(graph, drop_remainder, "drop_remainder");
  return FromVariant(
      AddOp("RebatchDatasetV2", {normal.variant(), sizes, drop}, ElementAttrs(spec), scope.name()),
      spec);
}

// ---- windows and groups

Dataset Dataset::Window(const Ints& size, std::optional<Ints> shift, const Ints& stride,
                        bool drop_remainder) const {
  if (!variant_.valid()) return {};
  Graph& graph = variant_.graph();
  const Output n = size.In(graph, "size", DT_INT64);
  const Output by = shift.value_or(size).In(graph, "shift", DT_INT64);
  const Output apart = stride.In(graph, "stride", DT_INT64);
  const Output drop = Const(graph, drop_remainder, "drop_remainder");
  const size_t components = spec_.types.size();
  return AddDataset("WindowDataset", {variant_, n, by, apart, drop},
                    {DataTypes(components, DT_VARIANT), std::vector<Shape>(components)});
}

namespace {

// The functions of a GroupByWindow, with the tensors that they capture.
struct GroupFunctions {
  KeyFn key;
  DatasetFn reduce;   // of the key, the group and `captured`
  KeyFn window_size;  // of the key and `captured`
  Outputs captured = {};
};

Dataset AddGroups(const Dataset& dataset, absl::string_view reduce_name,
                  const GroupFunctions& functions) {
  Graph& graph = dataset.variant().graph();
  const auto name = [](absl::string_view function) {
    return absl::StrCat("Dataset_group_by_window_", function);
  };
  const auto key = TraceScalarFunction(graph, name("key_func_wrapper"), dataset.element_spec(), {},
                                       DT_INT64, functions.key);
  const auto reduce =
      TraceDatasetFunction(graph, name(reduce_name), {{DT_INT64, DT_VARIANT}, {Shape(), Shape()}},
                           functions.captured, functions.reduce);
  const auto size =
      TraceScalarFunction(graph, name("window_size_func_wrapper"), {{DT_INT64}, {Shape()}},
                          functions.captured, DT_INT64, functions.window_size);
  if (!key || !reduce || !size) return {};
  return AddDataset(
      "GroupByWindowDataset",
      {dataset.variant(), Outputs(), functions.captured, functions.captured}, reduce->results,
      {{"key_func", key->ref}, {"reduce_func", reduce->ref}, {"window_size_func", size->ref}});
}

}  // namespace

Dataset Dataset::GroupByWindow(const KeyFn& key, const GroupFn& reduce, int64_t window_size) const {
  return GroupByWindow(key, reduce, [=](const Output& k) { return Const(k.graph(), window_size); });
}

Dataset Dataset::GroupByWindow(const KeyFn& key, const GroupFn& reduce,
                               const std::function<Output(Output key)>& window_size) const {
  if (!variant_.valid()) return {};
  DatasetFn reduce_group;
  if (reduce != nullptr) {
    reduce_group = [&](const Outputs& args) {
      return reduce(args[0], FromVariant(args[1], spec_));
    };
  }
  KeyFn size;
  if (window_size != nullptr) size = [&](const Outputs& args) { return window_size(args[0]); };
  return AddGroups(*this, "lambda", {key, reduce_group, size});
}

// ---- buckets

namespace {

// The number of the bucket of a length: the first whose limits hold it.
Output BucketOf(const Output& length, const std::vector<int32_t>& boundaries) {
  using Limits = std::numeric_limits<int32_t>;
  std::vector<int32_t> lower = boundaries, upper = boundaries;
  lower.insert(lower.begin(), Limits::min());
  upper.push_back(Limits::max());
  const Output is_inside = LogicalAnd(LessEqual(Tensor::Vector<int32_t>(lower), length),
                                      Less(length, Tensor::Vector<int32_t>(upper)));
  return ReduceMin(Where(is_inside));
}

Output ElementAt(const Output& vector, const Output& index) {
  return StridedSlice(vector, {Index(index)});
}

// Returns one less than the boundary of a bucket. Fails the step if the bucket has none.
Output PaddedLength(const Output& bucket, const std::vector<int32_t>& boundaries) {
  Graph& graph = bucket.graph();
  const Output is_bounded = Less(bucket, static_cast<int64_t>(boundaries.size()));
  const Output message = Const(graph,
                               "When pad_to_bucket_boundary=True, elements must have length < "
                               "max(bucket_boundaries).");
  const Operation check(AddNode("Assert", {is_bounded, Outputs{message, bucket}}));
  const ControlDependencies after(graph, {check});
  const std::vector<int64_t> lengths(boundaries.begin(), boundaries.end());
  return ElementAt(Const(graph, lengths), Identity(bucket)) - int64_t{1};
}

Dataset BatchOfBucket(const Outputs& args, const ElementSpec& spec,
                      const std::vector<int32_t>& boundaries, const BucketOptions& options) {
  const Dataset group = Dataset::FromVariant(args[1], spec);
  Graph& graph = args[0].graph();
  const Output size = ElementAt(args[2], args[0]);
  if (options.no_padding) return group.Batch(size, options.batch.drop_remainder);
  if (!options.pad_to_bucket_boundary) return group.PaddedBatch(size, options.batch);
  const std::vector<Shape>& padded =
      options.batch.padded_shapes ? *options.batch.padded_shapes : spec.shapes;
  if (const absl::Status status = CheckPaddedShapes(padded, spec); !status.ok()) {
    graph.Fail(status);
    return {};
  }
  const Output length = PaddedLength(args[0], boundaries);
  Outputs shapes;
  for (const Shape& shape : padded) {
    Outputs dims;
    for (const int64_t dim : shape.dims()) dims.push_back(dim < 0 ? length : Const(graph, dim));
    shapes.push_back(dims.empty() ? Const(graph, std::vector<int64_t>()) : Stack(dims));
  }
  return PaddedBatchTo(group, size, shapes, padded, -1, options.batch);
}

}  // namespace

Dataset Dataset::BucketBySequenceLength(const KeyFn& length, const std::vector<int32_t>& boundaries,
                                        const std::vector<int64_t>& batch_sizes,
                                        const BucketOptions& options) const {
  if (!variant_.valid()) return {};
  Graph& graph = variant_.graph();
  if (batch_sizes.size() != boundaries.size() + 1) {
    graph.Fail(
        InvalidArgument("BucketBySequenceLength: there must be one more batch size than "
                        "boundaries, but there are ",
                        batch_sizes.size(), " sizes and ", boundaries.size(), " boundaries"));
    return {};
  }
  const Output sizes = Const(graph, batch_sizes);
  KeyFn bucket;
  if (length != nullptr) {
    bucket = [&](const Outputs& element) { return BucketOf(length(element), boundaries); };
  }
  return AddGroups(
      *this, "batching_fn",
      {bucket,
       [&](const Outputs& args) { return BatchOfBucket(args, spec_, boundaries, options); },
       [](const Outputs& args) { return ElementAt(args[1], args[0]); },
       {sizes}});
}

}  // namespace weir
