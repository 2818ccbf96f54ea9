// Conditionals and while loops, built as make_flow_goldens.py builds them with TensorFlow.

#include "weir/core/scope.h"
#include "weir/ops/array.h"
#include "weir/ops/cond.h"
#include "weir/ops/math.h"
#include "weir/ops/variables.h"
#include "weir/ops/while_loop.h"
#include "weir/tests/ops/goldens.h"

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

const GoldenProgram kPrograms[] = {
    {"flow_cond_on_variables", CondOnVariables},
    {"flow_cond_in_cond", CondInCond},
    {"flow_while_on_variables", WhileOnVariables},
    {"flow_while_writes", WhileWrites},
    {"flow_while_most_iterations", WhileMostIterations},
    {"flow_while_nested", WhileNested},
    {"flow_while_after", WhileAfter},
    {"flow_variable_in_while", VariableInWhile},
};

INSTANTIATE_TEST_SUITE_P(Flow, GoldenTest, GoldensOf(kPrograms), GoldenName);

}  // namespace
}  // namespace weir
