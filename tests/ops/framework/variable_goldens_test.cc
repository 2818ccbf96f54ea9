// Programs with variables, built as make_goldens.py builds them with TensorFlow.

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/math/clip.h"
#include "weir/ops/nn/nn.h"
#include "weir/ops/random/random.h"
#include "weir/tests/ops/lib/goldens.h"

namespace weir {
namespace {

void VariableOfConstant(Graph& g) {
  MakeVariable(g, {1.0, 2.0}, {.name = "w"});
  MakeVariable(g, 3, {.name = "w", .trainable = false});
}

void VariableInScopes(Graph& g) {
  {
    const NameScope scope(g, "n");
    MakeVariable(g, 1.0);
    MakeVariable(g, 2.0);
  }
  const VariableScope scope(g, "s");
  MakeVariable(g, 3.0, {.name = "v"});
  GetVariable(g, "v", {2});
}

void DefaultInitializers(Graph& g) {
  GetVariable(g, "f", {4, 6});
  GetVariable(g, "i", {3}, {.dtype = DT_INT32});
  GetVariable(g, "b", {2}, {.dtype = DT_BOOL});
  GetVariable(g, "d", {3, 3, 4, 8}, {.dtype = DT_DOUBLE});
}

void InitializerKinds(Graph& g) {
  g.set_seed(7);
  using Scaling = VarianceScalingOptions;
  const std::pair<const char*, Initializer> rows[] = {
      {"zeros", Zeros()},
      {"ones", Ones()},
      {"constant", Constant(0.5)},
      {"constant_list", Constant({1.0, 2.0, 3.0})},
      {"uniform", RandomUniformInitializer(-1, 2)},
      {"normal", RandomNormalInitializer(1, 0.5)},
      {"truncated", TruncatedNormalInitializer(0, 0.1f, 3)},
      {"unit_scaling", UniformUnitScaling(1.5)},
      {"scaling",
       VarianceScaling({.scale = 2, .mode = Scaling::kFanOut, .distribution = Scaling::kUniform})},
      {"scaling_normal", VarianceScaling()},
      {"scaling_untruncated",
       VarianceScaling({.mode = Scaling::kFanAvg, .distribution = Scaling::kUntruncatedNormal})},
      {"glorot_normal", GlorotNormal()},
      {"he_uniform", HeUniform()},
      {"lecun_normal", LecunNormal()},
  };
  for (const auto& [name, initializer] : rows) GetVariable(g, name, {3, 2}, initializer);
  GetVariable(g, "big_zeros", {50, 30}, Zeros());
  GetVariable(g, "big_ones", {50, 30}, Ones());
}

void OrthogonalAndIdentity(Graph& g) {
  g.set_seed(7);
  GetVariable(g, "square", {3, 3}, Orthogonal());
  GetVariable(g, "wide", {2, 2, 6}, Orthogonal(2));
  GetVariable(g, "eye", {3, 3}, Identity());
  GetVariable(g, "wide_eye", {2, 4}, Identity(2.0f));
}

void LiteralAndCallableInitializers(Graph& g) {
  GetVariable(g, "literal", {.initializer = Literal{1, 2}});
  const auto fill = [&g](float value) {
    const NameScope scope(g, "Fill");
    const Output dims = Const<int32_t>(g, {2}, "dims");
    return AddOp("Fill", {dims, Const(g, value, "value")}, {}, scope.name());
  };
  GetVariable(g, "tensor", {.initializer = fill(3)});
  GetVariable(g, "callable", {.initializer = [&] { return fill(3); }});
  MakeVariable(g, [&] { return fill(4); }, {.name = "made"});
  const ControlDependencies after(g, {NoOp(g, "before")});
  MakeVariable(g, [&] { return fill(5); }, {.name = "apart"});
  GetVariable(g, "also_apart", {2}, Zeros());
}

void Scopes(Graph& g) {
  for (int i = 0; i < 2; ++i) {
    const VariableScope foo(g, "foo");
    Const(g, 1.0f, "c");
  }
  VariableScopeRef captured;
  {
    const VariableScope bar(g, "bar");
    captured = bar.scope();
    GetVariable(g, "v", {1}, Zeros());
    const VariableScope baz(g, "baz", {.default_name = "no"});
    GetVariable(g, "v", {1}, Zeros());
    const VariableScope again(g, captured, Reuse::kReuse);
    Const(g, 2.0f, "c");
    GetVariable(g, "v", {1});
  }
  for (int i = 0; i < 2; ++i) {
    const VariableScope layer(g, {.default_name = "layer"});
    GetVariable(g, "v", {1}, Zeros());
  }
  const VariableScope plain(g, captured, {.auxiliary_name_scope = false});
  Const(g, 3.0f, "c");
  const NameScope original(g, captured->original_name_scope);
  Const(g, 4.0f, "c");
}

void ReadsAndArithmetic(Graph& g) {
  const Variable w = MakeVariable(g, {1.0, 2.0}, {.name = "w"});
  Identity(w.value(), "a");
  w.value();
  w.read_value();
  {
    const NameScope scope(g, "n");
    w.read_value();
    Identity(w.value(), "b");
  }
  w + 1.0f;
  w.Slice({0});
}

void Writes(Graph& g) {
  const Variable w = MakeVariable(g, {1.0, 2.0}, {.name = "w"});
  w.Assign({3.0, 4.0});
  w.AssignAdd({3.0, 4.0});
  w.AssignSub({3.0, 4.0}, {.use_locking = true});
  w.Assign({5.0, 6.0}, {.read_value = false});
  Assign(w, {7.0, 8.0});
  w.AssignAdd({7.0, 8.0});
  w.AssignSub({7.0, 8.0});
  const NameScope scope(g, "n");
  w.Assign(Const(g, {9.f, 10.f}, "nine"));
}

void Scatters(Graph& g) {
  const Variable w = MakeVariable(g, {{1.0, 2.0}, {3.0, 4.0}}, {.name = "w"});
  const Output i = Const<int32_t>(g, {1}, "i");
  const Output v = Const<float>(g, Shape({1, 2}), {5, 6}, "v");
  const IndexedSlices rows = {.values = v, .indices = i};
  w.ScatterAdd(rows);
  w.ScatterSub(rows);
  w.ScatterUpdate(rows);
  w.ScatterMul(rows);
  w.ScatterDiv(rows);
  w.ScatterMin(rows);
  w.ScatterMax(rows);
  w.ScatterAdd(rows);
  w.ScatterUpdate(rows, {.use_locking = true});
  const Output ii = Const<int32_t>(g, Shape({1, 1}), {1}, "ii");
  w.ScatterNdAdd(ii, v);
  w.ScatterNdSub(ii, v);
  w.ScatterNdUpdate(ii, v);
}

void Slices(Graph& g) {
  const Variable w = MakeVariable(g, {{1.0, 2.0}, {3.0, 4.0}}, {.name = "w"});
  w.Slice({Index::Range(0, 1), 1}).Assign({5.0});
  w.Slice({Index::Ellipsis(), Index::NewAxis(), Index::Range(std::nullopt, std::nullopt, -1)});
}

void Counting(Graph& g) { MakeVariable(g, 0, {.name = "w"}).CountUpTo(3); }

void Initializing(Graph& g) {
  const Variable a = MakeVariable(g, {1.0, 2.0}, {.name = "a"});
  GetVariable(g, "b", {2}, {.trainable = false, .collections = {{collections::kLocalVariables}}});
  GlobalVariablesInitializer(g);
  LocalVariablesInitializer(g);
  VariablesInitializer(g, {a}, "some");
  GlobalVariablesInitializer(g);
  IsVariableInitialized(a);
  ReportUninitializedVariables(g);
  AssertVariablesInitialized(g);
  VariablesInitializer(g, {});
}

void InitializedValues(Graph& g) {
  const Variable a = MakeVariable(g, RandomUniform(g, {2}, {.seed = 1}), {.name = "a"});
  MakeVariable(g, a.initialized_value() * 2.0f, {.name = "b"});
  MakeVariable(g, a, {.name = "c"});
  MakeVariable(g, [&] { return a.initialized_value(); }, {.name = "d"});
}

void GlobalSteps(Graph& g) {
  GetOrCreateGlobalStep(g);
  GetOrCreateGlobalStep(g);
}

void UnknownShapes(Graph& g) {
  const Output x = Placeholder(g, DT_FLOAT, Shape::UnknownRank(), "x");
  MakeVariable(g, x, {.name = "w", .validate_shape = false});
  const auto unknown = [&g] {
    const NameScope scope(g, "PlaceholderWithDefault");
    return AddOp("PlaceholderWithDefault", {Const(g, {1.0f}, "input")}, {{"shape", Shape({-1})}},
                 scope.name());
  };
  GetVariable(g, "v", {.initializer = unknown, .validate_shape = false});
}

void Caching(Graph& g) {
  const Variable w = MakeVariable(g, {1.0}, {.name = "w", .caching_device = "/cpu:0"});
  Identity(w.value(), "a");
  Variable v;
  {
    const DeviceScope device(g, "/gpu:1");
    v = MakeVariable(g, {1.0}, {.name = "v"});
    Identity(v.value(), "b");
    w.AssignAdd({3.0});
  }
  v.Assign({2.0});
}

// In TensorFlow's order of evaluation; C++ does not specify the order of arguments.
void ImplicitReads(Graph& g) {
  const Variable w = MakeVariable(g, {{1.0, 2.0}, {3.0, 4.0}}, {.name = "w"});
  const Variable v = MakeVariable(g, {{5.0, 6.0}, {7.0, 8.0}}, {.name = "v"});
  const Output a = w * 2.f;
  2.f - w;
  w* v;
  MatMul(a, w);
  MatMul(w, v, {.name = "product"});
  Relu(w);
  Relu(w);
  AddN({w, v, a});
  Concat({w, a, v}, 0);
  Stack({v, w});
  Reshape(w, {4});
  Transpose(w, {1, 0});
  ReduceSum(w, {0});
  Square(Exp(w) + v);
  Maximum(w, 0.5f);
  ClipByValue(w, 0.f, 1.f);
  BiasAdd(w, StridedSlice(a, {0}));
  Cast(w, DT_DOUBLE);
  v.Assign(w);
  v.AssignAdd(w * v);
  {
    const NameScope scope(g, "n");
    -w;
    Softmax(w);
    v.read_value();
  }
  w.value();
  v.value();
}

const GoldenProgram kPrograms[] = {
    {"variable_of_constant", VariableOfConstant},
    {"variable_in_scopes", VariableInScopes},
    {"default_initializers", DefaultInitializers},
    {"initializer_kinds", InitializerKinds},
    {"orthogonal_and_identity", OrthogonalAndIdentity},
    {"literal_and_callable_initializers", LiteralAndCallableInitializers},
    {"scopes", Scopes},
    {"reads_and_arithmetic", ReadsAndArithmetic},
    {"writes", Writes},
    {"scatters", Scatters},
    {"slices", Slices},
    {"counting", Counting},
    {"initializing", Initializing},
    {"initialized_values", InitializedValues},
    {"global_steps", GlobalSteps},
    {"unknown_shapes", UnknownShapes},
    {"caching", Caching},
    {"implicit_reads", ImplicitReads},
};

INSTANTIATE_TEST_SUITE_P(Variables, GoldenTest, GoldensOf(kPrograms), GoldenName);

}  // namespace
}  // namespace weir
