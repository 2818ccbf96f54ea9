#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/proto/attr_value.pb.h"
#include "weir/proto/node_def.pb.h"
#include "weir/tests/capi/kernels.h"

// What the creation of a kernel reads. Codes and texts are those of TensorFlow 2.21.
namespace weir::capi_test {
namespace {

using ::testing::HasSubstr;

struct Status {
  operator TF_Status*() const { return status.get(); }
  TF_Code code() const { return TF_GetCode(status.get()); }
  std::string message() const { return TF_Message(status.get()); }
  StatusPtr status{TF_NewStatus()};
};

int num_created = 0;

void ReadValues(TF_OpKernelConstruction* c) {
  Status s;
  TF_DataType type = {};
  TF_OpKernelConstruction_GetAttrType(c, "t", &type, s);
  EXPECT_EQ(type, TF_INT64);
  int32_t i32 = 0;
  TF_OpKernelConstruction_GetAttrInt32(c, "i", &i32, s);
  EXPECT_EQ(i32, -5);
  int64_t i64 = 0;
  TF_OpKernelConstruction_GetAttrInt64(c, "large", &i64, s);
  EXPECT_EQ(i64, int64_t{1} << 40);
  TF_OpKernelConstruction_GetAttrInt32(c, "large", &i32, s);
  EXPECT_EQ(s.code(), TF_INVALID_ARGUMENT);
  EXPECT_THAT(s.message(), HasSubstr("out of range for an int32"));
  EXPECT_EQ(i32, -5);
  float f = 0;
  TF_OpKernelConstruction_GetAttrFloat(c, "f", &f, s);
  EXPECT_EQ(f, 2.5f);
  TF_Bool b = 0;
  TF_OpKernelConstruction_GetAttrBool(c, "b", &b, s);
  EXPECT_EQ(b, 1);
  char text[8] = "_______";
  TF_OpKernelConstruction_GetAttrString(c, "s", text, 3, s);
  EXPECT_STREQ(text, "bun____");
  TF_Tensor* tensor = nullptr;
  TF_OpKernelConstruction_GetAttrTensor(c, "v", &tensor, s);
  ASSERT_NE(tensor, nullptr) << s.message();
  EXPECT_EQ(FloatAt(TensorPtr(tensor)), 7);
  const BufferPtr function(TF_OpKernelConstruction_GetAttrFunction(c, "fn", s));
  proto::NameAttrList list;
  ASSERT_TRUE(function != nullptr &&
              list.ParseFromArray(function->data, static_cast<int>(function->length)));
  EXPECT_EQ(list.name(), "body");
}

void ReadLists(TF_OpKernelConstruction* c) {
  Status s;
  int32_t length = 0, total = 0;
  TF_OpKernelConstruction_GetAttrSize(c, "strings", &length, &total, s);
  EXPECT_EQ(length, 2);
  EXPECT_EQ(total, 5);
  TF_OpKernelConstruction_GetAttrSize(c, "s", &length, &total, s);
  EXPECT_EQ(length, -1);
  EXPECT_EQ(total, 5);
  char *strings[2], storage[5];
  size_t lengths[2];
  TF_OpKernelConstruction_GetAttrStringList(c, "strings", strings, lengths, 2, storage, 5, s);
  EXPECT_EQ(s.code(), TF_OK) << s.message();
  EXPECT_EQ(std::string(strings[1], lengths[1]), "cde");
  TF_OpKernelConstruction_GetAttrStringList(c, "strings", strings, lengths, 2, storage, 4, s);
  EXPECT_EQ(s.message(), "Not enough storage to hold the requested list of strings");
  int32_t i32[2] = {};
  TF_OpKernelConstruction_GetAttrInt32List(c, "ints", i32, 2, s);
  EXPECT_EQ(i32[1], 2);
  int64_t i64[3] = {};
  TF_OpKernelConstruction_GetAttrInt64List(c, "ints", i64, 1, s);
  EXPECT_EQ(i64[0], 1);
  EXPECT_EQ(i64[1], 0);
  float floats[2] = {};
  TF_OpKernelConstruction_GetAttrFloatList(c, "floats", floats, 2, s);
  EXPECT_EQ(floats[1], 0.5f);
  TF_Bool bools[2] = {};
  TF_OpKernelConstruction_GetAttrBoolList(c, "bools", bools, 2, s);
  EXPECT_EQ(bools[0], 1);
  TF_DataType types[2] = {};
  TF_OpKernelConstruction_GetAttrTypeList(c, "types", types, 2, s);
  EXPECT_EQ(types[1], TF_STRING);
  TF_Tensor* tensors[1] = {};
  TF_OpKernelConstruction_GetAttrTensorList(c, "tensors", tensors, 1, s);
  EXPECT_EQ(s.code(), TF_OK) << s.message();
  EXPECT_EQ(FloatAt(TensorPtr(tensors[0])), 9);
}

void ReadWrongly(TF_OpKernelConstruction* c) {
  Status s;
  int64_t i = 0;
  TF_OpKernelConstruction_GetAttrInt64(c, "none", &i, s);
  EXPECT_EQ(s.code(), TF_NOT_FOUND);
  EXPECT_THAT(s.message(), HasSubstr("No attr named 'none' in NodeDef:"));
  TF_OpKernelConstruction_GetAttrInt64(c, "t", &i, s);
  EXPECT_EQ(s.message(), "AttrValue had value with type 'type' when 'int' expected");
  TF_OpKernelConstruction_GetAttrInt64List(c, "none", &i, 1, s);
  EXPECT_EQ(s.message(), "Operation 'attrs' has no attr named 'none'.");
  TF_OpKernelConstruction_GetAttrInt64List(c, "i", &i, 1, s);
  EXPECT_EQ(s.message(), "Attribute 'i' is not a list.");
  TF_OpKernelConstruction_GetAttrInt64List(c, "strings", &i, 1, s);
  EXPECT_EQ(s.code(), TF_INVALID_ARGUMENT);
  int32_t length = 0, total = 0;
  TF_OpKernelConstruction_GetAttrSize(c, "none", &length, &total, s);
  EXPECT_EQ(s.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(length, -1);
  EXPECT_EQ(total, -1);
  EXPECT_EQ(i, 0);
}

void* Create(TF_OpKernelConstruction* c) {
  ++num_created;
  ReadValues(c);
  ReadLists(c);
  ReadWrongly(c);
  Status s;
  EXPECT_TRUE(TF_OpKernelConstruction_HasAttr(c, "t", s));
  EXPECT_FALSE(TF_OpKernelConstruction_HasAttr(c, "none", s));
  const TF_StringView name = TF_OpKernelConstruction_GetName(c);
  EXPECT_EQ(std::string(name.data, name.len), "attrs");
  const BufferPtr bytes(TF_OpKernelConstruction_GetNodeDef(c, s));
  proto::NodeDef def;
  EXPECT_TRUE(def.ParseFromArray(bytes->data, static_cast<int>(bytes->length)));
  EXPECT_EQ(def.attr().at("i").i(), -5);
  return nullptr;
}

TEST(KernelConstruction, ReadsAttributes) {
  const std::vector<const char*> attrs = {"t: type",
                                          "i: int",
                                          "large: int",
                                          "f: float",
                                          "b: bool",
                                          "s: string",
                                          "v: tensor",
                                          "fn: func",
                                          "ints: list(int)",
                                          "bools: list(bool)",
                                          "floats: list(float)",
                                          "types: list(type)",
                                          "strings: list(string)",
                                          "tensors: list(tensor)"};
  ASSERT_EQ(RegisterOp("AttrsOp", {}, {}, attrs), TF_OK);
  const StatusPtr status(TF_NewStatus());
  TF_RegisterKernelBuilder(
      "x",
      TF_NewKernelBuilder(
          "AttrsOp", "CPU", &Create, [](void*, TF_OpKernelContext*) {}, nullptr),
      status.get());
  ASSERT_EQ(TF_GetCode(status.get()), TF_OK) << TF_Message(status.get());
  Runner runner;
  TF_Operation* const op = runner.Add("AttrsOp", "attrs", {}, [&](TF_OperationDescription* desc) {
    TF_SetAttrType(desc, "t", TF_INT64);
    TF_SetAttrInt(desc, "i", -5);
    TF_SetAttrInt(desc, "large", int64_t{1} << 40);
    TF_SetAttrFloat(desc, "f", 2.5f);
    TF_SetAttrBool(desc, "b", 1);
    TF_SetAttrString(desc, "s", "bunny", 5);
    TF_SetAttrTensor(desc, "v", Floats({}, {7}).get(), runner.status());
    TF_SetAttrFuncName(desc, "fn", "body", 4);
    const int64_t ints[] = {1, 2};
    TF_SetAttrIntList(desc, "ints", ints, 2);
    const unsigned char bools[] = {1, 0};
    TF_SetAttrBoolList(desc, "bools", bools, 2);
    const float floats[] = {1.5f, 0.5f};
    TF_SetAttrFloatList(desc, "floats", floats, 2);
    const TF_DataType types[] = {TF_FLOAT, TF_STRING};
    TF_SetAttrTypeList(desc, "types", types, 2);
    const void* const strings[] = {"ab", "cde"};
    const size_t lengths[] = {2, 3};
    TF_SetAttrStringList(desc, "strings", strings, lengths, 2);
    const TensorPtr nine = Floats({}, {9});
    TF_Tensor* const tensors[] = {nine.get()};
    TF_SetAttrTensorList(desc, "tensors", tensors, 1, runner.status());
  });
  ASSERT_NE(op, nullptr) << runner.message();
  runner.RunTarget(op);
  EXPECT_EQ(runner.code(), TF_OK) << runner.message();
  EXPECT_GE(num_created, 1);
}

}  // namespace
}  // namespace weir::capi_test
