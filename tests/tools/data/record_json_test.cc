#include "weir/tools/data/record_json.h"

#include <bit>
#include <random>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/proto/example.pb.h"
#include "weir/tools/lib/element_text.h"

namespace weir::tools {
namespace {

using proto::SequenceExample;
using testing::HasSubstr;

// The record of a line, written again.
std::string Again(const std::string& line, const FeatureKinds& kinds = {}) {
  const absl::StatusOr<std::string> record = RecordFromJson(line, kinds);
  EXPECT_TRUE(record.ok()) << line << ": " << record.status();
  return JsonFromRecord(record.value_or(""));
}

std::string ErrorOf(const std::string& line) {
  const absl::StatusOr<std::string> record = RecordFromJson(line);
  EXPECT_TRUE(absl::IsInvalidArgument(record.status())) << line << ": " << record.status();
  return std::string(record.status().message());
}

TEST(RecordJson, LinesReadAndWriteTheSame) {
  for (const char* const line :
       {R"({})", R"({"a": [1, -2]})", R"({"a": [0.5, -0.0, 1e+20], "b": ["x", ""]})",
        R"({"a": [NaN, Infinity, -Infinity]})", R"({"a": [{"b64": "/w=="}, "x"]})",
        R"({"a": {"int64_list": []}, "b": {"bytes_list": []}, "c": {"float_list": []}})",
        R"({"a": null})", R"({"b64": ["x"]})", R"({"context": [1], "feature_lists": [2]})",
        R"({"context": {"a": [1]}, "feature_lists": {"b": [[1], [2, 3]], "c": []}})",
        R"({"feature_lists": {}})", R"({"context": {}, "feature_lists": {"a": [null]}})",
        R"({"b64": "CgA="})", R"({"b64": "//8="})"}) {
    EXPECT_EQ(Again(line), line);
  }
}

TEST(RecordJson, TakesWhatPeopleWrite) {
  EXPECT_EQ(Again(R"({"b":1,"a":"x"})"), R"({"a": ["x"], "b": [1]})");
  EXPECT_EQ(Again(R"({"a": [1, 2.5]})"), R"({"a": [1.0, 2.5]})");
  EXPECT_EQ(Again(R"({"a": [true, false]})"), R"({"a": [1, 0]})");
  EXPECT_EQ(Again(R"({"a": {"float_list": [1, 2]}})"), R"({"a": [1.0, 2.0]})");
  EXPECT_EQ(Again(R"({"a": 1, "b": 1})", {{"a", FeatureKind::kFloat}}),
            R"({"a": [1.0], "b": [1]})");
  EXPECT_EQ(Again(R"({"a": []})", {{"a", FeatureKind::kBytes}}), R"({"a": {"bytes_list": []}})");
  EXPECT_EQ(Again(R"({"features": {"feature": {"a": {"int64List": {"value": ["7"]}}}}})"),
            R"({"a": [7]})");
}

TEST(RecordJson, IntegersKeepAllBitsAndRefuseMore) {
  EXPECT_EQ(Again(R"({"a": [9007199254740993, 9223372036854775807, -9223372036854775808]})"),
            R"({"a": [9007199254740993, 9223372036854775807, -9223372036854775808]})");
  EXPECT_THAT(ErrorOf(R"({"a": [9223372036854775808]})"), HasSubstr("out of the range"));
  EXPECT_THAT(ErrorOf(R"({"a": [99999999999999999999]})"), HasSubstr("out of the range"));
  EXPECT_THAT(ErrorOf(R"({"a": [16777217, 0.5]})"), HasSubstr("is not a float"));
  EXPECT_THAT(ErrorOf(R"({"a": [1e39]})"), HasSubstr("out of the range of a float"));
}

TEST(RecordJson, ErrorsNameTheFeature) {
  EXPECT_THAT(ErrorOf(R"({"a": [1], "b": [1, "x"]})"), HasSubstr("feature 'b'"));
  EXPECT_THAT(ErrorOf(R"({"a": []})"), HasSubstr("int64_list"));
  EXPECT_THAT(ErrorOf(R"({"a": 1, "a": 2})"), HasSubstr("occurs twice"));
  EXPECT_THAT(ErrorOf(R"({"a": [[1]]})"), HasSubstr("a list in a list"));
  EXPECT_THAT(ErrorOf(R"({"a": {"list": [1]}})"), HasSubstr("in place of a list"));
  EXPECT_THAT(ErrorOf(R"({"a": {}})"), HasSubstr("in place of a list"));
  EXPECT_THAT(ErrorOf(R"({"a": {"int64_list": [1], "float_list": [1]}})"),
              HasSubstr("in place of one of"));
  EXPECT_THAT(ErrorOf(R"({"feature_lists": {"a": [1]}})"), HasSubstr("a frame is not a list"));
  EXPECT_THAT(ErrorOf(R"({"feature_lists": {}, "a": [1]})"), HasSubstr("beside features"));
  EXPECT_THAT(ErrorOf("[1]"), HasSubstr("a list instead of an object"));
  EXPECT_THAT(ErrorOf("7"), HasSubstr("instead of an object"));
  EXPECT_THAT(ErrorOf(R"({"a": [1]} {})"), HasSubstr("JSON Parse error"));
  EXPECT_THAT(ErrorOf(R"({"a": {"b64": "?"}})"), HasSubstr("base64"));
}

// What the lines cannot express is kept as bytes.
TEST(RecordJson, OtherRecordsAreExact) {
  SequenceExample message;
  auto& features = *message.mutable_context()->mutable_feature();
  features["a"].mutable_float_list()->add_value(std::bit_cast<float>(0x7fc00001u));
  SequenceExample reserved;
  (*reserved.mutable_context()->mutable_feature())["b64"].mutable_int64_list();
  reserved.mutable_feature_lists();
  for (const std::string& record : {SerializeExampleRecord(message), std::string("\xff\xff"),
                                    std::string("\x0a\0", 2), SerializeExampleRecord(reserved)}) {
    const std::string line = JsonFromRecord(record);
    EXPECT_TRUE(absl::StartsWith(line, R"({"b64": ")")) << line;
    EXPECT_EQ(RecordFromJson(line).value(), record);
  }
}

TEST(RecordJson, AllFloatsReadBackTheSame) {
  std::mt19937 random(1);
  for (int i = 0; i < 50'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (value != value) continue;
    std::string text;
    AppendFloat(value, &text);
    proto::Feature feature;
    ASSERT_TRUE(ValuesFromJson("[" + text + "]", FeatureKind::kNone, &feature).ok()) << text;
    ASSERT_EQ(std::bit_cast<uint32_t>(feature.float_list().value(0)),
              std::bit_cast<uint32_t>(value))
        << text;
  }
}

}  // namespace
}  // namespace weir::tools
