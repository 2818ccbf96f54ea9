#include "weir/ops/lib/array.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"

// Gather and scatter.
namespace weir {

// ---- shape functions

namespace {

absl::Status GatherShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape params, c.WithRankAtLeast(0, 1));
  if (params.has_rank() && c.input(1).has_rank())
    c.set_output(0, c.input(1).Concatenate(params.Sub(1)));
  return absl::OkStatus();
}

absl::Status GatherV2Shape(ShapeContext& c) {
  const Shape &params = c.input(0), &indices = c.input(1);
  WEIR_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  WEIR_RETURN_IF_ERROR(c.WithRankAtLeast(0, 1).status());
  int64_t batch_dims = c.attr<int64_t>("batch_dims");
  if (indices.has_rank()) {
    if (batch_dims < -indices.rank() || batch_dims > indices.rank()) {
      return InvalidArgument("Expected batch_dims in the range [", -indices.rank(), ", ",
                             indices.rank(), "], but got ", batch_dims);
    }
    if (batch_dims < 0) batch_dims += indices.rank();
  }
  if (!params.has_rank() || !indices.has_rank()) return absl::OkStatus();
  const int rank = params.rank() + indices.rank() - 1 - static_cast<int>(batch_dims);
  const auto axis = KnownInts(c, 2);
  if (!axis.has_value()) {
    c.set_output(0, UnknownDims(rank));
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(const int at, CheckedAxis((*axis)[0], params.rank()));
  if (batch_dims > at) {
    return InvalidArgument("batch_dims (", batch_dims, ") must be less than or equal to axis (", at,
                           ")");
  }
  for (int i = 0; i < batch_dims; ++i) {
    absl::StatusOr<int64_t> merged = MergeDims(params.dim(i), indices.dim(i));
    if (!merged.ok()) {
      return InvalidArgument("params.shape[", i, "]: ", params.dim(i),
                             " should be equal to indices.shape[", i, "]: ", indices.dim(i));
    }
  }
  const Shape middle = indices.Sub(static_cast<int>(batch_dims), indices.rank());
  c.set_output(0, params.Sub(0, at).Concatenate(middle).Concatenate(params.Sub(at + 1)));
  return absl::OkStatus();
}

absl::Status GatherNdShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape indices, c.WithRankAtLeast(1, 1));
  const Shape& params = c.input(0);
  if (!params.has_rank() || !indices.has_rank() || indices.dim(-1) < 0) return absl::OkStatus();
  if (indices.dim(-1) > params.rank()) {
    return InvalidArgument("indices.shape[-1] must be <= params.rank, but saw indices.shape[-1] = ",
                           indices.dim(-1), " and params.rank = ", params.rank());
  }
  c.set_output(0, indices.Sub(0, indices.rank() - 1)
                      .Concatenate(params.Sub(static_cast<int>(indices.dim(-1)))));
  return absl::OkStatus();
}

// Checks that updates.shape = indices.shape[:-1] + shape[indices.shape[-1]:].
absl::Status CheckScatter(const Shape& indices, const Shape& updates, const Shape& shape) {
  if (!indices.has_rank() || !updates.has_rank() || !shape.has_rank() || indices.rank() == 0)
    return absl::OkStatus();
  const int64_t depth = indices.dim(-1);
  if (depth < 0) return absl::OkStatus();
  if (depth > shape.rank()) {
    return InvalidArgument("indices.shape[-1] must be <= the rank of the output, but is ", depth,
                           " for shape ", shape.ToString());
  }
  const Shape expected =
      indices.Sub(0, indices.rank() - 1).Concatenate(shape.Sub(static_cast<int>(depth)));
  if (updates.IsCompatibleWith(expected)) return absl::OkStatus();
  return InvalidArgument("updates must have shape ", expected.ToString(), " for indices of shape ",
                         indices.ToString(), " and an output of shape ", shape.ToString(),
                         ", but have shape ", updates.ToString());
}

absl::Status ScatterNdShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, RequestedShape(c, 2));
  WEIR_RETURN_IF_ERROR(c.WithRankAtLeast(0, 1).status());
  WEIR_RETURN_IF_ERROR(CheckScatter(c.input(0), c.input(1), shape));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status TensorScatterShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRankAtLeast(1, 1).status());
  WEIR_RETURN_IF_ERROR(CheckScatter(c.input(1), c.input(2), c.input(0)));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

// ---- gradients

// Returns the shape of a tensor, colocated with the tensor.
Output ColocatedShape(Output x) {
  ColocateWith beside(x.graph(), x.node);
  return ShapeTensor(x);
}

// Returns the gradient of a gather along dimension 0 as IndexedSlices: the gathered rows and their
// indices.
Grads RowsGradient(GradContext& g, Output params_shape, Output size) {
  const Output tail = StridedSlice(params_shape, {Index::Range(1, std::nullopt)});
  const Output values = Reshape(g.dy(), Concat({size, tail}, 0));
  return {IndexedSlices{values, Reshape(g.x(1), size), params_shape}};
}

Grads GatherGradient(GradContext& g) {
  const Output shape = ColocatedShape(g.x(0));
  return RowsGradient(g, shape, ExpandDims(Size(g.x(1)), 0));
}

// Returns indices plus the offset of each batch, so that they address the flattened batches.
Output BatchIndices(Output params_shape, Output indices, int64_t batch_dims) {
  Graph& g = indices.graph();
  const DataType type = indices.dtype();
  const Output shape = Cast(params_shape, type);
  Output stride = Ones(g, Shape(), type), out = indices;
  for (int64_t dim = batch_dims; dim > 0; --dim) {
    const Output extent = StridedSlice(shape, {dim - 1});
    stride = MulOp(stride, StridedSlice(shape, {dim}));
    const Output start = Zeros(g, Shape(), type), step = Ones(g, Shape(), type);
    const Output offsets = MulOp(RangeOp(g, start, extent, step), stride);
    const Output before = Ones(g, {dim - 1}, type);
    const Output after =
        Tile(Ones(g, {1}, type), ExpandDims(SubOp(Rank(indices), Ints(dim).In(g, "sub/y")), 0));
    out = AddV2Op(out, Reshape(offsets, Concat({before, ExpandDims(extent, 0), after}, 0)));
  }
  return out;
}

// Sums `values`, whose gathered dimension directly follows the batch dimensions, into rows of
// params.
Output BatchGatherSum(Output params_shape, Output values, Output indices, int64_t batch_dims,
                      Output extent) {
  const Output size = ExpandDims(Size(indices), 0);
  Output outer, flat_shape;
  if (batch_dims > 0) {
    const Output shape = ShapeTensor(values);
    outer = StridedSlice(shape, {Index::Range(std::nullopt, batch_dims)});
    const Output inner = StridedSlice(shape, {Index::Range(batch_dims + 1, std::nullopt)});
    flat_shape = Concat({Ints({-1}).In(values.graph(), "concat/values_0"), inner}, 0);
    extent = MulOp(extent, ProdOp(outer, Ints({0})));
    indices = BatchIndices(params_shape, indices, batch_dims);
    values = Reshape(values, flat_shape);
  }
  const Output sum = UnsortedSegmentSumOp(values, Reshape(indices, size), extent);
  return batch_dims > 0 ? Reshape(sum, Concat({outer, flat_shape}, 0)) : sum;
}

// Computes the gradient for an axis other than the first: moves the gathered dimension in front of
// the others (behind the batch dimensions), sums rows there, and moves it back.
Grads InnerAxisGradient(GradContext& g, Output params_shape, int64_t batch_dims) {
  Graph& graph = g.graph();
  const Output axis = Cast(g.x(2), DT_INT32), indices = g.x(1);
  const Output outer = StridedSlice(params_shape, {Index::Between({}, axis)});
  const Output from_axis = StridedSlice(params_shape, {Index::Between(axis, {})});
  const Output inner = StridedSlice(from_axis, {Index::Range(1, std::nullopt)});
  const Output values_shape = Concat({outer, Ints({-1}).In(graph, "concat/values_1"), inner}, 0);
  const Output num_dims = Size(values_shape), axis_dims = Size(outer);
  const Output batches = RangeOp(graph, 0, batch_dims, 1),
               before = RangeOp(graph, batch_dims, axis_dims, 1);
  const Output next = AddV2Op(axis_dims, Const(graph, 1, "add/y"));
  const Output after = RangeOp(graph, next, num_dims, 1);
  const Output values = Reshape(g.dy(), values_shape);
  const Output perm = Concat({batches, ExpandDims(axis_dims, 0), before, after}, 0);
  const Output moved = Transpose(values, perm), moved_shape = Gather(params_shape, perm);
  const Output extent = StridedSlice(params_shape, {axis});
  const Output sum = BatchGatherSum(moved_shape, moved, indices, batch_dims, extent);
  const Output shifted = AddV2Op(before, Const(graph, 1, "add/y"));
  const Output back =
      Concat({batches, shifted, Ints({batch_dims}).In(graph, "concat/values_2"), after}, 0);
  return {Reshape(Transpose(sum, back), ShapeTensor(g.x(0)))};
}

Grads GatherV2Gradient(GradContext& g) {
  const Output shape = ColocatedShape(g.x(0));
  const Output size = ExpandDims(Size(g.x(1)), 0);
  const Node* axis = g.x(2).node;
  const Tensor constant = axis->op_name() == "Const" ? axis->attr<Tensor>("value") : Tensor();
  const bool is_rows = constant.num_elements() == 1 && constant.IntAt(0) == 0;
  if (is_rows) return RowsGradient(g, shape, size);
  int64_t batch_dims = g.attr<int64_t>("batch_dims");
  if (batch_dims < 0) {
    if (!g.x(1).shape().has_rank()) {
      g.graph().Fail(InvalidArgument(
          "the gradient of ", g.node().Label(),
          " needs the rank of its indices, because batch_dims is negative: use EnsureShape"));
      return {};
    }
    batch_dims += g.x(1).shape().rank();
  }
  return InnerAxisGradient(g, shape, batch_dims);
}

Grads GatherNdGradient(GradContext& g) {
  const Output indices = g.x(1), shape = ShapeTensor(g.x(0), indices.dtype());
  if (indices.shape().rank() == 2 && indices.dim(1) == 1) {
    return {IndexedSlices{g.dy(), Squeeze(indices, {-1}), shape}};
  }
  return {ScatterNd(indices, g.dy(), shape)};
}

Grads ScatterNdGradient(GradContext& g) { return {Grad(), GatherNd(g.dy(), g.x(0))}; }
Grads ScatterNdAddGradient(GradContext& g) { return {g.dy(), Grad(), GatherNd(g.dy(), g.x(1))}; }

Grads TensorScatterUpdateGradient(GradContext& g) {
  const Output updates = GatherNd(g.dy(), g.x(1));
  return {TensorScatterUpdate(Identity(g.dy()), g.x(1), ZerosLike(g.x(2), g.dy().dtype())), Grad(),
          updates};
}

Grads TensorScatterAddGradient(GradContext& g) {
  const Output updates = GatherNd(g.dy(), g.x(1));
  return {Identity(g.dy()), Grad(), updates};
}

Grads TensorScatterSubGradient(GradContext& g) {
  const Output updates = GatherNd(g.dy(), g.x(1));
  return {Identity(g.dy()), Grad(), AddOp("Neg", {updates})};
}

// Divides the gradient equally among all elements that attain the minimum (maximum).
Grads TensorScatterExtremeGradient(GradContext& g) {
  const Output x = g.x(0), indices = g.x(1), y = g.x(2), out = g.y(), dy = g.dy();
  const Output x_wins = Cast(AddOp("Equal", {x, out}), dy.dtype());
  const Output y_wins = Cast(AddOp("Equal", {y, GatherNd(out, indices)}), dy.dtype());
  const Output y_count = ScatterNd(indices, y_wins, ShapeTensor(x, indices.dtype()));
  const Output winners = AddV2Op(x_wins, y_count);
  const Output dx = AddOp("RealDiv", {MulOp(dy, x_wins), winners}, {}, "truediv");
  const Output share = GatherNd(AddOp("RealDiv", {dy, winners}, {}, "truediv"), indices);
  return {dx, Grad(), MulOp(share, y_wins)};
}

}  // namespace

void AddArrayGatherOps(OpRegistry* ops) {
  ops->Add(OpSpec("Gather")
               .In("params: Tparams, indices: Tindices")
               .Out("output: Tparams")
               .Attr("validate_indices: bool = true")
               .Attr("Tparams: type")
               .Attr("Tindices: {int32, int64}")
               .Moves(Movement::kGather)
               .InferShape(GatherShape)
               .Gradient(GatherGradient)
               .Doc("Gathers slices of `params` along its first dimension, one for each index."));
  ops->Add(OpSpec("GatherV2")
               .In("params: Tparams, indices: Tindices, axis: Taxis")
               .Out("output: Tparams")
               .Attr("batch_dims: int = 0")
               .Attr("Tparams: type")
               .Attr("Tindices: {int16, int32, int64}")
               .Attr("Taxis: {int32, int64}")
               .Moves(Movement::kGather)
               .InferShape(GatherV2Shape)
               .Gradient(GatherV2Gradient)
               .Doc("Gathers slices of `params` along `axis`, one for each index. The first "
                    "`batch_dims` dimensions of both are batch dimensions."));
  ops->Add(OpSpec("GatherNd")
               .In("params: Tparams, indices: Tindices")
               .Out("output: Tparams")
               .Attr("Tparams: type")
               .Attr("Tindices: {int16, int32, int64}")
               .Attr("bad_indices_policy: string = ''")
               .Moves(Movement::kGather)
               .InferShape(GatherNdShape)
               .Gradient(GatherNdGradient)
               .Doc("Gathers slices of `params` that the last dimension of `indices` addresses."));
  ops->Add(OpSpec("ScatterNd")
               .In("indices: Tindices, updates: T, shape: Tindices")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tindices: {int16, int32, int64}")
               .Attr("bad_indices_policy: string = ''")
               .InferShape(Ranked("updates: >=1", ScatterNdShape))
               .Gradient(ScatterNdGradient)
               .Doc("Scatters `updates` into a tensor of zeros of shape `shape`. Updates with "
                    "equal indices are added."));
  ops->Add(OpSpec("ScatterNdNonAliasingAdd")
               .In("input: T, indices: Tindices, updates: T")
               .Out("output: T")
               .Attr("T: {numbertype, bool}")
               .Attr("Tindices: {int32, int64}")
               .Attr("bad_indices_policy: string = ''")
               .InferShape(Ranked("input: >=1", TensorScatterShape))
               .Gradient(ScatterNdAddGradient)
               .Doc("Returns the input with `updates` added at `indices`."));
  ops->Add(OpSpec("TensorScatterUpdate")
               .In("tensor: T, indices: Tindices, updates: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tindices: {int16, int32, int64, uint16}")
               .Attr("bad_indices_policy: string = ''")
               .InferShape(Ranked("tensor: >=1", TensorScatterShape))
               .Gradient(TensorScatterUpdateGradient)
               .Doc("Returns the tensor with its values at `indices` replaced by `updates`."));
  ops->Add(OpSpec("TensorScatterAdd")
               .In("tensor: T, indices: Tindices, updates: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tindices: {int32, int64}")
               .Attr("bad_indices_policy: string = ''")
               .InferShape(Ranked("tensor: >=1", TensorScatterShape))
               .Gradient(TensorScatterAddGradient)
               .Doc("Returns the tensor with `updates` added at `indices`."));
  ops->Add(OpSpec("TensorScatterSub")
               .In("tensor: T, indices: Tindices, updates: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tindices: {int32, int64}")
               .Attr("bad_indices_policy: string = ''")
               .InferShape(Ranked("tensor: >=1", TensorScatterShape))
               .Gradient(TensorScatterSubGradient)
               .Doc("Returns the tensor with `updates` subtracted at `indices`."));
  ops->Add(OpSpec("TensorScatterMin")
               .In("tensor: T, indices: Tindices, updates: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tindices: {int32, int64}")
               .Attr("bad_indices_policy: string = ''")
               .InferShape(Ranked("tensor: >=1", TensorScatterShape))
               .Gradient(TensorScatterExtremeGradient)
               .Doc("Returns the tensor with the elementwise minimum of itself and `updates` at "
                    "`indices`."));
  ops->Add(OpSpec("TensorScatterMax")
               .In("tensor: T, indices: Tindices, updates: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tindices: {int32, int64}")
               .Attr("bad_indices_policy: string = ''")
               .InferShape(Ranked("tensor: >=1", TensorScatterShape))
               .Gradient(TensorScatterExtremeGradient)
               .Doc("Returns the tensor with the elementwise maximum of itself and `updates` at "
                    "`indices`."));
}

// ---- builders

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

namespace {

Output ScatterOp(absl::string_view op, Output tensor, Output indices, Output updates,
                 absl::string_view name) {
  return AddOp(op, {tensor, indices, updates}, {}, name);
}

}  // namespace

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

}  // namespace weir
