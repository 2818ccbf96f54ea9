#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tensorflow/c/c_api_experimental.h"
#include "weir/tests/capi/eager_api.h"

// Codes and messages are those of TensorFlow 2.21's library.
namespace weir::capi_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EagerOp : public ::testing::Test {
 protected:
  Eager eager_;
  const HandlePtr a_ = eager_.Floats({2}, {1, 2}), b_ = eager_.Floats({2}, {3, 4});
};

TEST_F(EagerOp, LengthsFollowTheInputs) {
  const OpPtr op = eager_.Op("IdentityN");
  EXPECT_EQ(TFE_OpGetInputLength(op.get(), "input", eager_.status()), -1);
  EXPECT_EQ(eager_.code(), TF_NOT_FOUND);
  EXPECT_EQ(TFE_OpGetOutputLength(op.get(), "output", eager_.status()), -1);
  EXPECT_NE(eager_.code(), TF_OK);
  TFE_TensorHandle* inputs[] = {a_.get(), b_.get()};
  TFE_OpAddInputList(op.get(), inputs, 2, eager_.status());
  EXPECT_EQ(TFE_OpGetInputLength(op.get(), "input", eager_.status()), 2) << eager_.message();
  EXPECT_EQ(TFE_OpGetOutputLength(op.get(), "output", eager_.status()), 2);
  EXPECT_EQ(TFE_OpGetInputLength(op.get(), "cheese", eager_.status()), -1);
  EXPECT_EQ(eager_.message(), "Input 'cheese' not found");
  EXPECT_EQ(TFE_OpGetOutputLength(op.get(), "cheese", eager_.status()), -1);
  EXPECT_EQ(eager_.code(), TF_INVALID_ARGUMENT);
}

TEST_F(EagerOp, ListsMayBeAddedOneByOne) {
  OpPtr op = eager_.Op("AddN", {a_.get(), b_.get()});
  EXPECT_EQ(eager_.Execute(op), nullptr);  // nothing says where the list ends
  EXPECT_EQ(eager_.code(), TF_INVALID_ARGUMENT);
  TFE_OpSetAttrInt(op.get(), "N", 2);
  TFE_OpSetAttrType(op.get(), "T", TF_FLOAT);
  EXPECT_THAT(eager_.Values(eager_.Execute(op)), ElementsAre(4, 6)) << eager_.message();
  op = eager_.Op("AddN");
  TFE_TensorHandle* inputs[] = {a_.get(), b_.get(), a_.get()};
  TFE_OpAddInputList(op.get(), inputs, 3, eager_.status());
  EXPECT_THAT(eager_.Values(eager_.Execute(op)), ElementsAre(5, 8)) << eager_.message();
  EXPECT_EQ(TFE_OpGetFlatInputCount(op.get(), eager_.status()), 3);
  EXPECT_EQ(TFE_OpGetFlatInput(op.get(), 1, eager_.status()), b_.get());
  EXPECT_EQ(TFE_OpGetFlatInput(op.get(), 3, eager_.status()), nullptr);
  EXPECT_EQ(eager_.code(), TF_OUT_OF_RANGE);
  op = eager_.Op("Neg");
  TFE_OpAddInputList(op.get(), inputs, 1, eager_.status());
  EXPECT_THAT(eager_.message(), HasSubstr("Invalid input list definition"));
  EXPECT_EQ(TFE_OpGetFlatInputCount(op.get(), eager_.status()), 0);
}

TEST_F(EagerOp, TheFirstValueOfAnAttributeIsKept) {
  OpPtr op = eager_.Op("Cast", {a_.get()});
  TFE_OpSetAttrType(op.get(), "SrcT", TF_INT32);  // the argument has set it
  TFE_OpSetAttrType(op.get(), "DstT", TF_INT32);
  TFE_OpSetAttrType(op.get(), "DstT", TF_INT64);
  const HandlePtr number = eager_.Execute(op);
  ASSERT_NE(number, nullptr) << eager_.message();
  EXPECT_EQ(TFE_TensorHandleDataType(number.get()), TF_INT32);
  op = eager_.Op("Cast");
  TFE_OpSetAttrType(op.get(), "SrcT", TF_INT32);
  TFE_OpSetAttrType(op.get(), "DstT", TF_INT32);
  TFE_OpAddInput(op.get(), a_.get(), eager_.status());
  EXPECT_EQ(eager_.Execute(op), nullptr);
  EXPECT_THAT(eager_.message(), HasSubstr("was expected to be a int32 tensor but is a float"));
}

TEST_F(EagerOp, KindsOfAttributes) {
  const OpPtr op = eager_.Op("MaxPool");
  unsigned char is_list = 9;
  EXPECT_EQ(TFE_OpGetAttrType(op.get(), "ksize", &is_list, eager_.status()), TF_ATTR_INT);
  EXPECT_EQ(is_list, 1);
  EXPECT_EQ(TFE_OpGetAttrType(op.get(), "padding", &is_list, eager_.status()), TF_ATTR_STRING);
  EXPECT_EQ(is_list, 0);
  EXPECT_EQ(TFE_OpNameGetAttrType(eager_.context(), "While", "body", &is_list, eager_.status()),
            TF_ATTR_FUNC);
  TFE_OpGetAttrType(op.get(), "none", &is_list, eager_.status());
  EXPECT_EQ(eager_.message(), "Attribute 'none' does not exist for this operation");
  TFE_OpNameGetAttrType(eager_.context(), "NoSuchOp", "T", &is_list, eager_.status());
  EXPECT_EQ(eager_.code(), TF_NOT_FOUND);
}

TEST_F(EagerOp, ListsOfAttributes) {
  const HandlePtr image = eager_.Floats({1, 2, 2, 1}, {1, 2, 3, 4});
  const OpPtr op = eager_.Op("MaxPool", {image.get()});
  std::vector<int64_t> sizes = {1, 2, 2, 1};
  TFE_OpSetAttrIntList(op.get(), "ksize", sizes.data(), 4);
  TFE_OpSetAttrIntList(op.get(), "strides", sizes.data(), 4);
  char text[] = "VALID";
  TFE_OpSetAttrString(op.get(), "padding", text, 5);
  text[0] = 'X';
  EXPECT_THAT(eager_.Values(eager_.Execute(op)), ElementsAre(4)) << eager_.message();
}

TEST_F(EagerOp, MistakesWithoutAStatusStayWithTheOp) {
  OpPtr op = eager_.Op("Neg", {a_.get()});
  TFE_OpSetAttrType(op.get(), "T", static_cast<TF_DataType>(12345));
  EXPECT_EQ(eager_.Execute(op), nullptr);
  EXPECT_EQ(eager_.message(), "attribute 'T' of Neg: unknown data type 12345");
  op = eager_.Op("Neg", {a_.get()});
  TFE_OpSetAttrStringList(op.get(), "_list", nullptr, nullptr, 0);
  TFE_OpSetAttrBoolList(op.get(), "_list", nullptr, 1);
  EXPECT_EQ(eager_.Execute(op), nullptr);
  EXPECT_THAT(eager_.message(), HasSubstr("no array of 1 values"));
  TFE_OpReset(op.get(), "Neg", nullptr, eager_.status());
  TFE_OpAddInput(op.get(), a_.get(), eager_.status());
  EXPECT_THAT(eager_.Values(eager_.Execute(op)), ElementsAre(-1, -2)) << eager_.message();
}

// Every kind of value is kept as it is: an op with it is found again, and an equal op too.
TEST_F(EagerOp, AllKindsOfValuesArePartOfTheSignature) {
  const TF_DataType types[] = {TF_FLOAT, TF_INT32};
  const float numbers[] = {1, NAN};
  const unsigned char truths[] = {1, 0};
  const char* const strings[] = {"a", "bc"};
  const size_t lengths[] = {1, 2};
  const int64_t shape[] = {2, -1};
  const int64_t* shapes[] = {shape, nullptr};
  const int ranks[] = {2, -1};
  const OpPtr callee = eager_.Op("Neg");
  const TFE_Op* callees[] = {callee.get()};
  for (int i = 0; i < 2; ++i) {
    const OpPtr op = eager_.Op("Neg", {a_.get()});
    TFE_OpSetAttrFloat(op.get(), "_float", NAN);
    TFE_OpSetAttrFloatList(op.get(), "_floats", numbers, 2);
    TFE_OpSetAttrTypeList(op.get(), "_types", types, 2);
    TFE_OpSetAttrBoolList(op.get(), "_bools", truths, 2);
    TFE_OpSetAttrStringList(op.get(), "_strings", reinterpret_cast<const void* const*>(strings),
                            lengths, 2);
    TFE_OpSetAttrShapeList(op.get(), "_shapes", shapes, ranks, 2, eager_.status());
    TFE_OpSetAttrFunction(op.get(), "_function", callee.get());
    TFE_OpSetAttrFunctionName(op.get(), "_name", "f", 1);
    TFE_OpSetAttrFunctionList(op.get(), "_functions", callees, 1);
    TFE_OpSetAttrValueProto(op.get(), "_proto", "\x18\x07", 2, eager_.status());  // i: 7
    EXPECT_EQ(eager_.code(), TF_OK) << eager_.message();
    EXPECT_THAT(eager_.Values(eager_.Execute(op)), ElementsAre(-1, -2)) << eager_.message();
  }
}

TEST_F(EagerOp, InvalidValuesAreReportedAtOnce) {
  const OpPtr op = eager_.Op("VarHandleOp");
  TFE_OpSetAttrShape(op.get(), "shape", nullptr, 300, eager_.status());
  EXPECT_EQ(eager_.message(),
            "Value specified for `shape` has 300 dimensions which is over the "
            "limit of 254.");
  const int64_t negative[] = {-7};
  TFE_OpSetAttrShape(op.get(), "shape", negative, 1, eager_.status());
  EXPECT_EQ(eager_.code(), TF_INVALID_ARGUMENT);
  TFE_OpSetAttrTensor(op.get(), "value", nullptr, eager_.status());
  EXPECT_EQ(eager_.code(), TF_INVALID_ARGUMENT);
  TFE_OpSetAttrValueProto(op.get(), "x", "\xff\xff", 2, eager_.status());
  EXPECT_EQ(eager_.message(), "Unparseable AttrValue proto");
}

TEST_F(EagerOp, DevicesAreNamedInFull) {
  const OpPtr op = eager_.Op("Neg", {a_.get()});
  EXPECT_STREQ(TFE_OpGetDevice(op.get(), eager_.status()), "");
  TFE_OpSetDevice(op.get(), "CPU:0", eager_.status());
  EXPECT_STREQ(TFE_OpGetDevice(op.get(), eager_.status()), "/device:CPU:0");
  EXPECT_THAT(eager_.Values(eager_.Execute(op)), ElementsAre(-1, -2)) << eager_.message();
  TFE_OpSetDevice(op.get(), "no device", eager_.status());
  EXPECT_THAT(eager_.message(), HasSubstr("Malformed device specification 'no device'"));
  TFE_OpSetDevice(op.get(), "/job:localhost/replica:0/task:0/device:GPU:99", eager_.status());
  EXPECT_EQ(eager_.code(), TF_OK);
  EXPECT_EQ(eager_.Execute(op), nullptr);
  EXPECT_EQ(eager_.code(), TF_INVALID_ARGUMENT);
  EXPECT_THAT(eager_.message(), HasSubstr("Could not satisfy device specification"));
  TFE_OpSetDevice(op.get(), nullptr, eager_.status());
  EXPECT_NE(eager_.Execute(op), nullptr) << eager_.message();
}

TEST_F(EagerOp, ResetMakesAnotherOp) {
  const OpPtr op = eager_.Op("Neg", {a_.get()});
  TFE_OpReset(op.get(), "NoSuchOp", nullptr, eager_.status());
  EXPECT_EQ(eager_.code(), TF_NOT_FOUND);
  EXPECT_STREQ(TFE_OpGetName(op.get(), eager_.status()), "Neg");
  TFE_OpReset(op.get(), "Square", "CPU:0", eager_.status());
  EXPECT_STREQ(TFE_OpGetName(op.get(), eager_.status()), "Square");
  EXPECT_EQ(TFE_OpGetContext(op.get(), eager_.status()), eager_.context());
  EXPECT_EQ(TFE_OpGetFlatInputCount(op.get(), eager_.status()), 0);
  TFE_OpAddInput(op.get(), b_.get(), eager_.status());
  EXPECT_THAT(eager_.Values(eager_.Execute(op)), ElementsAre(9, 16)) << eager_.message();
}

TEST_F(EagerOp, AttributesAreCopiedToAClone) {
  const OpPtr op = eager_.Op("IdentityN");
  TFE_TensorHandle* inputs[] = {a_.get(), b_.get()};
  TFE_OpAddInputList(op.get(), inputs, 2, eager_.status());
  const OpPtr clone = eager_.Op("IdentityN");
  TFE_OpAddAttrs(clone.get(), TFE_OpGetAttrs(op.get()));
  for (TFE_TensorHandle* input : inputs) TFE_OpAddInput(clone.get(), input, eager_.status());
  TFE_TensorHandle* outputs[2] = {};
  int count = 2;
  TFE_Execute(clone.get(), outputs, &count, eager_.status());
  EXPECT_EQ(eager_.code(), TF_OK) << eager_.message();
  const HandlePtr first(outputs[0]), second(outputs[1]);
  EXPECT_THAT(eager_.Values(second), ElementsAre(3, 4));
  const BufferPtr buffer(TF_NewBuffer());
  TFE_OpAttrsSerialize(TFE_OpGetAttrs(op.get()), buffer.get(), eager_.status());
  EXPECT_THAT(std::string(static_cast<const char*>(buffer->data), buffer->length),
              HasSubstr("IdentityN"));
}

TEST_F(EagerOp, ShapesAreInferred) {
  const OpPtr op = eager_.Op("MatMul");
  TFE_OpSetAttrType(op.get(), "T", TF_FLOAT);
  TF_ShapeAndTypeList* const inputs = TF_NewShapeAndTypeList(2);
  const int64_t left[] = {2, 3}, right[] = {3, -1}, wrong[] = {4, 5};
  TF_ShapeAndTypeListSetShape(inputs, 0, left, 2);
  TF_ShapeAndTypeListSetShape(inputs, 1, right, 2);
  TF_ShapeAndTypeListSetDtype(inputs, 0, TF_FLOAT);
  TF_ShapeAndTypeList* outputs = nullptr;
  TFE_InferShapes(op.get(), inputs, nullptr, nullptr, nullptr, &outputs, nullptr, eager_.status());
  ASSERT_NE(outputs, nullptr) << eager_.message();
  ASSERT_EQ(outputs->num_items, 1);
  EXPECT_EQ(outputs->items[0].num_dims, 2);
  EXPECT_EQ(outputs->items[0].dims[0], 2);
  EXPECT_EQ(outputs->items[0].dims[1], -1);
  TF_DeleteShapeAndTypeList(outputs);
  TF_ShapeAndTypeListSetShape(inputs, 1, wrong, 2);
  outputs = nullptr;
  TFE_InferShapes(op.get(), inputs, nullptr, nullptr, nullptr, &outputs, nullptr, eager_.status());
  EXPECT_EQ(eager_.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(outputs, nullptr);
  TF_ShapeAndTypeListSetUnknownShape(inputs, 0);
  EXPECT_EQ(inputs->items[0].num_dims, -1);
  TF_DeleteShapeAndTypeList(inputs);
}

TEST_F(EagerOp, ShapesAreInferredFromValues) {
  const OpPtr op = eager_.Op("Reshape");
  TFE_OpSetAttrType(op.get(), "T", TF_FLOAT);
  TF_ShapeAndTypeList* const inputs = TF_NewShapeAndTypeList(2);
  TF_ShapeAndTypeListSetUnknownShape(inputs, 0);
  const int64_t dims[] = {2};
  const TensorPtr shape(TF_AllocateTensor(TF_INT32, dims, 1, 8));
  static_cast<int32_t*>(TF_TensorData(shape.get()))[0] = 3;
  static_cast<int32_t*>(TF_TensorData(shape.get()))[1] = 5;
  TF_Tensor* tensors[] = {nullptr, shape.get()};
  TF_ShapeAndTypeList** const outputs = new TF_ShapeAndTypeList*[1]();
  TFE_InferShapes(op.get(), inputs, tensors, nullptr, nullptr, outputs, nullptr, eager_.status());
  ASSERT_NE(outputs[0], nullptr) << eager_.message();
  EXPECT_EQ(outputs[0]->items[0].dims[1], 5);
  TF_DeleteShapeAndTypeListArray(outputs, 1);
  TF_DeleteShapeAndTypeList(inputs);
}

}  // namespace
}  // namespace weir::capi_test
