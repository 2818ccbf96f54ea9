#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/proto/example.pb.h"
#include "weir/rpc/models/json_request.h"
#include "weir/rpc/models/json_response.h"

namespace weir::rpc {
namespace {

using serving::NamedTensors;
using serving::SignatureInfo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A signature with inputs of these dtypes: "x", "y", "z".
SignatureInfo Takes(const std::vector<DataType>& dtypes) {
  SignatureInfo signature;
  for (size_t i = 0; i < dtypes.size(); ++i)
    signature.inputs[std::string(1, static_cast<char>('x' + i))] = {"t:0", dtypes[i],
                                                                    Shape::UnknownRank()};
  return signature;
}

absl::StatusOr<JsonPredictRequest> Parse(const SignatureInfo& signature, const std::string& text) {
  return ParsePredictRequest(text, [&](const std::string&) { return &signature; });
}

// The tensor that a text gives to an input of this dtype.
Tensor ParseOne(DataType dtype, const std::string& text) {
  const auto request = Parse(Takes({dtype}), text);
  EXPECT_TRUE(request.ok()) << text << ": " << request.status();
  return request.ok() ? request->inputs.at("x") : Tensor();
}

std::string ErrorOf(DataType dtype, const std::string& text) {
  return Parse(Takes({dtype}), text).status().ToString();
}

TEST(JsonRequest, RowsGetABatchDimension) {
  const Tensor x = ParseOne(DT_FLOAT, R"({"instances": [1, 2.5, -3e2]})");
  EXPECT_EQ(x.shape(), Shape({3}));
  EXPECT_THAT(x.flat<float>(), ElementsAre(1, 2.5, -300));
  EXPECT_EQ(ParseOne(DT_FLOAT, R"({"instances": [[[1], [2]], [[3], [4]], [[5], [6]]]})").shape(),
            Shape({3, 2, 1}));
  EXPECT_EQ(ParseOne(DT_FLOAT, R"({"instances": [[], []]})").shape(), Shape({2, 0}));
}

TEST(JsonRequest, ColumnsAreWholeTensors) {
  EXPECT_EQ(ParseOne(DT_FLOAT, R"({"inputs": 7})").shape(), Shape());
  EXPECT_EQ(ParseOne(DT_FLOAT, R"({"inputs": [[1, 2, 3], [4, 5, 6]]})").shape(), Shape({2, 3}));
  EXPECT_EQ(ParseOne(DT_FLOAT, R"({"inputs": {"x": [1, 2]}})").shape(), Shape({2}));
  EXPECT_EQ(ParseOne(DT_FLOAT, R"({"inputs": []})").shape(), Shape({0}));
}

TEST(JsonRequest, NamedInputs) {
  const SignatureInfo two = Takes({DT_FLOAT, DT_STRING});
  const auto rows =
      Parse(two, R"({"instances": [{"x": [1, 2], "y": "a"}, {"y": "b", "x": [3, 4]}]})");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(rows->by_rows);
  EXPECT_EQ(rows->inputs.at("x").shape(), Shape({2, 2}));
  EXPECT_THAT(rows->inputs.at("x").flat<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(rows->inputs.at("y").flat<std::string>(), ElementsAre("a", "b"));
  const auto columns = Parse(two, R"({"inputs": {"y": ["a", "b", "c"], "x": 1}})");
  ASSERT_TRUE(columns.ok()) << columns.status();
  EXPECT_FALSE(columns->by_rows);
  EXPECT_EQ(columns->inputs.at("y").shape(), Shape({3}));
  EXPECT_EQ(columns->inputs.at("x").shape(), Shape());
}

TEST(JsonRequest, SignatureNameMayComeLast) {
  std::string asked;
  const SignatureInfo signature = Takes({DT_INT32});
  const auto request = ParsePredictRequest(
      R"({"other": [{"deep": [[], {"a": null}]}], "instances": [1], "signature_name": "sum"})",
      [&](const std::string& name) {
        asked = name;
        return &signature;
      });
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(asked, "sum");
  EXPECT_EQ(request->signature, "sum");
}

TEST(JsonRequest, InputsWithDefaultsMayBeMissing) {
  SignatureInfo two = Takes({DT_FLOAT, DT_FLOAT});
  EXPECT_THAT(Parse(two, R"({"inputs": {"x": 1}})").status().ToString(),
              HasSubstr("Missing named input: y in 'inputs' object."));
  two.defaults["y"] = Tensor::Scalar(1.f);
  const auto request = Parse(two, R"({"inputs": {"x": 1}})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->inputs.size(), 1);
}

TEST(JsonRequest, Bytes) {
  const Tensor one = ParseOne(DT_STRING, R"({"instances": [{"b64": "AP8="}, "caf\u00e9"]})");
  EXPECT_THAT(one.flat<std::string>(), ElementsAre(std::string("\0\xff", 2), "caf\xc3\xa9"));
  EXPECT_THAT(ParseOne(DT_STRING, R"({"inputs": {"b64": "YQ=="}})").flat<std::string>(),
              ElementsAre("a"));
  EXPECT_THAT(ErrorOf(DT_STRING, R"({"instances": [{"b64": "*"}]})"),
              HasSubstr("Unable to base64 decode \"*\""));
  EXPECT_THAT(ErrorOf(DT_FLOAT, R"({"instances": [{"b64": "YQ=="}]})"),
              HasSubstr("is not of expected type: float"));
  // An input of that name, beside another one.
  SignatureInfo named;
  named.inputs["b64"] = {"t:0", DT_STRING, Shape()};
  named.inputs["n"] = {"t:0", DT_INT32, Shape()};
  const auto request = Parse(named, R"({"instances": [{"b64": "plain", "n": 1}]})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->inputs.at("b64").flat<std::string>(), ElementsAre("plain"));
}

TEST(JsonRequest, NumbersAreExact) {
  EXPECT_THAT(ParseOne(DT_INT64, R"({"inputs": [9223372036854775807, -9223372036854775808,
                                                9007199254740993]})")
                  .flat<int64_t>(),
              ElementsAre(INT64_MAX, INT64_MIN, 9007199254740993));
  EXPECT_THAT(ParseOne(DT_UINT64, R"({"inputs": [18446744073709551615]})").flat<uint64_t>(),
              ElementsAre(UINT64_MAX));
  EXPECT_THAT(ParseOne(DT_UINT8, R"({"inputs": [0, 255]})").flat<uint8_t>(), ElementsAre(0, 255));
  EXPECT_THAT(ParseOne(DT_INT8, R"({"inputs": [-128, 127]})").flat<int8_t>(),
              ElementsAre(-128, 127));
  EXPECT_THAT(ParseOne(DT_BOOL, R"({"inputs": [true, false]})").flat<bool>(),
              ElementsAre(true, false));
  EXPECT_EQ(static_cast<float>(ParseOne(DT_HALF, R"({"inputs": 0.1})").scalar<half>()),
            static_cast<float>(half(0.1f)));
  EXPECT_EQ(static_cast<float>(ParseOne(DT_BFLOAT16, R"({"inputs": 2.5})").scalar<bfloat16>()),
            2.5f);
  EXPECT_EQ(ParseOne(DT_DOUBLE, R"({"inputs": 0.1})").scalar<double>(), 0.1);
  EXPECT_EQ(ParseOne(DT_FLOAT, R"({"inputs": 16777216})").scalar<float>(), 16777216);
}

TEST(JsonRequest, NansAndInfinities) {
  const Tensor x = ParseOne(DT_FLOAT, R"({"instances": [NaN, Infinity, -Infinity, 1]})");
  EXPECT_TRUE(std::isnan(x.flat<float>()[0]));
  EXPECT_THAT(x.flat<float>().subspan(1), ElementsAre(kInfinity, -kInfinity, 1));
  EXPECT_THAT(ParseOne(DT_STRING, R"({"instances": ["NaN", "", "a\"NaN", "-Infinity"]})")
                  .flat<std::string>(),
              ElementsAre("NaN", "", "a\"NaN", "-Infinity"));
  EXPECT_THAT(ErrorOf(DT_STRING, R"({"instances": [NaN]})"), HasSubstr("of expected type: string"));
  EXPECT_THAT(ErrorOf(DT_INT32, R"({"instances": [NaN]})"), HasSubstr("of expected type: int32"));
  for (const char* text :
       {R"({"instances": [NaNs]})", R"({"instances": [1NaN]})", R"({"instances": [--Infinity]})",
        R"({NaN: 1, "instances": [1]})", R"({"instances": [nan]})", R"({"instances": [NaN NaN]})"})
    EXPECT_THAT(ErrorOf(DT_FLOAT, text), HasSubstr("JSON Parse error")) << text;
}

TEST(JsonRequest, RefusesValuesThatTheDtypeDoesNotHave) {
  const auto error = [](DataType dtype, const std::string& value) {
    return ErrorOf(dtype, R"({"instances": [)" + value + "]}");
  };
  EXPECT_THAT(error(DT_INT32, "2147483648"),
              HasSubstr("JSON Value: 2147483648 Type: Number is not of expected type: int32"));
  EXPECT_THAT(error(DT_INT32, "1.0"), HasSubstr("is not of expected type: int32"));
  EXPECT_THAT(error(DT_INT8, "128"), HasSubstr("is not of expected type: int8"));
  EXPECT_THAT(error(DT_UINT8, "-1"), HasSubstr("is not of expected type: uint8"));
  EXPECT_THAT(error(DT_INT64, "9223372036854775808"), HasSubstr("of expected type: int64"));
  EXPECT_THAT(error(DT_UINT64, "18446744073709551616"), HasSubstr("of expected type: uint64"));
  EXPECT_THAT(error(DT_FLOAT, "16777217"), HasSubstr("without loss of precision"));
  EXPECT_THAT(error(DT_DOUBLE, "9007199254740993"), HasSubstr("without loss of precision"));
  EXPECT_THAT(error(DT_FLOAT, "1e39"), HasSubstr("without loss of precision"));
  EXPECT_THAT(error(DT_HALF, "65520"), HasSubstr("without loss of precision"));
  EXPECT_THAT(error(DT_DOUBLE, "1e999"), HasSubstr("JSON Parse error"));
  EXPECT_THAT(error(DT_FLOAT, "\"1\""), HasSubstr("Type: String is not of expected type: float"));
  EXPECT_THAT(error(DT_FLOAT, "null"), HasSubstr("Type: Null"));
  EXPECT_THAT(error(DT_BOOL, "1"), HasSubstr("of expected type: bool"));
  EXPECT_THAT(error(DT_STRING, "1"), HasSubstr("of expected type: string"));
  EXPECT_THAT(error(DT_COMPLEX64, "1"), HasSubstr("UNIMPLEMENTED"));
}

TEST(JsonRequest, RefusesRaggedLists) {
  for (const char* rows : {"[[1, 2], [3]]", "[1, [2]]", "[[1], 2]", "[[[1]], [2]]", "[[], [1]]",
                           "[[1], []]", "[[], [[]]]", "[[[1], [2]], [[3]]]"}) {
    EXPECT_THAT(ErrorOf(DT_FLOAT, absl::StrCat(R"({"instances": )", rows, "}")),
                ::testing::ContainsRegex("Encountered list|found at incorrect level"))
        << rows;
    EXPECT_FALSE(Parse(Takes({DT_FLOAT}), absl::StrCat(R"({"inputs": )", rows, "}")).ok()) << rows;
  }
}

TEST(JsonRequest, RefusesWrongForms) {
  const SignatureInfo two = Takes({DT_FLOAT, DT_FLOAT});
  const std::pair<const char*, const char*> kCases[] = {
      {"", "The document is empty"},
      {"[1]", "not object"},
      {"7", "Is not object"},
      {R"({"b64": "YQ=="})", "Is not object"},
      {"{}", "Missing 'inputs' or 'instances' key"},
      {R"({"instances": [1], "inputs": [1]})", "expecting only one of 'inputs' or 'instances'"},
      {R"({"instances": 1})", "Excepting 'instances' to be an list/array"},
      {R"({"instances": {"x": 1, "y": 2}})", "Excepting 'instances' to be an list/array"},
      {R"({"instances": []})", "No values in 'instances' array"},
      {R"({"instances": [1]})", "instances is a plain list, but expecting list of objects"},
      {R"({"inputs": [1]})", "inputs is a plain value/list, but expecting an object"},
      {R"({"instances": [{"x": 1, "y": 2}, 3]})", "Expecting object but got value at item 1"},
      {R"({"instances": [{"x": 1, "y": 2}, [3]]})", "Expecting object but got list at item 1"},
      {R"({"instances": [3, {"x": 1, "y": 2}]})", "Expecting value/list but got object at item 1"},
      {R"({"instances": [{"x": 1, "y": 2}, {"x": 1}]})", "keys must be equal to: x,y"},
      {R"({"instances": [{"x": 1}, {"x": 1, "y": 2}]})", "keys must be equal to: x"},
      {R"({"instances": [{"x": 1, "w": 2}]})", "Missing named input: y"},
      {R"({"inputs": {"x": 1, "y": 2, "w": 3}})", "does not have named input: w"},
      {R"({"inputs": {"x": 1, "y": 2, "x": 3}})", "'x' occurs twice"},
      {R"({"instances": [{"x": 1, "y": 2, "x": 3}]})", "'x' occurs twice"},
      {R"({"inputs": {"x": 1, "y": 2}, "inputs": 1})", "'inputs' occurs twice"},
      {R"({"inputs": {"x": {"a": 1}, "y": 2}})", "Object is neither a value nor a list"},
      {R"({"instances": [{"x": [{"z": 1}], "y": 2}]})", "Object is neither a value nor a list"},
      {R"({"signature_name": 1, "inputs": 1})", "'signature_name' key must be a string value."},
      {R"({"signature_name": ["a"], "inputs": 1})", "'signature_name' key must be a string"},
      {R"({"signature_name": {"a": 1}, "inputs": 1})", "'signature_name' key must be a string"},
      {R"({"instances": [1})", "JSON Parse error"},
      {R"({"instances": [1]} x)", "JSON Parse error"},
      {R"({"instances": [01]})", "JSON Parse error"},
      {R"({"instances": ['a']})", "JSON Parse error"},
      {"{\"instances\": [\"\xff\"]}", "JSON Parse error"},
  };
  for (const auto& [text, expected] : kCases) {
    const absl::Status status = Parse(two, text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << ": " << status;
    EXPECT_THAT(status.ToString(), HasSubstr(expected)) << text;
  }
}

TEST(JsonRequest, ErrorsSayWhichRowAndKey) {
  EXPECT_THAT(Parse(Takes({DT_INT32, DT_INT32}), R"({"instances": [{"x": 1, "y": 2},
                                                                   {"x": 1, "y": 2.5}]})")
                  .status()
                  .ToString(),
              HasSubstr("Failed to process element: 1 key: y of 'instances' list. Error: JSON "
                        "Value: 2.5 Type: Number is not of expected type: int32"));
}

TEST(JsonRequest, DepthIsLimited) {
  const auto nested = [](int depth) {
    return absl::StrCat(R"({"inputs": )", std::string(depth, '['), "1", std::string(depth, ']'),
                        "}");
  };
  EXPECT_EQ(ParseOne(DT_FLOAT, nested(254)).rank(), 254);
  EXPECT_THAT(ErrorOf(DT_FLOAT, nested(255)), HasSubstr("at most 254 dimensions"));
  EXPECT_THAT(ErrorOf(DT_FLOAT, R"({"other": )" + std::string(10'000'000, '[')),
              HasSubstr("nested lists and objects"));
  EXPECT_THAT(ErrorOf(DT_FLOAT, std::string(10'000'000, '{')), HasSubstr("JSON Parse error"));
}

TEST(JsonRequest, MemoryIsLimited) {
  // Each empty string is an object of 32 bytes.
  std::string text = R"({"instances": [)";
  for (int i = 0; i < 3'000'000; ++i) text += "\"\",";
  text += "\"\"]}";
  EXPECT_THAT(ErrorOf(DT_STRING, text), HasSubstr("RESOURCE_EXHAUSTED"));
  std::string keys = R"({"inputs": {)";
  for (int i = 0; i < 2000; ++i) absl::StrAppend(&keys, "\"k", i, "\": 1, ");
  EXPECT_THAT(ErrorOf(DT_FLOAT, keys), HasSubstr("More than 1000 named inputs"));
}

// ---- examples

proto::Example ParseExample(const std::string& bytes) {
  proto::Example example;
  EXPECT_TRUE(example.ParseFromString(bytes));
  return example;
}

TEST(JsonExamples, FeaturesHaveTheTypesOfTheirValues) {
  const auto request = ParseExamplesRequest(
      R"({"signature_name": "s", "context": {"c": "shared"},
          "examples": [{"i": [1, -2], "f": [1.5, NaN], "s": ["a", {"b64": "AA=="}], "one": 7,
                        "b": true, "none": []}, {}]})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->signature, "s");
  ASSERT_EQ(request->examples.examples.size(), 2);
  const auto features = ParseExample(request->examples.examples[0]).features().feature();
  EXPECT_THAT(features.at("i").int64_list().value(), ElementsAre(1, -2));
  EXPECT_EQ(features.at("f").float_list().value(0), 1.5f);
  EXPECT_TRUE(std::isnan(features.at("f").float_list().value(1)));
  EXPECT_THAT(features.at("s").bytes_list().value(), ElementsAre("a", std::string(1, '\0')));
  EXPECT_THAT(features.at("one").int64_list().value(), ElementsAre(7));
  EXPECT_THAT(features.at("b").int64_list().value(), ElementsAre(1));
  EXPECT_EQ(features.at("none").kind_case(), proto::Feature::KIND_NOT_SET);
  EXPECT_EQ(ParseExample(request->examples.context).features().feature().count("c"), 1);
}

TEST(JsonExamples, RefusesWrongForms) {
  const std::pair<const char*, const char*> kCases[] = {
      {"{}", "Key 'examples' is expected"},
      {R"({"examples": []})", "'examples' value is an empty array"},
      {R"({"examples": {"a": 1}})", "Expecting 'examples' value to be an list/array"},
      {R"({"examples": 1})", "Expecting 'examples' value to be an list/array"},
      {R"({"examples": [1]})", "Example must be JSON object but got JSON 1"},
      {R"({"examples": [[{}]]})", "Example must be JSON object but got JSON a list"},
      {R"({"context": [], "examples": [{}]})", "Example must be JSON object"},
      {R"({"examples": [{"a": null}]})", "unexpected JSON type: Null"},
      {R"({"examples": [{"a": [[1]]}]})", "Feature: a has element with unexpected JSON type"},
      {R"({"examples": [{"a": {"c": 1}}]})", "Feature: a has element with unexpected JSON type"},
      {R"({"examples": [{"a": [1, 2.5]}]})", "in feature: a expecting type: int64"},
      {R"({"examples": [{"a": ["x", 1]}]})", "in feature: a expecting type: bytes"},
      {R"({"examples": [{"a": 18446744073709551615}]})", "Only int64 is supported"},
      {R"({"examples": [{"a": 1e39}]})", "without loss of precision"},
      {R"({"examples": [{"a": 1, "a": 2}]})", "occurs twice"},
      {R"({"examples": [{}], "examples": [{}]})", "occurs twice"},
      {R"({"signature_name": 1, "examples": [{}]})", "must be a string value"},
  };
  for (const auto& [text, expected] : kCases) {
    const absl::Status status = ParseExamplesRequest(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << ": " << status;
    EXPECT_THAT(status.ToString(), HasSubstr(expected)) << text;
  }
}

// ---- responses

std::string Written(const NamedTensors& outputs, bool by_rows) {
  const auto text = PredictResponse(outputs, by_rows, 1 << 20);
  if (!text.ok()) return text.status().ToString();
  std::string compact;
  for (const char c : *text) {
    if (c != '\n' && c != ' ') compact.push_back(c);
  }
  return compact;
}

TEST(JsonResponse, RowsAndColumns) {
  const Tensor x = Tensor::Of<float>({2, 2}, {1, 2.5, 3e10f, 0.1f});
  const Tensor y = Tensor::Vector<int64_t>({INT64_MAX, -1});
  EXPECT_EQ(Written({{"x", x}}, true), R"({"predictions":[[1.0,2.5],[3e+10,0.1]]})");
  EXPECT_EQ(
      Written({{"x", x}, {"y", y}}, true),
      R"({"predictions":[{"x":[1.0,2.5],"y":9223372036854775807},{"x":[3e+10,0.1],"y":-1}]})");
  EXPECT_EQ(Written({{"x", x}}, false), R"({"outputs":[[1.0,2.5],[3e+10,0.1]]})");
  EXPECT_EQ(Written({{"x", Tensor::Scalar(2.f)}, {"y", y}}, false),
            R"({"outputs":{"x":2.0,"y":[9223372036854775807,-1]}})");
  EXPECT_EQ(Written({{"x", Tensor::Zeros(DT_FLOAT, {0, 3})}}, true), R"({"predictions":[]})");
  EXPECT_EQ(Written({{"x", Tensor::Zeros(DT_FLOAT, {2, 0})}}, true), R"({"predictions":[[],[]]})");
}

TEST(JsonResponse, Values) {
  EXPECT_EQ(Written({{"x", Tensor::Vector<float>({NAN, kInfinity, -kInfinity, -0.f})}}, false),
            R"({"outputs":[NaN,Infinity,-Infinity,-0.0]})");
  EXPECT_EQ(Written({{"x", Tensor::Vector<double>({0.1, 1e300})}}, false),
            R"({"outputs":[0.1,1e+300]})");
  EXPECT_EQ(Written({{"x", Tensor::Scalar(half(1.5f))}}, false), R"({"outputs":1.5})");
  EXPECT_EQ(Written({{"x", Tensor::Scalar(UINT64_MAX)}}, false),
            R"({"outputs":18446744073709551615})");
  EXPECT_EQ(Written({{"x", Tensor::Vector<bool>({true, false})}}, false),
            R"({"outputs":[true,false]})");
  EXPECT_EQ(Written({{"x", Tensor::Vector<int8_t>({-128})}}, false), R"({"outputs":[-128]})");
}

TEST(JsonResponse, Strings) {
  const Tensor text = Tensor::Vector<std::string>({"a\"\n<", "\xc3\xa9"});
  EXPECT_EQ(Written({{"x", text}}, false), "{\"outputs\":[\"a\\\"\\n<\",\"\xc3\xa9\"]}");
  const Tensor bytes = Tensor::Scalar(std::string("\0\xff", 2));
  EXPECT_EQ(Written({{"x_bytes", bytes}}, false), R"({"outputs":{"b64":"AP8="}})");
  EXPECT_THAT(Written({{"x", bytes}}, false), HasSubstr("not UTF-8"));
}

TEST(JsonResponse, RefusesWhatIsNoRow) {
  EXPECT_THAT(Written({{"x", Tensor::Scalar(1.f)}}, true), HasSubstr("has no shape information"));
  EXPECT_THAT(
      Written({{"x", Tensor::Zeros(DT_FLOAT, {2})}, {"y", Tensor::Zeros(DT_FLOAT, {3})}}, true),
      HasSubstr("Tensor name: y has inconsistent batch size: 3 expecting: 2"));
  EXPECT_THAT(Written({{"x", Tensor::Zeros(DT_COMPLEX64, {2})}}, true), HasSubstr("UNIMPLEMENTED"));
  EXPECT_THAT(Written({}, true), HasSubstr("Cannot convert empty tensor map"));
  EXPECT_THAT(Written({{"x", Tensor::Zeros(DT_FLOAT, {1 << 20})}}, true),
              HasSubstr("RESOURCE_EXHAUSTED"));
}

TEST(JsonResponse, Results) {
  serving::Classification classes;
  classes.classes = {{{"cat", 0.75f}, {"dog", 0.25f}}, {}, {{"c\"", 1.f}}};
  EXPECT_EQ(*ClassifyResponse(classes),
            "{\n    \"results\": [[[\"cat\", 0.75], [\"dog\", 0.25]], [], [[\"c\\\"\", 1.0]]\n    "
            "]\n}\n");
  serving::Regression values;
  values.values = {2.5f, 3.f};
  EXPECT_EQ(RegressResponse(values), "{\n    \"results\": [2.5, 3.0\n    ]\n}\n");
}

}  // namespace
}  // namespace weir::rpc
