#include <utility>

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"

// Comparison, logic, bits.
namespace weir {

namespace {

// Equal and NotEqual: shapes that do not broadcast are an error, unless the node's attribute says
// that they yield a scalar.
absl::Status EqualityShape(ShapeContext& c) {
  absl::StatusOr<Shape> shape = BroadcastShapes(c.input(0), c.input(1));
  if (c.attr<bool>("incompatible_shape_error")) {
    WEIR_RETURN_IF_ERROR(shape.status());
    c.set_output(0, *std::move(shape));
  } else if (!shape.ok()) {
    c.set_output(0, Shape());
  } else if (shape->IsFullyDefined()) {
    c.set_output(0, *std::move(shape));
  }
  return absl::OkStatus();
}

}  // namespace

void AddLogicOps(OpRegistry* ops) {
  for (const auto& [op, doc] :
       {std::pair<const char*, const char*>{"Less", "Returns whether x < y."},
        {"LessEqual", "Returns whether x <= y."},
        {"Greater", "Returns whether x > y."},
        {"GreaterEqual", "Returns whether x >= y."}}) {
    ops->Add(OpSpec(op)
                 .In("x: T, y: T")
                 .Out("z: bool")
                 .Attr(kRealTypes)
                 .Elementwise()
                 .InferShape(BroadcastShape)
                 .NotDifferentiable()
                 .Doc(doc));
  }
  for (const auto& [op, doc] :
       {std::pair<const char*, const char*>{"Equal", "Returns whether x and y are equal."},
        {"NotEqual", "Returns whether x and y differ."}}) {
    ops->Add(OpSpec(op)
                 .In("x: T, y: T")
                 .Out("z: bool")
                 .Attr("T: type")
                 .Attr("incompatible_shape_error: bool = true")
                 .Commutative()
                 .Elementwise()
                 .InferShape(EqualityShape)
                 .NotDifferentiable()
                 .Doc(doc));
  }
  ops->Add(OpSpec("ApproximateEqual")
               .In("x: T, y: T")
               .Out("z: bool")
               .Attr("T: numbertype")
               .Attr("tolerance: float = 1e-05")
               .Commutative()
               .Elementwise()
               .InferShape(MergedShape)
               .NotDifferentiable()
               .Doc("Returns whether |x - y| < tolerance."));
  for (const auto& [op, doc] :
       {std::pair<const char*, const char*>{"LogicalAnd", "Returns the logical AND of x and y."},
        {"LogicalOr", "Returns the logical OR of x and y."}}) {
    ops->Add(OpSpec(op)
                 .In("x: bool, y: bool")
                 .Out("z: bool")
                 .Commutative()
                 .Elementwise()
                 .Neutral({.value = absl::string_view(op) == "LogicalAnd" ? 1. : 0.,
                           .either_side = true,
                           .in_floating_point = true})
                 .InferShape(BroadcastShape)
                 .NotDifferentiable()
                 .Doc(doc));
  }
  for (const auto& [op, doc] :
       {std::pair<const char*, const char*>{"BitwiseAnd", "Returns the bitwise AND of x and y."},
        {"BitwiseOr", "Returns the bitwise OR of x and y."},
        {"BitwiseXor", "Returns the bitwise XOR of x and y."}}) {
    OpSpec spec = BinarySpec(op, kIntegerTypes);
    if (absl::string_view(op) != "BitwiseAnd") spec.Neutral({.value = 0, .either_side = true});
    ops->Add(spec.Commutative().NotDifferentiable().Doc(doc));
  }
  ops->Add(BinarySpec("LeftShift", kIntegerTypes)
               .Neutral({.value = 0})
               .NotDifferentiable()
               .Doc("Shifts x left by y bits. A shift beyond the width of the type is clamped to "
                    "the largest shift within it."));
  ops->Add(BinarySpec("RightShift", kIntegerTypes)
               .Neutral({.value = 0})
               .NotDifferentiable()
               .Doc("Shifts x right by y bits; signed numbers keep their sign. A shift beyond the "
                    "width of the type is clamped to the largest shift within it."));
}

Output Equal(const TensorArg& x, const TensorArg& y, absl::string_view name,
             bool incompatible_shape_error) {
  return Binary("Equal", x, y, name, "x", "y",
                {{"incompatible_shape_error", incompatible_shape_error}});
}
Output NotEqual(const TensorArg& x, const TensorArg& y, absl::string_view name,
                bool incompatible_shape_error) {
  return Binary("NotEqual", x, y, name, "x", "y",
                {{"incompatible_shape_error", incompatible_shape_error}});
}
Output Less(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("Less", x, y, name);
}
Output LessEqual(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("LessEqual", x, y, name);
}
Output Greater(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("Greater", x, y, name);
}
Output GreaterEqual(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("GreaterEqual", x, y, name);
}
Output ApproximateEqual(Output x, Output y, float tolerance, absl::string_view name) {
  return AddOp("ApproximateEqual", {x, y}, {{"tolerance", tolerance}}, name);
}
Output LogicalAnd(Output x, Output y, absl::string_view name) {
  return AddOp("LogicalAnd", {x, y}, {}, name);
}
Output LogicalOr(Output x, Output y, absl::string_view name) {
  return AddOp("LogicalOr", {x, y}, {}, name);
}
Output LogicalXor(Output x, Output y, absl::string_view name) {
  const Output any = LogicalOr(x, y);
  const Output not_both = LogicalNot(LogicalAnd(x, y));
  return LogicalAnd(any, not_both, name);
}

Output BitwiseAnd(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("BitwiseAnd", x, y, name);
}
Output BitwiseOr(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("BitwiseOr", x, y, name);
}
Output BitwiseXor(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("BitwiseXor", x, y, name);
}

Output LeftShift(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("LeftShift", x, y, name);
}
Output RightShift(const TensorArg& x, const TensorArg& y, absl::string_view name) {
  return Binary("RightShift", x, y, name);
}

Output operator&(const Output& x, const Output& y) {
  internal::ReadHere(x);
  if (x.dtype() == DT_BOOL || !x.valid()) return LogicalAnd(x, y, "and");
  NameScope scope(x.graph(), "and");
  return BitwiseAnd(x, y);
}
Output operator|(const Output& x, const Output& y) {
  internal::ReadHere(x);
  if (x.dtype() == DT_BOOL || !x.valid()) return LogicalOr(x, y, "or");
  NameScope scope(x.graph(), "or");
  return BitwiseOr(x, y);
}
Output operator^(const Output& x, const Output& y) {
  internal::ReadHere(x);
  if (!x.valid() || !y.valid()) return {};
  NameScope scope(x.graph(), "xor");
  return x.dtype() == DT_BOOL ? LogicalXor(x, y, scope.name()) : BitwiseXor(x, y);
}

}  // namespace weir
