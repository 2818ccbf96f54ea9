#include <random>

#include "absl/strings/str_cat.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/lib/array.h"

#include "weir/ops/containers/tensor_array.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/tests/session/lib/random_models.h"
#include "weir/tests/session/lib/random_values.h"

namespace weir {

namespace {

constexpr int kDeepest = 3;

// The values available to new nodes, in the graph or in a body. Integers are small, elements of the
// order of one.
struct Values {
  Outputs ints, floats, matrices;  // scalars, scalars, [batch, width_]
};

class RandomControlFlow {
 public:
  RandomControlFlow(Graph& g, uint32_t seed, int64_t width, bool is_function = false)
      : g_(g), random_(seed), width_(width), is_function_(is_function) {}

  TestModel Make(int length) {
    const Output x = Placeholder(g_, DT_FLOAT, {-1, width_}, "x");
    const Output n = Placeholder(g_, DT_INT32, {}, "n");
    if (Draw(2)) {
      square_ = GetVariable(g_, "square", {width_, width_}, Noise({width_, width_})).value();
      tall_ = GetVariable(g_, "tall", {2 * width_, width_}, Noise({2 * width_, width_})).value();
      ++num_variables_;
    }
    Values v{{n, Const(g_, 2)}, {Const(g_, 0.5f), ReduceMean(x)}, {Tanh(x)}};
    for (int i = 0; i < length; ++i) AddValue(&v, 0);
    Outputs fetches = {v.ints.back(), v.floats.back(), v.matrices.back()};
    if (Draw(3) == 0) {
      const Output loss = ReduceSum(Square(v.matrices.back())) + v.floats.back();
      const Outputs sources = square_.valid() ? Outputs{x, square_, tall_} : Outputs{x};
      for (const Output& gradient : DenseGradients({loss}, sources))
        if (gradient.valid()) fetches.push_back(gradient);
    }
    TestModel model;
    for (const Output& fetch : fetches)
      if (fetch != n) model.fetches.push_back(fetch.name());
    if (num_variables_ > 0) {
      model.init = GlobalVariablesInitializer(g_).name();
      for (const Variable& c : GlobalVariables(g_)) model.state.push_back(c.read_value().name());
    }
    return model;
  }

 private:
  uint32_t Draw(uint32_t limit) { return static_cast<uint32_t>(random_()) % limit; }
  const Output& Any(const Outputs& values) {
    const uint32_t n = static_cast<uint32_t>(values.size());
    return values[Draw(3) ? n - 1 - Draw(std::min(n, 3u)) : Draw(n)];
  }

  void AddValue(Values* v, int depth) {
    switch (Draw(depth == kDeepest ? 8 : is_function_ ? 12 : 13)) {
      case 0:
      case 1:
        return v->ints.push_back(Int(*v));
      case 2:
      case 3:
        return v->floats.push_back(Float(*v));
      case 4:
      case 5:
      case 6:
        return v->matrices.push_back(Matrix(*v));
      case 7: {  // different kinds
        v->floats.push_back(Draw(2) ? ReduceMean(Any(v->matrices))
                                    : Cast(Any(v->ints), DT_FLOAT) * 0.1f);
        return;
      }
      case 8:
        return Branch(v, depth);
      case 9:
        return CollectingLoop(v, depth);
      case 12:
        return Functions(v);
      default:
        return Loop(v, depth);
    }
  }

  Output Int(const Values& v) {
    const Output x = Any(v.ints), y = Any(v.ints);
    switch (Draw(7)) {
      case 0:
        return FloorMod(x * 3 + y, 11);
      case 1:
        return Minimum(x, y) + 1;
      case 2:
        return Maximum(x - y, 0);
      case 3:
        return Select(x < y, x, FloorMod(y, 5));
      case 4:
        return Cast(Floor(Any(v.floats) * 4.f), DT_INT32);
      case 5:
        return Cast(Any(v.floats) > 0.1f, DT_INT32) + FloorMod(x, 3);
      default:
        return FloorDiv(x + y, 2);
    }
  }

  Output Float(const Values& v) {
    const Output x = Any(v.floats), y = Any(v.floats);
    switch (Draw(8)) {
      case 0:
        return Tanh(x + y);
      case 1:
        return x * 0.5f + y * 0.25f;
      case 2:
        return Maximum(x, y * 0.9f);
      case 3:
        return Sin(x * y);
      case 4:
        return Sqrt(Square(x) + 0.1f);
      case 5:
        return SelectV2(x < y, Tanh(x), y - x);
      case 6:
        return x / (Abs(y) + 1.f);
      default:
        return Tanh(x - 0.25f);
    }
  }

  Output Matrix(const Values& v) {
    const Output x = Any(v.matrices), y = Any(v.matrices);
    switch (Draw(square_.valid() ? 11 : 8)) {
      case 8:
        return Tanh(MatMul(x, square_));
      case 9:  // a recurrent cell
        return Tanh(MatMul(Concat({x, y}, 1), tall_));
      case 10:
        return Tanh(MatMul(x, square_) + y) * Sigmoid(MatMul(y, square_, {.transpose_b = true}));
      case 0:
        return Tanh(x + y);
      case 1:
        return x * Any(v.floats);
      case 2:
        return Relu(x) * 0.5f + Any(v.floats);
      case 3:
        return Tanh(x - ReduceMean(y, {1}, true));
      case 4:
        return Softmax(x) + y * 0.25f;
      case 5:
        return Reverse(x, {1}) * 0.75f;
      case 6:
        return Sigmoid(x * y);
      default:
        return Maximum(x, y) * 0.9f;
    }
  }

  Output Condition(const Values& v) {
    switch (Draw(3)) {
      case 0:
        return Any(v.ints) < Any(v.ints);
      case 1:
        return Any(v.floats) < 0.2f;
      default:
        return Equal(FloorMod(Any(v.ints), 2), 0) | (Any(v.floats) > 0.3f);
    }
  }

  void Branch(Values* v, int depth) {
    const Output condition = Condition(*v);
    const auto branch = [&] {
      Values own = *v;
      for (uint32_t i = Draw(4); i > 0; --i) AddValue(&own, depth + 1);
      if (Draw(4) == 0 && !is_function_) own.floats.push_back(IncrementedCount(own.floats.back()));
      return Outputs{Identity(own.ints.back()), Identity(own.floats.back()),
                     Identity(own.matrices.back())};
    };
    AddValues(Cond(condition, branch, branch), v);
  }

  Initializer Noise(const Shape& shape) {
    const Tensor t = UniformFloats(shape, random_);
    return [this, t](const InitializerArgs&) { return Const(g_, t); };
  }

  // Returns the value of a variable that each iteration increments.
  Output IncrementedCount(const Output& delta) {
    const Variable count = GetVariable(g_, absl::StrCat("count", num_variables_++), {}, Zeros());
    return Tanh(count.AssignAdd(delta * 0.125f));
  }

  void AddValues(const Outputs& made, Values* v) {
    for (const Output& value : made) {
      if (value.dtype() == DT_INT32) {
        v->ints.push_back(value);
      } else {
        (value.shape().rank() == 0 ? v->floats : v->matrices).push_back(value);
      }
    }
  }

  // A loop with a counter and some loop variables; the body's other values come from outside.
  void Loop(Values* v, int depth) {
    Outputs vars = {Const(g_, 0)};
    for (uint32_t i = Draw(3); i > 0; --i) vars.push_back(Any(v->ints));
    for (uint32_t i = Draw(3); i > 0; --i) vars.push_back(Any(v->floats));
    for (uint32_t i = Draw(3); i > 0; --i) vars.push_back(Any(v->matrices));
    const Output limit =
        Draw(2) ? Const(g_, static_cast<int32_t>(Draw(5))) : Minimum(Maximum(Any(v->ints), 0), 4);
    const bool may_end_early = Draw(3) == 0;
    const Output bound = Any(v->floats) + 0.5f;
    const auto condition = [&](const Outputs& own) {
      const Output goes_on = own[0] < limit;
      const Output& last = own.back();
      return may_end_early && last.dtype() == DT_FLOAT && last.shape().rank() == 0
                 ? goes_on & (last < bound)
                 : goes_on;
    };
    const bool counts = Draw(5) == 0 && !is_function_;
    const auto body = [&](const Outputs& own) {
      Values inner = *v;
      AddValues(own, &inner);
      for (uint32_t i = 1 + Draw(5); i > 0; --i) AddValue(&inner, depth + 1);
      if (counts) inner.floats.push_back(IncrementedCount(inner.floats.back()));
      Outputs next = {own[0] + 1};
      for (size_t i = 1; i < own.size(); ++i) {
        const bool is_int = own[i].dtype() == DT_INT32, is_scalar = own[i].shape().rank() == 0;
        const Output value = Any(is_int ? inner.ints : is_scalar ? inner.floats : inner.matrices);
        // Some are exchanged, or stay unchanged.
        next.push_back(Draw(5) ? value : own[i]);
      }
      return next;
    };
    const Outputs last = WhileLoop(condition, body, vars);
    if (!last.empty()) AddValues({last.begin() + 1, last.end()}, v);
  }

  // Stores a matrix of each iteration.
  void CollectingLoop(Values* v, int depth) {
    const auto times = static_cast<int32_t>(1 + Draw(4));
    const TensorArray array(g_, DT_FLOAT, times);
    const auto condition = [&](const Outputs& own) { return own[0] < times; };
    const auto body = [&](const Outputs& own) {
      Values inner = *v;
      inner.matrices.push_back(own[2]);
      for (uint32_t i = 1 + Draw(2); i > 0; --i) AddValue(&inner, depth + 1);
      const Output value = inner.matrices.back();
      return Outputs{own[0] + 1, array.WithFlow(own[1]).Write(own[0], value).flow(), value};
    };
    const Outputs last = WhileLoop(condition, body, {Const(g_, 0), array.flow(), Any(v->matrices)});
    if (last.empty()) return;
    v->matrices.push_back(Tanh(ReduceSum(array.WithFlow(last[1]).Stack(), {0}) * 0.5f));
    v->matrices.push_back(last[2]);
  }

  // Functions of two values of each kind, in calls, branches and loops as TensorFlow 2 builds them.
  void Functions(Values* v) {
    const auto two = [&](const Outputs& values) { return Outputs{Any(values), Any(values)}; };
    Outputs args;
    for (const Outputs* values : {&v->ints, &v->floats, &v->matrices})
      for (const Output& arg : two(*values)) args.push_back(arg);
    switch (Draw(3)) {
      case 0:
        return KeepResults(Call(g_, Function(), args), v);
      case 1: {
        const Output condition = Condition(*v);
        const FunctionRef then_branch = Function(), else_branch = Function();
        return KeepResults(FunctionalIf(condition, args, then_branch, else_branch), v);
      }
      default: {
        args[0] = Const(g_, 0);
        const FunctionRef below = Define([this](Graph& body, const Outputs& own) {
          return Outputs{own[0] < Const(body, static_cast<int32_t>(Draw(4)))};
        });
        const FunctionRef next = Function(/*counts=*/true);
        return KeepResults(FunctionalWhile(args, below, next), v);
      }
    }
  }

  // A function's results have no static shape.
  void KeepResults(const Outputs& results, Values* v) {
    const size_t num_scalars = 4;
    for (size_t i = 0; i < results.size(); ++i)
      AddValues({EnsureShape(results[i], i < num_scalars ? Shape() : Shape({-1, width_}))}, v);
  }

  FunctionRef Function(bool counts = false) {
    const uint32_t seed = Draw(1u << 31), length = 1 + Draw(5);
    return Define([&](Graph& body, const Outputs& own) {
      RandomControlFlow inner(body, seed, width_, /*is_function=*/true);
      Values v{{own[0], own[1]}, {own[2], own[3]}, {own[4], own[5]}};
      for (uint32_t i = 0; i < length; ++i) inner.AddValue(&v, 1);
      const auto last = [](const Outputs& values, size_t back) {
        return Identity(values[values.size() - back]);
      };
      return Outputs{counts ? own[0] + 1 : last(v.ints, 1),
                     last(v.ints, 2),
                     last(v.floats, 1),
                     last(v.floats, 2),
                     last(v.matrices, 1),
                     last(v.matrices, 2)};
    });
  }

  FunctionRef Define(const std::function<Outputs(Graph&, const Outputs&)>& build) {
    Graph body;
    body.set_functions(g_.functions());
    Outputs args;
    for (const DataType type : {DT_INT32, DT_INT32, DT_FLOAT, DT_FLOAT})
      args.push_back(Placeholder(body, type, {}));
    for (int i = 0; i < 2; ++i) args.push_back(Placeholder(body, DT_FLOAT, {-1, width_}));
    const Outputs results = build(body, args);
    g_.Fail(body.status());
    const std::string name = absl::StrCat("f", num_functions_++);
    g_.Fail(DefineFunction(g_, name, body, args, results));
    return {name, nullptr};
  }

  Graph& g_;
  std::mt19937 random_;
  const int64_t width_;
  const bool is_function_;
  Output square_, tall_;  // weights, if there are any
  int num_variables_ = 0, num_functions_ = 0;
};

}  // namespace

TestModel AddRandomControlFlow(Graph& g, uint32_t seed, int length, uint32_t noise) {
  const int64_t width = seed % 4 == 0 ? 48 : 5;
  TestModel model = RandomControlFlow(g, seed, width).Make(length);
  model.feeds = [width, noise](int step, int64_t batch) {
    std::mt19937 random(noise * 1000003u + static_cast<uint32_t>(step));
    return NamedTensors{{"x", UniformFloats({batch, width}, random)},
                        {"n", Tensor::Scalar<int32_t>(step % 5)}};
  };
  return model;
}

}  // namespace weir
