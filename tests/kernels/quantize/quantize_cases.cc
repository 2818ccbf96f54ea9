#include <cmath>

#include "weir/tests/kernels/lib/op_case.h"

namespace weir {

namespace {

// ---- rounding to quantized values

// The number of inner elements per channel, and the number of channels.
struct Layout {
  int64_t channels = 1, inner = 0;
};

Layout LayoutOf(const Shape& shape, int64_t axis) {
  if (axis < 0) return {1, shape.num_elements()};
  const int d = static_cast<int>(axis);
  return {shape.dim(d), shape.Sub(d + 1).num_elements()};
}

Tensors RoundReference(const Node& node, const Tensors& in) {
  const std::vector<double> x = ToDoubles(in[0]);
  const Layout layout = LayoutOf(in[0].shape(), node.attr_or<int64_t>("axis", -1));
  const bool is_signed = node.attr<bool>("signed_input"), given = node.attr<bool>("range_given");
  const int64_t bits = in.size() > 3 ? in[3].IntAt(0) : node.attr<int64_t>("num_bits");
  const double high = std::exp2(static_cast<double>(is_signed ? bits - 1 : bits)) - 1;
  const double low = !is_signed ? 0 : node.attr_or<bool>("narrow_range", false) ? -high : -high - 1;
  std::vector<double> out(x.size());
  for (int64_t c = 0; c < layout.channels; ++c) {
    const auto mine = [&](size_t i) {
      return static_cast<int64_t>(i) / layout.inner % layout.channels == c;
    };
    double min = 1e300, max = -1e300;
    for (size_t i = 0; i < x.size(); ++i) {
      if (mine(i)) min = std::min(min, x[i]), max = std::max(max, x[i]);
    }
    if (given) min = ToDoubles(in[1])[c], max = ToDoubles(in[2])[c];
    const double step = std::max(low < 0 && min < 0 ? min / low : 0, max > 0 ? max / high : 0);
    for (size_t i = 0; i < x.size(); ++i) {
      if (!mine(i)) continue;
      const double scaled = x[i] / step;
      const double rounded = node.attr_or<std::string>("round_mode", "") == "HALF_UP"
                                 ? std::floor(scaled + 0.5)
                                 : std::nearbyint(scaled);
      out[i] = step * (given ? std::min(std::max(rounded, low), high) : rounded);
    }
  }
  return {Doubles(in[0].shape(), out)};
}

Tensors RoundGradReference(const Node& node, const Tensors& in) {
  const std::vector<double> d = ToDoubles(in[0]), x = ToDoubles(in[1]), min = ToDoubles(in[2]),
                            max = ToDoubles(in[3]);
  const Layout layout = LayoutOf(in[1].shape(), node.attr<int64_t>("axis"));
  std::vector<double> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t c = static_cast<int64_t>(i) / layout.inner % layout.channels;
    out[i] = x[i] >= min[c] && x[i] <= max[c] ? d[i] : 0;
  }
  const Tensor zeros = Tensor::Zeros(DT_DOUBLE, in[2].shape());
  return {Doubles(in[1].shape(), out), zeros, zeros};
}

OpCase Rounding(const char* op, const char* label, bool given, bool per_channel) {
  OpCase row(op);
  row.Label(label)
      .Attr("range_given", given)
      .Types({DT_FLOAT, DT_DOUBLE})
      .Input({3, 4, 5}, {-3, 3})
      .Gradient(0)
      .Reference(RoundReference);
  if (per_channel) row.Attr("axis", 1);
  const Shape range = per_channel ? Shape({4}) : Shape();
  return row.Input(range, {-2, -1}).Input(range, {1, 2});
}

// ---- fake quantization

struct FakeRange {
  bool empty;
  double min, max, step;
  FakeRange(const Node& node, double low, double high) : empty(low == 0 && high == 0) {
    const double last = std::exp2(static_cast<double>(node.attr<int64_t>("num_bits"))) - 1;
    const double first = node.attr<bool>("narrow_range") ? 1 : 0;
    step = (high - low) / (last - first);
    const double zero = std::round(std::min(std::max(first - low / step, first), last));
    min = (first - zero) * step;
    max = (last - zero) * step;
  }
  double Round(double x) const {
    return empty ? 0 : std::round(std::min(std::max(x, min), max) / step) * step;
  }
  double Below(double x) const { return !empty && x < min ? 1 : 0; }
  double Above(double x) const { return !empty && x > max ? 1 : 0; }
};

// The range of each element's channel; from the inputs from `first` on, or from attributes.
std::vector<FakeRange> FakeRanges(const Node& node, const Tensors& in, size_t first) {
  if (in.size() <= first)
    return {FakeRange(node, node.attr<float>("min"), node.attr<float>("max"))};
  const std::vector<double> min = ToDoubles(in[first]), max = ToDoubles(in[first + 1]);
  std::vector<FakeRange> ranges;
  for (size_t i = 0; i < min.size(); ++i) ranges.emplace_back(node, min[i], max[i]);
  return ranges;
}

Tensors FakeReference(const Node& node, const Tensors& in) {
  const std::vector<FakeRange> ranges = FakeRanges(node, in, 1);
  std::vector<double> x = ToDoubles(in[0]);
  for (size_t i = 0; i < x.size(); ++i) x[i] = ranges[i % ranges.size()].Round(x[i]);
  return {Doubles(in[0].shape(), x)};
}

Tensors FakeGradReference(const Node& node, const Tensors& in) {
  const std::vector<FakeRange> ranges = FakeRanges(node, in, 2);
  const std::vector<double> d = ToDoubles(in[0]), x = ToDoubles(in[1]);
  std::vector<double> dx(x.size()), below(ranges.size()), above(ranges.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % ranges.size();
    const double low = ranges[c].Below(x[i]), high = ranges[c].Above(x[i]);
    dx[i] = d[i] * (1 - low - high);
    below[c] += d[i] * low;
    above[c] += d[i] * high;
  }
  if (in.size() == 2) return {Doubles(in[1].shape(), dx)};
  return {Doubles(in[1].shape(), dx), Doubles(in[2].shape(), below), Doubles(in[2].shape(), above)};
}

void AddFakeRows(const char* label, int bits, bool narrow, std::vector<OpCase>* rows) {
  const auto add = [&](const std::string& op, int ranges, const Shape& range) {
    for (const bool gradient : {false, true}) {
      OpCase row(op + (gradient ? "Gradient" : ""));
      row.Label(label).Attr("num_bits", bits).Attr("narrow_range", narrow).Gradient(0);
      if (gradient) row.Input(DT_FLOAT, {7, 3}, {-3, 3});
      row.Input(DT_FLOAT, {7, 3}, {-4, 4});
      if (ranges > 0) row.Input(DT_FLOAT, range, {-2, -1}).Input(DT_FLOAT, range, {1, 2});
      if (ranges == 0) row.Attr("min", -1.25f).Attr("max", 2.5f);
      rows->push_back(row.Reference(gradient ? FakeGradReference : FakeReference));
    }
  };
  add("FakeQuantWithMinMaxArgs", 0, Shape());
  add("FakeQuantWithMinMaxVars", 2, Shape());
  add("FakeQuantWithMinMaxVarsPerChannel", 2, Shape({3}));
}

std::vector<OpCase> QuantizeCases() {
  std::vector<OpCase> rows = {
      Rounding("QuantizeAndDequantizeV2", "given", true, false),
      Rounding("QuantizeAndDequantizeV2", "of_data", false, false).Attr("num_bits", 5),
      Rounding("QuantizeAndDequantizeV2", "channels", true, true).Attr("round_mode", "HALF_UP"),
      Rounding("QuantizeAndDequantizeV2", "unsigned", true, false).Attr("signed_input", false),
      Rounding("QuantizeAndDequantizeV2", "narrow", false, true).Attr("narrow_range", true),
      Rounding("QuantizeAndDequantizeV4", "given", true, false).Attr("narrow_range", true),
      Rounding("QuantizeAndDequantizeV4", "channels", false, true).Attr("num_bits", 3),
      Rounding("QuantizeAndDequantizeV3", "given", true, false).Input(Tensor::Scalar<int32_t>(4)),
      Rounding("QuantizeAndDequantizeV3", "channels", true, true).Input(Tensor::Scalar<int32_t>(6)),
  };
  for (const bool per_channel : {false, true}) {
    OpCase row("QuantizeAndDequantizeV4Grad");
    const Shape range = per_channel ? Shape({4}) : Shape();
    row.Label(per_channel ? "channels" : "plain").Types({DT_FLOAT, DT_DOUBLE});
    if (per_channel) row.Attr("axis", 1);
    rows.push_back(row.Input({3, 4, 5})
                       .Input({3, 4, 5}, {-3, 3})
                       .Input(range, {-2, -1})
                       .Input(range, {1, 2})
                       .GradientInputs({0})
                       .Reference(RoundGradReference));
  }
  AddFakeRows("bits8", 8, false, &rows);
  AddFakeRows("bits3_narrow", 3, true, &rows);
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Quantize, OpSweepTest, testing::ValuesIn(QuantizeCases()), OpCaseName);

}  // namespace weir
