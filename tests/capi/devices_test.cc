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
