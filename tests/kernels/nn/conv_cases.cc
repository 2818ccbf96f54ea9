#include <functional>

#include "weir/tests/kernels/lib/op_case.h"

// Convolutions compared with the definition, computed in double: each pass accumulates over the
// same triples of an input element, a filter element and an output element.
namespace weir {
namespace {

struct Geometry {
  int rank = 4;
  bool channels_first = false;
  bool depthwise = false;
  std::vector<int64_t> in, filter, out;  // spatial sizes
  std::vector<int64_t> stride, dilation, pad;
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;

  Geometry(const Node& node, const Shape& input, const Shape& filter_shape) {
    rank = input.rank();
    const std::string format = node.attr<std::string>("data_format");
    channels_first = format[1] == 'C' || format == "CHANNELS_FIRST";
    depthwise = node.op_name().rfind("Depthwise", 0) == 0;
    const int first = channels_first ? 2 : 1;
    batch = input.dim(0);
    in_channels = input.dim(channels_first ? 1 : rank - 1);
    out_channels = depthwise ? in_channels * filter_shape.dim(-1) : filter_shape.dim(-1);
    groups = in_channels / (depthwise ? 1 : filter_shape.dim(-2));
    const auto strides = node.attr<std::vector<int64_t>>("strides");
    auto dilations = node.attr<std::vector<int64_t>>("dilations");
    if (dilations.empty()) dilations.assign(rank, 1);
    const auto pads = node.attr_or<std::vector<int64_t>>("explicit_paddings", {});
    const std::string padding = node.attr<std::string>("padding");
    for (int i = 0; i < rank - 2; ++i) {
      in.push_back(input.dim(first + i));
      filter.push_back(filter_shape.dim(i));
      stride.push_back(strides[first + i]);
      dilation.push_back(dilations[first + i]);
      const int64_t extent = (filter[i] - 1) * dilation[i] + 1;
      int64_t before = 0, after = 0, count = 0;
      if (padding == "SAME") {
        count = (in[i] + stride[i] - 1) / stride[i];
        before = std::max<int64_t>(0, (count - 1) * stride[i] + extent - in[i]) / 2;
      } else {
        if (padding == "EXPLICIT") {
          before = pads[2 * (first + i)];
          after = pads[2 * (first + i) + 1];
        }
        count = (in[i] + before + after - extent) / stride[i] + 1;
      }
      pad.push_back(before);
      out.push_back(count);
    }
  }

  Shape Image(int64_t channels, const std::vector<int64_t>& spatial) const {
    std::vector<int64_t> dims = {batch};
    if (channels_first) dims.push_back(channels);
    dims.insert(dims.end(), spatial.begin(), spatial.end());
    if (!channels_first) dims.push_back(channels);
    return Shape(dims);
  }
  Shape OutputShape() const { return Image(out_channels, out); }

  // The flat index of an element of an image tensor.
  int64_t At(int64_t channels, const std::vector<int64_t>& spatial, int64_t n,
             const std::vector<int64_t>& at, int64_t c) const {
    int64_t pixel = 0, pixels = 1;
    for (size_t i = 0; i < spatial.size(); ++i) {
      pixel = pixel * spatial[i] + at[i];
      pixels *= spatial[i];
    }
    return channels_first ? (n * channels + c) * pixels + pixel
                          : (n * pixels + pixel) * channels + c;
  }

  // Calls fn(input element, filter element, output element).
  void ForEachTriple(const std::function<void(int64_t, int64_t, int64_t)>& fn) const {
    const int64_t group_in = in_channels / groups, group_out = out_channels / groups;
    ForEachIndex(Shape(out), [&](int64_t, const std::vector<int64_t>& y) {
      ForEachIndex(Shape(filter), [&](int64_t tap, const std::vector<int64_t>& k) {
        std::vector<int64_t> x;
        for (size_t i = 0; i < y.size(); ++i) {
          x.push_back(y[i] * stride[i] - pad[i] + k[i] * dilation[i]);
          if (x[i] < 0 || x[i] >= in[i]) return;
        }
        for (int64_t n = 0; n < batch; ++n) {
          for (int64_t o = 0; o < out_channels; ++o) {
            for (int64_t c = 0; c < group_in; ++c) {
              const int64_t channel = o / group_out * group_in + c;
              fn(At(in_channels, in, n, x, channel), (tap * group_in + c) * out_channels + o,
                 At(out_channels, out, n, y, o));
            }
          }
        }
      });
    });
  }
};

Shape ShapeFromVector(const Tensor& t) {
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < t.num_elements(); ++i) dims.push_back(t.IntAt(i));
  return Shape(dims);
}

Tensors ForwardOf(const Node& node, const Tensors& in) {
  const Geometry g(node, in[0].shape(), in[1].shape());
  const std::vector<double> x = ToDoubles(in[0]), w = ToDoubles(in[1]);
  std::vector<double> y(g.OutputShape().num_elements(), 0);
  g.ForEachTriple([&](int64_t i, int64_t f, int64_t o) { y[o] += x[i] * w[f]; });
  return {Doubles(g.OutputShape(), y)};
}

Tensors BackpropInputOf(const Node& node, const Tensors& in) {
  Shape input = ShapeFromVector(in[0]);
  if (input.rank() == 2) input = Shape({in[2].dim(0), input.dim(0), input.dim(1), in[1].dim(-2)});
  const Geometry g(node, input, in[1].shape());
  const std::vector<double> w = ToDoubles(in[1]), dy = ToDoubles(in[2]);
  std::vector<double> dx(input.num_elements(), 0);
  g.ForEachTriple([&](int64_t i, int64_t f, int64_t o) { dx[i] += dy[o] * w[f]; });
  return {Doubles(input, dx)};
}

Tensors BackpropFilterOf(const Node& node, const Tensors& in) {
  const Shape filter = ShapeFromVector(in[1]);
  const Geometry g(node, in[0].shape(), filter);
  const std::vector<double> x = ToDoubles(in[0]), dy = ToDoubles(in[2]);
  std::vector<double> df(filter.num_elements(), 0);
  g.ForEachTriple([&](int64_t i, int64_t f, int64_t o) { df[f] += x[i] * dy[o]; });
  return {Doubles(filter, df)};
}

// Any number of batch dimensions.
Tensors GeneralOf(const Node& node, const Tensors& in) {
  const int count = static_cast<int>(node.attr<int64_t>("batch_dims"));
  const Shape& shape = in[0].shape();
  const Shape flat = Shape({shape.Sub(0, count).num_elements()}).Concatenate(shape.Sub(count));
  const Tensor result = ForwardOf(node, {in[0].Reshaped(flat), in[1]})[0];
  return {result.Reshaped(shape.Sub(0, count).Concatenate(result.shape().Sub(1)))};
}

struct Setup {
  const char* label;
  Shape input, filter, output;
  std::string padding = "SAME";
  std::vector<int64_t> strides = {1, 1, 1, 1};
  std::vector<int64_t> dilations = {1, 1, 1, 1};
  std::vector<int64_t> explicit_paddings = {};
  std::string format = "NHWC";
};

Tensor Sizes(const Shape& shape) {
  std::vector<int32_t> sizes(shape.dims().begin(), shape.dims().end());
  return Tensor::Vector<int32_t>(sizes);
}

// The three passes of one setup. Sums are long, so the tolerance for half precision is larger.
std::vector<OpCase> Passes(const std::string& base, const Setup& s, bool volumes = false) {
  const std::string suffix = volumes ? "V2" : "";
  std::vector<OpCase> cases = {
      OpCase(base).Input(s.input, {-1, 1}).Input(s.filter, {-1, 1}).Reference(ForwardOf),
      OpCase(base + "BackpropInput" + suffix)
          .Input(Sizes(s.input))
          .Input(s.filter, {-1, 1})
          .Input(s.output, {-1, 1})
          .Reference(BackpropInputOf),
      OpCase(base + "BackpropFilter" + suffix)
          .Input(s.input, {-1, 1})
          .Input(Sizes(s.filter))
          .Input(s.output, {-1, 1})
          .Reference(BackpropFilterOf),
  };
  for (OpCase& c : cases) {
    c.Label(s.label)
        .Attr("strides", s.strides)
        .Attr("padding", s.padding)
        .Attr("dilations", s.dilations);
    c.Attr("data_format", s.format);
    if (!s.explicit_paddings.empty()) c.Attr("explicit_paddings", s.explicit_paddings);
    c.TypeAttr("T").ToleranceFactor(8);
  }
  return cases;
}

const std::vector<Setup>& Setups() {
  static const auto* const setups = new std::vector<Setup>{
      {"same", {2, 5, 7, 3}, {3, 3, 3, 4}, {2, 5, 7, 4}},
      {"valid", {2, 6, 7, 3}, {3, 2, 3, 5}, {2, 4, 6, 5}, "VALID"},
      {"wide_channels", {3, 4, 4, 20}, {3, 3, 20, 33}, {3, 4, 4, 33}},
      {"one_by_one", {2, 3, 5, 16}, {1, 1, 16, 8}, {2, 3, 5, 8}},
      {"strides", {2, 7, 8, 3}, {3, 3, 3, 2}, {2, 4, 3, 2}, "SAME", {1, 2, 3, 1}},
      {"strides_beyond_filter", {1, 9, 9, 2}, {2, 2, 2, 3}, {1, 3, 3, 3}, "VALID", {1, 3, 3, 1}},
      {"dilations", {2, 9, 8, 3}, {3, 2, 3, 4}, {2, 9, 8, 4}, "SAME", {1, 1, 1, 1}, {1, 2, 3, 1}},
      {"dilations_valid",
       {1, 9, 8, 2},
       {3, 2, 2, 3},
       {1, 5, 6, 3},
       "VALID",
       {1, 1, 1, 1},
       {1, 2, 2, 1}},
      {"explicit",
       {2, 5, 6, 2},
       {3, 3, 2, 3},
       {2, 6, 7, 3},
       "EXPLICIT",
       {1, 1, 1, 1},
       {1, 1, 1, 1},
       {0, 0, 2, 1, 0, 3, 0, 0}},
      {"padding_beyond_filter",
       {1, 2, 2, 1},
       {2, 2, 1, 2},
       {1, 7, 7, 2},
       "EXPLICIT",
       {1, 1, 1, 1},
       {1, 1, 1, 1},
       {0, 0, 3, 3, 3, 3, 0, 0}},
      {"even_filter", {1, 6, 5, 1}, {4, 2, 1, 2}, {1, 6, 5, 2}},
      {"groups", {2, 5, 4, 6}, {3, 3, 3, 4}, {2, 5, 4, 4}},
      {"one_image", {1, 24, 9, 8}, {5, 5, 8, 16}, {1, 24, 9, 16}},
      {"channels_first",
       {2, 3, 5, 7},
       {3, 3, 3, 4},
       {2, 4, 5, 7},
       "SAME",
       {1, 1, 1, 1},
       {1, 1, 1, 1},
       {},
       "NCHW"},
      {"channels_first_strides",
       {2, 3, 7, 8},
       {3, 3, 3, 2},
       {2, 2, 4, 3},
       "SAME",
       {1, 1, 2, 3},
       {1, 1, 1, 1},
       {},
       "NCHW"},
      {"channels_first_explicit",
       {1, 2, 5, 6},
       {3, 3, 2, 3},
       {1, 3, 6, 7},
       "EXPLICIT",
       {1, 1, 1, 1},
       {1, 1, 1, 1},
       {0, 0, 0, 0, 2, 1, 0, 3},
       "NCHW"},
      {"no_images", {0, 5, 5, 2}, {3, 3, 2, 3}, {0, 5, 5, 3}},
  };
  return *setups;
}

const std::vector<Setup>& DepthwiseSetups() {
  static const auto* const setups = new std::vector<Setup>{
      {"same", {2, 5, 6, 3}, {3, 3, 3, 1}, {2, 5, 6, 3}},
      {"wide_channels", {1, 4, 4, 35}, {3, 3, 35, 1}, {1, 4, 4, 35}},
      {"multiplier", {2, 6, 5, 3}, {3, 2, 3, 2}, {2, 4, 4, 6}, "VALID"},
      {"strides", {2, 7, 7, 4}, {3, 3, 4, 1}, {2, 4, 4, 4}, "SAME", {1, 2, 2, 1}},
      {"dilations", {1, 8, 8, 2}, {3, 3, 2, 1}, {1, 8, 8, 2}, "SAME", {1, 1, 1, 1}, {1, 2, 2, 1}},
      {"explicit",
       {1, 5, 5, 2},
       {3, 3, 2, 1},
       {1, 5, 6, 2},
       "EXPLICIT",
       {1, 1, 1, 1},
       {1, 1, 1, 1},
       {0, 0, 1, 1, 2, 1, 0, 0}},
      {"one_channel", {2, 5, 5, 1}, {2, 2, 1, 3}, {2, 5, 5, 3}},
      {"channels_first",
       {2, 3, 5, 6},
       {3, 3, 3, 2},
       {2, 6, 5, 6},
       "SAME",
       {1, 1, 1, 1},
       {1, 1, 1, 1},
       {},
       "NCHW"},
  };
  return *setups;
}

const std::vector<Setup>& VolumeSetups() {
  static const auto* const setups = new std::vector<Setup>{
      {"same",
       {2, 4, 3, 5, 2},
       {2, 3, 3, 2, 3},
       {2, 4, 3, 5, 3},
       "SAME",
       {1, 1, 1, 1, 1},
       {1, 1, 1, 1, 1},
       {},
       "NDHWC"},
      {"valid_strides",
       {1, 5, 6, 5, 2},
       {3, 2, 2, 2, 2},
       {1, 2, 3, 4, 2},
       "VALID",
       {1, 2, 2, 1, 1},
       {1, 1, 1, 1, 1},
       {},
       "NDHWC"},
      {"channels_first",
       {2, 2, 4, 3, 5},
       {2, 3, 3, 2, 3},
       {2, 3, 4, 3, 5},
       "SAME",
       {1, 1, 1, 1, 1},
       {1, 1, 1, 1, 1},
       {},
       "NCDHW"},
      {"flat",
       {1, 1, 5, 5, 2},
       {1, 3, 3, 2, 3},
       {1, 1, 5, 5, 3},
       "SAME",
       {1, 1, 1, 1, 1},
       {1, 1, 1, 1, 1},
       {},
       "NDHWC"},
  };
  return *setups;
}

std::vector<OpCase> ConvCases() {
  std::vector<OpCase> all;
  const auto add = [&](const std::string& base, const std::vector<Setup>& setups, bool volumes) {
    for (const Setup& s : setups) {
      for (const OpCase& c : Passes(base, s, volumes)) all.push_back(c);
    }
  };
  add("Conv2D", Setups(), false);
  add("DepthwiseConv2dNative", DepthwiseSetups(), false);
  add("Conv3D", VolumeSetups(), true);
  all.push_back(OpCase("Conv2DBackpropInput")
                    .Label("two_sizes")
                    .Input(Tensor::Vector<int32_t>({5, 7}))
                    .Input({3, 3, 3, 4}, {-1, 1})
                    .Input({2, 5, 7, 4}, {-1, 1})
                    .Attr("strides", std::vector<int64_t>{1, 1, 1, 1})
                    .Attr("padding", "SAME")
                    .ToleranceFactor(8)
                    .Reference(BackpropInputOf));
  const auto general = [&](const char* label, const Shape& input, const Shape& filter,
                           int batch_dims, const char* padding, const char* format) {
    const size_t rank = filter.rank();
    OpCase row("Conv");
    row.Label(label).Input(input, {-1, 1}).Input(filter, {-1, 1}).Attr("padding", padding);
    row.Attr("strides", std::vector<int64_t>(rank, 1)).Attr("batch_dims", batch_dims);
    row.Attr("data_format", format).ToleranceFactor(8).Reference(GeneralOf).Gradient(0);
    all.push_back(row);
  };
  general("images", {2, 5, 7, 3}, {3, 2, 3, 4}, 1, "SAME", "CHANNELS_LAST");
  general("channels_first", {2, 3, 5, 7}, {3, 2, 3, 4}, 1, "VALID", "CHANNELS_FIRST");
  general("batches", {2, 1, 3, 5, 4, 2}, {2, 3, 2, 3}, 3, "SAME", "CHANNELS_LAST");
  general("no_batch", {4, 5, 2}, {2, 2, 2, 3}, 0, "VALID", "CHANNELS_LAST");
  general("volumes", {2, 4, 3, 5, 2}, {2, 3, 2, 2, 3}, 1, "SAME", "CHANNELS_LAST");
  general("no_images", {0, 4, 5, 2}, {2, 2, 2, 3}, 1, "SAME", "CHANNELS_LAST");
  return all;
}

INSTANTIATE_TEST_SUITE_P(Conv, OpSweepTest, testing::ValuesIn(ConvCases()), OpCaseName);

}  // namespace
}  // namespace weir
