#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/proto/kernel_def.pb.h"
#include "weir/proto/op_def.pb.h"
#include "weir/tests/capi/kernels.h"

namespace weir::capi_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TF_Library* Load(const char* name, TF_Status* status) {
  return TF_LoadLibrary((std::string("tests/capi/") + name).c_str(), status);
}

std::vector<std::string> OpsOf(TF_Library* library) {
  const TF_Buffer bytes = TF_GetOpList(library);
  proto::OpList list;
  EXPECT_TRUE(list.ParseFromArray(bytes.data, static_cast<int>(bytes.length)));
  std::vector<std::string> names;
  for (const auto& op : list.op()) names.push_back(op.name());
  return names;
}

proto::KernelList KernelsOf(const char* op) {
  const StatusPtr status(TF_NewStatus());
  const BufferPtr bytes(op == nullptr ? TF_GetAllRegisteredKernels(status.get())
                                      : TF_GetRegisteredKernelsForOp(op, status.get()));
  proto::KernelList list;
  EXPECT_TRUE(bytes != nullptr &&
              list.ParseFromArray(bytes->data, static_cast<int>(bytes->length)));
  return list;
}

// The graph and the session are older than the library.
TEST(Plugin, RegistersOpsAndKernels) {
  Runner runner;
  TF_Library* const library = Load("libplugin.so", runner.status());
  ASSERT_NE(library, nullptr) << runner.message();
  EXPECT_THAT(OpsOf(library), ElementsAre("PluginScale", "PluginTwice"));
  TF_Library* const again = Load("libplugin.so", runner.status());
  ASSERT_NE(again, nullptr) << runner.message();
  EXPECT_THAT(OpsOf(again), ElementsAre("PluginScale", "PluginTwice"));
  TF_DeleteLibraryHandle(library);
  TF_DeleteLibraryHandle(again);

  TF_Operation* const scaled = runner.Add("PluginScale", "scaled", {runner.Const("x", 3)});
  ASSERT_NE(scaled, nullptr) << runner.message();
  EXPECT_EQ(TF_GraphGetTensorNumDims(runner.graph(), {scaled, 0}, runner.status()), 0);
  const TensorPtr six = runner.Fetch(scaled);
  ASSERT_NE(six, nullptr) << runner.message();
  EXPECT_EQ(FloatAt(six), 6);
  TF_Operation* const times10 = runner.Add("PluginScale", "times10", {scaled},
                                           [](auto* desc) { TF_SetAttrFloat(desc, "factor", 10); });
  const TensorPtr sixty = runner.Fetch(times10);
  ASSERT_NE(sixty, nullptr) << runner.message();
  EXPECT_EQ(FloatAt(sixty), 60);

  const std::string half(30, 'x');
  const TensorPtr twice = runner.Fetch(runner.Add("PluginTwice", "t", {runner.Strings("s", half)}));
  ASSERT_NE(twice, nullptr) << runner.message();
  const auto* const text = static_cast<const TF_TString*>(TF_TensorData(twice.get()));
  EXPECT_EQ(std::string(TF_StringGetDataPointer(text), TF_StringGetSize(text)), half + half);
}

TEST(Plugin, OfOpsInCppIsRefusedWithTheReason) {
  const StatusPtr status(TF_NewStatus());
  EXPECT_EQ(Load("libcpp_ops.so", status.get()), nullptr);
  EXPECT_EQ(TF_GetCode(status.get()), TF_NOT_FOUND);
  EXPECT_THAT(TF_Message(status.get()),
              HasSubstr("undefined symbol: _ZN10tensorflow8OpKernelD1Ev"));
  EXPECT_THAT(TF_Message(status.get()),
              HasSubstr("needs TensorFlow's own library, as all with ops in C++ do"));
  EXPECT_THAT(TF_Message(status.get()), HasSubstr("tensorflow/c/kernels.h"));
  EXPECT_EQ(TF_LoadLibrary("/nonexistent.so", status.get()), nullptr);
  EXPECT_STREQ(TF_Message(status.get()),
               "/nonexistent.so: cannot open shared object file: No such file or directory");
}

TEST(Plugin, KernelsAreListed) {
  ASSERT_EQ(RegisterOp("ListedOp", {"x: T"}, {"y: T"}, {"T: {float, int32}"}), TF_OK);
  const auto none = [](void*, TF_OpKernelContext*) {};
  ASSERT_EQ(RegisterKernel("ListedOp", none,
                           [](TF_KernelBuilder* kernel) {
                             const StatusPtr status(TF_NewStatus());
                             TF_KernelBuilder_TypeConstraint(kernel, "T", TF_INT32, status.get());
                             EXPECT_EQ(TF_GetCode(status.get()), TF_OK);
                             TF_KernelBuilder_TypeConstraint(
                                 kernel, "T", static_cast<TF_DataType>(99), status.get());
                             EXPECT_EQ(TF_GetCode(status.get()), TF_UNIMPLEMENTED);
                             TF_KernelBuilder_HostMemory(kernel, "x");
                             TF_KernelBuilder_Priority(kernel, 7);
                             TF_KernelBuilder_Label(kernel, "fast");
                           }),
            TF_OK);
  const proto::KernelList list = KernelsOf("ListedOp");
  ASSERT_EQ(list.kernel_size(), 1);
  EXPECT_EQ(list.kernel(0).op(), "ListedOp");
  EXPECT_EQ(list.kernel(0).device_type(), "CPU");
  EXPECT_EQ(list.kernel(0).label(), "fast");
  EXPECT_EQ(list.kernel(0).priority(), 7);
  EXPECT_THAT(list.kernel(0).host_memory_arg(), ElementsAre("x"));
  ASSERT_EQ(list.kernel(0).constraint_size(), 1);
  EXPECT_EQ(list.kernel(0).constraint(0).name(), "T");
  EXPECT_THAT(list.kernel(0).constraint(0).allowed_values().list().type(),
              ElementsAre(proto::DT_INT32));
  EXPECT_EQ(KernelsOf("Unknown").kernel_size(), 0);
  EXPECT_EQ(KernelsOf("").kernel_size(), 0);
  EXPECT_GT(KernelsOf("MatMul").kernel_size(), 1);
  EXPECT_EQ(KernelsOf("MatMul").kernel(0).constraint(0).name(), "T");
  EXPECT_GT(KernelsOf(nullptr).kernel_size(), 1000);
}

TEST(Plugin, MistakesInOpsAreErrors) {
  EXPECT_EQ(RegisterOp("MatMul", {}, {}), TF_ALREADY_EXISTS);
  EXPECT_EQ(RegisterOp("lowercase", {}, {}), TF_INVALID_ARGUMENT);
  EXPECT_EQ(RegisterOp("", {}, {}), TF_INVALID_ARGUMENT);
  EXPECT_EQ(RegisterOp("BadAttr", {}, {}, {"a: nonsense"}), TF_INVALID_ARGUMENT);
  EXPECT_EQ(RegisterOp("BadInput", {"x: NoSuchAttr"}, {}), TF_INVALID_ARGUMENT);
  EXPECT_EQ(RegisterOp("BadAttr", {}, {}), TF_OK);  // the name is still free
  EXPECT_EQ(RegisterOp("BadAttr", {}, {}), TF_ALREADY_EXISTS);
}

TEST(Plugin, PropertiesOfOps) {
  const StatusPtr status(TF_NewStatus());
  TF_OpDefinitionBuilder* const op = TF_NewOpDefinitionBuilder("Namespace>PropertiesOp");
  TF_OpDefinitionBuilderAddInput(op, "x: float");
  TF_OpDefinitionBuilderAddInput(op, "y: float");
  TF_OpDefinitionBuilderAddOutput(op, "z: float");
  TF_OpDefinitionBuilderSetIsCommutative(op, true);
  TF_OpDefinitionBuilderSetIsAggregate(op, false);
  TF_OpDefinitionBuilderSetIsStateful(op, true);
  TF_OpDefinitionBuilderSetAllowsUninitializedInput(op, true);
  TF_OpDefinitionBuilderDeprecated(op, 100000, "Use another.");
  TF_RegisterOpDefinition(op, status.get());
  ASSERT_EQ(TF_GetCode(status.get()), TF_OK) << TF_Message(status.get());
  const BufferPtr bytes(TF_NewBuffer());
  Api api;
  TF_GraphGetOpDef(api.graph(), "Namespace>PropertiesOp", bytes.get(), api.status());
  proto::OpDef def;
  ASSERT_TRUE(def.ParseFromArray(bytes->data, static_cast<int>(bytes->length)));
  EXPECT_TRUE(def.is_commutative());
  EXPECT_FALSE(def.is_aggregate());
  EXPECT_TRUE(def.is_stateful());
  EXPECT_TRUE(def.allows_uninitialized_input());
  EXPECT_EQ(def.deprecation().version(), 100000);
  TF_DeleteOpDefinitionBuilder(TF_NewOpDefinitionBuilder("Unused"));
}

TEST(Server, NeedsItsLibrary) {
  const StatusPtr status(TF_NewStatus());
  EXPECT_EQ(TF_NewServer("", 0, status.get()), nullptr);
  EXPECT_EQ(TF_GetCode(status.get()), TF_UNIMPLEMENTED);
  EXPECT_THAT(TF_Message(status.get()), HasSubstr("package libweir-server"));
}

}  // namespace
}  // namespace weir::capi_test
