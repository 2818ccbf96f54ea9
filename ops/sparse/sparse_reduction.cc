#include "weir/ops/sparse/sparse.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/sparse/sparse_internal.h"

// Reductions of sparse tensors, and softmax.
namespace weir {

// ---- shape functions

namespace {

absl::Status SoftmaxShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(SparseRank(c, 0).status());
  WEIR_ASSIGN_OR_RETURN(Shape values, c.WithRank(1, 1));
  c.set_output(0, std::move(values));
  return absl::OkStatus();
}

absl::Status ReduceShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, c.InputAsShape(2));
  const auto axes = KnownInts(c, 3);
  if (!shape.IsFullyDefined() || !axes.has_value()) return absl::OkStatus();
  const bool keep_dims = c.attr<bool>("keep_dims");
  std::vector<bool> reduced(shape.rank(), false);
  for (const int64_t axis : *axes) {
    // The kernel reports an axis that is out of range, as in TensorFlow.
    if (axis < -shape.rank() || axis >= shape.rank()) return absl::OkStatus();
    reduced[axis < 0 ? axis + shape.rank() : axis] = true;
  }
  Shape out;
  for (int d = 0; d < shape.rank(); ++d) {
    if (!reduced[d])
      out.AddDim(shape.dim(d));
    else if (keep_dims)
      out.AddDim(1);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// ---- gradients

// The shape with 1 for the reduced dimensions: a literal if everything is known at graph
// construction.
Ints KeepDimsShape(GradContext& g) {
  const Tensor* const axes = GraphValues().value(g.node(), 3);
  const std::optional<Shape> shape = StaticShape(&g.node(), 2);
  if (axes == nullptr || !shape) return ReducedShape(g.x(2), g.x(3));
  Shape kept = *shape;
  for (int64_t i = 0; i < axes->num_elements(); ++i) {
    const int64_t axis = axes->IntAt(i);
    if (axis >= -kept.rank() && axis < kept.rank())
      kept.set_dim(static_cast<int>(axis < 0 ? axis + kept.rank() : axis), 1);
  }
  return kept;
}

Output CastToInt64(Graph& graph, const Ints& shape) {
  if (shape.is_tensor()) return Cast(shape.tensor(), DT_INT64);
  const NameScope scope(graph, "Cast");
  return Cast(shape.In(graph, "x", DT_INT32), DT_INT64, scope.name());
}

Grads ReduceSumGradient(GradContext& g) {
  const Ints kept = KeepDimsShape(g);
  const Output dy = Reshape(g.dy(), kept);
  const Output scale = FloorDiv(g.x(2), CastToInt64(g.graph(), kept), "floordiv");
  return {Grad(), GatherNd(dy, FloorDiv(g.x(0), scale, "floordiv")), Grad(), Grad()};
}

// The gradient of Softmax on the stored elements: y * (dy - sum(dy * y)).
Grads SparseSoftmaxGradient(GradContext& g) {
  const Output indices = g.x(0), shape = g.x(2);
  const SparseTensor y = MakeSparseTensor(indices, g.y(), shape);
  const SparseTensor dy = MakeSparseTensor(indices, g.dy(), shape);
  const SparseTensor product = MakeSparseTensor(indices, y.values * dy.values, shape);
  const Output sums = -SparseReduceSum(product, Ints({-1}), /*keep_dims=*/true);
  const SparseTensor shifted = SparseDenseCwiseAdd(dy, sums);
  return {Grad(), shifted.values * y.values, Grad()};
}

// ---- op definitions

void AddReductions(OpRegistry* ops, const std::string& op, absl::string_view types,
                   const GradientFn& gradient, const std::string& doc) {
  const char* const in =
      "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32";
  OpSpec dense(op);
  dense.In(in)
      .Out("output: T")
      .Attr("keep_dims: bool = false")
      .Attr(types)
      .InferShape(ReduceShape)
      .Doc(doc);
  if (gradient) dense.Gradient(gradient);
  ops->Add(std::move(dense));
  ops->Add(OpSpec(op + "Sparse")
               .In(in)
               .Out("output_indices: int64, output_values: T, output_shape: int64")
               .Attr("keep_dims: bool = false")
               .Attr(types)
               .InferShape(AnySparseOutputs)
               .Doc(doc + " The result is sparse."));
}

}  // namespace

void AddSparseReductionOps(OpRegistry* ops) {
  ops->Add(OpSpec("SparseSoftmax")
               .In("sp_indices: int64, sp_values: T, sp_shape: int64")
               .Out("output: T")
               .Attr("T: {half, float, double}")
               .InferShape(SoftmaxShape)
               .Gradient(SparseSoftmaxGradient)
               .Doc("Computes softmax over the stored elements of the last dimension."));
  AddReductions(ops, "SparseReduceSum", "T: numbertype", ReduceSumGradient,
                "Computes the sums over some dimensions of a sparse tensor.");
  AddReductions(
      ops, "SparseReduceMax", kRealTypes, nullptr,
      "Computes the maxima of the stored elements over some dimensions of a sparse tensor.");
}

// ---- builders

namespace {

// Like Python's _ReductionDims: all dimensions, as a constant if the rank is static.
Output ReductionAxes(const SparseTensor& x, const std::optional<Ints>& axes,
                     absl::string_view name) {
  Graph& g = x.indices.graph();
  if (axes) return axes->In(g, absl::StrCat(name, "/reduction_axes"), DT_INT32);
  const int64_t rank = x.dense_shape.dim(0);
  if (rank < 0) return Range(g, 0, Size(x.dense_shape), 1);
  std::vector<int32_t> all;
  for (int32_t d = 0; d < rank; ++d) all.push_back(d);
  return Const(g, all);
}

Node* Reduce(absl::string_view op, const SparseTensor& x, const std::optional<Ints>& axes,
             bool keep_dims, absl::string_view name) {
  if (!x.indices.valid()) return nullptr;
  const Output dims = ReductionAxes(x, axes, name.empty() ? op : name);
  return AddNode(op, {x.indices, x.values, x.dense_shape, dims}, {{"keep_dims", keep_dims}}, name);
}

SparseTensor ReduceToSparse(absl::string_view op, const SparseTensor& x,
                            const std::optional<Ints>& axes, bool keep_dims,
                            absl::string_view name) {
  return WrappedOutputs(Reduce(op, x, axes, keep_dims, name));
}

Output ReduceToDense(absl::string_view op, const SparseTensor& x, const std::optional<Ints>& axes,
                     bool keep_dims, absl::string_view name) {
  Node* const node = Reduce(op, x, axes, keep_dims, name);
  return node == nullptr ? Output() : node->output();
}

}  // namespace

Output SparseReduceSum(const SparseTensor& x, const std::optional<Ints>& axes, bool keep_dims,
                       absl::string_view name) {
  return ReduceToDense("SparseReduceSum", x, axes, keep_dims, name);
}
Output SparseReduceMax(const SparseTensor& x, const std::optional<Ints>& axes, bool keep_dims,
                       absl::string_view name) {
  return ReduceToDense("SparseReduceMax", x, axes, keep_dims, name);
}
SparseTensor SparseReduceSumSparse(const SparseTensor& x, const std::optional<Ints>& axes,
                                   bool keep_dims, absl::string_view name) {
  return ReduceToSparse("SparseReduceSumSparse", x, axes, keep_dims, name);
}
SparseTensor SparseReduceMaxSparse(const SparseTensor& x, const std::optional<Ints>& axes,
                                   bool keep_dims, absl::string_view name) {
  return ReduceToSparse("SparseReduceMaxSparse", x, axes, keep_dims, name);
}

SparseTensor SparseSoftmax(const SparseTensor& x, absl::string_view name) {
  if (!x.indices.valid()) return {};
  const NameScope scope(x.indices.graph(), name.empty() ? "SparseSoftmax" : name);
  const Output values = AddOp("SparseSoftmax", {x.indices, x.values, x.dense_shape});
  return MakeSparseTensor(x.indices, values, x.dense_shape);
}

}  // namespace weir
