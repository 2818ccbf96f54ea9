#include "weir/session/model/unfreeze.h"

#include <functional>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/model/freeze.h"
#include "weir/tests/session/lib/saver_testing.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Init;
using testing::Start;
using ::testing::UnorderedElementsAre;

// y = relu(x w + b) * scale.
struct Network {
  Graph g;
  Output x = Placeholder(g, DT_FLOAT, {-1, 2}, "x");
  Variable w = MakeVariable(g, Tensor::Of<float>({2, 2}, {1, 2, 3, 4}), {.name = "net/w"});
  Variable b = MakeVariable(g, Tensor::Vector<float>({1, -1}), {.name = "net/b"});
  Variable scale = MakeVariable(g, Tensor::Vector<float>({2, 3}), {.name = "scale"});
  Output y = Multiply(Relu(Add(MatMul(x, w.value()), b.value())), scale.value(), "y");
};

const Tensor& X() {
  static const auto* const x = new Tensor(Tensor::Of<float>({1, 2}, {1, 2}));
  return *x;
}

std::unique_ptr<Graph> Frozen() {
  Network network;
  Session session = Start(network.g);
  Init(session, network.g);
  return *FreezeGraph(session, {network.y});
}

std::vector<std::string> NamesOf(const Variables& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.op_name());
  return names;
}

TEST(Unfreeze, MakesWeightsVariablesOfTheSameValues) {
  const auto graph = UnfreezeGraph(*Frozen());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(NamesOf(TrainableVariables(**graph)), UnorderedElementsAre("net/w", "net/b"));
  Session session = Start(**graph);
  Init(session, **graph);
  const auto y = session.Run({{"x:0", X()}}, {"y:0"}, {});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT((*y)[0].flat<float>(), ElementsAre(16, 27));
}

TEST(Unfreeze, LetsGradientsReachTheVariables) {
  const auto graph = UnfreezeGraph(*Frozen(), {.patterns = {"net/*", "scale"}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Variables variables = TrainableVariables(**graph);
  ASSERT_THAT(NamesOf(variables), UnorderedElementsAre("net/w", "net/b", "scale"));
  Outputs handles, updates;
  for (const Variable& variable : variables) handles.push_back(variable.handle());
  const Grads gradients = Gradients({*(*graph)->FindOutput("y:0")}, handles);
  for (size_t i = 0; i < variables.size(); ++i)
    updates.push_back(variables[i].AssignSub(gradients[i].dense()));
  Session session = Start(**graph);
  Init(session, **graph);
  const auto updated = session.Run({{*(*graph)->FindOutput("x:0"), X()}}, updates);
  ASSERT_TRUE(updated.ok()) << updated.status();
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto value = (*updated)[i].flat<float>();
    if (variables[i].op_name() == "net/w") {
      EXPECT_THAT(value, ElementsAre(-1, -1, -1, -2));
    } else if (variables[i].op_name() == "net/b") {
      EXPECT_THAT(value, ElementsAre(-1, -4));
    } else {
      EXPECT_THAT(value, ElementsAre(-6, -6));
    }
  }
}

TEST(Unfreeze, RestoresTheReadsOfAFrozenGraph) {
  const auto frozen = Frozen();
  const auto graph = UnfreezeGraph(*frozen);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const auto& node : frozen->nodes()) {
    const Node* const now = (*graph)->FindNode(node->name());
    ASSERT_NE(now, nullptr) << node->name();
    const bool reads =
        node->op_name() == "Identity" && absl::StartsWith(node->input(0).node->name(), "net/");
    EXPECT_EQ(now->op_name() == "ReadVariableOp", reads) << node->name();
  }
}

// A loop of functions, (i, h, w) -> (i + 1, h w, w) while i < 2.
TEST(Unfreeze, FindsTheWeightsThatALoopDoesNotChange) {
  Graph g;
  const auto define = [&](const char* name, const std::function<Outputs(const Outputs&)>& make) {
    Graph body;
    const Outputs args = {Placeholder(body, DT_INT32, {}), Placeholder(body, DT_FLOAT, {1, 2}),
                          Placeholder(body, DT_FLOAT, {2, 2})};
    const absl::Status defined = DefineFunction(g, name, body, args, make(args));
    EXPECT_TRUE(defined.ok()) << defined;
    return FunctionRef{name, nullptr};
  };
  const FunctionRef cond = define("cond", [](const Outputs& v) { return Outputs{Less(v[0], 2)}; });
  const FunctionRef body = define("body", [](const Outputs& v) {
    return Outputs{v[0] + 1, MatMul(v[1], v[2]), Identity(v[2])};
  });
  const Output start = Const<float>(g, Shape({1, 2}), {1, 1}, "start");
  const Output w = Const<float>(g, Shape({2, 2}), {1, 0, 0, 2}, "w");
  const Outputs end = FunctionalWhile({Const(g, 0), start, w}, cond, body, "loop");
  Identity(end[1], "y");
  ASSERT_TRUE(g.status().ok()) << g.status();
  const auto graph = UnfreezeGraph(g);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Variables variables = TrainableVariables(**graph);
  ASSERT_THAT(NamesOf(variables), ElementsAre("w"));
  const Output y = *(*graph)->FindOutput("y:0");
  const Grads gradients = Gradients({y}, {variables[0].handle()});
  Session session = Start(**graph);
  Init(session, **graph);
  const auto values = session.Run({y, gradients[0].dense()});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT((*values)[0].flat<float>(), ElementsAre(1, 4));
  // d sum([1 1] w^2) / dw.
  EXPECT_THAT((*values)[1].flat<float>(), ElementsAre(2, 3, 3, 4));
}

TEST(Unfreeze, OfAGraphWithoutWeightsAsksForPatterns) {
  Graph g;
  Multiply(Placeholder(g, DT_FLOAT), Const(g, Tensor::Vector<float>({1, 2}), "c"));
  const absl::Status none = UnfreezeGraph(g).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound) << none;
  const absl::Status unknown = UnfreezeGraph(g, {.patterns = {"c", "d*"}}).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound) << unknown;
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("a name like 'd*'"));
  EXPECT_TRUE(UnfreezeGraph(g, {.patterns = {"c"}}).ok());
}

}  // namespace
}  // namespace weir
