#include <algorithm>
#include <cmath>

#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/sparse_tables.h"

// Gradients checked to order 1 by rows: SparseSoftmax.

// Arithmetic on sparse tensors.
namespace weir {

namespace {

using namespace pick;  // NOLINT: a vocabulary made for these tables

std::vector<complex128> Numbers(const Tensor& t) {
  std::vector<complex128> out;
  if (t.dtype() == DT_COMPLEX128) {
    for (const complex128& v : t.flat<complex128>()) out.push_back(v);
  } else {
    for (const double v : ToDoubles(t)) out.push_back(v);
  }
  return out;
}

Tensor TensorOf(DataType like, const Shape& shape, const std::vector<complex128>& values) {
  if (like == DT_COMPLEX128) return Tensor::Of<complex128>(shape, absl::MakeConstSpan(values));
  std::vector<double> real;
  for (const complex128& v : values) real.push_back(v.real());
  return Doubles(shape, real);
}

using Entries = std::map<pick::Index, complex128>;
Entries EntriesOf(const Tensor& indices, const Tensor& values) {
  Entries entries;
  const std::vector<complex128> v = Numbers(values);
  for (const auto& [row, i] : PlacesOf(indices)) entries[row] = v[i];
  return entries;
}

Tensors SparseOfEntries(const Entries& entries, int64_t rank, DataType like) {
  std::vector<pick::Index> rows;
  std::vector<complex128> values;
  for (const auto& [row, v] : entries) {
    rows.push_back(row);
    values.push_back(v);
  }
  return {MatrixOf(rows, rank),
          TensorOf(like, Shape({static_cast<int64_t>(values.size())}), values)};
}

const Tensor& Some() {
  static const Tensor* const t =
      new Tensor(Matrix(3, {0, 0, 1, 0, 0, 3, 0, 2, 0, 1, 0, 1, 1, 1, 2, 1, 1, 3}));
  return *t;
}
const Tensor& Others() {
  static const Tensor* const t = new Tensor(Matrix(3, {0, 0, 0, 0, 0, 3, 1, 1, 2, 1, 2, 0}));
  return *t;
}
Tensor Dims() { return I64({2, 3, 4}); }

// ---- with a dense tensor

Tensors AddDenseReference(const Node&, const Tensors& x) {
  std::vector<complex128> sums = Numbers(x[3]);
  for (const auto& [row, v] : EntriesOf(x[0], x[1])) sums[Flat(x[3].shape(), row)] += v;
  return {TensorOf(x[3].dtype(), x[3].shape(), sums)};
}

// The element of a dense tensor that is broadcast to position `row`.
complex128 Broadcast(const Tensor& dense, const pick::Index& row) {
  pick::Index index;
  const size_t lead = row.size() - dense.rank();
  for (int d = 0; d < dense.rank(); ++d) index.push_back(dense.dim(d) == 1 ? 0 : row[lead + d]);
  return Numbers(dense)[Flat(dense.shape(), index)];
}

Tensors CwiseReference(const Node& node, const Tensors& x) {
  std::vector<complex128> out = Numbers(x[1]);
  for (const auto& [row, i] : PlacesOf(x[0])) {
    const complex128 y = Broadcast(x[3], row);
    if (node.op_name() == "SparseDenseCwiseAdd") out[i] += y;
    if (node.op_name() == "SparseDenseCwiseMul") out[i] *= y;
    if (node.op_name() == "SparseDenseCwiseDiv") out[i] /= y;
    if (IsInteger(node.attr<DataType>("T"))) out[i] = std::trunc(out[i].real());
  }
  return {TensorOf(x[1].dtype(), x[1].shape(), out)};
}

std::vector<OpCase> DenseCases() {
  std::vector<OpCase> rows;
  for (const bool narrow : {false, true}) {
    rows.push_back(OpCase("SparseTensorDenseAdd")
                       .Label(narrow ? "narrow" : "wide")
                       .Input(narrow ? Narrow(Some()) : Some())
                       .Input({6})
                       .Input(narrow ? Narrow(Dims()) : Dims())
                       .Input({2, 3, 4})
                       .Gradient(2)
                       .Reference(AddDenseReference));
  }
  const struct {
    const char* label;
    Shape shape;
  } shapes[] = {{"same", {2, 3, 4}}, {"row", {4}}, {"inner", {3, 1}}, {"scalar", {}}};
  for (const char* op : {"SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"}) {
    const bool divides = std::string(op) == "SparseDenseCwiseDiv";
    for (const auto& [label, shape] : shapes) {
      OpCase row = OpCase(op)
                       .Label(label)
                       .Input(Some())
                       .Input({6}, {0, 10})
                       .Input(Dims())
                       .Input(shape, {divides ? 1.0 : -2.0, 3, divides})
                       .Reference(CwiseReference);
      // TensorFlow's gradient gathers from the dense tensor, which must not be a scalar.
      if (shape.rank() == 0) row.Gradient(0);
      rows.push_back(row);
    }
  }
  return rows;
}

// ---- two sparse tensors

Tensors AddReference(const Node&, const Tensors& x) {
  const Entries a = EntriesOf(x[0], x[1]), b = EntriesOf(x[3], x[4]);
  const double threshold = ToDoubles(x[6])[0];
  Entries sum = a;
  for (const auto& [row, v] : b) {
    if (!a.contains(row))
      sum[row] = v;
    else if (std::abs(a.at(row) + v) >= threshold)
      sum[row] = a.at(row) + v;
    else
      sum.erase(row);
  }
  Tensors out = SparseOfEntries(sum, x[0].dim(1), x[1].dtype());
  out.push_back(x[2]);
  return out;
}

Tensors AddGradReference(const Node&, const Tensors& x) {
  const Places sum = PlacesOf(x[3]);
  Tensors out;
  for (const int k : {1, 2}) {
    std::vector<Source> sources(x[k].dim(0), Source(-1, 0));
    for (const auto& [row, i] : PlacesOf(x[k])) {
      if (const auto it = sum.find(row); it != sum.end()) sources[i] = Source(0, it->second);
    }
    out.push_back(Elements({x[0]}, sources));
  }
  return out;
}

Tensors ExtremeReference(const Node& node, const Tensors& x) {
  const Entries a = EntriesOf(x[0], x[1]), b = EntriesOf(x[3], x[4]);
  Entries out = a;
  out.insert(b.begin(), b.end());
  for (auto& [row, v] : out) {
    const double u = a.contains(row) ? a.at(row).real() : 0,
                 w = b.contains(row) ? b.at(row).real() : 0;
    v = node.op_name() == "SparseSparseMaximum" ? std::max(u, w) : std::min(u, w);
  }
  return SparseOfEntries(out, x[0].dim(1), x[1].dtype());
}

OpCase AddRow(absl::string_view label) {
  return OpCase("SparseAdd")
      .Label(label)
      .Input(Some())
      .Input({6}, {1, 3})
      .Input(Dims())
      .Input(Others())
      .Input({4}, {1, 3})
      .Input(Dims())
      .ShapesDependOnValues()
      .Reference(AddReference);
}

std::vector<OpCase> PairCases() {
  const std::vector<DataType> reals = {DT_FLOAT, DT_DOUBLE, DT_INT8, DT_INT16, DT_INT32, DT_INT64};
  std::vector<OpCase> rows = {
      AddRow("all").Input(Shape(), {0, 0}).Types(reals).GradientInputs({1, 4}),
      AddRow("large").Input(Shape(), {9, 9}).Types(reals).GradientInputs({1, 4}),
      AddRow("complex64").Input(Tensor::Scalar(3.f)).Types({DT_COMPLEX64}).Gradient(0),
      AddRow("complex128").Input(Tensor::Scalar(3.0)).Types({DT_COMPLEX128}).Gradient(0),
      OpCase("SparseAddGrad")
          .Input({5})
          .Input(Matrix(2, {0, 0, 0, 2, 1, 1}))
          .Input(Matrix(2, {0, 1, 0, 2, 1, 1, 1, 3}))
          .Input(Matrix(2, {0, 0, 0, 1, 0, 2, 1, 1, 1, 3}))
          .Reference(AddGradReference),
  };
  for (const char* op : {"SparseSparseMaximum", "SparseSparseMinimum"}) {
    rows.push_back(OpCase(op)
                       .Input(Some())
                       .Input({6})
                       .Input(Dims())
                       .Input(Others())
                       .Input({4})
                       .Input(Dims())
                       .ShapesDependOnValues()
                       .Gradient(0)
                       .Reference(ExtremeReference));
  }
  return rows;
}

// ---- reductions

Tensors ReduceReference(const Node& node, const Tensors& x) {
  const std::string op = node.op_name();
  const bool keep_dims = node.attr<bool>("keep_dims"), is_max = op.find("Max") != std::string::npos;
  const pick::Index dims = pick::Ints(x[2]);
  std::vector<bool> reduced(dims.size(), false);
  for (const int64_t axis : pick::Ints(x[3]))
    reduced[axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis] = true;
  const auto kept = [&](const pick::Index& index, int64_t in_place) {
    pick::Index out;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!reduced[d]) out.push_back(index[d]);
      if (reduced[d] && keep_dims) out.push_back(in_place);
    }
    return out;
  };
  Entries groups;
  for (const auto& [row, v] : EntriesOf(x[0], x[1])) {
    const pick::Index to = kept(row, 0);
    if (!groups.contains(to))
      groups[to] = v;
    else
      groups[to] = is_max ? std::max(groups[to].real(), v.real()) : groups[to] + v;
  }
  const pick::Index out_dims = kept(dims, 1);
  const Shape shape(absl::MakeConstSpan(out_dims));
  if (node.num_outputs() == 3) {
    Tensors out = SparseOfEntries(groups, shape.rank(), x[1].dtype());
    out.push_back(VectorOf(out_dims));
    return out;
  }
  std::vector<complex128> dense(shape.num_elements());
  for (const auto& [to, v] : groups) dense[Flat(shape, to)] = v;
  return {TensorOf(x[1].dtype(), shape, dense)};
}

std::vector<OpCase> ReduceCases() {
  std::vector<OpCase> rows;
  const struct {
    const char* label;
    Tensor axes;
    bool keep_dims;
  } cases[] = {{"last", I32({-1}), false},     {"last_kept", I32({-1}), true},
               {"two", I32({0, 2}), false},    {"two_kept", I32({2, 0, 2}), true},
               {"all", I32({0, 1, 2}), false}, {"all_kept", I32({0, 1, 2}), true},
               {"none", I32({}), false},       {"scalar", I32(1), false}};
  for (const char* op :
       {"SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse", "SparseReduceMaxSparse"}) {
    for (const auto& c : cases) {
      rows.push_back(OpCase(op)
                         .Label(c.label)
                         .Attr("keep_dims", c.keep_dims)
                         .Input(Some())
                         .Input({6}, {-2, 2})
                         .Input(Dims())
                         .Input(c.axes)
                         .ShapesDependOnValues()
                         .Reference(ReduceReference));
    }
    rows.push_back(OpCase(op)
                       .Label("empty")
                       .Input(Matrix(2, {}))
                       .Input({0})
                       .Input(I64({3, 0}))
                       .Input(I32({1}))
                       .ShapesDependOnValues()
                       .Gradient(0)
                       .Reference(ReduceReference));
  }
  return rows;
}

// ---- SparseSoftmax

Tensors SoftmaxReference(const Node&, const Tensors& x) {
  const Entries entries = EntriesOf(x[0], x[1]);
  std::map<pick::Index, double> sums;
  const auto group = [](const pick::Index& row) { return pick::Index(row.begin(), row.end() - 1); };
  for (const auto& [row, v] : entries) sums[group(row)] += std::exp(v.real());
  Entries out;
  for (const auto& [row, v] : entries) out[row] = std::exp(v.real()) / sums[group(row)];
  return {SparseOfEntries(out, x[0].dim(1), DT_DOUBLE)[1]};
}

std::vector<OpCase> SoftmaxCases() {
  return {OpCase("SparseSoftmax")
              .Input(Some())
              .Input({6})
              .Input(Dims())
              .Gradient(1)
              .Reference(SoftmaxReference),
          OpCase("SparseSoftmax")
              .Label("empty")
              .Input(Matrix(2, {}))
              .Input({0})
              .Input(I64({2, 3}))
              .Gradient(0)
              .Reference(SoftmaxReference)};
}

// ---- products

Tensors MatMulReference(const Node& node, const Tensors& x) {
  const bool adjoint_a = node.attr<bool>("adjoint_a"), adjoint_b = node.attr<bool>("adjoint_b");
  const pick::Index dims = pick::Ints(x[2]);
  const std::vector<complex128> b = Numbers(x[3]);
  const int64_t rows = dims[adjoint_a ? 1 : 0], cols = x[3].dim(adjoint_b ? 0 : 1);
  std::vector<complex128> product(rows * cols);
  for (const auto& [row, v] : EntriesOf(x[0], x[1])) {
    const int64_t m = row[adjoint_a ? 1 : 0], k = row[adjoint_a ? 0 : 1];
    for (int64_t n = 0; n < cols; ++n) {
      const complex128 y = adjoint_b ? std::conj(b[n * x[3].dim(1) + k]) : b[k * cols + n];
      product[m * cols + n] += (adjoint_a ? std::conj(v) : v) * y;
    }
  }
  return {TensorOf(x[3].dtype(), Shape({rows, cols}), product)};
}

Tensors SparseMatMulReference(const Node& node, const Tensors& x) {
  const bool ta = node.attr<bool>("transpose_a"), tb = node.attr<bool>("transpose_b");
  const std::vector<double> a = ToDoubles(x[0]), b = ToDoubles(x[1]);
  const int64_t rows = x[0].dim(ta ? 1 : 0), inner = x[0].dim(ta ? 0 : 1),
                cols = x[1].dim(tb ? 0 : 1);
  std::vector<double> product(rows * cols);
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < cols; ++n) {
      for (int64_t k = 0; k < inner; ++k) {
        product[m * cols + n] +=
            a[ta ? k * rows + m : m * inner + k] * b[tb ? n * inner + k : k * cols + n];
      }
    }
  }
  return {Doubles(Shape({rows, cols}), product)};
}

std::vector<OpCase> ProductCases() {
  const Tensor indices = Matrix(2, {2, 0, 0, 1, 1, 3, 2, 2, 0, 0});
  std::vector<OpCase> rows;
  for (const bool adjoint_a : {false, true}) {
    for (const bool adjoint_b : {false, true}) {
      const int64_t inner = adjoint_a ? 3 : 4;
      rows.push_back(OpCase("SparseTensorDenseMatMul")
                         .Label(absl::StrCat("a", adjoint_a, "_b", adjoint_b))
                         .Attr("adjoint_a", adjoint_a)
                         .Attr("adjoint_b", adjoint_b)
                         .Input(adjoint_b ? Narrow(indices) : indices)
                         .Input({5})
                         .Input(I64({3, 4}))
                         .Input(adjoint_b ? Shape({5, inner}) : Shape({inner, 5}))
                         .Gradient(2)
                         .Reference(MatMulReference));
    }
  }
  rows.push_back(OpCase("SparseTensorDenseMatMul")
                     .Label("empty")
                     .Input(Matrix(2, {}))
                     .Input({0})
                     .Input(I64({3, 0}))
                     .Input({0, 2})
                     .Gradient(0)
                     .Reference(MatMulReference));
  for (const auto& [a, b] : {std::pair(DT_FLOAT, DT_FLOAT),
                             {DT_BFLOAT16, DT_FLOAT},
                             {DT_FLOAT, DT_BFLOAT16},
                             {DT_BFLOAT16, DT_BFLOAT16}}) {
    const bool ta = a == DT_BFLOAT16, tb = b == DT_BFLOAT16;
    rows.push_back(OpCase("SparseMatMul")
                       .Label(absl::StrCat(DataTypeName(a), "_", DataTypeName(b)))
                       .Attr("transpose_a", ta)
                       .Attr("transpose_b", tb)
                       .Attr("a_is_sparse", true)
                       .Input(a, ta ? Shape({5, 3}) : Shape({3, 5}))
                       .Input(b, tb ? Shape({2, 5}) : Shape({5, 2}))
                       .Reference(SparseMatMulReference));
  }
  rows.push_back(OpCase("SparseMatMul")
                     .Label("empty")
                     .Input(DT_FLOAT, {3, 0})
                     .Input(DT_FLOAT, {0, 2})
                     .Reference(SparseMatMulReference));
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Dense, OpSweepTest, testing::ValuesIn(DenseCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(Pairs, OpSweepTest, testing::ValuesIn(PairCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(Reduce, OpSweepTest, testing::ValuesIn(ReduceCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(Softmax, OpSweepTest, testing::ValuesIn(SoftmaxCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(Products, OpSweepTest, testing::ValuesIn(ProductCases()), OpCaseName);

}  // namespace weir
