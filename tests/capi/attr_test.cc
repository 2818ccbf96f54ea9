#include <gtest/gtest.h>

#include "weir/tests/capi/api.h"

// Kinds, sizes and messages are those of TensorFlow 2.21's library.
namespace weir::capi_test {
namespace {

class Attr : public ::testing::Test {
 protected:
  void ExpectMetadata(TF_Operation* op, const char* name, int64_t list_size, TF_AttrType type,
                      int64_t total_size) {
    const TF_AttrMetadata m = TF_OperationGetAttrMetadata(op, name, api_.status());
    EXPECT_EQ(api_.code(), TF_OK) << api_.message();
    EXPECT_EQ(m.is_list, list_size >= 0 ? 1 : 0);
    EXPECT_EQ(m.list_size, list_size);
    EXPECT_EQ(m.type, type);
    EXPECT_EQ(m.total_size, total_size);
  }
  TF_Operation* Finish(TF_OperationDescription* desc) {
    TF_Operation* const op = TF_FinishOperation(desc, api_.status());
    EXPECT_NE(op, nullptr) << api_.message();
    return op;
  }

  Api api_;
};

TEST_F(Attr, Names) {
  TF_Operation* const p = api_.Placeholder("p");
  ASSERT_EQ(TF_OperationGetNumAttrs(p), 2);
  std::string names;
  for (int i = 0; i < 2; ++i) {
    std::string name(static_cast<size_t>(TF_OperationGetAttrNameLength(p, i)), ' ');
    TF_OperationGetAttrName(p, i, name.data(), api_.status());
    EXPECT_EQ(api_.code(), TF_OK) << api_.message();
    names += name + " ";
  }
  EXPECT_EQ(names, "dtype shape ");
  char none[] = "unchanged";
  TF_OperationGetAttrName(p, 2, none, api_.status());
  EXPECT_EQ(api_.code(), TF_OUT_OF_RANGE);
  EXPECT_STREQ(none, "unchanged");
  EXPECT_EQ(TF_OperationGetAttrNameLength(p, -1), -1);
}

TEST_F(Attr, TypeAndShape) {
  const std::vector<int64_t> shape = {5, -1};
  TF_Operation* const p = api_.Placeholder("p", &shape);
  ExpectMetadata(p, "dtype", -1, TF_ATTR_TYPE, -1);
  ExpectMetadata(p, "shape", -1, TF_ATTR_SHAPE, 2);
  TF_DataType type;
  TF_OperationGetAttrType(p, "dtype", &type, api_.status());
  EXPECT_EQ(type, TF_FLOAT);
  int64_t dims[2] = {};
  TF_OperationGetAttrShape(p, "shape", dims, 2, api_.status());
  EXPECT_EQ(dims[0], 5);
  EXPECT_EQ(dims[1], -1);
  TF_OperationGetAttrShape(p, "shape", nullptr, 2, api_.status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  TF_OperationGetAttrShape(api_.Placeholder("any"), "shape", nullptr, 2, api_.status());
  EXPECT_EQ(api_.code(), TF_OK) << api_.message();
  const BufferPtr proto(TF_NewBuffer());
  TF_OperationGetAttrTensorShapeProto(p, "shape", proto.get(), api_.status());
  TF_OperationDescription* desc = TF_NewOperation(api_.graph(), "Placeholder", "q");
  TF_SetAttrType(desc, "dtype", TF_INT32);
  TF_SetAttrTensorShapeProto(desc, "shape", proto->data, proto->length, api_.status());
  EXPECT_EQ(TF_GraphGetTensorNumDims(api_.graph(), {Finish(desc), 0}, api_.status()), 2);
}

TEST_F(Attr, Errors) {
  TF_Operation* const p = api_.Placeholder("p");
  TF_OperationGetAttrMetadata(p, "nope", api_.status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(api_.message(), "Operation 'p' has no attr named 'nope'.");
  int64_t number = 0;
  TF_OperationGetAttrInt(p, "dtype", &number, api_.status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(api_.message(), "AttrValue had value with type 'type' when 'int' expected");
  TF_OperationGetAttrInt(p, "dtype", nullptr, api_.status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  TF_OperationDescription* desc = TF_NewOperation(api_.graph(), "Placeholder", "q");
  TF_SetAttrType(desc, "dtype", static_cast<TF_DataType>(77));
  EXPECT_EQ(TF_FinishOperation(desc, api_.status()), nullptr);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  desc = TF_NewOperation(api_.graph(), "Placeholder", "q");
  TF_SetAttrValueProto(desc, "dtype", "\xff\xff", 2, api_.status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrIntList(desc, "shape", nullptr, 4);
  EXPECT_EQ(TF_FinishOperation(desc, api_.status()), nullptr);
}

TEST_F(Attr, ListsOfIntegersAndStrings) {
  const std::vector<int64_t> shape = {1, 8, 8, 1};
  TF_Operation* const p = api_.Placeholder("p", &shape);
  TF_OperationDescription* desc = TF_NewOperation(api_.graph(), "MaxPool", "pool");
  TF_AddInput(desc, {p, 0});
  const int64_t ones[] = {1, 2, 2, 1};
  TF_SetAttrIntList(desc, "ksize", ones, 4);
  TF_SetAttrIntList(desc, "strides", ones, 4);
  TF_SetAttrString(desc, "padding", "VALID", 5);
  TF_Operation* const pool = Finish(desc);
  ASSERT_NE(pool, nullptr);
  ExpectMetadata(pool, "ksize", 4, TF_ATTR_INT, -1);
  ExpectMetadata(pool, "explicit_paddings", 0, TF_ATTR_INT, -1);
  ExpectMetadata(pool, "padding", -1, TF_ATTR_STRING, 5);
  int64_t values[4] = {};
  TF_OperationGetAttrIntList(pool, "ksize", values, 3, api_.status());
  EXPECT_EQ(values[2], 2);
  EXPECT_EQ(values[3], 0);
  char text[3] = {};
  TF_OperationGetAttrString(pool, "padding", text, 2, api_.status());
  EXPECT_STREQ(text, "VA");
}

TEST_F(Attr, ColocationsAreAListOfStrings) {
  TF_Operation* const a = api_.Const("a", 1);
  TF_OperationDescription* desc = TF_NewOperation(api_.graph(), "Const", "c");
  const TensorPtr one = Floats({}, {1});
  TF_SetAttrTensor(desc, "value", one.get(), api_.status());
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_ColocateWith(desc, a);
  TF_Operation* const c = Finish(desc);
  ExpectMetadata(c, "_class", 1, TF_ATTR_STRING, 6);
  void* strings[1];
  size_t lengths[1];
  char storage[6];
  TF_OperationGetAttrStringList(c, "_class", strings, lengths, 1, storage, 6, api_.status());
  EXPECT_EQ(std::string(static_cast<char*>(strings[0]), lengths[0]), "loc:@a");
  TF_OperationGetAttrStringList(c, "_class", strings, lengths, 1, storage, 5, api_.status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
}

TEST_F(Attr, TensorIsACopy) {
  const TensorPtr value = Floats({2}, {1, 2});
  TF_OperationDescription* desc = TF_NewOperation(api_.graph(), "Const", "c");
  TF_SetAttrTensor(desc, "value", value.get(), api_.status());
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_Operation* const c = Finish(desc);
  static_cast<float*>(TF_TensorData(value.get()))[0] = 9;
  TF_Tensor* got = nullptr;
  TF_OperationGetAttrTensor(c, "value", &got, api_.status());
  const TensorPtr owned(got);
  ASSERT_NE(got, nullptr) << api_.message();
  EXPECT_EQ(FloatAt(owned, 0), 1);
  EXPECT_EQ(FloatAt(owned, 1), 2);
  const BufferPtr proto(TF_NewBuffer());
  TF_OperationGetAttrValueProto(c, "value", proto.get(), api_.status());
  desc = TF_NewOperation(api_.graph(), "Const", "d");
  TF_SetAttrValueProto(desc, "value", proto->data, proto->length, api_.status());
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  EXPECT_NE(Finish(desc), nullptr);
}

}  // namespace
}  // namespace weir::capi_test
