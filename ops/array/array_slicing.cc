#include "weir/ops/lib/array.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/lib/shape_values.h"
#include "weir/ops/lib/strided_slice.h"

// Slice and StridedSlice.
namespace weir {

namespace {

Attrs MaskAttrs(const StridedSliceOptions& o) {
  return {{"begin_mask", o.begin_mask},
          {"end_mask", o.end_mask},
          {"ellipsis_mask", o.ellipsis_mask},
          {"new_axis_mask", o.new_axis_mask},
          {"shrink_axis_mask", o.shrink_axis_mask}};
}

// ---- shape functions

absl::Status SliceShape(ShapeContext& c) {
  Shape in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const int64_t n_begin, VectorLength(c, 1));
  WEIR_ASSIGN_OR_RETURN(const int64_t n_size, VectorLength(c, 2));
  WEIR_ASSIGN_OR_RETURN(const int64_t n, MergeDims(n_begin, n_size));
  if (!in.has_rank()) in = UnknownDims(n);
  if (!in.has_rank()) return absl::OkStatus();
  if (n >= 0 && n != in.rank()) {
    return InvalidArgument("Shape must be rank ", n, " but is rank ", in.rank(),
                           ": begin and size must have an element for each dimension of input");
  }
  const auto begin = KnownInts(c, 1), size = KnownInts(c, 2);
  Shape out = UnknownDims(in.rank());
  for (int i = 0; i < in.rank(); ++i) {
    if (begin.has_value() && ((*begin)[i] < 0 || (in.dim(i) >= 0 && (*begin)[i] > in.dim(i)))) {
      return InvalidArgument("Expected begin[", i, "] in [0, ", in.dim(i), "], but got ",
                             (*begin)[i]);
    }
    if (!size.has_value()) continue;
    const int64_t s = (*size)[i];
    if (s < -1) return InvalidArgument("Expected size[", i, "] to be at least -1, but got ", s);
    if (s >= 0 && begin.has_value() && in.dim(i) >= 0 && s > in.dim(i) - (*begin)[i]) {
      return InvalidArgument("Expected size[", i, "] in [0, ", in.dim(i) - (*begin)[i],
                             "], but got ", s);
    }
    out.set_dim(i, s >= 0                                ? s
                   : begin.has_value() && in.dim(i) >= 0 ? in.dim(i) - (*begin)[i]
                                                         : Shape::kUnknown);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// Returns the slice of a tensor of this shape that inputs first..first+2 describe, or nullopt if
// too little is known.
absl::StatusOr<std::optional<ResolvedSlice>> KnownSlice(ShapeContext& c, int first,
                                                        const Shape& shape) {
  int64_t n = Shape::kUnknown;
  for (int i = first; i < first + 3; ++i) {
    WEIR_ASSIGN_OR_RETURN(const int64_t length, VectorLength(c, i));
    WEIR_ASSIGN_OR_RETURN(n, MergeDims(n, length));
  }
  const auto strides = KnownInts(c, first + 2);
  if (!shape.has_rank() || !strides.has_value()) return std::optional<ResolvedSlice>();
  const auto begin = KnownInts(c, first), end = KnownInts(c, first + 1);
  const KnownBounds from = begin ? KnownBounds(*begin) : std::nullopt,
                    to = end ? KnownBounds(*end) : std::nullopt;
  WEIR_ASSIGN_OR_RETURN(ResolvedSlice slice,
                        ResolveSlice(shape, from, to, *strides, SliceMasks(c.node())));
  return std::optional<ResolvedSlice>(std::move(slice));
}

absl::Status StridedSliceShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::optional<ResolvedSlice> slice, KnownSlice(c, 1, c.input(0)));
  if (slice.has_value()) c.set_output(0, slice->final_shape);
  return absl::OkStatus();
}

absl::Status StridedSliceGradShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, RequestedShape(c, 0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status SliceUpdateShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(KnownSlice(c, 1, c.input(0)).status());
  return PassShape(c, 0, 0);
}

absl::Status ResourceSliceAssignShape(ShapeContext& c) {
  const Shape shape = c.handle(0) != nullptr ? c.handle(0)->shape : Shape::UnknownRank();
  return KnownSlice(c, 1, shape).status();
}

// ---- gradients

// Returns [a, 1] as a Pack named "stack".
Output PackWithOne(Output a) {
  if (!a.valid()) return {};
  NameScope scope(a.graph(), "stack");
  return AddOp("Pack", {Outputs{a, Ints(1).In(a.graph(), "1", a.dtype())}}, {}, scope.name());
}

Grads SliceGradient(GradContext& g) {
  const Output x = g.x(0), begin = g.x(1);
  const Output rank = Rank(x), size = ShapeTensor(g.y(), begin.dtype());
  const Output column = PackWithOne(rank);
  const Output before = Reshape(begin, column);
  const Output left = SubOp(SubOp(ShapeTensor(x, begin.dtype()), size), begin);
  const Output after = Reshape(left, column);
  return {Pad(g.dy(), Concat({before, after}, 1))};
}

// Returns a constant input as a new literal named `name`, as Python does; returns any other input
// unchanged.
Output StaticInput(GradContext& g, int i, absl::string_view name) {
  const Output in = g.x(i);
  if (in.node->op_name() != "Const") return in;
  return Const(g.graph(), in.node->attr<Tensor>("value"), name);
}

Grads StridedSliceGradient(GradContext& g) {
  const Output shape = ShapeTensor(g.x(0), g.x(1).dtype());
  NameScope scope(g.graph(), "StridedSliceGrad");
  const bool is_static = g.x(0).shape().IsFullyDefined();
  const Output dims =
      is_static ? Ints(g.x(0).shape()).In(g.graph(), "shape", g.x(1).dtype()) : shape;
  const Output begin = StaticInput(g, 1, "begin"), end = StaticInput(g, 2, "end"),
               strides = StaticInput(g, 3, "strides");
  return {StridedSliceGrad(dims, begin, end, strides, g.dy(), SliceMasks(g.node()), scope.name())};
}

Grads StridedSliceGradGradient(GradContext& g) {
  return {Grad(), Grad(), Grad(), Grad(),
          StridedSlice(g.dy(), g.x(1), g.x(2), g.x(3), SliceMasks(g.node()), "StridedSlice")};
}

Grads TensorStridedSliceUpdateGradient(GradContext& g) {
  const Output begin = g.x(1), end = g.x(2), strides = g.x(3);
  const StridedSliceOptions masks = SliceMasks(g.node());
  const Output taken = StridedSlice(g.dy(), begin, end, strides, masks, "StridedSlice");
  const Output dx = AddOp("TensorStridedSliceUpdate",
                          {g.dy(), begin, end, strides, ZerosLike(taken)}, MaskAttrs(masks));
  const Output slice_shape = ShapeTensor(taken, begin.dtype()),
               value_shape = ShapeTensor(g.x(4), begin.dtype());
  const BroadcastReductions axes = BroadcastGradientArgs(slice_shape, value_shape);
  return {dx, Grad(), Grad(), Grad(), Reshape(ReduceSum(taken, axes.r1, true), value_shape)};
}

}  // namespace

void AddArraySlicingOps(OpRegistry* ops) {
  ops->Add(OpSpec("Slice")
               .In("input: T, begin: Index, size: Index")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Index: {int32, int64}")
               .Moves(Movement::kGather)
               .IdentityIfSameShape()
               .InferShape(SliceShape)
               .Gradient(SliceGradient)
               .Doc("Returns `size` elements starting at `begin` in each dimension. A size of -1 "
                    "selects all remaining elements."));
  ops->Add(OpSpec("StridedSlice")
               .In("input: T, begin: Index, end: Index, strides: Index")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Index: {int16, int32, int64}")
               .Attr("begin_mask: int = 0")
               .Attr("end_mask: int = 0")
               .Attr("ellipsis_mask: int = 0")
               .Attr("new_axis_mask: int = 0")
               .Attr("shrink_axis_mask: int = 0")
               .Moves(Movement::kGather)
               .ShapeValue(SlicedShapeValue)
               .InferShape(StridedSliceShape)
               .Gradient(StridedSliceGradient)
               .Doc("Slices a tensor with NumPy's basic indexing: strided ranges, single indices, "
                    "an ellipsis and new axes, as the masks specify."));
  ops->Add(OpSpec("StridedSliceGrad")
               .In("shape: Index, begin: Index, end: Index, strides: Index, dy: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Index: {int32, int64}")
               .Attr("begin_mask: int = 0")
               .Attr("end_mask: int = 0")
               .Attr("ellipsis_mask: int = 0")
               .Attr("new_axis_mask: int = 0")
               .Attr("shrink_axis_mask: int = 0")
               .InferShape(StridedSliceGradShape)
               .Gradient(StridedSliceGradGradient)
               .Doc("Returns zeros of shape `shape` with dy at the elements that StridedSlice "
                    "would read."));
  ops->Add(OpSpec("StridedSliceAssign")
               .In("ref: Ref(T), begin: Index, end: Index, strides: Index, value: T")
               .Out("output_ref: Ref(T)")
               .Attr("T: type")
               .Attr("Index: {int32, int64}")
               .Attr("begin_mask: int = 0")
               .Attr("end_mask: int = 0")
               .Attr("ellipsis_mask: int = 0")
               .Attr("new_axis_mask: int = 0")
               .Attr("shrink_axis_mask: int = 0")
               .InferShape(SliceUpdateShape)
               .Doc("Assigns `value`, broadcast, to a slice of a reference variable."));
  ops->Add(OpSpec("ResourceStridedSliceAssign")
               .In("ref: resource, begin: Index, end: Index, strides: Index, value: T")
               .Attr("T: type")
               .Attr("Index: {int32, int64}")
               .Attr("begin_mask: int = 0")
               .Attr("end_mask: int = 0")
               .Attr("ellipsis_mask: int = 0")
               .Attr("new_axis_mask: int = 0")
               .Attr("shrink_axis_mask: int = 0")
               .Stateful()
               .InferShape(ResourceSliceAssignShape)
               .Doc("Assigns `value`, broadcast, to a slice of a resource variable."));
  ops->Add(OpSpec("TensorStridedSliceUpdate")
               .In("input: T, begin: Index, end: Index, strides: Index, value: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Index: {int32, int64}")
               .Attr("begin_mask: int = 0")
               .Attr("end_mask: int = 0")
               .Attr("ellipsis_mask: int = 0")
               .Attr("new_axis_mask: int = 0")
               .Attr("shrink_axis_mask: int = 0")
               .InferShape(SliceUpdateShape)
               .Gradient(TensorStridedSliceUpdateGradient)
               .Doc("Returns the input with a slice replaced by `value`, broadcast."));
}

// ---- builders

Output Slice(Output x, const Ints& begin, const Ints& size, absl::string_view name) {
  return WithTwoInts("Slice", x, "begin", begin, "size", size, name, true);
}

// Converts Index objects into what Python's x[...] creates: three vectors and five masks. A vector
// of literals becomes a constant named "stack", "stack_1" or "stack_2"; a vector that contains a
// tensor becomes a Pack of that name.
struct IndexReader {
  struct Bound {
    int64_t value = 0;
    Output tensor;
  };
  std::vector<Bound> begin, end, stride;
  StridedSliceOptions masks;

  explicit IndexReader(const std::vector<Index>& indices) {
    for (size_t i = 0; i < indices.size(); ++i) Read(indices[i], int64_t{1} << i);
  }

  void Read(const Index& index, int64_t bit) {
    Bound b{index.begin_, index.begin_tensor_}, e{index.end_, index.end_tensor_};
    if (index.kind_ == Index::kAt) {
      masks.shrink_axis_mask |= bit;
      e = Bound{index.begin_ + 1, {}};
      if (b.tensor.valid()) e.tensor = b.tensor + 1;
    } else if (index.kind_ == Index::kEllipsis) {
      masks.ellipsis_mask |= bit;
    } else if (index.kind_ == Index::kNewAxis) {
      masks.new_axis_mask |= bit;
      e.value = 1;
    } else {
      if (!index.has_begin_) masks.begin_mask |= bit;
      if (!index.has_end_) masks.end_mask |= bit;
    }
    if (index.kind_ == Index::kEllipsis || index.kind_ == Index::kNewAxis) b = e = Bound{};
    begin.push_back(b);
    end.push_back(e);
    stride.push_back({index.step_, {}});
  }

  static Output Vector(Graph& g, const std::vector<Bound>& bounds, DataType type) {
    std::vector<int64_t> literals;
    bool has_tensor = false;
    for (const Bound& b : bounds) {
      literals.push_back(b.value);
      has_tensor |= b.tensor.valid();
    }
    if (!has_tensor) return Ints(std::move(literals)).In(g, "stack", type);
    NameScope scope(g, "stack");
    Outputs parts;
    for (size_t i = 0; i < bounds.size(); ++i) {
      parts.push_back(bounds[i].tensor.valid()
                          ? bounds[i].tensor
                          : Ints(bounds[i].value).In(g, absl::StrCat(i), type));
    }
    return AddOp("Pack", {parts}, {}, scope.name());
  }

  DataType Type() const {
    constexpr int64_t kLimit = int64_t{1} << 31;
    DataType type = DT_INT32;
    for (const auto* list : {&begin, &end, &stride}) {
      for (const Bound& b : *list) {
        if ((b.tensor.valid() && b.tensor.dtype() == DT_INT64) || b.value >= kLimit ||
            b.value < -kLimit)
          type = DT_INT64;
      }
    }
    return type;
  }
};

Output StridedSlice(Output x, const std::vector<Index>& indices, absl::string_view name) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  if (indices.size() > 32) {
    g.Fail(InvalidArgument("StridedSlice: at most 32 indices are possible, but there are ",
                           indices.size()));
    return {};
  }
  const IndexReader reader(indices);
  NameScope scope(g, name.empty() ? "strided_slice" : name);
  const DataType type = reader.Type();
  const Output begin = IndexReader::Vector(g, reader.begin, type),
               end = IndexReader::Vector(g, reader.end, type);
  return StridedSlice(x, begin, end, IndexReader::Vector(g, reader.stride, type), reader.masks,
                      scope.name());
}

Output StridedSlice(Output x, Output begin, Output end, Output strides,
                    const StridedSliceOptions& options, absl::string_view name) {
  return AddOp("StridedSlice", {x, begin, end, strides}, MaskAttrs(options), name);
}

Output StridedSliceGrad(Output shape, Output begin, Output end, Output strides, Output dy,
                        const StridedSliceOptions& options, absl::string_view name) {
  return AddOp("StridedSliceGrad", {shape, begin, end, strides, dy}, MaskAttrs(options), name);
}

}  // namespace weir
