#include "weir/tests/session/lib/test_models.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "weir/core/graph/scope.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/dynamic_rnn.h"
#include "weir/ops/nn/nn.h"
#include "weir/ops/random/random.h"
#include "weir/ops/train/moving_averages.h"
#include "weir/ops/train/optimizers.h"
#include "weir/ops/train/schedules.h"

namespace weir {

namespace {

// Generates the same numbers for the same step and batch, everywhere.
Tensor Noise(const Shape& shape, int step, uint32_t salt) {
  std::mt19937 random(static_cast<uint32_t>(step) * 7919u + salt);
  Tensor t(DT_FLOAT, shape);
  for (float& x : t.flat<float>()) x = static_cast<float>(random() % 2000) / 1000.f - 1.f;
  return t;
}

Tensor Indices(const Shape& shape, int32_t limit, int step, uint32_t salt) {
  std::mt19937 random(static_cast<uint32_t>(step) * 7919u + salt);
  Tensor t(DT_INT32, shape);
  for (int32_t& x : t.flat<int32_t>()) x = static_cast<int32_t>(random() % limit);
  return t;
}

Output Dense(Output x, int64_t units, absl::string_view name) {
  VariableScope scope(x.graph(), name);
  const Variable w = GetVariable(x.graph(), "w", {x.dim(1), units}, GlorotUniform());
  const Variable b = GetVariable(x.graph(), "b", {units}, Zeros());
  return BiasAdd(MatMul(x, w), b);
}

Output BatchNorm(Output x, std::vector<Operation>* updates) {
  Graph& g = x.graph();
  VariableScope scope(g, "norm");
  const Shape channels = {x.dim(3)};
  const Variable scale = GetVariable(g, "scale", channels, Ones());
  const Variable offset = GetVariable(g, "offset", channels, Zeros());
  const VariableOptions fixed{.initializer = Zeros(), .trainable = false};
  const Variable mean = GetVariable(g, "mean", channels, fixed);
  const FusedBatchNormResult norm = FusedBatchNorm(x, scale, offset);
  updates->emplace_back(AssignMovingAverage(mean, norm.batch_mean, 0.9, false));
  return norm.y;
}

std::vector<std::string> NamesOfVariables(Graph& g) {
  std::vector<std::string> names;
  for (const Variable& v : GlobalVariables(g)) names.push_back(v.read_value().name());
  return names;
}

// Describes a model whose operation "train" runs a step and whose variables are its state.
TestModel WithTrainOp(Graph& g, const Outputs& fetches,
                      std::function<NamedTensors(int step, int64_t batch)> feeds) {
  TestModel model;
  model.state = NamesOfVariables(g);
  model.init = GlobalVariablesInitializer(g).name();
  for (const Output& fetch : fetches) model.fetches.push_back(fetch.name());
  model.targets = {"train"};
  model.feeds = std::move(feeds);
  return model;
}

}  // namespace

TestModel AddConvNet(Graph& g) {
  g.set_seed(7);
  constexpr int32_t kClasses = 5, kWords = 20;
  const Output image = Placeholder(g, DT_FLOAT, {-1, 8, 8, 3}, "image");
  const Output word = Placeholder(g, DT_INT32, {-1, 4}, "word");
  const Output label = Placeholder(g, DT_INT32, {-1}, "label");
  std::vector<Operation> updates;

  const Variable filter = GetVariable(g, "filter", {3, 3, 3, 6}, HeNormal());
  Output x = Relu(BatchNorm(Conv2D(image, filter), &updates));
  x = MaxPool(x, {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}});
  x = Dropout(Reshape(x, {-1, 4 * 4 * 6}), 0.3);
  const Variable table = GetVariable(g, "table", {kWords, 8}, RandomUniformInitializer(-1, 1));
  const Output words = ReduceMean(EmbeddingLookup(table, word), {1});
  x = Relu(Dense(Concat({x, words}, 1), 16, "hidden"));
  const Output logits = Dense(x, kClasses, "logits");
  const Output loss = ReduceMean(SparseSoftmaxCrossEntropy(logits, label));
  const Output right = ReduceSum(Cast(Equal(ArgMax(logits, 1, DT_INT32), label), DT_INT32));

  const Variable step = CreateGlobalStep(g);
  {
    ControlDependencies after(g, updates);
    Group(g, {Adam(0.01).Minimize(loss, {.global_step = step})}, "train");
  }
  return WithTrainOp(g, {loss, right}, [](int i, int64_t batch) {
    return NamedTensors{{"image", Noise({batch, 8, 8, 3}, i, 1)},
                        {"word", Indices({batch, 4}, kWords, i, 2)},
                        {"label", Indices({batch}, kClasses, i, 3)}};
  });
}

TestModel AddMlp(Graph& g) {
  g.set_seed(11);
  const Output x = Placeholder(g, DT_FLOAT, {-1, 12}, "x");
  const Output target = Placeholder(g, DT_FLOAT, {-1, 3}, "target");
  Output h = Tanh(Dense(x, 32, "first"));
  h = Sigmoid(Dense(h, 32, "second"));
  Output loss = ReduceMean(SquaredDifference(Dense(h, 3, "third"), target));
  for (const Variable& v : TrainableVariables(g)) loss = loss + L2Loss(v) * 1e-3f;
  const Variable step = CreateGlobalStep(g);
  const Output rate = ExponentialDecay(0.1f, step, 10, 0.9f);
  Group(g, {Momentum(rate, 0.9f).Minimize(loss, {.global_step = step})}, "train");
  return WithTrainOp(g, {loss}, [](int i, int64_t batch) {
    return NamedTensors{{"x", Noise({batch, 12}, i, 4)}, {"target", Noise({batch, 3}, i, 5)}};
  });
}

TestModel AddRecurrentNet(Graph& g) {
  g.set_seed(19);
  const Output x = Placeholder(g, DT_FLOAT, {-1, 6, 5}, "x");
  const Output target = Placeholder(g, DT_FLOAT, {-1, 8}, "target");
  const Output zero = ZerosLike(target);
  const RnnStep run = DynamicRnn(BasicLstmCell(8), x, {zero, zero});
  const Output loss =
      ReduceMean(SquaredDifference(run.state[1], target)) + ReduceMean(Square(run.output)) * 0.1f;
  Group(g, {GradientDescent(0.5).Minimize(loss)}, "train");
  return WithTrainOp(g, {loss}, [](int i, int64_t batch) {
    return NamedTensors{{"x", Noise({batch, 6, 5}, i, 7)}, {"target", Noise({batch, 8}, i, 8)}};
  });
}

TestModel AddBranches(Graph& g) {
  const Output x = Placeholder(g, DT_FLOAT, {-1, 4}, "x");
  const Output outer = Placeholder(g, DT_BOOL, {}, "outer");
  const Output inner = Placeholder(g, DT_BOOL, {}, "inner");
  const Variable count = GetVariable(g, "count", {}, Zeros());

  const SwitchResult out = Switch(x * 2.f, outer), in = Switch(out.on_true + 1.f, inner);
  Output counted;
  {
    ControlDependencies in_branch(g, {Operation(Identity(in.on_true))});
    counted = count.AssignAdd(1.f);
  }
  const Output both = Merge({Square(in.on_false), Tanh(in.on_true) + counted}).output;
  const MergeResult all = Merge({Relu(out.on_false) - 3.f, both * 0.5f});
  const Output sum = ReduceSum(all.output, {1});
  const std::vector<std::string> state = NamesOfVariables(g);
  return {GlobalVariablesInitializer(g).name(),
          {all.output.name(), all.value_index.name(), sum.name()},
          {},
          state,
          [](int i, int64_t batch) {
            return NamedTensors{{"x", Noise({batch, 4}, i, 6)},
                                {"outer", Tensor::Scalar(i % 3 != 0)},
                                {"inner", Tensor::Scalar(i % 2 == 0)}};
          }};
}

TestModel AddLoops(Graph& g) {
  const Output x = Placeholder(g, DT_FLOAT, {-1, 4}, "x"), n = Placeholder(g, DT_INT32, {}, "n");
  const Variable count = GetVariable(g, "count", {}, Zeros());
  const Output zero = Const(g, 0);

  // Three values that are exchanged, one of them modified on the way.
  const Outputs turned = WhileLoop([&](const Outputs& v) { return v[0] < n; },
                                   [&](const Outputs& v) {
                                     return Outputs{v[0] + 1, v[2], v[1] * 0.5f + x, v[3], v[2]};
                                   },
                                   {zero, x, x + 1.f, x * 2.f, x - 1.f}, {.name = "turn"});

  // The number of inner iterations is the outer loop's counter; half of them use another formula.
  const Outputs nested =
      WhileLoop([&](const Outputs& v) { return v[0] < n; },
                [&](const Outputs& v) {
                  const Outputs inner = WhileLoop(
                      [&](const Outputs& w) { return w[0] < v[0]; },
                      [&](const Outputs& w) {
                        const Output even = Equal(FloorMod(w[0], Const(g, 2)), Const(g, 0));
                        return Outputs{w[0] + 1, Cond(
                                                     even, [&] { return Tanh(w[1] + x); },
                                                     [&] { return Square(w[1]) * 0.25f; })};
                      },
                      {Const(g, 0), v[1]});
                  return Outputs{v[0] + 1, inner[1] + 0.125f};
                },
                {zero, x}, {.name = "nest"});

  // Shapes that grow; values too large to be copied, swapped.
  const Output big = Fill(Const(g, {64, 512}), ReduceMean(x));
  const Outputs grown = WhileLoop(
      [&](const Outputs& v) { return v[0] < n; },
      [&](const Outputs& v) {
        return Outputs{v[0] + 1, Concat({v[1], v[1] * -0.5f}, 0), v[3], v[2] + 1.f};
      },
      {zero, x, big, big * 2.f},
      {.shape_invariants = std::vector<Shape>{{}, {-1, 4}, {64, 512}, {64, 512}}, .name = "grow"});

  const Outputs counted = WhileLoop([&](const Outputs& v) { return v[0] < n; },
                                    [&](const Outputs& v) {
                                      const Output now = count.AssignAdd(1.f);
                                      return Outputs{v[0] + 1, v[1] + now};
                                    },
                                    {zero, Const(g, 0.f)}, {.name = "count_up"});

  std::vector<std::string> fetches;
  for (const Outputs& loop : {turned, nested, grown, counted}) {
    for (const Output& o : loop) fetches.push_back(o.name());
  }
  fetches.push_back((turned[1] + nested[1]).name());
  return {
      GlobalVariablesInitializer(g).name(),
      fetches,
      {},
      NamesOfVariables(g),
      [](int i, int64_t batch) {
        return NamedTensors{{"x", Noise({batch, 4}, i, 9)}, {"n", Tensor::Scalar<int32_t>(i % 5)}};
      }};
}

namespace {

using FunctionBuilder =
    std::function<Outputs(Graph&, const Outputs&, std::vector<Operation>* effects)>;

void Define(Graph& g, const char* name, const DataTypes& types, const FunctionBuilder& build) {
  Graph body;
  body.set_functions(g.functions());
  Outputs args;
  for (const DataType type : types) args.push_back(Placeholder(body, type));
  std::vector<Operation> effects;
  const Outputs results = build(body, args, &effects);
  g.Fail(body.status());
  g.Fail(DefineFunction(g, name, body, args, results, effects));
}

}  // namespace

TestModel AddFunctions(Graph& g) {
  const Output x = Placeholder(g, DT_FLOAT, {-1, 4}, "x"), n = Placeholder(g, DT_INT32, {}, "n");
  const Variable w =
      GetVariable(g, "w", {4, 4}, {.initializer = GlorotUniform(7), .use_resource = true});
  const Variable count =
      GetVariable(g, "count", {}, {.initializer = Zeros(), .use_resource = true});

  Define(g, "layer", {DT_FLOAT, DT_RESOURCE},
         [](Graph&, const Outputs& v, std::vector<Operation>*) {
           const Output read = AddOp("ReadVariableOp", {v[1]}, {{"dtype", AttrValue(DT_FLOAT)}});
           return Outputs{Tanh(MatMul(v[0], read))};
         });
  const DataTypes loop = {DT_INT32, DT_INT32, DT_FLOAT, DT_RESOURCE};
  Define(g, "below", loop,
         [](Graph&, const Outputs& v, std::vector<Operation>*) { return Outputs{v[0] < v[1]}; });
  Define(g, "layers", loop, [](Graph& body, const Outputs& v, std::vector<Operation>*) {
    return Outputs{v[0] + 1, v[1], Call(body, {"layer", nullptr}, {v[2], v[3]})[0] + v[2], v[3]};
  });
  // The number of layers is the outer loop's counter; each adds one row.
  Define(g, "nest", loop, [](Graph& body, const Outputs& v, std::vector<Operation>*) {
    const Outputs inner = FunctionalWhile({Const(body, 0), v[0], v[2], v[3]}, {"below", nullptr},
                                          {"layers", nullptr});
    return Outputs{v[0] + 1, v[1], Concat({inner[2], inner[2] * 0.5f}, 0), v[3]};
  });
  Define(g, "count_up", loop, [](Graph&, const Outputs& v, std::vector<Operation>* effects) {
    effects->emplace_back(AddNode("AssignAddVariableOp", {v[3], Cast(v[0], DT_FLOAT)}));
    return Outputs{v[0] + 1, v[1], v[2] * 0.5f, v[3]};
  });

  const Output zero = Const(g, 0);
  const Outputs called = Call(g, {"layer", nullptr}, {x, w.handle()});
  const Outputs twice = Call(g, {"layer", nullptr}, {called[0] + x, w.handle()});
  const Outputs nested =
      FunctionalWhile({zero, n, twice[0], w.handle()}, {"below", nullptr}, {"nest", nullptr});
  const Outputs counted = FunctionalWhile({zero, n, Const(g, 3.f), count.handle()},
                                          {"below", nullptr}, {"count_up", nullptr});
  Output after;
  {
    const ControlDependencies counting(g, {counted[0]});
    after = count.read_value();
  }
  const std::string init = GlobalVariablesInitializer(g).name();
  return {
      init,
      {called[0].name(), twice[0].name(), nested[0].name(), nested[2].name(), counted[2].name(),
       after.name()},
      {},
      {w.read_value().name(), count.read_value().name()},
      [](int i, int64_t batch) {
        return NamedTensors{{"x", Noise({batch, 4}, i, 11)}, {"n", Tensor::Scalar<int32_t>(i % 4)}};
      }};
}

namespace {

// Matrices [batch, 8], whose elements stay of the order of one.
class RandomOps {
 public:
  RandomOps(Graph& g, uint32_t seed) : random_(seed) {
    values_.push_back(Placeholder(g, DT_FLOAT, {-1, 8}, "x"));
    values_.push_back(Const(g, Noise({1, 8}, 0, seed)) + ZerosLike(values_[0]));
    matrix_ = Const(g, Noise({8, 8}, 1, seed));
    row_ = Const(g, Noise({8}, 2, seed));
  }

  void AddOne() {
    const Output x = Any(), y = Any();
    values_.push_back(Draw(18) < 9 ? Elementwise(x, y) : ShapeOp(x, y));
  }
  const Output& last(size_t back) const { return values_[values_.size() - 1 - back]; }

 private:
  uint32_t Draw(uint32_t limit) { return static_cast<uint32_t>(random_()) % limit; }
  Output Any() { return values_[Draw(static_cast<uint32_t>(values_.size()))]; }

  Output Elementwise(Output x, Output y) {
    switch (Draw(9)) {
      case 0:
        return Tanh(x + y);
      case 1:
        return Maximum(x, y) * 0.5f;
      case 2:
        return Sigmoid(x - y);
      case 3:
        return Sin(x * y);
      case 4:
        return Relu(x) - Abs(y) * 0.25f;
      case 5:
        return Select(Greater(x, y), x, Negative(y));
      case 6:
        return Cast(Cast(x, DT_DOUBLE) * 0.75, DT_FLOAT);
      case 7:
        return AddN({x, y, x}) * 0.3f;
      default:
        return Tanh(x * row_ + 0.1f);
    }
  }

  Output ShapeOp(Output x, Output y) {
    switch (Draw(9)) {
      case 0:
        return Tanh(MatMul(x, matrix_));
      case 1:
        return Softmax(x) + y * 0.5f;
      case 2:
        return x - ReduceMean(x, {1}, true);
      case 3:
        return Transpose(Tanh(Transpose(x)));
      case 4:
        return Reshape(Reverse(Reshape(x, {-1, 4, 2}), {1}), {-1, 8});
      case 5:
        return Concat({Slice(x, {0, 4}, {-1, 4}), Slice(y, {0, 0}, {-1, 4})}, 1);
      case 6:
        return Tanh(ReduceSum(x, {0}) * 0.1f) + y * 0.5f;
      case 7: {
        const SwitchResult s = Switch(x, ReduceMean(y) > 0.f);
        return Merge({Tanh(s.on_false), Identity(s.on_true)}).output;
      }
      default:
        return BroadcastTo(ReduceMean(y, {0}, true), ShapeTensor(x)) * 0.5f + x * 0.5f;
    }
  }

  std::mt19937 random_;
  Outputs values_;
  Output matrix_, row_;
};

}  // namespace

TestModel AddRandomOps(Graph& g, uint32_t seed, int length) {
  RandomOps ops(g, seed);
  for (int i = 0; i < length; ++i) ops.AddOne();
  Identity(ops.last(0), "y");
  Identity(ops.last(1), "z");
  return {"", {"y:0", "z:0"}, {}, {}, [seed](int i, int64_t batch) {
            return NamedTensors{{"x", Noise({batch, 8}, i, seed)}};
          }};
}

Outputs RepeatedBody(Graph& graph, const Output& times, const LoopBodyFn& body, const Outputs& vars,
                     const WhileOptions& options) {
  Outputs all = {Const(graph, 0)};
  all.insert(all.end(), vars.begin(), vars.end());
  const Outputs out = WhileLoop([&](const Outputs& v) { return v[0] < times; },
                                [&](const Outputs& v) {
                                  Outputs next = {v[0] + 1};
                                  for (const Output& o : body({v.begin() + 1, v.end()}))
                                    next.push_back(o);
                                  return next;
                                },
                                all, options);
  return out.empty() ? out : Outputs(out.begin() + 1, out.end());
}

absl::StatusOr<std::vector<Tensors>> RunModel(Session& session, const TestModel& model,
                                              const std::vector<int64_t>& batches) {
  std::vector<Tensors> out;
  if (!model.init.empty()) WEIR_RETURN_IF_ERROR(session.Run({}, {}, {model.init}).status());
  for (size_t i = 0; i < batches.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(Tensors fetched, session.Run(model.feeds(static_cast<int>(i), batches[i]),
                                                       model.fetches, model.targets));
    out.push_back(std::move(fetched));
  }
  if (!model.state.empty()) {
    WEIR_ASSIGN_OR_RETURN(Tensors state, session.Run({}, model.state, {}));
    out.push_back(std::move(state));
  }
  return out;
}

namespace {

template <class T>
std::string FirstDifference(const Tensor& got, const Tensor& want, double tolerance) {
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const auto a = static_cast<double>(got.data<T>()[i]),
               b = static_cast<double>(want.data<T>()[i]);
    const bool same = a == b || (std::isnan(a) && std::isnan(b)) ||
                      std::abs(a - b) <= tolerance * (1 + std::abs(b));
    if (!same) return absl::StrCat("element ", i, " is ", a, " instead of ", b);
  }
  return "";
}

std::string Difference(const Tensor& got, const Tensor& want, double tolerance) {
  if (IdenticalTensors(got, want)) return "";
  if (got.dtype() == want.dtype() && got.shape() == want.shape() && tolerance > 0) {
    if (got.dtype() == DT_FLOAT) return FirstDifference<float>(got, want, tolerance);
    if (got.dtype() == DT_DOUBLE) return FirstDifference<double>(got, want, tolerance);
    // Rounding errors of these exceed the tolerance of the others.
    if (got.dtype() == DT_HALF)
      return FirstDifference<half>(got, want, std::max(tolerance, 0x1p-7));
    if (got.dtype() == DT_BFLOAT16)
      return FirstDifference<bfloat16>(got, want, std::max(tolerance, 0x1p-4));
  }
  return absl::StrCat(got.Description(), " ", got.ToString(20), " instead of ", want.Description(),
                      " ", want.ToString(20));
}

}  // namespace

std::string Difference(const std::vector<Tensors>& got, const std::vector<Tensors>& want,
                       double tolerance) {
  if (got.size() != want.size()) return "another number of steps";
  for (size_t step = 0; step < got.size(); ++step) {
    if (got[step].size() != want[step].size()) return "another number of tensors";
    for (size_t k = 0; k < got[step].size(); ++k) {
      const std::string what = Difference(got[step][k], want[step][k], tolerance);
      if (!what.empty()) return absl::StrCat("step ", step, ", tensor ", k, ": ", what);
    }
  }
  return "";
}

}  // namespace weir
