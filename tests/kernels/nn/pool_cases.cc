#include <algorithm>
#include <functional>
#include <limits>

#include "weir/tests/kernels/lib/op_case.h"

// Gradients checked to order 1 by rows: MaxPoolGrad, MaxPoolGradGrad, MaxPoolWithArgmax.

// Pooling against the definition, in double.
namespace weir {
namespace {

using Ints = std::vector<int64_t>;

struct Setup {
  const char* label;
  Shape input, output;
  Ints ksize, strides;
  std::string padding = "VALID";
  std::string format = "NHWC";
  Ints explicit_paddings = {};
};

// All dimensions are pooled in the same way; batch and channels have windows of one.
struct Geometry {
  Shape input, output;
  Ints ksize, strides, pad;

  Geometry(const Setup& s) : input(s.input), output(s.output), ksize(s.ksize), strides(s.strides) {
    for (int i = 0; i < input.rank(); ++i) {
      int64_t before = 0;
      if (s.padding == "SAME") {
        before =
            std::max<int64_t>(0, (output.dim(i) - 1) * strides[i] + ksize[i] - input.dim(i)) / 2;
      } else if (s.padding == "EXPLICIT") {
        before = s.explicit_paddings[2 * i];
      }
      pad.push_back(before);
    }
  }

  // Calls fn(output element, the input elements in its window, in order).
  void ForEachWindow(const std::function<void(int64_t, const Ints&)>& fn) const {
    ForEachIndex(output, [&](int64_t to, const Ints& y) {
      Ints elements;
      ForEachIndex(Shape(ksize), [&](int64_t, const Ints& k) {
        int64_t at = 0;
        for (int i = 0; i < input.rank(); ++i) {
          const int64_t x = y[i] * strides[i] - pad[i] + k[i];
          if (x < 0 || x >= input.dim(i)) return;
          at = at * input.dim(i) + x;
        }
        elements.push_back(at);
      });
      fn(to, elements);
    });
  }
};

int64_t FirstMaximum(const std::vector<double>& x, const Ints& window) {
  int64_t best = window[0];
  for (int64_t i : window) best = x[i] > x[best] ? i : best;
  return best;
}

OpReference MaxPoolOf(const Geometry& g) {
  return [g](const Node&, const Tensors& in) {
    const std::vector<double> x = ToDoubles(in[0]);
    std::vector<double> y(g.output.num_elements());
    g.ForEachWindow([&](int64_t to, const Ints& window) { y[to] = x[FirstMaximum(x, window)]; });
    return Tensors{Doubles(g.output, y)};
  };
}

OpReference MaxPoolGradOf(const Geometry& g, int grad) {
  return [g, grad](const Node&, const Tensors& in) {
    const std::vector<double> x = ToDoubles(in[0]), dy = ToDoubles(in[grad]);
    std::vector<double> dx(x.size(), 0);
    g.ForEachWindow([&](int64_t to, const Ints& window) { dx[FirstMaximum(x, window)] += dy[to]; });
    return Tensors{Doubles(g.input, dx)};
  };
}

OpReference MaxPoolGradGradOf(const Geometry& g, int grad) {
  return [g, grad](const Node&, const Tensors& in) {
    const std::vector<double> x = ToDoubles(in[0]), picked = ToDoubles(in[grad]);
    std::vector<double> y(g.output.num_elements());
    g.ForEachWindow(
        [&](int64_t to, const Ints& window) { y[to] = picked[FirstMaximum(x, window)]; });
    return Tensors{Doubles(g.output, y)};
  };
}

OpReference AvgPoolOf(const Geometry& g) {
  return [g](const Node&, const Tensors& in) {
    const std::vector<double> x = ToDoubles(in[0]);
    std::vector<double> y(g.output.num_elements(), 0);
    g.ForEachWindow([&](int64_t to, const Ints& window) {
      for (int64_t i : window) y[to] += x[i] / static_cast<double>(window.size());
    });
    return Tensors{Doubles(g.output, y)};
  };
}

OpReference AvgPoolGradOf(const Geometry& g) {
  return [g](const Node&, const Tensors& in) {
    const std::vector<double> dy = ToDoubles(in[1]);
    std::vector<double> dx(g.input.num_elements(), 0);
    g.ForEachWindow([&](int64_t to, const Ints& window) {
      for (int64_t i : window) dx[i] += dy[to] / static_cast<double>(window.size());
    });
    return Tensors{Doubles(g.input, dx)};
  };
}

Tensor IntVector(const Ints& values) {
  return Tensor::Vector<int32_t>(std::vector<int32_t>(values.begin(), values.end()));
}

constexpr Range kDistinct = {-50, 50, false, true};

OpCase WithAttrs(OpCase c, const Setup& s) {
  c.Label(s.label).Attr("ksize", s.ksize).Attr("strides", s.strides).Attr("padding", s.padding);
  c.Attr("data_format", s.format);
  if (!s.explicit_paddings.empty()) c.Attr("explicit_paddings", s.explicit_paddings);
  return c;
}

// Volumes are not pooled in double, so their gradients cannot be checked by differences.
void AddMaxCases(const Setup& s, const std::string& base, std::vector<OpCase>* all) {
  const Geometry g(s);
  const bool volumes = base == "MaxPool3D";
  OpCase max = WithAttrs(OpCase(base).Input(s.input, kDistinct).Reference(MaxPoolOf(g)), s);
  if (s.padding == "EXPLICIT") max.Gradient(1);
  all->push_back(max);
  OpCase grad = WithAttrs(OpCase(base + "Grad")
                              .Input(s.input, kDistinct)
                              .Input(s.output)
                              .Input(s.output)
                              .Reference(MaxPoolGradOf(g, 2)),
                          s);
  if (volumes) grad.Types({DT_FLOAT}).Attr("TInput", DT_FLOAT);
  all->push_back(grad.GradientInputs({2}).Gradient(s.padding == "EXPLICIT" || volumes ? 0 : 1));
  if (s.padding == "EXPLICIT") return;
  all->push_back(WithAttrs(OpCase(base + "GradGrad")
                               .Input(s.input, kDistinct)
                               .Input(s.output)
                               .Input(s.input)
                               .GradientInputs({2})
                               .Gradient(volumes ? 0 : 1)
                               .Reference(MaxPoolGradGradOf(g, 2)),
                           s));
}

// The ops that take sizes as inputs.
void AddV2Cases(const Setup& s, std::vector<OpCase>* all) {
  const Geometry g(s);
  const auto finish = [&](OpCase c) {
    c.Input(IntVector(s.ksize))
        .Input(IntVector(s.strides))
        .Label(s.label)
        .Attr("padding", s.padding);
    all->push_back(c.Attr("data_format", s.format));
  };
  finish(OpCase("MaxPoolV2").Input(s.input, kDistinct).Reference(MaxPoolOf(g)));
  finish(OpCase("MaxPoolGradV2")
             .Input(s.input, kDistinct)
             .Input(s.output)
             .Input(s.output)
             .GradientInputs({2})
             .Reference(MaxPoolGradOf(g, 2)));
  finish(OpCase("MaxPoolGradGradV2")
             .Input(s.input, kDistinct)
             .Input(s.output)
             .Input(s.input)
             .GradientInputs({2})
             .Reference(MaxPoolGradGradOf(g, 2)));
}

void AddAvgCases(const Setup& s, const std::string& base, std::vector<OpCase>* all) {
  const Geometry g(s);
  all->push_back(WithAttrs(OpCase(base).Input(s.input).Reference(AvgPoolOf(g)), s));
  const Tensor sizes = IntVector(Ints(s.input.dims().begin(), s.input.dims().end()));
  all->push_back(
      WithAttrs(OpCase(base + "Grad").Input(sizes).Input(s.output).Reference(AvgPoolGradOf(g)), s));
}

// The maximum and its position. The index does not count the batch.
OpCase ArgmaxCase(const Setup& s, bool include_batch, DataType targmax) {
  const Geometry g(s);
  OpCase c("MaxPoolWithArgmax");
  c.Gradient(1);
  c.Label(absl::StrCat(s.label, include_batch ? "_batch" : "", "_", DataTypeName(targmax)));
  c.Input(s.input, kDistinct)
      .Attr("ksize", s.ksize)
      .Attr("strides", s.strides)
      .Attr("padding", s.padding);
  c.TypeAttr("T").Attr("Targmax", targmax).Attr("include_batch_in_index", include_batch);
  return c.Reference([g, include_batch](const Node&, const Tensors& in) {
    const std::vector<double> x = ToDoubles(in[0]);
    std::vector<double> y(g.output.num_elements()), at(y.size());
    const int64_t image = g.input.num_elements() / g.input.dim(0);
    g.ForEachWindow([&](int64_t to, const Ints& window) {
      const int64_t best = FirstMaximum(x, window);
      y[to] = x[best];
      at[to] = static_cast<double>(include_batch ? best : best % image);
    });
    return Tensors{Doubles(g.output, y), Doubles(g.output, at)};
  });
}

template <class I>
OpCase AtArgmaxCase(bool grad_grad, absl::string_view label) {
  const Shape image({2, 2, 2, 1}), pooled({2, 1, 1, 1});
  OpCase c(grad_grad ? "MaxPoolGradGradWithArgmax" : "MaxPoolGradWithArgmax");
  c.Label(label)
      .Input(image)
      .Input(grad_grad ? image : pooled)
      .Input(Tensor::Of<I>(pooled, {3, 1}));
  c.TypeAttr("T")
      .Attr("ksize", Ints{1, 2, 2, 1})
      .Attr("strides", Ints{1, 2, 2, 1})
      .Attr("padding", "VALID");
  return c.Reference([=](const Node&, const Tensors& in) {
    const std::vector<double> g = ToDoubles(in[1]);
    if (grad_grad) return Tensors{Doubles(pooled, {g[3], g[5]})};
    return Tensors{Doubles(image, {0, 0, 0, g[0], 0, g[1], 0, 0})};
  });
}

std::vector<OpCase> PoolCases() {
  const std::vector<Setup> setups = {
      {"tiles", {2, 4, 6, 3}, {2, 2, 3, 3}, {1, 2, 2, 1}, {1, 2, 2, 1}},
      {"wide_channels", {1, 4, 4, 37}, {1, 2, 2, 37}, {1, 2, 2, 1}, {1, 2, 2, 1}},
      {"overlapping", {2, 5, 6, 2}, {2, 3, 4, 2}, {1, 3, 3, 1}, {1, 1, 1, 1}},
      {"same", {1, 5, 4, 3}, {1, 3, 2, 3}, {1, 3, 3, 1}, {1, 2, 2, 1}, "SAME"},
      {"strides_beyond_window", {1, 7, 7, 2}, {1, 3, 3, 2}, {1, 1, 1, 1}, {1, 3, 3, 1}},
      {"leftover", {1, 5, 5, 2}, {1, 2, 2, 2}, {1, 2, 2, 1}, {1, 2, 2, 1}},
      {"channels_first", {2, 3, 4, 5}, {2, 3, 2, 3}, {1, 1, 3, 2}, {1, 1, 2, 2}, "SAME", "NCHW"},
  };
  const Setup padded = {"explicit",   {1, 4, 4, 2}, {1, 4, 3, 2}, {1, 2, 2, 1},
                        {1, 1, 2, 1}, "EXPLICIT",   "NHWC",       {0, 0, 1, 0, 1, 1, 0, 0}};
  const std::vector<Setup> volumes = {{"volumes",
                                       {2, 4, 3, 5, 2},
                                       {2, 2, 2, 4, 2},
                                       {1, 2, 2, 2, 1},
                                       {1, 2, 1, 1, 1},
                                       "VALID",
                                       "NDHWC"},
                                      {"volumes_first",
                                       {1, 2, 4, 3, 5},
                                       {1, 2, 2, 2, 3},
                                       {1, 1, 2, 3, 2},
                                       {1, 1, 2, 2, 2},
                                       "SAME",
                                       "NCDHW"}};
  std::vector<OpCase> all;
  for (const Setup& s : setups) {
    AddMaxCases(s, "MaxPool", &all);
    AddV2Cases(s, &all);
    AddAvgCases(s, "AvgPool", &all);
    if (s.format != "NHWC") continue;
    all.push_back(ArgmaxCase(s, false, DT_INT64));
    all.push_back(ArgmaxCase(s, true, DT_INT32));
  }
  AddMaxCases(padded, "MaxPool", &all);
  for (const Setup& s : volumes) {
    AddMaxCases(s, "MaxPool3D", &all);
    AddAvgCases(s, "AvgPool3D", &all);
  }
  const Setup across = {"across_channels", {2, 1, 2, 6}, {2, 1, 2, 3}, {1, 1, 1, 2}, {1, 1, 1, 2}};
  all.push_back(WithAttrs(OpCase("MaxPool")
                              .Input(across.input, kDistinct)
                              .Gradient(0)
                              .Reference(MaxPoolOf(Geometry(across))),
                          across));
  all.push_back(AtArgmaxCase<int64_t>(false, "int64"));
  all.push_back(AtArgmaxCase<int32_t>(false, "int32"));
  all.push_back(AtArgmaxCase<int64_t>(true, "int64"));
  all.push_back(AtArgmaxCase<int32_t>(true, "int32"));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Pool, OpSweepTest, testing::ValuesIn(PoolCases()), OpCaseName);

}  // namespace
}  // namespace weir
