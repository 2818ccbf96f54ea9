#include <algorithm>
#include <cmath>

#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/pick.h"

// Binary search in sorted rows, selection by rank, and counting.
namespace weir {

namespace {

using namespace pick;  // NOLINT: a vocabulary made for these tables

// ---- references

// The op requires sorted rows, so they are sorted here; the reference counts instead of searching.
Tensors BoundReference(const Node& n, const Tensors& in) {
  const bool upper = n.op_name() == "UpperBound";
  const std::vector<double> sorted = ToDoubles(in[0]), values = ToDoubles(in[1]);
  const int64_t length = in[0].dim(1), columns = in[1].dim(1);
  Tensor out(n.output_type(0), in[1].shape());
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    int64_t before = 0;
    for (int64_t k = 0; k < length; ++k) {
      const double x = sorted[i / columns * length + k];
      before += x < values[i] || (upper && x == values[i]);
    }
    out.SetIntAt(i, before);
  }
  return {out};
}

Tensors NthReference(const Node& n, const Tensors& in) {
  const std::vector<double> x = ToDoubles(in[0]);
  const int64_t columns = in[0].dim(-1), place = in[1].IntAt(0);
  std::vector<double> out;
  for (auto row = x.begin(); row != x.end(); row += columns) {
    std::vector<double> sorted(row, row + columns);
    std::sort(sorted.begin(), sorted.end());
    if (n.attr<bool>("reverse")) std::reverse(sorted.begin(), sorted.end());
    out.push_back(sorted[place]);
  }
  return {Doubles(in[0].shape().Sub(0, -1), out)};
}

// Element i of the result has i elements before it: larger ones, or equal ones of lower index.
Tensors TopReference(const Node& n, const Tensors& in) {
  const int rank = in[0].rank();
  const int64_t axis = (n.attr<int64_t>("reduction_dimension") + rank) % rank;
  const double sign = n.attr<bool>("is_max_k") ? 1 : -1;
  const std::vector<double> x = ToDoubles(in[0]);
  Shape shape = in[0].shape();
  shape.set_dim(static_cast<int>(axis), n.attr<int64_t>("k"));
  Tensor values(DT_DOUBLE, shape), indices(DT_INT32, shape);
  ForEachIndex(in[0].shape(), [&](int64_t flat, const pick::Index& index) {
    int64_t before = 0;
    pick::Index other = index;
    for (int64_t k = 0; k < in[0].shape().dim(static_cast<int>(axis)); ++k) {
      other[axis] = k;
      const double d = sign * (x[Flat(in[0].shape(), other)] - x[flat]);
      before += d > 0 || (d == 0 && k < index[axis]);
    }
    if (before >= n.attr<int64_t>("k")) return;
    pick::Index to = index;
    to[axis] = before;
    values.data<double>()[Flat(shape, to)] = x[flat];
    indices.SetIntAt(Flat(shape, to), index[axis]);
  });
  return {values, indices};
}

// Rows of bins; `row(i)` returns the row of value i.
Tensor Count(const Node& n, const Tensor& values, int64_t size, const Tensor& weights,
             const Shape& shape, const std::function<int64_t(int64_t)>& row) {
  std::vector<double> bins(static_cast<size_t>(shape.num_elements()));
  const std::vector<double> w = ToDoubles(weights);
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const int64_t v = values.IntAt(i);
    if (v >= size) continue;
    double& bin = bins[row(i) * size + v];
    bin = n.attr<bool>("binary_output") ? 1 : bin + (w.empty() ? 1 : w[i]);
  }
  return Doubles(shape, bins);
}

Tensors DenseReference(const Node& n, const Tensors& in) {
  const int64_t size = in[1].IntAt(0), columns = in[0].rank() == 2 ? in[0].dim(1) : 1;
  if (in[0].rank() < 2) {
    return {Count(n, in[0], size, in[2], Shape({size}), [](int64_t) { return 0; })};
  }
  return {Count(n, in[0], size, in[2], Shape({in[0].dim(0), size}),
                [=](int64_t i) { return i / columns; })};
}
Tensors SparseReference(const Node& n, const Tensors& in) {
  const int64_t size = in[3].IntAt(0), rank = in[2].num_elements();
  if (rank == 1) return {Count(n, in[1], size, in[4], Shape({size}), [](int64_t) { return 0; })};
  return {Count(n, in[1], size, in[4], Shape({in[2].IntAt(0), size}),
                [&](int64_t i) { return in[0].IntAt(i * rank); })};
}
Tensors RaggedReference(const Node& n, const Tensors& in) {
  const int64_t size = in[2].IntAt(0), rows = in[0].num_elements() - 1;
  return {Count(n, in[1], size, in[3], Shape({rows, size}), [&](int64_t i) {
    int64_t row = 0;
    while (in[0].IntAt(row + 1) <= i) ++row;
    return row;
  })};
}

Tensors UnravelReference(const Node&, const Tensors& in) {
  const int64_t rank = in[1].num_elements(), count = in[0].num_elements();
  Shape shape({rank});
  if (in[0].rank() == 1) shape.AddDim(count);
  Tensor out(in[0].dtype(), shape);
  for (int64_t i = 0; i < count; ++i) {
    int64_t stride = 1;
    for (int64_t d = rank - 1; d >= 0; --d) {
      out.SetIntAt(d * count + i, in[0].IntAt(i) / stride % in[1].IntAt(d));
      stride *= in[1].IntAt(d);
    }
  }
  return {out};
}

// ---- rows

void AddBounds(std::vector<OpCase>* rows) {
  for (const char* op : {"LowerBound", "UpperBound"}) {
    for (const DataType index : {DT_INT32, DT_INT64}) {
      const std::string label = index == DT_INT64 ? "int64" : "";
      // Constant rows are sorted, and all their elements are equal.
      rows->push_back(OpCase(op)
                          .Label(label)
                          .TypeAttr("T")
                          .Attr("out_type", index)
                          .Input({2, 5}, {3, 3})
                          .Input({2, 7}, {0, 6})
                          .Reference(BoundReference));
      rows->push_back(OpCase(op)
                          .Label(label + "sorted")
                          .Types({DT_FLOAT})
                          .Attr("out_type", index)
                          .Input(Tensor::Of<float>({2, 4}, {1, 2, 2, 5, -3, 0, 0.5, 9}))
                          .Input(Tensor::Of<float>({2, 5}, {0, 1, 2, 5, 6, -4, -3, 0, 0.7f, 9}))
                          .Reference(BoundReference));
    }
    rows->push_back(
        OpCase(op).Label("empty").Input({2, 0}).Input({2, 3}).Reference(BoundReference));
    rows->push_back(
        OpCase(op).Label("nothing").Input({2, 3}, {1, 1}).Input({2, 0}).Reference(BoundReference));
  }
}

void AddSelections(std::vector<OpCase>* rows) {
  for (const bool reverse : {false, true}) {
    rows->push_back(OpCase("NthElement")
                        .Label(reverse ? "reverse" : "")
                        .Attr("reverse", reverse)
                        .Input({2, 3, 7}, {0, 90, false, true})
                        .Input(I32(2))
                        .Gradient(2)
                        .Reference(NthReference));
  }
  rows->push_back(OpCase("NthElement")
                      .Label("vector")
                      .Input({4}, {0, 90, false, true})
                      .Input(I32(3))
                      .Reference(NthReference));
  const Range distinct = {0, 90, false, true};
  for (const bool largest : {false, true}) {
    const std::string label = largest ? "largest" : "smallest";
    rows->push_back(OpCase("ApproxTopK")
                        .Label(label)
                        .Attr("k", int64_t{3})
                        .Attr("is_max_k", largest)
                        .Input({2, 9}, distinct)
                        .Reference(TopReference));
    rows->push_back(OpCase("ApproxTopK")
                        .Label(label + "_across")
                        .Attr("k", int64_t{2})
                        .Attr("reduction_dimension", int64_t{1})
                        .Attr("is_max_k", largest)
                        .Input({2, 4, 3}, distinct)
                        .Reference(TopReference));
  }
  rows->push_back(OpCase("ApproxTopK")
                      .Label("none")
                      .Attr("k", int64_t{0})
                      .Input({2, 3}, distinct)
                      .Reference(TopReference));
  rows->push_back(OpCase("UnravelIndex")
                      .Types({DT_INT32})
                      .Input(I32({2, 5, 23, 0}))
                      .Input(I32({2, 3, 4}))
                      .Reference(UnravelReference));
  rows->push_back(OpCase("UnravelIndex")
                      .Label("scalar")
                      .Types({DT_INT64})
                      .Input(Tensor::Scalar<int64_t>(17))
                      .Input(I64({4, 5}))
                      .Reference(UnravelReference));
}

void AddCounts(std::vector<OpCase>* rows) {
  const std::vector<DataType> types = {DT_INT32, DT_INT64, DT_FLOAT, DT_DOUBLE};
  const Tensor matrix = Tensor::Of<int32_t>({2, 4}, {0, 2, 2, 9, 1, 1, 1, 3});
  const Tensor places = Tensor::Of<int64_t>({4, 2}, {0, 0, 0, 2, 2, 1, 2, 2});
  const auto row = [&](const char* op, const std::string& label, OpReference reference) {
    return OpCase(op).Label(label).TypeAttr("T").Types(types).Gradient(0).Reference(reference);
  };
  for (const bool binary : {false, true}) {
    for (const bool weighted : {false, true}) {
      const std::string label =
          std::string(binary ? "binary" : "counts") + (weighted ? "_weighted" : "");
      const auto weights = [&](const Shape& shape) { return weighted ? shape : Shape({0}); };
      rows->push_back(row("DenseBincount", label + "_matrix", DenseReference)
                          .Attr("binary_output", binary)
                          .Input(matrix)
                          .Input(I32(4))
                          .Input(weights({2, 4}), {0, 5}));
      rows->push_back(row("DenseBincount", label, DenseReference)
                          .Attr("binary_output", binary)
                          .Input(I64({3, 0, 3, 7}))
                          .Input(Tensor::Scalar<int64_t>(5))
                          .Input(weights({4}), {0, 5}));
      rows->push_back(row("SparseBincount", label + "_matrix", SparseReference)
                          .Attr("binary_output", binary)
                          .Input(places)
                          .Input(I32({1, 1, 3, 8}))
                          .Input(I64({3, 3}))
                          .Input(I32(4))
                          .Input(weights({4}), {0, 5}));
      rows->push_back(row("SparseBincount", label, SparseReference)
                          .Attr("binary_output", binary)
                          .Input(Tensor::Of<int64_t>({3, 1}, {0, 1, 4}))
                          .Input(I32({2, 2, 0}))
                          .Input(I64({5}))
                          .Input(I32(3))
                          .Input(weights({3}), {0, 5}));
      rows->push_back(row("RaggedBincount", label, RaggedReference)
                          .Attr("binary_output", binary)
                          .Input(I64({0, 2, 2, 5}))
                          .Input(I32({1, 1, 0, 3, 6}))
                          .Input(I32(4))
                          .Input(weights({5}), {0, 5}));
    }
  }
  rows->push_back(
      row("DenseBincount", "scalar", DenseReference).Input(I32(1)).Input(I32(3)).Input({0}));
  rows->push_back(
      row("DenseBincount", "no_bins", DenseReference).Input(I32({1, 2})).Input(I32(0)).Input({0}));
}

std::vector<OpCase> SearchCases() {
  std::vector<OpCase> rows;
  AddBounds(&rows);
  AddSelections(&rows);
  AddCounts(&rows);
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Search, OpSweepTest, testing::ValuesIn(SearchCases()), OpCaseName);

namespace {

TEST(Search, NthElementPutsNanLast) {
  const Tensor x = Tensor::Vector<float>({1, NAN, 3, NAN, 2});
  for (const auto& [n, expected] : {std::pair(0, 1.f), {1, 2.f}, {2, 3.f}}) {
    const auto y = RunFed("NthElement", {x, I32(n)});
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_EQ((*y)[0].data<float>()[0], expected);
  }
}

TEST(Search, RejectsInvalidArguments) {
  const Tensor row = Tensor::Of<float>({1, 2}, {1, 2}), vector = Tensor::Vector<float>({1, 2});
  const Tensor none = Tensor::Zeros(DT_FLOAT, {0});
  const Tensor at = Tensor::Of<int64_t>({1, 2}, {0, 5}), shape = I64({2, 3});
  const struct {
    const char* op;
    Tensors inputs;
    const char* message;
  } rows[] = {
      {"LowerBound", {vector, row}, "must be a matrix"},
      {"UpperBound", {Tensor::Of<float>({2, 1}, {1, 2}), row}, "Leading dim_size"},
      {"NthElement", {row, I32(2)}, "must have last dimension > n = 2"},
      {"NthElement", {row, I32(-1)}, "non-negative"},
      {"NthElement", {Tensor::Scalar(1.f), I32(0)}, ""},
      {"UnravelIndex", {I32({6}), I32({2, 3})}, "out of bound"},
      {"UnravelIndex", {I32({1}), I32({2, 0})}, "dim of zero"},
      {"UnravelIndex", {I32({1}), I32({2, -3})}, "cannot be negative"},
      {"UnravelIndex", {I32({1}), I32({1 << 20, 1 << 20})}, "overflow"},
      {"UnravelIndex", {I32({}), I32({2})}, "empty"},
      {"DenseBincount", {I32({1, -1}), I32(3), none}, "must be non-negative"},
      {"DenseBincount", {I32({1, 1}), I32(-3), none}, "must be non-negative"},
      {"DenseBincount", {I32({1, 1}), I32({3}), none}, "must be rank 0"},
      {"DenseBincount", {I32({1, 1}), I32(3), Tensor::Vector<float>({1})}, "weights"},
      {"DenseBincount", {Tensor::Of<int32_t>({1, 1, 1}, {1}), I32(3), none}, "at most rank 2"},
      {"SparseBincount", {at, I32({1}), shape, I32(3), none}, "out of bounds"},
      {"SparseBincount", {at, I32({1, 2}), shape, I32(3), none}, "do not fit"},
      {"RaggedBincount", {I64({1, 1}), I32({1}), I32(3), none}, "must start with 0"},
      {"RaggedBincount", {I64({0, 2}), I32({1}), I32(3), none}, "must end with"},
      {"RaggedBincount", {I64({}), I32({1}), I32(3), none}, "non-empty"},
  };
  for (const auto& r : rows) {
    const absl::StatusOr<Tensors> y = RunFed(r.op, r.inputs);
    EXPECT_EQ(y.status().code(), absl::StatusCode::kInvalidArgument) << r.op << r.message;
    EXPECT_NE(y.status().message().find(r.message), std::string::npos) << y.status();
  }
}

// Descending splits are unusual, but name a row for every value.
TEST(Search, RaggedSplitsMayDescend) {
  const auto y = RunFed("RaggedBincount",
                        {I64({0, 3, 2, 3}), I32({1, 2, 9}), I32(4), Tensor::Zeros(DT_FLOAT, {0})});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ((*y)[0].data<float>()[1], 1);
  EXPECT_EQ((*y)[0].data<float>()[2], 1);
}

}  // namespace

}  // namespace weir
