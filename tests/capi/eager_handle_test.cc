#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/tests/capi/eager_api.h"

// Codes and messages are those of TensorFlow 2.21's library.
namespace weir::capi_test {
namespace {

using ::testing::HasSubstr;

constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";

TEST(TensorHandle, SharesTheElementsOfATensor) {
  Eager eager;
  const TensorPtr tensor = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const HandlePtr handle = eager.Handle(tensor);
  ASSERT_NE(handle, nullptr) << eager.message();
  EXPECT_EQ(TFE_TensorHandleDataType(handle.get()), TF_FLOAT);
  EXPECT_EQ(TFE_TensorHandleNumDims(handle.get(), eager.status()), 2);
  EXPECT_EQ(TFE_TensorHandleDim(handle.get(), 1, eager.status()), 3);
  EXPECT_EQ(TFE_TensorHandleNumElements(handle.get(), eager.status()), 6);
  const TensorPtr resolved(TFE_TensorHandleResolve(handle.get(), eager.status()));
  EXPECT_EQ(TF_TensorData(resolved.get()), TF_TensorData(tensor.get()));
  EXPECT_EQ(TFE_TensorHandleDim(handle.get(), 2, eager.status()), -1);
  EXPECT_EQ(eager.code(), TF_OUT_OF_RANGE);
}

TEST(TensorHandle, StringsAreCopied) {
  Eager eager;
  const StatusPtr status(TF_NewStatus());
  const TensorPtr tensor(
      TFE_AllocateHostTensor(eager.context(), TF_STRING, nullptr, 0, eager.status()));
  ASSERT_NE(tensor, nullptr) << eager.message();
  auto* const string = static_cast<TF_TString*>(TF_TensorData(tensor.get()));
  TF_StringCopy(string, "text", 4);
  const HandlePtr handle = eager.Handle(tensor);
  TF_StringDealloc(string);
  const TensorPtr resolved(
      TFE_TensorHandleResolve(eager.Execute("Identity", {handle.get()}).get(), eager.status()));
  ASSERT_NE(resolved, nullptr) << eager.message();
  EXPECT_STREQ(TF_StringGetDataPointer(static_cast<TF_TString*>(TF_TensorData(resolved.get()))),
               "text");
}

TEST(TensorHandle, NullIsInvalid) {
  const StatusPtr status(TF_NewStatus());
  const auto expect_invalid = [&](bool is_nothing) {
    EXPECT_TRUE(is_nothing);
    EXPECT_EQ(TF_GetCode(status.get()), TF_INVALID_ARGUMENT);
    EXPECT_STREQ(TF_Message(status.get()), "Invalid handle");
    TF_SetStatus(status.get(), TF_OK, "");
  };
  expect_invalid(TFE_TensorHandleResolve(nullptr, status.get()) == nullptr);
  expect_invalid(TFE_TensorHandleDeviceName(nullptr, status.get()) == nullptr);
  expect_invalid(TFE_TensorHandleBackingDeviceName(nullptr, status.get()) == nullptr);
  expect_invalid(TFE_TensorHandleNumDims(nullptr, status.get()) == -1);
  expect_invalid(TFE_TensorHandleNumElements(nullptr, status.get()) == -1);
  expect_invalid(TFE_TensorHandleDim(nullptr, 0, status.get()) == -1);
  expect_invalid(TFE_TensorHandleCopySharingTensor(nullptr, status.get()) == nullptr);
  expect_invalid(TFE_TensorHandleCopyToDevice(nullptr, nullptr, "", status.get()) == nullptr);
  expect_invalid(TFE_TensorHandleTensorDebugInfo(nullptr, status.get()) == nullptr);
}

TEST(TensorHandle, IsOnTheCpu) {
  Eager eager;
  const HandlePtr handle = eager.Scalar(7);
  EXPECT_STREQ(TFE_TensorHandleDeviceName(handle.get(), eager.status()), kCpu);
  EXPECT_STREQ(TFE_TensorHandleBackingDeviceName(handle.get(), eager.status()), kCpu);
  for (const char* name : {kCpu, "CPU:0", "/cpu:0", "", static_cast<const char*>(nullptr)}) {
    const HandlePtr copy(
        TFE_TensorHandleCopyToDevice(handle.get(), eager.context(), name, eager.status()));
    EXPECT_EQ(eager.Values(copy), std::vector<float>{7}) << eager.message();
  }
  EXPECT_EQ(
      TFE_TensorHandleCopyToDevice(handle.get(), eager.context(), "NoSuchDevice:0", eager.status()),
      nullptr);
  EXPECT_EQ(eager.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(eager.message(), "NoSuchDevice:0 unknown device.");
  const HandlePtr shared(TFE_TensorHandleCopySharingTensor(handle.get(), eager.status()));
  EXPECT_EQ(eager.Values(shared), std::vector<float>{7});
}

TEST(TensorHandle, DebugInfoIsTheShape) {
  Eager eager;
  const HandlePtr handle = eager.Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  TFE_TensorDebugInfo* const info = TFE_TensorHandleTensorDebugInfo(handle.get(), eager.status());
  EXPECT_EQ(TFE_TensorDebugInfoOnDeviceNumDims(info), 2);
  EXPECT_EQ(TFE_TensorDebugInfoOnDeviceDim(info, 1), 3);
  EXPECT_EQ(TFE_TensorDebugInfoOnDeviceDim(info, 2), -1);
  TFE_DeleteTensorDebugInfo(info);
}

TEST(HostTensor, RejectsWhatCannotBeAllocated) {
  Eager eager;
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40}, large[] = {int64_t{1} << 60};
  EXPECT_EQ(TFE_AllocateHostTensor(eager.context(), TF_FLOAT, huge, 2, eager.status()), nullptr);
  EXPECT_EQ(eager.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TFE_AllocateHostTensor(eager.context(), TF_UINT8, large, 1, eager.status()), nullptr);
  EXPECT_EQ(eager.code(), TF_RESOURCE_EXHAUSTED);
  EXPECT_EQ(TFE_AllocateHostTensor(eager.context(), TF_RESOURCE, nullptr, 0, eager.status()),
            nullptr);
  EXPECT_THAT(eager.message(), HasSubstr("Unsupported dtype"));
  EXPECT_EQ(TFE_AllocateHostTensor(eager.context(), TF_FLOAT, nullptr, -1, eager.status()),
            nullptr);
  EXPECT_EQ(eager.code(), TF_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace weir::capi_test
