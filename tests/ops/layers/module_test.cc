#include "weir/ops/layers/module.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/variables.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Names(const Variables& variables) {
  std::vector<std::string> names;
  for (const Variable& v : variables) names.push_back(v.op_name());
  return names;
}

Variable Var(Graph& g, absl::string_view name, bool trainable = true) {
  return MakeVariable(g, 1.f, {.name = std::string(name), .trainable = trainable});
}

class Leaf : public Module {
 public:
  explicit Leaf(Graph& g, absl::string_view name = {}) : Module(g, name) {
    Track("v", Var(g, "leaf"));
  }
};

// One variable, and ten in a list.
class WithList : public Module {
 public:
  explicit WithList(Graph& g) : Module(g) {
    Track("single", Var(g, "single"));
    Variables list;
    for (int i = 0; i < 10; ++i) list.push_back(Var(g, absl::StrCat("item", i), i % 2 == 0));
    Track("list", list);
  }
};

class HTTPResidualBlock : public Module {
 public:
  explicit HTTPResidualBlock(Graph& g) : Module(g), inner_(g) {
    Track("b_inner", inner_);
    Track("a_own", Var(g, "own"));
  }
  WithList& inner() { return inner_; }

 private:
  WithList inner_;
};

TEST(ModuleTest, FindsVariablesOfNestedModulesAndLists) {
  Graph g;
  HTTPResidualBlock block(g);
  EXPECT_EQ(block.variables().size(), 12);
  EXPECT_EQ(block.trainable_variables().size(), 7);
  EXPECT_THAT(block.submodules(), ElementsAre(&block.inner()));
  EXPECT_THAT(block.inner().submodules(), IsEmpty());
}

class Members : public Module {
 public:
  Members(Graph& g, Leaf& one, Leaf& other) : Module(g) {
    Track("z", Var(g, "last"));
    Track("m_modules", {{"y", &one}, {"x", &other}});
    Track("d_variables", std::map<std::string, Variable>{{"k", Var(g, "k")}, {"j", Var(g, "j")}});
    Track("a", Var(g, "first"));
  }
};

TEST(ModuleTest, WalksMembersInNameOrder) {
  Graph g;
  Leaf one(g), other(g);
  Members m(g, one, other);
  EXPECT_THAT(Names(m.variables()), ElementsAre("first", "j", "k", "last", "leaf_1", "leaf"));
  EXPECT_THAT(m.submodules(), ElementsAre(&other, &one));
}

class Circle : public Module {
 public:
  explicit Circle(Graph& g) : Module(g), v_(Track("v", Var(g, "v"))) { Track("again", v_); }
  void Join(Circle& other) { Track("other", other); }

 private:
  Variable v_;
};

TEST(ModuleTest, CountsEachVariableOnce) {
  Graph g;
  Circle a(g), b(g);
  a.Join(b);
  b.Join(a);
  EXPECT_THAT(Names(a.variables()), ElementsAre("v", "v_1"));
  EXPECT_THAT(Names(b.variables()), ElementsAre("v_1", "v"));
  EXPECT_THAT(a.submodules(), ElementsAre(&b));
}

TEST(ModuleTest, TrackingANameAgainReplacesTheFirst) {
  Graph g;
  Circle a(g), b(g), c(g);
  a.Join(b);
  a.Join(c);
  EXPECT_THAT(a.submodules(), ElementsAre(&c));
}

TEST(ModuleTest, NamesItselfAfterItsClass) {
  Graph g;
  EXPECT_EQ(HTTPResidualBlock(g).name(), "http_residual_block");
  EXPECT_EQ(Leaf(g).name(), "leaf");
  EXPECT_EQ(Leaf(g, "mine").name(), "mine");
}

TEST(ModuleTest, OpensItsNameScopeAgain) {
  Graph g;
  Leaf one(g, "part"), two(g, "part");
  EXPECT_EQ(one.name_scope(), "part/");
  EXPECT_EQ(two.name_scope(), "part_1/");
  for (const char* want : {"part_1/v", "part_1/v_1"}) {
    const NameScope scope(g, two.name_scope());
    EXPECT_EQ(Var(g, "v").op_name(), want);
  }
}

}  // namespace
}  // namespace weir
