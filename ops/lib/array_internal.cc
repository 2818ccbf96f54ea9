#include "weir/ops/lib/array_internal.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"

namespace weir {

// ---- shape functions

absl::Status PassShape(ShapeContext& c, int input, int output) {
  c.set_output(output, c.input(input));
  if (c.handle(input) != nullptr) c.set_output_handle(output, *c.handle(input));
  return absl::OkStatus();
}

absl::Status IdentityShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) WEIR_RETURN_IF_ERROR(PassShape(c, 0, i));
  return absl::OkStatus();
}

absl::StatusOr<int> CheckedAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("axis ", axis, " must be in the range [", -rank, ", ", rank, ")");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::optional<std::vector<int64_t>> KnownInts(ShapeContext& c, int i) {
  const Tensor* value = c.input_value(i);
  if (value == nullptr) return std::nullopt;
  std::vector<int64_t> out;
  for (int64_t k = 0; k < value->num_elements(); ++k) out.push_back(value->IntAt(k));
  return out;
}

absl::StatusOr<int64_t> VectorLength(ShapeContext& c, int i) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, c.WithRank(i, 1));
  return shape.dim(0);
}

absl::StatusOr<Shape> RequestedShape(ShapeContext& c, int i) {
  WEIR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
  return c.InputAsShape(i, /*minus_one_is_unknown=*/false);
}

Shape UnknownDims(int64_t rank) {
  if (rank < 0 || rank > Shape::kMaxRank) return Shape::UnknownRank();
  return Shape(absl::Span<const int64_t>(std::vector<int64_t>(rank, Shape::kUnknown)));
}

absl::Status ConcatenatedShape(ShapeContext& c, int first, int last, int axis_input) {
  WEIR_RETURN_IF_ERROR(c.WithRankAtMost(axis_input, 0).status());
  int rank = -1;
  for (int i = first; i < last; ++i) {
    const int r = c.input(i).rank();
    if (r < 0) continue;
    if (r == 0) {
      return InvalidArgument("Can't concatenate scalars (use tf.stack instead): input ", i - first,
                             " is a scalar");
    }
    if (rank >= 0 && r != rank) {
      return InvalidArgument("Ranks of all input tensors should match: shape of input ", i - first,
                             " is ", c.input(i).ToString(), ", others have rank ", rank);
    }
    rank = r;
  }
  if (rank < 0) return absl::OkStatus();
  const auto axis = KnownInts(c, axis_input);
  if (!axis.has_value() || axis->size() != 1) {
    c.set_output(0, UnknownDims(rank));
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(const int dim, CheckedAxis((*axis)[0], rank));
  Shape out = UnknownDims(rank);
  out.set_dim(dim, 0);
  for (int i = first; i < last; ++i) {
    const Shape in = c.input(i).has_rank() ? c.input(i) : UnknownDims(rank);
    for (int d = 0; d < rank; ++d) {
      if (d == dim) {
        WEIR_ASSIGN_OR_RETURN(const int64_t sum, AddDims(out.dim(d), in.dim(d)));
        out.set_dim(d, sum);
      } else {
        absl::StatusOr<int64_t> merged = MergeDims(out.dim(d), in.dim(d));
        if (!merged.ok()) {
          return InvalidArgument("Dimension ", d, " in both shapes must be equal, but are ",
                                 out.dim(d), " and ", in.dim(d), ": input ", i - first,
                                 " has shape ", in.ToString(), ", joined along axis ", dim);
        }
        out.set_dim(d, *merged);
      }
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// ---- gradients

Grads PassGradient(GradContext& g) { return {g.dy_grad()}; }

Grads PassAllGradients(GradContext& g) {
  Grads out;
  for (int i = 0; i < g.node().num_outputs(); ++i) out.push_back(g.dy_grad(i));
  return out;
}

Grads ReshapeToInputGradient(GradContext& g) { return {Reshape(g.dy(), ShapeTensor(g.x()))}; }

Output SubOp(Output a, Output b, absl::string_view name) { return AddOp("Sub", {a, b}, {}, name); }
Output AddV2Op(Output a, Output b, absl::string_view name) {
  return AddOp("AddV2", {a, b}, {}, name);
}
Output MulOp(Output a, Output b, absl::string_view name) { return AddOp("Mul", {a, b}, {}, name); }
Output ModOp(Output a, Output b, absl::string_view name) {
  return AddOp("FloorMod", {a, b}, {}, name);
}

Output SumAll(Output x) {
  if (!x.valid()) return {};
  Output axes;
  if (x.shape().has_rank()) {
    std::vector<int64_t> all(x.shape().rank());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    axes = Ints(std::move(all)).In(x.graph(), "Const");
  } else {
    axes = RangeOp(x.graph(), 0, Rank(x), 1);
  }
  return AddOp("Sum", {x, axes});
}

Output ProdOp(Output x, const Ints& axes) {
  return x.valid() ? AddOp("Prod", {x, axes.In(x.graph(), "Const")}) : Output();
}

Output RangeOp(Graph& graph, const Ints& start, const Ints& limit, const Ints& delta,
               absl::string_view name) {
  NameScope scope(graph, name);
  const Output a = start.In(graph, "start"), b = limit.In(graph, "limit");
  return AddOp("Range", {a, b, delta.In(graph, "delta")}, {}, scope.name());
}

Output UnsortedSegmentSumOp(Output data, Output ids, Output num_segments) {
  return AddOp("UnsortedSegmentSum", {data, ids, num_segments});
}

// ---- builders

Outputs AllOutputs(Node* node, size_t count) {
  Outputs out(count);
  if (node == nullptr) return out;
  for (size_t i = 0; i < count; ++i) out[i] = node->output(static_cast<int>(i));
  return out;
}

DataType TypeAmong(std::initializer_list<const Ints*> args) {
  for (const Ints* a : args) {
    if (a->is_tensor()) return a->tensor().dtype();
  }
  return DT_INVALID;
}

Output WithInts(absl::string_view op, Output x, absl::string_view argument, const Ints& ints,
                absl::string_view name, Attrs attrs, absl::string_view default_name) {
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

Output OptionValue(Graph& graph, DataType dtype, const std::optional<Literal>& value, int number,
                   absl::string_view name) {
  if (value) return ConstOf(graph, dtype, *value, name);
  absl::StatusOr<Tensor> t = ScalarTensor(dtype, number);
  if (t.ok()) return Const(graph, *std::move(t), name);
  graph.Fail(t.status());
  return {};
}

}  // namespace weir
