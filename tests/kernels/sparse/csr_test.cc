#include <cmath>
#include <complex>
#include <string>
#include <tuple>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "weir/core/tensor/variant.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/sparse/csr.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/answers.h"

// Ops on CSR matrices against TensorFlow's recorded answers.
namespace weir {

namespace {

// The CSR matrix of the elements that are not 0.
Output Csr(Output x) { return DenseToCSRSparseMatrix(x, Where(NotEqual(x, ZerosLike(x)))); }

bool Flag(const Answer& a, absl::string_view name) {
  for (const auto& [key, value] : a.attrs)
    if (key == name) return *value.get_if<bool>();
  return false;
}
CSRMatMulOptions OptionsOf(const Answer& a) {
  return {Flag(a, "transpose_a"), Flag(a, "transpose_b"),      Flag(a, "adjoint_a"),
          Flag(a, "adjoint_b"),   Flag(a, "transpose_output"), Flag(a, "conjugate_output")};
}

// Returns what make_csr_answers.py records for an op, without the gradients.
Outputs Build(const Answer& a, const Outputs& x) {
  if (a.op == "CSRSparseMatrixToDense") return {CSRSparseMatrixToDense(Csr(x[0]))};
  if (a.op == "CSRSparseMatrixToSparseTensor") {
    const SparseTensor s = CSRSparseMatrixToSparseTensor(Csr(x[0]));
    return {s.indices, s.values, s.dense_shape};
  }
  if (a.op == "CSRSparseMatrixComponents") {
    const CSRComponents parts = CSRSparseMatrixComponents(Csr(x[0]), x[1]);
    return {parts.row_pointers, parts.columns, parts.values};
  }
  if (a.op == "SparseMatrixNNZ") return {SparseMatrixNNZ(Csr(x[0]))};
  if (a.op == "SparseMatrixTranspose") {
    return {CSRSparseMatrixToDense(SparseMatrixTranspose(Csr(x[0]), Flag(a, "conjugate")))};
  }
  if (a.op == "SparseTensorToCSRSparseMatrix")
    return {CSRSparseMatrixToDense(SparseTensorToCSRSparseMatrix({x[0], x[1], x[2]}))};
  if (a.op == "SparseMatrixMatMul") return {SparseMatrixMatMul(Csr(x[0]), x[1], OptionsOf(a))};
  if (a.op == "SparseMatrixSparseMatMul") {
    return {CSRSparseMatrixToDense(SparseMatrixSparseMatMul(Csr(x[0]), Csr(x[1]), OptionsOf(a)))};
  }
  if (a.op == "SparseMatrixOrderingAMD") return {SparseMatrixOrderingAMD(Csr(x[0]))};
  if (a.op == "SparseMatrixSparseCholesky")
    return {CSRSparseMatrixToDense(SparseMatrixSparseCholesky(Csr(x[0]), x[1]))};
  ADD_FAILURE() << a.op;
  return {};
}

void ExpectNear(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.shape(), want.shape());
  if (IsInteger(want.dtype())) {
    EXPECT_TRUE(IdenticalTensors(got, want)) << got.ToString() << "\n" << want.ToString();
    return;
  }
  DispatchType(want.dtype(), JoinLists<List<float, double>, Complexes>{}, [&]<class T>() {
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      const T w = want.data<T>()[i];
      ASSERT_NEAR(std::abs(got.data<T>()[i] - w), 0, 1e-5 * std::max<double>(1, std::abs(w)))
          << "element " << i << ": " << got.data<T>()[i] << ", not " << w;
    }
  });
}

// Gradients checked to order 1 by tests: CSRSparseMatrixToDense, DenseToCSRSparseMatrix,
// SparseMatrixMatMul, SparseMatrixSparseMatMul, SparseMatrixTranspose.
void ExpectAnswer(const Answer& a) {
  SCOPED_TRACE(absl::StrCat(a.op, ", line ", a.line));
  Graph g;
  Outputs x;
  for (const Tensor& input : a.inputs) x.push_back(Const(g, input));
  Outputs fetches = Build(a, x);
  for (const Output& fetch : fetches) ASSERT_TRUE(fetch.valid()) << g.status();
  if (a.outputs.size() > fetches.size()) {
    const Output y = fetches[0];
    const Output numbers = Range(g, 1, Size(y) + 1, 1);
    const Output weights = Reshape(Cast(numbers, y.dtype()), ShapeTensor(y));
    for (const Grad& grad : Gradients({y}, x, {.grad_ys = {weights}}))
      fetches.push_back(grad.dense());
  }
  const absl::StatusOr<Tensors> out = Evaluate(g, fetches);
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->size(), a.outputs.size());
  for (size_t i = 0; i < out->size(); ++i) {
    SCOPED_TRACE(absl::StrCat("output ", i));
    EXPECT_TRUE(fetches[i].shape().IsCompatibleWith((*out)[i].shape()))
        << fetches[i].shape().ToString();
    ExpectNear((*out)[i], a.outputs[i]);
  }
}

TEST(Csr, MatchesTensorFlow) {
  const std::vector<Answer> answers = ReadAnswers("tests/kernels/golden/csr_answers.txt");
  EXPECT_GT(answers.size(), 180u);
  for (const Answer& a : answers) ExpectAnswer(a);
}

// The shape of the result is known from the shapes of the matrices.
TEST(Csr, ShapesAreInferred) {
  Graph g;
  const Output a = Csr(Placeholder(g, DT_DOUBLE, {2, 3, 4}));
  const Output b = SparseMatrixTranspose(Csr(Placeholder(g, DT_DOUBLE, {2, 5, 4})));
  EXPECT_EQ(CSRTypeOf(b), DT_DOUBLE);
  EXPECT_EQ(CSRSparseMatrixToDense(SparseMatrixSparseMatMul(a, b)).shape(), Shape({2, 3, 5}));
  EXPECT_EQ(SparseMatrixNNZ(a).shape(), Shape({2}));
  EXPECT_EQ(CSRSparseMatrixComponents(a, 1).row_pointers.shape(), Shape({4}));
  EXPECT_EQ(CSRSparseMatrixToSparseTensor(a).indices.shape(), Shape({-1, 3}));
  EXPECT_TRUE(g.status().ok()) << g.status();
  SparseMatrixSparseMatMul(a, a);
  EXPECT_TRUE(absl::IsInvalidArgument(g.status())) << g.status();
}

// Gradients checked to order 1 by tests: CSRSparseMatrixToSparseTensor,
// SparseTensorToCSRSparseMatrix.
TEST(Csr, GradientsPassThroughSparseTensors) {
  Graph g;
  const Output values = Const(g, {1.0f, 2.0f, 3.0f});
  const SparseTensor x{Const<int64_t>(g, Shape({3, 2}), {0, 1, 1, 0, 1, 2}), values,
                       Const(g, {int64_t{2}, int64_t{3}})};
  const SparseTensor y = CSRSparseMatrixToSparseTensor(SparseTensorToCSRSparseMatrix(x));
  const Output weights = Const(g, {4.0f, 5.0f, 6.0f});
  const absl::StatusOr<Tensors> out =
      Evaluate(g, {Gradients({y.values * weights}, {values})[0].dense()});
  ASSERT_TRUE(out.ok()) << out.status();
  ExpectNear((*out)[0], Tensor::Vector<float>({4, 5, 6}));
}

// The gradient has all elements of the matrix, also where no product reaches them. TensorFlow
// returns fewer, or fails.
TEST(Csr, GradientsOfUnusedElementsAreZero) {
  Graph g;
  const Output a = Const<float>(g, Shape({2, 2}), {1, 2, 3, 4});
  const Output b = Const<float>(g, Shape({2, 2}), {0, 0, 5, 0});
  const Output y = CSRSparseMatrixToDense(SparseMatrixSparseMatMul(Csr(a), Csr(b)));
  const absl::StatusOr<Tensors> out = Evaluate(g, {Gradients({y}, {a})[0].dense()});
  ASSERT_TRUE(out.ok()) << out.status();
  ExpectNear((*out)[0], Tensor::Of<float>({2, 2}, {0, 5, 0, 5}));
}

// A matrix may have far more columns than memory for one value each.
TEST(Csr, EmptyColumnsNeedNoMemory) {
  Graph g;
  const int64_t many = int64_t{1} << 31;
  const Output one = Const<float>(g, Shape({1}), {2});
  const Output b = SparseTensorToCSRSparseMatrix(
      {Const<int64_t>(g, Shape({1, 2}), {0, many - 2}), one, Const(g, {int64_t{1}, many - 1})});
  const Output a = Csr(Const<float>(g, Shape({2, 1}), {3, 4}));
  const SparseTensor y = CSRSparseMatrixToSparseTensor(SparseMatrixSparseMatMul(a, b));
  const absl::StatusOr<Tensors> out = Evaluate(g, {y.indices, y.values});
  ASSERT_TRUE(out.ok()) << out.status();
  ExpectNear((*out)[0], Tensor::Of<int64_t>({2, 2}, {0, many - 2, 1, many - 2}));
  ExpectNear((*out)[1], Tensor::Vector<float>({6, 8}));
}

TEST(Csr, RejectsInvalidArguments) {
  const Tensor two = Tensor::Vector<int64_t>({2, 2}), one = Tensor::Vector<float>({1});
  const Tensor pair = Tensor::Vector<float>({1, 2}),
               square = Tensor::Zeros(DT_FLOAT, Shape({2, 2}));
  const auto at = [](std::initializer_list<int64_t> v) {
    return Tensor::Of<int64_t>({static_cast<int64_t>(v.size()) / 2, 2}, v);
  };
  const Tensor column = Tensor::Zeros(DT_INT64, Shape({0, 2})),
               none = Tensor::Zeros(DT_FLOAT, Shape({0}));
  const Tensor index = Tensor::Zeros(DT_INT64, Shape({1, 1})),
               long_rows = Tensor::Vector<int64_t>({int64_t{1} << 31, 1});
  const std::vector<std::tuple<const char*, Tensors, const char*>> calls = {
      {"SparseTensorToCSRSparseMatrix", {at({0, 2}), one, two}, "out of bounds"},
      {"SparseTensorToCSRSparseMatrix", {at({1, 0, 0, 0}), pair, two}, "in order"},
      {"SparseTensorToCSRSparseMatrix", {index, one, Tensor::Vector<int64_t>({1})}, "rank 2 or 3"},
      {"SparseTensorToCSRSparseMatrix", {column, none, long_rows}, "Int32Max"},
      {"DenseToCSRSparseMatrix", {square, at({0, -1})}, "does not index into"},
      {"DenseToCSRSparseMatrix", {one, at({0, 0})}, "rank == 2 or 3"},
      {"DenseToCSRSparseMatrix", {square, index}, "must be equal to the rank"},
  };
  for (const auto& [op, inputs, words] : calls) {
    const absl::Status status = RunFed(op, inputs).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), words)) << words << ": " << status;
  }
}

// Runs ops on a variant with these parts, which may come from a file.
absl::Status ToDense(const Tensors& parts, const std::string& type_name) {
  Tensor matrix(DT_VARIANT, Shape());
  *matrix.data<Variant>() = {.type_name = type_name, .metadata = "", .value = parts};
  return RunFed("CSRSparseMatrixToDense", {matrix}, {{"type", DT_FLOAT}}).status();
}

TEST(Csr, RejectsInvalidMatrices) {
  const auto ints = [](std::initializer_list<int32_t> v) { return Tensor::Vector<int32_t>(v); };
  const Tensors good = {Tensor::Vector<int64_t>({2, 3}), ints({0, 2}), ints({0, 1, 2}),
                        ints({2, 0}), Tensor::Vector<float>({1, 2})};
  constexpr char kName[] = "tensorflow::CSRSparseMatrix";
  EXPECT_TRUE(ToDense(good, kName).ok()) << ToDense(good, kName);
  const auto with = [&](int i, const Tensor& part) {
    Tensors parts = good;
    parts[i] = part;
    return parts;
  };
  const std::vector<Tensors> bad = {
      {},
      with(0, Tensor::Vector<int64_t>({2})),
      with(0, Tensor::Vector<int64_t>({-2, 3})),
      with(0, Tensor::Vector<int64_t>({int64_t{1} << 40, 3})),
      with(0, Tensor::Vector<int64_t>({2, 2})),
      with(0, Tensor::Vector<int64_t>({1, 2, 3, 4})),
      with(1, ints({0, 3})),
      with(1, ints({1, 2})),
      with(1, ints({})),
      with(2, ints({0, 3, 2})),
      with(2, ints({0, -1, 2})),
      with(2, ints({0, 1})),
      with(3, ints({2, -1})),
      with(3, ints({2})),
      with(3, Tensor::Vector<int64_t>({2, 0})),
      with(4, Tensor::Vector<double>({1, 2})),
      with(4, Tensor::Vector<int32_t>({1, 2})),
  };
  for (size_t i = 0; i < bad.size(); ++i)
    EXPECT_TRUE(absl::IsInvalidArgument(ToDense(bad[i], kName))) << i;
  EXPECT_TRUE(absl::IsInvalidArgument(ToDense(good, "other")));
}

// Runs a builder on a matrix, and returns the error of the step.
template <class F>
absl::Status ErrorOf(const F& build) {
  Graph g;
  const Output y = build(g);
  if (!y.valid()) return g.status();
  return Evaluate(g, {y}).status();
}

TEST(Csr, RejectsUnsuitableMatrices) {
  const auto factor = [](std::vector<float> values, std::initializer_list<int32_t> order) {
    return ErrorOf([&](Graph& g) {
      const Output x = Const(g, Tensor::Of<float>(Shape({2, 2}), absl::MakeConstSpan(values)));
      return CSRSparseMatrixToDense(
          SparseMatrixSparseCholesky(Csr(x), Const(g, Tensor::Vector<int32_t>(order))));
    });
  };
  EXPECT_TRUE(factor({4, 0, 2, 5}, {1, 0}).ok()) << factor({4, 0, 2, 5}, {1, 0});
  for (const absl::Status& status : {factor({1, 0, 2, 1}, {0, 1}), factor({4, 0, 2, 5}, {0, 0}),
                                     factor({4, 0, 2, 5}, {0, 2}), factor({4, 0, 2, 5}, {0})}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf([](Graph& g) {
    return SparseMatrixOrderingAMD(Csr(Placeholder(g, DT_FLOAT, {2, 3})));
  })));
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf([](Graph& g) {
    const Output x = Csr(Const<float>(g, Shape({2, 2}), {1, 2, 3, 4}));
    return CSRSparseMatrixComponents(x, 1).values;
  })));
}

}  // namespace

}  // namespace weir
