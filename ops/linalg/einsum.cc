#include "weir/ops/linalg/einsum.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/op_costs.h"
#include "weir/ops/lib/registry.h"

namespace weir {

// ---- the equation

namespace {

absl::StatusOr<EinsumSubscript> ParseSubscript(absl::string_view text, absl::string_view what) {
  EinsumSubscript out;
  const size_t dots = std::count(text.begin(), text.end(), '.');
  const size_t at = text.find("...");
  if (dots != 0 && (dots != 3 || at == absl::string_view::npos)) {
    return InvalidArgument("Expected at most one ellipsis (...), but found ", dots,
                           " periods (.) in the ", what, " subscript: ", text);
  }
  out.ellipsis = dots == 3;
  out.before = std::string(text.substr(0, at));
  if (out.ellipsis) out.after = std::string(text.substr(at + 3));
  return out;
}

}  // namespace

absl::StatusOr<EinsumEquation> EinsumEquation::Parse(absl::string_view equation, int num_inputs) {
  const std::vector<absl::string_view> sides = absl::StrSplit(equation, "->");
  if (sides.size() != 2) {
    return InvalidArgument("Expecting exactly one '->' in einsum equation: ", equation);
  }
  const std::vector<absl::string_view> inputs = absl::StrSplit(sides[0], ',');
  if (inputs.size() > 2) {
    return InvalidArgument("Expecting 1 or 2 input subscripts in equation '", equation,
                           "' but got: ", inputs.size());
  }
  if (static_cast<int>(inputs.size()) != num_inputs) {
    return InvalidArgument("Expected ", inputs.size(), " inputs for equation ", equation,
                           " but got: ", num_inputs);
  }
  EinsumEquation out;
  out.text = std::string(equation);
  for (const absl::string_view input : inputs) {
    WEIR_ASSIGN_OR_RETURN(EinsumSubscript subscript, ParseSubscript(input, "input"));
    out.inputs.push_back(std::move(subscript));
  }
  WEIR_ASSIGN_OR_RETURN(out.output, ParseSubscript(sides[1], "output"));
  if (absl::StrContains(sides[1], ',')) {
    return InvalidArgument("Expecting one output subscript in einsum equation: ", equation);
  }
  for (const char label : out.output.before + out.output.after) {
    if (!absl::StrContains(sides[0], label)) {
      return InvalidArgument("Einsum output subscripts for equation '", equation, "' has label '",
                             std::string(1, label),
                             "' which is not present in the input subscripts");
    }
  }
  return out;
}

namespace {

std::vector<int> LabelsOf(const EinsumSubscript& subscript, int ellipsis_dims) {
  std::vector<int> out;
  const auto named = [](char label) { return static_cast<int>(static_cast<uint8_t>(label)); };
  for (const char label : subscript.before) out.push_back(named(label));
  for (int i = ellipsis_dims - 1; i >= 0; --i) out.push_back(EinsumLabels::kEllipsis + i);
  for (const char label : subscript.after) out.push_back(named(label));
  return out;
}

// Returns the size of a label's dimension, given two sizes found for it. Dimensions of an ellipsis
// broadcast.
absl::StatusOr<int64_t> MergeExtents(int label, int64_t a, int64_t b) {
  if (label < EinsumLabels::kEllipsis) return MergeDims(a, b);
  if (a == 1 || b == 1) return a == 1 ? b : a;
  return MergeDims(a, b);
}

}  // namespace

absl::StatusOr<EinsumLabels> EinsumLabels::Match(const EinsumEquation& equation,
                                                 absl::Span<const Shape> shapes) {
  EinsumLabels out;
  int broadcast_dims = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const EinsumSubscript& subscript = equation.inputs[i];
    const int named = static_cast<int>(subscript.before.size() + subscript.after.size());
    const int rest = shapes[i].rank() - named;
    if (subscript.ellipsis ? rest < 0 : rest != 0) {
      return InvalidArgument("Expected input ", i, " to have rank ",
                             subscript.ellipsis ? "at least " : "", named,
                             " but got: ", shapes[i].rank(), " for equation ", equation.text);
    }
    broadcast_dims = std::max(broadcast_dims, rest);
    out.inputs.push_back(LabelsOf(subscript, rest));
    for (int d = 0; d < shapes[i].rank(); ++d) {
      const int label = out.inputs[i][d];
      const auto [known, is_new] = out.extents.emplace(label, shapes[i].dim(d));
      const absl::StatusOr<int64_t> extent = MergeExtents(label, known->second, shapes[i].dim(d));
      if (!extent.ok() && label >= kEllipsis) {
        return InvalidArgument("Incompatible shapes: ", shapes[0].ToString(), " vs. ",
                               shapes[1].ToString(), " for equation ", equation.text,
                               ": the dimensions of '...' must have compatible batch dimensions");
      }
      if (!extent.ok()) {
        return InvalidArgument("Expected dimension ", known->second, " at axis ", d,
                               " of the input shaped ", shapes[i].ToString(), " but got dimension ",
                               shapes[i].dim(d), " for equation ", equation.text,
                               ": Dimensions must be equal");
      }
      known->second = *extent;
    }
  }
  if (broadcast_dims > 0 && !equation.output.ellipsis) {
    return InvalidArgument("Output contains ", broadcast_dims,
                           " broadcasting dimension(s) but no ellipsis (...) was found in the "
                           "output subscripts of equation ",
                           equation.text);
  }
  out.output = LabelsOf(equation.output, equation.output.ellipsis ? broadcast_dims : 0);
  return out;
}

Shape EinsumLabels::OutputShape() const {
  Shape shape;
  for (const int label : output) shape.AddDim(extents.at(label));
  return shape;
}

// ---- the builder

namespace {

// Returns the output of an equation without "->": the labels that occur once, in alphabetical
// order.
std::string ImpliedOutput(absl::string_view inputs) {
  std::string out;
  for (const char label : inputs) {
    if (label != ',' && label != '.' && std::count(inputs.begin(), inputs.end(), label) == 1) {
      out.push_back(label);
    }
  }
  std::sort(out.begin(), out.end());
  return (absl::StrContains(inputs, "...") ? "..." : "") + out;
}

}  // namespace

Output Einsum(absl::string_view equation, const Outputs& inputs, absl::string_view name) {
  if (inputs.empty() || !inputs[0].valid()) return {};
  std::string full(equation);
  full.erase(std::remove(full.begin(), full.end(), ' '), full.end());
  if (!absl::StrContains(full, "->")) full += "->" + ImpliedOutput(full);
  const NameScope scope(inputs[0].graph(), name);
  return AddOp("Einsum", {inputs}, {{"equation", full}});
}

// ---- the gradient

namespace {

using Subscript = EinsumSubscript;

bool Has(const Subscript& s, char label) {
  return absl::StrContains(s.before, label) || absl::StrContains(s.after, label);
}
bool HasRepeats(const Subscript& s) {
  std::string all = s.before + s.after;
  std::sort(all.begin(), all.end());
  return std::adjacent_find(all.begin(), all.end()) != all.end();
}

// Returns the axis of a label, counted from the end if the label follows the ellipsis.
int AxisOf(const Subscript& s, char label) {
  const size_t at = s.before.find(label);
  if (at != std::string::npos) return static_cast<int>(at);
  return static_cast<int>(s.after.find(label)) - static_cast<int>(s.after.size());
}

Subscript RemoveLabels(Subscript s, absl::string_view labels) {
  for (std::string* part : {&s.before, &s.after}) {
    part->erase(std::remove_if(part->begin(), part->end(),
                               [&](char c) { return absl::StrContains(labels, c); }),
                part->end());
  }
  return s;
}

// Returns the labels of `s` that occur in neither `a` nor `b`, each once.
std::string LabelsOnlyIn(const Subscript& s, const Subscript& a, const Subscript& b) {
  std::string out;
  for (const char label : s.before + s.after) {
    if (!Has(a, label) && !Has(b, label) && !absl::StrContains(out, label)) out.push_back(label);
  }
  return out;
}

Output EinsumNode(const Outputs& inputs, const std::string& equation) {
  return AddOp("Einsum", {inputs}, {{"equation", equation}});
}

// Returns `shape` with 1 at the axes: a constant if it is static, otherwise computed as Python's
// reduced_shape does.
Ints KeepDimsShape(const Output& x, const Output& shape, const std::vector<int64_t>& axes) {
  Graph& g = shape.graph();
  const Output reduced = Ints(axes).In(g, "Const", DT_INT32);
  if (x.shape().IsFullyDefined()) {
    Shape kept = x.shape();
    for (const int64_t a : axes) kept.set_dim(static_cast<int>(a < 0 ? a + kept.rank() : a), 1);
    return Ints(kept);
  }
  return ReducedShape(shape, reduced);
}

// Computes the gradient of summing over `reduced`, labels that occur in `x` only ("abc->ac" for
// "b"): broadcasts dy along them. If that does not suffice ("aab->a", "abc->ca"), the labels are
// added in front and an Einsum moves each label to its position.
Output BroadcastOverReduced(Output dy, const Subscript& dy_subscript, const Output& x,
                            const Subscript& x_subscript, const Output& x_shape,
                            const std::string& reduced) {
  std::vector<int64_t> axes;
  Outputs extents;
  for (const char label : reduced) {
    axes.push_back(AxisOf(x_subscript, label));
    extents.push_back(StridedSlice(x_shape, {Index(axes.back())}));
  }
  const Output reduced_dims = AddOp("Pack", {extents}, {}, "stack");
  const bool repeats = HasRepeats(x_subscript) || HasRepeats(dy_subscript);
  if (!repeats && RemoveLabels(x_subscript, reduced).ToString() == dy_subscript.ToString()) {
    const Ints kept = KeepDimsShape(x, x_shape, axes);
    return BroadcastTo(Reshape(dy, kept), x_shape);
  }
  const Output with_reduced = Concat({reduced_dims, ShapeVector(dy)}, 0);
  const Output ones = Ones(dy.graph(), Ints{static_cast<int64_t>(reduced.size())}, DT_INT32);
  const Output kept = Concat({ones, ShapeVector(dy)}, 0);
  const Output spread = BroadcastTo(Reshape(dy, kept), with_reduced);
  return EinsumNode({spread},
                    absl::StrCat(reduced, dy_subscript.ToString(), "->", x_subscript.ToString()));
}

// For z = einsum("X,Y->Z", x, y): dx = einsum("Z,Y->X", dz, y), except that labels of X that are in
// neither Y nor Z were summed over first.
Output OperandGradient(const Output& dz, const Subscript& z, const Output& other,
                       const Subscript& y, const Output& x, const Subscript& x_subscript,
                       const Output& x_shape) {
  const std::string reduced = LabelsOnlyIn(x_subscript, z, y);
  const Subscript left = RemoveLabels(x_subscript, reduced);
  const Output dx =
      EinsumNode({dz, other}, absl::StrCat(z.ToString(), ",", y.ToString(), "->", left.ToString()));
  if (reduced.empty()) return dx;
  return BroadcastOverReduced(dx, left, x, x_subscript, x_shape, reduced);
}

Grads UnaryGradient(GradContext& g, const EinsumEquation& e) {
  const Output x = g.x(0), shape = ShapeVector(x);
  const std::string reduced = LabelsOnlyIn(e.inputs[0], e.output, e.output);
  if (reduced.empty()) {
    return {EinsumNode({g.dy()}, e.output.ToString() + "->" + e.inputs[0].ToString())};
  }
  return {BroadcastOverReduced(g.dy(), e.output, x, e.inputs[0], shape, reduced)};
}

// Returns the dimensions that an ellipsis matches.
Output EllipsisDims(const Output& shape, const Subscript& s) {
  const int64_t end = static_cast<int64_t>(s.after.size());
  return StridedSlice(shape,
                      {Index::Range(static_cast<int64_t>(s.before.size()),
                                    end == 0 ? std::nullopt : std::optional<int64_t>(-end))});
}
Shape EllipsisShape(const Shape& shape, const Subscript& s) {
  return shape.Sub(static_cast<int>(s.before.size()),
                   shape.rank() - static_cast<int>(s.after.size()));
}

Output SumEllipsis(const Output& gradient, const Output& axes, const Subscript& s,
                   const Output& shape) {
  Graph& g = gradient.graph();
  Output shifted;
  {
    const NameScope scope(g, "add");
    const Output start = Const(g, static_cast<int32_t>(s.before.size()), "x");
    shifted = AddOp("AddV2", {start, axes}, {}, scope.name());
  }
  return Reshape(ReduceSum(gradient, shifted), shape);
}

Grads BinaryGradient(GradContext& g, const EinsumEquation& e) {
  Subscript xs = e.inputs[0], ys = e.inputs[1];
  // An operand without an ellipsis gets one that matches no dimensions, which the gradient needs.
  if (e.output.ellipsis) xs.ellipsis = ys.ellipsis = true;
  const Output dz = g.dy(), x = Conj(g.x(0)), y = Conj(g.x(1));
  const Output x_shape = ShapeVector(x), y_shape = ShapeVector(y);
  const Output dx = OperandGradient(dz, e.output, y, ys, x, xs, x_shape);
  const Output dy = OperandGradient(dz, e.output, x, xs, y, ys, y_shape);
  if (!e.output.ellipsis) return {dx, dy};
  const Shape &sx = x.shape(), &sy = y.shape();
  if (sx.IsFullyDefined() && sy.IsFullyDefined() &&
      EllipsisShape(sx, xs) == EllipsisShape(sy, ys)) {
    return {dx, dy};
  }
  const Output x_dims = EllipsisDims(x_shape, xs), y_dims = EllipsisDims(y_shape, ys);
  const BroadcastReductions axes = BroadcastGradientArgs(x_dims, y_dims);
  const Output summed_x = SumEllipsis(dx, axes.r0, xs, x_shape);
  return {summed_x, SumEllipsis(dy, axes.r1, ys, y_shape)};
}

Grads EinsumGradient(GradContext& g) {
  const absl::StatusOr<EinsumEquation> equation =
      EinsumEquation::Parse(g.attr<std::string>("equation"), g.num_inputs());
  if (!equation.ok()) {
    g.graph().Fail(equation.status());
    return {};
  }
  return g.num_inputs() == 1 ? UnaryGradient(g, *equation) : BinaryGradient(g, *equation);
}

absl::Status EinsumShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const EinsumEquation equation,
                        EinsumEquation::Parse(c.attr<std::string>("equation"), c.num_inputs()));
  std::vector<Shape> shapes;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const EinsumSubscript& subscript = equation.inputs[i];
    if (!c.input(i).has_rank() && subscript.ellipsis) return absl::OkStatus();
    shapes.push_back(c.input(i));
    if (!c.input(i).has_rank()) {
      WEIR_ASSIGN_OR_RETURN(shapes.back(),
                            c.WithRank(i, static_cast<int>(subscript.before.size())));
    }
  }
  WEIR_ASSIGN_OR_RETURN(const EinsumLabels labels, EinsumLabels::Match(equation, shapes));
  c.set_output(0, labels.OutputShape());
  return absl::OkStatus();
}

}  // namespace

void AddEinsumOps(OpRegistry* ops) {
  ops->Add(OpSpec("Einsum")
               .In("inputs: N * T")
               .Out("output: T")
               .Attr("equation: string")
               .Attr("N: int >= 1")
               .Attr("T: type")
               .Flops(EinsumFlops)
               .InferShape(EinsumShape)
               .Gradient(EinsumGradient)
               .Doc("Multiplies the elements of one or two tensors and sums the products as the "
                    "equation specifies: 'ij,jk->ik' is the matrix product."));
}

}  // namespace weir
