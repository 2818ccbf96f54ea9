#include "weir/kernels/nn/conv.h"

namespace weir {

namespace {

absl::Status SetChannels(const ConvAttributes& a, const Shape& input, const Shape& filter,
                         ConvShape* s) {
  s->in_channels = input.dim(a.layout.channel);
  const int64_t depth = filter.dim(-2);
  if (a.depthwise) {
    if (s->in_channels != depth) {
      return InvalidArgument("input and filter must have the same depth: ", s->in_channels, " vs ",
                             depth);
    }
    s->groups = depth;
    s->out_channels = depth * filter.dim(-1);
    if (depth == 0) return InvalidArgument("filter depth must be strictly positive, got 0");
    return absl::OkStatus();
  }
  s->out_channels = filter.dim(-1);
  if (depth <= 0) return InvalidArgument("filter depth must be strictly positive, got ", depth);
  if (s->in_channels % depth != 0) {
    return InvalidArgument("input depth must be evenly divisible by filter depth: ", s->in_channels,
                           " vs ", depth);
  }
  s->groups = s->in_channels / depth;
  if (s->groups == 0) return InvalidArgument("input depth must be strictly positive, got 0");
  if (s->out_channels % s->groups != 0) {
    return InvalidArgument("output depth must be evenly divisible by number of groups: ",
                           s->out_channels, " vs ", s->groups);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConvShape> ConvShape::Make(const ConvAttributes& a, const Shape& input,
                                          const Shape& filter) {
  const int rank = a.layout.rank;
  if (input.rank() != rank) {
    return InvalidArgument("convolution input must be ", rank, "-dimensional: ", input.ToString());
  }
  if (filter.rank() != rank) {
    return InvalidArgument("convolution filter must be ", rank,
                           "-dimensional: ", filter.ToString());
  }
  ConvShape s;
  s.batch = input.dim(a.layout.batch);
  WEIR_RETURN_IF_ERROR(SetChannels(a, input, filter, &s));
  const int spatial = a.layout.num_spatial();
  for (int i = 0; i < spatial; ++i) {
    const int dim = a.layout.spatial + i, at = 3 - spatial + i;
    Window w = WindowAlong(dim, a.strides, a.dilations, a.explicit_paddings);
    w.input = input.dim(dim);
    w.size = filter.dim(i);
    WEIR_RETURN_IF_ERROR(Slide(a.padding, &w));
    s.in[at] = w.input;
    s.kernel[at] = w.size;
    s.out[at] = w.output;
    s.stride[at] = w.stride;
    s.dilation[at] = w.dilation;
    s.pad_before[at] = w.pad_before;
    s.pad_after[at] = w.pad_after;
  }
  WEIR_RETURN_IF_ERROR(Shape::Make(s.OutputShape(a.layout).dims()).status());
  return s;
}

Shape ConvShape::OutputShape(const DataLayout& layout) const {
  Shape shape(std::vector<int64_t>(layout.rank, 0));
  shape.set_dim(layout.batch, batch);
  shape.set_dim(layout.channel, out_channels);
  const int spatial = layout.num_spatial();
  for (int i = 0; i < spatial; ++i) shape.set_dim(layout.spatial + i, out[3 - spatial + i]);
  return shape;
}

namespace {

// Returns the shape that an integer vector holds. Conv3D's gradients in old graphs have a tensor of
// that shape instead.
absl::StatusOr<Shape> SizesOf(const Tensor& sizes, absl::string_view name) {
  if (IsFloating(sizes.dtype())) return sizes.shape();
  if (sizes.rank() != 1)
    return InvalidArgument(name, " must be 1-dimensional, not ", sizes.shape().ToString());
  if (sizes.num_elements() > 5)
    return InvalidArgument(name, " has ", sizes.num_elements(), " elements");
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < sizes.num_elements(); ++i) {
    dims.push_back(sizes.IntAt(i));
    if (dims.back() < 0)
      return InvalidArgument(name, " must not be negative, but element ", i, " is ", dims.back());
  }
  return Shape::Make(dims);
}

// input_sizes may hold only the spatial sizes.
Shape FullInputShape(const ConvAttributes& a, const Shape& sizes, const Shape& filter,
                     const Shape& dy) {
  if (sizes.rank() != a.layout.num_spatial()) return sizes;
  Shape full(std::vector<int64_t>(a.layout.rank, 0));
  full.set_dim(a.layout.batch, dy.dim(a.layout.batch));
  full.set_dim(a.layout.channel, filter.dim(-2));
  for (int i = 0; i < sizes.rank(); ++i) full.set_dim(a.layout.spatial + i, sizes.dim(i));
  return full;
}

}  // namespace

absl::StatusOr<ConvArguments> ReadConvArguments(const KernelContext& ctx, const ConvAttributes& a,
                                                ConvPass pass) {
  ConvArguments args;
  if (pass == ConvPass::kForward) {
    WEIR_ASSIGN_OR_RETURN(args.shape,
                          ConvShape::Make(a, ctx.input(0).shape(), ctx.input(1).shape()));
    if (ctx.input(1).num_elements() == 0) {
      return InvalidArgument(
          "filter must not have zero elements (i.e. all dimensions must be non-zero)");
    }
    args.output = args.shape.OutputShape(a.layout);
    return args;
  }
  const Shape& dy = ctx.input(2).shape();
  if (dy.rank() != a.layout.rank) {
    return InvalidArgument("out_backprop must be ", a.layout.rank, "-dimensional: ", dy.ToString());
  }
  Shape input, filter;
  if (pass == ConvPass::kBackpropInput) {
    WEIR_ASSIGN_OR_RETURN(input, SizesOf(ctx.input(0), "input_sizes"));
    filter = ctx.input(1).shape();
    if (filter.rank() == a.layout.rank) input = FullInputShape(a, input, filter, dy);
    args.output = input;
  } else {
    input = ctx.input(0).shape();
    WEIR_ASSIGN_OR_RETURN(filter, SizesOf(ctx.input(1), "filter_sizes"));
    args.output = filter;
  }
  WEIR_ASSIGN_OR_RETURN(args.shape, ConvShape::Make(a, input, filter));
  if (args.shape.OutputShape(a.layout) != dy) {
    return InvalidArgument("Size of out_backprop doesn't match computed: actual = ", dy.ToString(),
                           ", computed = ", args.shape.OutputShape(a.layout).ToString(),
                           " for input ", input.ToString(), " and filter ", filter.ToString());
  }
  return args;
}

double ConvCost(const KernelInit& init) {
  constexpr double kNsPerFlop = 0.004;
  // Two of a convolution's three tensors are among the inputs. Together with the filter sizes they
  // determine the cost. The additional inputs of a fused convolution do not matter.
  double pixels = 0, filter = 0;
  const size_t operands = init.node.op_name()[0] == '_' ? 2 : init.input_shapes.size();
  for (size_t i = 0; i < operands; ++i) {
    const Shape& s = init.input_shapes[i];
    if (!s.IsFullyDefined() || s.rank() < 4) continue;
    const bool is_filter = i == 1;
    (is_filter ? filter : pixels) = static_cast<double>(s.num_elements());
  }
  if (pixels == 0) return 1e6;
  if (filter == 0) filter = 1e4;
  const Shape& f = init.input_shapes[1];
  const double per_pixel =
      f.rank() >= 4 && f.dim(-2) > 0 ? filter / static_cast<double>(f.dim(-2)) : 1e3;
  return 2 * pixels * per_pixel * kNsPerFlop;
}

}  // namespace weir
