// Compares functions of sparse and ragged tensors with the graphs of TensorFlow
// (make_sparse_goldens.py).

#include "weir/ops/framework/gradients.h"
#include "weir/ops/sparse/ragged.h"
#include "weir/ops/sparse/sparse.h"
#include "weir/tests/ops/lib/goldens.h"

namespace weir {
namespace {

Output In(Graph& g, absl::string_view name, DataType dtype, const Shape& shape) {
  return Placeholder(g, dtype, shape, name);
}

SparseTensor Parts(Graph& g, bool is_static) {
  const Output indices = In(g, "i", DT_INT64, {-1, 2}), values = In(g, "v", DT_FLOAT, {-1});
  const Output shape = is_static ? Const<int64_t>(g, {3, 4}, "s") : In(g, "s", DT_INT64, {2});
  return {indices, values, shape};
}
SparseTensor Input(Graph& g, bool is_static) {
  const SparseTensor p = Parts(g, is_static);
  return MakeSparseTensor(p.indices, p.values, p.dense_shape);
}

template <bool kStatic>
void Moves(Graph& g) {
  const SparseTensor x = Input(g, kStatic);
  SparseReorder(x);
  SparseReshape(x, {2, -1});
  SparseConcat(1, {x, x});
  SparseSplit(x, 2, 1);
  SparseSlice(x, {0, 1}, {2, 2});
  SparseTensorToDense(x);
  SparseFillEmptyRows(x, Const(g, 0.5f, "d"));
  DeserializeManySparse(SerializeManySparse(x), DT_FLOAT);
}

template <bool kStatic>
void Arithmetic(Graph& g) {
  const SparseTensor x = Input(g, kStatic);
  const Output dense = In(g, "d", DT_FLOAT, {3, 4});
  SparseAdd(x, x);
  SparseAdd(x, dense);
  SparseMaximum(x, x);
  SparseMinimum(x, x);
  SparseReduceSum(x, Ints({1}));
  SparseReduceMax(x, {}, /*keep_dims=*/true);
  SparseReduceMaxSparse(x, Ints({1}));
  SparseSoftmax(x);
  SparseTensorDenseMatMul(x, dense, {.adjoint_b = true});
  EditDistance(x, x);
}

void MoveGradients(Graph& g) {
  const SparseTensor x = Input(g, false);
  const SparseTensor filled = SparseFillEmptyRows(x, Const(g, 0.5f, "d")).filled;
  const Output reordered = SparseReorder(x).values;
  const Output block = SparseSlice(x, {0, 1}, {2, 2}).values;
  const Output dense = SparseTensorToDense(x);
  for (const Output& y : {reordered, block, dense, filled.values}) Gradients({y}, {x.values});
}

void SumGradients(Graph& g) {
  const SparseTensor x = Input(g, true);
  const Output dense = In(g, "d", DT_FLOAT, {3, 4});
  const Output sum = SparseAdd(x, x).values, dense_sum = SparseAdd(x, dense);
  const Output rows = SparseReduceSum(x, Ints({1})), all = SparseReduceSum(x);
  const Output softmax = SparseSoftmax(x).values;
  for (const Output& y : {sum, dense_sum, rows, all, softmax}) Gradients({y}, {x.values, dense});
}

void ProductGradients(Graph& g) {
  const SparseTensor p = Parts(g, false);
  const Output row = In(g, "r", DT_FLOAT, {4});
  for (const char* op : {"SparseDenseCwiseMul", "SparseDenseCwiseDiv"})
    Gradients({AddOp(op, {p.indices, p.values, p.dense_shape, row})}, {p.values, row});
  const SparseTensor x = MakeSparseTensor(p.indices, p.values, p.dense_shape);
  const Output dense = In(g, "d", DT_FLOAT, {-1, -1});
  for (const bool adjoint_a : {false, true}) {
    for (const bool adjoint_b : {false, true}) {
      const Output product =
          SparseTensorDenseMatMul(x, dense, {.adjoint_a = adjoint_a, .adjoint_b = adjoint_b});
      Gradients({product}, {p.values, dense});
    }
  }
  const Output a = In(g, "a", DT_FLOAT, {2, 3}), b = In(g, "b", DT_FLOAT, {3, 4});
  Gradients({AddOp("SparseMatMul", {a, b}, {{"a_is_sparse", true}})}, {a, b});
}

void RaggedGradients(Graph& g) {
  const Output splits = In(g, "sp", DT_INT64, {4}), values = In(g, "v", DT_FLOAT, {5, 2});
  const Output fallback = In(g, "dv", DT_FLOAT, {2});
  const Output dense = AddOp("RaggedTensorToTensor",
                             {Const(g, int64_t{-1}, "sh"), values, fallback, Outputs{splits}},
                             {{"row_partition_types", std::vector<std::string>{"ROW_SPLITS"}}});
  Gradients({dense}, {values, fallback});
  Node* const sparse = AddNode("RaggedTensorToSparse", {Outputs{splits}, values});
  Gradients({sparse->output(1)}, {values});
}

const GoldenProgram kPrograms[] = {
    {"sparse_moves_static", Moves<true>},           {"sparse_moves_open", Moves<false>},
    {"sparse_arithmetic_static", Arithmetic<true>}, {"sparse_arithmetic_open", Arithmetic<false>},
    {"sparse_move_gradients", MoveGradients},       {"sparse_sum_gradients", SumGradients},
    {"sparse_product_gradients", ProductGradients}, {"sparse_ragged_gradients", RaggedGradients}};
INSTANTIATE_TEST_SUITE_P(Sparse, GoldenTest, RefGoldensOf(kPrograms), GoldenName);

}  // namespace
}  // namespace weir
