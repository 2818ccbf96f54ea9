#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/proto/function.pb.h"
#include "weir/proto/op_def.pb.h"
#include "weir/tests/capi/api.h"

namespace weir::capi_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// What a buffer holds.
template <class Message>
Message Parse(const BufferPtr& buffer) {
  Message message;
  EXPECT_TRUE(message.ParseFromArray(buffer->data, static_cast<int>(buffer->length)));
  return message;
}

using FunctionPtr = std::unique_ptr<TF_Function, Deleter<TF_Function, TF_DeleteFunction>>;

class Function : public ::testing::Test {
 protected:
  Function() : x_(body_.Placeholder("x")), square_(body_.Binary("Mul", "square", x_, x_)) {}

  FunctionPtr Make(const char* const* output_names = nullptr, bool append_hash = false) {
    const TF_Output input = {x_, 0}, output = {square_, 0};
    return FunctionPtr(TF_GraphToFunction(body_.graph(), "Square", append_hash ? 1 : 0, -1, nullptr,
                                          1, &input, 1, &output, output_names, nullptr, nullptr,
                                          body_.status()));
  }

  // The function of all nodes that make none of the inputs.
  FunctionPtr MakeOf(const std::vector<TF_Output>& inputs, const std::vector<TF_Output>& outputs,
                     const char* const* output_names = nullptr) {
    return FunctionPtr(TF_GraphToFunction(body_.graph(), "f", 0, -1, nullptr,
                                          static_cast<int>(inputs.size()), inputs.data(),
                                          static_cast<int>(outputs.size()), outputs.data(),
                                          output_names, nullptr, nullptr, body_.status()));
  }
  proto::FunctionDef DefOf(const FunctionPtr& function) {
    const BufferPtr bytes(TF_NewBuffer());
    TF_FunctionToFunctionDef(function.get(), bytes.get(), api_.status());
    return Parse<proto::FunctionDef>(bytes);
  }

  Api body_, api_;
  TF_Operation *x_, *square_;
};

TEST_F(Function, IsCalledLikeAnOp) {
  const FunctionPtr square = Make();
  ASSERT_NE(square, nullptr) << body_.message();
  EXPECT_STREQ(TF_FunctionName(square.get()), "Square");
  TF_GraphCopyFunction(api_.graph(), square.get(), nullptr, api_.status());
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  TF_Operation* const three = api_.Const("three", 3);
  TF_OperationDescription* desc = TF_NewOperation(api_.graph(), "Square_", "none");
  EXPECT_EQ(TF_FinishOperation(desc, api_.status()), nullptr);
  desc = TF_NewOperation(api_.graph(), "Square", "call");
  TF_AddInput(desc, {three, 0});
  TF_AddControlInput(desc, three);
  TF_Operation* const builtin = TF_FinishOperation(desc, api_.status());
  ASSERT_NE(builtin, nullptr) << api_.message();
  TF_Session* const session = TF_NewSession(api_.graph(), nullptr, api_.status());
  const TensorPtr nine = api_.Run(session, {}, {}, {builtin, 0});
  ASSERT_NE(nine, nullptr) << api_.message();
  EXPECT_EQ(FloatAt(nine), 9);
  TF_DeleteSession(session, api_.status());
}

TEST_F(Function, RoundTripsAndIsListed) {
  const char* const names[] = {"result"};
  const FunctionPtr made = Make(names);
  ASSERT_NE(made, nullptr) << body_.message();
  const BufferPtr bytes(TF_NewBuffer());
  TF_FunctionToFunctionDef(made.get(), bytes.get(), api_.status());
  EXPECT_THAT(std::string(static_cast<const char*>(bytes->data), bytes->length),
              HasSubstr("result"));
  const FunctionPtr read(TF_FunctionImportFunctionDef(bytes->data, bytes->length, api_.status()));
  ASSERT_NE(read, nullptr);
  TF_GraphCopyFunction(api_.graph(), read.get(), nullptr, api_.status());
  TF_GraphCopyFunction(api_.graph(), made.get(), nullptr, api_.status());  // equal
  EXPECT_EQ(api_.code(), TF_OK) << api_.message();
  ASSERT_EQ(TF_GraphNumFunctions(api_.graph()), 1);
  TF_Function* got[4];
  EXPECT_EQ(TF_GraphGetFunctions(api_.graph(), got, 4, api_.status()), 1);
  EXPECT_STREQ(TF_FunctionName(got[0]), "Square");
  EXPECT_EQ(got[1], nullptr);
  TF_DeleteFunction(got[0]);
  const FunctionPtr other = Make();
  TF_GraphCopyFunction(api_.graph(), other.get(), nullptr, api_.status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_FunctionImportFunctionDef("\xff", 1, api_.status()), nullptr);
  EXPECT_EQ(api_.message(), "Invalid FunctionDef given to TF_FunctionImportFunctionDef");
}

TEST_F(Function, HashIsAppended) {
  const FunctionPtr made = Make(nullptr, true);
  ASSERT_NE(made, nullptr) << body_.message();
  EXPECT_THAT(TF_FunctionName(made.get()), StartsWith("Square_"));
}

// The name that TensorFlow 2.21 gives the same function.
TEST_F(Function, HashIsThatOfTensorFlow) {
  Api graph;
  TF_OperationDescription* desc = TF_NewOperation(graph.graph(), "Placeholder", "feed");
  TF_SetAttrType(desc, "dtype", TF_INT32);
  const TF_Output input = {TF_FinishOperation(desc, graph.status()), 0};
  desc = TF_NewOperation(graph.graph(), "Neg", "neg");
  TF_AddInput(desc, input);
  const TF_Output output = {TF_FinishOperation(desc, graph.status()), 0};
  const FunctionPtr made(TF_GraphToFunction(graph.graph(), "func_name_base", 1, -1, nullptr, 1,
                                            &input, 1, &output, nullptr, nullptr,
                                            "Return something", graph.status()));
  ASSERT_NE(made, nullptr) << graph.message();
  EXPECT_STREQ(TF_FunctionName(made.get()), "func_name_base_qaJ8jA8UmGY");
}

// Results get the names of their nodes, in the form of arguments; then arguments, then nodes.
TEST_F(Function, NamesAreUnique) {
  TF_Operation* const product = body_.Binary("Mul", "2nd/Product", square_, x_);
  const FunctionPtr made = MakeOf({{x_, 0}}, {{product, 0}, {square_, 0}, {square_, 0}, {x_, 0}});
  ASSERT_NE(made, nullptr) << body_.message();
  const proto::FunctionDef def = DefOf(made);
  ASSERT_EQ(def.signature().output_arg_size(), 4);
  EXPECT_EQ(def.signature().output_arg(0).name(), "nd_product");
  EXPECT_EQ(def.signature().output_arg(1).name(), "square");
  EXPECT_EQ(def.signature().output_arg(2).name(), "square_0");
  EXPECT_EQ(def.signature().output_arg(3).name(), "x");
  EXPECT_EQ(def.signature().input_arg(0).name(), "x_0");
  ASSERT_EQ(def.node_def_size(), 2);
  EXPECT_EQ(def.node_def(0).name(), "square_1");
  EXPECT_EQ(def.node_def(1).name(), "2nd/Product");
  EXPECT_EQ(def.node_def(1).input(0), "square_1:z:0");
  EXPECT_EQ(def.node_def(1).input(1), "x_0");
  EXPECT_EQ(def.ret().at("x"), "x_0");
  EXPECT_EQ(def.ret().at("square_0"), "square_1:z:0");
}

TEST_F(Function, ArgumentsKeepInternalAttributesAndShapes) {
  TF_OperationDescription* const desc = TF_NewOperation(body_.graph(), "Placeholder", "marked");
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrString(desc, "_mark", "m", 1);
  TF_Operation* const marked = TF_FinishOperation(desc, body_.status());
  const FunctionPtr made = MakeOf({{x_, 0}, {marked, 0}}, {{square_, 0}});
  ASSERT_NE(made, nullptr) << body_.message();
  const proto::FunctionDef def = DefOf(made);
  EXPECT_EQ(def.arg_attr().at(1).attr().at("_mark").s(), "m");
  EXPECT_EQ(def.arg_attr().at(0).attr().at("_output_shapes").list().shape_size(), 1);
}

TEST_F(Function, IsAnOpOfTheGraph) {
  TF_OperationDescription* const desc = TF_NewOperation(body_.graph(), "VarHandleOp", "handle");
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrShape(desc, "shape", nullptr, 0);
  const TF_Output handle = {TF_FinishOperation(desc, body_.status()), 0};
  const FunctionPtr made = MakeOf({{x_, 0}}, {handle});
  ASSERT_NE(made, nullptr) << body_.message();
  TF_GraphCopyFunction(api_.graph(), made.get(), nullptr, api_.status());
  const BufferPtr bytes(TF_NewBuffer());
  TF_GraphGetOpDef(api_.graph(), "f", bytes.get(), api_.status());
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  const auto op = Parse<proto::OpDef>(bytes);
  EXPECT_EQ(op.name(), "f");
  EXPECT_EQ(op.output_arg_size(), 1);
  EXPECT_TRUE(op.is_stateful());
}

TEST_F(Function, OtherEndsAreErrors) {
  EXPECT_EQ(MakeOf({{x_, 0}, {x_, 2}}, {}), nullptr);
  EXPECT_EQ(body_.code(), TF_OUT_OF_RANGE);
  EXPECT_EQ(body_.message(),
            "Node 'x' (type: 'Placeholder', num of outputs: 1) does not have output 2\n"
            "\tEncountered while processing input 1 into function 'f'");
  EXPECT_EQ(MakeOf({}, {{nullptr, 0}}), nullptr);
  EXPECT_EQ(body_.message(),
            "Node is null\n\tEncountered while processing output 0 from function 'f'");
  TF_OperationDescription* desc = TF_NewOperation(body_.graph(), "VariableV2", "v");
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrShape(desc, "shape", nullptr, 0);
  EXPECT_EQ(MakeOf({{TF_FinishOperation(desc, body_.status()), 0}}, {}), nullptr);
  EXPECT_EQ(body_.message(),
            "Output 0 of node 'v' has a reference type float_ref\n"
            "\tEncountered while processing input 0 into function 'f'");
  desc = TF_NewOperation(body_.graph(), "Unique", "unique");
  TF_AddInput(desc, {x_, 0});
  EXPECT_EQ(MakeOf({{TF_FinishOperation(desc, body_.status()), 0}}, {}), nullptr);
  EXPECT_EQ(body_.message(),
            "When `num_opers` is set to -1, nodes referenced in `inputs` must have a single "
            "output. Node unique has 2 outputs. Encountered while creating function 'f'");
}

TEST_F(Function, KeepsItsGradient) {
  const FunctionPtr made = Make();
  const FunctionPtr one = MakeOf({{x_, 0}}, {{square_, 0}});
  TF_GraphCopyFunction(api_.graph(), made.get(), one.get(), api_.status());
  EXPECT_EQ(api_.code(), TF_OK) << api_.message();
  TF_GraphCopyFunction(api_.graph(), made.get(), made.get(), api_.status());
  EXPECT_EQ(api_.message(),
            "Cannot assign gradient function 'Square' to 'Square' because it already has gradient "
            "function 'f'");
}

TEST_F(Function, AttributesAreKept) {
  const FunctionPtr made = Make();
  TF_FunctionSetAttrValueProto(made.get(), "_mark", "\x28\x01", 2, api_.status());  // b: true
  EXPECT_EQ(api_.code(), TF_OK) << api_.message();
  const BufferPtr bytes(TF_NewBuffer());
  TF_FunctionGetAttrValueProto(made.get(), "_mark", bytes.get(), api_.status());
  EXPECT_EQ(bytes->length, 2);
  TF_FunctionGetAttrValueProto(made.get(), "none", bytes.get(), api_.status());
  EXPECT_EQ(api_.message(), "Function 'Square' has no attr named 'none'.");
}

TEST_F(Function, WhatIsNotInTheBodyIsAnError) {
  const TF_Output output = {square_, 0};
  EXPECT_EQ(TF_GraphToFunction(body_.graph(), "f", 0, 1, &square_, 0, nullptr, 1, &output, nullptr,
                               nullptr, nullptr, body_.status()),
            nullptr);
  EXPECT_EQ(body_.code(), TF_INVALID_ARGUMENT);
  const TF_Output outside = {square_, 5};
  EXPECT_EQ(TF_GraphToFunction(body_.graph(), "f", 0, -1, nullptr, 0, nullptr, 1, &outside, nullptr,
                               nullptr, nullptr, body_.status()),
            nullptr);
  EXPECT_EQ(body_.code(), TF_OUT_OF_RANGE);
  EXPECT_EQ(TF_GraphToFunction(nullptr, "f", 0, -1, nullptr, 0, nullptr, 0, nullptr, nullptr,
                               nullptr, nullptr, body_.status()),
            nullptr);
  TF_GraphCopyFunction(api_.graph(), nullptr, nullptr, api_.status());
  EXPECT_EQ(api_.message(), "'func' argument to TF_GraphCopyFunction cannot be null");
}

}  // namespace
}  // namespace weir::capi_test
