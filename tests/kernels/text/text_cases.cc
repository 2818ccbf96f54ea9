#include <cmath>
#include <complex>
#include <limits>

#include "weir/ops/text/string.h"
#include "weir/tests/kernels/lib/recorded.h"

// Values to text and back: numbers, base64, whole tensors.
namespace weir {

namespace {

using namespace recorded;  // NOLINT: a vocabulary made for these tables

constexpr float kInf = std::numeric_limits<float>::infinity();

void AddNumbers(std::vector<OpCase>* rows) {
  const auto number = [&](const char* label, const Tensor& in, std::vector<DataType> types,
                          const Tensor& out) {
    rows->push_back(Row("StringToNumber", label, {in}, {out}).Types(std::move(types)));
  };
  number("whole", Strings({" 1", "1 ", "+5", "\t7\n"}),
         {DT_FLOAT, DT_DOUBLE, DT_INT32, DT_INT64, DT_UINT32, DT_UINT64},
         Doubles({4}, {1, 1, 5, 7}));
  number("real",
         Strings({"1.", ".5", "1e5", "0x1F", "-0x10", "0x1p3", "inf", "-Infinity", "1e400"}),
         {DT_FLOAT, DT_DOUBLE}, Doubles({9}, {1, 0.5, 1e5, 31, -16, 8, kInf, -kInf, kInf}));
  number("negative", Strings({"-2147483648"}), {DT_INT32, DT_INT64}, Doubles({1}, {-2147483648.}));
  number("large", Strings({"4294967295"}), {DT_INT64, DT_UINT32, DT_UINT64},
         Doubles({1}, {4294967295.}));
  number("nothing", Strings({0, 2}, {}), {DT_FLOAT, DT_INT32}, Doubles({0, 2}, {}));
  const Tensor bytes = Strings({"", "a", "ab", "abc", "\xff\xfe\xfd"});
  rows->push_back(Row("EncodeBase64", "", {bytes}, {Strings({"", "YQ", "YWI", "YWJj", "__79"})}));
  rows->push_back(Row("EncodeBase64", "padded", {bytes},
                      {Strings({"", "YQ==", "YWI=", "YWJj", "__79"})}, {{"pad", true}}));
  rows->push_back(Row("DecodeBase64", "",
                      {Strings({"", "YQ", "YQ==", "YWI", "YWI=", "YWJj", "_-8", "YR"})},
                      {Strings({"", "a", "a", "ab", "ab", "abc", "\xff\xef", "a"})}));
}

void AddAsString(std::vector<OpCase>* rows) {
  const auto text = [&](const char* label, const Tensor& in, const Attrs& attrs,
                        std::initializer_list<std::string> out) {
    rows->push_back(Row("AsString", label, {in}, {Strings(in.shape(), out)}, attrs));
  };
  const auto floats = [](std::initializer_list<float> v) { return Tensor::Vector<float>(v); };
  const auto ints = [](std::initializer_list<int32_t> v) { return Tensor::Vector<int32_t>(v); };
  text("floats", floats({1.5, -2, NAN, kInf, 1e20f}), {},
       {"1.500000", "-2.000000", "nan", "inf", "100000002004087734272.000000"});
  text("doubles", Tensor::Vector<double>({1.5, 1. / 3}), {{"precision", 3}}, {"1.500", "0.333"});
  text("scientific", floats({1.5, 1e-9f}), {{"scientific", true}, {"precision", 2}},
       {"1.50e+00", "1.00e-09"});
  text("shortest", floats({1.5, 1e-9f, 123456789.f}), {{"shortest", true}},
       {"1.5", "1e-09", "1.23457e+08"});
  text("half", Tensor::Vector<half>({half(1.f / 3)}), {}, {"0.333252"});
  text("bfloat16", Tensor::Vector<bfloat16>({bfloat16(1.5f)}), {}, {"1.500000"});
  text("zeros", ints({42, -7}), {{"width", 6}, {"fill", "0"}}, {"000042", "-00007"});
  text("left", ints({42, -7}), {{"width", 6}, {"fill", "-"}}, {"42    ", "-7    "});
  text("plus", ints({42, -7}), {{"width", 6}, {"fill", "+"}}, {"   +42", "    -7"});
  text("space", ints({42, -7}), {{"fill", " "}}, {" 42", "-7"});
  text("point", floats({42, -7}), {{"width", 6}, {"fill", "#"}, {"precision", 0}},
       {"   42.", "   -7."});
  text("uint8", Tensor::Vector<uint8_t>({42, 255}), {{"width", 5}}, {"   42", "  255"});
  text("int8", Tensor::Vector<int8_t>({-128}), {}, {"-128"});
  text("uint16", Tensor::Vector<uint16_t>({65535}), {}, {"65535"});
  text("int16", Tensor::Vector<int16_t>({-32768}), {}, {"-32768"});
  text("uint32", Tensor::Vector<uint32_t>({4294967295}), {}, {"4294967295"});
  text("uint64", Tensor::Vector<uint64_t>({~uint64_t{0}}), {}, {"18446744073709551615"});
  text("int64", Longs({INT64_MIN}), {}, {"-9223372036854775808"});
  text("bool", Tensor::Vector<bool>({true, false}), {{"width", 7}}, {"true", "false"});
  text("complex64", Tensor::Vector<std::complex<float>>({{1, 2}}), {{"precision", 1}, {"width", 5}},
       {"(  1.0,  2.0)"});
  text("complex128", Tensor::Vector<std::complex<double>>({{1. / 3, 2}}), {{"shortest", true}},
       {"(0.333333,2)"});
  text("strings", Strings({"ab", "abcdef"}), {}, {"ab", "abcdef"});
  text("wide_strings", Strings({"ab", "abcdef"}), {{"width", 4}}, {"  ab", "abcdef"});
  text("cut_strings", Strings({"ab", "abcdef"}), {{"width", 4}, {"precision", 3}},
       {"  ab", " abc"});
  const std::string zero("a\0b", 3);
  text("wide_zero_bytes", Strings({zero, std::string(1, '\0')}), {{"width", 5}},
       {"  " + zero, std::string("    \0", 5)});
  text("left_zero_bytes", Strings({zero}), {{"width", 5}, {"fill", "-"}}, {zero + "  "});
  text("cut_zero_bytes", Strings({zero}), {{"width", 4}, {"precision", 2}},
       {std::string("  a\0", 4)});
  text("empty", Tensor(DT_FLOAT, {0, 3}), {}, {});
}

Tensor Count(const Shape& shape) {
  Tensor t(DT_INT32, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.SetIntAt(i, i);
  return t;
}

void AddFormats(std::vector<OpCase>* rows) {
  const auto format = [&](const char* label, const Tensor& in, int64_t summarize, const char* out) {
    rows->push_back(Row("StringFormat", label, {}, {Tensor::Scalar(out)},
                        {{"template", "{}"}, {"placeholder", "{}"}, {"summarize", summarize}},
                        {in}));
  };
  format("floats",
         Tensor::Vector<float>({0.1f, 1.f / 3, 1e10f, 1e-5f, 16777216, 123456.789f, kInf, -0.f}),
         -1, "[0.1 0.333333343 1e+10 1e-05 16777216 123456.789 inf -0]");
  format("doubles", Tensor::Vector<double>({0.1, 1. / 3, 1e10, 1e300}), -1,
         "[0.1 0.33333333333333331 10000000000 1e+300]");
  format("halves", Tensor::Vector<half>({half(0.1f), half(1e4f)}), -1, "[0.0999755859 10000]");
  format("bools", Tensor::Vector<bool>({true, false}), 3, "[1 0]");
  format("uint8", Tensor::Vector<uint8_t>({1, 255}), 3, "[1 255]");
  format("uint64", Tensor::Vector<uint64_t>({~uint64_t{0}}), 3, "[18446744073709551615]");
  format("strings", Strings({"a", "b\"\n\xc3\xa9"}), 3, "[\"a\" \"b\\\"\\n\xc3\xa9\"]");
  format("string", Tensor::Scalar("a"), 3, "\"a\"");
  format("matrix", Count({5, 10}), 2,
         "[[0 1 ... 8 9]\n [10 11 ... 18 19]\n ...\n [30 31 ... 38 39]\n [40 41 ... 48 49]]");
  format("cube", Count({5, 3, 4}), 1,
         "[[[0 ... 3]\n  ...\n  [8 ... 11]]\n\n ...\n\n [[48 ... 51]\n  ...\n  [56 ... 59]]]");
  format("small_cube", Count({2, 2, 2}), -1, "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
  format("nothing_shown", Count({5}), 0, "[ ...]");
  format("scalar_not_shown", Count({}), 0, "...");
  format("empty", Count({0}), 3, "[]");
  format("empty_rows", Count({2, 0}), 3, "[\n ...]");
  format("no_rows", Count({0, 2}), 3, "[]");
  rows->push_back(Row("StringFormat", "two", {}, {Tensor::Scalar("x 1 y [2.5] z")},
                      {{"template", "x %s y %s z"}, {"placeholder", "%s"}},
                      {Tensor::Scalar<int32_t>(1), Tensor::Vector<float>({2.5})}));
}

std::vector<OpCase> TextCases() {
  std::vector<OpCase> rows;
  AddNumbers(&rows);
  AddAsString(&rows);
  AddFormats(&rows);
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Text, OpSweepTest, testing::ValuesIn(TextCases()), OpCaseName);

namespace {

TEST(Text, RejectsTextThatIsNotANumber) {
  for (const char* text : {"", " ", "1,5", "1_0", "5f", "++1", "0x", "0xg"}) {
    ExpectRejections({{"StringToNumber", {Strings({text})}, {}, "could not correctly convert"}});
  }
  for (const char* text : {"0x1F", "2147483648", "1.0", "- 5", ""}) {
    ExpectRejections(
        {{"StringToNumber", {Strings({text})}, {{"out_type", DT_INT32}}, "could not"}});
  }
  ExpectRejections({{"StringToNumber", {Strings({"-1"})}, {{"out_type", DT_UINT32}}, "could not"}});
  for (const char* text : {"YQ=", "Y W", "YW=I", "/+8", "====", "YQ==YQ=="}) {
    ExpectRejections(
        {{"DecodeBase64", {Strings({text})}, {}, "Invalid character found in base64."}});
  }
  for (const char* text : {"Y", "YWJjZ", "="}) {
    ExpectRejections({{"DecodeBase64", {Strings({text})}, {}, "cannot be 1 modulo 4."}});
  }
}

TEST(Text, FormatRejectsAnotherNumberOfTensors) {
  Graph g;
  EXPECT_EQ(StringFormat(g, "x", {Const(g, 1)}).node, nullptr);
  EXPECT_NE(g.status().message().find("num placeholders in template and num inputs must match: 0 "
                                      "vs. 1"),
            std::string::npos)
      << g.status();
}

TEST(Text, AsStringRejectsOptionsThatContradictTheType) {
  const Tensor i = Tensor::Vector<int32_t>({1}), f = Tensor::Vector<float>({1});
  ExpectRejections({
      {"AsString", {i}, {{"fill", "x"}}, "Fill argument not supported: \"x\""},
      {"AsString", {i}, {{"fill", "00"}}, "one or fewer characters"},
      {"AsString", {i}, {{"precision", 2}}, "precision not supported for datatype int32"},
      {"AsString", {i}, {{"scientific", true}}, "scientific and shortest format not supported"},
      {"AsString", {f}, {{"scientific", true}, {"shortest", true}}, "Cannot select both"},
      {"AsString", {f}, {{"width", 1 << 30}}, "at most"},
  });
}

}  // namespace

}  // namespace weir
