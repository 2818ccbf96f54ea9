#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/random_values.h"

// Fusion of attention from products, transposes and a softmax.
namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

constexpr float kInf = std::numeric_limits<float>::infinity();

const MatMulOptions kTransposed = {.transpose_b = true};

// Extents of an attention.
struct Sizes {
  int64_t batch, heads, queries, keys, size, value_size;
};

class FuseAttention : public testing::Test {
 protected:
  Output Input(const Shape& shape) { return Fed(UniformFloats(shape, random_, -2, 2)); }
  Output Fed(const Tensor& t) {
    const Output x = Placeholder(g_, DT_FLOAT, t.shape());
    feeds_.emplace_back(x, t);
    return x;
  }
  // Arguments as a dense layer returns them, [batch, length, heads, size].
  void MakeArguments(const Sizes& s) {
    q_ = Input({s.batch, s.queries, s.heads, s.size});
    k_ = Input({s.batch, s.keys, s.heads, s.size});
    v_ = Input({s.batch, s.keys, s.heads, s.value_size});
  }
  static Output Swap(const Output& x) { return Transpose(x, {0, 2, 1, 3}); }
  Output Scores() { return MatMul(Swap(q_), Swap(k_), kTransposed); }
  Output Context(const Output& logits) { return Swap(MatMul(Softmax(logits), Swap(v_))); }

  Tensors Run(const Outputs& ys, SessionOptions options, std::vector<NodeTrace>* trace = nullptr) {
    Session session = *Session::Create(g_, std::move(options));
    auto out = session.Run(feeds_, ys, {}, {.trace = trace});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *out : Tensors(ys.size());
  }
  // Returns how often each op runs. Checks that the values equal those without the pass, and that
  // the number of threads does not change them.
  std::map<std::string, int> OpsFor(const Outputs& ys) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    const Tensors want = Run(ys, {.num_threads = 2, .disable = {"fuse_attention"}});
    std::vector<NodeTrace> trace;
    const Tensors got = Run(ys, {.num_threads = 2}, &trace);
    const Tensors alone = Run(ys, {.num_threads = 1});
    for (size_t k = 0; k < ys.size(); ++k) {
      EXPECT_EQ(got[k].shape(), want[k].shape());
      for (int64_t i = 0; i < want[k].num_elements(); ++i) {
        const float g = got[k].data<float>()[i], w = want[k].data<float>()[i];
        if (std::isnan(w)) {
          EXPECT_TRUE(std::isnan(g)) << g << " at " << i;
        } else {
          EXPECT_NEAR(g, w, 5e-6 * (1 + std::abs(w))) << "at " << i;
          EXPECT_EQ(g, alone[k].data<float>()[i]) << "at " << i;
        }
      }
    }
    std::map<std::string, int> ops;
    for (const NodeTrace& node : trace) ++ops[node.op];
    return ops;
  }

  Graph g_;
  Feeds feeds_;
  Output q_, k_, v_;
  std::mt19937 random_{31};
};

TEST_F(FuseAttention, TransposesScaleAndMaskAreOneNode) {
  // Few and many queries; lengths around vectors, panels and blocks of queries.
  for (const Sizes& s : {Sizes{1, 1, 1, 1, 1, 1}, Sizes{2, 3, 1, 40, 8, 8}, Sizes{2, 3, 4, 7, 5, 3},
                         Sizes{1, 2, 16, 16, 64, 64}, Sizes{2, 2, 33, 129, 24, 17},
                         Sizes{1, 2, 130, 65, 8, 40}, Sizes{1, 1, 300, 2500, 4, 6}}) {
    SCOPED_TRACE(testing::Message() << s.queries << " x " << s.keys);
    feeds_.clear();
    MakeArguments(s);
    const Output mask = Input({s.batch, 1, s.queries, s.keys});
    EXPECT_THAT(OpsFor({Context(Scores() * 0.125f + mask)}),
                ElementsAre(Pair("_FusedAttention", 1)));
  }
}

TEST_F(FuseAttention, FormsOfScaleAndMask) {
  MakeArguments({2, 3, 9, 20, 16, 16});
  const Output scores = Scores();
  const auto fused = ElementsAre(Pair("_FusedAttention", 1));
  EXPECT_THAT(OpsFor({Context(scores)}), fused);
  EXPECT_THAT(OpsFor({Context(scores / 4.f)}), fused);
  EXPECT_THAT(OpsFor({Context(0.25f * scores)}), fused);
  for (const Shape& shape : {Shape({20}), Shape({9, 20}), Shape({3, 1, 20}), Shape({2, 1, 1, 20}),
                             Shape({2, 3, 9, 20})}) {
    SCOPED_TRACE(shape.ToString());
    EXPECT_THAT(OpsFor({Context(Input(shape) + scores / 4.f)}), fused);
  }
}

TEST_F(FuseAttention, UntransposedArgumentsAreReadInPlace) {
  for (const Shape& batch : {Shape({5}), Shape({2, 3})}) {
    SCOPED_TRACE(batch.ToString());
    feeds_.clear();
    const auto matrix = [&](int64_t rows, int64_t columns) {
      Shape shape = batch;
      shape.AddDim(rows);
      shape.AddDim(columns);
      return Input(shape);
    };
    const Output q = matrix(7, 4), k = matrix(10, 4), v = matrix(10, 6);
    const Output scores = MatMul(q, k, kTransposed);
    EXPECT_THAT(OpsFor({MatMul(Softmax(scores * 0.5f), v)}),
                ElementsAre(Pair("_FusedAttention", 1)));
  }
}

TEST_F(FuseAttention, TheKeyMayBeTransposedTwice) {
  MakeArguments({2, 3, 9, 20, 16, 16});
  const Output far = MatMul(Swap(q_), Transpose(k_, {0, 2, 3, 1}));
  EXPECT_THAT(OpsFor({Context(far)}), ElementsAre(Pair("_FusedAttention", 1)));
  const Output k = Input({2, 3, 20, 16}), near = Transpose(k, {0, 1, 3, 2});
  EXPECT_THAT(OpsFor({Context(MatMul(Swap(q_), near))}), ElementsAre(Pair("_FusedAttention", 1)));
  // It is an input of the step: the small ops read it well.
  const Output stored = Input({2, 3, 16, 20});
  EXPECT_THAT(OpsFor({Context(MatMul(Swap(q_), stored))}), Not(Contains(Key("_FusedAttention"))));
}

TEST_F(FuseAttention, ReshapesAroundTheSoftmaxAreAllowed) {
  MakeArguments({2, 3, 9, 20, 16, 16});
  const Output flat = Softmax(Reshape(Scores(), {-1, 20}));
  const Output y = Swap(MatMul(Reshape(flat, {2, 3, 9, 20}), Swap(v_)));
  EXPECT_THAT(OpsFor({y}), ElementsAre(Pair("_FusedAttention", 1)));
  // A softmax over other rows is not.
  const Output mixed = Softmax(Reshape(Scores(), {-1, 10}));
  const Output z = Swap(MatMul(Reshape(mixed, {2, 3, 9, 20}), Swap(v_)));
  EXPECT_THAT(OpsFor({z}), Not(Contains(Key("_FusedAttention"))));
}

TEST_F(FuseAttention, ValuesWithOtherUsesStay) {
  MakeArguments({2, 3, 9, 20, 16, 16});
  const Output scores = Scores(), weights = Softmax(scores);
  const Output y = Swap(MatMul(weights, Swap(v_)));
  for (const Output& other : {scores, weights})
    EXPECT_THAT(OpsFor({y, other}), Not(Contains(Key("_FusedAttention"))));
  // Transposes that others use stay beside the fused node.
  const Output q = Swap(q_), z = Context(MatMul(q, Swap(k_), kTransposed));
  EXPECT_THAT(OpsFor({z, q}), ElementsAre(Pair("Transpose", 1), Pair("_FusedAttention", 1)));
}

TEST_F(FuseAttention, ProductsThatBroadcastAreNotFused) {
  MakeArguments({2, 3, 9, 20, 16, 16});
  const Output k = Input({3, 20, 16});
  EXPECT_THAT(OpsFor({Context(MatMul(Swap(q_), k, kTransposed))}),
              Not(Contains(Key("_FusedAttention"))));
  // A mask with one column for all keys is not, either.
  EXPECT_THAT(OpsFor({Context(Scores() + Input({9, 1}))}), Not(Contains(Key("_FusedAttention"))));
}

TEST_F(FuseAttention, GradientsKeepTheParts) {
  MakeArguments({2, 3, 9, 20, 16, 16});
  const Output y = Context(Scores() * 0.25f + Input({2, 1, 9, 20}));
  const Outputs gradients = DenseGradients({ReduceSum(y * y)}, {q_, k_, v_});
  EXPECT_THAT(OpsFor(gradients), Not(Contains(Key("_FusedAttention"))));
}

TEST_F(FuseAttention, NonFiniteScoresDoNotChange) {
  MakeArguments({1, 1, 6, 37, 16, 16});
  Tensor mask = Tensor::Zeros(DT_FLOAT, Shape({6, 37}));
  const float values[] = {std::nanf(""), kInf, -kInf, 3e38f, -3e38f, 0};
  for (int64_t row = 0; row < 6; ++row) mask.data<float>()[row * 37 + 36] = values[row];
  for (int64_t i = 0; i < 37; ++i) mask.data<float>()[2 * 37 + i] = -kInf;
  EXPECT_THAT(OpsFor({Context(Scores() * 0.25f + Fed(mask))}),
              ElementsAre(Pair("_FusedAttention", 1)));
}

// The op itself, as a file may contain it.
TEST_F(FuseAttention, TheOpRejectsArgumentsThatDoNotMatch) {
  const auto error = [&](const Shape& q, const Shape& k, const Shape& v, const Shape& mask,
                         bool transposes) {
    Graph g;
    const auto zeros = [&](const Shape& shape) { return Const(g, Tensor::Zeros(DT_FLOAT, shape)); };
    const Output y = NodeBuilder(g, "_FusedAttention")
                         .Input(zeros(q))
                         .Input(zeros(k))
                         .Input(zeros(v))
                         .InputList({zeros(mask)})
                         .Attr("transpose_key", transposes)
                         .BuildOutput();
    if (!g.status().ok()) return std::string(g.status().message());
    return std::string(Session::Create(g)->Run({}, {y}).status().message());
  };
  const Shape ok({2, 3, 4}), mask({3, 3});
  EXPECT_EQ(error(ok, ok, ok, mask, false), "");
  EXPECT_THAT(error(ok, ok, ok, mask, true), testing::HasSubstr("key must have 4 dimensions"));
  EXPECT_THAT(error(ok, {2, 3, 5}, ok, mask, false), testing::HasSubstr("do not match"));
  EXPECT_THAT(error(ok, {3, 3, 4}, ok, mask, false), testing::HasSubstr("do not match"));
  EXPECT_THAT(error(ok, ok, {2, 4, 4}, mask, false), testing::HasSubstr("do not match"));
  EXPECT_THAT(error(ok, ok, ok, {3}, false), "");
  EXPECT_THAT(error(ok, ok, ok, {2, 3}, false), testing::HasSubstr("cannot be added to scores"));
  EXPECT_THAT(error(ok, ok, ok, {}, false), testing::HasSubstr("cannot be added to scores"));
  EXPECT_THAT(error({4}, {4}, {4}, mask, false), testing::HasSubstr("2 to 4"));
}

}  // namespace
}  // namespace weir
