#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "weir/proto/attr_value.pb.h"
#include "weir/proto/node_def.pb.h"
#include "weir/proto/tensor_shape.pb.h"
#include "weir/proto/versions.pb.h"
#include "weir/tests/capi/kernels.h"

// What operations are, and attributes of the kinds that few ops have.
namespace weir::capi_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Operation, InputsConsumersAndDevice) {
  Runner api;
  TF_Operation *const a = api.Placeholder("a"), *const b = api.Const("b", 2);
  TF_Operation* const sum = api.Add("Add", "sum", {a, b}, [](TF_OperationDescription* desc) {
    TF_SetDevice(desc, "/device:CPU:0");
  });
  ASSERT_NE(sum, nullptr) << api.message();
  EXPECT_STREQ(TF_OperationDevice(sum), "/device:CPU:0");
  TF_Output inputs[3] = {{sum, 7}, {sum, 7}, {sum, 7}};
  TF_OperationAllInputs(sum, inputs, 3);
  EXPECT_EQ(inputs[0].oper, a);
  EXPECT_EQ(inputs[1].oper, b);
  EXPECT_EQ(inputs[2].oper, sum);  // as it was
  EXPECT_EQ(TF_OperationOutputNumConsumers({a, 0}), 1);
  EXPECT_EQ(TF_OperationOutputNumConsumers({sum, 0}), 0);
  const BufferPtr bytes(TF_NewBuffer());
  TF_OperationToNodeDef(sum, bytes.get(), api.status());
  proto::NodeDef def;
  ASSERT_TRUE(def.ParseFromArray(bytes->data, static_cast<int>(bytes->length)));
  EXPECT_EQ(def.name(), "sum");
  EXPECT_THAT(def.input(), ElementsAre("a", "b"));
  EXPECT_EQ(def.device(), "/device:CPU:0");
}

TEST(Operation, GraphsHaveVersions) {
  Api api;
  const BufferPtr bytes(TF_NewBuffer());
  TF_GraphVersions(api.graph(), bytes.get(), api.status());
  proto::VersionDef versions;
  ASSERT_TRUE(versions.ParseFromArray(bytes->data, static_cast<int>(bytes->length)));
  EXPECT_GT(versions.producer(), 1000);
}

// Names that no GraphDef may have: TensorFlow builds and writes such operations, and does not run
// them.
TEST(Operation, AnyNameIsBuiltButNotRun) {
  for (const char* name : {"bad name!", "a:0", "^a", "_x", "", "/", "-x", "a\nb"}) {
    SCOPED_TRACE(name);
    Runner api;
    TF_Operation* const op = api.Add("NoOp", name);
    ASSERT_NE(op, nullptr) << api.message();
    EXPECT_STREQ(TF_OperationName(op), name);
    EXPECT_EQ(TF_GraphOperationByName(api.graph(), name), op);
    EXPECT_EQ(api.Add("NoOp", name), nullptr);
    EXPECT_THAT(api.message(), HasSubstr("Duplicate node name in graph"));
    api.RunTarget(op);
    EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
    EXPECT_EQ(api.message(),
              std::string("Node '") + name + "': Node name contains invalid characters");
    const BufferPtr bytes(TF_NewBuffer());
    TF_GraphToGraphDef(api.graph(), bytes.get(), api.status());
    EXPECT_EQ(api.code(), TF_OK);
    Api other;
    const ImportOptionsPtr options(TF_NewImportGraphDefOptions());
    TF_GraphImportGraphDef(other.graph(), bytes.get(), options.get(), other.status());
    EXPECT_EQ(other.code(), TF_INVALID_ARGUMENT) << other.message();
  }
}

class Attributes : public ::testing::Test {
 protected:
  Attributes() {
    RegisterOp("AllAttrsOp", {}, {},
               {"b: bool", "bools: list(bool)", "f: float", "floats: list(float)",
                "types: list(type)", "shapes: list(shape)", "tensors: list(tensor)"});
    op_ = api_.Add("AllAttrsOp", "all", {}, [&](TF_OperationDescription* desc) {
      TF_SetAttrBool(desc, "b", 1);
      const unsigned char bools[] = {0, 1};
      TF_SetAttrBoolList(desc, "bools", bools, 2);
      TF_SetAttrFloat(desc, "f", 0.5f);
      const float floats[] = {1, 2.5f};
      TF_SetAttrFloatList(desc, "floats", floats, 2);
      const TF_DataType types[] = {TF_INT8, TF_BOOL};
      TF_SetAttrTypeList(desc, "types", types, 2);
      const int64_t first[] = {2, -1};
      const int64_t* const dims[] = {first, nullptr};
      const int ranks[] = {2, -1};
      TF_SetAttrShapeList(desc, "shapes", dims, ranks, 2);
      const TensorPtr seven = Floats({}, {7});
      TF_Tensor* const tensors[] = {seven.get()};
      TF_SetAttrTensorList(desc, "tensors", tensors, 1, api_.status());
    });
  }

  Runner api_;
  TF_Operation* op_;
};

TEST_F(Attributes, ValuesAndLists) {
  ASSERT_NE(op_, nullptr) << api_.message();
  unsigned char b = 0, bools[2] = {};
  TF_OperationGetAttrBool(op_, "b", &b, api_.status());
  EXPECT_EQ(b, 1);
  TF_OperationGetAttrBoolList(op_, "bools", bools, 2, api_.status());
  EXPECT_THAT(bools, ElementsAre(0, 1));
  float f = 0, floats[2] = {};
  TF_OperationGetAttrFloat(op_, "f", &f, api_.status());
  EXPECT_EQ(f, 0.5f);
  TF_OperationGetAttrFloatList(op_, "floats", floats, 2, api_.status());
  EXPECT_THAT(floats, ElementsAre(1, 2.5f));
  TF_DataType types[2] = {};
  TF_OperationGetAttrTypeList(op_, "types", types, 2, api_.status());
  EXPECT_THAT(types, ElementsAre(TF_INT8, TF_BOOL));
  TF_Tensor* tensors[2] = {};
  TF_OperationGetAttrTensorList(op_, "tensors", tensors, 2, api_.status());
  EXPECT_EQ(FloatAt(TensorPtr(tensors[0])), 7);
  EXPECT_EQ(tensors[1], nullptr);
  TF_OperationGetAttrBool(op_, "f", &b, api_.status());
  EXPECT_EQ(api_.message(), "AttrValue had value with type 'float' when 'bool' expected");
}

TEST_F(Attributes, ListsOfShapes) {
  int64_t storage[2] = {}, *dims[2] = {};
  int ranks[2] = {};
  TF_OperationGetAttrShapeList(op_, "shapes", dims, ranks, 2, storage, 2, api_.status());
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  EXPECT_THAT(ranks, ElementsAre(2, -1));
  EXPECT_EQ(dims[0][0], 2);
  EXPECT_EQ(dims[0][1], -1);
  TF_OperationGetAttrShapeList(op_, "shapes", dims, ranks, 2, storage, 1, api_.status());
  EXPECT_EQ(api_.message(), "Not enough storage to hold the requested list of shapes");
  EXPECT_EQ(dims[0], nullptr);
  proto::TensorShapeProto shape;
  shape.add_dim()->set_size(3);
  const std::string bytes = shape.SerializeAsString();
  TF_Operation* const other =
      api_.Add("AllAttrsOp", "other", {}, [&](TF_OperationDescription* desc) {
        const void* const protos[] = {bytes.data(), bytes.data()};
        const size_t lengths[] = {bytes.size(), bytes.size()};
        TF_SetAttrTensorShapeProtoList(desc, "shapes", protos, lengths, 2, api_.status());
        EXPECT_EQ(api_.code(), TF_OK) << api_.message();
        const void* const garbage[] = {"\xff"};
        const size_t one[] = {1};
        TF_SetAttrTensorShapeProtoList(desc, "shapes", garbage, one, 1, api_.status());
        EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
      });
  EXPECT_EQ(other, nullptr);  // the other attributes are missing
}

TEST(AttributePlaceholder, StaysInAFunctionsBody) {
  Runner api;
  TF_Operation* const op = api.Add("Placeholder", "x", {}, [](TF_OperationDescription* desc) {
    TF_SetAttrPlaceholder(desc, "dtype", "T");
  });
  EXPECT_EQ(op, nullptr);  // outside of functions a type is needed
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT) << api.message();
}

TEST(ImportOptions, CountAndRemap) {
  Api source, target;
  TF_Operation* const before = source.Const("before", 1);
  TF_OperationDescription* const desc = TF_NewOperation(source.graph(), "NoOp", "after");
  TF_AddControlInput(desc, before);
  TF_FinishOperation(desc, source.status());
  const BufferPtr bytes(TF_NewBuffer());
  TF_GraphToGraphDef(source.graph(), bytes.get(), source.status());
  const ImportOptionsPtr options(TF_NewImportGraphDefOptions());
  TF_Operation* const other = target.Const("other", 2);
  TF_ImportGraphDefOptionsRemapControlDependency(options.get(), "before", other);
  EXPECT_EQ(TF_ImportGraphDefOptionsNumReturnOutputs(options.get()), 0);
  TF_ImportGraphDefOptionsAddReturnOutput(options.get(), "before", 0);
  EXPECT_EQ(TF_ImportGraphDefOptionsNumReturnOutputs(options.get()), 1);
  TF_ImportGraphDefOptionsAddReturnOperation(options.get(), "after");
  EXPECT_EQ(TF_ImportGraphDefOptionsNumReturnOperations(options.get()), 1);
  TF_GraphImportGraphDef(target.graph(), bytes.get(), options.get(), target.status());
  ASSERT_EQ(target.code(), TF_OK) << target.message();
  TF_Operation* control = nullptr;
  EXPECT_EQ(
      TF_OperationGetControlInputs(TF_GraphOperationByName(target.graph(), "after"), &control, 1),
      1);
  EXPECT_EQ(control, other);
}

TEST(Misc, StatusesTensorsDevicesAndTargets) {
  Runner api;
  TF_SetStatusFromIOError(api.status(), ENOENT, "words.txt");
  EXPECT_EQ(api.code(), TF_NOT_FOUND);
  EXPECT_THAT(api.message(), HasSubstr("words.txt"));
  const TensorPtr tensor = Floats({2}, {1, 2});
  EXPECT_EQ(TF_TensorIsAligned(tensor.get()), 1);
  EXPECT_EQ(TF_TensorMaybeMove(tensor.get()), tensor.get());
  alignas(64) float own = 1;
  const TensorPtr lent(TF_NewTensor(TF_FLOAT, nullptr, 0, &own, sizeof(own), nullptr, nullptr));
  EXPECT_EQ(TF_TensorMaybeMove(lent.get()), nullptr);
  const SessionOptionsPtr options(TF_NewSessionOptions());
  TF_SetTarget(options.get(), "no such target");
  EXPECT_EQ(TF_NewSession(api.graph(), options.get(), api.status()), nullptr);
  EXPECT_NE(api.code(), TF_OK);
  TF_SetTarget(options.get(), "");
  TF_Session* const session = TF_NewSession(api.graph(), options.get(), api.status());
  ASSERT_NE(session, nullptr) << api.message();
  TF_DeviceList* const devices = TF_SessionListDevices(session, api.status());
  EXPECT_NE(TF_DeviceListIncarnation(devices, 0, api.status()), 0u);
  EXPECT_EQ(TF_DeviceListIncarnation(devices, 99, api.status()), 0u);
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  TF_DeleteDeviceList(devices);
  TF_DeleteSession(session, api.status());
  TF_ServerStop(nullptr, api.status());
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  TF_ServerJoin(nullptr, api.status());
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_ServerTarget(nullptr), nullptr);
}

}  // namespace
}  // namespace weir::capi_test
