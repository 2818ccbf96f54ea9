#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensorflow/c/ops.h"
#include "weir/tests/capi/api.h"

namespace weir::capi_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Gradients : public ::testing::Test {
 protected:
  Gradients() : x_(api_.Placeholder("x")), square_(api_.Binary("Mul", "square", x_, x_)) {}

  // d(square)/dx at 3.
  float Slope(TF_Output gradient) {
    TF_Session* const session = TF_NewSession(api_.graph(), nullptr, api_.status());
    const TensorPtr three = Floats({}, {3});
    const TensorPtr slope = api_.Run(session, {{x_, 0}}, {three.get()}, gradient);
    EXPECT_NE(slope, nullptr) << api_.message();
    TF_DeleteSession(session, api_.status());
    return slope == nullptr ? 0 : FloatAt(slope);
  }

  Api api_;
  TF_Operation *x_, *square_;
};

TEST_F(Gradients, OfAProduct) {
  TF_Output y = {square_, 0}, x = {x_, 0}, dy;
  TF_AddGradients(api_.graph(), &y, 1, &x, 1, nullptr, api_.status(), &dy);
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  EXPECT_THAT(TF_OperationName(dy.oper), StartsWith("gradients/"));
  EXPECT_EQ(Slope(dy), 6);
}

TEST_F(Gradients, StartFromGivenOnes) {
  TF_Output y = {square_, 0}, x = {x_, 0}, dy, dx = {api_.Const("ten", 10), 0};
  TF_AddGradients(api_.graph(), &y, 1, &x, 1, &dx, api_.status(), &dy);
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  EXPECT_EQ(Slope(dy), 60);
}

TEST_F(Gradients, HaveAPrefixOfTheirOwn) {
  TF_Output y = {square_, 0}, x = {x_, 0}, dy;
  TF_AddGradientsWithPrefix(api_.graph(), "mine", &y, 1, &x, 1, nullptr, api_.status(), &dy);
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  EXPECT_THAT(TF_OperationName(dy.oper), StartsWith("mine/"));
  TF_AddGradientsWithPrefix(api_.graph(), "mine", &y, 1, &x, 1, nullptr, api_.status(), &dy);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  EXPECT_THAT(api_.message(),
              HasSubstr("prefix [mine] conflicts with existing node in the graph named [mine/"));
}

TEST_F(Gradients, ProductsHaveNoMarks) {
  TF_Operation* const matrix = api_.Placeholder("matrix");
  TF_Output y = {api_.Binary("MatMul", "product", matrix, x_), 0}, x = {x_, 0}, dy;
  TF_AddGradients(api_.graph(), &y, 1, &x, 1, nullptr, api_.status(), &dy);
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  unsigned char mark = 1;
  TF_OperationGetAttrBool(dy.oper, "grad_b", &mark, api_.status());
  EXPECT_EQ(api_.code(), TF_OK) << api_.message();
  EXPECT_EQ(mark, 0);
}

TEST_F(Gradients, OfAnInteger) {
  TF_OperationDescription* desc = TF_NewOperation(api_.graph(), "Placeholder", "n");
  TF_SetAttrType(desc, "dtype", TF_INT32);
  TF_Output n = {TF_FinishOperation(desc, api_.status()), 0}, dn;
  TF_Output negated = {nullptr, 0};
  desc = TF_NewOperation(api_.graph(), "Neg", "negated");
  TF_AddInput(desc, n);
  negated.oper = TF_FinishOperation(desc, api_.status());
  TF_AddGradients(api_.graph(), &negated, 1, &n, 1, nullptr, api_.status(), &dn);
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  ASSERT_NE(dn.oper, nullptr);
  EXPECT_EQ(TF_OperationOutputType(dn), TF_INT32);
}

TEST_F(Gradients, OfAnOpWithoutARuleAreNotFound) {
  TF_OpDefinitionBuilder* const op = TF_NewOpDefinitionBuilder("NoRule");
  TF_OpDefinitionBuilderAddInput(op, "x: float32");
  TF_OpDefinitionBuilderAddOutput(op, "y: float32");
  TF_RegisterOpDefinition(op, api_.status());
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  TF_OperationDescription* const desc = TF_NewOperation(api_.graph(), "NoRule", "no_rule");
  TF_AddInput(desc, {square_, 0});
  TF_Output y = {TF_FinishOperation(desc, api_.status()), 0}, x = {x_, 0}, dy;
  TF_AddGradients(api_.graph(), &y, 1, &x, 1, nullptr, api_.status(), &dy);
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
  EXPECT_EQ(api_.message(),
            "No gradient defined for op: NoRule. Please see "
            "https://www.tensorflow.org/code/tensorflow/cc/gradients/README.md for instructions on "
            "how to add C++ gradients.");
}

TEST_F(Gradients, ErrorsLeaveTheGraphUsable) {
  TF_Output y = {square_, 0}, x = {x_, 3}, dy;
  TF_AddGradients(api_.graph(), &y, 1, &x, 1, nullptr, api_.status(), &dy);
  EXPECT_EQ(api_.code(), TF_OUT_OF_RANGE);
  TF_AddGradients(api_.graph(), nullptr, 1, &x, 1, nullptr, api_.status(), &dy);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  TF_Output alone = {api_.Placeholder("alone"), 0};
  TF_AddGradients(api_.graph(), &y, 1, &alone, 1, nullptr, api_.status(), &dy);
  EXPECT_EQ(api_.code(), TF_OK) << api_.message();
  EXPECT_EQ(dy.oper, nullptr);
  EXPECT_NE(api_.Const("after", 1), nullptr) << api_.message();
}

}  // namespace
}  // namespace weir::capi_test
