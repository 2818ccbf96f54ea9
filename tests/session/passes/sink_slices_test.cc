// Slices of products: which are sunk, and that the values stay the same.

#include <map>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/framework/variable.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/random_values.h"

namespace weir {
namespace {

class SinkSlices : public testing::Test {
 protected:
  Output Input(const Shape& shape) {
    const Output x = Placeholder(g_, DT_FLOAT, shape);
    feeds_.emplace_back(x, UniformFloats(shape, random_));
    return x;
  }
  Tensors Run(const Outputs& ys, SessionOptions options, std::vector<NodeTrace>* trace = nullptr) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_, std::move(options));
    auto out = session.Run(feeds_, ys, {}, {.trace = trace});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *out : Tensors(ys.size(), Tensor(DT_FLOAT, {}));
  }
  // Returns the shapes of the products that a step computes. Checks the values against those
  // without fusion and without any optimization.
  std::multiset<std::string> ProductsOf(const Outputs& ys) {
    const Tensors want = Run(ys, {.num_threads = 1, .disable = {"fusion"}});
    const Tensors plain = Run(
        ys, {.num_threads = 1,
             .disable = {"fusion", "prune_control_edges", "structure_loops", "constant_folding"}});
    std::vector<NodeTrace> trace;
    const Tensors got = Run(ys, {.num_threads = 2}, &trace);
    for (size_t k = 0; k < ys.size(); ++k) {
      EXPECT_EQ(got[k].shape(), want[k].shape());
      if (got[k].shape() != want[k].shape()) continue;
      for (int64_t i = 0; i < want[k].num_elements(); ++i) {
        EXPECT_NEAR(got[k].data<float>()[i], want[k].data<float>()[i], 1e-4) << k << " at " << i;
        EXPECT_NEAR(plain[k].data<float>()[i], want[k].data<float>()[i], 1e-4) << k << " at " << i;
      }
    }
    std::multiset<std::string> products;
    for (const NodeTrace& node : trace) {
      if (node.op == "MatMul" || node.op == "_FusedMatMul")
        products.insert(node.outputs[0].shape.ToString());
    }
    return products;
  }

  Graph g_;
  Feeds feeds_;
  std::mt19937 random_{5};
};

using Shapes = std::multiset<std::string>;

TEST_F(SinkSlices, ColumnsOfATransposedFactor) {
  const Output y = MatMul(Input({8, 48}), Input({64, 48}), {.transpose_b = true});
  EXPECT_EQ(ProductsOf({Slice(y, {0, 16}, {8, 32})}), Shapes{"[8,32]"});
  EXPECT_EQ(ProductsOf({Slice(y, {0, 0}, {-1, 16})}), Shapes{"[8,16]"});
  EXPECT_EQ(ProductsOf({Slice(y, {0, 7}, {8, -1})}), Shapes{"[8,57]"});
}

// Slice would have to copy.
TEST_F(SinkSlices, UnalignedSlicesStay) {
  const Output y = MatMul(Input({8, 10}), Input({64, 10}), {.transpose_b = true});
  EXPECT_EQ(ProductsOf({Slice(y, {0, 16}, {8, 32})}), Shapes{"[8,32]"});
  EXPECT_EQ(ProductsOf({Slice(y, {0, 7}, {8, 32})}), Shapes{"[8,64]"});
}

TEST_F(SinkSlices, StepInvariantAndComputedFactorsAreNotSliced) {
  const Output x = Input({8, 48}), w = Input({64, 48});
  const Output computed = MatMul(x, w * 2.f, {.transpose_b = true});
  EXPECT_EQ(ProductsOf({Slice(computed, {0, 16}, {8, 32})}), Shapes{"[8,64]"});
  const Output lasting =
      MatMul(x, Const(g_, Tensor::Zeros(DT_FLOAT, {64, 48})), {.transpose_b = true});
  EXPECT_EQ(ProductsOf({Slice(lasting, {0, 16}, {8, 32})}), Shapes{"[8,64]"});
}

TEST_F(SinkSlices, RowsOfAFactorThatIsNot) {
  const Output y = MatMul(Input({64, 48}), Input({48, 24}));
  EXPECT_EQ(ProductsOf({Slice(y, {32, 0}, {16, 24})}), Shapes{"[16,24]"});
}

TEST_F(SinkSlices, NonContiguousSlicesStay) {
  const Output x = Input({48, 48}), y = Input({48, 48});
  EXPECT_EQ(ProductsOf({Slice(MatMul(x, y), {0, 16}, {48, 16})}), Shapes{"[48,48]"});
  const Output turned = MatMul(x, y, {.transpose_a = true, .transpose_b = true});
  EXPECT_EQ(ProductsOf({Slice(turned, {16, 0}, {16, 48})}), Shapes{"[48,48]"});
  const Output both = MatMul(x, y, {.transpose_b = true});
  EXPECT_EQ(ProductsOf({Slice(both, {16, 16}, {16, 16})}), Shapes{"[48,48]"});
}

TEST_F(SinkSlices, ProductsWithOtherUsesStay) {
  const Output y = MatMul(Input({8, 48}), Input({64, 48}), {.transpose_b = true});
  const Output part = Slice(y, {0, 16}, {8, 32});
  EXPECT_EQ(ProductsOf({part, y}), Shapes{"[8,64]"});
  EXPECT_EQ(ProductsOf({part, Slice(y, {0, 0}, {8, 16})}), Shapes{"[8,64]"});
  EXPECT_EQ(ProductsOf({part, Slice(y, {0, 0}, {0, 64})}), Shapes{"[8,64]"});
}

TEST_F(SinkSlices, BoundsThatAreFedStay) {
  const Output y = MatMul(Input({8, 48}), Input({64, 48}), {.transpose_b = true});
  const Output begin = Placeholder(g_, DT_INT32, {2});
  feeds_.emplace_back(begin, Tensor::Vector<int32_t>({0, 16}));
  EXPECT_EQ(ProductsOf({Slice(y, begin, Const(g_, Tensor::Vector<int32_t>({8, 32})))}),
            Shapes{"[8,64]"});
}

// A recurrent cell, with its gradient: of [x, h] W, the loop uses only the columns of h. The
// slice's bounds are known although Python ties each of its constants to the loop.
TEST_F(SinkSlices, TheGradientOfACellLeavesOutItsInput) {
  constexpr int kSteps = 5, kBatch = 8, kInput = 32, kUnits = 16;
  const Output x = Input({kBatch, kInput}), w = Input({kInput + kUnits, kUnits}),
               start = Input({kBatch, kUnits});
  const Outputs last = WhileLoop([&](const Outputs& v) { return v[0] < kSteps; },
                                 [&](const Outputs& v) {
                                   return Outputs{v[0] + 1, Tanh(MatMul(Concat({x, v[1]}, 1), w))};
                                 },
                                 {Const(g_, 0), start});
  const Outputs grads = DenseGradients({ReduceSum(Square(last[1]))}, {start, w});
  const std::string wide = Shape({kBatch, kInput + kUnits}).ToString(),
                    narrow = Shape({kBatch, kUnits}).ToString();
  const Shapes products = ProductsOf(grads);
  EXPECT_EQ(products.count(wide), 0u);
  EXPECT_EQ(products.count(narrow), 2u * kSteps);
  // If the gradient of x is requested too, all columns are needed.
  const Outputs more = DenseGradients({ReduceSum(Square(last[1]))}, {start, w, x});
  EXPECT_EQ(ProductsOf(more).count(wide), static_cast<size_t>(kSteps));
}

}  // namespace
}  // namespace weir
