#include <gtest/gtest.h>

#include "tensorflow/c/c_api_experimental.h"
#include "weir/tests/capi/api.h"

namespace weir::capi_test {
namespace {

TEST(Devices, ListTheCpu) {
  Api api;
  TF_Session* const session = TF_NewSession(api.graph(), nullptr, api.status());
  TF_DeviceList* const list = TF_SessionListDevices(session, api.status());
  ASSERT_GE(TF_DeviceListCount(list), 1);
  EXPECT_STREQ(TF_DeviceListName(list, 0, api.status()),
               "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_STREQ(TF_DeviceListType(list, 0, api.status()), "CPU");
  EXPECT_EQ(TF_DeviceListName(list, 99, api.status()), nullptr);
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_DeviceListMemoryBytes(nullptr, 0, api.status()), -1);
  TF_DeleteDeviceList(list);
  TF_DeleteSession(session, api.status());
}

TEST(Devices, OfADeprecatedSession) {
  const StatusPtr status(TF_NewStatus());
  const SessionOptionsPtr options(TF_NewSessionOptions());
  TF_DeprecatedSession* const session = TF_NewDeprecatedSession(options.get(), status.get());
  ASSERT_NE(session, nullptr) << TF_Message(status.get());
  TF_DeviceList* const list = TF_DeprecatedSessionListDevices(session, status.get());
  EXPECT_GE(TF_DeviceListCount(list), 1);
  TF_DeleteDeviceList(list);
  TF_DeleteDeprecatedSession(session, status.get());
}

TEST(Functions, WithoutEffect) {
  Api api;
  const ImportOptionsPtr import(TF_NewImportGraphDefOptions());
  TF_ImportGraphDefOptionsSetValidateColocationConstraints(import.get(), 0);
  int argc = 0;
  char** argv = nullptr;
  TF_InitMain("usage", &argc, &argv);
  const BufferPtr config(TF_CreateConfig(1, 1, 4));
  const SessionOptionsPtr options(TF_NewSessionOptions());
  TF_SetConfig(options.get(), config->data, config->length, api.status());
  EXPECT_EQ(api.code(), TF_OK) << api.message();
  TF_OperationDescription* const desc = TF_NewOperationLocked(api.graph(), "NoOp", "n");
  EXPECT_NE(TF_FinishOperationLocked(desc, api.status()), nullptr) << api.message();
  TF_RegisterFilesystemPlugin("s3.so", api.status());
  EXPECT_EQ(api.code(), TF_UNIMPLEMENTED);
  EXPECT_EQ(TF_LoadPluggableDeviceLibrary("npu.so", api.status()), nullptr);
  EXPECT_EQ(api.code(), TF_UNIMPLEMENTED);
  TF_DeletePluggableDeviceLibraryHandle(nullptr);
}

TEST(Devices, XlaIsNoError) {
  Api api;
  const SessionOptionsPtr options(TF_NewSessionOptions());
  TF_EnableXLACompilation(options.get(), 1);
  TF_Session* const session = TF_NewSession(api.graph(), options.get(), api.status());
  EXPECT_NE(session, nullptr) << api.message();
  TF_DeleteSession(session, api.status());
}

}  // namespace
}  // namespace weir::capi_test
