#include "weir/ops/nn/nn.h"

#include <string>
#include <vector>

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/op_costs.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/lib/window.h"
#include "weir/ops/nn/conv_general.h"
#include "weir/ops/nn/nn_internal.h"

// Convolutions.
namespace weir {

// ---- shape functions

absl::StatusOr<Shape> ConvOutputShape(const ConvAttributes& a, const Shape& input,
                                      const Shape& filter, int64_t depth) {
  Shape out(std::vector<int64_t>(a.layout.rank, -1));
  out.set_dim(a.layout.batch, input.dim(a.layout.batch));
  out.set_dim(a.layout.channel, depth);
  for (int i = 0; i < a.layout.num_spatial(); ++i) {
    const int dim = a.layout.spatial + i;
    Window w = WindowAlong(dim, a.strides, a.dilations, a.explicit_paddings);
    w.input = input.dim(dim);
    w.size = filter.dim(i);
    WEIR_RETURN_IF_ERROR(SlideInside(a.padding, &w));
    out.set_dim(dim, w.output);
  }
  return out;
}

absl::Status InferConv2D(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const ConvAttributes a, ConvAttributes::Read(c.node()));
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRank(0, a.layout.rank));
  WEIR_ASSIGN_OR_RETURN(const Shape filter, c.WithRank(1, a.layout.rank));
  const int64_t in_depth = input.dim(a.layout.channel), filter_depth = filter.dim(-2),
                out_depth = filter.dim(-1);
  if (in_depth >= 0 && filter_depth > 0) {
    if (in_depth % filter_depth != 0) {
      return InvalidArgument("Depth of input (", in_depth,
                             ") is not a multiple of input depth of filter (", filter_depth, ")");
    }
    const int64_t groups = in_depth / filter_depth;
    if (out_depth > 0 && groups > 0 && out_depth % groups != 0) {
      return InvalidArgument("Depth of output (", out_depth,
                             ") is not a multiple of the number of groups (", groups, ")");
    }
  }
  WEIR_ASSIGN_OR_RETURN(const Shape out, ConvOutputShape(a, input, filter, out_depth));
  c.set_output(0, out);
  return absl::OkStatus();
}

absl::Status InferDepthwiseConv2D(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const ConvAttributes a, ConvAttributes::Read(c.node()));
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRank(0, 4));
  WEIR_ASSIGN_OR_RETURN(const Shape filter, c.WithRank(1, 4));
  WEIR_ASSIGN_OR_RETURN(const int64_t channels,
                        MergeDims(input.dim(a.layout.channel), filter.dim(2)));
  WEIR_ASSIGN_OR_RETURN(const int64_t out_channels, MulDims(channels, filter.dim(3)));
  WEIR_ASSIGN_OR_RETURN(const Shape out, ConvOutputShape(a, input, filter, out_channels));
  c.set_output(0, out);
  return absl::OkStatus();
}

namespace {

// The sizes of all dimensions of the image are given, or only two of them, the height and the
// width.
absl::Status BackpropInputShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const ConvAttributes a, ConvAttributes::Read(c.node()));
  WEIR_ASSIGN_OR_RETURN(const Shape filter, c.WithRank(1, a.layout.rank));
  WEIR_ASSIGN_OR_RETURN(const Shape dy, c.WithRank(2, a.layout.rank));
  WEIR_ASSIGN_OR_RETURN(Shape sizes, c.InputAsShape(0, false));
  if (!sizes.has_rank()) sizes = Shape(std::vector<int64_t>(a.layout.rank, -1));
  if (sizes.rank() == a.layout.num_spatial()) {
    Shape full(std::vector<int64_t>(a.layout.rank, -1));
    full.set_dim(a.layout.batch, dy.dim(a.layout.batch));
    full.set_dim(a.layout.channel, filter.dim(-2));
    for (int i = 0; i < sizes.rank(); ++i) full.set_dim(a.layout.spatial + i, sizes.dim(i));
    sizes = full;
  }
  if (sizes.rank() != a.layout.rank) {
    return InvalidArgument("Shape must be rank ", a.layout.rank, " but is rank ", sizes.rank(),
                           " for input_sizes");
  }
  WEIR_ASSIGN_OR_RETURN(const int64_t batch,
                        MergeDims(sizes.dim(a.layout.batch), dy.dim(a.layout.batch)));
  sizes.set_dim(a.layout.batch, batch);
  c.set_output(0, sizes);
  return absl::OkStatus();
}

absl::Status BackpropFilterShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const ConvAttributes a, ConvAttributes::Read(c.node()));
  WEIR_ASSIGN_OR_RETURN(Shape sizes, c.InputAsShape(1, false));
  if (!sizes.has_rank()) sizes = Shape(std::vector<int64_t>(a.layout.rank, -1));
  if (sizes.rank() != a.layout.rank) {
    return InvalidArgument("Shape must be rank ", a.layout.rank, " but is rank ", sizes.rank(),
                           " for filter_sizes");
  }
  c.set_output(0, sizes);
  return absl::OkStatus();
}

absl::Status GeneralConvShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const GeneralConvAttributes a, GeneralConvAttributes::Read(c.node()));
  const ConvAttributes& conv = a.conv;
  WEIR_ASSIGN_OR_RETURN(const Shape filter, c.WithRank(1, conv.layout.rank));
  if (!c.input(0).has_rank()) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const Shape input, a.WithOneBatchDim(c.input(0)));
  WEIR_RETURN_IF_ERROR(MergeDims(input.dim(conv.layout.channel), filter.dim(-2)).status());
  WEIR_ASSIGN_OR_RETURN(const Shape out, ConvOutputShape(conv, input, filter, filter.dim(-1)));
  c.set_output(0, a.WithAllBatchDims(c.input(0), out));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GeneralConvAttributes> GeneralConvAttributes::Read(const Node& node) {
  GeneralConvAttributes a;
  a.batch_dims = node.attr<int64_t>("batch_dims");
  if (a.batch_dims < 0) return InvalidArgument("Batch dims must be non-negative.");
  const int64_t groups = node.attr<int64_t>("groups");
  if (groups < 1) return InvalidArgument("Groups attribute should be a positive integer");
  if (groups > 1) return Unimplemented("Grouped/Depthwise Convolutions are not supported yet.");
  a.conv.strides = node.attr<std::vector<int64_t>>("strides");
  const size_t rank = a.conv.strides.size();
  if (rank != 4 && rank != 5)
    return InvalidArgument("Stride attribute should contain 4 or 5 values, but got: ", rank);
  const bool first = node.attr<std::string>("data_format") == "CHANNELS_FIRST";
  const char* const formats[] = {"NHWC", "NCHW", "NDHWC", "NCDHW"};
  WEIR_ASSIGN_OR_RETURN(a.conv.layout, ParseDataFormat(formats[(rank - 4) * 2 + (first ? 1 : 0)]));
  a.conv.padding = node.attr<std::string>("padding");
  a.conv.dilations = node.attr<std::vector<int64_t>>("dilations");
  if (a.conv.dilations.empty()) a.conv.dilations.assign(rank, 1);
  a.conv.explicit_paddings = node.attr<std::vector<int64_t>>("explicit_paddings");
  WEIR_RETURN_IF_ERROR(CheckWindowAttrs(a.conv.layout, a.conv.padding, a.conv.strides,
                                        a.conv.dilations, a.conv.explicit_paddings));
  return a;
}

absl::StatusOr<Shape> GeneralConvAttributes::WithOneBatchDim(const Shape& input) const {
  const int64_t rank = input.rank() - (batch_dims - 1);
  if (rank != conv.layout.rank) {
    return InvalidArgument("Input tensor must be rank ", conv.layout.rank,
                           ", excluding extra batch dimensions, but got: ", rank);
  }
  const int count = static_cast<int>(batch_dims);
  int64_t batch = 1;
  for (int i = 0; i < count; ++i) {
    WEIR_ASSIGN_OR_RETURN(batch, MulDims(batch, input.dim(i)));
  }
  return Shape({batch}).Concatenate(input.Sub(count));
}

Shape GeneralConvAttributes::WithAllBatchDims(const Shape& input, const Shape& result) const {
  return input.Sub(0, static_cast<int>(batch_dims)).Concatenate(result.Sub(1));
}

// ---- gradients

namespace {

// The names of the three ops of the family that an op belongs to.
struct ConvFamily {
  std::string forward, backprop_input, backprop_filter;
};

ConvFamily FamilyOf(const Node& node) {
  if (node.op_name().rfind("Conv3D", 0) == 0)
    return {"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"};
  const std::string base =
      node.op_name().rfind("Depthwise", 0) == 0 ? "DepthwiseConv2dNative" : "Conv2D";
  return {base, base + "BackpropInput", base + "BackpropFilter"};
}

Attrs ConvAttrs(const Node& node) {
  return CopyAttrs(node, {"strides", "use_cudnn_on_gpu", "padding", "explicit_paddings",
                          "data_format", "dilations"});
}

Grads ConvGradient(GradContext& c) {
  const ConvFamily f = FamilyOf(c.node());
  const Attrs attrs = ConvAttrs(c.node());
  Outputs shapes;
  if (f.forward == "DepthwiseConv2dNative") {
    shapes = {ShapeTensor(c.x(0)), ShapeTensor(c.x(1))};
  } else {
    shapes = ShapeN({c.x(0), c.x(1)});
  }
  if (shapes.size() != 2) return {};
  return {AddOp(f.backprop_input, {shapes[0], c.x(1), c.dy()}, attrs),
          AddOp(f.backprop_filter, {c.x(0), shapes[1], c.dy()}, attrs)};
}

// Inputs: the shape of the image, the filter, and the gradient of the convolution's result.
Grads ConvBackpropInputGradient(GradContext& c) {
  const ConvFamily f = FamilyOf(c.node());
  const Attrs attrs = ConvAttrs(c.node());
  return {Grad(), AddOp(f.backprop_filter, {c.dy(), ShapeTensor(c.x(1)), c.x(2)}, attrs),
          AddOp(f.forward, {c.dy(), c.x(1)}, attrs)};
}

// Inputs: the image, the shape of the filter, and the gradient of the convolution's result.
Grads ConvBackpropFilterGradient(GradContext& c) {
  const ConvFamily f = FamilyOf(c.node());
  const Attrs attrs = ConvAttrs(c.node());
  return {AddOp(f.backprop_input, {ShapeTensor(c.x(0)), c.dy(), c.x(2)}, attrs), Grad(),
          AddOp(f.forward, {c.x(0), c.dy()}, attrs)};
}

// ---- op definitions

constexpr char kPadding[] = "padding: {'SAME', 'VALID', 'EXPLICIT'}";
constexpr char kExplicit[] = "explicit_paddings: list(int) = []";
constexpr char kFormat[] = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
constexpr char kDilations[] = "dilations: list(int) = [1, 1, 1, 1]";

OpSpec Conv2DFamily(absl::string_view op, absl::string_view in, absl::string_view types) {
  OpSpec spec(op);
  spec.In(in)
      .Out("output: T")
      .Attr(types)
      .Attr("strides: list(int)")
      .Attr("use_cudnn_on_gpu: bool = true");
  spec.Attr(kPadding).Attr(kExplicit).Attr(kFormat).Attr(kDilations);
  return spec;
}

OpSpec DepthwiseFamily(absl::string_view op, absl::string_view in) {
  OpSpec spec(op);
  spec.In(in).Out("output: T").Attr(kFloats).Attr("strides: list(int)");
  spec.Attr(kPadding).Attr(kExplicit).Attr(kFormat).Attr(kDilations);
  return spec;
}

OpSpec Conv3DFamily(absl::string_view op, absl::string_view in) {
  OpSpec spec(op);
  spec.In(in)
      .Out("output: T")
      .Attr(kFloats)
      .Attr("strides: list(int) >= 5")
      .Attr("padding: {'SAME', 'VALID'}");
  spec.Attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'")
      .Attr("dilations: list(int) = [1, 1, 1, 1, 1]");
  return spec;
}

constexpr char kForward[] = "input: T, filter: T";
constexpr char kBackpropInput[] = "input_sizes: int32, filter: T, out_backprop: T";
constexpr char kBackpropFilter[] = "input: T, filter_sizes: int32, out_backprop: T";

void AddConv2D(OpRegistry* ops) {
  ops->Add(Conv2DFamily("Conv2D", kForward, "T: {half, bfloat16, float, double, int32}")
               .Rows(RowRule::kWindows)
               .Flops(ConvFlops)
               .InferShape(InferConv2D)
               .Gradient(ConvGradient)
               .Doc("Computes the cross-correlation of a batch of images with filters [height, "
                    "width, in, out]. If the images have more channels than `in`, both are divided "
                    "into groups."));
  ops->Add(Conv2DFamily("Conv2DBackpropInput", kBackpropInput,
                        "T: {half, bfloat16, float, double, int32}")
               .Flops(ConvBackpropInputFlops)
               .InferShape(BackpropInputShape)
               .Gradient(ConvBackpropInputGradient)
               .Doc("Computes the gradient of Conv2D with respect to the images, whose shape is "
                    "input_sizes."));
  ops->Add(Conv2DFamily("Conv2DBackpropFilter", kBackpropFilter, kFloats)
               .Flops(ConvBackpropFilterFlops)
               .InferShape(BackpropFilterShape)
               .Gradient(ConvBackpropFilterGradient)
               .Doc("Computes the gradient of Conv2D with respect to the filter, whose shape is "
                    "filter_sizes."));
}

void AddDepthwise(OpRegistry* ops) {
  ops->Add(DepthwiseFamily("DepthwiseConv2dNative", kForward)
               .Rows(RowRule::kWindows)
               .Flops(DepthwiseConvFlops)
               .InferShape(InferDepthwiseConv2D)
               .Gradient(ConvGradient)
               .Doc("Convolves each channel with its own filters, [height, width, channels, "
                    "multiplier]. Channel c * multiplier + m of the result is channel c convolved "
                    "with its filter m."));
  ops->Add(DepthwiseFamily("DepthwiseConv2dNativeBackpropInput", kBackpropInput)
               .Flops(DepthwiseConvBackpropInputFlops)
               .InferShape(BackpropInputShape)
               .Gradient(ConvBackpropInputGradient)
               .Doc("Computes the gradient of DepthwiseConv2dNative with respect to the images."));
  ops->Add(DepthwiseFamily("DepthwiseConv2dNativeBackpropFilter", kBackpropFilter)
               .Flops(DepthwiseConvBackpropFilterFlops)
               .InferShape(BackpropFilterShape)
               .Gradient(ConvBackpropFilterGradient)
               .Doc("Computes the gradient of DepthwiseConv2dNative with respect to the filter."));
}

void AddConv3D(OpRegistry* ops) {
  ops->Add(Conv3DFamily("Conv3D", kForward)
               .Flops(ConvFlops)
               .InferShape(InferConv2D)
               .Gradient(ConvGradient)
               .Doc("Computes the cross-correlation of a batch of volumes with filters [depth, "
                    "height, width, in, out]."));
  ops->Add(Conv3DFamily("Conv3DBackpropInputV2", "input_sizes: Tshape, filter: T, out_backprop: T")
               .Attr("Tshape: {int32, int64} = DT_INT32")
               .Flops(ConvBackpropInputFlops)
               .InferShape(BackpropInputShape)
               .Gradient(ConvBackpropInputGradient)
               .Doc("Computes the gradient of Conv3D with respect to the volumes."));
  ops->Add(Conv3DFamily("Conv3DBackpropFilterV2", kBackpropFilter)
               .Flops(ConvBackpropFilterFlops)
               .InferShape(BackpropFilterShape)
               .Gradient(ConvBackpropFilterGradient)
               .Doc("Computes the gradient of Conv3D with respect to the filter."));
}

// Input `input` has the shape of the result.
absl::Status VolumeShape(ShapeContext& c, int input) {
  WEIR_RETURN_IF_ERROR(ConvAttributes::Read(c.node()).status());
  WEIR_ASSIGN_OR_RETURN(const Shape shape, c.WithRank(input, 5));
  c.set_output(0, shape);
  return absl::OkStatus();
}

// The gradients of Conv3D in graphs of TensorFlow before 1.0 take tensors in place of shapes.
void AddOldConv3DGradients(OpRegistry* ops) {
  const auto spec = [](absl::string_view op) {
    OpSpec out(op);
    out.In("input: T, filter: T, out_backprop: T")
        .Out("output: T")
        .Attr("T: {half, float, double}")
        .Attr("strides: list(int) >= 5")
        .Attr("padding: {'SAME', 'VALID'}")
        .Attr("dilations: list(int) = [1, 1, 1, 1, 1]")
        .Deprecated(10, absl::StrCat("Use ", op, "V2"));
    return out;
  };
  ops->Add(spec("Conv3DBackpropInput")
               .Flops(ConvBackpropInputFlops)
               .InferShape([](ShapeContext& c) { return VolumeShape(c, 0); })
               .Doc("Computes the gradient of Conv3D with respect to the volumes, which are given "
                    "for their shape."));
  ops->Add(spec("Conv3DBackpropFilter")
               .Flops(ConvBackpropFilterFlops)
               .InferShape([](ShapeContext& c) { return VolumeShape(c, 1); })
               .Doc("Computes the gradient of Conv3D with respect to the filter, which is given "
                    "for its shape."));
}

void AddGeneralConv(OpRegistry* ops) {
  ops->Add(OpSpec("Conv")
               .In(kForward)
               .Out("output: T")
               .Attr("T: {half, bfloat16, float, double, int32}")
               .Attr("strides: list(int)")
               .Attr(kPadding)
               .Attr(kExplicit)
               .Attr("data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'")
               .Attr("dilations: list(int) = []")
               .Attr("batch_dims: int = 1")
               .Attr("groups: int = 1")
               .InferShape(GeneralConvShape)
               .Doc("Computes Conv2D or Conv3D with any number of batch dimensions."));
}

}  // namespace

void AddConvOps(OpRegistry* ops) {
  AddConv2D(ops);
  AddDepthwise(ops);
  AddConv3D(ops);
  AddOldConv3DGradients(ops);
  AddGeneralConv(ops);
}

// ---- builders

namespace {

Attrs ConvAttrs(const ConvOptions& o) {
  return {{"strides", o.strides},
          {"padding", o.padding},
          {"explicit_paddings", o.explicit_paddings},
          {"data_format", o.data_format},
          {"dilations", o.dilations}};
}

}  // namespace

Output Conv2D(Output input, Output filter, const ConvOptions& options, absl::string_view name) {
  return AddOp("Conv2D", {input, filter}, ConvAttrs(options), name);
}

Output Conv2DBackpropInput(Output input_sizes, Output filter, Output out_backprop,
                           const ConvOptions& options, absl::string_view name) {
  return AddOp("Conv2DBackpropInput", {input_sizes, filter, out_backprop}, ConvAttrs(options),
               name);
}

Output Conv2DBackpropFilter(Output input, Output filter_sizes, Output out_backprop,
                            const ConvOptions& options, absl::string_view name) {
  return AddOp("Conv2DBackpropFilter", {input, filter_sizes, out_backprop}, ConvAttrs(options),
               name);
}

Output Conv2DTranspose(Output value, Output filter, const Ints& output_shape,
                       const ConvOptions& options, absl::string_view name) {
  if (!value.valid() || !filter.valid()) return Output();
  NameScope scope(value.graph(), Or(name, "conv2d_transpose"));
  Output sizes = output_shape.In(value.graph(), "input_sizes", DT_INT32);
  return Conv2DBackpropInput(sizes, filter, value, options, scope.name());
}

Output DepthwiseConv2dNative(Output input, Output filter, const ConvOptions& options,
                             absl::string_view name) {
  return AddOp("DepthwiseConv2dNative", {input, filter}, ConvAttrs(options), name);
}

Output Conv3D(Output input, Output filter, const ConvOptions& o, absl::string_view name) {
  const bool default_dilations = o.dilations == std::vector<int64_t>{1, 1, 1, 1};
  return AddOp("Conv3D", {input, filter},
               {{"strides", o.strides},
                {"padding", o.padding},
                {"data_format", o.data_format == "NHWC" ? std::string("NDHWC") : o.data_format},
                {"dilations", default_dilations ? std::vector<int64_t>(5, 1) : o.dilations}},
               name);
}

}  // namespace weir
