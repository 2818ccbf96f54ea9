#include "weir/tools/lib/value_file.h"

#include <cmath>
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

TEST(ConvertTensor, KeepsEveryValueOrNamesTheFirstThatItCannot) {
  const auto converted = [](const Tensor& from, DataType to, Rounding rounding) {
    const auto t = ConvertTensor(from, to, rounding);
    return t.ok() ? t->Description() + " " + t->ToString() : std::string(t.status().message());
  };
  const Tensor halves = Tensor::Vector<double>({1, -2.5});
  EXPECT_EQ(converted(halves, DT_FLOAT, Rounding::kNever), "float[2] [ 1.  -2.5]");
  EXPECT_EQ(converted(halves, DT_INT32, Rounding::kNever),
            "element 1 of the value, of type double, is not a value of type int32; --round allows "
            "rounding");
  EXPECT_EQ(converted(halves, DT_INT32, Rounding::kAllowed), "int32[2] [ 1 -2]");
  EXPECT_EQ(converted(halves, DT_UINT8, Rounding::kAllowed),
            "element 1 of the value, of type double, is not a value of type uint8");
  constexpr int64_t kOdd = (int64_t{1} << 53) + 1;
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar(kOdd), DT_DOUBLE, Rounding::kNever).ok());
  EXPECT_TRUE(ConvertTensor(Tensor::Scalar(kOdd - 1), DT_DOUBLE, Rounding::kNever).ok());
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar(0.1), DT_FLOAT, Rounding::kNever).ok());
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar(1e300), DT_FLOAT, Rounding::kAllowed).ok());
  EXPECT_TRUE(ConvertTensor(Tensor::Scalar(std::nan("")), DT_HALF, Rounding::kNever).ok());
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar(std::nan("")), DT_INT32, Rounding::kAllowed).ok());
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar(9.3e18), DT_INT64, Rounding::kAllowed).ok());
  EXPECT_FALSE(ConvertTensor(Tensor::Scalar<std::string>("1"), DT_INT32, Rounding::kNever).ok());
  EXPECT_FALSE(ConvertTensor(halves, DT_STRING, Rounding::kNever).ok());
}

TEST(ParseValue, CsvIsAMatrix) {
  const std::string path = testing::TempDir() + "/x.csv";
  ASSERT_TRUE(WriteFileAtomically(path, "1,2.5\r\n-3,1e2\n").ok());
  EXPECT_EQ(Parsed(path, DT_FLOAT), "float[2,2] [[  1.    2.5]\n [ -3.  100. ]]");
  EXPECT_NE(Parsed(path, DT_INT32).find("x.csv, line 1: '2.5' is not a value of type int32"),
            std::string::npos);
  ASSERT_TRUE(WriteFileAtomically(path, "a,\"b,\"\"c\"\"\"\n").ok());
  const auto text = ParseValue(path, DT_STRING);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(IdenticalTensors(*text, Tensor::Of<std::string>({1, 2}, {"a", "b,\"c\""})));
  ASSERT_TRUE(WriteFileAtomically(path, "1,2\n3\n").ok());
  EXPECT_NE(Parsed(path, DT_FLOAT).find("line 2: 1 fields, but line 1 has 2"), std::string::npos);
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  EXPECT_FALSE(ParseValue(path, DT_FLOAT).ok());
}

TEST(ParseValue, AnAtSignReadsBytes) {
  const std::string path = testing::TempDir() + "/bytes";
  ASSERT_TRUE(WriteFileAtomically(path, std::string("\0\xff", 2)).ok());
  const auto bytes = ParseValue("@" + path, DT_STRING);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->scalar<std::string>(), std::string("\0\xff", 2));
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
