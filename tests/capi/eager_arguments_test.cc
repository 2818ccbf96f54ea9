#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>

#include "tensorflow/c/c_api_experimental.h"
#include "weir/tests/capi/eager_api.h"

// Every function with wrong arguments: none aborts, all with a status set it, and the others print
// a line.
namespace weir::capi_test {
namespace {

class WrongArguments : public ::testing::Test {
 protected:
  // Expects an error, and clears it.
  void Fails() {
    EXPECT_EQ(eager_.code(), TF_INVALID_ARGUMENT) << eager_.message();
    TF_SetStatus(status_, TF_OK, "");
  }
  // Expects a line for each of `count` calls since the last time.
  void Prints(int count) {
    std::fflush(stderr);
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), count) << log;
    ::testing::internal::CaptureStderr();
  }
  void SetUp() override { ::testing::internal::CaptureStderr(); }
  void TearDown() override { ::testing::internal::GetCapturedStderr(); }

  Eager eager_;
  TFE_Context* const context_ = eager_.context();
  TF_Status* const status_ = eager_.status();
  const HandlePtr x_ = eager_.Scalar(1);
  const OpPtr op_ = eager_.Op("Neg");
};

TEST_F(WrongArguments, OfContexts) {
  TFE_ContextOptionsSetConfig(nullptr, "", 0, status_), Fails();
  TFE_ContextOptionsSetAsync(nullptr, 1);
  TFE_ContextOptionsSetDevicePlacementPolicy(nullptr, TFE_DEVICE_PLACEMENT_WARN);
  TFE_ContextOptionsSetTfrt(nullptr, true);
  Prints(3);
  EXPECT_EQ(TFE_NewContext(nullptr, status_), nullptr), Fails();
  EXPECT_EQ(TFE_ContextListDevices(nullptr, status_), nullptr), Fails();
  TFE_ContextClearCaches(nullptr);
  TFE_ContextSetThreadLocalDevicePlacementPolicy(nullptr, TFE_DEVICE_PLACEMENT_WARN);
  TFE_ContextSetThreadLocalDevicePlacementPolicy(context_,
                                                 static_cast<TFE_ContextDevicePlacementPolicy>(-1));
  EXPECT_EQ(TFE_ContextGetDevicePlacementPolicy(nullptr), TFE_DEVICE_PLACEMENT_EXPLICIT);
  Prints(4);
  TFE_ContextSetServerDef(nullptr, 0, "", 0, status_), Fails();
  TFE_ContextSetServerDef(context_, 0, nullptr, 0, status_), Fails();
  TFE_ContextSetLogDevicePlacement(nullptr, 1, status_), Fails();
  TFE_ContextEnableRunMetadata(nullptr);
  TFE_ContextDisableRunMetadata(nullptr);
  TFE_ContextStartStep(nullptr);
  TFE_ContextEndStep(nullptr);
  EXPECT_FALSE(TFE_IsCustomDevice(nullptr, "CPU:0"));
  Prints(5);
  TFE_ContextExportRunMetadata(context_, nullptr, status_), Fails();
  TFE_DeleteContextOptions(nullptr);
  TFE_DeleteContext(nullptr);
  Prints(0);
}

TEST_F(WrongArguments, OfFunctions) {
  TFE_ContextAddFunctionDef(nullptr, "", 0, status_), Fails();
  TFE_ContextAddFunctionDef(context_, nullptr, 0, status_), Fails();
  TFE_ContextAddFunctionDef(context_, "x", SIZE_MAX, status_), Fails();
  TFE_ContextAddFunction(context_, nullptr, status_), Fails();
  TFE_ContextRemoveFunction(context_, nullptr, status_), Fails();
  EXPECT_EQ(TFE_ContextHasFunction(context_, nullptr), 0);
  Prints(1);
}

TEST_F(WrongArguments, OfExecutors) {
  EXPECT_FALSE(TFE_ExecutorIsAsync(nullptr));
  TFE_ExecutorClearError(nullptr);
  TFE_ContextSetExecutorForThread(context_, nullptr);
  EXPECT_EQ(TFE_ContextGetExecutorForThread(nullptr), nullptr);
  Prints(4);
  TFE_ExecutorWaitForAllPendingNodes(nullptr, status_), Fails();
  TFE_ContextAsyncWait(nullptr, status_), Fails();
  const ExecutorPtr executor(TFE_NewExecutor(false, true, INT_MIN));
  TFE_ExecutorWaitForAllPendingNodes(executor.get(), status_);
  EXPECT_EQ(eager_.code(), TF_OK);
  TFE_DeleteExecutor(nullptr);
}

TEST_F(WrongArguments, OfHandles) {
  EXPECT_EQ(TFE_NewTensorHandle(nullptr, status_), nullptr), Fails();
  EXPECT_EQ(TFE_NewTensorHandleFromTensor(context_, nullptr, status_), nullptr), Fails();
  EXPECT_EQ(TFE_NewTensorHandleFromTensor(nullptr, nullptr, status_), nullptr), Fails();
  EXPECT_EQ(TFE_AllocateHostTensor(nullptr, TF_FLOAT, nullptr, 0, status_), nullptr), Fails();
  EXPECT_EQ(TFE_AllocateHostTensor(context_, TF_FLOAT, nullptr, 3, status_), nullptr), Fails();
  EXPECT_EQ(TFE_AllocateHostTensor(context_, static_cast<TF_DataType>(99), nullptr, 0, status_),
            nullptr);
  Fails();
  EXPECT_EQ(TFE_TensorHandleDataType(nullptr), TF_DataType{});
  EXPECT_EQ(TFE_TensorDebugInfoOnDeviceNumDims(nullptr), -1);
  EXPECT_EQ(TFE_TensorDebugInfoOnDeviceDim(nullptr, 0), -1);
  Prints(3);
  EXPECT_EQ(TFE_TensorHandleCopyToDevice(x_.get(), nullptr, "CPU:0", status_), nullptr), Fails();
  EXPECT_EQ(TFE_TensorHandleDim(x_.get(), -1, status_), -1);
  EXPECT_EQ(eager_.code(), TF_OUT_OF_RANGE);
  EXPECT_EQ(TFE_TensorHandleResolve(x_.get(), nullptr), nullptr);
  EXPECT_EQ(TFE_TensorHandleNumDims(x_.get(), nullptr), -1);
  Prints(2);
  TFE_DeleteTensorHandle(nullptr);
  TFE_DeleteTensorDebugInfo(nullptr);
}

TEST_F(WrongArguments, OfOps) {
  EXPECT_EQ(TFE_NewOp(nullptr, "Neg", status_), nullptr), Fails();
  EXPECT_EQ(TFE_NewOp(context_, nullptr, status_), nullptr), Fails();
  TFE_OpReset(nullptr, "Neg", nullptr, status_), Fails();
  TFE_OpReset(op_.get(), nullptr, nullptr, status_), Fails();
  TFE_OpReset(op_.get(), "Neg", "?", status_), Fails();
  EXPECT_EQ(TFE_OpGetName(nullptr, status_), nullptr), Fails();
  EXPECT_EQ(TFE_OpGetContext(nullptr, status_), nullptr), Fails();
  TFE_OpSetDevice(nullptr, "CPU:0", status_), Fails();
  EXPECT_EQ(TFE_OpGetDevice(nullptr, status_), nullptr), Fails();
  TFE_OpAddInput(op_.get(), nullptr, status_), Fails();
  TFE_OpAddInput(nullptr, x_.get(), status_), Fails();
  TFE_TensorHandle* inputs[] = {x_.get(), nullptr};
  TFE_OpAddInputList(op_.get(), nullptr, 1, status_), Fails();
  TFE_OpAddInputList(op_.get(), inputs, 2, status_), Fails();
  TFE_OpAddInputList(op_.get(), inputs, INT_MIN, status_), Fails();
  TFE_OpAddInputList(op_.get(), inputs, INT_MAX, status_), Fails();
  TFE_OpAddInputList(nullptr, inputs, 1, status_), Fails();
  EXPECT_EQ(TFE_OpGetFlatInputCount(op_.get(), status_), 0);
  EXPECT_EQ(TFE_OpGetFlatInputCount(nullptr, status_), -1), Fails();
  EXPECT_EQ(TFE_OpGetFlatInput(nullptr, 0, status_), nullptr), Fails();
  EXPECT_EQ(TFE_OpGetFlatInput(op_.get(), INT_MAX, status_), nullptr);
  EXPECT_EQ(eager_.code(), TF_OUT_OF_RANGE);
  unsigned char is_list = 0;
  TFE_OpGetAttrType(nullptr, "T", &is_list, status_), Fails();
  TFE_OpGetAttrType(op_.get(), nullptr, &is_list, status_), Fails();
  TFE_OpGetAttrType(op_.get(), "T", nullptr, status_), Fails();
  TFE_OpNameGetAttrType(nullptr, "Neg", "T", &is_list, status_), Fails();
  EXPECT_EQ(TFE_OpGetInputLength(op_.get(), nullptr, status_), -1), Fails();
  EXPECT_EQ(TFE_OpGetOutputLength(nullptr, "y", status_), -1), Fails();
  TFE_DeleteOp(nullptr);
  Prints(0);
}

TEST_F(WrongArguments, OfAttributes) {
  TFE_OpSetAttrString(nullptr, "a", "", 0);
  TFE_OpSetAttrInt(op_.get(), nullptr, 0);
  TFE_OpSetAttrFloat(nullptr, "a", 0);
  TFE_OpSetAttrBool(nullptr, "a", 0);
  TFE_OpSetAttrType(nullptr, "a", TF_FLOAT);
  TFE_OpSetAttrFunction(op_.get(), "a", nullptr);
  TFE_OpSetAttrFunctionName(nullptr, "a", "f", 1);
  TFE_OpSetAttrStringList(op_.get(), "a", nullptr, nullptr, 2);
  TFE_OpSetAttrIntList(nullptr, "a", nullptr, 0);
  TFE_OpSetAttrFloatList(nullptr, "a", nullptr, 0);
  TFE_OpSetAttrBoolList(nullptr, "a", nullptr, 0);
  TFE_OpSetAttrTypeList(nullptr, "a", nullptr, 0);
  TFE_OpSetAttrFunctionList(nullptr, "a", nullptr, 0);
  EXPECT_EQ(TFE_OpGetAttrs(nullptr), nullptr);
  TFE_OpAddAttrs(op_.get(), nullptr);
  Prints(15);
  TFE_OpSetAttrShape(nullptr, "a", nullptr, 0, status_), Fails();
  TFE_OpSetAttrShape(op_.get(), "a", nullptr, 2, status_), Fails();
  TFE_OpSetAttrTensor(nullptr, "a", nullptr, status_), Fails();
  TFE_OpSetAttrShapeList(op_.get(), "a", nullptr, nullptr, 2, status_), Fails();
  TFE_OpSetAttrValueProto(nullptr, "a", "", 0, status_), Fails();
  TFE_OpSetAttrValueProto(op_.get(), "a", nullptr, 5, status_), Fails();
  TFE_OpSetAttrValueProto(op_.get(), "a", "x", SIZE_MAX, status_), Fails();
  TFE_OpAttrsSerialize(TFE_OpGetAttrs(op_.get()), nullptr, status_), Fails();
  TFE_OpAddInput(op_.get(), x_.get(), status_);
  EXPECT_EQ(eager_.Values(eager_.Execute(op_)), std::vector<float>{-1});  // nothing was changed
  // What has no status stays with the op.
  const TFE_Op* none[] = {nullptr};
  TFE_OpSetAttrFunctionList(op_.get(), "a", none, 1);
  TFE_OpSetAttrString(op_.get(), "a", "x", SIZE_MAX);
  EXPECT_EQ(eager_.Execute(op_), nullptr);
  Fails();
  Prints(0);
}

TEST_F(WrongArguments, OfExecutions) {
  TFE_OpAddInput(op_.get(), x_.get(), status_);
  TFE_TensorHandle* output = nullptr;
  int count = 1;
  TFE_Execute(nullptr, &output, &count, status_), Fails();
  TFE_Execute(op_.get(), &output, nullptr, status_), Fails();
  TFE_Execute(op_.get(), nullptr, &count, status_), Fails();
  for (int wrong : {0, -1, INT_MIN}) {
    TFE_Execute(op_.get(), &output, &wrong, status_), Fails();
  }
  TFE_Execute(op_.get(), &output, &count, nullptr);
  EXPECT_EQ(output, nullptr);
  Prints(1);
}

TEST_F(WrongArguments, OfShapes) {
  EXPECT_EQ(TF_NewShapeAndTypeList(-1), nullptr);
  EXPECT_EQ(TF_NewShapeAndTypeList(INT_MAX), nullptr);
  TF_ShapeAndTypeListSetShape(nullptr, 0, nullptr, 0);
  TF_ShapeAndTypeList* const list = TF_NewShapeAndTypeList(1);
  TF_ShapeAndTypeListSetShape(list, 1, nullptr, 0);
  TF_ShapeAndTypeListSetShape(list, 0, nullptr, 3);
  TF_ShapeAndTypeListSetUnknownShape(list, -1);
  TF_ShapeAndTypeListSetDtype(list, INT_MAX, TF_FLOAT);
  Prints(7);
  TF_ShapeAndTypeList* outputs = nullptr;
  const auto infer = [&](TFE_Op* op, TF_ShapeAndTypeList* inputs, TF_ShapeAndTypeList** to) {
    TFE_InferShapes(op, inputs, nullptr, nullptr, nullptr, to, nullptr, status_);
    Fails();
  };
  infer(nullptr, list, &outputs);
  infer(op_.get(), nullptr, &outputs);
  infer(op_.get(), list, nullptr);
  infer(op_.get(), list, &outputs);  // T is not set
  TFE_OpSetAttrType(op_.get(), "T", TF_FLOAT);
  list->num_items = 0;
  infer(op_.get(), list, &outputs);
  list->num_items = 1;
  TF_DeleteShapeAndTypeList(list);
  TF_DeleteShapeAndTypeList(nullptr);
  TF_DeleteShapeAndTypeListArray(nullptr, 4);
}

}  // namespace
}  // namespace weir::capi_test
