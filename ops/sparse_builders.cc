#include "weir/core/scope.h"
#include "weir/ops/array_internal.h"
#include "weir/ops/sparse_internal.h"

namespace weir {

namespace {

Ints WithStaticShape(Node* node, int i, const Output& otherwise) {
  const std::optional<Shape> shape = StaticShape(node, i);
  return shape ? Ints(*shape) : Ints(Identity(otherwise));
}

SparseTensor Cwise(absl::string_view op, const SparseTensor& x, Output dense) {
  const Output values = AddOp(op, {x.indices, x.values, x.dense_shape, dense});
  return MakeSparseTensor(x.indices, values, x.dense_shape);
}

SparseTensor Extreme(absl::string_view op, const SparseTensor& a, const SparseTensor& b,
                     absl::string_view name) {
  if (!a.indices.valid()) return {};
  Node* node = nullptr;
  {
    const NameScope scope(a.indices.graph(), name.empty() ? op : name);
    node = AddNode(op, {a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape}, {},
                   scope.name());
  }
  const Outputs r = AllOutputs(node, 2);
  return MakeSparseTensor(r[0], r[1], a.dense_shape);
}

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

struct Lists {
  Outputs indices, values, shapes;
};
Lists ListsOf(const std::vector<SparseTensor>& xs) {
  Lists lists;
  for (const SparseTensor& x : xs) {
    lists.indices.push_back(x.indices);
    lists.values.push_back(x.values);
    lists.shapes.push_back(x.dense_shape);
  }
  return lists;
}

}  // namespace

SparseTensor SparseOutputs(Node* node, int first) {
  if (node == nullptr) return {};
  return {node->output(first), node->output(first + 1), node->output(first + 2)};
}

SparseTensor WrappedOutputs(Node* node) {
  const SparseTensor r = SparseOutputs(node);
  return MakeSparseTensor(r.indices, r.values, r.dense_shape);
}

std::optional<Shape> StaticShape(Node* node, int i) {
  if (node == nullptr) return std::nullopt;
  Shape shape = GraphValues().value_as_shape(*node, i);
  if (!shape.IsFullyDefined()) return std::nullopt;
  return shape;
}

SparseTensor MakeSparseTensor(Output indices, Output values, const Ints& dense_shape) {
  if (!indices.valid() || !values.valid()) return {};
  Graph& g = indices.graph();
  const NameScope scope(g, "SparseTensor");
  return {indices, values, dense_shape.In(g, "dense_shape", DT_INT64)};
}

Output SparseTensorToDense(const SparseTensor& x, Output default_value, bool validate_indices,
                           absl::string_view name) {
  if (!x.values.valid()) return {};
  if (!default_value.valid()) default_value = Zeros(x.values.graph(), Shape(), x.values.dtype());
  return SparseToDense(x.indices, x.dense_shape, x.values, default_value, validate_indices, name);
}

Output SparseToDense(Output indices, Output output_shape, Output values, Output default_value,
                     bool validate_indices, absl::string_view name) {
  return AddOp("SparseToDense", {indices, output_shape, values, default_value},
               {{"validate_indices", validate_indices}}, name);
}

SparseTensor SparseReorder(const SparseTensor& x, absl::string_view name) {
  Node* const node = AddNode("SparseReorder", {x.indices, x.values, x.dense_shape}, {}, name);
  if (node == nullptr) return {};
  return MakeSparseTensor(node->output(0), node->output(1),
                          WithStaticShape(node, 2, x.dense_shape));
}

SparseTensor SparseReshape(const SparseTensor& x, const Ints& shape, absl::string_view name) {
  if (!x.indices.valid()) return {};
  Graph& g = x.indices.graph();
  Output target = shape.tensor();
  if (shape.is_tensor()) {
    target = Cast(target, DT_INT64);
  } else {
    const NameScope scope(g, "Cast");
    target = Cast(shape.In(g, "x"), DT_INT64, scope.name());
  }
  const NameScope scope(g, name.empty() ? "SparseReshape" : name);
  Node* const node = AddNode("SparseReshape", {x.indices, x.dense_shape, target}, {}, scope.name());
  if (node == nullptr) return {};
  const std::optional<Shape> from = StaticShape(node, 1);
  Shape to = GraphValues().value_as_shape(*node, 2);
  Output new_shape = node->output(1);
  if (from && to.has_rank()) {
    int64_t known = 1;
    int unknown = -1, unknowns = 0;
    for (int d = 0; d < to.rank(); ++d) {
      if (to.dim(d) < 0) {
        unknown = d;
        ++unknowns;
      } else {
        known *= to.dim(d);
      }
    }
    if (unknowns == 1 && known > 0) to.set_dim(unknown, from->num_elements() / known);
    if (to.IsFullyDefined())
      new_shape = Const(g, std::vector<int64_t>(to.dims().begin(), to.dims().end()));
  }
  return MakeSparseTensor(node->output(0), Identity(x.values), new_shape);
}

SparseTensor SparseConcat(int64_t axis, const std::vector<SparseTensor>& xs,
                          absl::string_view name) {
  if (xs.size() == 1) return xs[0];
  const Lists lists = ListsOf(xs);
  Node* const node = AddNode("SparseConcat", {lists.indices, lists.values, lists.shapes},
                             {{"concat_dim", axis}}, name);
  if (node == nullptr) return {};
  Ints shape = node->output(2);
  Shape joined = GraphValues().value_as_shape(*node, static_cast<int>(2 * xs.size()));
  for (size_t k = 1; k < xs.size() && joined.IsFullyDefined(); ++k) {
    const Shape more = GraphValues().value_as_shape(*node, static_cast<int>(2 * xs.size() + k));
    const int at = static_cast<int>(axis < 0 ? axis + joined.rank() : axis);
    if (!more.IsFullyDefined() || at < 0 || at >= joined.rank() || more.rank() != joined.rank()) {
      joined = Shape::UnknownRank();
    } else {
      joined.set_dim(at, joined.dim(at) + more.dim(at));
    }
  }
  if (joined.IsFullyDefined()) {
    shape = Const(node->graph(), std::vector<int64_t>(joined.dims().begin(), joined.dims().end()));
  }
  return MakeSparseTensor(node->output(0), node->output(1), shape);
}

std::vector<SparseTensor> SparseSplit(const SparseTensor& x, int64_t num_split, const Ints& axis,
                                      absl::string_view name) {
  const size_t n = static_cast<size_t>(std::max<int64_t>(num_split, 0));
  std::vector<SparseTensor> parts(n);
  if (!x.indices.valid()) return parts;
  const Output split_dim = axis.In(x.indices.graph(), "SparseSplit/split_dim", DT_INT64);
  const Outputs r =
      AllOutputs(AddNode("SparseSplit", {split_dim, x.indices, x.values, x.dense_shape},
                         {{"num_split", num_split}}, name),
                 3 * n);
  for (size_t i = 0; i < n; ++i) parts[i] = MakeSparseTensor(r[i], r[n + i], r[2 * n + i]);
  return parts;
}

SparseTensor SparseSlice(const SparseTensor& x, const Ints& start, const Ints& size,
                         absl::string_view name) {
  if (!x.indices.valid()) return {};
  Graph& g = x.indices.graph();
  const Output from = start.In(g, "Const", DT_INT64), extent = size.In(g, "Const", DT_INT64);
  const NameScope scope(g, name.empty() ? "SparseSlice" : name);
  return WrappedOutputs(
      AddNode("SparseSlice", {x.indices, x.values, x.dense_shape, from, extent}, {}, scope.name()));
}

FilledRows SparseFillEmptyRows(const SparseTensor& x, Output default_value,
                               absl::string_view name) {
  if (!x.indices.valid()) return {};
  const NameScope scope(x.indices.graph(), name.empty() ? "SparseFillEmptyRows" : name);
  const Outputs r = AllOutputs(
      AddNode("SparseFillEmptyRows", {x.indices, x.values, x.dense_shape, default_value}), 4);
  return {MakeSparseTensor(r[0], r[1], x.dense_shape), r[2]};
}

SparseTensor SparseAdd(const SparseTensor& a, const SparseTensor& b, const Literal& threshold) {
  if (!a.values.valid()) return {};
  const DataType type = a.values.dtype() == DT_COMPLEX64    ? DT_FLOAT
                        : a.values.dtype() == DT_COMPLEX128 ? DT_DOUBLE
                                                            : a.values.dtype();
  const Output limit = ConstOf(a.values.graph(), type, threshold, "threshold");
  Node* const node = AddNode(
      "SparseAdd", {a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, limit});
  if (node == nullptr) return {};
  Ints shape = node->output(2);
  if (const std::optional<Shape> known = StaticShape(node, 2); known && StaticShape(node, 5))
    shape = Ints(*known);
  return MakeSparseTensor(node->output(0), node->output(1), shape);
}

Output SparseAdd(const SparseTensor& a, Output dense) {
  return AddOp("SparseTensorDenseAdd", {a.indices, a.values, a.dense_shape, dense});
}

SparseTensor SparseMaximum(const SparseTensor& a, const SparseTensor& b, absl::string_view name) {
  return Extreme("SparseSparseMaximum", a, b, name);
}
SparseTensor SparseMinimum(const SparseTensor& a, const SparseTensor& b, absl::string_view name) {
  return Extreme("SparseSparseMinimum", a, b, name);
}

SparseTensor SparseDenseCwiseAdd(const SparseTensor& x, Output dense) {
  return Cwise("SparseDenseCwiseAdd", x, dense);
}
SparseTensor SparseDenseCwiseMul(const SparseTensor& x, Output dense) {
  return Cwise("SparseDenseCwiseMul", x, dense);
}
SparseTensor SparseDenseCwiseDiv(const SparseTensor& x, Output dense) {
  return Cwise("SparseDenseCwiseDiv", x, dense);
}

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

Output SparseTensorDenseMatMul(const SparseTensor& a, Output b, const SparseMatMulOptions& options,
                               absl::string_view name) {
  const Attrs attrs = {{"adjoint_a", options.adjoint_a}, {"adjoint_b", options.adjoint_b}};
  if (!a.indices.valid()) return {};
  const NameScope scope(a.indices.graph(), name.empty() ? "SparseTensorDenseMatMul" : name);
  return AddOp("SparseTensorDenseMatMul", {a.indices, a.values, a.dense_shape, b}, attrs);
}

}  // namespace weir
