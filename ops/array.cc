#include "weir/ops/array.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "weir/core/scope.h"
#include "weir/ops/array_internal.h"

namespace weir {

namespace {

// The name scope that a Python wrapper opens under the name of its last node. Literals are created
// inside the scope; the node itself is named `name()`.
class NodeScope : public NameScope {
 public:
  NodeScope(Graph& graph, absl::string_view name, absl::string_view fallback)
      : NameScope(graph, name.empty() ? fallback : name) {}
};

Tensor IntTensor(const std::vector<int64_t>& values, DataType dtype, const Shape& shape) {
  if (dtype == DT_INT64) return Tensor::Of<int64_t>(shape, absl::Span<const int64_t>(values));
  std::vector<int32_t> narrow(values.begin(), values.end());
  return Tensor::Of<int32_t>(shape, absl::Span<const int32_t>(narrow));
}

// Returns the dtype for literals among several integer arguments. As in Python, it is the dtype of
// a tensor among them.
DataType TypeAmong(std::initializer_list<const Ints*> args) {
  for (const Ints* a : args) {
    if (a->is_tensor()) return a->tensor().dtype();
  }
  return DT_INVALID;
}

Output WithInts(absl::string_view op, Output x, absl::string_view argument, const Ints& ints,
                absl::string_view name, Attrs attrs = {}, absl::string_view default_name = {}) {
  if (!x.valid()) return {};
  NodeScope scope(x.graph(), name, default_name.empty() ? op : default_name);
  return AddOp(op, {x, ints.In(x.graph(), argument)}, attrs, scope.name());
}

Output WithTwoInts(absl::string_view op, Output x, absl::string_view name1, const Ints& ints1,
                   absl::string_view name2, const Ints& ints2, absl::string_view name,
                   bool same_type) {
  if (!x.valid()) return {};
  NodeScope scope(x.graph(), name, op);
  const DataType type = same_type ? TypeAmong({&ints1, &ints2}) : DT_INVALID;
  const Output first = ints1.In(x.graph(), name1, type);
  return AddOp(op, {x, first, ints2.In(x.graph(), name2, type)}, {}, scope.name());
}

// Returns a tensor filled with the single element of `element`.
Tensor FilledTensor(const Tensor& element, const Shape& shape) {
  Tensor all(element.dtype(), shape);
  if (element.dtype() == DT_STRING) return all;
  const size_t size = ElementSize(element.dtype());
  for (int64_t i = 0; i < all.num_elements(); ++i) {
    std::memcpy(static_cast<char*>(all.raw()) + i * size, element.raw(), size);
  }
  return all;
}

Output ConstOrFill(Graph& graph, const Ints& shape, DataType dtype, double value,
                   absl::string_view name) {
  constexpr int64_t kSmall = 1000;
  NameScope scope(graph, name);
  absl::StatusOr<Tensor> element =
      dtype == DT_STRING && value == 0 ? Tensor::Scalar(std::string()) : ScalarTensor(dtype, value);
  if (!element.ok()) {
    graph.Fail(Annotate(element.status(), scope.name()));
    return {};
  }
  if (!shape.is_tensor()) {
    absl::StatusOr<Shape> made = Shape::Make(shape.values());
    if (!made.ok() || !made->IsFullyDefined()) {
      graph.Fail(InvalidArgument(scope.name(), ": the shape of a constant must be fully defined"));
      return {};
    }
    if (made->num_elements() < kSmall)
      return Const(graph, FilledTensor(*element, *made), scope.name());
  }
  Output dims = shape.In(graph, "shape_as_tensor");
  if (dims.valid() && dims.shape().has_rank() && dims.shape().rank() != 1)
    dims = Reshape(dims, {-1});
  return AddOp("Fill", {dims, Const(graph, *std::move(element))}, {}, scope.name());
}

Output ScatterOp(absl::string_view op, Output tensor, Output indices, Output updates,
                 absl::string_view name) {
  return AddOp(op, {tensor, indices, updates}, {}, name);
}

}  // namespace

Outputs AllOutputs(Node* node, size_t count) {
  Outputs out(count);
  if (node == nullptr) return out;
  for (size_t i = 0; i < count; ++i) out[i] = node->output(static_cast<int>(i));
  return out;
}

Output Ints::In(Graph& graph, absl::string_view name, DataType dtype) const {
  if (is_tensor_) return tensor_;
  if (dtype == DT_INVALID) {
    dtype = DT_INT32;
    for (int64_t v : values_) {
      if (v != static_cast<int32_t>(v)) dtype = DT_INT64;
    }
  }
  const int64_t count = static_cast<int64_t>(values_.size());
  const Shape shape = is_scalar_     ? Shape()
                      : columns_ > 0 ? Shape({count / columns_, columns_})
                                     : Shape({count});
  return Const(graph, IntTensor(values_, dtype, shape), name);
}

absl::StatusOr<Tensor> ScalarTensor(DataType dtype, double value) {
  Tensor t(dtype, Shape());
  if (dtype == DT_BOOL) {
    *t.data<bool>() = value != 0;
    return t;
  }
  bool fits = true;
  const bool done = DispatchType(dtype, Numbers{}, [&]<class T>() {
    if constexpr (std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>) {
      *t.data<T>() = T(static_cast<typename T::value_type>(value));
    } else if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      fits = value == std::trunc(value) && value >= static_cast<double>(Limits::lowest()) &&
             value < std::ldexp(1.0, Limits::digits);
      if (fits) *t.data<T>() = static_cast<T>(value);
    } else {
      *t.data<T>() = static_cast<T>(static_cast<float>(value));
    }
    if constexpr (std::is_same_v<T, double>) *t.data<T>() = value;
  });
  if (!done)
    return InvalidArgument("a number cannot become a constant of type ", DataTypeName(dtype));
  if (!fits) return InvalidArgument(value, " cannot be represented in type ", DataTypeName(dtype));
  return t;
}

Output Const(Graph& graph, Tensor value, absl::string_view name) {
  const DataType dtype = value.dtype();
  return Output(AddNode(graph, "Const", {}, {{"value", std::move(value)}, {"dtype", dtype}}, name));
}

Output Const(Graph& graph, std::initializer_list<double> values, absl::string_view name) {
  return Const(graph, std::vector<float>(values.begin(), values.end()), name);
}

Output ConstOf(Graph& graph, DataType dtype, const Literal& value, absl::string_view name) {
  return TensorArg(value).In(graph, dtype, name.empty() ? "Const" : name);
}

Output ConstLike(Output like, const Literal& value, absl::string_view name) {
  return like.valid() ? ConstOf(like.graph(), like.dtype(), value, name) : Output();
}

Output Placeholder(Graph& graph, DataType dtype, const Shape& shape, absl::string_view name) {
  return Output(AddNode(graph, "Placeholder", {}, {{"dtype", dtype}, {"shape", shape}}, name));
}

Output PlaceholderWithDefault(Output input, const Shape& shape, absl::string_view name) {
  return AddOp("PlaceholderWithDefault", {input}, {{"shape", shape}}, name);
}

Output Zeros(Graph& graph, const Ints& shape, DataType dtype, absl::string_view name) {
  return ConstOrFill(graph, shape, dtype, 0, name.empty() ? "zeros" : name);
}

Output Ones(Graph& graph, const Ints& shape, DataType dtype, absl::string_view name) {
  return ConstOrFill(graph, shape, dtype, 1, name.empty() ? "ones" : name);
}

Output ZerosLike(Output like, DataType dtype, absl::string_view name, bool optimize) {
  if (!like.valid()) return {};
  if (dtype == DT_INVALID) dtype = like.dtype();
  const bool constant = optimize && like.shape().IsFullyDefined() && dtype != DT_VARIANT;
  NodeScope scope(like.graph(), name, "zeros_like");
  if (constant) return Zeros(like.graph(), like.shape(), dtype, scope.name());
  if (dtype != like.dtype())
    return Zeros(like.graph(), ShapeTensor(like, DT_INT32, {}, optimize), dtype, scope.name());
  return AddOp("ZerosLike", {like}, {}, scope.name());
}

Output OnesLike(Output like, DataType dtype, absl::string_view name, bool optimize) {
  if (!like.valid()) return {};
  if (dtype == DT_INVALID) dtype = like.dtype();
  NodeScope scope(like.graph(), name, "ones_like");
  if (optimize && like.shape().IsFullyDefined()) {
    Output shape;
    {
      NameScope inner(like.graph(), "Shape");
      shape = Ints(like.shape()).In(like.graph(), "shape_as_tensor");
    }
    return Ones(like.graph(), shape, dtype, scope.name());
  }
  return Ones(like.graph(), ShapeTensor(like, DT_INT32, {}, optimize), dtype, scope.name());
}

Output Fill(const Ints& dims, Output value, absl::string_view name) {
  if (!value.valid()) return {};
  NodeScope scope(value.graph(), name, "Fill");
  return AddOp("Fill", {dims.In(value.graph(), "dims"), value}, {}, scope.name());
}

Output Identity(Output x, absl::string_view name) { return AddOp("Identity", {x}, {}, name); }

Outputs IdentityN(const Outputs& xs, absl::string_view name) {
  return AllOutputs(AddNode("IdentityN", {xs}, {}, name), xs.size());
}

Output Snapshot(Output x, absl::string_view name) { return AddOp("Snapshot", {x}, {}, name); }
Output DeepCopy(Output x, absl::string_view name) { return AddOp("DeepCopy", {x}, {}, name); }
Output StopGradient(Output x, absl::string_view name) {
  return AddOp("StopGradient", {x}, {}, name);
}

Output PreventGradient(Output x, absl::string_view message, absl::string_view name) {
  return AddOp("PreventGradient", {x}, {{"message", message}}, name);
}

Output GuaranteeConst(Output x, absl::string_view name) {
  return AddOp("GuaranteeConst", {x}, {}, name);
}

Output EnsureShape(Output x, const Shape& shape, absl::string_view name) {
  return AddOp("EnsureShape", {x}, {{"shape", shape}}, name);
}

Output CheckNumerics(Output x, absl::string_view message, absl::string_view name) {
  return AddOp("CheckNumerics", {x}, {{"message", message}}, name);
}

Output Bitcast(Output x, DataType type, absl::string_view name) {
  return AddOp("Bitcast", {x}, {{"type", type}}, name);
}

Output ShapeTensor(Output x, DataType out_type, absl::string_view name, bool optimize) {
  if (!x.valid()) return {};
  if (optimize && x.shape().IsFullyDefined()) {
    return Ints(x.shape()).In(x.graph(), name.empty() ? "Shape" : name, out_type);
  }
  return AddOp("Shape", {x}, {{"out_type", out_type}}, name);
}

Output Size(Output x, DataType out_type, absl::string_view name, bool optimize) {
  if (!x.valid()) return {};
  if (optimize && x.shape().IsFullyDefined()) {
    return Ints(x.shape().num_elements()).In(x.graph(), name.empty() ? "Size" : name, out_type);
  }
  return AddOp("Size", {x}, {{"out_type", out_type}}, name);
}

Output Rank(Output x, absl::string_view name, bool optimize) {
  if (!x.valid()) return {};
  if (optimize && x.shape().has_rank())
    return Ints(x.shape().rank()).In(x.graph(), name.empty() ? "Rank" : name);
  return AddOp("Rank", {x}, {}, name);
}

Outputs ShapeN(const Outputs& xs, DataType out_type, absl::string_view name) {
  return AllOutputs(AddNode("ShapeN", {xs}, {{"out_type", out_type}}, name), xs.size());
}

Output Reshape(Output x, const Ints& shape, absl::string_view name) {
  return WithInts("Reshape", x, "shape", shape, name);
}

Output ExpandDims(Output x, const Ints& axis, absl::string_view name) {
  return WithInts("ExpandDims", x, "dim", axis, name);
}

Output Squeeze(Output x, std::vector<int64_t> axes, absl::string_view name) {
  return AddOp("Squeeze", {x}, {{"squeeze_dims", std::move(axes)}}, name);
}

Output BroadcastTo(Output x, const Ints& shape, absl::string_view name) {
  return WithInts("BroadcastTo", x, "shape", shape, name);
}

Output BroadcastDynamicShape(Output s0, Output s1, absl::string_view name) {
  return AddOp("BroadcastArgs", {s0, s1}, {}, name);
}

BroadcastReductions BroadcastGradientArgs(Output s0, Output s1, absl::string_view name) {
  const Outputs r = AllOutputs(AddNode("BroadcastGradientArgs", {s0, s1}, {}, name), 2);
  return {r[0], r[1]};
}

Output Slice(Output x, const Ints& begin, const Ints& size, absl::string_view name) {
  return WithTwoInts("Slice", x, "begin", begin, "size", size, name, true);
}

Output Concat(const Outputs& xs, const Ints& axis, absl::string_view name) {
  if (xs.empty() || !xs[0].valid()) return {};
  Graph& g = xs[0].graph();
  NodeScope scope(g, name, "concat");
  if (xs.size() == 1) {
    axis.In(g, "concat_dim");
    return Identity(xs[0], name.empty() ? "concat" : name);
  }
  return AddOp("ConcatV2", {xs, axis.In(g, "axis")}, {}, scope.name());
}

Outputs ConcatOffset(Output axis, const Outputs& shapes, absl::string_view name) {
  return AllOutputs(AddNode("ConcatOffset", {axis, shapes}, {}, name), shapes.size());
}

namespace {

// The maximum number of tensors in a list that a node returns.
constexpr int64_t kMostParts = int64_t{1} << 20;

// Returns false and fails the graph with INVALID_ARGUMENT if `num` exceeds kMostParts.
bool CheckParts(Graph& graph, absl::string_view builder, int64_t num) {
  if (num <= kMostParts) return true;
  graph.Fail(InvalidArgument(builder, ": ", num, " parts exceed the maximum of ", kMostParts,
                             " that there may be"));
  return false;
}

}  // namespace

Outputs Split(Output x, int64_t num, const Ints& axis, absl::string_view name) {
  const int64_t count = std::clamp<int64_t>(num, 0, kMostParts);
  if (!x.valid() || !CheckParts(x.graph(), "Split", num)) return Outputs(count);
  NodeScope scope(x.graph(), name, "split");
  Node* n =
      AddNode("Split", {axis.In(x.graph(), "split_dim"), x}, {{"num_split", num}}, scope.name());
  return AllOutputs(n, count);
}

Outputs SplitV(Output x, const Ints& sizes, const Ints& axis, absl::string_view name) {
  int64_t promised = 1;  // if the number of sizes is unknown
  if (!sizes.is_tensor()) {
    promised = static_cast<int64_t>(sizes.values().size());
  } else if (sizes.tensor().shape().rank() == 1 && sizes.tensor().dim(0) >= 0) {
    promised = sizes.tensor().dim(0);
  }
  if (!x.valid()) return Outputs(promised);
  Graph& g = x.graph();
  const Output lengths = sizes.In(g, "Const");
  if (!lengths.valid()) return Outputs(promised);
  const int64_t count = lengths.shape().rank() == 1 ? lengths.dim(0) : -1;
  if (count < 0) {
    g.Fail(InvalidArgument(
        "SplitV: the number of parts must be known when the graph is built, but the sizes are ",
        lengths.name(), " of shape ", lengths.shape().ToString()));
    return Outputs(promised);
  }
  NodeScope scope(g, name, "split");
  Node* n = AddNode("SplitV", {x, lengths, axis.In(g, "split_dim")}, {{"num_split", count}},
                    scope.name());
  return AllOutputs(n, count);
}

Output Stack(const Outputs& xs, int64_t axis, absl::string_view name) {
  return AddOp("Pack", {xs}, {{"axis", axis}}, name.empty() ? "stack" : name);
}

Outputs Unstack(Output x, int64_t axis, int64_t num, absl::string_view name) {
  if (!x.valid()) return Outputs(num < 0 ? 1 : std::min(num, kMostParts));
  if (num < 0 && x.shape().has_rank()) {
    absl::StatusOr<int> dim = CheckedAxis(axis, x.shape().rank());
    if (dim.ok()) num = x.dim(*dim);
  }
  if (num < 0) {
    x.graph().Fail(InvalidArgument("Unstack: cannot infer the number of parts from shape ",
                                   x.shape().ToString(), " along axis ", axis, "; give `num`"));
    return Outputs(1);
  }
  if (!CheckParts(x.graph(), "Unstack", num)) return Outputs(kMostParts);
  Node* n = AddNode("Unpack", {x}, {{"num", num}, {"axis", axis}}, name.empty() ? "unstack" : name);
  return AllOutputs(n, num);
}

Output Tile(Output x, const Ints& multiples, absl::string_view name) {
  return WithInts("Tile", x, "multiples", multiples, name);
}

Output Gather(Output params, const Ints& indices, const GatherOptions& options,
              absl::string_view name) {
  if (!params.valid()) return {};
  Graph& g = params.graph();
  NodeScope scope(g, name, "GatherV2");
  const Output rows = indices.In(g, "indices");
  return AddOp("GatherV2", {params, rows, Ints(options.axis).In(g, "axis")},
               {{"batch_dims", options.batch_dims}}, scope.name());
}

Output GatherV2(Output params, Output indices, Output axis, int64_t batch_dims,
                absl::string_view name) {
  return AddOp("GatherV2", {params, indices, axis}, {{"batch_dims", batch_dims}}, name);
}

Output GatherNd(Output params, const Ints& indices, absl::string_view name) {
  return WithInts("GatherNd", params, "indices", indices, name);
}

Output ScatterNd(const Ints& indices, Output updates, const Ints& shape, absl::string_view name) {
  if (!updates.valid()) return {};
  Graph& g = updates.graph();
  NodeScope scope(g, name, "ScatterNd");
  const DataType type = TypeAmong({&indices, &shape});
  const Output rows = indices.In(g, "indices", type);
  return AddOp("ScatterNd", {rows, updates, shape.In(g, "shape", type)}, {}, scope.name());
}

Output TensorScatterUpdate(Output tensor, Output indices, Output updates, absl::string_view name) {
  return ScatterOp("TensorScatterUpdate", tensor, indices, updates, name);
}
Output TensorScatterAdd(Output tensor, Output indices, Output updates, absl::string_view name) {
  return ScatterOp("TensorScatterAdd", tensor, indices, updates, name);
}
Output TensorScatterSub(Output tensor, Output indices, Output updates, absl::string_view name) {
  return ScatterOp("TensorScatterSub", tensor, indices, updates, name);
}
Output TensorScatterMin(Output tensor, Output indices, Output updates, absl::string_view name) {
  return ScatterOp("TensorScatterMin", tensor, indices, updates, name);
}
Output TensorScatterMax(Output tensor, Output indices, Output updates, absl::string_view name) {
  return ScatterOp("TensorScatterMax", tensor, indices, updates, name);
}

namespace {

// Returns the value of an option. If it is unset, returns `number` as a scalar of the given dtype.
Output OptionValue(Graph& graph, DataType dtype, const std::optional<Literal>& value, int number,
                   absl::string_view name) {
  if (value) return ConstOf(graph, dtype, *value, name);
  absl::StatusOr<Tensor> t = ScalarTensor(dtype, number);
  if (t.ok()) return Const(graph, *std::move(t), name);
  graph.Fail(t.status());
  return {};
}

}  // namespace

Output OneHot(Output indices, const Ints& depth, const OneHotOptions& options,
              absl::string_view name) {
  if (!indices.valid()) return {};
  Graph& g = indices.graph();
  NodeScope scope(g, name, "one_hot");
  const Output on = OptionValue(g, options.dtype, options.on_value, 1, "on_value");
  const Output off = OptionValue(g, options.dtype, options.off_value, 0, "off_value");
  return AddOp("OneHot", {indices, depth.In(g, "depth"), on, off}, {{"axis", options.axis}},
               scope.name());
}

Output Where(Output condition, absl::string_view name) {
  return AddOp("Where", {condition}, {}, name);
}

UniqueResult Unique(Output x, DataType out_idx, absl::string_view name) {
  const Outputs r = AllOutputs(AddNode("Unique", {x}, {{"out_idx", out_idx}}, name), 2);
  return {r[0], r[1], {}};
}

UniqueResult UniqueWithCounts(Output x, DataType out_idx, absl::string_view name) {
  const Outputs r = AllOutputs(AddNode("UniqueWithCounts", {x}, {{"out_idx", out_idx}}, name), 3);
  return {r[0], r[1], r[2]};
}

ListDiffResult ListDiff(Output x, Output y, DataType out_idx, absl::string_view name) {
  const Outputs r = AllOutputs(AddNode("ListDiff", {x, y}, {{"out_idx", out_idx}}, name), 2);
  return {r[0], r[1]};
}

TopKResult TopK(Output x, const Ints& k, bool sorted, absl::string_view name) {
  const Output values = WithInts("TopKV2", x, "k", k, name, {{"sorted", sorted}});
  return values.valid() ? TopKResult{values, values.node->output(1)} : TopKResult{};
}

Output InTopK(Output predictions, Output targets, const Ints& k, absl::string_view name) {
  if (!predictions.valid() || !targets.valid()) return {};
  NodeScope outer(predictions.graph(), name, "in_top_k");
  NameScope scope(predictions.graph(), "InTopKV2");
  return AddOp("InTopKV2", {predictions, targets, k.In(predictions.graph(), "k", targets.dtype())},
               {}, scope.name());
}

Output Transpose(Output x) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  const NameScope scope(g, "transpose");
  if (!x.shape().has_rank()) {
    const Output last = SubOp(Rank(x), Const(g, 1, "sub/y"));
    return AddOp("Transpose", {x, RangeOp(g, last, -1, -1, "Range")}, {}, scope.name());
  }
  std::vector<int64_t> perm;
  for (int i = x.shape().rank() - 1; i >= 0; --i) perm.push_back(i);
  return AddOp("Transpose", {x, Ints(std::move(perm)).In(g, "perm")}, {}, scope.name());
}

Output Transpose(Output x, const Ints& perm, absl::string_view name) {
  return WithInts("Transpose", x, "perm", perm, name, {}, "transpose");
}

Output ConjugateTranspose(Output x, const Ints& perm, absl::string_view name) {
  const bool is_complex = IsComplex(x.dtype());
  return WithInts(is_complex ? "ConjugateTranspose" : "Transpose", x, "perm", perm, name, {},
                  "transpose");
}

Output InvertPermutation(Output x, absl::string_view name) {
  return AddOp("InvertPermutation", {x}, {}, name);
}

Output Reverse(Output x, const Ints& axes, absl::string_view name) {
  return WithInts("ReverseV2", x, "axis", axes, name);
}

Output ReverseSequence(Output x, Output lengths, int64_t seq_dim, int64_t batch_dim,
                       absl::string_view name) {
  return AddOp("ReverseSequence", {x, lengths}, {{"seq_dim", seq_dim}, {"batch_dim", batch_dim}},
               name);
}

Output Roll(Output x, const Ints& shift, const Ints& axis, absl::string_view name) {
  return WithTwoInts("Roll", x, "shift", shift, "axis", axis, name, false);
}

Output Pad(Output x, const Ints& paddings, absl::string_view name) {
  return WithInts("Pad", x, "paddings", paddings, name);
}

Output PadV2(Output x, const Ints& paddings, const TensorArg& value, absl::string_view name) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  NodeScope scope(g, name, "PadV2");
  const Output widths = paddings.In(g, "paddings");
  return AddOp("PadV2", {x, widths, value.In(g, x.dtype(), "constant_values")}, {}, scope.name());
}

Output MirrorPad(Output x, const Ints& paddings, MirrorMode mode, absl::string_view name) {
  return WithInts("MirrorPad", x, "paddings", paddings, name,
                  {{"mode", mode == MirrorMode::kReflect ? "REFLECT" : "SYMMETRIC"}});
}

Output SpaceToBatchND(Output x, const Ints& block_shape, const Ints& paddings,
                      absl::string_view name) {
  return WithTwoInts("SpaceToBatchND", x, "block_shape", block_shape, "paddings", paddings, name,
                     false);
}

Output BatchToSpaceND(Output x, const Ints& block_shape, const Ints& crops,
                      absl::string_view name) {
  return WithTwoInts("BatchToSpaceND", x, "block_shape", block_shape, "crops", crops, name, false);
}

Output SpaceToDepth(Output x, int64_t block_size, absl::string_view data_format,
                    absl::string_view name) {
  return AddOp("SpaceToDepth", {x}, {{"block_size", block_size}, {"data_format", data_format}},
               name);
}

Output DepthToSpace(Output x, int64_t block_size, absl::string_view data_format,
                    absl::string_view name) {
  return AddOp("DepthToSpace", {x}, {{"block_size", block_size}, {"data_format", data_format}},
               name);
}

Output Diag(Output diagonal, absl::string_view name) { return AddOp("Diag", {diagonal}, {}, name); }
Output DiagPart(Output x, absl::string_view name) { return AddOp("DiagPart", {x}, {}, name); }

Output MatrixDiag(Output diagonal, const MatrixDiagOptions& options, absl::string_view name) {
  if (!diagonal.valid()) return {};
  Graph& g = diagonal.graph();
  NodeScope scope(g, name, "diag");
  const Output k = options.k.In(g, "k"), rows = options.num_rows.In(g, "num_rows");
  const Output cols = options.num_cols.In(g, "num_cols");
  const Output padding =
      OptionValue(g, diagonal.dtype(), options.padding_value, 0, "padding_value");
  return AddOp("MatrixDiagV3", {diagonal, k, rows, cols, padding}, {{"align", options.align}},
               scope.name());
}

Output MatrixDiagPart(Output x, const MatrixDiagOptions& options, absl::string_view name) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  NodeScope scope(g, name, "diag_part");
  const Output k = options.k.In(g, "k");
  const Output padding = OptionValue(g, x.dtype(), options.padding_value, 0, "padding_value");
  return AddOp("MatrixDiagPartV3", {x, k, padding}, {{"align", options.align}}, scope.name());
}

Output MatrixSetDiag(Output x, Output diagonal, const MatrixDiagOptions& options,
                     absl::string_view name) {
  if (!x.valid()) return {};
  NodeScope scope(x.graph(), name, "set_diag");
  return AddOp("MatrixSetDiagV3", {x, diagonal, options.k.In(x.graph(), "k")},
               {{"align", options.align}}, scope.name());
}

Output MatrixBandPart(Output x, const Ints& num_lower, const Ints& num_upper,
                      absl::string_view name) {
  return WithTwoInts("MatrixBandPart", x, "num_lower", num_lower, "num_upper", num_upper, name,
                     true);
}

}  // namespace weir
