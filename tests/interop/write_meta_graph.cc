// Trains a small model and leaves it to others: checkpoint, meta graph, and the part of the graph
// in one scope; and a graph of branches and loops. For meta_graph_test.py.

#include <cstdio>

#include "weir/session/weir.h"

namespace weir {
namespace {

// As meta_graph_test.py makes them.
std::pair<Tensor, Tensor> Points() {
  Tensor x(DT_FLOAT, Shape({8, 3})), y(DT_FLOAT, Shape({8, 1}));
  for (int i = 0; i < 8; ++i) {
    float* row = x.data<float>() + 3 * i;
    for (int j = 0; j < 3; ++j) row[j] = static_cast<float>((3 * i + j) % 7 - 3) / 4;
    y.data<float>()[i] = row[0] * row[1] + row[2] / 2;
  }
  return {x, y};
}

absl::Status Write(const std::string& directory, bool resource) {
  Graph g({.use_resource = resource});
  g.set_seed(1);
  const Output x = Placeholder(g, DT_FLOAT, {-1, 3}, "x"),
               y = Placeholder(g, DT_FLOAT, {-1, 1}, "y");
  Output hidden;
  {
    const VariableScope scope(g, "hidden");
    hidden = Tanh(MatMul(x, GetVariable(g, "w", {3, 4})) + GetVariable(g, "b", {4}, Zeros()));
    g.AddToCollection("activations", hidden);
  }
  const Output out = MatMul(hidden, GetVariable(g, "out", {4, 1}));
  const Output loss = ReduceMean(SquaredDifference(out, y));
  const Variable step = CreateGlobalStep(g);
  const Output rate = ExponentialDecay(0.1f, step, 2, 0.9f, {.staircase = true});
  const Operation train = Adam(rate).Minimize(loss, {.global_step = step});
  g.AddToCollection("losses", loss);
  for (const Output& input : {x, y}) g.AddToCollection("inputs", input);
  WEIR_RETURN_IF_ERROR(g.status());

  const auto [xs, ys] = Points();
  const Feeds points = {{x, xs}, {y, ys}};
  WEIR_ASSIGN_OR_RETURN(
      MonitoredSession session,
      MonitoredSession::Create(
          g, {.hooks = {StopAtStep({.last_step = 3}), CheckpointSaver({.directory = directory})}}));
  while (!session.ShouldStop()) WEIR_RETURN_IF_ERROR(session.Run(points, {}, {train}).status());
  WEIR_RETURN_IF_ERROR(session.Close());
  WEIR_RETURN_IF_ERROR(WriteMetaGraph(g, directory + "/hidden.meta", {.export_scope = "hidden"}));

  // What others should see from there on.
  WEIR_ASSIGN_OR_RETURN(MonitoredSession again,
                        MonitoredSession::Create(g, {.checkpoint_dir = directory}));
  for (int i = 0; i < 5; ++i) {
    WEIR_ASSIGN_OR_RETURN(const Tensors values, again.Run(points, {loss}, {train}));
    std::printf("%.9g\n", values[0].scalar<float>());
  }
  return again.Close();
}

// A branch, a loop and what else one can lie in, as meta_graph_test.py builds them too.
absl::Status WriteFlow(const std::string& directory, bool resource) {
  Graph g({.use_resource = resource});
  const Variable v = MakeVariable(g, 1.5, {.name = "v"});
  const Output x = Placeholder(g, DT_FLOAT, {}, "x");
  const Output zero = Const(g, 0, "zero");
  const Output loop = WhileLoop(
      [](const Outputs& l) { return l[0] < 3; },
      [&](const Outputs& l) {
        const Output next = l[0] + 1;
        return Outputs{next, Cond(
                                 l[1] < 4.f, [&] { return l[1] * v; }, [&] { return l[1] + 1.f; })};
      },
      {zero, x}, {.name = "loop"})[1];
  const LoopBodyFn times_x = [&](const Outputs& l) {
    const Output next = l[0] + 1;
    return Outputs{next, l[1] * x};
  };
  const Output nested = WhileLoop(
      [](const Outputs& l) { return l[0] < 2; },
      [&](const Outputs& l) {
        const Output next = l[0] + 1;
        return Outputs{
            next, WhileLoop([](const Outputs& m) { return m[0] < 2; }, times_x, {zero, l[1]})[1]};
      },
      {zero, x}, {.maximum_iterations = 7, .name = "nested"})[1];
  const Output one = Const(g, 1.f, "one"), five = Const(g, 5.f, "five");
  const Output branch = Cond(
      x > one,
      [&] {
        return Cond(
            x > five, [&] { return Identity(x); }, [&] { return x * v; });
      },
      [&] { return x + one; }, "branch");
  const Output y = AddN({loop, nested, branch}, "y");
  for (const Output& each : {x, y}) g.AddToCollection("ends", each);
  WEIR_RETURN_IF_ERROR(g.status());
  return WriteMetaGraph(g, directory + "/flow.meta");
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: write_meta_graph DIRECTORY ref|resource\n");
    return 2;
  }
  const bool resource = std::string(argv[2]) == "resource";
  absl::Status status = weir::Write(argv[1], resource);
  if (status.ok()) status = weir::WriteFlow(argv[1], resource);
  if (!status.ok()) std::fprintf(stderr, "write_meta_graph: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
