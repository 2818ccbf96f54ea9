#include <gtest/gtest.h>

#include "weir/tests/capi/api.h"

namespace weir::capi_test {
namespace {

class WhileLoop : public ::testing::Test {
 protected:
  WhileLoop() : x_(api_.Placeholder("x")) {}

  // Adds an operation with two inputs, the second of which is a constant, to a part of the loop.
  TF_Output AddOp(TF_Graph* graph, const char* op, const char* name, TF_Output input, float value) {
    const TensorPtr tensor = Floats({}, {value});
    const std::string constant = std::string(name) + "_constant";
    TF_OperationDescription* desc = TF_NewOperation(graph, "Const", constant.c_str());
    TF_SetAttrTensor(desc, "value", tensor.get(), api_.status());
    TF_SetAttrType(desc, "dtype", TF_FLOAT);
    TF_Operation* const c = TF_FinishOperation(desc, api_.status());
    desc = TF_NewOperation(graph, op, name);
    TF_AddInput(desc, input);
    TF_AddInput(desc, {c, 0});
    return {TF_FinishOperation(desc, api_.status()), 0};
  }

  // A loop that doubles x while it is below 100.
  TF_WhileParams Begin() {
    TF_Output input = {x_, 0};
    TF_WhileParams params = TF_NewWhile(api_.graph(), &input, 1, api_.status());
    EXPECT_EQ(api_.code(), TF_OK) << api_.message();
    params.cond_output = AddOp(params.cond_graph, "Less", "less", params.cond_inputs[0], 100);
    params.body_outputs[0] = AddOp(params.body_graph, "Mul", "twice", params.body_inputs[0], 2);
    params.name = "loop";
    return params;
  }
  float Run(TF_Output fetch) {
    TF_Session* const session = TF_NewSession(api_.graph(), nullptr, api_.status());
    const TensorPtr three = Floats({}, {3});
    const TensorPtr result = api_.Run(session, {{x_, 0}}, {three.get()}, fetch);
    EXPECT_NE(result, nullptr) << api_.message();
    TF_DeleteSession(session, api_.status());
    return result == nullptr ? 0 : FloatAt(result);
  }

  Api api_;
  TF_Operation* x_;
};

TEST_F(WhileLoop, RunsAndHasGradients) {
  TF_WhileParams params = Begin();
  TF_Output result;
  TF_FinishWhile(&params, api_.status(), &result);
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  EXPECT_EQ(Run(result), 192);
  TF_Output x = {x_, 0}, gradient;
  TF_AddGradients(api_.graph(), &result, 1, &x, 1, nullptr, api_.status(), &gradient);
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  EXPECT_EQ(Run(gradient), 64);
}

TEST_F(WhileLoop, UnfinishedPartsAreErrors) {
  TF_Output result;
  TF_WhileParams params = Begin();
  params.cond_output = {nullptr, -1};
  TF_FinishWhile(&params, api_.status(), &result);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(api_.message(), "TF_WhileParams `cond_output` field isn't set");
  TF_WhileParams unset = Begin();
  unset.body_outputs[0] = {nullptr, -1};
  TF_FinishWhile(&unset, api_.status(), &result);
  EXPECT_EQ(api_.message(), "TF_WhileParams `body_outputs[0]` field isn't set");
  TF_WhileParams number = Begin();
  number.cond_output = AddOp(number.cond_graph, "Mul", "no_bool", number.cond_inputs[0], 1);
  TF_FinishWhile(&number, api_.status(), &result);
  EXPECT_EQ(api_.message(),
            "BuildWhileLoop: 'cond' argument must return a boolean output, got float");
  TF_WhileParams mixed = Begin();
  mixed.cond_output = mixed.body_outputs[0];
  TF_FinishWhile(&mixed, api_.status(), &result);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  TF_WhileParams aborted = Begin();
  TF_AbortWhile(&aborted);
  EXPECT_EQ(TF_NewWhile(api_.graph(), nullptr, 0, api_.status()).ninputs, 0);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace weir::capi_test
