#include <gtest/gtest.h>

#include "weir/proto/node_def.pb.h"
#include "weir/tests/capi/api.h"

namespace weir::capi_test {
namespace {

TEST(TryEvaluateConstant, ComputesWhatConstantsDetermine) {
  Api api;
  TF_Operation* const five = api.Binary("Add", "five", api.Const("two", 2), api.Const("three", 3));
  TF_Tensor* value = nullptr;
  ASSERT_EQ(TF_TryEvaluateConstant(api.graph(), {five, 0}, &value, api.status()), 1)
      << api.message();
  const TensorPtr owned(value);
  EXPECT_EQ(FloatAt(owned), 5);
  TF_Operation* const open = api.Binary("Add", "open", five, api.Placeholder("x"));
  EXPECT_EQ(TF_TryEvaluateConstant(api.graph(), {open, 0}, &value, api.status()), 0);
  EXPECT_EQ(api.code(), TF_OK);
  EXPECT_EQ(value, nullptr);
  EXPECT_EQ(TF_TryEvaluateConstant(api.graph(), {open, 4}, &value, api.status()), 0);
  EXPECT_EQ(api.code(), TF_OUT_OF_RANGE);
}

TEST(UpdateEdge, ReplacesAnInputOfTheSameType) {
  Api api;
  TF_Operation* const two = api.Const("two", 2);
  TF_Operation* const sum = api.Binary("Add", "sum", two, two);
  TF_Operation* const ten = api.Const("ten", 10);
  TF_UpdateEdge(api.graph(), {ten, 0}, {sum, 1}, api.status());
  ASSERT_EQ(api.code(), TF_OK) << api.message();
  EXPECT_EQ(TF_OperationInput({sum, 1}).oper, ten);
  const BufferPtr bytes(TF_NewBuffer());
  TF_OperationToNodeDef(sum, bytes.get(), api.status());
  proto::NodeDef def;
  ASSERT_TRUE(def.ParseFromArray(bytes->data, static_cast<int>(bytes->length)));
  EXPECT_EQ(def.input(0), "two");
  EXPECT_EQ(def.input(1), "ten:0");
  TF_UpdateEdge(api.graph(), {ten, 0}, {sum, 2}, api.status());
  EXPECT_EQ(api.code(), TF_OUT_OF_RANGE);
  TF_UpdateEdge(api.graph(), {nullptr, 0}, {sum, 0}, api.status());
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
}

TEST(Library, AbsentOneIsNotFound) {
  const StatusPtr status(TF_NewStatus());
  EXPECT_EQ(TF_LoadLibrary("/nonexistent.so", status.get()), nullptr);
  EXPECT_EQ(TF_GetCode(status.get()), TF_NOT_FOUND);
  EXPECT_STREQ(TF_Message(status.get()),
               "/nonexistent.so: cannot open shared object file: No such file or directory");
  TF_DeleteLibraryHandle(nullptr);
  EXPECT_EQ(TF_GetOpList(nullptr).data, nullptr);
}

TEST(Server, IsUnimplemented) {
  const StatusPtr status(TF_NewStatus());
  EXPECT_EQ(TF_NewServer("", 0, status.get()), nullptr);
  EXPECT_EQ(TF_GetCode(status.get()), TF_UNIMPLEMENTED);
  TF_ServerStart(nullptr, status.get());
  EXPECT_EQ(TF_GetCode(status.get()), TF_INVALID_ARGUMENT);
  TF_DeleteServer(nullptr);
}

}  // namespace
}  // namespace weir::capi_test
