#include "weir/ops/nn/nn.h"

#include <string>
#include <utility>
#include <vector>

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/op_costs.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/lib/window.h"
#include "weir/ops/nn/nn_internal.h"

// Pooling.
namespace weir {

// ---- shape functions

namespace {

// Returns the window sizes or strides: an attribute, or (V2) an input whose value may not be known
// yet. Returns an empty vector in that case.
std::vector<int64_t> Extents(ShapeContext& c, absl::string_view name) {
  const std::pair<int, int> range = c.node().InputRange(name);
  if (range.first == range.second) return c.node().attr_or<std::vector<int64_t>>(name, {});
  const Tensor* value = c.input_value(range.first);
  std::vector<int64_t> out;
  for (int64_t i = 0; value != nullptr && i < value->num_elements(); ++i)
    out.push_back(value->IntAt(i));
  return out;
}

// Returns the shape of the result of pooling `input`. A dimension whose window or stride is not
// known yet is unknown.
absl::StatusOr<Shape> PoolOutputShape(ShapeContext& c, const Shape& input) {
  WEIR_ASSIGN_OR_RETURN(const DataLayout layout,
                        ParseDataFormat(c.node().attr_or<std::string>("data_format", "NHWC")));
  const std::string padding = c.attr<std::string>("padding");
  const std::vector<int64_t> ksize = Extents(c, "ksize"), strides = Extents(c, "strides");
  const std::vector<int64_t> pads = c.node().attr_or<std::vector<int64_t>>("explicit_paddings", {});
  Shape out(std::vector<int64_t>(layout.rank, -1));
  if (ksize.empty() || strides.empty()) {
    if (c.node().InputRange("ksize").first != c.node().InputRange("ksize").second) return out;
  }
  for (const auto& [name, list] : {std::pair("stride", &strides), {"ksize", &ksize}}) {
    if (static_cast<int>(list->size()) == layout.rank) continue;
    return InvalidArgument(c.node().op_name(), " requires the ", name, " attribute to contain ",
                           layout.rank, " values, but got: ", list->size());
  }
  if (padding == "EXPLICIT" && pads.size() != 2 * ksize.size()) {
    return InvalidArgument("explicit_paddings attribute must contain ", 2 * ksize.size(),
                           " values, but got: ", pads.size());
  }
  for (int dim = 0; dim < layout.rank; ++dim) {
    if (ksize[dim] <= 0) {
      return InvalidArgument(
          "Sliding window ksize must be positive. The specified ksize of dimension ", dim, " is ",
          ksize[dim]);
    }
    if (dim == layout.batch) {
      out.set_dim(dim, input.dim(dim));  // the kernel reports that it does not pool this dimension
      continue;
    }
    Window w = WindowAlong(dim, strides, {}, padding == "EXPLICIT" ? pads : std::vector<int64_t>());
    w.input = input.dim(dim);
    w.size = ksize[dim];
    WEIR_RETURN_IF_ERROR(SlideInside(padding, &w));
    out.set_dim(dim, w.output);
  }
  return out;
}

int RankOf(const ShapeContext& c) {
  const std::string format = c.node().attr_or<std::string>("data_format", "NHWC");
  return static_cast<int>(format.size()) == 5 ? 5 : 4;
}

absl::Status PoolShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRank(0, RankOf(c)));
  WEIR_ASSIGN_OR_RETURN(const Shape out, PoolOutputShape(c, input));
  c.set_all_outputs(out);
  return absl::OkStatus();
}

// The gradient has the shape of the first input, the images.
absl::Status MaxPoolGradShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRank(0, RankOf(c)));
  c.set_output(0, input);
  return absl::OkStatus();
}

absl::Status MaxPoolGradGradShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRank(0, RankOf(c)));
  WEIR_ASSIGN_OR_RETURN(Shape out, PoolOutputShape(c, input));
  WEIR_ASSIGN_OR_RETURN(const Shape orig_output, c.WithRank(1, RankOf(c)));
  if (c.node().op_name() != "MaxPoolGradGradWithArgmax") {
    WEIR_ASSIGN_OR_RETURN(out, out.MergeWith(orig_output));
  }
  c.set_output(0, out);
  return absl::OkStatus();
}

absl::Status AvgPoolGradShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape sizes, c.InputAsShape(0, false));
  if (!sizes.has_rank()) sizes = Shape(std::vector<int64_t>(RankOf(c), -1));
  if (sizes.rank() != RankOf(c)) {
    return InvalidArgument("Shape must be rank ", RankOf(c), " but is rank ", sizes.rank(),
                           " for orig_input_shape");
  }
  c.set_output(0, sizes);
  return absl::OkStatus();
}

// ---- gradients

Attrs PoolAttrs(const Node& node) {
  return CopyAttrs(node, {"ksize", "strides", "padding", "explicit_paddings", "data_format"});
}

// The attributes for an op without explicit_paddings.
Attrs PlainPoolAttrs(const Node& node) {
  return CopyAttrs(node, {"ksize", "strides", "padding", "data_format"});
}

// The names of the ops related to MaxPool: "MaxPool" + `part`, with the version suffix of `node`.
std::string PoolOp(const Node& node, absl::string_view part) {
  const std::string& op = node.op_name();
  const std::string base = op.rfind("MaxPool3D", 0) == 0 ? "MaxPool3D" : "MaxPool";
  const bool v2 = op.size() > 2 && op.compare(op.size() - 2, 2, "V2") == 0;
  return absl::StrCat(base, part, v2 ? "V2" : "");
}

// The arguments of a related op: the three tensors, followed by V2's window sizes and strides.
std::vector<Arg> PoolArgs(const GradContext& c, Output a, Output b, Output grad, int first_size) {
  std::vector<Arg> args = {a, b, grad};
  for (int i = first_size; i < c.num_inputs(); ++i) args.push_back(c.x(i));
  return args;
}

Grads MaxPoolGradient(GradContext& c) {
  return {
      AddOp(PoolOp(c.node(), "Grad"), PoolArgs(c, c.x(), c.y(), c.dy(), 1), PoolAttrs(c.node()))};
}

Grads MaxPoolGradGradient(GradContext& c) {
  Output zeros_x = ZerosLike(c.x(0)), zeros_y = ZerosLike(c.x(1));
  if (c.node().op_name() == "MaxPoolGrad" && c.attr<std::string>("padding") == "EXPLICIT") {
    c.graph().Fail(Unimplemented("the second derivative of ", c.node().Label(),
                                 " is not defined: MaxPoolGradGrad has no explicit padding"));
    return {};
  }
  return {zeros_x, zeros_y,
          AddOp(PoolOp(c.node(), "GradGrad"), PoolArgs(c, c.x(0), c.x(1), c.dy(), 3),
                PlainPoolAttrs(c.node()))};
}

Grads MaxPoolGradGradGradient(GradContext& c) {
  Output zeros_x = ZerosLike(c.x(0)), zeros_y = ZerosLike(c.x(1));
  return {zeros_x, zeros_y,
          AddOp(PoolOp(c.node(), "Grad"), PoolArgs(c, c.x(0), c.x(1), c.dy(), 3),
                PlainPoolAttrs(c.node()))};
}

Grads MaxPoolWithArgmaxGradient(GradContext& c) {
  return {AddOp("MaxPoolGradWithArgmax", {c.x(), c.dy(), c.y(1)},
                CopyAttrs(c.node(), {"ksize", "strides", "padding", "include_batch_in_index"}))};
}

Grads AvgPoolGradient(GradContext& c) {
  return {
      AddOp(c.node().op_name() + "Grad", {ShapeTensor(c.x()), c.dy()}, PlainPoolAttrs(c.node()))};
}

Grads AvgPoolGradGradient(GradContext& c) {
  const std::string& op = c.node().op_name();
  return {Grad(), AddOp(op.substr(0, op.size() - 4), {c.dy()}, PlainPoolAttrs(c.node()))};
}

// ---- op definitions

constexpr char kSameValid[] = "padding: {'SAME', 'VALID'}";
constexpr char kAllPaddings[] = "padding: {'SAME', 'VALID', 'EXPLICIT'}";
constexpr char kExplicit[] = "explicit_paddings: list(int) = []";
constexpr char kFormat[] = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
constexpr char kFormat3D[] = "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'";
constexpr char kFormatVect[] = "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'";
constexpr char kMaxPoolTypes[] =
    "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = "
    "DT_FLOAT";

OpSpec& Sizes(OpSpec& spec, int rank) {
  return spec.Attr(absl::StrCat("ksize: list(int) >= ", rank))
      .Attr(absl::StrCat("strides: list(int) >= ", rank));
}

void AddMaxPool(OpRegistry* ops) {
  OpSpec pool("MaxPool");
  pool.Rows(RowRule::kWindows).Flops(PoolFlops);
  pool.In("input: T").Out("output: T").Attr(kMaxPoolTypes);
  ops->Add(Sizes(pool, 4)
               .Attr(kAllPaddings)
               .Attr(kExplicit)
               .Attr(kFormatVect)
               .InferShape(PoolShape)
               .Gradient(MaxPoolGradient)
               .Doc("Computes the maximum of each window of the images."));
  ops->Add(OpSpec("MaxPoolV2")
               .In("input: T, ksize: int32, strides: int32")
               .Out("output: T")
               .Attr(kMaxPoolTypes)
               .Attr(kSameValid)
               .Attr(kFormatVect)
               .InferShape(Ranked("ksize: 1, strides: 1", PoolShape))
               .Gradient(MaxPoolGradient)
               .Doc("Computes MaxPool with the window sizes and strides as inputs."));
  constexpr char kTensors[] = "orig_input: T, orig_output: T, grad: T";
  OpSpec grad("MaxPoolGrad");
  grad.In(kTensors).Out("output: T");
  ops->Add(Sizes(grad, 4)
               .Attr(kAllPaddings)
               .Attr(kExplicit)
               .Attr(kFormat)
               .Attr("T: realnumbertype = DT_FLOAT")
               .InferShape(MaxPoolGradShape)
               .Gradient(MaxPoolGradGradient)
               .Doc("Computes the gradient of MaxPool, which flows to the first maximum of each "
                    "window."));
  ops->Add(OpSpec("MaxPoolGradV2")
               .In("orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32")
               .Out("output: T")
               .Attr(kSameValid)
               .Attr(kFormat)
               .Attr("T: realnumbertype = DT_FLOAT")
               .InferShape(MaxPoolGradShape)
               .Gradient(MaxPoolGradGradient)
               .Doc("Computes MaxPoolGrad with the window sizes and strides as inputs."));
  OpSpec grad_grad("MaxPoolGradGrad");
  grad_grad.In(kTensors).Out("output: T");
  ops->Add(Sizes(grad_grad, 4)
               .Attr(kSameValid)
               .Attr(kFormat)
               .Attr("T: realnumbertype")
               .InferShape(MaxPoolGradGradShape)
               .Gradient(MaxPoolGradGradGradient)
               .Doc("Computes the gradient of MaxPoolGrad: gathers `grad` at the first maximum of "
                    "each window."));
  ops->Add(OpSpec("MaxPoolGradGradV2")
               .In("orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32")
               .Out("output: T")
               .Attr(kSameValid)
               .Attr(kFormat)
               .Attr("T: realnumbertype")
               .InferShape(Ranked("ksize: 1, strides: 1", MaxPoolGradGradShape))
               .Gradient(MaxPoolGradGradGradient)
               .Doc("Computes MaxPoolGradGrad with the window sizes and strides as inputs."));
}

void AddArgmaxPool(OpRegistry* ops) {
  constexpr char kBatch[] = "include_batch_in_index: bool = false";
  OpSpec pool("MaxPoolWithArgmax");
  pool.In("input: T").Out("output: T, argmax: Targmax");
  ops->Add(Sizes(pool, 4)
               .Attr("Targmax: {int32, int64} = DT_INT64")
               .Attr(kSameValid)
               .Attr(kBatch)
               .Attr("T: realnumbertype")
               .InferShape(PoolShape)
               .Gradient(MaxPoolWithArgmaxGradient)
               .Doc("Computes MaxPool and also returns the position of each maximum as an index "
                    "into the flattened image (or batch)."));
  OpSpec grad("MaxPoolGradWithArgmax");
  grad.In("input: T, grad: T, argmax: Targmax").Out("output: T");
  ops->Add(Sizes(grad, 4)
               .Attr(kSameValid)
               .Attr(kBatch)
               .Attr("Targmax: {int32, int64}")
               .Attr("T: realnumbertype")
               .InferShape(MaxPoolGradShape)
               .Doc("Computes the gradient of MaxPoolWithArgmax: adds each element of `grad` at "
                    "the position given by argmax."));
  OpSpec grad_grad("MaxPoolGradGradWithArgmax");
  grad_grad.In("input: T, grad: T, argmax: Targmax").Out("output: T");
  ops->Add(Sizes(grad_grad, 4)
               .Attr(kSameValid)
               .Attr(kBatch)
               .Attr("Targmax: {int32, int64}")
               .Attr("T: realnumbertype")
               .InferShape(Ranked("argmax: 4", MaxPoolGradGradShape))
               .Doc("Gathers the elements of `grad` at the positions given by argmax."));
}

void AddPool3D(OpRegistry* ops) {
  OpSpec pool("MaxPool3D");
  pool.In("input: T").Out("output: T");
  ops->Add(Sizes(pool, 5)
               .Attr(kSameValid)
               .Attr(kFormat3D)
               .Attr("T: {half, bfloat16, float}")
               .InferShape(PoolShape)
               .Gradient(MaxPoolGradient)
               .Doc("Computes the maximum of each window of the volumes."));
  OpSpec grad("MaxPool3DGrad");
  grad.In("orig_input: TInput, orig_output: TInput, grad: T").Out("output: T");
  ops->Add(Sizes(grad, 5)
               .Attr(kSameValid)
               .Attr(kFormat3D)
               .Attr("T: {half, bfloat16, float} = DT_FLOAT")
               .Attr("TInput: {half, bfloat16, float} = DT_FLOAT")
               .InferShape(MaxPoolGradShape)
               .Gradient(MaxPoolGradGradient)
               .Doc("Computes the gradient of MaxPool3D."));
  OpSpec grad_grad("MaxPool3DGradGrad");
  grad_grad.In("orig_input: T, orig_output: T, grad: T").Out("output: T");
  ops->Add(Sizes(grad_grad, 5)
               .Attr(kSameValid)
               .Attr(kFormat3D)
               .Attr("T: realnumbertype")
               .InferShape(MaxPoolGradGradShape)
               .Gradient(MaxPoolGradGradGradient)
               .Doc("Computes the gradient of MaxPool3DGrad."));
}

// AvgPool and AvgPool3D, and their gradients.
void AddAvgPool(OpRegistry* ops, const std::string& op, absl::string_view value, int rank) {
  const char* format = rank == 4 ? kFormat : kFormat3D;
  OpSpec pool(op);
  pool.In(absl::StrCat(value, ": T")).Out("output: T");
  ops->Add(Sizes(pool, rank)
               .Attr(kSameValid)
               .Attr(format)
               .Attr(kFloats)
               .Flops(PoolFlops)
               .Rows(RowRule::kWindows)
               .InferShape(PoolShape)
               .Gradient(AvgPoolGradient)
               .Doc("Computes the mean of each window. Padding is not counted."));
  OpSpec grad(op + "Grad");
  grad.In("orig_input_shape: int32, grad: T").Out("output: T");
  ops->Add(Sizes(grad, rank)
               .Attr(kSameValid)
               .Attr(format)
               .Attr(kFloats)
               .InferShape(AvgPoolGradShape)
               .Gradient(AvgPoolGradGradient)
               .Doc("Computes the gradient of average pooling: each element is distributed over "
                    "its window."));
}

}  // namespace

void AddPoolOps(OpRegistry* ops) {
  AddMaxPool(ops);
  AddArgmaxPool(ops);
  AddPool3D(ops);
  AddAvgPool(ops, "AvgPool", "value", 4);
  AddAvgPool(ops, "AvgPool3D", "input", 5);
}

// ---- builders

Output MaxPool(Output input, const PoolOptions& o, absl::string_view name) {
  return AddOp("MaxPool", {input},
               {{"ksize", o.ksize},
                {"strides", o.strides},
                {"padding", o.padding},
                {"explicit_paddings", o.explicit_paddings},
                {"data_format", o.data_format}},
               name);
}

Output AvgPool(Output value, const PoolOptions& o, absl::string_view name) {
  return AddOp("AvgPool", {value},
               {{"ksize", o.ksize},
                {"strides", o.strides},
                {"padding", o.padding},
                {"data_format", o.data_format}},
               name);
}

MaxPoolWithArgmaxResult MaxPoolWithArgmax(Output input, const PoolOptions& o, DataType targmax,
                                          bool include_batch_in_index, absl::string_view name) {
  Node* node = AddNode("MaxPoolWithArgmax", {input},
                       {{"ksize", o.ksize},
                        {"strides", o.strides},
                        {"Targmax", targmax},
                        {"padding", o.padding},
                        {"include_batch_in_index", include_batch_in_index}},
                       name);
  if (node == nullptr) return {};
  return {node->output(0), node->output(1)};
}

}  // namespace weir
