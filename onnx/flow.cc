#include <utility>

#include "weir/onnx/building.h"
#include "weir/onnx/graph_importer.h"
#include "weir/onnx/importers.h"
#include "weir/ops/containers/tensor_array.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/onnx.pb.h"

// If, Loop and Scan, as TensorFlow 1's conditionals and loops, which have gradients. The graph of a
// branch or a body is imported where the builder calls for its nodes, so it may use all tensors
// around it.
namespace weir::onnx {

namespace {

using proto::onnx::GraphProto;

// Imports a graph whose values must all be tensors.
absl::StatusOr<Outputs> CallTensors(NodeContext& c, const GraphProto& def, const Outputs& inputs) {
  WEIR_ASSIGN_OR_RETURN(const Values values,
                        c.importer().CallGraph(def, Values(inputs.begin(), inputs.end())));
  Outputs out;
  for (const Value& value : values) {
    if (!value.is_tensor())
      return Unimplemented(
          "sequences and optionals are not supported as results of branches and "
          "bodies");
    out.push_back(value.tensor);
  }
  return out;
}

Output AsScalar(const Output& x) {
  return x.shape().IsScalar() ? x : Reshape(x, std::vector<int64_t>());
}

// ---- If

absl::Status ImportIf(NodeContext& c) {
  const GraphProto* const then_branch = c.GraphAttr("then_branch");
  const GraphProto* const else_branch = c.GraphAttr("else_branch");
  if (then_branch == nullptr || else_branch == nullptr)
    return InvalidArgument("a branch is missing");
  const std::optional<Tensor> known = c.Constant(0);
  if (known && known->dtype() == DT_BOOL && known->num_elements() == 1) {
    WEIR_ASSIGN_OR_RETURN(
        Values values,
        c.importer().CallGraph(known->scalar<bool>() ? *then_branch : *else_branch, Values()));
    return c.ReturnValues(std::move(values));
  }
  absl::Status status;
  const auto build = [&](const GraphProto& branch) {
    absl::StatusOr<Outputs> outputs = CallTensors(c, branch, {});
    status.Update(outputs.status());
    return outputs.ok() ? *std::move(outputs) : Outputs();
  };
  const Outputs results = Cond(c.Scalar(0), BranchListFn([&] { return build(*then_branch); }),
                               BranchListFn([&] { return build(*else_branch); }));
  WEIR_RETURN_IF_ERROR(status);
  return c.Return(results);
}

// ---- what Loop and Scan have in common

// The dtype and the shape that a graph declares for one of its outputs.
absl::StatusOr<std::pair<DataType, Shape>> DeclaredOutput(const GraphProto& body, int i) {
  const auto& info = body.output(i);
  if (!info.type().has_tensor_type())
    return Unimplemented("output '", info.name(), "' of the body has no declared type");
  WEIR_ASSIGN_OR_RETURN(const DataType dtype,
                        DataTypeOfOnnx(info.type().tensor_type().elem_type()));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, ShapeOfType(info.type().tensor_type()));
  return std::make_pair(dtype, shape);
}

// The shape that a loop variable has in all iterations. Where the body declares the initial
// dimension for its result, it stays; others may change, but not the rank.
Shape InvariantOf(const Output& initial, const GraphProto& body, int output) {
  const absl::StatusOr<std::pair<DataType, Shape>> declared = DeclaredOutput(body, output);
  Shape shape = initial.shape();
  for (int i = 0; i < shape.rank(); ++i) {
    const bool is_kept = declared.ok() && declared->second.rank() == shape.rank() &&
                         declared->second.dim(i) == shape.dim(i);
    if (!is_kept) shape.set_dim(i, Shape::kUnknown);
  }
  return shape;
}

// The step checks what the body declares of a variable, where the graph does not show it.
Output Checked(const Output& x, const Shape& invariant) {
  const absl::StatusOr<Shape> known = x.shape().MergeWith(invariant);
  return known.ok() && *known != x.shape() ? EnsureShape(x, invariant) : x;
}

// Adds arrays that collect the outputs of a body from `first` on.
absl::StatusOr<std::vector<TensorArray>> Collectors(NodeContext& c, const GraphProto& body,
                                                    int first, const weir::Ints& size, bool grows) {
  std::vector<TensorArray> arrays;
  for (int i = first; i < body.output_size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const auto type, DeclaredOutput(body, i));
    arrays.emplace_back(
        c.graph(), type.first, size,
        TensorArrayOptions{
            .dynamic_size = grows, .infer_shape = false, .element_shape = type.second});
  }
  return arrays;
}

Output MoveAxis(const Output& x, int from, int to, int rank) {
  std::vector<int64_t> perm;
  for (int i = 0; i < rank; ++i) {
    if (i != from) perm.push_back(i);
  }
  perm.insert(perm.begin() + to, from);
  return from == to ? x : Transpose(x, perm);
}

// ---- Loop

absl::Status ImportLoop(NodeContext& c) {
  const GraphProto* const body = c.GraphAttr("body");
  if (body == nullptr) return InvalidArgument("the body is missing");
  const int num_vars = std::max(0, c.num_inputs() - 2);
  if (body->input_size() != num_vars + 2 || body->output_size() < num_vars + 1)
    return InvalidArgument("the body has ", body->input_size(), " inputs and ", body->output_size(),
                           " outputs for ", num_vars, " variables");
  WEIR_ASSIGN_OR_RETURN(const std::vector<TensorArray> arrays,
                        Collectors(c, *body, num_vars + 1, 0, true));
  Graph& graph = c.graph();
  Outputs vars = {Const<int64_t>(graph, 0), c.has(1) ? c.Scalar(1) : Const(graph, true)};
  std::vector<Shape> invariants = {Shape(), Shape()};
  for (int i = 0; i < num_vars; ++i) {
    vars.push_back(c.in(i + 2));
    invariants.push_back(InvariantOf(vars.back(), *body, i + 1));
  }
  for (const TensorArray& array : arrays) {
    vars.push_back(array.flow());
    invariants.emplace_back();
  }
  const Output limit = c.has(0) ? c.Scalar(0) : Output();
  absl::Status status;
  const auto goes_on = [&](const Outputs& v) {
    return limit.valid() ? LogicalAnd(Less(v[0], limit), v[1]) : Identity(v[1]);
  };
  const auto iterate = [&](const Outputs& v) -> Outputs {
    const Outputs inputs(v.begin(), v.begin() + 2 + num_vars);
    absl::StatusOr<Outputs> results = CallTensors(c, *body, inputs);
    status.Update(results.status());
    if (!results.ok()) return {};
    Outputs next = {Add(v[0], Const<int64_t>(graph, 1)), AsScalar((*results)[0])};
    for (int i = 0; i < num_vars; ++i)
      next.push_back(Checked((*results)[1 + i], invariants[2 + i]));
    for (size_t i = 0; i < arrays.size(); ++i)
      next.push_back(arrays[i]
                         .WithFlow(v[2 + num_vars + i])
                         .Write(Cast(v[0], DT_INT32), (*results)[1 + num_vars + i])
                         .flow());
    return next;
  };
  const Outputs last = WhileLoop(goes_on, iterate, vars, {.shape_invariants = invariants});
  WEIR_RETURN_IF_ERROR(status);
  Outputs results(last.begin() + 2, last.begin() + 2 + num_vars);
  for (size_t i = 0; i < arrays.size(); ++i)
    results.push_back(arrays[i].WithFlow(last[2 + num_vars + i]).Stack());
  return c.Return(results);
}

// ---- Scan

struct ScanAxes {
  std::vector<int64_t> input_axes, output_axes, input_directions, output_directions;
};

absl::StatusOr<ScanAxes> ScanAxesOf(NodeContext& c, int num_inputs, int num_outputs) {
  const auto zeros = [](int n) { return std::vector<int64_t>(n, 0); };
  ScanAxes axes{c.Ints("scan_input_axes", zeros(num_inputs)),
                c.Ints("scan_output_axes", zeros(num_outputs)),
                c.Ints("scan_input_directions", zeros(num_inputs)),
                c.Ints("scan_output_directions", zeros(num_outputs))};
  const size_t in = num_inputs, out = num_outputs;
  if (axes.input_axes.size() == in && axes.input_directions.size() == in &&
      axes.output_axes.size() == out && axes.output_directions.size() == out)
    return axes;
  return InvalidArgument("axes and directions must have one number for each of ", num_inputs,
                         " scanned inputs and ", num_outputs, " outputs");
}

absl::Status ImportScan(NodeContext& c) {
  const GraphProto* const body = c.GraphAttr("body");
  const int64_t num_scanned = c.Int("num_scan_inputs", 0);
  if (body == nullptr || num_scanned < 1 || num_scanned > c.num_inputs())
    return InvalidArgument("the body is missing, or num_scan_inputs is ", num_scanned, " of ",
                           c.num_inputs(), " inputs");
  const int scanned = static_cast<int>(num_scanned), num_vars = c.num_inputs() - scanned;
  if (body->input_size() != c.num_inputs() || body->output_size() < num_vars)
    return InvalidArgument("the body has ", body->input_size(), " inputs and ", body->output_size(),
                           " outputs for ", c.num_inputs(), " inputs");
  WEIR_ASSIGN_OR_RETURN(const ScanAxes axes,
                        ScanAxesOf(c, scanned, body->output_size() - num_vars));
  Graph& graph = c.graph();
  std::vector<TensorArray> inputs;
  Output length;
  for (int i = 0; i < scanned; ++i) {
    WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(num_vars + i));
    WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(axes.input_axes[i], rank));
    Output x = MoveAxis(c.in(num_vars + i), axis, 0, rank);
    if (axes.input_directions[i] != 0) x = Reverse(x, {0});
    if (i == 0) length = Cast(DimOf(x, 0), DT_INT32);
    inputs.push_back(TensorArray(graph, x.dtype(), length).Unstack(x));
  }
  WEIR_ASSIGN_OR_RETURN(const std::vector<TensorArray> arrays,
                        Collectors(c, *body, num_vars, length, false));
  Outputs vars = {Const<int32_t>(graph, 0)};
  std::vector<Shape> invariants = {Shape()};
  for (int i = 0; i < num_vars; ++i) {
    vars.push_back(c.in(i));
    invariants.push_back(InvariantOf(vars.back(), *body, i));
  }
  for (const TensorArray& array : arrays) {
    vars.push_back(array.flow());
    invariants.emplace_back();
  }
  absl::Status status;
  const auto goes_on = [&](const Outputs& v) { return Less(v[0], length); };
  const auto iterate = [&](const Outputs& v) -> Outputs {
    Outputs arguments(v.begin() + 1, v.begin() + 1 + num_vars);
    for (const TensorArray& input : inputs) arguments.push_back(input.Read(v[0]));
    absl::StatusOr<Outputs> results = CallTensors(c, *body, arguments);
    status.Update(results.status());
    if (!results.ok()) return {};
    Outputs next = {Add(v[0], Const<int32_t>(graph, 1))};
    for (int i = 0; i < num_vars; ++i) next.push_back(Checked((*results)[i], invariants[1 + i]));
    for (size_t i = 0; i < arrays.size(); ++i)
      next.push_back(
          arrays[i].WithFlow(v[1 + num_vars + i]).Write(v[0], (*results)[num_vars + i]).flow());
    return next;
  };
  const Outputs last = WhileLoop(goes_on, iterate, vars, {.shape_invariants = invariants});
  WEIR_RETURN_IF_ERROR(status);
  Outputs results(last.begin() + 1, last.begin() + 1 + num_vars);
  for (size_t i = 0; i < arrays.size(); ++i) {
    Output y = arrays[i].WithFlow(last[1 + num_vars + i]).Stack();
    if (axes.output_directions[i] != 0) y = Reverse(y, {0});
    if (axes.output_axes[i] != 0) {
      if (!y.shape().has_rank()) return Unimplemented("the rank of a scanned output is not known");
      WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(axes.output_axes[i], y.shape().rank()));
      y = MoveAxis(y, 0, axis, y.shape().rank());
    }
    results.push_back(y);
  }
  return c.Return(results);
}

constexpr Importer kImporters[] = {
    {"If", 7, 1, 1, ImportIf},
    {"Loop", 7, 0, kAnyNumber, ImportLoop},
    {"Scan", 9, 1, kAnyNumber, ImportScan},
};

}  // namespace

absl::Span<const Importer> FlowImporters() { return kImporters; }

}  // namespace weir::onnx
