#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/tests/capi/api.h"

namespace weir::capi_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

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
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace weir::capi_test
