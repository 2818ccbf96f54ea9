#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/tests/capi/eager_api.h"
#include "weir/tests/capi/kernels.h"

namespace weir::capi_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Context, ListsTheCpu) {
  Eager eager;
  TF_DeviceList* const list = TFE_ContextListDevices(eager.context(), eager.status());
  ASSERT_EQ(TF_DeviceListCount(list), 1) << eager.message();
  EXPECT_STREQ(TF_DeviceListName(list, 0, eager.status()),
               "/job:localhost/replica:0/task:0/device:CPU:0");
  TF_DeleteDeviceList(list);
  EXPECT_FALSE(TFE_IsCustomDevice(eager.context(), "CPU:0"));
}

TEST(Context, OptionsAreChecked) {
  const StatusPtr status(TF_NewStatus());
  const ContextOptionsPtr options(TFE_NewContextOptions());
  TFE_ContextOptionsSetConfig(options.get(), "\xff\xff", 2, status.get());
  EXPECT_STREQ(TF_Message(status.get()), "Unparseable ConfigProto");
  TFE_ContextOptionsSetConfig(options.get(), "\x10\x01", 2, status.get());  // one thread
  EXPECT_EQ(TF_GetCode(status.get()), TF_OK);
  TFE_ContextOptionsSetDevicePlacementPolicy(options.get(), TFE_DEVICE_PLACEMENT_EXPLICIT);
  TFE_ContextOptionsSetDevicePlacementPolicy(options.get(),
                                             static_cast<TFE_ContextDevicePlacementPolicy>(77));
  ContextPtr context(TFE_NewContext(options.get(), status.get()));
  EXPECT_EQ(TFE_ContextGetDevicePlacementPolicy(context.get()), TFE_DEVICE_PLACEMENT_EXPLICIT);
  TFE_ContextSetThreadLocalDevicePlacementPolicy(context.get(), TFE_DEVICE_PLACEMENT_WARN);
  EXPECT_EQ(TFE_ContextGetDevicePlacementPolicy(context.get()), TFE_DEVICE_PLACEMENT_WARN);
  TFE_ContextOptionsSetTfrt(options.get(), true);
  EXPECT_EQ(TFE_NewContext(options.get(), status.get()), nullptr);
  EXPECT_EQ(TF_GetCode(status.get()), TF_UNIMPLEMENTED);
}

TEST(Context, PolicyIsSilentByDefault) {
  Eager eager;
  EXPECT_EQ(TFE_ContextGetDevicePlacementPolicy(eager.context()), TFE_DEVICE_PLACEMENT_SILENT);
}

TEST(Context, HasNoServers) {
  Eager eager;
  TFE_ContextSetServerDef(eager.context(), 0, "", 0, eager.status());
  EXPECT_EQ(eager.code(), TF_UNIMPLEMENTED);
  EXPECT_THAT(eager.message(), HasSubstr("libweir-server"));
}

TEST(Context, RecordsWhenOpsRan) {
  Eager eager;
  const HandlePtr x = eager.Scalar(1);
  const auto take = [&] {
    const BufferPtr buffer(TF_NewBuffer());
    TFE_ContextExportRunMetadata(eager.context(), buffer.get(), eager.status());
    EXPECT_EQ(eager.code(), TF_OK) << eager.message();
    return std::string(static_cast<const char*>(buffer->data), buffer->length);
  };
  eager.Execute("Neg", {x.get()});
  EXPECT_EQ(take(), "");
  TFE_ContextEnableRunMetadata(eager.context());
  eager.Execute("Neg", {x.get()});
  TFE_ContextDisableRunMetadata(eager.context());
  eager.Execute("Square", {x.get()});
  const std::string record = take();
  EXPECT_THAT(record, HasSubstr("Neg"));
  EXPECT_THAT(record, HasSubstr("device:CPU:0"));
  EXPECT_EQ(record.find("Square"), std::string::npos);
  EXPECT_EQ(take(), "");
}

TEST(Context, LogsPlacement) {
  Eager eager;
  const HandlePtr x = eager.Scalar(1);
  TFE_ContextSetLogDevicePlacement(eager.context(), 1, eager.status());
  ::testing::internal::CaptureStderr();
  eager.Execute("Neg", {x.get()});
  TFE_ContextSetLogDevicePlacement(eager.context(), 0, eager.status());
  eager.Execute("Square", {x.get()});
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("Executing op Neg in device /job:localhost"));
  EXPECT_EQ(log.find("Square"), std::string::npos);
}

TEST(Context, HasTheOpsOfTheProgram) {
  Eager eager;
  ASSERT_EQ(RegisterOp("EagerTwo", {}, {"y: float"}), TF_OK);
  ASSERT_EQ(RegisterKernel("EagerTwo",
                           [](void*, TF_OpKernelContext* context) {
                             const StatusPtr status(TF_NewStatus());
                             TF_SetOutput(context, 0, Floats({}, {2}).get(), status.get());
                           }),
            TF_OK);
  EXPECT_THAT(eager.Values(eager.Execute("EagerTwo", {})), ElementsAre(2)) << eager.message();
}

TEST(Context, StepsBeginBeforeTheyEnd) {
  Eager eager;
  TFE_ContextStartStep(eager.context());
  ::testing::internal::CaptureStderr();
  TFE_ContextEndStep(eager.context());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  TFE_ContextEndStep(eager.context());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("no step has been started"));
}

using FunctionPtr = std::unique_ptr<TF_Function, Deleter<TF_Function, TF_DeleteFunction>>;

// Returns the function F(x) = x OP x.
FunctionPtr Twice(const char* op) {
  Api body;
  TF_Operation* const x = body.Placeholder("x");
  const TF_Output input = {x, 0}, output = {body.Binary(op, "result", x, x), 0};
  return FunctionPtr(TF_GraphToFunction(body.graph(), "F", 0, -1, nullptr, 1, &input, 1, &output,
                                        nullptr, nullptr, nullptr, body.status()));
}

TEST(Functions, AreExecutedLikeOps) {
  Eager eager;
  const HandlePtr three = eager.Scalar(3);
  const FunctionPtr square = Twice("Mul");
  TFE_ContextAddFunction(eager.context(), square.get(), eager.status());
  ASSERT_EQ(eager.code(), TF_OK) << eager.message();
  EXPECT_EQ(TFE_ContextHasFunction(eager.context(), "F"), 1);
  for (int i = 0; i < 3; ++i) {
    if (i != 1) TFE_ContextClearCaches(eager.context());
    EXPECT_THAT(eager.Values(eager.Execute("F", {three.get()})), ElementsAre(9)) << eager.message();
  }
  const OpPtr call = eager.Op("F", {three.get()});
  TFE_OpSetAttrString(call.get(), "config_proto", "", 0);
  unsigned char is_list = 1;
  EXPECT_EQ(TFE_OpGetAttrType(call.get(), "config_proto", &is_list, eager.status()),
            TF_ATTR_STRING);
  EXPECT_EQ(is_list, 0);
  EXPECT_THAT(eager.Values(eager.Execute(call)), ElementsAre(9)) << eager.message();
}

TEST(Functions, AreRemovedAndReplaced) {
  Eager eager;
  const HandlePtr three = eager.Scalar(3);
  const FunctionPtr square = Twice("Mul"), sum = Twice("Add");
  const BufferPtr bytes(TF_NewBuffer());
  TF_FunctionToFunctionDef(square.get(), bytes.get(), eager.status());
  const auto* const def = static_cast<const char*>(bytes->data);
  TFE_ContextAddFunctionDef(eager.context(), def, bytes->length, eager.status());
  TFE_ContextAddFunctionDef(eager.context(), def, bytes->length, eager.status());
  EXPECT_EQ(eager.code(), TF_OK) << eager.message();
  EXPECT_THAT(eager.Values(eager.Execute("F", {three.get()})), ElementsAre(9));
  TFE_ContextAddFunction(eager.context(), sum.get(), eager.status());
  EXPECT_EQ(eager.code(), TF_INVALID_ARGUMENT);  // F exists, and is different
  TFE_ContextRemoveFunction(eager.context(), "F", eager.status());
  EXPECT_EQ(TFE_ContextHasFunction(eager.context(), "F"), 1);  // it was added twice
  TFE_ContextRemoveFunction(eager.context(), "F", eager.status());
  EXPECT_EQ(TFE_ContextHasFunction(eager.context(), "F"), 0);
  EXPECT_EQ(eager.Op("F"), nullptr);
  EXPECT_EQ(eager.code(), TF_NOT_FOUND);
  TFE_ContextRemoveFunction(eager.context(), "F", eager.status());
  EXPECT_EQ(eager.message(), "Tried to remove non-existent function 'F'.");
  TFE_ContextAddFunction(eager.context(), sum.get(), eager.status());
  EXPECT_EQ(eager.code(), TF_OK) << eager.message();
  EXPECT_THAT(eager.Values(eager.Execute("F", {three.get()})), ElementsAre(6)) << eager.message();
}

TEST(Functions, InvalidDefinitionsAreRejected) {
  Eager eager;
  TFE_ContextAddFunctionDef(eager.context(), "\xff\xff", 2, eager.status());
  EXPECT_EQ(eager.message(), "Invalid FunctionDef proto");
  EXPECT_EQ(eager.code(), TF_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace weir::capi_test
