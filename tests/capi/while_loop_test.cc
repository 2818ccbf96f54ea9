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

TEST_F(WhileLoop, HasTheNodesOfTensorFlow) {
  TF_WhileParams params = Begin();
  TF_Output result;
  TF_FinishWhile(&params, api_.status(), &result);
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  EXPECT_STREQ(TF_OperationName(result.oper), "loop/Exit");
  for (const char* name : {"loop/Enter", "loop/Merge", "loop/cond/less", "loop/LoopCond",
                           "loop/Switch", "loop/body/twice", "loop/NextIteration"})
    EXPECT_NE(TF_GraphOperationByName(api_.graph(), name), nullptr) << name;
  EXPECT_EQ(TF_GraphOperationByName(api_.graph(), "loop/body/body_input0"), nullptr);
}

// Adds a loop around a loop: the outer one passes its variable to the inner one, which doubles it
// while it is below 100, and ends at 1000.
TEST_F(WhileLoop, CanHoldLoops) {
  TF_Output results[2], x = {x_, 0};
  for (TF_Output& result : results) {
    TF_WhileParams outer = TF_NewWhile(api_.graph(), &x, 1, api_.status());
    outer.name = "outer";
    outer.cond_output = AddOp(outer.cond_graph, "Less", "less", outer.cond_inputs[0], 1000);
    TF_Output variable = outer.body_inputs[0];
    TF_WhileParams inner = TF_NewWhile(outer.body_graph, &variable, 1, api_.status());
    inner.name = "inner";
    inner.cond_output = AddOp(inner.cond_graph, "Less", "less", inner.cond_inputs[0], 100);
    inner.body_outputs[0] = AddOp(inner.body_graph, "Mul", "twice", inner.body_inputs[0], 2);
    TF_Output low;
    TF_FinishWhile(&inner, api_.status(), &low);
    ASSERT_EQ(api_.code(), TF_OK) << api_.message();
    outer.body_outputs[0] = AddOp(outer.body_graph, "Mul", "triple", low, 3);
    TF_FinishWhile(&outer, api_.status(), &result);
    ASSERT_EQ(api_.code(), TF_OK) << api_.message();
    EXPECT_EQ(Run(result), 1728);
  }
  EXPECT_STREQ(TF_OperationName(results[1].oper), "outer_1/Exit");
  EXPECT_NE(TF_GraphOperationByName(api_.graph(), "outer/body/inner/body/twice"), nullptr);
  TF_Output gradient;
  TF_AddGradients(api_.graph(), &results[1], 1, &x, 1, nullptr, api_.status(), &gradient);
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  EXPECT_EQ(Run(gradient), 576);
}

TEST_F(WhileLoop, EndsIfTheBodyReturnsAConstant) {
  TF_WhileParams params = Begin();
  const TensorPtr thousand = Floats({}, {1000});
  TF_OperationDescription* const desc = TF_NewOperation(params.body_graph, "Const", "thousand");
  TF_SetAttrTensor(desc, "value", thousand.get(), api_.status());
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  params.body_outputs[0] = {TF_FinishOperation(desc, api_.status()), 0};
  TF_Output result;
  TF_FinishWhile(&params, api_.status(), &result);
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  EXPECT_EQ(Run(result), 1000);
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
  EXPECT_EQ(api_.message(), "Requested return tensor 'twice:0' not found in graph def");
  TF_WhileParams outside = Begin();
  outside.body_outputs[0] = {x_, 0};
  TF_FinishWhile(&outside, api_.status(), &result);
  EXPECT_EQ(api_.message(), "Requested return tensor 'x:0' not found in graph def");
  TF_WhileParams index = Begin();
  index.cond_output.index = 100;
  TF_FinishWhile(&index, api_.status(), &result);
  EXPECT_EQ(api_.message(), "Invalid return output 100 of node 'less', which has 1 output(s)");
  TF_WhileParams aborted = Begin();
  TF_AbortWhile(&aborted);
  EXPECT_EQ(TF_NewWhile(api_.graph(), nullptr, 0, api_.status()).ninputs, 0);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace weir::capi_test
