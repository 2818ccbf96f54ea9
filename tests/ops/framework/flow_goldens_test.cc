// Conditionals and while loops, built as make_flow_goldens.py builds them with TensorFlow.

#include "weir/core/graph/scope.h"
#include "weir/ops/containers/tensor_array.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variable_scope.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/dynamic_rnn.h"
#include "weir/tests/ops/lib/goldens.h"

namespace weir {
namespace {

void CondOnVariables(Graph& g) {
  const Variable v = MakeVariable(g, {1.f, 2.f}, {.name = "v"});
  const Output p = Placeholder(g, DT_BOOL, {}, "p"), x = Placeholder(g, DT_FLOAT, {2}, "x");
  const Output y = Cond(
      p, [&] { return v + x; }, [&] { return Multiply(x, 2.f); });
  Identity(y, "y");
  Cond(
      p,
      [&] {
        return Identity(v.Assign({3.f, 4.f}));
      },
      [&] { return Identity(v.value()); }, "write");
}

void CondInCond(Graph& g) {
  const Variable v = MakeVariable(g, 1.f, {.name = "v"});
  const Output p = Placeholder(g, DT_BOOL, {}, "p"), q = Placeholder(g, DT_BOOL, {}, "q");
  const Output x = Placeholder(g, DT_FLOAT, {}, "x");
  Cond(
      p,
      [&] {
        return Cond(
            q, [&] { return x + v; }, [&] { return x; });
      },
      [&] { return Const(g, 7.f); }, "outer");
}

void WhileOnVariables(Graph& g) {
  const Variable v = MakeVariable(g, {1.f, 2.f}, {.name = "v"});
  const Output n = Placeholder(g, DT_INT32, {}, "n");
  const Output zero = Const(g, 0);
  const Outputs r = WhileLoop([&](const Outputs& l) { return Less(l[0], n); },
                              [&](const Outputs& l) {
                                return Outputs{l[0] + 1, l[1] * v};
                              },
                              {zero, v.value()});
  Identity(r[1], "x");
}

void WhileWrites(Graph& g) {
  const Variable v = MakeVariable(g, 1.f, {.name = "v"});
  const Output zero = Const(g, 0), none = Const(g, 0.f);
  const Outputs r = WhileLoop([](const Outputs& l) { return l[0] < 3; },
                              [&](const Outputs& l) {
                                const Output next = l[0] + 1;
                                return Outputs{next, l[1] + Identity(v.AssignAdd(2.f))};
                              },
                              {zero, none}, {.name = "loop"});
  Identity(r[1], "y");
}

void WhileMostIterations(Graph& g) {
  const Output x = Placeholder(g, DT_FLOAT, {-1, 2}, "x"), y = Placeholder(g, DT_FLOAT, {}, "y");
  WhileLoop([&](const Outputs&) { return Const(g, true); },
            [](const Outputs& l) {
              return Outputs{Concat({l[0], l[0]}, 0), l[1]};
            },
            {x, y},
            {.shape_invariants = std::vector<Shape>{{-1, 2}, {}},
             .parallel_iterations = 3,
             .maximum_iterations = 4});
}

void WhileNested(Graph& g) {
  const Variable v = MakeVariable(g, 2.f, {.name = "v"});
  const Output zero = Const(g, 0), one = Const(g, 1.f);
  WhileLoop([](const Outputs& l) { return l[0] < 5; },
            [&](const Outputs& l) {
              const Outputs inner = WhileLoop([&](const Outputs& m) { return m[0] < l[0]; },
                                              [&](const Outputs& m) {
                                                const Output next = m[0] + 1;
                                                return Outputs{next, m[1] * v};
                                              },
                                              {Const(g, 0), l[1]});
              const Output next = l[0] + 1;
              return Outputs{next, Cond(
                                       Less(inner[1], 10.f), [&] { return inner[1] + v; },
                                       [&] { return -inner[1]; })};
            },
            {zero, one}, {.name = "outer"});
}

void WhileAfter(Graph& g) {
  const Variable v = MakeVariable(g, 2.f, {.name = "v"});
  const Output set = v.Assign(5.f, {.read_value = false});
  Outputs r;
  {
    const ControlDependencies after(g, {set});
    r = WhileLoop([](const Outputs& l) { return l[0] < 3; },
                  [](const Outputs& l) { return Outputs{l[0] + 1}; }, {Const(g, 0)},
                  {.name = "after"});
  }
  Identity(r[0], "y");
}

void VariableInWhile(Graph& g) {
  const Output zero = Const(g, 0);
  WhileLoop([](const Outputs& l) { return l[0] < 5; },
            [&](const Outputs& l) {
              const Variable w = GetVariable(g, "w", {2}, Ones());
              const Output next = l[0] + 1;
              return Outputs{next, l[1] + w};
            },
            {zero, Zeros(g, {2})});
}

// Adds a loop with n iterations and these variables.
Outputs Counted(const Output& zero, const std::function<Output(const Output&)>& below,
                const LoopBodyFn& body, const Outputs& vars, const std::string& name = "while") {
  Outputs all = {zero};
  all.insert(all.end(), vars.begin(), vars.end());
  const Outputs r = WhileLoop([&](const Outputs& l) { return below(l[0]); },
                              [&](const Outputs& l) {
                                Outputs next = {l[0] + 1};
                                for (const Output& o : body({l.begin() + 1, l.end()}))
                                  next.push_back(o);
                                return next;
                              },
                              all, {.name = name});
  return r.empty() ? r : Outputs(r.begin() + 1, r.end());
}
Outputs Counted(Graph& g, int n, const LoopBodyFn& body, const Outputs& vars,
                const std::string& name = "while") {
  return Counted(
      Const(g, 0), [n](const Output& i) { return i < n; }, body, vars, name);
}

void CondGradient(Graph& g) {
  const Variable v = MakeVariable(g, {1.f, 2.f}, {.name = "v"});
  const Output p = Placeholder(g, DT_BOOL, {}, "p"), x = Placeholder(g, DT_FLOAT, {2}, "x");
  const Output y = Cond(
      p, [&] { return v * x; }, [&] { return Exp(x); });
  Gradients({y}, {x, v});
}

void WhileGradient(Graph& g) {
  const Variable v = MakeVariable(g, {1.f, 2.f}, {.name = "v"});
  const Output x = Placeholder(g, DT_FLOAT, {2}, "x");
  const Outputs y = Counted(g, 3, [&](const Outputs& l) { return Outputs{l[0] * v}; }, {x});
  Gradients(y, {x, v});
}

void WhileGradientOfUnknownShape(Graph& g) {
  const Output n = Placeholder(g, DT_INT32, {}, "n");
  const Output x = Placeholder(g, DT_FLOAT, {-1, 2}, "x"), w = Placeholder(g, DT_FLOAT, {-1}, "w");
  const Outputs r = Counted(
      Const(g, 0), [&](const Output& i) { return i < n; },
      [&](const Outputs& l) {
        const Output a = Tanh(l[0]) * w;
        return Outputs{a, l[1] + l[0]};
      },
      {x, x});
  Gradients({r[1]}, {x, w});
}

void WhileGradientOfOneVariable(Graph& g) {
  const Output x = Placeholder(g, DT_FLOAT, {2}, "x"), y = Placeholder(g, DT_FLOAT, {2}, "y");
  const Output start = Const(g, {1.f, 2.f}), zero = Const(g, 0);
  const Outputs r = Counted(
      zero, [](const Output& i) { return i < 4; },
      [](const Outputs& l) {
        const Output a = l[0] * l[1];
        return Outputs{a, Exp(l[2]), l[2]};
      },
      {x, y, start});
  Gradients({r[0]}, {x, y});
}

void WhileNestedGradient(Graph& g) {
  const Variable v = MakeVariable(g, 2.f, {.name = "v"});
  const Output x = Placeholder(g, DT_FLOAT, {}, "x");
  const Outputs y = Counted(
      g, 3,
      [&](const Outputs& l) {
        const Output start = Exp(l[0]);
        const Outputs b = Counted(g, 2,
                                  [&](const Outputs& m) {
                                    const Output ba = m[0] * l[0];
                                    return Outputs{ba * v};
                                  },
                                  {start});
        return Outputs{b[0] + l[0]};
      },
      {x}, "outer");
  Gradients(y, {x, v});
}

void CondInWhileGradient(Graph& g) {
  const Variable v = MakeVariable(g, 2.f, {.name = "v"});
  const Output x = Placeholder(g, DT_FLOAT, {}, "x");
  const Outputs y =
      Counted(g, 3,
              [&](const Outputs& l) {
                return Outputs{Cond(
                    Less(l[0], 4.f), [&] { return l[0] * v; }, [&] { return Exp(l[0]); })};
              },
              {x});
  Gradients(y, {x, v});
}

void WhileInCondGradient(Graph& g) {
  const Output p = Placeholder(g, DT_BOOL, {}, "p"), x = Placeholder(g, DT_FLOAT, {3}, "x");
  const Output y = Cond(
      p, [&] { return Counted(g, 3, [&](const Outputs& l) { return Outputs{l[0] * x}; }, {x})[0]; },
      [&] { return x; });
  Gradients({y}, {x});
}

void WhileGathersGradient(Graph& g) {
  const Variable v = MakeVariable(g, Tensor::Of<float>({2, 2}, {1, 2, 3, 4}), {.name = "v"});
  const Output ones = Ones(g, {2, 2}), zero = Const(g, 0);
  const Outputs y = Counted(
      zero, [](const Output& i) { return i < 3; },
      [&](const Outputs& l) {
        return Outputs{l[0] * Gather(v.value(), {1, 0})};
      },
      {ones});
  Gradients(y, {v});
}

void TensorArrays(Graph& g) {
  const Output x = Placeholder(g, DT_FLOAT, {-1, 2}, "x");
  const TensorArray rows = TensorArray(g, DT_FLOAT, 3, {.clear_after_read = false}).Unstack(x);
  TensorArray out(g, DT_FLOAT, 0,
                  {.dynamic_size = true, .element_shape = Shape({2}), .name = "out"});
  out = out.Write(0, rows.Read(2));
  out = out.Write(1, rows.Read(Const(g, 0)));
  Identity(out.Stack(), "stacked");
  Identity(out.Size(), "size");
  out.Gather({1, 0});
  out.Close();
  const TensorArray parts = TensorArray(g, DT_FLOAT, 2, {.infer_shape = false}).Split(x, {1, 2});
  Gradients({Exp(parts.Concat())}, {x});
}

void TensorArrayInWhile(Graph& g) {
  const Output x = Placeholder(g, DT_FLOAT, {4, 2}, "x");
  const Variable v = MakeVariable(g, {1.f, 2.f}, {.name = "v"});
  const TensorArray rows = TensorArray(g, DT_FLOAT, 4).Unstack(x);
  const TensorArray out(g, DT_FLOAT, 4);
  const Output zero = Const(g, 0), ones = Ones(g, {2});
  const Outputs r = WhileLoop([](const Outputs& l) { return l[0] < 4; },
                              [&](const Outputs& l) {
                                const Output b = l[1] * rows.Read(l[0]) + v;
                                const Output next = l[0] + 1;
                                return Outputs{next, b, out.WithFlow(l[2]).Write(l[0], b).flow()};
                              },
                              {zero, ones, out.flow()});
  Gradients({out.WithFlow(r[2]).Stack()}, {x, v});
}

RnnStep TanhCell(const Output& input, const Outputs& state) {
  const VariableScope scope(input.graph(), "cell");
  const Variable w = GetVariable(input.graph(), "w", {2, 3});
  const Output y = Tanh(MatMul(input, w.value()) + state[0]);
  return {y, {y}};
}

void Rnn(Graph& g) {
  const Output x = Placeholder(g, DT_FLOAT, {4, 5, 2}, "x");
  const Output z = Placeholder(g, DT_FLOAT, {4, 3}, "z");
  const RnnStep r = DynamicRnn(TanhCell, x, {z});
  Identity(r.output, "y");
  Gradients({r.state[0]}, {x});
}

void RnnOfUnknownLengths(Graph& g) {
  const Output x = Placeholder(g, DT_FLOAT, {-1, -1, 2}, "x");
  const Output z = Placeholder(g, DT_FLOAT, {-1, 3}, "z");
  const Output n = Placeholder(g, DT_INT64, {-1}, "n");
  Identity(DynamicRnn(TanhCell, x, {z}, {.sequence_length = n}).output, "y");
}

void RnnTimeMajor(Graph& g) {
  const Output x = Placeholder(g, DT_FLOAT, {5, 4, 2}, "x");
  const Output z = Placeholder(g, DT_FLOAT, {4, 3}, "z");
  const Output n = Placeholder(g, DT_INT32, {4}, "n");
  const DynamicRnnOptions options = {.sequence_length = n, .time_major = true, .name = "net"};
  Identity(DynamicRnn(TanhCell, x, {z}, options).output, "y");
}

const GoldenProgram kPrograms[] = {
    {"flow_cond_on_variables", CondOnVariables},
    {"flow_cond_in_cond", CondInCond},
    {"flow_while_on_variables", WhileOnVariables},
    {"flow_while_writes", WhileWrites},
    {"flow_while_most_iterations", WhileMostIterations},
    {"flow_while_nested", WhileNested},
    {"flow_while_after", WhileAfter},
    {"flow_variable_in_while", VariableInWhile},
    {"flow_cond_gradient", CondGradient},
    {"flow_while_gradient", WhileGradient},
    {"flow_while_gradient_of_unknown_shape", WhileGradientOfUnknownShape},
    {"flow_while_gradient_of_one_variable", WhileGradientOfOneVariable},
    {"flow_while_nested_gradient", WhileNestedGradient},
    {"flow_cond_in_while_gradient", CondInWhileGradient},
    {"flow_while_in_cond_gradient", WhileInCondGradient},
    {"flow_while_gathers_gradient", WhileGathersGradient},
    {"flow_tensor_array", TensorArrays},
    {"flow_tensor_array_in_while", TensorArrayInWhile},
    {"flow_rnn", Rnn},
    {"flow_rnn_of_unknown_lengths", RnnOfUnknownLengths},
    {"flow_rnn_time_major", RnnTimeMajor},
};

INSTANTIATE_TEST_SUITE_P(Flow, GoldenTest, GoldensOf(kPrograms), GoldenName);

}  // namespace
}  // namespace weir
