#include <algorithm>
#include <functional>
#include <utility>

#include "weir/core/graph/op.h"
#include "weir/tests/kernels/lib/pick.h"

// Gradients checked to order 1 by rows: Dilation2D, ExtractVolumePatches.

// Patches, dilation and dimension permutations against their definitions, in double.
namespace weir {
namespace {

using namespace pick;  // NOLINT: a vocabulary made for these tables

// Returns the first element of a window along one dimension, with SAME padding.
int64_t PadBefore(const Node& n, int64_t in, int64_t out, int64_t size, int64_t stride,
                  int64_t rate) {
  if (n.attr<std::string>("padding") == "VALID") return 0;
  return std::max<int64_t>(0, (out - 1) * stride + (size - 1) * rate + 1 - in) / 2;
}

// Images and volumes: maps the index in a patch and the patch's position to the element of the
// input.
OpReference PatchesOf(const Shape& out) {
  return [out](const Node& n, const Tensors& in) {
    const auto list = [&](const char* name) {
      return n.attr_or<pick::Index>(name, pick::Index(in[0].rank(), 1));
    };
    const pick::Index sizes = list("ksizes"), strides = list("strides"), rates = list("rates");
    const int last = in[0].rank() - 1;
    return Tensors{PickOne(in[0], out, [&](const pick::Index& to) -> int64_t {
      pick::Index from(last + 1);
      from[0] = to[0];
      int64_t rest = to[last];
      from[last] = rest % in[0].dim(last);
      rest /= in[0].dim(last);
      for (int d = last - 1; d > 0; --d) {
        const int64_t tap = rest % sizes[d];
        rest /= sizes[d];
        from[d] = to[d] * strides[d] + tap * rates[d] -
                  PadBefore(n, in[0].dim(d), out.dim(d), sizes[d], strides[d], rates[d]);
        if (from[d] < 0 || from[d] >= in[0].dim(d)) return -1;
      }
      return Flat(in[0].shape(), from);
    })};
  };
}

struct WindowSetup {
  const char* label;
  Shape in, out;
  pick::Index sizes, strides, rates;
  const char* padding;
};

void AddPatches(std::vector<OpCase>* all) {
  const WindowSetup images[] = {
      {"valid", {2, 5, 6, 3}, {2, 2, 2, 18}, {1, 3, 2, 1}, {1, 2, 3, 1}, {1, 1, 1, 1}, "VALID"},
      {"same", {2, 5, 6, 3}, {2, 3, 2, 18}, {1, 3, 2, 1}, {1, 2, 3, 1}, {1, 1, 1, 1}, "SAME"},
      {"rates", {1, 7, 6, 2}, {1, 3, 4, 8}, {1, 2, 2, 1}, {1, 2, 1, 1}, {1, 2, 2, 1}, "VALID"},
      {"skips", {1, 7, 6, 2}, {1, 3, 2, 2}, {1, 1, 1, 1}, {1, 3, 4, 1}, {1, 1, 1, 1}, "SAME"}};
  for (const WindowSetup& s : images) {
    all->push_back(OpCase("ExtractImagePatches")
                       .Label(s.label)
                       .Attr("ksizes", s.sizes)
                       .Attr("strides", s.strides)
                       .Attr("rates", s.rates)
                       .Attr("padding", s.padding)
                       .Input(s.in)
                       .Reference(PatchesOf(s.out)));
  }
  const WindowSetup volumes[] = {
      {"valid", {2, 3, 4, 5, 2}, {2, 2, 2, 2, 24}, {1, 2, 2, 3, 1}, {1, 1, 2, 2, 1}, {}, "VALID"},
      {"same", {1, 3, 4, 5, 2}, {1, 3, 2, 3, 24}, {1, 2, 2, 3, 1}, {1, 1, 2, 2, 1}, {}, "SAME"}};
  for (const WindowSetup& s : volumes) {
    all->push_back(OpCase("ExtractVolumePatches")
                       .Label(s.label)
                       .Attr("ksizes", s.sizes)
                       .Attr("strides", s.strides)
                       .Attr("padding", s.padding)
                       .Input(s.in)
                       .Gradient(BuiltinOps().Find("SparseSlice") != nullptr ? 1 : 0)
                       .Reference(PatchesOf(s.out)));
  }
}

// Calls fn(output element, the maximal input element, the maximal filter element) of Dilation2D.
void ForEachDilation(const Node& n, const Tensor& in, const Tensor& filter, const Shape& out,
                     const std::function<void(int64_t, int64_t, int64_t)>& fn) {
  const pick::Index strides = n.attr<pick::Index>("strides"), rates = n.attr<pick::Index>("rates");
  const std::vector<double> x = ToDoubles(in), f = ToDoubles(filter);
  ForEachIndex(out, [&](int64_t to, const pick::Index& i) {
    std::pair<int64_t, int64_t> best = {-1, -1};
    ForEachIndex(filter.shape().Sub(0, 2), [&](int64_t, const pick::Index& k) {
      pick::Index from = i;
      for (int d = 1; d < 3; ++d) {
        from[d] = i[d] * strides[d] + k[d - 1] * rates[d] -
                  PadBefore(n, in.dim(d), out.dim(d), filter.dim(d - 1), strides[d], rates[d]);
        if (from[d] < 0 || from[d] >= in.dim(d)) return;
      }
      const int64_t a = Flat(in.shape(), from), b = Flat(filter.shape(), {k[0], k[1], i[3]});
      if (best.first < 0 || x[a] + f[b] > x[best.first] + f[best.second]) best = {a, b};
    });
    fn(to, best.first, best.second);
  });
}

void AddDilation(std::vector<OpCase>* all) {
  const Range distinct = {-40, 40, false, true}, small = {-3, 3};
  const WindowSetup setups[] = {
      {"valid", {2, 5, 6, 3}, {2, 2, 5, 3}, {3, 2, 3}, {1, 2, 1, 1}, {1, 1, 1, 1}, "VALID"},
      {"same", {2, 5, 6, 3}, {2, 3, 2, 3}, {3, 2, 3}, {1, 2, 3, 1}, {1, 1, 1, 1}, "SAME"},
      {"rates", {1, 6, 7, 2}, {1, 6, 7, 2}, {2, 3, 2}, {1, 1, 1, 1}, {1, 3, 2, 1}, "SAME"}};
  for (const WindowSetup& s : setups) {
    const auto with = [&](OpCase c) {
      return c.Label(s.label)
          .Attr("strides", s.strides)
          .Attr("rates", s.rates)
          .Attr("padding", s.padding)
          .NotTypes(DataTypesOf(UnsignedIntegers()));
    };
    const Shape filter{absl::MakeConstSpan(s.sizes)}, out = s.out;
    all->push_back(with(OpCase("Dilation2D")
                            .Gradient(1)
                            .Input(s.in, distinct)
                            .Input(filter, small)
                            .Reference([out](const Node& n, const Tensors& in) {
                              const std::vector<double> x = ToDoubles(in[0]), f = ToDoubles(in[1]);
                              std::vector<double> y(out.num_elements());
                              ForEachDilation(
                                  n, in[0], in[1], out,
                                  [&](int64_t to, int64_t a, int64_t b) { y[to] = x[a] + f[b]; });
                              return Tensors{Doubles(out, y)};
                            })));
    for (const bool to_filter : {false, true}) {
      all->push_back(with(OpCase(to_filter ? "Dilation2DBackpropFilter" : "Dilation2DBackpropInput")
                              .Types({DT_FLOAT, DT_DOUBLE, DT_INT32, DT_INT64})
                              .Input(s.in, distinct)
                              .Input(filter, small)
                              .Input(out)
                              .Gradient(0)
                              .Reference([out, to_filter](const Node& n, const Tensors& in) {
                                const Tensor& like = in[to_filter ? 1 : 0];
                                const std::vector<double> dy = ToDoubles(in[2]);
                                std::vector<double> dx(like.num_elements());
                                ForEachDilation(n, in[0], in[1], out,
                                                [&](int64_t to, int64_t a, int64_t b) {
                                                  dx[to_filter ? b : a] += dy[to];
                                                });
                                return Tensors{Doubles(like.shape(), dx)};
                              })));
    }
  }
}

// ---- dimension permutations

void AddFormats(std::vector<OpCase>* all) {
  all->push_back(OpCase("DataFormatDimMap")
                     .Input({2, 7}, {-4, 3})
                     .Reference([](const Node&, const Tensors& in) {
                       std::vector<double> y = ToDoubles(in[0]);
                       const double places[] = {0, 2, 3, 1};
                       for (double& v : y) v = places[static_cast<int>(v + 4) % 4];
                       return Tensors{Doubles(in[0].shape(), y)};
                     }));
  const struct {
    const char *label, *from, *to;
    pick::Index dims, order;
  } rows[] = {{"whole", "NHWC", "NCHW", {4}, {0, 3, 1, 2}},
              {"pairs", "NHWC", "NCHW", {4, 2}, {0, 3, 1, 2}},
              {"spatial", "NHWC", "CWHN", {2}, {1, 0}},
              {"volumes", "NDHWC", "NCDHW", {5, 2}, {0, 4, 1, 2, 3}},
              {"spatial_volumes", "NDHWC", "NCWHD", {3}, {2, 1, 0}}};
  for (const auto& row : rows) {
    const pick::Index order = row.order;
    all->push_back(OpCase("DataFormatVecPermute")
                       .Label(row.label)
                       .Attr("src_format", row.from)
                       .Attr("dst_format", row.to)
                       .Input(Shape(absl::MakeConstSpan(row.dims)), {0, 50})
                       .Reference([order](const Node&, const Tensors& in) {
                         return Tensors{PickOne(in[0], in[0].shape(), [&](const pick::Index& i) {
                           pick::Index from = i;
                           from[0] = order[i[0]];
                           return Flat(in[0].shape(), from);
                         })};
                       }));
  }
}

std::vector<OpCase> PatchCases() {
  std::vector<OpCase> all;
  AddPatches(&all);
  AddDilation(&all);
  AddFormats(&all);
  return all;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Patches, OpSweepTest, testing::ValuesIn(PatchCases()), OpCaseName);

}  // namespace weir
