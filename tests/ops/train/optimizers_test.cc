#include "weir/ops/train/optimizers.h"

#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"
#include "weir/tests/evaluate.h"

namespace weir {
namespace {

// ---- graphs, node by node, as TensorFlow builds them (make_optimizer_goldens.py)

std::string InputName(const Output& in) { return in.index == 0 ? in.node->name() : in.name(); }

bool DependsOn(const Node* node, const Node* control, const Node* skip) {
  std::set<const Node*> seen;
  std::vector<const Node*> stack;
  const auto push_inputs = [&](const Node* n, bool first) {
    for (const Output& in : n->inputs()) stack.push_back(in.node);
    for (const Node* c : n->control_inputs()) {
      if (!first || c != skip) stack.push_back(c);
    }
  };
  push_inputs(node, true);
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    if (n == control) return true;
    if (seen.insert(n).second) push_inputs(n, false);
  }
  return false;
}

std::string AttrText(const Node& node, absl::string_view name) {
  const AttrValue* v = node.FindAttr(name);
  if (v == nullptr) return "";
  if (const auto* t = v->get_if<DataType>()) return DataTypeName(*t);
  if (const auto* b = v->get_if<bool>()) return *b ? "true" : "false";
  if (const auto* s = v->get_if<std::string>()) return *s;
  if (const auto* list = v->get_if<std::vector<std::string>>())
    return absl::StrCat("[", absl::StrJoin(*list, ","), "]");
  if (const auto* shape = v->get_if<Shape>())
    return absl::StrCat("[", absl::StrJoin(shape->dims(), ","), "]");
  return "";
}

std::string FirstValue(const Tensor& t) {
  if (t.num_elements() == 0) return "";
  double value = 0;
  DispatchType(t.dtype(), List<float, double, int32_t, int64_t>{},
               [&]<class T>() { value = static_cast<double>(*t.data<T>()); });
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

std::string Line(const Node& node) {
  std::vector<std::string> inputs, controls, attrs;
  for (const Output& in : node.inputs()) inputs.push_back(InputName(in));
  for (const Node* c : node.control_inputs()) {
    if (!DependsOn(&node, c, c)) controls.push_back("^" + c->name());
  }
  std::sort(controls.begin(), controls.end());
  inputs.insert(inputs.end(), controls.begin(), controls.end());
  for (const char* name : {"T", "dtype", "shape", "use_locking", "use_nesterov", "validate_shape",
                           "shared_name", "_class"}) {
    if (absl::string_view(name) == "_class" && node.op_name() == "ReadVariableOp") continue;
    const std::string text = AttrText(node, name);
    if (!text.empty()) attrs.push_back(absl::StrCat(name, "=", text));
  }
  std::string value;
  if (node.op_name() == "Const")
    value = absl::StrCat(" value=", FirstValue(node.attr<Tensor>("value")));
  return absl::StrCat(node.name(), " = ", node.op_name(), "(", absl::StrJoin(inputs, ", "), ") ",
                      absl::StrJoin(attrs, " "), value);
}

std::vector<std::string> Golden(const std::string& section) {
  std::ifstream file("tests/ops/golden/optimizers.txt");
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "# ")) {
      inside = line == "# " + section;
    } else if (inside) {
      lines.push_back(line);
    }
  }
  return lines;
}

// Nodes are compared by name; the order in which they were created is not part of a graph's
// meaning.
void ExpectGolden(const Graph& graph, const std::string& section) {
  ASSERT_TRUE(graph.status().ok()) << graph.status();
  const std::vector<std::string> golden = Golden(section);
  ASSERT_FALSE(golden.empty()) << section;
  std::set<std::string> expected(golden.begin(), golden.end()), actual;
  for (const auto& node : graph.nodes()) actual.insert(Line(*node));
  for (const std::string& line : expected)
    EXPECT_TRUE(actual.contains(line)) << "missing: " << line;
  for (const std::string& line : actual)
    EXPECT_TRUE(expected.contains(line)) << "extra:   " << line;
}

Variable Step(Graph& g) {
  return MakeVariable(g, int64_t{0}, {.name = "step", .dtype = DT_INT64, .trainable = false});
}

std::unique_ptr<Optimizer> Make(const std::string& name, Graph& g) {
  if (name == "GradientDescent") return std::make_unique<GradientDescent>(0.1);
  if (name == "Momentum") return std::make_unique<Momentum>(0.1, 0.9);
  if (name == "Nesterov") {
    return std::make_unique<Momentum>(0.1, 0.9,
                                      MomentumOptions{.use_nesterov = true, .use_locking = true});
  }
  if (name == "Adam") return std::make_unique<Adam>(0.01);
  if (name == "Adagrad") return std::make_unique<Adagrad>(0.1);
  if (name == "AdagradDA") {
    return std::make_unique<AdagradDA>(0.1, Step(g),
                                       AdagradDAOptions{.l1_regularization_strength = 0.01});
  }
  if (name == "Adadelta") return std::make_unique<Adadelta>(AdadeltaOptions{.learning_rate = 0.1});
  if (name == "RMSProp") return std::make_unique<RMSProp>(0.1, RMSPropOptions{.momentum = 0.5});
  if (name == "CenteredRMSProp")
    return std::make_unique<RMSProp>(0.1, RMSPropOptions{.centered = true});
  if (name == "Ftrl")
    return std::make_unique<Ftrl>(0.1, FtrlOptions{.l1_regularization_strength = 0.01});
  if (name == "FtrlShrinkage") {
    return std::make_unique<Ftrl>(0.1, FtrlOptions{.l2_shrinkage_regularization_strength = 0.01});
  }
  if (name == "ProximalGradientDescent") {
    return std::make_unique<ProximalGradientDescent>(
        0.1, ProximalOptions{.l1_regularization_strength = 0.01});
  }
  return std::make_unique<ProximalAdagrad>(0.1);
}

struct GraphCase {
  std::string optimizer;
  bool resource;
  DataType dtype = DT_FLOAT;
  bool step = false;
};

std::string Section(const GraphCase& c) {
  return absl::StrCat(c.optimizer, c.resource ? " resource " : " ref ", DataTypeName(c.dtype),
                      c.step ? " step" : "");
}

std::vector<GraphCase> GraphCases() {
  std::vector<GraphCase> cases;
  for (const bool resource : {false, true}) {
    for (const char* name : {"GradientDescent", "Nesterov", "Adagrad", "AdagradDA", "Adadelta",
                             "RMSProp", "CenteredRMSProp", "Ftrl", "FtrlShrinkage",
                             "ProximalGradientDescent", "ProximalAdagrad"}) {
      cases.push_back({name, resource});
    }
    for (const char* name : {"Momentum", "Adam"}) cases.push_back({name, resource, DT_FLOAT, true});
    for (const char* name : {"GradientDescent", "Adam", "RMSProp"})
      cases.push_back({name, resource, DT_DOUBLE});
  }
  return cases;
}

Variable ZeroVariable(Graph& g, absl::string_view name, const Shape& shape,
                      DataType dtype = DT_FLOAT) {
  return GetVariable(g, name, shape, {.initializer = Zeros(), .dtype = dtype});
}

class OptimizerGraphTest : public testing::TestWithParam<GraphCase> {};

TEST_P(OptimizerGraphTest, MatchesTensorFlowNodeByNode) {
  const GraphCase& c = GetParam();
  Graph g(GraphOptions{.use_resource = c.resource});
  const Variable w = ZeroVariable(g, "w", {3, 2}, c.dtype);
  const Variable e = ZeroVariable(g, "e", {5, 3}, c.dtype);
  const Output gw = Placeholder(g, c.dtype, {3, 2}, "gw");
  const Output rows = Placeholder(g, c.dtype, {4, 3}, "rows");
  const Output ids = Placeholder(g, DT_INT32, {4}, "ids");
  const Variable step = c.step ? Step(g) : Variable();
  const std::unique_ptr<Optimizer> optimizer = Make(c.optimizer, g);
  const Output shape = Const<int32_t>(g, {5, 3}, "e_shape");
  optimizer->ApplyGradients({{Grad(gw), w}, {Grad(IndexedSlices{rows, ids, shape}), e}},
                            {.global_step = step});
  ExpectGolden(g, Section(c));
}

void PrintTo(const GraphCase& c, std::ostream* out) { *out << Section(c); }

INSTANTIATE_TEST_SUITE_P(All, OptimizerGraphTest, testing::ValuesIn(GraphCases()),
                         [](const auto& info) {
                           std::string name = Section(info.param);
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST(Optimizer, MinimizeBuildsTheSameGraphAsTensorFlow) {
  for (const bool resource : {false, true}) {
    Graph g(GraphOptions{.use_resource = resource});
    const Output x = Placeholder(g, DT_FLOAT, {4, 3}, "x");
    const Variable w = ZeroVariable(g, "w", {3, 2});
    const Variable b = ZeroVariable(g, "b", {2});
    const Output y = BiasAdd(MatMul(x, w), b);
    const Output loss = ReduceSum(Tanh(y) * y);
    GradientDescent(0.1).Minimize(loss);
    ExpectGolden(g, resource ? "minimize resource" : "minimize ref");
  }
}

// ---- values

// Compares one step from known values with the formula in double, then the same step in sparse
// form.
TEST(Optimizer, AdamFollowsThePaper) {
  for (const bool resource : {false, true}) {
    Graph g(GraphOptions{.use_resource = resource});
    const Variable w = GetVariable(g, "w", {.initializer = Initializer({1.0, 2.0})});
    const Output grad = Const<float>(g, {0.5f, -0.25f});
    const Operation train = Adam(0.1).ApplyGradients({{Grad(grad), w}});
    const Operation init = GlobalVariablesInitializer(g);
    ASSERT_TRUE(g.status().ok()) << g.status();
    ResourceMap resources;
    ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
    double value[] = {1, 2}, m[] = {0, 0}, v[] = {0, 0};
    const double gradient[] = {0.5, -0.25};
    for (int t = 1; t <= 3; ++t) {
      ASSERT_TRUE(EvaluateTargets(g, {train}, &resources).ok());
      for (int i = 0; i < 2; ++i) {
        m[i] = 0.9 * m[i] + 0.1 * gradient[i];
        v[i] = 0.999 * v[i] + 0.001 * gradient[i] * gradient[i];
        value[i] -= 0.1 * (m[i] / (1 - std::pow(0.9, t))) /
                    (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8);
      }
    }
    const auto result = Evaluate(g, {w.value()}, &resources);
    ASSERT_TRUE(result.ok()) << result.status();
    for (int i = 0; i < 2; ++i) EXPECT_NEAR((*result)[0].flat<float>()[i], value[i], 2e-5);
  }
}

TEST(Optimizer, SparseAndDenseUpdatesAgreeOnEveryRow) {
  for (const char* name : {"GradientDescent", "Momentum", "Nesterov", "Adagrad", "AdagradDA",
                           "Adadelta", "RMSProp", "CenteredRMSProp", "Ftrl", "FtrlShrinkage",
                           "ProximalGradientDescent", "ProximalAdagrad", "Adam"}) {
    for (const bool resource : {false, true}) {
      Graph g(GraphOptions{.use_resource = resource});
      const Tensor start = Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
      const Variable dense = GetVariable(g, "dense", {.initializer = Initializer(start)});
      const Variable sparse = GetVariable(g, "sparse", {.initializer = Initializer(start)});
      const Output whole = Const<float>(g, {3, 2}, {0.3f, -0.2f, 0.5f, 0.1f, -0.4f, 0.6f});
      // The same gradient as IndexedSlices, out of order, with row 1 in two parts.
      const Output rows =
          Const<float>(g, {4, 2}, {-0.4f, 0.6f, 0.2f, 0.4f, 0.3f, -0.2f, 0.3f, -0.3f});
      const Output ids = Const<int32_t>(g, {2, 1, 0, 1});
      const Output shape = Const<int32_t>(g, {3, 2});
      const std::unique_ptr<Optimizer> optimizer = Make(name, g);
      const Operation train = optimizer->ApplyGradients(
          {{Grad(whole), dense}, {Grad(IndexedSlices{rows, ids, shape}), sparse}});
      const Operation init = GlobalVariablesInitializer(g);
      ASSERT_TRUE(g.status().ok()) << g.status();
      ResourceMap resources;
      ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
      for (int step = 0; step < 3; ++step) {
        const absl::Status ran = EvaluateTargets(g, {train}, &resources);
        ASSERT_TRUE(ran.ok()) << name << ran;
      }
      const auto result = Evaluate(g, {dense.value(), sparse.value()}, &resources);
      ASSERT_TRUE(result.ok()) << result.status();
      for (int i = 0; i < 6; ++i) {
        const float a = (*result)[0].flat<float>()[i], b = (*result)[1].flat<float>()[i];
        EXPECT_NEAR(a, b, 1e-5 * std::max(1.f, std::abs(a))) << name << " element " << i;
        EXPECT_NE(a, start.flat<float>()[i]) << name << " did not change element " << i;
      }
    }
  }
}

TEST(Optimizer, AdamWAppliesTheDecayBeforeTheStep) {
  Graph g;
  const Variable w = GetVariable(g, "w", {.initializer = Initializer({2.0})});
  const Variable free = GetVariable(g, "free", {.initializer = Initializer({2.0})});
  const Output grad = Const<float>(g, {0.f});
  const Operation train = AdamW(0.25, {.decay_var_list = Variables{w}})
                              .ApplyGradients({{Grad(grad), w}, {Grad(grad), free}});
  const Operation init = GlobalVariablesInitializer(g);
  ASSERT_TRUE(g.status().ok()) << g.status();
  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
  ASSERT_TRUE(EvaluateTargets(g, {train}, &resources).ok());
  const auto result = Evaluate(g, {w.value(), free.value()}, &resources);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FLOAT_EQ((*result)[0].flat<float>()[0], 1.5f);
  EXPECT_FLOAT_EQ((*result)[1].flat<float>()[0], 2.f);
}

TEST(Optimizer, AppliesTheConstraintAfterTheUpdate) {
  for (const bool resource : {false, true}) {
    Graph g(GraphOptions{.use_resource = resource});
    const Variable w = GetVariable(
        g, "w",
        {.initializer = Initializer({1.0, -1.0}), .constraint = [](Output x) { return Relu(x); }});
    const Operation train =
        GradientDescent(1.0).ApplyGradients({{Grad(Const<float>(g, {0.25f, 0.f})), w}});
    const Operation init = GlobalVariablesInitializer(g);
    ASSERT_TRUE(g.status().ok()) << g.status();
    ResourceMap resources;
    ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
    ASSERT_TRUE(EvaluateTargets(g, {train}, &resources).ok());
    const auto result = Evaluate(g, {w.value()}, &resources);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FLOAT_EQ((*result)[0].flat<float>()[0], 0.75f);
    EXPECT_FLOAT_EQ((*result)[0].flat<float>()[1], 0.f);
  }
}

TEST(Optimizer, CountsTheGlobalStepAfterTheUpdate) {
  Graph g;
  const Variable w = GetVariable(g, "w", {.initializer = Initializer({1.0})});
  const Variable step = Step(g);
  const Operation train =
      GradientDescent(1.0).Minimize(ReduceSum(w.value()), {.global_step = step});
  const Operation init = GlobalVariablesInitializer(g);
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_EQ(train.name(), "GradientDescent");
  EXPECT_EQ(g.collection_as<Operation>(collections::kTrainOp).size(), 1u);
  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
  ASSERT_TRUE(EvaluateTargets(g, {train}, &resources).ok());
  const auto result = Evaluate(g, {w.value(), step.value()}, &resources);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ((*result)[0].flat<float>()[0], 0.f);
  EXPECT_EQ((*result)[1].scalar<int64_t>(), 1);
}

TEST(Optimizer, SlotsAreFoundByNameAndSharedByASecondUse) {
  Graph g;
  const Variable w = GetVariable(g, "w", {2}, {.initializer = Zeros()});
  const Output grad = Const<float>(g, {1.f, 1.f});
  Adam adam(0.1);
  adam.ApplyGradients({{Grad(grad), w}});
  adam.ApplyGradients({{Grad(grad), w}});
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_EQ(adam.GetSlotNames(), (std::vector<std::string>{"m", "v"}));
  EXPECT_EQ(adam.GetSlot(w, "m").name(), "w/Adam:0");
  EXPECT_EQ(adam.GetSlot(w, "v").name(), "w/Adam_1:0");
  EXPECT_FALSE(adam.GetSlot(w, "momentum").valid());
  EXPECT_FALSE(adam.GetSlot(w, "m").trainable());
  EXPECT_EQ(adam.variables(g).size(), 4u);
}

// ---- errors

TEST(Optimizer, WithoutVariablesIsAnError) {
  Graph g;
  GradientDescent(0.1).Minimize(Const(g, 1.f));
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(g.status().message(), "No variables to optimize")) << g.status();
}

TEST(Optimizer, WithoutAnyGradientNamesVariablesAndLoss) {
  Graph g;
  GetVariable(g, "lonely", {2}, {.initializer = Zeros()});
  const Output loss = Const(g, 1.f, "loss");
  EXPECT_FALSE(GradientDescent(0.1).Minimize(loss).valid());
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(g.status().message(), "lonely")) << g.status();
  EXPECT_TRUE(absl::StrContains(g.status().message(), "loss:0")) << g.status();
}

TEST(Optimizer, RejectsAnIntegerLoss) {
  Graph g;
  GetVariable(g, "w", {2}, {.initializer = Zeros()});
  GradientDescent(0.1).Minimize(Const(g, int32_t{1}, "count"));
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(g.status().message(), "count:0")) << g.status();
}

TEST(Optimizer, RejectsASparseGradientOfAConstrainedVariable) {
  Graph g;
  const Variable w = GetVariable(
      g, "w", {4, 1}, {.initializer = Zeros(), .constraint = [](Output x) { return x; }});
  GradientDescent(0.1).Minimize(ReduceSum(w.SparseRead(Const<int32_t>(g, {1, 1}))));
  EXPECT_EQ(g.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Optimizer, StepNamesAnUninitializedVariable) {
  for (const bool resource : {false, true}) {
    Graph g(GraphOptions{.use_resource = resource});
    const Variable w = GetVariable(g, "forgotten", {2}, {.initializer = Zeros()});
    const Operation train =
        GradientDescent(0.1).ApplyGradients({{Grad(Const<float>(g, {1.f, 1.f})), w}});
    ResourceMap resources;
    const absl::Status ran = EvaluateTargets(g, {train}, &resources);
    EXPECT_EQ(ran.code(), absl::StatusCode::kFailedPrecondition) << ran;
    EXPECT_TRUE(absl::StrContains(ran.message(), "forgotten")) << ran;
  }
}

// Otherwise a network that has learned its data would train at a third of its speed.
TEST(Optimizer, FullyDecayedMomentsAreZero) {
#if !defined(__SSE__)
  GTEST_SKIP() << "subnormal numbers are flushed on x86 only";
#endif
  Graph g;
  const Output var = VarHandleOp(g, DT_FLOAT, {2}, {.name = "var"});
  const Output accum = VarHandleOp(g, DT_FLOAT, {2}, {.name = "accum"});
  const Operation init =
      Group(g, {AssignVariableOp(var, Const(g, Tensor::Vector<float>({1, 2}))),
                AssignVariableOp(accum, Const(g, Tensor::Vector<float>({1e-40f, 0.5f})))});
  const Operation update = NodeBuilder(g, "ResourceApplyMomentum")
                               .Input(var)
                               .Input(accum)
                               .Input(Const(g, 0.1f))
                               .Input(Const(g, Tensor::Vector<float>({0, 0})))
                               .Input(Const(g, 0.5f))
                               .Build();
  const Output read = ReadVariableOp(accum, DT_FLOAT);
  absl::StatusOr<Session> session = Session::Create(g);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run(Feeds{}, {}, {init}).ok());
  ASSERT_TRUE(session->Run(Feeds{}, {}, {update}).ok());
  const auto left = session->Run(Feeds{}, {read});
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_EQ((*left)[0].data<float>()[0], 0.f);
  EXPECT_EQ((*left)[0].data<float>()[1], 0.25f);
  // The thread handles subnormal numbers as before.
  volatile float small = 1e-40f;
  EXPECT_GT(small * 0.5f, 0.f);
}

}  // namespace
}  // namespace weir
