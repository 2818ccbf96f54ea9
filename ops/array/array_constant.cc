#include "weir/ops/lib/array.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/lib/shape_values.h"

// Tensors without inputs: constants, placeholders, fills.
namespace weir {

// ---- shape functions

namespace {

absl::Status ConstShape(ShapeContext& c) {
  const Tensor value = c.attr<Tensor>("value");
  if (!value.initialized()) {  // as written by an import that could not read the bytes
    return InvalidArgument(c.node().attr_or<std::string>("_value_error", "Const without a value"));
  }
  if (value.dtype() != c.attr<DataType>("dtype")) {
    return InvalidArgument("Const of type ", DataTypeName(c.attr<DataType>("dtype")),
                           " has a value of type ", DataTypeName(value.dtype()));
  }
  c.set_output(0, value.shape());
  return absl::OkStatus();
}

absl::Status AttrShape(ShapeContext& c) {
  c.set_output(0, c.attr<Shape>("shape"));
  return absl::OkStatus();
}

// Returns the declared shape. Graphs with a version below 22 use a scalar shape to mean an unknown
// one.
absl::Status PlaceholderShape(ShapeContext& c) {
  constexpr int kLastWithoutUnknownRank = 21;
  const Shape shape = c.attr<Shape>("shape");
  const bool unknown =
      shape.rank() <= 0 && c.node().graph().versions().producer <= kLastWithoutUnknownRank;
  c.set_output(0, unknown ? Shape::UnknownRank() : shape);
  return absl::OkStatus();
}

absl::Status PlaceholderWithDefaultShape(ShapeContext& c) {
  const Shape shape = c.attr<Shape>("shape");
  WEIR_RETURN_IF_ERROR(c.input(0).MergeWith(shape).status());
  c.set_output(0, shape);
  return absl::OkStatus();
}

absl::Status FillShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, RequestedShape(c, 0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// ---- gradients

Grads FillGradient(GradContext& g) { return {Grad(), SumAll(g.dy())}; }

}  // namespace

void AddArrayConstantOps(OpRegistry* ops) {
  ops->Add(OpSpec("Const")
               .Out("output: dtype")
               .Attr("value: tensor")
               .Attr("dtype: type")
               .Moves(Movement::kStored)
               .ShapeValue(ConstShapeValue)
               .InferShape(ConstShape)
               .NotDifferentiable()
               .Doc("Returns a tensor whose value is known at graph construction time."));
  ops->Add(OpSpec("HostConst")
               .Out("output: dtype")
               .Attr("value: tensor")
               .Attr("dtype: type")
               .Moves(Movement::kStored)
               .ShapeValue(ConstShapeValue)
               .InferShape(ConstShape)
               .NotDifferentiable()
               .Doc("Const, in the memory of the host on every device."));
  ops->Add(OpSpec("Placeholder")
               .Out("output: dtype")
               .Attr("dtype: type")
               .Attr("shape: shape = {unknown_rank: true}")
               .IsPlaceholder()
               .InferShape(PlaceholderShape)
               .Doc("Returns a tensor that must be fed. Running it without a feed fails with "
                    "INVALID_ARGUMENT."));
  ops->Add(OpSpec("PlaceholderV2")
               .Out("output: dtype")
               .Attr("dtype: type")
               .Attr("shape: shape")
               .Deprecated(23, "use Placeholder")
               .IsPlaceholder()
               .InferShape(AttrShape)
               .Doc("Returns a tensor that must be fed. The older name of Placeholder."));
  ops->Add(OpSpec("PlaceholderWithDefault")
               .In("input: dtype")
               .Out("output: dtype")
               .Attr("dtype: type")
               .Attr("shape: shape")
               .Moves(Movement::kIdentity)
               .InferShape(PlaceholderWithDefaultShape)
               .Gradient(PassGradient)
               .Doc("Returns the input, unless a value is fed for the output."));
  ops->Add(OpSpec("Fill")
               .In("dims: index_type, value: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("index_type: {int32, int64} = DT_INT32")
               .Repeats(1)
               .InferShape(Ranked("value: 0", FillShape))
               .Gradient(FillGradient)
               .Doc("Returns a tensor of shape `dims` filled with `value`."));
  ops->Add(OpSpec("ZerosLike")
               .In("x: T")
               .Out("y: T")
               .Attr("T: type")
               .Moves(Movement::kReadsShape)
               .InferShape(SameShape)
               .NotDifferentiable()
               .Doc("Returns zeros with the shape and type of x."));
  ops->Add(
      OpSpec("OnesLike")
          .In("x: T")
          .Out("y: T")
          .Attr("T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, "
                "int64, uint64, complex64, complex128, bool}")
          .Moves(Movement::kReadsShape)
          .InferShape(SameShape)
          .NotDifferentiable()
          .Doc("Returns ones with the shape and type of x."));
  ops->Add(
      OpSpec("Empty")
          .In("shape: int32")
          .Out("output: dtype")
          .Attr("dtype: type")
          .Attr("init: bool = false")
          .Stateful()
          .InferShape(FillShape)
          .Doc("Returns a tensor of this shape with arbitrary elements, or with zeros if `init`."));
}

// ---- builders

namespace {

Tensor IntTensor(const std::vector<int64_t>& values, DataType dtype, const Shape& shape) {
  if (dtype == DT_INT64) return Tensor::Of<int64_t>(shape, absl::Span<const int64_t>(values));
  std::vector<int32_t> narrow(values.begin(), values.end());
  return Tensor::Of<int32_t>(shape, absl::Span<const int32_t>(narrow));
}

}  // namespace

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

namespace {

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

}  // namespace

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

}  // namespace weir
