#include "weir/core/graph/attr.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = AttrSpec::Kind;

AttrSpec Parsed(absl::string_view text) {
  absl::StatusOr<AttrSpec> spec = AttrSpec::Parse(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : AttrSpec();
}

TEST(AttrSpec, ParsesKindsAndTheirWireNames) {
  const std::pair<const char*, const char*> kCases[] = {{"a: string", "string"},
                                                        {"a: int", "int"},
                                                        {"a: float", "float"},
                                                        {"a: bool", "bool"},
                                                        {"a: type", "type"},
                                                        {"a: shape", "shape"},
                                                        {"a: tensor", "tensor"},
                                                        {"a: func", "func"},
                                                        {"a: list(int)", "list(int)"},
                                                        {"a:list(func)", "list(func)"},
                                                        {"a: {float, int32}", "type"},
                                                        {"a: {'X'}", "string"},
                                                        {"a: list({float})", "list(type)"},
                                                        {"a: numbertype", "type"}};
  for (const auto& [text, name] : kCases) EXPECT_EQ(Parsed(text).TypeName(), name) << text;
}

TEST(AttrSpec, ParsesAllowedTypesAndStrings) {
  EXPECT_THAT(Parsed("T: {half, float} = DT_FLOAT").allowed_types, ElementsAre(DT_HALF, DT_FLOAT));
  EXPECT_THAT(Parsed("padding: {'SAME', 'VALID'}").allowed_strings, ElementsAre("SAME", "VALID"));
  EXPECT_EQ(Parsed("T: numbertype").allowed_types.size(), 19u);
  EXPECT_EQ(Parsed("T: realnumbertype").allowed_types.size(), 12u);
  EXPECT_THAT(Parsed("T: quantizedtype").allowed_types,
              ElementsAre(DT_QINT8, DT_QUINT8, DT_QINT32, DT_QINT16, DT_QUINT16));
  const DataTypes mixed = Parsed("T: {realnumbertype, quantizedtype, bool}").allowed_types;
  EXPECT_EQ(mixed.size(), 18u);
  EXPECT_EQ(mixed.back(), DT_BOOL);
}

TEST(AttrSpec, ParsesMinimumBeforeDefault) {
  const AttrSpec spec = Parsed("max_images: int >= 1 = 3");
  EXPECT_EQ(spec.minimum, 1);
  EXPECT_EQ(spec.default_value, AttrValue(3));
  EXPECT_EQ(Parsed("strides: list(int) >= 4").minimum, 4);
}

TEST(AttrSpec, ParsesDefaultsOfEveryKind) {
  const auto value = [](absl::string_view text) { return *Parsed(text).default_value; };
  EXPECT_EQ(value("s: string = ''"), AttrValue(""));
  EXPECT_EQ(value("s: string = \"a, b = c\""), AttrValue("a, b = c"));
  EXPECT_EQ(value("s: string = '\\t'"), AttrValue("\t"));
  EXPECT_EQ(value("i: int = -7"), AttrValue(-7));
  EXPECT_EQ(value("f: float = 1e-3"), AttrValue(1e-3f));
  EXPECT_EQ(value("f: float = -inf"), AttrValue(-std::numeric_limits<float>::infinity()));
  EXPECT_EQ(value("b: bool = true"), AttrValue(true));
  EXPECT_EQ(value("t: type = DT_INT64"), AttrValue(DT_INT64));
  EXPECT_EQ(value("t: {int32, int64} = DT_INT32"), AttrValue(DT_INT32));
  EXPECT_EQ(value("l: list(int) = [1, 1, 1, 1]"), AttrValue(std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(value("l: list(float) = [0.75, 1.33]"), AttrValue(std::vector<float>{0.75f, 1.33f}));
  EXPECT_EQ(value("l: list(string) = ['a','b']"), AttrValue(std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(value("l: list(bool) = [true, false]"), AttrValue(std::vector<bool>{true, false}));
  EXPECT_TRUE(value("l: list(type) = []").is<AttrValue::EmptyList>());
  EXPECT_TRUE(value("l: list({int32, string}) >= 0 = []").is<AttrValue::EmptyList>());
}

TEST(AttrSpec, ParsesShapesInEveryForm) {
  const auto shape = [](absl::string_view text) {
    return *Parsed(absl::StrCat("s: shape = ", text)).default_value->get_if<Shape>();
  };
  EXPECT_EQ(shape("{}"), Shape());
  EXPECT_EQ(shape("[]"), Shape());
  EXPECT_EQ(shape("{ unknown_rank: true }"), Shape::UnknownRank());
  EXPECT_EQ(shape("<unknown>"), Shape::UnknownRank());
  EXPECT_EQ(shape("[2,?]"), Shape({2, -1}));
  EXPECT_EQ(shape("\"[2,?]\""), Shape({2, -1}));
  EXPECT_EQ(shape("{ dim { size: 2 } dim { size: -1 } }"), Shape({2, -1}));
}

TEST(AttrSpec, ParsesIntegerTensors) {
  const AttrSpec spec = Parsed(
      "bad_color: tensor = { dtype: DT_UINT8 tensor_shape { dim { size: 4 } }"
      " int_val: 255 int_val: 0 int_val: 0 int_val: 255 }");
  EXPECT_EQ(*spec.default_value, AttrValue(Tensor::Vector<uint8_t>({255, 0, 0, 255})));
}

TEST(AttrSpec, RejectsMalformedText) {
  for (const char* text : {"",
                           "T",
                           "T:",
                           ": type",
                           "T: typo",
                           "T: {float",
                           "T: {float, typo}",
                           "T: {float, 'a'}",
                           "T: list(int",
                           "N: int >= x",
                           "s: string >= 2",
                           "i: int = 1.5",
                           "i: int = 99999999999999999999",
                           "b: bool = 1",
                           "t: {int32} = DT_FLOAT",
                           "N: int >= 2 = 1",
                           "s: {'A'} = 'B'",
                           "l: list(int) = [1",
                           "l: list(int) = 1",
                           "s: string = abc",
                           "s: string = 'abc",
                           "i: int = 1 2",
                           "s: shape = [2,-5]",
                           "x: tensor = {dtype: DT_FLOAT}",
                           "s: shape = { dim { size: x } }"}) {
    const auto spec = AttrSpec::Parse(text);
    EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(AttrSpec, CheckReportsTheAttributeAndTheAllowedValues) {
  const auto message = [](absl::string_view spec, const AttrValue& value) {
    const absl::Status status = Parsed(spec).Check(value);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(message("transpose_a: bool", "no"),
            "AttrValue had value with type 'string' when 'bool' expected for attr 'transpose_a'");
  EXPECT_EQ(message("T: {half, float}", DT_INT32),
            "Value for attr 'T' of int32 is not in the list of allowed values: half, float");
  EXPECT_EQ(
      message("p: {'SAME', 'VALID'}", "FULL"),
      "Value for attr 'p' of \"FULL\" is not in the list of allowed values: \"SAME\", \"VALID\"");
  EXPECT_THAT(message("N: int >= 1", 0), HasSubstr("'N' of 0 must be at least minimum 1"));
  EXPECT_THAT(message("l: list(int) >= 4", std::vector<int64_t>{1}),
              HasSubstr("of 1 must be at least minimum 4"));
  EXPECT_THAT(message("l: list(int) >= 1", AttrValue::EmptyList{}),
              HasSubstr("of 0 must be at least"));
  EXPECT_THAT(message("l: list({float})", DataTypes{DT_FLOAT, DT_INT32}), HasSubstr("int32"));
  EXPECT_THAT(message("T: type", MakeRef(DT_FLOAT)), HasSubstr("reference type"));
  EXPECT_THAT(message("T: type", static_cast<DataType>(77)),
              HasSubstr("invalid DataType enum: 77"));
  EXPECT_THAT(message("T: type", AttrValue()), HasSubstr("'(none)'"));
  EXPECT_THAT(message("T: type", AttrPlaceholder{"T"}), HasSubstr("'placeholder'"));
}

TEST(AttrSpec, EmptyListFitsEveryListKind) {
  for (const char* text : {"l: list(int)", "l: list(type)", "l: list({float})", "l: list(func)"}) {
    EXPECT_TRUE(Parsed(text).Check(AttrValue::EmptyList{}).ok()) << text;
  }
  EXPECT_FALSE(Parsed("i: int").Check(AttrValue::EmptyList{}).ok());
}

TEST(AttrValue, EqualityIsByKindAndContent) {
  EXPECT_NE(AttrValue(1), AttrValue(1.0f));
  EXPECT_NE(AttrValue(0.0f), AttrValue(-0.0f));
  EXPECT_EQ(AttrValue(std::nanf("")), AttrValue(std::nanf("")));
  EXPECT_EQ(AttrValue(Tensor::Vector<float>({1})), AttrValue(Tensor::Vector<float>({1})));
  EXPECT_NE(AttrValue(Tensor::Vector<float>({1})), AttrValue(Tensor::Vector<float>({2})));
  EXPECT_EQ(AttrValue(std::vector<int64_t>{}), AttrValue(std::vector<std::string>{}));
  EXPECT_EQ(AttrValue(), AttrValue());
}

TEST(AttrValue, FunctionsWithoutAttributesEqualThoseWithNone) {
  const FunctionRef bare{"f", nullptr}, empty{"f", std::make_shared<AttrMap>()};
  const FunctionRef typed{"f", std::make_shared<AttrMap>(AttrMap{{"T", AttrValue(DT_FLOAT)}})};
  EXPECT_EQ(bare, empty);
  EXPECT_FALSE(bare == typed);
}

TEST(AttrValue, TextIsForMessages) {
  EXPECT_EQ(AttrValue(DT_FLOAT).ToString(), "DT_FLOAT");
  EXPECT_EQ(AttrValue("SA\"ME").ToString(), "\"SA\\\"ME\"");
  EXPECT_EQ(AttrValue(0.1f).ToString(), "0.1");
  EXPECT_EQ(AttrValue(std::vector<int64_t>{1, 2}).ToString(), "[1, 2]");
  EXPECT_EQ(AttrValue(std::vector<bool>{true, false}).ToString(), "[true, false]");
  EXPECT_EQ(AttrValue(Shape({2, -1})).ToString(), "[2,?]");
  EXPECT_EQ(AttrValue(Tensor(DT_FLOAT, Shape({2, 3}))).ToString(), "<Tensor: float[2,3]>");
  const FunctionRef f{"f", std::make_shared<AttrMap>(AttrMap{{"T", AttrValue(DT_FLOAT)}})};
  EXPECT_EQ(AttrValue(f).ToString(), "f[T=DT_FLOAT]");
}

}  // namespace
}  // namespace weir
