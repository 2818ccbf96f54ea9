#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "weir/proto/attr_value.pb.h"
#include "weir/proto/function.pb.h"
#include "weir/proto/kernel_def.pb.h"
#include "weir/proto/node_def.pb.h"
#include "weir/tests/capi/kernels.h"

// Kernels registered by a program: creation, computation, choice and errors.
namespace weir::capi_test {
namespace {

using ::testing::HasSubstr;

std::string TextOf(TF_StringView view) { return {view.data, view.len}; }

// Sets output 0 to a float.
void SetFloat(TF_OpKernelContext* context, float value) {
  const StatusPtr status(TF_NewStatus());
  TF_SetOutput(context, 0, Floats({}, {value}).get(), status.get());
  EXPECT_EQ(TF_GetCode(status.get()), TF_OK) << TF_Message(status.get());
}

TEST(Kernels, TheHighestPriorityRuns) {
  ASSERT_EQ(RegisterOp("PriorityOp", {}, {"y: float"}), TF_OK);
  ASSERT_EQ(RegisterKernel("PriorityOp", [](void*, TF_OpKernelContext* c) { SetFloat(c, 1); }),
            TF_OK);
  Runner runner;
  TensorPtr value = runner.Fetch(runner.Add("PriorityOp", "a"));
  ASSERT_NE(value, nullptr) << runner.message();
  EXPECT_EQ(FloatAt(value), 1);
  ASSERT_EQ(RegisterKernel(
                "PriorityOp", [](void*, TF_OpKernelContext* c) { SetFloat(c, 2); },
                [](TF_KernelBuilder* kernel) { TF_KernelBuilder_Priority(kernel, 2); }),
            TF_OK);
  ASSERT_EQ(RegisterKernel(
                "PriorityOp", [](void*, TF_OpKernelContext* c) { SetFloat(c, 3); },
                [](TF_KernelBuilder* kernel) { TF_KernelBuilder_Label(kernel, "third"); }),
            TF_OK);
  value = runner.Fetch(runner.Add("PriorityOp", "b"));
  ASSERT_NE(value, nullptr) << runner.message();
  EXPECT_EQ(FloatAt(value), 2);
  value = runner.Fetch(runner.Add("PriorityOp", "c", {}, [](TF_OperationDescription* desc) {
    TF_SetAttrString(desc, "_kernel", "third", 5);
  }));
  ASSERT_NE(value, nullptr) << runner.message();
  EXPECT_EQ(FloatAt(value), 3);
  ASSERT_EQ(RegisterKernel(
                "PriorityOp", [](void*, TF_OpKernelContext*) {},
                [](TF_KernelBuilder* kernel) { TF_KernelBuilder_Priority(kernel, 2); }),
            TF_OK);
  EXPECT_EQ(runner.Fetch(runner.Add("PriorityOp", "d")), nullptr);
  EXPECT_THAT(runner.message(), HasSubstr("Multiple OpKernel registrations match"));
}

TEST(Kernels, AnotherTypeHasNoKernel) {
  ASSERT_EQ(RegisterOp("TypedOp", {}, {"y: T"}, {"T: {float, int32}"}), TF_OK);
  ASSERT_EQ(RegisterKernel(
                "TypedOp", [](void*, TF_OpKernelContext* c) { SetFloat(c, 4); },
                [](TF_KernelBuilder* kernel) {
                  const StatusPtr status(TF_NewStatus());
                  TF_KernelBuilder_TypeConstraint(kernel, "T", TF_FLOAT, status.get());
                }),
            TF_OK);
  Runner runner;
  const auto typed = [&](const char* name, TF_DataType type) {
    return runner.Add("TypedOp", name, {},
                      [&](TF_OperationDescription* desc) { TF_SetAttrType(desc, "T", type); });
  };
  EXPECT_NE(runner.Fetch(typed("f", TF_FLOAT)), nullptr) << runner.message();
  EXPECT_EQ(runner.Fetch(typed("i", TF_INT32)), nullptr);
  EXPECT_EQ(runner.code(), TF_INVALID_ARGUMENT);
  EXPECT_THAT(runner.message(), HasSubstr("No OpKernel was registered to support Op 'TypedOp'"));
}

TEST(Kernels, OfBuiltInOpsAreIgnoredForTheCpu) {
  const auto none = [](void*, TF_OpKernelContext*) {};
  EXPECT_EQ(RegisterKernel("MatMul", none), TF_OK);  // ignored
  const StatusPtr status(TF_NewStatus());
  TF_RegisterKernelBuilder("x", TF_NewKernelBuilder("MatMul", "MY_NPU", nullptr, none, nullptr),
                           status.get());
  EXPECT_EQ(TF_GetCode(status.get()), TF_OK) << TF_Message(status.get());
}

TEST(Kernels, KernelDefReplacesTheBuilder) {
  ASSERT_EQ(RegisterOp("DescribedOp", {}, {"y: float"}), TF_OK);
  proto::KernelDef def;
  def.set_op("DescribedOp");
  def.set_device_type("CPU");
  const StatusPtr status(TF_NewStatus());
  const auto compute = [](void*, TF_OpKernelContext* c) { SetFloat(c, 5); };
  TF_RegisterKernelBuilderWithKernelDef(
      def.SerializeAsString().c_str(), "x",
      TF_NewKernelBuilder("Other", "GPU", nullptr, compute, nullptr), status.get());
  ASSERT_EQ(TF_GetCode(status.get()), TF_OK) << TF_Message(status.get());
  Runner runner;
  const TensorPtr value = runner.Fetch(runner.Add("DescribedOp", "a"));
  ASSERT_NE(value, nullptr) << runner.message();
  EXPECT_EQ(FloatAt(value), 5);
  TF_RegisterKernelBuilderWithKernelDef(
      "\xff", "x", TF_NewKernelBuilder("Other", "CPU", nullptr, compute, nullptr), status.get());
  EXPECT_EQ(TF_GetCode(status.get()), TF_INVALID_ARGUMENT);
  TF_DeleteKernelBuilder(TF_NewKernelBuilder("Other", "CPU", nullptr, compute, nullptr));
}

TEST(Kernels, FailuresFailTheStep) {
  ASSERT_EQ(RegisterOp("FailingOp", {}, {"y: float"}), TF_OK);
  ASSERT_EQ(RegisterKernel("FailingOp",
                           [](void*, TF_OpKernelContext* c) {
                             const StatusPtr status(TF_NewStatus());
                             TF_SetStatus(status.get(), TF_DATA_LOSS, "bad sector");
                             TF_OpKernelContext_Failure(c, status.get());
                           }),
            TF_OK);
  ASSERT_EQ(RegisterOp("UncreatableOp", {}, {"y: float"}), TF_OK);
  static std::atomic<int> num_deleted = 0;
  const StatusPtr status(TF_NewStatus());
  const auto create = [](TF_OpKernelConstruction* c) -> void* {
    const StatusPtr failed(TF_NewStatus());
    TF_SetStatus(failed.get(), TF_ABORTED, "no thanks");
    TF_OpKernelConstruction_Failure(c, failed.get());
    return nullptr;
  };
  TF_RegisterKernelBuilder("x",
                           TF_NewKernelBuilder(
                               "UncreatableOp", "CPU", create, [](void*, TF_OpKernelContext*) {},
                               [](void*) { ++num_deleted; }),
                           status.get());
  ASSERT_EQ(TF_GetCode(status.get()), TF_OK);
  Runner runner;
  EXPECT_EQ(runner.Fetch(runner.Add("FailingOp", "a")), nullptr);
  EXPECT_EQ(runner.code(), TF_DATA_LOSS);
  EXPECT_THAT(runner.message(), HasSubstr("bad sector"));
  EXPECT_EQ(runner.Fetch(runner.Add("UncreatableOp", "b")), nullptr);
  EXPECT_EQ(runner.code(), TF_ABORTED);
  EXPECT_THAT(runner.message(), HasSubstr("no thanks"));
  EXPECT_GE(num_deleted, 1);
}

TEST(Kernels, OutputsThatAreNotSetAreAnError) {
  ASSERT_EQ(RegisterOp("SilentOp", {}, {"y: float"}), TF_OK);
  ASSERT_EQ(RegisterKernel("SilentOp", [](void*, TF_OpKernelContext*) {}), TF_OK);
  Runner runner;
  EXPECT_EQ(runner.Fetch(runner.Add("SilentOp", "a")), nullptr);
  EXPECT_EQ(runner.code(), TF_INTERNAL) << runner.message();
}

TEST(Kernels, AsynchronousOnesEndOnAnotherThread) {
  ASSERT_EQ(RegisterOp("AsyncOp", {"x: float"}, {"y: float"}), TF_OK);
  const StatusPtr status(TF_NewStatus());
  TF_RegisterKernelBuilder(
      "x",
      TF_NewAsyncKernelBuilder(
          "AsyncOp", "CPU", nullptr,
          [](void*, TF_OpKernelContext* c, TF_AsyncOpKernelDoneCallback* done) {
            std::thread([c, done] {
              const StatusPtr input(TF_NewStatus());
              TF_Tensor* x = nullptr;
              TF_GetInput(c, 0, &x, input.get());
              const TensorPtr owned(x);
              SetFloat(c, FloatAt(owned) + 1);
              TF_RunAsyncOpKernelDoneCallback(done);
            }).detach();
          },
          nullptr),
      status.get());
  ASSERT_EQ(TF_GetCode(status.get()), TF_OK) << TF_Message(status.get());
  Runner runner;
  TF_Operation* last = runner.Const("x", 0);
  for (int i = 0; i < 20; ++i)
    last = runner.Add("AsyncOp", ("a" + std::to_string(i)).c_str(), {last});
  const TensorPtr value = runner.Fetch(last);
  ASSERT_NE(value, nullptr) << runner.message();
  EXPECT_EQ(FloatAt(value), 20);
}

// Reads everything that a computation can read.
void ComputeProbe(void*, TF_OpKernelContext* c) {
  const StatusPtr status(TF_NewStatus());
  TF_Status* const s = status.get();
  EXPECT_EQ(TF_NumInputs(c), 3);
  EXPECT_EQ(TF_NumOutputs(c), 2);
  EXPECT_EQ(TF_InputDatatype(c, 1), TF_FLOAT);
  EXPECT_EQ(TF_ExpectedOutputDataType(c, 1), TF_STRING);
  EXPECT_TRUE(TF_IsHostMemoryInput(c, 0, s));
  EXPECT_FALSE(TF_IsHostMemoryInput(c, 3, s));
  EXPECT_EQ(TF_GetCode(s), TF_OUT_OF_RANGE);
  EXPECT_TRUE(TF_IsHostMemoryOutput(c, 1, s));
  EXPECT_FALSE(TF_IsHostMemoryOutput(c, 2, s));
  TF_InputRange_Args range = {TF_InputRange_Args_STRUCT_SIZE, nullptr, 0, 0, s};
  TF_InputRange(c, "rest", &range);
  EXPECT_EQ(range.start, 1);
  EXPECT_EQ(range.stop, 3);
  TF_InputRange(c, "none", &range);
  EXPECT_EQ(TF_GetCode(s), TF_INVALID_ARGUMENT);
  EXPECT_EQ(range.start, -1);
  TF_Tensor* input = nullptr;
  TF_GetInput(c, 3, &input, s);
  EXPECT_EQ(TF_GetCode(s), TF_OUT_OF_RANGE);
  EXPECT_EQ(input, nullptr);

  EXPECT_EQ(TextOf(TF_GetOpKernelName(c)), "probe");
  EXPECT_EQ(TextOf(TF_GetOpKernelRequestedInput(c, 2)), "b");
  EXPECT_EQ(TF_GetOpKernelRequestedInput(c, 3).data, nullptr);
  EXPECT_GE(TF_GetGraphDefVersion(c), 0);
  EXPECT_EQ(TF_StepId(c), TF_GetStepId(c));
  EXPECT_EQ(TF_GetFrameId(c), 0u);
  EXPECT_EQ(TF_GetIterId(c), 0);
  EXPECT_EQ(TF_GetDeviceId(c), 0);
  EXPECT_THAT(TextOf(TF_GetDeviceName(c)), HasSubstr("device:CPU:0"));
  EXPECT_EQ(TextOf(TF_GetResourceMgrDefaultContainerName(c)), "localhost");
  EXPECT_EQ(TF_GetStream(c, s), nullptr);
  EXPECT_EQ(TF_GetCode(s), TF_FAILED_PRECONDITION);
  const BufferPtr bytes(TF_NewBuffer());
  TF_GetSerializedFunctionDefLibrary(c, bytes.get(), s);
  EXPECT_EQ(TF_GetCode(s), TF_OK);
  TF_GetSerializedConfigProto(c, bytes.get(), s);
  EXPECT_EQ(TF_GetCode(s), TF_UNIMPLEMENTED);
  TF_GetSerializedResourceHandleProto(c, 0, bytes.get(), s);
  EXPECT_EQ(TF_GetCode(s), TF_INVALID_ARGUMENT);
  TF_IncNumDeferredOps(c);
  TF_DecNumDeferredOps(c);
}

// Allocates and sets outputs, also wrongly.
void ComputeOutputs(void*, TF_OpKernelContext* c) {
  const StatusPtr status(TF_NewStatus());
  TF_Status* const s = status.get();
  const int64_t two = 2, negative = -1;
  EXPECT_EQ(TF_GetMutableOutput(c, 0, s), nullptr);
  EXPECT_EQ(TF_GetCode(s), TF_FAILED_PRECONDITION);
  EXPECT_EQ(TF_AllocateOutput(c, 2, TF_FLOAT, nullptr, 0, 4, s), nullptr);
  EXPECT_EQ(TF_GetCode(s), TF_OUT_OF_RANGE);
  EXPECT_EQ(TF_AllocateOutput(c, 0, TF_INT32, nullptr, 0, 4, s), nullptr);
  EXPECT_EQ(TF_GetCode(s), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_AllocateOutput(c, 0, TF_FLOAT, &negative, 1, 4, s), nullptr);
  EXPECT_EQ(TF_GetCode(s), TF_INVALID_ARGUMENT);
  const TensorPtr wrong(TF_AllocateTensor(TF_INT32, nullptr, 0, 4));
  TF_SetOutput(c, 0, wrong.get(), s);
  EXPECT_EQ(TF_GetCode(s), TF_INVALID_ARGUMENT);
  int forwarded = 7;
  const int candidate = 0;
  const TensorPtr made(
      TF_ForwardInputOrAllocateOutput(c, &candidate, 1, 0, &two, 1, &forwarded, s));
  EXPECT_EQ(forwarded, -1);
  static_cast<float*>(TF_TensorData(made.get()))[0] = 1;
  const TensorPtr same(TF_GetMutableOutput(c, 0, s));
  static_cast<float*>(TF_TensorData(same.get()))[1] = 2;
  TF_AllocatorAttributes attributes = {TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE, 1};
  const TensorPtr temp(TF_AllocateTemp(c, TF_DOUBLE, &two, 1, &attributes, s));
  EXPECT_EQ(TF_TensorByteSize(temp.get()), 16u);
  attributes.struct_size = 0;
  EXPECT_EQ(TF_AllocateTemp(c, TF_DOUBLE, &two, 1, &attributes, s), nullptr);
  const TensorPtr text(TF_AllocateOutput(c, 1, TF_STRING, &two, 1, 48, s));
  auto* const elements = static_cast<TF_TString*>(TF_TensorData(text.get()));
  TF_StringCopy(&elements[1], "set", 3);
}

TEST(Kernels, ReadTheStepAndSetOutputs) {
  ASSERT_EQ(RegisterOp("ProbeOp", {"first: float", "rest: 2 * float"}, {}), TF_INVALID_ARGUMENT);
  ASSERT_EQ(RegisterOp("ProbeOp", {"first: float", "rest: N * float"}, {"y: float", "z: string"},
                       {"N: int >= 1"}),
            TF_OK);
  ASSERT_EQ(RegisterKernel("ProbeOp",
                           [](void* kernel, TF_OpKernelContext* c) {
                             ComputeProbe(kernel, c);
                             ComputeOutputs(kernel, c);
                           }),
            TF_OK);
  Runner runner;
  TF_Operation *const a = runner.Const("a", 1), *const b = runner.Const("b", 2);
  TF_Operation* const probe = runner.Add("ProbeOp", "probe", {a}, [&](auto* desc) {
    const TF_Output rest[] = {{a, 0}, {b, 0}};
    TF_AddInputList(desc, rest, 2);
  });
  ASSERT_NE(probe, nullptr) << runner.message();
  const TensorPtr y = runner.Fetch(probe);
  ASSERT_NE(y, nullptr) << runner.message();
  EXPECT_EQ(FloatAt(y, 0), 1);
  EXPECT_EQ(FloatAt(y, 1), 2);
  TF_Operation* const joined = runner.Add("ReduceJoin", "j", {}, [&](auto* desc) {
    TF_AddInput(desc, {probe, 1});
    const TensorPtr axis(TF_AllocateTensor(TF_INT32, nullptr, 0, 4));
    *static_cast<int32_t*>(TF_TensorData(axis.get())) = 0;
    TF_Operation* const zero = runner.Add("Const", "zero", {}, [&](auto* constant) {
      TF_SetAttrTensor(constant, "value", axis.get(), runner.status());
      TF_SetAttrType(constant, "dtype", TF_INT32);
    });
    TF_AddInput(desc, {zero, 0});
  });
  const TensorPtr text = runner.Fetch(joined);
  ASSERT_NE(text, nullptr) << runner.message();
  const auto* const element = static_cast<const TF_TString*>(TF_TensorData(text.get()));
  EXPECT_EQ(std::string(TF_StringGetDataPointer(element), TF_StringGetSize(element)), "set");
}

}  // namespace
}  // namespace weir::capi_test
