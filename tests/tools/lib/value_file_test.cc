#include "weir/tools/lib/value_file.h"

#include <string>

#include "gtest/gtest.h"
#include "weir/core/io/file.h"

namespace weir::tools {
namespace {

std::string Parsed(const std::string& text, DataType dtype) {
  const auto t = ParseValue(text, dtype);
  return t.ok() ? t->Description() + " " + t->ToString() : t.status().ToString();
}

TEST(ParseValue, JsonBecomesTheRequestedType) {
  EXPECT_EQ(Parsed("0.5", DT_FLOAT), "float[] 0.5");
  EXPECT_EQ(Parsed("[[1, 2, 3], [4, 5, 6]]", DT_INT32), "int32[2,3] [[1 2 3]\n [4 5 6]]");
  EXPECT_EQ(Parsed("[true, false]", DT_BOOL), "bool[2] [ True False]");
  EXPECT_EQ(Parsed("[]", DT_FLOAT), "float[0] []");
  const auto text = ParseValue("[\"a\", \"b\"]", DT_STRING);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(IdenticalTensors(*text, Tensor::Vector<std::string>({"a", "b"})));
}

TEST(ParseValue, UnrepresentableValuesAreRejected) {
  for (const auto& [text, dtype] : {std::pair<const char*, DataType>{"256", DT_UINT8},
                                    {"-1", DT_UINT32},
                                    {"1.5", DT_INT32},
                                    {"9223372036854775808", DT_INT64},
                                    {"1", DT_BOOL},
                                    {"\"a\"", DT_FLOAT},
                                    {"1", DT_STRING},
                                    {"[[1], [2, 3]]", DT_FLOAT},
                                    {"[1, [2]]", DT_FLOAT},
                                    {"[[1], 2]", DT_FLOAT},
                                    {"{}", DT_FLOAT},
                                    {"nonsense", DT_FLOAT},
                                    {"1", DT_RESOURCE}}) {
    EXPECT_EQ(ParseValue(text, dtype).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_FALSE(ParseValue(std::string(100000, '['), DT_FLOAT).ok());
  EXPECT_FALSE(ParseValue(std::string(100, '[') + std::string(100, ']'), DT_FLOAT).ok());
}

TEST(ValueFile, StringsRoundTripWithAnyBytes) {
  const std::string path = testing::TempDir() + "/strings.json";
  const Tensor t = Tensor::Of<std::string>({1, 2}, {std::string("\0\xff", 2), ""});
  ASSERT_TRUE(WriteValueFile(path, t).ok());
  const auto back = ReadValueFile(path);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(IdenticalTensors(t, *back));
}

TEST(ValueFile, MalformedStringsAreRejectedWithTheirFile) {
  for (const char* json :
       {"", "[]", "{\"shape\": [2], \"data_base64\": [\"YQ==\"]}",
        "{\"shape\": [-1], \"data_base64\": []}", "{\"shape\": [1], \"data_base64\": [\"*\"]}",
        "{\"shape\": [1], \"data_base64\": [1]}", "{\"shape\": [1.5], \"data_base64\": [\"\"]}"}) {
    const std::string path = testing::TempDir() + "/bad.json";
    ASSERT_TRUE(WriteFileAtomically(path, json).ok());
    const auto t = ReadValueFile(path);
    EXPECT_EQ(t.status().code(), absl::StatusCode::kInvalidArgument) << json;
    EXPECT_NE(t.status().message().find("bad.json"), absl::string_view::npos);
  }
}

TEST(AsCarrier, OnlyIntegersOfTheSameSizeChange) {
  EXPECT_EQ(AsCarrier(Tensor::Vector<int8_t>({1}), DT_QINT8).dtype(), DT_QINT8);
  EXPECT_EQ(AsCarrier(Tensor::Vector<int8_t>({1}), DT_QINT32).dtype(), DT_INT8);
  EXPECT_EQ(AsCarrier(Tensor::Vector<float>({1}), DT_QINT32).dtype(), DT_FLOAT);
  EXPECT_EQ(AsCarrier(Tensor::Vector<int32_t>({1}), DT_FLOAT).dtype(), DT_INT32);
}

}  // namespace
}  // namespace weir::tools
