#include "weir/tools/lib/json_value.h"

#include <cmath>
#include <complex>
#include <limits>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "weir/tools/lib/example_value.h"

namespace weir::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Parsed(absl::string_view text, const JsonOptions& options = {}) {
  const auto t = ParseJson(text, options);
  return t.ok() ? t->Description() + " " + t->ToString() : std::string(t.status().message());
}

std::string Lines(absl::string_view text, const JsonOptions& options = {}) {
  const auto t = ParseJsonLines(text, options);
  return t.ok() ? t->Description() + " " + t->ToString() : std::string(t.status().message());
}

TEST(ParseJson, NestedListsAreATensor) {
  EXPECT_EQ(Parsed("0.5"), "float[] 0.5");
  EXPECT_EQ(Parsed("[[1, 2, 3], [4, 5, 6]]", {.dtype = DT_INT32}),
            "int32[2,3] [[1 2 3]\n [4 5 6]]");
  EXPECT_EQ(Parsed("[1.0, 2]", {.dtype = DT_INT32}), "int32[2] [1 2]");
  EXPECT_EQ(Parsed("[[], []]"), "float[2,0] []");
  EXPECT_EQ(Parsed("[1, [2]]"), "nested lists differ in depth");
  EXPECT_EQ(Parsed("[[1], [2, 3]]"), "nested lists differ in length: 1 and 2");
  EXPECT_EQ(Parsed("[1, null]"), "element 1 is null, which is not a value of type float");
  EXPECT_EQ(Parsed("[1, 2.5]", {.dtype = DT_INT32}),
            "element 1 is 2.5, which is not a value of type int32");
  EXPECT_EQ(Parsed("[1, 16777217]"), "element 1 is 16777217, which is not a value of type float");
  EXPECT_EQ(Parsed("{", {}), "it is not JSON");
}

TEST(ParseJson, NestingHasALimit) {
  const auto nested = [](const std::string& open, int depth, const std::string& close) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += open;
    text += "1";
    for (int i = 0; i < depth; ++i) text += close;
    return text;
  };
  EXPECT_EQ(ParseJson(nested("[", 64, "]"), {})->rank(), 64);
  EXPECT_EQ(Parsed(nested("[", 65, "]")), "it is nested more than 64 levels deep");
  constexpr int kDeep = 200000;
  for (const DataType dtype : {DT_FLOAT, DT_STRING}) {
    EXPECT_THAT(Parsed(nested("{\"a\":", kDeep, "}"), {.dtype = dtype}), HasSubstr("levels deep"));
    EXPECT_THAT(Parsed(nested("[", kDeep, "]"), {.dtype = dtype}), HasSubstr("levels deep"));
  }
  EXPECT_THAT(JsonNames(nested("{\"a\":", kDeep, "}")), ElementsAre());
  EXPECT_EQ(Parsed("[\"[[\\\"[\"]", {.dtype = DT_STRING}), "string[1] [b'[[\"[']");
}

TEST(ParseJson, StringsMayHaveAnyBytes) {
  const auto t = ParseJson(R"(["a", {"b64": "AP8="}])", {.dtype = DT_STRING});
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_TRUE(IdenticalTensors(*t, Tensor::Vector<std::string>({"a", std::string("\0\xff", 2)})));
  EXPECT_THAT(Parsed(R"({"b64": "*"})", {.dtype = DT_STRING}), HasSubstr("element 0"));
}

TEST(ParseJson, AMemberIsTakenWhereItIs) {
  EXPECT_EQ(Parsed(R"({"x": [1, 2], "y": 3})", {.member = "x"}), "float[2] [1. 2.]");
  EXPECT_EQ(Parsed("[1, 2]", {.member = "x"}), "float[2] [1. 2.]");
  EXPECT_EQ(Parsed(R"({"y": 3})", {.member = "x", .needs_member = true}),
            "no member 'x'; members: y");
  EXPECT_THAT(JsonNames(R"({"x": [1, 2], "a": 3})"), ElementsAre("a", "x"));
  EXPECT_THAT(JsonLinesNames("\n{\"x\": 1}\n{\"y\": 1}\n"), ElementsAre("x"));
  EXPECT_THAT(JsonNames("[1]"), ElementsAre());
}

TEST(ParseJsonLines, EachLineIsARow) {
  EXPECT_EQ(Lines("[1, 2]\n\n[3, 4]\n"), "float[2,2] [[1. 2.]\n [3. 4.]]");
  EXPECT_EQ(Lines("{\"x\": 1, \"y\": 2}\n{\"x\": 3}\n", {.member = "x"}), "float[2] [1. 3.]");
  EXPECT_EQ(Lines(""), "float[0] []");
  EXPECT_EQ(Lines("1\nx\n"), "line 2: it is not JSON");
  EXPECT_EQ(Lines("{\"y\": 2}\n", {.member = "x", .needs_member = true}),
            "line 1: no member 'x'; members: y");
}

// The bytes of a tf.Example with features in the order of their names.
TEST(ParseJson, ObjectsAreExamplesForStrings) {
  const auto one = ParseJson(R"({"a": [1, true]})", {.dtype = DT_STRING});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->scalar<std::string>(), std::string("\x0a\x0d\x0a\x0b\x0a\x01"
                                                    "a\x12\x06\x1a\x04\x0a\x02\x01\x01",
                                                    15));
  const auto two = ParseJson(R"([{"a": 1.5}, {"a": "x"}])", {.dtype = DT_STRING});
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->shape(), Shape({2}));
  EXPECT_THAT(Parsed(R"([{"a": 1}, {"a": [1, "x"]}])", {.dtype = DT_STRING}),
              HasSubstr("example 1: feature 'a': it has both strings and numbers"));
}

TEST(SerializeExample, BothFormsAreTheSameMessage) {
  using nlohmann::json;
  const auto plain = SerializeExample(json::parse(R"({"a": ["x", ""]})"));
  const auto message = SerializeExample(
      json::parse(R"({"features": {"feature": {"a": {"bytesList": {"value": ["eA==", ""]}}}}})"));
  ASSERT_TRUE(plain.ok() && message.ok()) << plain.status() << message.status();
  EXPECT_EQ(*plain, *message);
}

TEST(SerializeExample, RejectsWhatAFeatureCannotHold) {
  const auto error = [](const char* text) {
    return std::string(SerializeExample(nlohmann::json::parse(text)).status().message());
  };
  EXPECT_THAT(error(R"({"a": null})"), HasSubstr("feature 'a': expected a number"));
  EXPECT_THAT(error(R"({"a": [[1]]})"), HasSubstr("not array"));
  EXPECT_THAT(error(R"({"a": {"b": 1}})"), HasSubstr("not object"));
  EXPECT_THAT(error(R"({"a": 18446744073709551615})"), HasSubstr("out of the range of int64"));
  EXPECT_THAT(error(R"({"a": 1e39})"), HasSubstr("out of the range of float"));
  EXPECT_THAT(error(R"({"a": {"b64": "*"}})"), HasSubstr("base64"));
  EXPECT_THAT(error("[1]"), HasSubstr("expected an object of features, not array"));
}

TEST(FormatJson, NumbersReadBackAsTheSame) {
  EXPECT_EQ(*FormatJson(Tensor::Of<float>({2, 2}, {0.1f, 2, -3e-10f, 4})),
            "[[0.1, 2.0], [-3e-10, 4.0]]\n");
  // Its shortest digits, 7.038531e-26, are those of its neighbor once a double has rounded them.
  EXPECT_EQ(*FormatJson(Tensor::Scalar(0x1.5c87fap-84f)), "7.03853069e-26\n");
  EXPECT_EQ(*FormatJson(Tensor::Vector<bool>({true, false})), "[true, false]\n");
  EXPECT_EQ(*FormatJson(Tensor::Scalar(std::numeric_limits<int64_t>::min())),
            "-9223372036854775808\n");
  EXPECT_EQ(*FormatJson(Tensor::Vector<float>({NAN, -INFINITY})), "[NaN, -Infinity]\n");
  EXPECT_FALSE(FormatJson(Tensor::Scalar(std::complex<float>(1, 2))).ok());
}

TEST(FormatJsonLines, ALineHasARowOfEachTensor) {
  EXPECT_EQ(*FormatJsonLines({{"y", Tensor::Of<int32_t>({2, 2}, {1, 2, 3, 4})},
                              {"w", Tensor::Vector<std::string>({"a\"", "\xff"})}}),
            "{\"y\": [1, 2], \"w\": \"a\\\"\"}\n{\"y\": [3, 4], \"w\": {\"b64\": \"/w==\"}}\n");
  EXPECT_EQ(*FormatJsonLines({{"loss", Tensor::Scalar(0.5f)}}), "{\"loss\": 0.5}\n");
  EXPECT_EQ(*FormatJsonLines({{"y", Tensor::Zeros(DT_FLOAT, {0, 3})}}), "");
  EXPECT_THAT(FormatJsonLines({{"a", Tensor::Vector<int32_t>({1, 2})}, {"b", Tensor::Scalar(1)}})
                  .status()
                  .message(),
              HasSubstr("'b': 1 rows, but 'a' has 2"));
}

}  // namespace
}  // namespace weir::tools
