#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
