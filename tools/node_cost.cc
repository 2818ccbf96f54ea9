#include "weir/tools/node_cost.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "weir/kernels/fused_elementwise.h"

namespace weir::tools {

namespace {

using Value = NodeTrace::Value;
using Names = std::set<absl::string_view>;

constexpr double kLineBytes = 64;  // of a cache

// Their output may lie where their first input lies.
const Names& KeepPlace() {
  static const auto* const names =
      new Names{"Bitcast",       "Enter",           "EnsureShape",      "Exit",
                "ExpandDims",    "Identity",        "IdentityN",        "Merge",
                "NextIteration", "PreventGradient", "RefEnter",         "RefExit",
                "RefIdentity",   "RefMerge",        "RefNextIteration", "RefSwitch",
                "Reshape",       "Snapshot",        "StackPush",        "StackPushV2",
                "Squeeze",       "StopGradient",    "Switch",           "PlaceholderWithDefault"};
  return *names;
}

// They hand on memory that is there already, and that no input shows.
const Names& HandOn() {
  static const auto* const names =
      new Names{"Const", "ReadVariableOp", "StackPop", "StackPopV2", "_Read"};
  return *names;
}

// Each element of the output is one of the inputs'.
const Names& Rearrange() {
  static const auto* const names = new Names{"BatchToSpace",
                                             "BatchToSpaceND",
                                             "BroadcastTo",
                                             "Concat",
                                             "ConcatV2",
                                             "DeepCopy",
                                             "DepthToSpace",
                                             "DynamicPartition",
                                             "DynamicStitch",
                                             "MatrixDiagPart",
                                             "MirrorPad",
                                             "Pack",
                                             "Pad",
                                             "PadV2",
                                             "ParallelConcat",
                                             "ParallelDynamicStitch",
                                             "ReverseSequence",
                                             "ReverseV2",
                                             "Roll",
                                             "SpaceToBatch",
                                             "SpaceToBatchND",
                                             "SpaceToDepth",
                                             "Split",
                                             "SplitV",
                                             "TensorArrayConcatV3",
                                             "TensorArrayGatherV3",
                                             "Tile",
                                             "Transpose",
                                             "Unpack"};
  return *names;
}

// They rearrange too, but read no more of their first input than they write.
const Names& TakeParts() {
  static const auto* const names =
      new Names{"Gather",         "GatherNd",         "GatherV2",
                "ResourceGather", "ResourceGatherNd", "ResourceStridedSlice",
                "Slice",          "StridedSlice"};
  return *names;
}

// They look at an input's shape and not at its elements.
const Names& ReadShapes() {
  static const auto* const names =
      new Names{"OnesLike", "Rank", "Shape", "ShapeN", "Size", "VariableShape", "ZerosLike"};
  return *names;
}

// One operation for each element of the first input.
const Names& Reductions() {
  static const auto* const names = new Names{"All",
                                             "Any",
                                             "ArgMax",
                                             "ArgMin",
                                             "BiasAddGrad",
                                             "Cumprod",
                                             "Cumsum",
                                             "EuclideanNorm",
                                             "L2Loss",
                                             "Max",
                                             "Mean",
                                             "Min",
                                             "Prod",
                                             "SegmentMax",
                                             "SegmentMean",
                                             "SegmentMin",
                                             "SegmentProd",
                                             "SegmentSum",
                                             "Sum",
                                             "UnsortedSegmentMax",
                                             "UnsortedSegmentMin",
                                             "UnsortedSegmentProd",
                                             "UnsortedSegmentSum"};
  return *names;
}

// One for each element of the first output, besides the ops that FindFusableOp knows.
const Names& Elementwise() {
  static const auto* const names = new Names{"ApproximateEqual",
                                             "Atan2",
                                             "BiasAdd",
                                             "BiasAddV1",
                                             "BitwiseAnd",
                                             "BitwiseOr",
                                             "BitwiseXor",
                                             "Cast",
                                             "CheckNumerics",
                                             "ClipByValue",
                                             "Complex",
                                             "ComplexAbs",
                                             "Dequantize",
                                             "Div",
                                             "Equal",
                                             "FloorDiv",
                                             "FloorMod",
                                             "Greater",
                                             "GreaterEqual",
                                             "Igamma",
                                             "Igammac",
                                             "Invert",
                                             "IsFinite",
                                             "IsInf",
                                             "IsNan",
                                             "LeftShift",
                                             "Less",
                                             "LessEqual",
                                             "LogicalAnd",
                                             "LogicalNot",
                                             "LogicalOr",
                                             "Mod",
                                             "NotEqual",
                                             "Pow",
                                             "RealDiv",
                                             "RightShift",
                                             "Select",
                                             "SelectV2",
                                             "TruncateDiv",
                                             "TruncateMod",
                                             "Zeta"};
  return *names;
}

bool IsOneOf(const Names& names, absl::string_view op) { return names.find(op) != names.end(); }

double Elements(const Value& value) {
  const bool counts = IsPlain(value.dtype) && !IsRef(value.dtype);
  return counts ? std::max<double>(0, value.shape.num_elements()) : 0;
}
double Bytes(const Value& value) { return Elements(value) * ElementSize(value.dtype); }

double Quotient(double a, double b) { return b > 0 ? a / b : 0; }

const Value& At(const std::vector<Value>& values, size_t i) {
  static const Value* const nothing = new Value;
  return i < values.size() ? values[i] : *nothing;
}

bool Begins(const Value& value, const Value& in) {
  const auto *at = static_cast<const char*>(value.data), *begin = static_cast<const char*>(in.data);
  return at == begin || (at > begin && at < begin + static_cast<size_t>(Bytes(in)));
}

// One of the others lies in the same memory, or the one is a part of the other.
bool LiesAmong(const Value& value, const std::vector<Value>& others) {
  return value.data != nullptr && std::any_of(others.begin(), others.end(), [&](const Value& v) {
           return v.data != nullptr && (Begins(value, v) || Begins(v, value));
         });
}

// Those that hold elements: Merge also tells which input it has taken.
absl::Span<const Value> MovedOutputs(const NodeTrace& run) {
  return absl::MakeSpan(run.outputs).subspan(0, run.op == "Merge" ? 1 : run.outputs.size());
}

// ---- bytes

// Ops that write variables, by handles or references: ResourceApplyAdam, AssignAdd, ScatterSub.
bool UpdatesVariables(absl::string_view op) {
  if (op == "_FusedUpdate") return true;
  absl::ConsumePrefix(&op, "Resource");
  for (const char* family : {"Apply", "SparseApply", "Assign", "Scatter", "StridedSliceAssign"}) {
    if (absl::StartsWith(op, family)) return op != "ScatterNd";
  }
  return false;
}

int NumHandles(const NodeTrace& run) {
  return static_cast<int>(std::count_if(run.inputs.begin(), run.inputs.end(), [](const Value& v) {
    return v.dtype == DT_RESOURCE || IsRef(v.dtype);
  }));
}

const Value& LargestInput(const NodeTrace& run) {
  const Value* largest = &At({}, 0);
  for (const Value& input : run.inputs) {
    if (Bytes(input) > Bytes(*largest)) largest = &input;
  }
  return *largest;
}

// Assign only writes its variable, the others read it first.
double UpdateBytes(const NodeTrace& run) {
  const bool only_writes = run.op == "Assign" || run.op == "AssignVariableOp";
  double bytes = NumHandles(run) * (only_writes ? 1 : 2) * Bytes(LargestInput(run));
  for (const Value& input : run.inputs) bytes += Bytes(input);
  return bytes;
}

double MovedBytes(const NodeTrace& run) {
  if (IsOneOf(HandOn(), run.op)) return 0;
  // It hands on what it has collected.
  if (run.op == "_DeferMatMul") return 2 * (Bytes(At(run.inputs, 4)) + Bytes(At(run.inputs, 5)));
  const bool keeps_place = IsOneOf(KeepPlace(), run.op), takes_parts = IsOneOf(TakeParts(), run.op);
  double bytes = 0;
  for (const Value& output : MovedOutputs(run)) {
    if (OnlyMoves(run.op) && LiesAmong(output, run.inputs)) continue;
    bytes += Bytes(output) * (keeps_place || takes_parts ? 2 : 1);
  }
  if (keeps_place || IsOneOf(ReadShapes(), run.op)) return bytes;
  for (size_t i = takes_parts ? 1 : 0; i < run.inputs.size(); ++i) {
    const auto before = run.inputs.begin() + i;
    const bool counted = run.inputs[i].data != nullptr &&  // Mul(x, x) reads x once
                         std::any_of(run.inputs.begin(), before,
                                     [&](const Value& v) { return v.data == run.inputs[i].data; });
    const bool stays = OnlyMoves(run.op) && LiesAmong(run.inputs[i], run.outputs);
    if (!counted && !stays) bytes += Bytes(run.inputs[i]);
  }
  return bytes;
}

// ---- operations

double ChannelsOut(const Shape& filter, bool depthwise) {
  if (filter.rank() < 2) return 0;
  const double last = static_cast<double>(filter.dim(-1));
  return depthwise ? last * static_cast<double>(filter.dim(-2)) : last;
}

// Of filters [height, width, channels in of a group, channels out], however the images are laid
// out: each element of the result, or of the gradient that comes from it, meets all that the filter
// has for its channel.
double ConvolutionFlops(const NodeTrace& run) {
  const bool depthwise = absl::StrContains(run.op, "Depthwise");
  const bool of_input = absl::StrContains(run.op, "BackpropInput");
  const bool of_filter = absl::StrContains(run.op, "BackpropFilter");
  const Value& filter = of_filter ? At(run.outputs, 0) : At(run.inputs, 1);
  const Value& result = of_input || of_filter ? At(run.inputs, 2) : At(run.outputs, 0);
  return 2 * Elements(result) * Quotient(Elements(filter), ChannelsOut(filter.shape, depthwise));
}

// Filters with a bias behind each: the first ones meet the image's pixels if there are three, and
// all others those of the result.
double SeparableConvFlops(const NodeTrace& run) {
  const auto pixels = [](const Value& image) {
    return Quotient(Elements(image), static_cast<double>(image.shape.dim(-1)));
  };
  const bool expands = run.inputs.size() >= 7;
  if (At(run.outputs, 0).shape.rank() != 4 || At(run.inputs, 0).shape.rank() != 4) return 0;
  double flops = 0;
  for (int i = 1; i <= (expands ? 5 : 3); i += 2) {
    const Value& image = expands && i == 1 ? At(run.inputs, 0) : At(run.outputs, 0);
    flops += 2 * pixels(image) * Elements(At(run.inputs, i));
  }
  return flops;
}

// [..., m, k] by [..., k, n], either of them transposed or not: k is what m leaves of the first.
double MatMulFlops(const NodeTrace& run) {
  const Shape &a = At(run.inputs, 0).shape, &product = At(run.outputs, 0).shape;
  if (a.rank() < 2 || product.rank() < 2) return 0;
  const double rows = static_cast<double>(product.dim(-2));
  const double k = Quotient(static_cast<double>(a.dim(-1)) * a.dim(-2), rows);
  return (IsComplex(At(run.inputs, 0).dtype) ? 8 : 2) * Elements(At(run.outputs, 0)) * k;
}

// Two operations for each combination of values that the letters of the equation take; -1 where it
// cannot be told.
double EinsumFlops(const NodeTrace& run, const Node* node) {
  const std::string equation = node == nullptr ? "" : node->attr_or<std::string>("equation", "");
  const std::pair<std::string, std::string> sides =
      absl::StrSplit(equation, absl::MaxSplits("->", 1));
  const std::vector<std::string> terms = absl::StrSplit(sides.first, ',');
  std::map<char, double> extents;
  for (size_t i = 0; i < terms.size(); ++i) {
    std::string letters = terms[i];
    letters.erase(std::remove(letters.begin(), letters.end(), ' '), letters.end());
    const Shape& shape = At(run.inputs, i).shape;
    if (static_cast<int>(letters.size()) != shape.rank()) return -1;  // with "..." among them
    for (size_t k = 0; k < letters.size(); ++k) {
      if (std::isalpha(static_cast<unsigned char>(letters[k])) == 0) return -1;
      extents[letters[k]] =
          std::max(extents[letters[k]], static_cast<double>(shape.dim(static_cast<int>(k))));
    }
  }
  double flops = 2;
  for (const auto& [letter, extent] : extents) flops *= extent;
  return flops;
}

// One for each element of each window.
double PoolFlops(const NodeTrace& run, const Node* node) {
  if (node == nullptr) return -1;
  double window = 1;
  for (const int64_t extent : node->attr_or("ksize", std::vector<int64_t>()))
    window *= static_cast<double>(extent);
  return window * Elements(At(run.outputs, 0));
}

// Of all inputs together.
double BroadcastElements(const NodeTrace& run) {
  Shape all;
  for (const Value& input : run.inputs) {
    absl::StatusOr<Shape> both = BroadcastShapes(all, input.shape);
    if (!both.ok()) return 0;
    all = *std::move(both);
  }
  return std::max<double>(0, all.num_elements());
}

bool IsElementwise(const NodeTrace& run) {
  if (IsOneOf(Elementwise(), run.op)) return true;
  return FindFusableOp(run.op, run.inputs.size(), At(run.inputs, 0).dtype).has_value();
}

// -1 for an op that is not counted.
double Flops(const NodeTrace& run, const Node* node) {
  const absl::string_view op = run.op;
  const double out = Elements(At(run.outputs, 0)), in = Elements(At(run.inputs, 0));
  const double fused = static_cast<double>(run.fused_ops.size()) * out;
  if (op == "_FusedElementwise") return fused;
  if (op == "_FusedUpdate")
    return static_cast<double>(run.fused_ops.size()) * Elements(LargestInput(run));
  if (op == "_FusedReduction") {
    const auto reduction = absl::c_find_if(
        run.fused_ops, [](const std::string& name) { return IsOneOf(Reductions(), name); });
    const auto after = run.fused_ops.end() - std::min(reduction + 1, run.fused_ops.end());
    return static_cast<double>(run.fused_ops.size() - after) * BroadcastElements(run) +
           static_cast<double>(after) * out;
  }
  if (op == "_FusedDepthwiseSeparableConv2D") return SeparableConvFlops(run);
  if (absl::StrContains(op, "Conv2D") || absl::StrContains(op, "Conv3D") ||
      absl::StrContains(op, "DepthwiseConv2d")) {
    // FusedPadConv2D and QuantizedConv2D have other inputs.
    const bool is_other = absl::StartsWith(op, "Fused") || absl::StartsWith(op, "Quantized");
    return is_other ? -1 : ConvolutionFlops(run) + fused;
  }
  if (op == "MatMul" || op == "_FusedMatMul" || absl::StartsWith(op, "BatchMatMul"))
    return MatMulFlops(run) + fused;
  if (op == "_DeferMatMul") {  // of what it collects, now or later
    const Shape& y = At(run.inputs, 5).shape;
    return y.rank() < 1 ? 0 : 2 * Elements(At(run.inputs, 4)) * static_cast<double>(y.dim(-1));
  }
  if (op == "Einsum") return EinsumFlops(run, node);
  if (op == "MaxPool" || op == "AvgPool") return PoolFlops(run, node);
  if (op == "AddN") return std::max<double>(0, run.inputs.size() - 1.0) * out;
  if (op == "Softmax" || op == "LogSoftmax" || op == "_SoftmaxParts")
    return 4 * in;                             // maximum, exp, sum, quotient or difference
  if (op == "_FusedLayerNorm") return 8 * in;  // two sums and squares, then scale and offset
  if (UpdatesVariables(op)) return 2 * NumHandles(run) * Elements(LargestInput(run));
  if (OnlyMoves(op) || IsOneOf(ReadShapes(), op)) return 0;
  if (IsOneOf(Reductions(), op)) return in;
  return IsElementwise(run) ? out : -1;
}

}  // namespace

NodeCost CostOf(const NodeTrace& run, const Node* node) {
  NodeCost cost;
  if (IsDead(run)) return cost;
  if (node != nullptr && node->op_name() != run.op) node = nullptr;  // fused into its neighbors
  cost.estimated = UpdatesVariables(run.op);
  cost.bytes = cost.estimated ? UpdateBytes(run) : MovedBytes(run);
  const double flops = Flops(run, node);
  cost.knows_flops = flops >= 0;
  cost.flops = std::max(0., flops);
  const DataType type = At(run.inputs, 0).dtype;
  if (BaseType(type) == DT_DOUBLE || BaseType(type) == DT_COMPLEX128) cost.element_bytes = 8;
  return cost;
}

bool IsDead(const NodeTrace& run) {
  const auto is_dead = [](const Value& v) { return v.dtype == DT_INVALID; };
  return std::any_of(run.inputs.begin(), run.inputs.end(), is_dead) &&
         std::all_of(run.outputs.begin(), run.outputs.end(), is_dead);
}

bool OnlyMoves(absl::string_view op) {
  return op == "_Copy" || IsOneOf(HandOn(), op) || IsOneOf(KeepPlace(), op) ||
         IsOneOf(Rearrange(), op) || IsOneOf(TakeParts(), op);
}

std::string CopyReason(const NodeTrace& run) {
  if (!OnlyMoves(run.op) || IsOneOf(HandOn(), run.op) || IsDead(run)) return "";
  if (run.op == "_Copy") return "between devices";
  const absl::Span<const Value> outputs = MovedOutputs(run);
  const bool copied = std::any_of(outputs.begin(), outputs.end(), [&](const Value& v) {
    return Bytes(v) >= kLineBytes && !LiesAmong(v, run.inputs);
  });
  if (!copied) return "";
  return IsOneOf(KeepPlace(), run.op) ? "could have kept its place" : "rearranged";
}

}  // namespace weir::tools
