#include "weir/ops/framework/variable_scope.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"

namespace weir {
namespace {

using testing::HasSubstr;

// Takes the graph's error so that the test can continue.
void ExpectError(Graph& g, absl::StatusCode code, const std::vector<std::string>& parts) {
  const absl::Status status = g.TakeStatus();
  EXPECT_EQ(status.code(), code) << status;
  for (const std::string& part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string OpScope(Graph& g) { return Const(g, 1.0f, "c").node->name(); }

TEST(VariableScope, NamesVariablesByScopeAndOpsByUniqueNameScope) {
  Graph g;
  const char* ops[] = {"foo/c", "foo_1/c", "foo_2/c"};
  for (int i = 0; i < 3; ++i) {
    const VariableScope foo(g, "foo", Reuse::kAuto);
    EXPECT_EQ(GetVariable(g, "v", {1}).name(), "foo/v:0");
    EXPECT_EQ(OpScope(g), ops[i]);
  }
  EXPECT_TRUE(g.status().ok()) << g.status();
}

TEST(VariableScope, NameScopesDoNotAffectVariableNames) {
  Graph g;
  const NameScope n(g, "n");
  const VariableScope a(g, "a");
  const NameScope m(g, "m");
  EXPECT_EQ(GetVariable(g, "v", {1}).name(), "a/v:0");
  EXPECT_EQ(OpScope(g), "n/a/m/c");
}

TEST(VariableScope, AutoInsideReuseCreatesAbsentVariables) {
  Graph g;
  const VariableScope outer(g, "outer", Reuse::kReuse);
  const VariableScope inner(g, "inner", Reuse::kAuto);
  const Variable made = GetVariable(g, "v", {1});
  EXPECT_EQ(made.name(), "outer/inner/v:0");
  EXPECT_EQ(GetVariable(g, "v", {1}), made);
  EXPECT_TRUE(g.status().ok()) << g.status();
}

TEST(VariableScope, OpenedByObjectIsAbsolute) {
  Graph g;
  VariableScopeRef foo;
  {
    const VariableScope scope(g, "foo");
    foo = scope.scope();
  }
  const VariableScope bar(g, "bar");
  const VariableScope baz(g, "baz");
  const VariableScope again(g, foo);
  EXPECT_EQ(again.name(), "foo");
  EXPECT_EQ(again.original_name_scope(), "foo/");
  EXPECT_EQ(GetVariable(g, "v", {1}).name(), "foo/v:0");
  EXPECT_EQ(OpScope(g), "bar/baz/foo/c");
}

TEST(VariableScope, DefaultNamesCountTheOpeningsInsideTheEnclosingScope) {
  Graph g;
  const auto layer = [&g] { return VariableScope(g, {.default_name = "layer"}).name(); };
  EXPECT_EQ(layer(), "layer");
  EXPECT_EQ(layer(), "layer_1");
  { const VariableScope explicitly(g, "layer_2"); }
  EXPECT_EQ(layer(), "layer_3");
  {
    const VariableScope outer(g, "outer");
    EXPECT_EQ(layer(), "outer/layer");
    EXPECT_EQ(layer(), "outer/layer_1");
  }
  const VariableScope outer(g, "outer");  // by name: the counters below start again
  EXPECT_EQ(layer(), "outer/layer");
}

TEST(VariableScope, OpenedByObjectDoesNotChangeTheCounters) {
  Graph g;
  VariableScopeRef outer;
  {
    const VariableScope scope(g, "outer");
    outer = scope.scope();
  }
  for (int i = 0; i < 2; ++i) {
    const VariableScope again(g, outer);
    EXPECT_EQ(VariableScope(g, {.default_name = "d"}).name(), "outer/d");
  }
}

TEST(VariableScope, DefaultNameWithReuseOrNoNameAtAllIsInvalid) {
  Graph g;
  { const VariableScope scope(g, {.reuse = Reuse::kReuse, .default_name = "d"}); }
  ExpectError(g, kInvalid, {"reuse", "'d'"});
  { const VariableScope scope(g, VariableScopeOptions{}); }
  ExpectError(g, kInvalid, {"If default_name is None then name_or_scope is required"});
}

TEST(VariableScope, ReuseIsInheritedAndCannotBeSwitchedOff) {
  Graph g;
  const auto inner = [&g](Reuse reuse) { return VariableScope(g, "b", reuse).scope()->reuse; };
  {
    const VariableScope a(g, "a", Reuse::kReuse);
    EXPECT_EQ(inner(Reuse::kCreate), Reuse::kReuse);
    EXPECT_EQ(inner(Reuse::kAuto), Reuse::kAuto);
  }
  const VariableScope a(g, "a", Reuse::kAuto);
  EXPECT_EQ(inner(Reuse::kCreate), Reuse::kAuto);
  EXPECT_EQ(inner(Reuse::kReuse), Reuse::kReuse);
}

TEST(VariableScope, ReuseVariablesHoldsUntilTheScopeEndsAndInCapturedObjects) {
  Graph g;
  VariableScopeRef captured;
  {
    VariableScope a(g, "a");
    GetVariable(g, "v", {1});
    a.reuse_variables();
    EXPECT_EQ(GetVariable(g, "v", {1}).name(), "a/v:0");
    EXPECT_EQ(VariableScope(g, "b").scope()->reuse, Reuse::kReuse);
    captured = a.scope();
  }
  EXPECT_EQ(VariableScope(g, "a").scope()->reuse, Reuse::kCreate);
  EXPECT_EQ(VariableScope(g, captured).scope()->reuse, Reuse::kReuse);
  EXPECT_TRUE(g.status().ok()) << g.status();
}

TEST(VariableScope, ReuseVariablesInAReopenedScopeDoesNotChangeTheObject) {
  Graph g;
  const VariableScopeRef object = VariableScope(g, "a").scope();
  VariableScope again(g, object);
  again.reuse_variables();
  EXPECT_EQ(object->reuse, Reuse::kCreate);
}

TEST(VariableScope, DefaultsAreInherited) {
  Graph g;
  int regularized = 0;
  const VariableScope a(g, "a",
                        {.initializer = Constant(2),
                         .regularizer =
                             [&](Output v) {
                               ++regularized;
                               return ReduceSum(v);
                             },
                         .constraint = [](Output v) { return v; },
                         .dtype = DT_DOUBLE,
                         .use_resource = false});
  const VariableScope b(g, "b");
  const Variable v = GetVariable(g, "v", {2});
  EXPECT_EQ(v.dtype(), DT_DOUBLE);
  EXPECT_FALSE(v.is_resource());
  EXPECT_EQ(v.initial_value().node->op_name(), "Const");
  EXPECT_TRUE(v.constraint());
  EXPECT_EQ(regularized, 1);
  const auto losses = g.collection_as<Output>(collections::kRegularizationLosses);
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_THAT(losses[0].name(), HasSubstr("a/b/v/Regularizer/"));
  EXPECT_EQ(GetVariable(g, "w", {2}, {.dtype = DT_INT32}).dtype(), DT_INT32);  // the argument wins
  EXPECT_TRUE(g.status().ok()) << g.status();
}

TEST(VariableScope, EmptyNameInsideNamesTheScopeItself) {
  Graph g;
  const VariableScope slot(g, {.default_name = "w/Adam"});
  const Variable v = GetVariable(g, "", {.initializer = Literal{1.0, 2.0}});
  EXPECT_EQ(v.name(), "w/Adam:0");
  EXPECT_TRUE(g.status().ok()) << g.status();
}

TEST(GetVariable, FollowsTheDecisionTable) {
  Graph g;
  const Variable v = GetVariable(g, "v", {1});
  EXPECT_FALSE(GetVariable(g, "v", {1}).valid());
  ExpectError(g, absl::StatusCode::kAlreadyExists,
              {"Variable v already exists", "variable_scope_test.cc:"});
  {
    const VariableScope root(g, "", Reuse::kReuse);
    EXPECT_EQ(GetVariable(g, "v", {1}), v);
    EXPECT_FALSE(GetVariable(g, "u", {1}).valid());
    ExpectError(g, absl::StatusCode::kNotFound, {"Variable u does not exist", "AUTO_REUSE"});
  }
  const VariableScope root(g, "", Reuse::kAuto);
  EXPECT_EQ(GetVariable(g, "v", {1}), v);
  EXPECT_EQ(GetVariable(g, "u", {1}).name(), "u:0");
  EXPECT_TRUE(g.status().ok()) << g.status();
}

TEST(GetVariable, SharingChecksShapeAndDtypeOnly) {
  Graph g;
  const Variable v = GetVariable(g, "v", {2, 3}, {.dtype = DT_INT32});
  const VariableScope root(g, "", Reuse::kReuse);
  EXPECT_EQ(GetVariable(g, "v", VariableOptions{}), v);
  EXPECT_EQ(GetVariable(g, "v", {-1, 3}, {.initializer = Ones(), .trainable = false}), v);
  EXPECT_FALSE(GetVariable(g, "v", {2, 4}).valid());
  ExpectError(g, kInvalid, {"v", "[2,4]", "[2,3]"});
  EXPECT_FALSE(GetVariable(g, "v", {2, 3}, {.dtype = DT_FLOAT}).valid());
  ExpectError(g, kInvalid, {"v", "float", "int32"});
}

TEST(GetVariable, NeedsAShapeIfTheInitializerDoes) {
  Graph g;
  EXPECT_FALSE(GetVariable(g, "a", VariableOptions{}).valid());
  ExpectError(g, kInvalid,
              {"Variable a did not get an initializer", "`shape` argument must be specified"});
  EXPECT_FALSE(GetVariable(g, "a", {-1, 2}, Zeros()).valid());
  ExpectError(g, kInvalid, {"(a)", "[?,2]"});
  EXPECT_FALSE(GetVariable(g, "a", {2}, Literal{1.0, 2.0}).valid());
  ExpectError(g, kInvalid, {"If initializer is a constant, do not specify shape"});
  EXPECT_FALSE(GetVariable(g, "a", {.initializer = Const(g, 1.0f), .dtype = DT_DOUBLE}).valid());
  ExpectError(g, kInvalid, {"double", "float"});
  EXPECT_FALSE(GetVariable(g, "c", {2}, {.dtype = DT_COMPLEX64}).valid());
  ExpectError(g, kInvalid, {"An initializer for variable c of complex64 is required"});
}

TEST(GetVariable, BadNamesAreInvalid) {
  Graph g;
  for (const char* name : {"_v", "/v", "a b", "-v"}) {
    EXPECT_FALSE(GetVariable(g, name, {1}).valid()) << name;
    ExpectError(g, kInvalid, {name, "[A-Za-z0-9.]"});
  }
  EXPECT_TRUE(GetVariable(g, "ok/v.1-x", {1}).valid());
}

TEST(GetVariable, DoesNotSeePlainVariables) {
  Graph g;
  MakeVariable(g, 1.0, {.name = "a"});
  const Variable a = GetVariable(g, "a", {1});
  EXPECT_EQ(a.name(), "a_1:0");
  const VariableScope root(g, "", Reuse::kReuse);
  EXPECT_EQ(GetVariable(g, "a", {1}), a);  // the key stays "a"
}

TEST(GetVariable, LocalVariablesAreLocalAndUntrainable) {
  Graph g;
  const Variable v = GetLocalVariable(g, "v", {1});
  EXPECT_FALSE(v.trainable());
  EXPECT_TRUE(GlobalVariables(g).empty());
  EXPECT_TRUE(TrainableVariables(g).empty());
  ASSERT_EQ(LocalVariables(g).size(), 1u);
  EXPECT_EQ(LocalVariables(g)[0], v);
}

TEST(GetVariable, CustomGettersRunInnermostFirst) {
  Graph g;
  std::vector<std::string> calls;
  const auto getter = [&calls](std::string tag) -> CustomGetter {
    return [&calls, tag](const VariableGetter& next, Graph& graph, absl::string_view name,
                         const VariableOptions& o) {
      calls.push_back(absl::StrCat(tag, ":", name));
      VariableOptions changed = o;
      changed.trainable = false;
      return next(graph, absl::StrCat(name, "_", tag), changed);
    };
  };
  const VariableScope outer(g, "a", {.custom_getter = getter("outer")});
  const VariableScope inner(g, "b", {.custom_getter = getter("inner")});
  const Variable v = GetVariable(g, "v", {1});
  EXPECT_EQ(calls, (std::vector<std::string>{"inner:a/b/v", "outer:a/b/v_inner"}));
  EXPECT_EQ(v.name(), "a/b/v_inner_outer:0");
  EXPECT_FALSE(v.trainable());
}

TEST(VariableCreatorScope, WrapsBothWaysOfCreatingVariables) {
  Graph g;
  std::vector<std::string> calls;
  const auto creator = [&calls](std::string tag) -> VariableCreator {
    return [&calls, tag](const VariableMaker& next, Graph& graph, const Initializer& value,
                         const VariableOptions& o) {
      calls.push_back(tag);
      VariableOptions changed = o;
      changed.name += tag;
      return next(graph, value, changed);
    };
  };
  {
    const VariableCreatorScope outer(g, creator("O"));
    const VariableCreatorScope inner(g, creator("I"));
    EXPECT_EQ(MakeVariable(g, 1.0, {.name = "a"}).name(), "aIO:0");
    EXPECT_EQ(GetVariable(g, "b", {1}).name(), "bIO:0");
  }
  EXPECT_EQ(calls, (std::vector<std::string>{"I", "O", "I", "O"}));
  EXPECT_EQ(MakeVariable(g, 1.0, {.name = "c"}).name(), "c:0");
}

TEST(GetVariable, MatchesTheExampleOfTheSpecification) {
  Graph g;
  const auto layer = [&g] {
    GetVariable(g, "weights", {3, 3}, RandomNormalInitializer());
    return GetVariable(g, "biases", {3}, Constant(0.0));
  };
  layer();
  EXPECT_FALSE(layer().valid());
  ExpectError(g, absl::StatusCode::kAlreadyExists, {"weights"});
  const auto model = [&] {
    for (const char* conv : {"conv1", "conv2"}) {
      const VariableScope scope(g, conv);
      layer();
    }
  };
  VariableScopeRef captured;
  {
    VariableScope scope(g, "model");
    model();
    captured = scope.scope();
    scope.reuse_variables();
    model();
  }
  {
    const VariableScope scope(g, "model", Reuse::kReuse);
    model();
  }
  const VariableScope scope(g, captured, Reuse::kReuse);
  model();
  EXPECT_TRUE(g.status().ok()) << g.status();
  EXPECT_EQ(GlobalVariables(g, "model/").size(), 4u);
  EXPECT_EQ(GlobalVariables(g, "model/conv1/w")[0].name(), "model/conv1/weights:0");
}

}  // namespace
}  // namespace weir
