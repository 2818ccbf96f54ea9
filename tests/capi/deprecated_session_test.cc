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

}  // namespace
}  // namespace weir::capi_test
