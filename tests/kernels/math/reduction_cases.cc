#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "weir/tests/kernels/lib/op_case.h"

// Gradients checked to order 1 by rows: EuclideanNorm, Max, Min, Prod.

namespace weir {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// ---- reductions

using Fold = std::function<double(const std::vector<double>&)>;

OpReference ReductionReference(Fold fold) {
  return [fold](const Node& node, const Tensors& in) -> Tensors {
    const Tensor& x = in[0];
    const bool keep = node.attr<bool>("keep_dims");
    std::vector<bool> reduced(x.rank(), false);
    for (int64_t i = 0; i < in[1].num_elements(); ++i)
      reduced[(in[1].IntAt(i) + x.rank()) % x.rank()] = true;
    Shape shape;
    for (int i = 0; i < x.rank(); ++i) {
      if (!reduced[i])
        shape.AddDim(x.dim(i));
      else if (keep)
        shape.AddDim(1);
    }
    std::vector<std::vector<double>> groups(shape.num_elements());
    const std::vector<double> values = ToDoubles(x);
    ForEachIndex(x.shape(), [&](int64_t flat, const std::vector<int64_t>& index) {
      int64_t at = 0;
      for (int i = 0; i < x.rank(); ++i) {
        if (!reduced[i]) at = at * x.dim(i) + index[i];
      }
      groups[at].push_back(values[flat]);
    });
    std::vector<double> out;
    for (const auto& g : groups) out.push_back(fold(g));
    if (node.output_type(0) != DT_BOOL) return {Doubles(shape, out)};
    Tensor flags(DT_BOOL, shape);
    for (size_t i = 0; i < out.size(); ++i) flags.data<bool>()[i] = out[i] != 0;
    return {flags};
  };
}

struct AxesCase {
  const char* label;
  Shape shape;
  Tensor axes;
  bool keep;
};
const std::vector<AxesCase>& AxesCases() {
  static const auto* const cases = new std::vector<AxesCase>{
      {"rows", {5, 33}, Tensor::Vector<int32_t>({1}), false},
      {"columns", {33, 5}, Tensor::Vector<int32_t>({0}), true},
      {"all", {4, 3, 2}, Tensor::Vector<int32_t>({0, 1, 2}), false},
      {"all_kept", {4, 3, 2}, Tensor::Vector<int64_t>({-1, 0, 1}), true},
      {"middle", {3, 4, 5}, Tensor::Scalar<int32_t>(1), false},
      {"outer_and_inner", {3, 4, 5}, Tensor::Vector<int32_t>({0, -1}), false},
      {"five", {2, 3, 2, 3, 2}, Tensor::Vector<int32_t>({1, 3}), true},
      {"none", {3, 4}, Tensor(DT_INT32, {0}), false},
      {"empty", {0, 3}, Tensor::Vector<int32_t>({0}), false},
      {"empty_result", {3, 0}, Tensor::Vector<int32_t>({0}), false},
      {"scalar", {}, Tensor(DT_INT32, {0}), false},
      {"long", {70001}, Tensor::Vector<int32_t>({0}), false},
      {"tall", {20001, 3}, Tensor::Vector<int32_t>({0}), false},
      {"wide", {3, 20001}, Tensor::Vector<int32_t>({0}), false},
      {"columns_in_groups", {21, 67}, Tensor::Vector<int32_t>({0}), false},
      {"wide_in_groups", {21, 20001}, Tensor::Vector<int32_t>({0}), false},
      {"columns_apart", {3, 9, 2, 11, 20}, Tensor::Vector<int32_t>({1, 3}), false},
      {"many_rows", {3000, 33}, Tensor::Vector<int32_t>({1}), false},
  };
  return *cases;
}

void AddReduction(std::vector<OpCase>* all, const char* op, Fold fold, Range range, bool long_ones,
                  int order = 1) {
  for (const AxesCase& a : AxesCases()) {
    const int64_t n = a.shape.num_elements();
    if (n > 1000 && !long_ones) continue;
    OpCase c(op);
    c.Label(a.label)
        .Attr("keep_dims", a.keep)
        .Input(a.shape, range)
        .Input(a.axes)
        .Reference(ReductionReference(fold));
    if (n > 1000) {
      c.Types({DT_FLOAT, DT_DOUBLE}).Tolerance(DT_FLOAT, 1e-5).Gradient(0);
    } else {
      c.NotTypes({DT_COMPLEX64, DT_COMPLEX128}).Gradient(n == 0 || a.shape.rank() == 0 ? 0 : order);
    }
    all->push_back(c);
  }
}

double SumOf(const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); }

std::vector<OpCase> ReductionCases() {
  std::vector<OpCase> all;
  AddReduction(&all, "Sum", SumOf, {0, 2}, true, 2);
  AddReduction(
      &all, "Mean", [](const std::vector<double>& v) { return SumOf(v) / v.size(); }, {-2, 2}, true,
      2);
  AddReduction(
      &all, "Prod",
      [](const std::vector<double>& v) {
        return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>());
      },
      {0.8, 1.1}, false);
  AddReduction(
      &all, "Max",
      [](const std::vector<double>& v) {
        return v.empty() ? -kInf : *std::max_element(v.begin(), v.end());
      },
      {0, 100, false, true}, true);
  AddReduction(
      &all, "Min",
      [](const std::vector<double>& v) {
        return v.empty() ? kInf : *std::min_element(v.begin(), v.end());
      },
      {0, 100, false, true}, true);
  AddReduction(
      &all, "EuclideanNorm",
      [](const std::vector<double>& v) {
        double s = 0;
        for (const double x : v) s += x * x;
        return std::sqrt(s);
      },
      {0.5, 2}, true);
  // Integer means drop the fraction, integer norms too, and the extremes of empty sets differ by
  // type: those rows are for floats.
  for (OpCase& c : all) {
    const bool floats_only = c.op() == "Mean" || c.op() == "EuclideanNorm" ||
                             c.name().find("_empty") != std::string::npos;
    if (floats_only && c.name().find("_long") == std::string::npos)
      c.NotTypes(DataTypesOf(JoinLists<Integers, Complexes>()));
  }
  const auto logical = [&](const char* op, Fold fold) {
    all.push_back(OpCase(op)
                      .Input(DT_BOOL, {6, 2})
                      .Input(Tensor::Vector<int32_t>({1}))
                      .Reference(ReductionReference(fold)));
    all.push_back(OpCase(op)
                      .Label("empty")
                      .Input(DT_BOOL, {3, 0})
                      .Input(Tensor::Vector<int32_t>({1}))
                      .Reference(ReductionReference(fold)));
  };
  logical("All", [](const std::vector<double>& v) {
    return std::all_of(v.begin(), v.end(), [](double x) { return x != 0; });
  });
  logical("Any", [](const std::vector<double>& v) {
    return std::any_of(v.begin(), v.end(), [](double x) { return x != 0; });
  });
  all.push_back(OpCase("Sum")
                    .Label("complex")
                    .Types({DT_COMPLEX64, DT_COMPLEX128})
                    .Input({3})
                    .Input(Tensor::Scalar<int32_t>(0))
                    .Reference([](const Node&, const Tensors& in) -> Tensors {
                      const complex128* x = in[0].data<complex128>();
                      return {Tensor::Scalar<complex128>(x[0] + x[1] + x[2])};
                    }));
  all.push_back(OpCase("Mean")
                    .Label("integers")
                    .Types({DT_INT32, DT_UINT8})
                    .Input({7}, {0, 20})
                    .Input(Tensor::Scalar<int32_t>(0))
                    .Reference([](const Node& node, const Tensors& in) -> Tensors {
                      const double mean = std::trunc(SumOf(ToDoubles(in[0])) / 7);
                      if (node.output_type(0) == DT_INT32)
                        return {Tensor::Scalar<int32_t>(static_cast<int32_t>(mean))};
                      return {Tensor::Scalar<uint8_t>(static_cast<uint8_t>(mean))};
                    }));
  return all;
}

// ---- along one axis

OpReference AlongAxis(std::function<void(std::vector<double>&)> scan) {
  return [scan](const Node& node, const Tensors& in) -> Tensors {
    const Shape& shape = in[0].shape();
    const int axis = static_cast<int>((in[1].IntAt(0) + shape.rank()) % shape.rank());
    const bool reverse = node.attr_or<bool>("reverse", false),
               exclusive = node.attr_or<bool>("exclusive", false);
    std::map<std::vector<int64_t>, std::vector<double>> lines;
    const std::vector<double> x = ToDoubles(in[0]);
    const auto key = [axis](std::vector<int64_t> index) {
      index[axis] = 0;
      return index;
    };
    ForEachIndex(shape, [&](int64_t flat, const std::vector<int64_t>& index) {
      lines[key(index)].push_back(x[flat]);
    });
    for (auto& [k, line] : lines) {
      if (reverse) std::reverse(line.begin(), line.end());
      // The neutral element comes first: the initial value of an exclusive scan.
      line.insert(line.begin(), std::numeric_limits<double>::quiet_NaN());
      scan(line);
      exclusive ? line.pop_back() : void(line.erase(line.begin()));
      if (reverse) std::reverse(line.begin(), line.end());
    }
    std::vector<double> y(x.size());
    ForEachIndex(shape, [&](int64_t flat, const std::vector<int64_t>& index) {
      y[flat] = lines[key(index)][index[axis]];
    });
    return {Doubles(shape, y)};
  };
}

std::vector<OpCase> ScanCases() {
  const auto running = [](double start, std::function<double(double, double)> step) {
    return [=](std::vector<double>& v) {
      v[0] = start;
      for (size_t i = 1; i < v.size(); ++i) v[i] = step(v[i - 1], v[i]);
    };
  };
  const auto sum = running(0, [](double a, double x) { return a + x; });
  const auto product = running(1, [](double a, double x) { return a * x; });
  const auto logsumexp =
      running(-kInf, [](double a, double x) { return std::log(std::exp(a) + std::exp(x)); });
  std::vector<OpCase> all;
  for (const auto& [label, exclusive, reverse] :
       std::vector<std::tuple<const char*, bool, bool>>{{"plain", false, false},
                                                        {"exclusive", true, false},
                                                        {"reverse", false, true},
                                                        {"both", true, true}}) {
    const auto add = [&, l = label, e = exclusive, r = reverse](
                         const char* op, Range range,
                         const std::function<void(std::vector<double>&)>& scan) {
      all.push_back(OpCase(op)
                        .Label(l)
                        .Attr("exclusive", e)
                        .Attr("reverse", r)
                        .Input({3, 4, 2}, range)
                        .Input(Tensor::Scalar<int32_t>(r ? -1 : 1))
                        .NotTypes({DT_COMPLEX64, DT_COMPLEX128})
                        .Reference(AlongAxis(scan)));
    };
    add("Cumsum", {0, 9}, sum);
    add("Cumprod", {0.5, 2}, product);
    if (!exclusive) add("CumulativeLogsumexp", {-2, 2}, logsumexp);
  }
  const auto arg = [&](const char* op, const char* label, Shape shape, int axis, bool max) {
    all.push_back(
        OpCase(op)
            .Label(label)
            .Input(shape, {0, 100, false, true})
            .Input(Tensor::Scalar<int32_t>(axis))
            .Reference([max](const Node&, const Tensors& in) -> Tensors {
              const int a = static_cast<int>((in[1].IntAt(0) + in[0].rank()) % in[0].rank());
              Shape out_shape = in[0].shape();
              out_shape.RemoveDim(a);
              Tensor out = Tensor::Zeros(DT_INT64, out_shape);
              const std::vector<double> x = ToDoubles(in[0]);
              std::vector<double> best(out.num_elements(), max ? -kInf : kInf);
              ForEachIndex(in[0].shape(), [&](int64_t flat, const std::vector<int64_t>& index) {
                int64_t at = 0;
                for (int i = 0; i < in[0].rank(); ++i) {
                  if (i != a) at = at * in[0].dim(i) + index[i];
                }
                if (max ? x[flat] > best[at] : x[flat] < best[at]) {
                  best[at] = x[flat];
                  out.data<int64_t>()[at] = index[a];
                }
              });
              return {out};
            }));
  };
  arg("ArgMax", "rows", {4, 9}, 1, true);
  arg("ArgMax", "columns", {9, 4}, 0, true);
  arg("ArgMin", "middle", {3, 5, 2}, -2, false);
  return all;
}

// ---- generating numbers, counting

std::vector<OpCase> SequenceCases() {
  const auto fixed = [](Tensor want) {
    return [want](const Node&, const Tensors&) -> Tensors { return {want}; };
  };
  return {
      OpCase("Range")
          .Input(Tensor::Scalar<int32_t>(3))
          .Input(Tensor::Scalar<int32_t>(18))
          .Input(Tensor::Scalar<int32_t>(4))
          .Types({DT_INT32})
          .Reference(fixed(Tensor::Vector<int32_t>({3, 7, 11, 15}))),
      OpCase("Range")
          .Label("down")
          .Input(Tensor::Scalar(1.0))
          .Input(Tensor::Scalar(-0.6))
          .Input(Tensor::Scalar(-0.5))
          .Types({DT_DOUBLE})
          .Reference(fixed(Tensor::Vector<double>({1, 0.5, 0, -0.5}))),
      OpCase("Range")
          .Label("empty")
          .Input(Tensor::Scalar<int64_t>(5))
          .Input(Tensor::Scalar<int64_t>(5))
          .Input(Tensor::Scalar<int64_t>(1))
          .Types({DT_INT64})
          .Reference(fixed(Tensor(DT_INT64, {0}))),
      OpCase("LinSpace")
          .Input(Tensor::Scalar(1.0))
          .Input(Tensor::Scalar(2.0))
          .Input(Tensor::Scalar<int32_t>(5))
          .Types({DT_DOUBLE})
          .Reference(fixed(Tensor::Vector<double>({1, 1.25, 1.5, 1.75, 2}))),
      OpCase("Bucketize")
          .Attr("boundaries", std::vector<float>{0, 10, 100})
          .Input(Tensor::Of<float>({2, 3}, {-5, 10000, 150, 10, 5, 100}))
          .Types({DT_FLOAT})
          .Reference(fixed(Tensor::Of<int32_t>({2, 3}, {0, 3, 3, 2, 1, 3}))),
      OpCase("Bincount")
          .Input(Tensor::Vector<int32_t>({1, 1, 3, 0, 9}))
          .Input(Tensor::Scalar<int32_t>(4))
          .Input(Tensor::Vector<float>({1, 2, 0.5f, 4, 7}))
          .Types({DT_FLOAT})
          .Reference(fixed(Tensor::Vector<float>({4, 3, 0, 0.5f}))),
      OpCase("Bincount")
          .Label("wraps")
          .Input(Tensor::Vector<int32_t>({0, 0}))
          .Input(Tensor::Scalar<int32_t>(1))
          .Input(Tensor::Vector<int32_t>({std::numeric_limits<int32_t>::max(), 1}))
          .Types({DT_INT32})
          .Reference(fixed(Tensor::Vector<int32_t>({std::numeric_limits<int32_t>::min()}))),
      OpCase("HistogramFixedWidth")
          .Input(Tensor::Vector<float>({-1, 0, 1.5f, 2, 5, 15}))
          .Input(Tensor::Vector<float>({0, 5}))
          .Input(Tensor::Scalar<int32_t>(5))
          .Types({DT_FLOAT})
          .Reference(fixed(Tensor::Vector<int32_t>({2, 1, 1, 0, 2}))),
      OpCase("Cross")
          .Input({2, 3}, {0, 5})
          .Input({2, 3}, {0, 5})
          .Gradient(2)
          .Types({DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE, DT_INT8, DT_INT32, DT_INT64})
          .ToleranceFactor(3)
          .Reference([](const Node&, const Tensors& in) -> Tensors {
            std::vector<double> y;
            for (int i = 0; i < 6; i += 3) {
              const double *a = in[0].data<double>() + i, *b = in[1].data<double>() + i;
              for (int k = 0; k < 3; ++k)
                y.push_back(a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3]);
            }
            return {Doubles({2, 3}, y)};
          }),
  };
}

// ---- selection, addition

std::vector<OpCase> SelectCases() {
  const auto choose = [](const Node&, const Tensors& in) -> Tensors {
    const Shape shape = in[1].shape();
    const int64_t n = shape.num_elements(), each = n / in[0].num_elements();
    const std::vector<double> t = ToDoubles(in[1]), e = ToDoubles(in[2]);
    std::vector<double> y(n);
    for (int64_t i = 0; i < n; ++i) y[i] = in[0].data<bool>()[i / each] ? t[i] : e[i];
    return {Doubles(shape, y)};
  };
  const auto add = [](const Node&, const Tensors& in) -> Tensors {
    std::vector<double> y = ToDoubles(in[0]);
    for (size_t k = 1; k < in.size(); ++k) {
      const std::vector<double> x = ToDoubles(in[k]);
      for (size_t i = 0; i < y.size(); ++i) y[i] += x[i];
    }
    return {Doubles(in[0].shape(), y)};
  };
  const DataTypes real = DataTypesOf(RealNumbers());
  const Tensor condition = Tensor::Vector<bool>({true, false, true});
  return {
      OpCase("Select")
          .Input(DT_BOOL, {3, 5})
          .Input({3, 5})
          .Input({3, 5})
          .Types(real)
          .Reference(choose)
          .Gradient(2),
      OpCase("Select")
          .Label("rows")
          .Input(condition)
          .Input({3, 5})
          .Input({3, 5})
          .Types(real)
          .Reference(choose),
      OpCase("Select")
          .Label("scalar")
          .Input(Tensor::Scalar(false))
          .Input({3, 5})
          .Input({3, 5})
          .Types(real)
          .Reference(choose),
      OpCase("Select")
          .Label("large")
          .Input(DT_BOOL, {70001})
          .Input({70001})
          .Input({70001})
          .Types({DT_FLOAT})
          .Reference(choose),
      OpCase("SelectV2")
          .Input(DT_BOOL, {2, 3})
          .Input({2, 3})
          .Input({2, 3})
          .Types(real)
          .Reference(choose)
          .Gradient(2),
      OpCase("SelectV2")
          .Label("broadcast")
          .Input(condition)
          .Input({2, 1})
          .Input(Shape())
          .Types({DT_FLOAT, DT_DOUBLE})
          .Reference([](const Node&, const Tensors& in) -> Tensors {
            std::vector<double> y;
            for (int i = 0; i < 6; ++i)
              y.push_back(i % 3 != 1 ? in[1].data<double>()[i / 3] : in[2].data<double>()[0]);
            return {Doubles({2, 3}, y)};
          }),
      OpCase("SelectV2")
          .Label("strings")
          .Types({DT_STRING})
          .Input(condition)
          .Input(Tensor::Scalar("a"))
          .Input(Tensor::Vector<std::string>({"x", "y", "z"}))
          .Gradient(0)
          .Reference([](const Node&, const Tensors&) -> Tensors {
            return {Tensor::Vector<std::string>({"a", "y", "a"})};
          }),
      OpCase("ClipByValue")
          .Input({3, 20}, {0, 9})
          .Input(Shape(), {2, 3})
          .Input(Shape(), {5, 6})
          .Reference([](const Node&, const Tensors& in) -> Tensors {
            std::vector<double> y = ToDoubles(in[0]);
            for (double& v : y)
              v = std::max(std::min(v, in[2].data<double>()[0]), in[1].data<double>()[0]);
            return {Doubles(in[0].shape(), y)};
          }),
      OpCase("AddN")
          .List({Shape{3, 5}, Shape{3, 5}, Shape{3, 5}}, {0, 9})
          .Types(real)
          .Reference(add)
          .Gradient(2),
      OpCase("AddN")
          .Label("scalars")
          .List(std::vector<Shape>(20, Shape()))
          .Types(real)
          .Reference(add),
      OpCase("AddN").Label("one").List({Shape{4}}).Types({DT_FLOAT}).Reference(add),
      OpCase("AddN")
          .Label("large")
          .List({Shape{70001}, Shape{70001}, Shape{70001}})
          .Types({DT_FLOAT})
          .Reference(add),
      OpCase("AccumulateNV2")
          .Attr("shape", Shape({3}))
          .List({Shape{3}, Shape{3}}, {0, 9})
          .Types(real)
          .Reference(add),
  };
}

// ---- matrices

double At(const Tensor& t, int64_t batch, int64_t i, int64_t j, bool transposed) {
  const int64_t rows = t.dim(t.rank() - 2), columns = t.dim(t.rank() - 1);
  return t
      .data<double>()[batch * rows * columns + (transposed ? j * columns + i : i * columns + j)];
}

OpReference ProductReference(const char* ta_name, const char* tb_name) {
  return [=](const Node& node, const Tensors& in) -> Tensors {
    const Tensor &a = in[0], &b = in[1];
    const bool ta = node.attr<bool>(ta_name), tb = node.attr<bool>(tb_name);
    const int64_t m = a.dim(a.rank() - (ta ? 1 : 2)), k = a.dim(a.rank() - (ta ? 2 : 1)),
                  n = b.dim(b.rank() - (tb ? 2 : 1));
    const Shape ba = a.shape().Sub(0, a.rank() - 2), bb = b.shape().Sub(0, b.rank() - 2);
    Shape shape = BroadcastShapes(ba, bb).value();
    std::vector<double> y;
    ForEachIndex(shape, [&](int64_t, const std::vector<int64_t>& index) {
      const auto at = [&](const Shape& s) {
        int64_t flat = 0;
        const int skip = shape.rank() - s.rank();
        for (int d = 0; d < s.rank(); ++d)
          flat = flat * s.dim(d) + (s.dim(d) == 1 ? 0 : index[d + skip]);
        return flat;
      };
      const int64_t i_a = at(ba), i_b = at(bb);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t p = 0; p < k; ++p) sum += At(a, i_a, i, p, ta) * At(b, i_b, p, j, tb);
          y.push_back(sum);
        }
      }
    });
    shape.AddDim(m);
    shape.AddDim(n);
    return {Doubles(shape, y)};
  };
}

std::vector<OpCase> MatMulCases() {
  std::vector<OpCase> all;
  const auto matmul = [&](const std::string& label, Shape a, Shape b, bool ta, bool tb,
                          bool large) {
    OpCase c("MatMul");
    c.Label(label)
        .Attr("transpose_a", ta)
        .Attr("transpose_b", tb)
        .Input(a, {0, 3})
        .Input(b, {0, 3})
        .Reference(ProductReference("transpose_a", "transpose_b"));
    if (large) {
      c.Types({DT_FLOAT, DT_DOUBLE, DT_BFLOAT16}).ToleranceFactor(2).Gradient(0);
    } else {
      c.NotTypes({DT_COMPLEX64, DT_COMPLEX128}).Gradient(2);
    }
    all.push_back(c);
  };
  matmul("nn", {3, 5}, {5, 4}, false, false, false);
  matmul("tn", {5, 3}, {5, 4}, true, false, false);
  matmul("nt", {3, 5}, {4, 5}, false, true, false);
  matmul("tt", {5, 3}, {4, 5}, true, true, false);
  matmul("vector", {1, 7}, {7, 1}, false, false, false);
  matmul("no_depth", {3, 0}, {0, 4}, false, false, true);
  matmul("large", {65, 130}, {130, 257}, false, false, true);
  matmul("large_tn", {130, 65}, {130, 257}, true, false, true);
  matmul("large_nt", {65, 130}, {257, 130}, false, true, true);
  matmul("tall", {999, 33}, {33, 17}, false, false, true);
  matmul("tall_tt", {33, 999}, {17, 33}, true, true, true);
  const auto batch = [&](const char* op, const char* label, Shape x, Shape y, bool ax, bool ay,
                         int order) {
    all.push_back(OpCase(op)
                      .Label(label)
                      .Attr("adj_x", ax)
                      .Attr("adj_y", ay)
                      .Input(x, {0, 3})
                      .Input(y, {0, 3})
                      .NotTypes({DT_COMPLEX64, DT_COMPLEX128})
                      .Gradient(order)
                      .Reference(ProductReference("adj_x", "adj_y")));
  };
  batch("BatchMatMul", "nn", {2, 3, 4}, {2, 4, 2}, false, false, 2);
  batch("BatchMatMul", "tt", {2, 4, 3}, {2, 2, 4}, true, true, 1);
  batch("BatchMatMulV2", "broadcast", {2, 1, 3, 4}, {3, 4, 2}, false, false, 2);
  batch("BatchMatMulV2", "nt", {2, 3, 4}, {2, 4}, false, true, 1);
  batch("BatchMatMulV2", "many", {40, 3, 4}, {40, 4, 2}, false, false, 0);
  all.push_back(OpCase("BatchMatMulV3")
                    .TypeAttr("Tout")
                    .Attr("Tout", DT_DOUBLE)
                    .Types({DT_DOUBLE})
                    .Input(DT_DOUBLE, {2, 3, 4})
                    .Input(DT_DOUBLE, {2, 4, 2})
                    .Gradient(0)
                    .Reference(ProductReference("adj_x", "adj_y")));
  all.push_back(OpCase("BatchMatMulV2")
                    .Label("adjoint")
                    .Types({DT_COMPLEX64, DT_COMPLEX128})
                    .Attr("adj_x", true)
                    .Input({1, 2, 1})
                    .Input({1, 2, 1})
                    .Reference([](const Node&, const Tensors& in) -> Tensors {
                      const complex128 *x = in[0].data<complex128>(), *y = in[1].data<complex128>();
                      return {Tensor::Of<complex128>(
                          {1, 1, 1}, {std::conj(x[0]) * y[0] + std::conj(x[1]) * y[1]})};
                    }));
  return all;
}

// ---- segments

// Groups rows of the (possibly gathered) data by id; `fold` combines the values of one column of
// one segment.
OpReference SegmentReference(bool sparse, Fold fold) {
  return [=](const Node& node, const Tensors& in) -> Tensors {
    const Tensor &data = in[0], &ids = in[sparse ? 2 : 1];
    const int64_t n = ids.num_elements(), width = data.num_elements() / data.dim(0);
    const size_t count_at = sparse ? 3 : 2;
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count = std::max(count, ids.IntAt(i) + 1);
    if (in.size() > count_at) count = in[count_at].IntAt(0);
    std::vector<std::vector<double>> groups(count * width);
    const std::vector<double> x = ToDoubles(data);
    for (int64_t i = 0; i < n; ++i) {
      if (ids.IntAt(i) < 0) continue;
      const int64_t row = sparse ? in[1].IntAt(i) : i;
      for (int64_t j = 0; j < width; ++j)
        groups[ids.IntAt(i) * width + j].push_back(x[row * width + j]);
    }
    std::vector<double> y;
    for (const auto& g : groups) y.push_back(fold(g));
    return {Doubles({count, width}, y)};
  };
}

std::vector<OpCase> SegmentCases() {
  std::vector<OpCase> all;
  const Fold product = [](const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>());
  };
  const Fold mean = [](const std::vector<double>& v) {
    return v.empty() ? 0 : SumOf(v) / v.size();
  };
  const Fold root = [](const std::vector<double>& v) {
    return v.empty() ? 0 : SumOf(v) / std::sqrt(v.size());
  };
  const Fold largest = [](const std::vector<double>& v) {
    return v.empty() ? 0 : *std::max_element(v.begin(), v.end());
  };
  const Fold smallest = [](const std::vector<double>& v) {
    return v.empty() ? 0 : *std::min_element(v.begin(), v.end());
  };
  const Tensor sorted = Tensor::Vector<int32_t>({0, 0, 1, 3, 3, 3});
  const auto segment = [&](const char* op, Range range, const Fold& fold) {
    all.push_back(OpCase(op)
                      .Input({6, 4}, range)
                      .Input(sorted)
                      .NotTypes({DT_COMPLEX64, DT_COMPLEX128})
                      .Reference(SegmentReference(false, fold))
                      .ShapesDependOnValues());
  };
  segment("SegmentSum", {0, 9}, SumOf);
  segment("SegmentProd", {0.5, 2}, product);
  segment("SegmentMax", {0, 100, false, true}, largest);
  segment("SegmentMin", {0, 100, false, true}, smallest);
  all.push_back(OpCase("SegmentMean")
                    .Input({6, 4})
                    .Input(sorted)
                    .Types({DT_HALF, DT_FLOAT, DT_DOUBLE})
                    .Reference(SegmentReference(false, mean))
                    .ShapesDependOnValues());
  const Tensor unsorted = Tensor::Vector<int64_t>({2, 0, -1, 2, 1, 0});
  const auto unsorted_segment = [&](const char* op, Range range, const Fold& fold) {
    all.push_back(OpCase(op)
                      .Input({6, 4}, range)
                      .Input(unsorted)
                      .Input(Tensor::Scalar<int32_t>(3))
                      .NotTypes({DT_COMPLEX64, DT_COMPLEX128})
                      .Reference(SegmentReference(false, fold)));
  };
  unsorted_segment("UnsortedSegmentSum", {0, 9}, SumOf);
  unsorted_segment("UnsortedSegmentProd", {0.5, 2}, product);
  unsorted_segment("UnsortedSegmentMax", {0, 100, false, true}, largest);
  unsorted_segment("UnsortedSegmentMin", {0, 100, false, true}, smallest);
  const Tensor indices = Tensor::Vector<int32_t>({3, 0, 3, 1}),
               ids = Tensor::Vector<int32_t>({0, 0, 2, 2});
  const auto sparse = [&](const std::string& kind, const Fold& fold,
                          const std::function<double(int)>& factor) {
    all.push_back(OpCase("SparseSegment" + kind)
                      .Input({4, 3}, {0, 9})
                      .Input(indices)
                      .Input(ids)
                      .Reference(SegmentReference(true, fold))
                      .ShapesDependOnValues());
    all.push_back(OpCase("SparseSegment" + kind + "WithNumSegments")
                      .Input({4, 3}, {0, 9})
                      .Input(indices)
                      .Input(ids)
                      .Input(Tensor::Scalar<int32_t>(5))
                      .Reference(SegmentReference(true, fold)));
    all.push_back(OpCase("SparseSegment" + kind + "Grad")
                      .Input({3, 2})
                      .Input(indices)
                      .Input(ids)
                      .Input(Tensor::Scalar<int32_t>(4))
                      .GradientInputs({0})
                      .Reference([=](const Node&, const Tensors& in) -> Tensors {
                        std::vector<double> y(8, 0.0);
                        for (int i = 0; i < 4; ++i) {
                          for (int j = 0; j < 2; ++j) {
                            y[indices.IntAt(i) * 2 + j] +=
                                factor(2) * in[0].data<double>()[ids.IntAt(i) * 2 + j];
                          }
                        }
                        return {Doubles({4, 2}, y)};
                      }));
    // Rows 0, 1 and 3 of the result above: no index names row 2.
    all.push_back(
        OpCase("SparseSegment" + kind + "GradV2")
            .Input({3, 2})
            .Input(indices)
            .Input(ids)
            .Input(Tensor::Scalar<int32_t>(4))
            .Reference([=](const Node&, const Tensors& in) -> Tensors {
              const double* const x = in[0].data<double>();
              std::vector<double> y;
              for (const auto& [a, b] : {std::pair(0, -1), std::pair(2, -1), std::pair(0, 2)}) {
                for (int j = 0; j < 2; ++j)
                  y.push_back(factor(2) * (x[a * 2 + j] + (b < 0 ? 0 : x[b * 2 + j])));
              }
              return {Doubles({3, 2}, y), Tensor::Vector<int32_t>({0, 1, 3})};
            })
            .ShapesDependOnValues());
  };
  sparse("Sum", SumOf, [](int) { return 1.0; });
  sparse("Mean", mean, [](int n) { return 1.0 / n; });
  sparse("SqrtN", root, [](int n) { return 1 / std::sqrt(n); });
  return all;
}

}  // namespace

std::vector<OpCase> AllReductionCases() {
  std::vector<OpCase> all;
  for (auto* part :
       {&ReductionCases, &ScanCases, &SequenceCases, &SelectCases, &MatMulCases, &SegmentCases}) {
    for (OpCase& c : (*part)()) all.push_back(std::move(c));
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Reduction, OpSweepTest, testing::ValuesIn(AllReductionCases()),
                         OpCaseName);

}  // namespace weir
