#include <gtest/gtest.h>

#include "weir/tests/capi/api.h"

namespace weir::capi_test {
namespace {

class DeprecatedSession : public ::testing::Test {
 protected:
  DeprecatedSession() : session_(TF_NewDeprecatedSession(nullptr, api_.status())) {
    api_.Binary("Add", "sum", api_.Placeholder("x"), api_.Const("two", 2));
  }
  ~DeprecatedSession() override { TF_DeleteDeprecatedSession(session_, api_.status()); }

  void Extend(Api& api) {
    const BufferPtr bytes(TF_NewBuffer());
    TF_GraphToGraphDef(api.graph(), bytes.get(), api_.status());
    TF_ExtendGraph(session_, bytes->data, bytes->length, api_.status());
  }
  TensorPtr Run(const char* fetch) {
    const char* feed = "x:0";
    const TensorPtr three = Floats({}, {3});
    TF_Tensor *value = three.get(), *fetched = nullptr;
    TF_Run(session_, nullptr, &feed, &value, 1, &fetch, &fetched, 1, nullptr, 0, nullptr,
           api_.status());
    return TensorPtr(fetched);
  }

  Api api_;
  TF_DeprecatedSession* session_;
};

TEST_F(DeprecatedSession, RunsByNamesAndIsExtended) {
  ASSERT_NE(session_, nullptr);
  EXPECT_EQ(Run("sum:0"), nullptr);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(api_.message(), "Session was not created with a graph before Run()!");
  Extend(api_);
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  TensorPtr sum = Run("sum:0");
  ASSERT_NE(sum, nullptr) << api_.message();
  EXPECT_EQ(FloatAt(sum), 5);
  // node { name: "copy" op: "Identity" input: "sum" attr { key: "T" value { type: DT_FLOAT } } }
  const std::string node(
      "\x0a\x1e\x0a\x04"
      "copy"
      "\x12\x08"
      "Identity"
      "\x1a\x03"
      "sum"
      "\x2a\x07\x0a\x01T\x12\x02\x30\x01",
      32);
  TF_ExtendGraph(session_, node.data(), node.size(), api_.status());
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  sum = Run("copy");
  ASSERT_NE(sum, nullptr) << api_.message();
  EXPECT_EQ(FloatAt(sum), 5);
}

TEST_F(DeprecatedSession, WrongNamesAreErrors) {
  Extend(api_);
  EXPECT_EQ(Run("none:0"), nullptr);
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
  EXPECT_EQ(Run(nullptr), nullptr);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  TF_ExtendGraph(session_, "\xff", 1, api_.status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  TF_Reset(nullptr, nullptr, 0, api_.status());
  EXPECT_EQ(api_.code(), TF_UNIMPLEMENTED);
  TF_CloseDeprecatedSession(session_, api_.status());
  EXPECT_EQ(Run("sum:0"), nullptr);
  EXPECT_EQ(api_.code(), TF_CANCELLED);
}

TEST_F(DeprecatedSession, OutputsAreNullAfterAnError) {
  Extend(api_);
  const TensorPtr other = Floats({}, {7});
  const char *none = "none:0", *handle = "stale";
  TF_Tensor* fetched = other.get();
  TF_Run(session_, nullptr, nullptr, nullptr, 0, &none, &fetched, 1, nullptr, 0, nullptr,
         api_.status());
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
  EXPECT_EQ(fetched, nullptr);
  TF_PRunSetup(session_, nullptr, 0, &none, 1, nullptr, 0, &handle, api_.status());
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
  EXPECT_EQ(handle, nullptr);
  fetched = other.get();
  TF_PRun(session_, "no handle", nullptr, nullptr, 0, &none, &fetched, 1, nullptr, 0,
          api_.status());
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
  EXPECT_EQ(fetched, nullptr);
}

TEST(OutParameters, AreUnsetAfterAnError) {
  Api api;
  TF_Operation* const a = api.Placeholder("a");
  TF_Output gradient = {a, 7}, y = {a, 0}, outside = {a, 9};
  TF_AddGradients(api.graph(), &y, 1, &outside, 1, nullptr, api.status(), &gradient);
  EXPECT_EQ(api.code(), TF_OUT_OF_RANGE);
  EXPECT_EQ(gradient.oper, nullptr);
  void* strings[1] = {a};
  size_t lengths[1] = {7};
  TF_OperationGetAttrStringList(a, "dtype", strings, lengths, 1, nullptr, 0, api.status());
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(strings[0], nullptr);
  EXPECT_EQ(lengths[0], 0u);
  TF_Buffer* shapes[1] = {reinterpret_cast<TF_Buffer*>(a)};
  TF_OperationGetAttrTensorShapeProtoList(a, "dtype", shapes, 1, api.status());
  EXPECT_EQ(shapes[0], nullptr);
  const BufferPtr garbage(TF_NewBufferFromString("\xff", 1));
  const ImportOptionsPtr options(TF_NewImportGraphDefOptions());
  TF_ImportGraphDefOptionsAddReturnOutput(options.get(), "a", 0);
  TF_Output returned = {a, 0};
  TF_GraphImportGraphDefWithReturnOutputs(api.graph(), garbage.get(), options.get(), &returned, 1,
                                          api.status());
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(returned.oper, nullptr);
  TF_Function* function = reinterpret_cast<TF_Function*>(a);
  EXPECT_EQ(TF_GraphGetFunctions(nullptr, &function, 1, api.status()), -1);
  EXPECT_EQ(function, nullptr);
}

}  // namespace
}  // namespace weir::capi_test
