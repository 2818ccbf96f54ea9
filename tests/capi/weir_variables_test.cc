#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "weir/tests/capi/weir_api.h"

namespace weir::capi_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Variables = Line;

TEST_F(Variables, AreInitializedReadAndWritten) {
  EXPECT_FALSE(Run(loss_.oper));
  EXPECT_EQ(api_.code(), TF_FAILED_PRECONDITION);
  ASSERT_TRUE(Run(init_)) << api_.message();
  EXPECT_EQ(Slope(), 1);
  const TF_Output two = {x_, 0};
  TF_Output sum, difference;
  weir_variable_assign_add(graph(), slope_, &two, &sum, status());
  weir_variable_assign_sub(graph(), slope_, &two, &difference, status());
  EXPECT_EQ(FloatAt(api_.Run(session_, {}, {}, sum)), 3);
  EXPECT_EQ(FloatAt(api_.Run(session_, {}, {}, sum)), 5);
  EXPECT_EQ(FloatAt(api_.Run(session_, {}, {}, difference)), 3);
  ASSERT_TRUE(Run(weir_variable_initializer(graph(), slope_, status())));
  EXPECT_EQ(Slope(), 1);
}

TEST_F(Variables, UninitializedOnesAreReported) {
  const BufferPtr names(TF_NewBuffer());
  weir_uninitialized_variables(session_, names.get(), status());
  EXPECT_THAT(ListOf(names), ElementsAre("slope")) << api_.message();
  size_t position = 0, nodes = 0;
  while (TF_GraphNextOperation(graph(), &position) != nullptr) ++nodes;
  Run(init_);
  weir_uninitialized_variables(session_, names.get(), status());
  EXPECT_THAT(ListOf(names), IsEmpty());
  EXPECT_EQ(TF_GraphNextOperation(graph(), &position), nullptr) << "the report is added again";
  weir_new_variable(graph(), "more", TF_INT32, nullptr, 0, "zeros", "trainable=false", status());
  weir_uninitialized_variables(session_, names.get(), status());
  EXPECT_THAT(ListOf(names), ElementsAre("more"));
}

TEST_F(Variables, InitializersHaveArguments) {
  const int64_t dims[] = {50, 40};
  const auto first = [&](const char* name, TF_DataType dtype, const char* initializer) {
    TF_Operation* const variable =
        weir_new_variable(graph(), name, dtype, dims, 2, initializer, nullptr, status());
    if (variable == nullptr) return TensorPtr();
    TF_Output value;
    weir_variable_value(graph(), variable, &value, status());
    Run(weir_variable_initializer(graph(), variable, status()));
    return api_.Run(session_, {}, {}, value);
  };
  EXPECT_EQ(FloatAt(first("ones", TF_FLOAT, "ones"), 7), 1);
  EXPECT_EQ(FloatAt(first("half", TF_FLOAT, " constant value=0.5"), 7), 0.5);
  const TensorPtr whole = first("whole", TF_INT32, "constant value=7");
  ASSERT_NE(whole, nullptr) << api_.message();
  EXPECT_EQ(static_cast<const int32_t*>(TF_TensorData(whole.get()))[3], 7);
  const TensorPtr normal = first("normal", TF_FLOAT, "random_normal mean=5 stddev=0.1 seed=3");
  float sum = 0;
  for (int i = 0; i < 2000; ++i) sum += FloatAt(normal, i);
  EXPECT_NEAR(sum / 2000, 5, 0.02);
  const float limit = std::sqrt(6.f / 90);
  const TensorPtr glorot = first("glorot", TF_FLOAT, "glorot_uniform");
  for (int i = 0; i < 2000; ++i) ASSERT_LE(std::abs(FloatAt(glorot, i)), limit);
  EXPECT_EQ(first("bad", TF_FLOAT, "gaussian"), nullptr);
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
  EXPECT_THAT(api_.message(), HasSubstr("random_normal"));
  EXPECT_EQ(first("bad", TF_FLOAT, "ones value=2"), nullptr);
  EXPECT_EQ(api_.message(), "unknown option 'value'; the options are: ");
  EXPECT_EQ(first("bad", TF_FLOAT, "random_normal mean=big"), nullptr);
  EXPECT_EQ(api_.message(), "option mean=big: expected a number");
}

TEST_F(Variables, OfTensorsAreCopies) {
  const TensorPtr given = Floats({2}, {4, 5});
  TF_Operation* const variable = weir_new_variable_from_tensor(
      graph(), "given", given.get(), "trainable=false collections=local_variables,mine", status());
  ASSERT_NE(variable, nullptr) << api_.message();
  static_cast<float*>(TF_TensorData(given.get()))[0] = 9;
  Run(weir_variables_initializer(graph(), "local_variables", status()));
  TF_Output value;
  weir_variable_value(graph(), variable, &value, status());
  EXPECT_EQ(FloatAt(api_.Run(session_, {}, {}, value)), 4);
  TF_Operation* found[3] = {};
  EXPECT_EQ(weir_variables(graph(), "mine", found, 3, status()), 1);
  EXPECT_EQ(found[0], variable);
  EXPECT_EQ(weir_variables(graph(), "trainable_variables", nullptr, 0, status()), 1);
}

TEST_F(Variables, OfOutputsHaveTheirShape) {
  const TF_Output initial = {x_, 0};
  TF_Operation* const variable =
      weir_new_variable_from_output(graph(), "copy", &initial, "use_resource=false", status());
  ASSERT_NE(variable, nullptr) << api_.message();
  EXPECT_STREQ(TF_OperationOpType(variable), "VariableV2");
  EXPECT_STREQ(TF_OperationOpType(slope_), "VarHandleOp");
}

TEST_F(Variables, MistakesAreErrors) {
  EXPECT_EQ(weir_new_variable(graph(), "slope", TF_FLOAT, nullptr, 0, "zeros", nullptr, status()),
            nullptr);
  EXPECT_EQ(api_.code(), TF_ALREADY_EXISTS) << api_.message();
  EXPECT_EQ(weir_new_variable(graph(), "v", TF_FLOAT, nullptr, -1, "zeros", nullptr, status()),
            nullptr);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT) << api_.message();
  EXPECT_EQ(weir_new_variable(graph(), "v", static_cast<TF_DataType>(77), nullptr, 0, "zeros",
                              nullptr, status()),
            nullptr);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(weir_new_variable(nullptr, "v", TF_FLOAT, nullptr, 0, "zeros", nullptr, status()),
            nullptr);
  EXPECT_EQ(api_.message(), "weir_new_variable: an argument is null");
  TF_Output value;
  weir_variable_value(graph(), x_, &value, status());
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
  EXPECT_THAT(api_.message(), HasSubstr("x (Const) is not a variable"));
  Api other;
  weir_variable_value(other.graph(), slope_, &value, other.status());
  EXPECT_EQ(other.code(), TF_INVALID_ARGUMENT);
  const int64_t dims[] = {2};
  TF_Operation* const vector =
      weir_new_variable(graph(), "vector", TF_FLOAT, dims, 1, "zeros", nullptr, status());
  const TF_Output scalar = {x_, 0};
  TF_Output result;
  weir_variable_assign(graph(), vector, &scalar, &result, status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT) << api_.message();
  EXPECT_EQ(weir_variables(graph(), "variables", nullptr, 2, status()), -1);
  EXPECT_EQ(weir_variables(graph(), "variables", nullptr, 0, nullptr), -1);
}

TEST_F(Variables, SeedMakesRandomValuesRepeatable) {
  const auto draw = [] {
    Api api;
    weir_graph_set_seed(api.graph(), 11);
    const int64_t dims[] = {3};
    TF_Operation* const variable = weir_new_variable(api.graph(), "r", TF_FLOAT, dims, 1,
                                                     "random_uniform", nullptr, api.status());
    TF_Output value;
    weir_variable_value(api.graph(), variable, &value, api.status());
    TF_Session* const session = TF_NewSession(api.graph(), nullptr, api.status());
    TF_Operation* const init = weir_variable_initializer(api.graph(), variable, api.status());
    TF_SessionRun(session, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, &init, 1, nullptr,
                  api.status());
    const TensorPtr drawn = api.Run(session, {}, {}, value);
    TF_DeleteSession(session, api.status());
    return FloatAt(drawn, 2);
  };
  EXPECT_EQ(draw(), draw());
}

}  // namespace
}  // namespace weir::capi_test
