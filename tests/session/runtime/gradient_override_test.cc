// Nodes that name another gradient function with `_gradient_op_type`, which TensorFlow's
// gradient_override_map and custom_gradient add to graphs. Values are TensorFlow's.

#include "gmock/gmock.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/registry.h"
#include "weir/proto/graph.pb.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/test_functions.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kOverride[] = "_gradient_op_type";

Grads TenTimes(GradContext& g) { return {Grad(g.dy() * 10.f)}; }

// A registry of the built-in ops and of ops that have only a gradient function, or none.
const OpRegistry& OpsWithRules() {
  static const OpRegistry* const ops = [] {
    auto* registry = new OpRegistry(&BuiltinOps());
    registry->Add(OpSpec("TenTimes").Gradient(TenTimes));
    registry->Add(OpSpec("Stop").NotDifferentiable());
    registry->Add(OpSpec("NoRule"));
    return registry;
  }();
  return *ops;
}

// Returns d op(x)/dx at 3, for a node that was imported from a file.
absl::StatusOr<float> SlopeAt3(const char* op, const char* rule) {
  Graph built(OpsWithRules());
  const Output x = Placeholder(built, DT_FLOAT, {}, "x");
  {
    const AttrScope scope(built, kOverride, AttrValue(std::string(rule)));
    AddOp(op, {x}, {}, "y");
  }
  WEIR_RETURN_IF_ERROR(built.status());
  proto::GraphDef def;
  ExportGraphDef(built, &def);
  Graph read(OpsWithRules());
  WEIR_RETURN_IF_ERROR(ImportGraphDef(read, def).status());
  const Output again = *read.FindOutput("x");
  const Output dx = DenseGradients({*read.FindOutput("y")}, {again})[0];
  WEIR_RETURN_IF_ERROR(read.status());
  if (!dx.node) return 0;
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(read));
  WEIR_ASSIGN_OR_RETURN(const Tensors out, session.Run({{again, Tensor::Scalar(3.f)}}, {dx}));
  return out[0].scalar<float>();
}

TEST(GradientOverride, UsesAProgramsGradientFunction) {
  EXPECT_EQ(*SlopeAt3("Square", "TenTimes"), 10);
}

TEST(GradientOverride, UsesTheGradientFunctionOfAnotherOp) {
  EXPECT_EQ(*SlopeAt3("Square", "Identity"), 1);
  EXPECT_EQ(*SlopeAt3("Square", "Square"), 6);
}

TEST(GradientOverride, PassesThroughOpsWithoutGradients) {
  EXPECT_EQ(*SlopeAt3("Sign", "Identity"), 1);
  EXPECT_EQ(*SlopeAt3("Rint", "TenTimes"), 10);
}

TEST(GradientOverride, MayStopTheGradient) { EXPECT_EQ(*SlopeAt3("Square", "Stop"), 0); }

TEST(GradientOverride, WithoutAGradientFunctionIsNotFound) {
  for (const char* rule : {"Unheard", "NoRule", ""}) {
    const absl::StatusOr<float> slope = SlopeAt3("Square", rule);
    EXPECT_TRUE(absl::IsNotFound(slope.status())) << slope.status();
    EXPECT_THAT(slope.status().message(),
                AllOf(HasSubstr(absl::StrCat("'", rule, "'")), HasSubstr("y (Square)")));
  }
}

// IdentityN(x * y, x, y) with a gradient function of the library, as custom_gradient and
// experimental_custom_gradients write it: the function takes the gradients of the results, and
// returns none for the first input.
class DeclaredGradient : public ::testing::Test {
 protected:
  // Registers the library's function `gradient` under the name that `y` refers to.
  void Declare(const char* gradient) {
    proto::GraphDef def;
    ExportGraphDef(g_, &def);
    auto* item = def.mutable_library()->add_registered_gradients();
    item->set_gradient_func(gradient);
    item->set_registered_op_type("CustomGradient-7");
    ASSERT_TRUE(ImportGraphDef(read_, def).ok());
  }
  void Build() {
    const Output x = Placeholder(g_, DT_FLOAT, {}, "x");
    const Output square = x * x;
    const AttrScope scope(g_, kOverride, AttrValue(std::string("CustomGradient-7")));
    AddNode(g_, "IdentityN", {Outputs{square, x}}, {}, "y");
  }
  absl::StatusOr<float> Slope() {
    const Output x = *read_.FindOutput("x");
    const Output dx = DenseGradients({*read_.FindOutput("y:0")}, {x})[0];
    WEIR_RETURN_IF_ERROR(read_.status());
    WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(read_));
    WEIR_ASSIGN_OR_RETURN(const Tensors out, session.Run({{x, Tensor::Scalar(3.f)}}, {dx}));
    return out[0].scalar<float>();
  }
  Graph g_, read_;
};

TEST_F(DeclaredGradient, TakesTheGradientsOfTheResults) {
  const FunctionRef rule =
      DefineFrom(g_, "rule", {DT_FLOAT, DT_FLOAT}, [](Graph&, const Outputs& dy) {
        return Outputs{ZerosLike(dy[0]), dy[0] * 10.f};
      });
  Build();
  Declare("rule");
  EXPECT_EQ(*Slope(), 10);
}

TEST_F(DeclaredGradient, MayAlsoTakeTheInputs) {
  const DataTypes types(4, DT_FLOAT);
  const FunctionRef rule = DefineFrom(g_, "rule", types, [](Graph&, const Outputs& a) {
    return Outputs{ZerosLike(a[0]), a[1] * a[2] * 5.f};
  });
  Build();
  Declare("rule");
  EXPECT_EQ(*Slope(), 15);
}

TEST_F(DeclaredGradient, WithTooFewResultsIsAnError) {
  const FunctionRef rule =
      DefineFrom(g_, "rule", {DT_FLOAT, DT_FLOAT},
                 [](Graph&, const Outputs& dy) { return Outputs{dy[0] * 10.f}; });
  Build();
  Declare("rule");
  const absl::StatusOr<float> slope = Slope();
  EXPECT_TRUE(absl::IsUnimplemented(slope.status())) << slope.status();
  EXPECT_THAT(slope.status().message(), AllOf(HasSubstr("CustomGradient-7"), HasSubstr("'rule'")));
}

TEST_F(DeclaredGradient, OfAMissingFunctionIsNotFound) {
  Build();
  Declare("rule");
  EXPECT_TRUE(absl::IsNotFound(Slope().status()));
}

// TensorFlow marks its function calls in this way; the registered function is the gradient of the
// body.
TEST(GradientOverride, OfACalledFunctionIsThatOfItsBody) {
  for (const char* mark : {"PartitionedCall-12", "Elsewhere"}) {
    Graph g;
    const Output x = Const(g, 3.f);
    const FunctionRef square = DefineFrom(
        g, "square", {DT_FLOAT}, [](Graph&, const Outputs& v) { return Outputs{v[0] * v[0]}; });
    const AttrScope scope(g, kOverride, AttrValue(std::string(mark)));
    const Output dx = DenseGradients(Call(g, square, {x}), {x})[0];
    if (absl::string_view(mark) == "Elsewhere") {
      EXPECT_TRUE(absl::IsNotFound(g.status())) << g.status();
      continue;
    }
    ASSERT_TRUE(g.status().ok()) << g.status();
    EXPECT_EQ((*Session::Create(g)->Run({dx}))[0].scalar<float>(), 6);
  }
}

}  // namespace
}  // namespace weir
