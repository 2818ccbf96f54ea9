// Matrix products that a loop accumulates: which are deferred, and that the sums stay the same.

#include <map>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/random/random.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/random_values.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

class DeferMatMuls : public testing::Test {
 protected:
  Tensor Numbers(const Shape& shape) { return UniformFloats(shape, random_); }
  Output Input(const Shape& shape) {
    const Output x = Placeholder(g_, DT_FLOAT, shape);
    feeds_.emplace_back(x, Numbers(shape));
    return x;
  }

  // Returns sum + x' y.
  static Output Add(const Output& sum, const Output& x, const Output& y) {
    return sum + MatMul(x, y, {.transpose_a = true});
  }
  // Runs the body `times` times; its arguments are the iteration, as a float, and the variables.
  using Body = std::function<Outputs(const Output& step, const Outputs& vars)>;
  Outputs Repeat(const Output& times, const Body& body, const Outputs& vars) {
    Outputs all = {Const(g_, 0)};
    all.insert(all.end(), vars.begin(), vars.end());
    Outputs last = WhileLoop([&](const Outputs& v) { return v[0] < times; },
                             [&](const Outputs& v) {
                               Outputs next = body(Cast(v[0], DT_FLOAT), {v.begin() + 1, v.end()});
                               next.insert(next.begin(), v[0] + 1);
                               return next;
                             },
                             all);
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    if (last.empty()) return vars;
    last.erase(last.begin());
    return last;
  }
  Outputs Repeat(int times, const Body& body, const Outputs& vars) {
    return Repeat(Const(g_, times), body, vars);
  }

  // Returns how often each op runs. Checks that the values equal, except for rounding, those of v1
  // loops and of structured ones, fused or not, in the first step and the next.
  std::map<std::string, int> OpsFor(const Outputs& ys) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    const Tensors want = Run(ys, {.disable = {"structure_loops", "fusion"}}, nullptr);
    std::vector<NodeTrace> trace;
    for (const SessionOptions& options :
         {SessionOptions{.num_threads = 2, .disable = {"plan_memory"}},
          SessionOptions{.num_threads = 3, .disable = {"in_place"}},
          SessionOptions{.num_threads = 1}, SessionOptions{.num_threads = 2}}) {
      const Tensors got = Run(ys, options, &trace);
      for (size_t i = 0; i < ys.size(); ++i) ExpectClose(got[i], want[i]);
    }
    std::map<std::string, int> ops;
    for (const NodeTrace& node : trace) ++ops[node.op];
    return ops;
  }
  static void ExpectClose(const Tensor& got, const Tensor& want) {
    ASSERT_EQ(got.shape(), want.shape());
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      const float w = want.data<float>()[i];
      ASSERT_NEAR(got.data<float>()[i], w, 1e-4 * std::max(1.f, std::abs(w))) << "at " << i;
    }
  }
  Tensors Run(const Outputs& ys, SessionOptions options, std::vector<NodeTrace>* trace) {
    Session session = *Session::Create(g_, std::move(options));
    Tensors first;
    for (int step = 0; step < 2; ++step) {
      if (trace != nullptr) trace->clear();
      auto out = session.Run(feeds_, ys, {}, {.trace = trace});
      EXPECT_TRUE(out.ok()) << out.status();
      if (!out.ok()) return Tensors(ys.size(), Tensor(DT_FLOAT, {}));
      for (size_t i = 0; i < first.size(); ++i)
        EXPECT_TRUE(IdenticalTensors((*out)[i], first[i])) << "result " << i << ", second step";
      first = *std::move(out);
    }
    return first;
  }

  Graph g_;
  Feeds feeds_;
  std::mt19937 random_{7};
};

// Numbers of iterations: none, a few, exactly as many as are collected at a time, more.
TEST_F(DeferMatMuls, DefersASum) {
  const Output x = Input({3, 5}), y = Input({3, 4}), first = Input({5, 4});
  const Output times = Placeholder(g_, DT_INT32, {});
  const Output sum = Repeat(
      times,
      [&](const Output& step, const Outputs& v) { return Outputs{Add(v[0], Sin(x * step), y)}; },
      {first})[0];
  for (const int n : {0, 1, 2, 85, 86, 200}) {
    feeds_.resize(3);
    feeds_.emplace_back(times, Tensor::Scalar<int32_t>(n));
    std::map<std::string, int> ops = OpsFor({sum, Exp(sum * 0.01f)});
    EXPECT_EQ(ops["_DeferMatMul"], n);
    EXPECT_EQ(ops["_FinishMatMul"], 1);
    EXPECT_EQ(ops["_FusedMatMul"], 0);
  }
}

// A sum large enough for several threads, and too large for the arena.
TEST_F(DeferMatMuls, LargeSums) {
  const Output x = Input({16, 300}), y = Input({16, 70});
  const Outputs sums = Repeat(29,
                              [&](const Output& step, const Outputs& v) {
                                return Outputs{Add(v[0], Sin(x * step), y), Add(v[1], y, x - step)};
                              },
                              {Zeros(g_, {300, 70}), Input({70, 300})});
  EXPECT_THAT(OpsFor(sums), IsSupersetOf({Pair("_DeferMatMul", 58), Pair("_FinishMatMul", 2)}));
}

TEST_F(DeferMatMuls, DefersGradientsOfARecurrentNetwork) {
  const Output x = Input({2, 6}), w = Input({6, 6}), u = Input({6, 6});
  const Output h = Repeat(9,
                          [&](const Output& step, const Outputs& v) {
                            return Outputs{Tanh(MatMul(v[0], w) + MatMul(x * step, u))};
                          },
                          {Zeros(g_, {2, 6})})[0];
  const Output loss = ReduceSum(Square(h));
  Outputs ys = DenseGradients({loss}, {w, u});
  ys.push_back(loss);
  EXPECT_THAT(OpsFor(ys), IsSupersetOf({Pair("_DeferMatMul", 18), Pair("_FinishMatMul", 2)}));
}

// The gradients of functions accumulate with AddN.
TEST_F(DeferMatMuls, AnAddNOfTwo) {
  const Output x = Input({3, 5}), y = Input({3, 4});
  const auto body = [&](const Output& step, const Outputs& v) {
    return Outputs{AddN({v[0], MatMul(Sin(x * step), y, {.transpose_a = true})})};
  };
  EXPECT_THAT(OpsFor(Repeat(7, body, {Input({5, 4})})), Contains(Pair("_DeferMatMul", 7)));
}

// The sum is a loop-carried value of the outer loop too.
TEST_F(DeferMatMuls, NestedLoops) {
  const Output x = Input({2, 5}), y = Input({2, 4});
  const auto inner = [&](const Output& outer_step, const Outputs& v) {
    return Repeat(
        3,
        [&](const Output& step, const Outputs& w) {
          return Outputs{Add(w[0], x * (step + outer_step), y)};
        },
        v);
  };
  const Outputs sums = Repeat(4, inner, {Input({5, 4})});
  EXPECT_THAT(OpsFor(sums), IsSupersetOf({Pair("_DeferMatMul", 12), Pair("_FinishMatMul", 4)}));
  const auto then_doubled = [&](const Output& step, const Outputs& v) {
    return Outputs{inner(step, v)[0] * 1.5f};
  };
  EXPECT_THAT(OpsFor(Repeat(4, then_doubled, {Input({5, 4})})),
              IsSupersetOf({Pair("_DeferMatMul", 12), Pair("_FinishMatMul", 4)}));
}

TEST_F(DeferMatMuls, NotWhereTheSumIsUsedInTheLoop) {
  const Output x = Input({3, 5}), y = Input({3, 4}), first = Input({5, 4}), other = Input({5, 4});
  const auto ops = [&](const Body& body, const Outputs& vars) {
    return OpsFor(Repeat(6, body, vars));
  };
  const auto not_deferred =
      AllOf(Contains(Key("_FusedMatMul")), Not(Contains(Key("_DeferMatMul"))));
  // The sum is used before the product is added, and after,
  EXPECT_THAT(ops(
                  [&](const Output& step, const Outputs& v) {
                    return Outputs{Add(v[0], x * step, y), v[1] + Tanh(v[0])};
                  },
                  {first, other}),
              not_deferred);
  EXPECT_THAT(ops(
                  [&](const Output& step, const Outputs& v) {
                    const Output sum = Add(v[0], x * step, y);
                    return Outputs{sum, sum};
                  },
                  {first, other}),
              not_deferred);
  // by another variable, and as a factor of its own product.
  EXPECT_THAT(ops(
                  [&](const Output& step, const Outputs& v) {
                    return Outputs{Add(v[0], x * step, y), v[0]};
                  },
                  {first, other}),
              not_deferred);
  const Output square = Input({5, 5});
  EXPECT_THAT(ops([&](const Output& step,
                      const Outputs& v) { return Outputs{Add(v[0], v[0] * 0.1f, square * step)}; },
                  {Input({5, 5})}),
              not_deferred);
}

// Deep products gain nothing; other products do not accumulate rows.
TEST_F(DeferMatMuls, OnlyFewRows) {
  const Output x = Input({100, 40}), y = Input({100, 30}), first = Input({40, 30});
  const auto deep = [&](const Output& step, const Outputs& v) {
    return Outputs{Add(v[0], x * step, y)};
  };
  EXPECT_THAT(OpsFor(Repeat(5, deep, {first})), Contains(Pair("_FusedMatMul", 5)));
  const Output a = Input({40, 2}), b = Input({2, 30});
  const auto along_columns = [&](const Output& step, const Outputs& v) {
    return Outputs{v[0] + MatMul(a * step, b)};
  };
  EXPECT_THAT(OpsFor(Repeat(5, along_columns, {first})), Contains(Pair("_FusedMatMul", 5)));
}

// A _FusedMatMul from a file may have inputs that no matrix product accepts: it reports the error
// when it runs.
TEST_F(DeferMatMuls, InvalidShapesAreErrorsOfTheStep) {
  const Output x = Placeholder(g_, DT_FLOAT, Shape::UnknownRank()),
               y = Placeholder(g_, DT_FLOAT, Shape::UnknownRank()),
               first = Placeholder(g_, DT_FLOAT, Shape::UnknownRank());
  const auto body = [&](const Output&, const Outputs& v) {
    return Outputs{AddOp("_FusedMatMul", {x, y, Outputs{v[0]}},
                         {{"transpose_a", true},
                          {"num_args", int64_t{1}},
                          {"fused_ops", std::vector<std::string>{"Add"}}})};
  };
  const Output sum = Repeat(3, body, {first})[0];
  Session session = *Session::Create(g_, {});
  const auto run = [&](const Shape& a, const Shape& b) {
    return session.Run({{x, Numbers(a)}, {y, Numbers(b)}, {first, Numbers({4, 5})}}, {sum})
        .status();
  };
  EXPECT_TRUE(run({2, 4}, {2, 5}).ok());
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{
           {{2, 3, 4}, {2, 5}}, {{}, {2, 5}}, {{2}, {2}}, {{2, 4}, {3, 5}}, {{2, 4}, {2, 5, 1}}}) {
    EXPECT_EQ(run(a, b).code(), absl::StatusCode::kInvalidArgument) << a.ToString();
  }
}

// A loop next to a dropout, whose noise has the shape of the output of a fused node.
TEST_F(DeferMatMuls, NextToADropout) {
  const Output x = Placeholder(g_, DT_FLOAT, {Shape::kUnknown, 6});
  feeds_.emplace_back(x, Numbers({4, 6}));
  const Output on = Tanh(x * 2.f);
  const Output noise = RandomUniform(g_, ShapeTensor(on), {.seed = 3});
  const Output kept = on * 2.f * Floor(noise + 0.5f);
  const Output sum = Repeat(
      3, [&](const Output& step, const Outputs& v) { return Outputs{Add(v[0], x * step, x)}; },
      {Zeros(g_, {6, 6})})[0];
  Session session = *Session::Create(g_, {});
  EXPECT_TRUE(session.Run(feeds_, {kept, on + 1.f, sum}).ok());
}

// ---- the ops by themselves, as a file may contain them

class DeferredMatMul : public DeferMatMuls {
 protected:
  static constexpr int64_t kMostRows = 4;

  absl::StatusOr<Tensors> Defer(const Shape& sum, const Shape& left, const Shape& right,
                                int64_t rows, const Shape& x, const Shape& y) {
    Graph g;
    Node* const node = NodeBuilder(g, "_DeferMatMul")
                           .Input(Const(g, given_[0] = Numbers(sum)))
                           .Input(Const(g, given_[1] = Numbers(left)))
                           .Input(Const(g, given_[2] = Numbers(right)))
                           .Input(Const(g, Tensor::Scalar<int64_t>(rows)))
                           .Input(Const(g, given_[3] = Numbers(x)))
                           .Input(Const(g, given_[4] = Numbers(y)))
                           .Attr("most_rows", kMostRows)
                           .Build();
    Outputs outputs;
    for (int k = 0; k < node->num_outputs(); ++k) outputs.push_back(node->output(k));
    Node* const finish = NodeBuilder(g, "_FinishMatMul")
                             .Input(outputs[0])
                             .Input(outputs[1])
                             .Input(outputs[2])
                             .Input(outputs[3])
                             .Build();
    outputs.push_back(finish->output(0));
    Session session = *Session::Create(g, {.num_threads = 1});
    return session.Run({}, outputs);
  }

  // Returns sum + left' right of the first `rows` + x' y.
  Tensor Total(int64_t rows) const {
    Tensor total(DT_FLOAT, given_[0].shape());
    std::copy_n(given_[0].data<float>(), total.num_elements(), total.data<float>());
    AddTo(total, given_[1], given_[2], rows);
    AddTo(total, given_[3], given_[4], given_[3].dim(0));
    return total;
  }
  static void AddTo(Tensor& total, const Tensor& a, const Tensor& b, int64_t rows) {
    const int64_t m = a.dim(1), n = b.dim(1);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < m * n; ++i)
        total.data<float>()[i] += a.data<float>()[r * m + i / n] * b.data<float>()[r * n + i % n];
    }
  }

  Tensor given_[5];
};

TEST_F(DeferredMatMul, MultipliesWhenTheBufferIsFull) {
  struct Case {
    int64_t capacity, rows, more, want_capacity, want_rows;
  };
  for (const Case& c : {Case{0, 0, 1, 4, 1}, Case{0, 0, 6, 6, 6}, Case{4, 2, 2, 4, 4},
                        Case{4, 3, 2, 4, 2}, Case{2, 2, 3, 4, 3}, Case{4, 4, 0, 4, 4}}) {
    const absl::StatusOr<Tensors> out =
        Defer({3, 2}, {c.capacity, 3}, {c.capacity, 2}, c.rows, {c.more, 3}, {c.more, 2});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[1].shape(), Shape({c.want_capacity, 3}));
    EXPECT_EQ((*out)[2].shape(), Shape({c.want_capacity, 2}));
    EXPECT_EQ((*out)[3].scalar<int64_t>(), c.want_rows);
    ExpectClose((*out)[4], Total(c.rows));
  }
}

// The kernel writes to each of the three inputs.
TEST_F(DeferredMatMul, ATensorGivenTwice) {
  const Output x = Placeholder(g_, DT_FLOAT, Shape::UnknownRank());
  const Output both = x + 1.f;
  Node* const node = NodeBuilder(g_, "_DeferMatMul")
                         .Input(both)
                         .Input(both)
                         .Input(both)
                         .Input(Const(g_, Tensor::Scalar<int64_t>(2)))
                         .Input(x)
                         .Input(x)
                         .Attr("most_rows", kMostRows)
                         .Build();
  feeds_.emplace_back(x, Numbers({2, 2}));
  const Outputs ys = {node->output(0), node->output(1), node->output(2), both};
  const Tensors out = Run(ys, {}, nullptr);
  Tensor want(DT_FLOAT, Shape({2, 2}));
  std::copy_n(out[3].data<float>(), 4, want.data<float>());
  AddTo(want, out[3], out[3], 2);
  ExpectClose(out[0], want);
  ExpectClose(out[1], feeds_[0].second);
  ExpectClose(out[2], feeds_[0].second);
  Session session = *Session::Create(g_, {});
  ExpectClose((*session.Run(feeds_, {ys[0]}))[0], want);
}

TEST_F(DeferredMatMul, IncompatibleShapes) {
  const auto fails = [&](const absl::StatusOr<Tensors>& out, const char* words) {
    EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument) << out.status();
    EXPECT_THAT(out.status().message(), HasSubstr(words));
  };
  fails(Defer({3, 2, 1}, {4, 3}, {4, 2}, 1, {1, 3}, {1, 2}), "sum");
  fails(Defer({3, 2}, {4}, {4, 2}, 1, {1, 3}, {1, 2}), "left");
  fails(Defer({3, 2}, {4, 2}, {4, 2}, 1, {1, 3}, {1, 2}), "does not have sum's shape");
  fails(Defer({3, 2}, {4, 3}, {5, 2}, 1, {1, 3}, {1, 2}), "does not have sum's shape");
  fails(Defer({3, 2}, {4, 3}, {4, 2}, 5, {1, 3}, {1, 2}), "rows is 5");
  fails(Defer({3, 2}, {4, 3}, {4, 2}, -1, {1, 3}, {1, 2}), "rows is -1");
  fails(Defer({3, 2}, {4, 3}, {4, 2}, 1, {2, 3}, {1, 2}), "does not have sum's shape");
  fails(Defer({3, 2}, {4, 3}, {4, 2}, 1, {1, 2}, {1, 2}), "does not have sum's shape");
  fails(Defer({3, 2}, {4, 3}, {4, 2}, 1, {3}, {1, 2}), "does not have sum's shape");
}

}  // namespace
}  // namespace weir
