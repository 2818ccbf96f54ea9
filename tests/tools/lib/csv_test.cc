#include "weir/tools/lib/csv.h"

#include <limits>

#include "gmock/gmock.h"

namespace weir::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Parsed(absl::string_view text, const CsvOptions& options = {}) {
  const auto t = ParseCsv(text, options);
  return t.ok() ? t->Description() + " " + t->ToString() : std::string(t.status().message());
}

TEST(ParseCsv, LinesAreTheRowsOfAMatrix) {
  EXPECT_EQ(Parsed("1,2.5\r\n-3,1e2\n"), "float[2,2] [[  1.    2.5]\n [ -3.  100. ]]");
  EXPECT_EQ(Parsed("1,2"), "float[1,2] [[1. 2.]]");
  EXPECT_EQ(Parsed("\xef\xbb\xbf"
                   "1\n\n2\n",
                   {.dtype = DT_INT32}),
            "int32[2,1] [[1]\n [2]]");
  EXPECT_EQ(Parsed("1;2\n", {.dtype = DT_INT32, .separator = ';'}), "int32[1,2] [[1 2]]");
  EXPECT_EQ(Parsed("true,0\n", {.dtype = DT_BOOL}), "bool[1,2] [[ True False]]");
}

TEST(ParseCsv, TextMayBeQuoted) {
  const auto t = ParseCsv("a,\"b,\"\"c\"\"\"\n\"two\nlines\",#\n", {.dtype = DT_STRING});
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_TRUE(
      IdenticalTensors(*t, Tensor::Of<std::string>({2, 2}, {"a", "b,\"c\"", "two\nlines", "#"})));
  EXPECT_EQ(Parsed("\"a", {.dtype = DT_STRING}), "line 1: a quote is not closed");
}

TEST(ParseCsv, TheFirstLineMayNameColumns) {
  const char* const text = "a,b\n1,2\n3,4\n";
  EXPECT_EQ(Parsed(text), "float[2,2] [[1. 2.]\n [3. 4.]]");
  EXPECT_EQ(Parsed(text, {.column = "b"}), "float[2,1] [[2.]\n [4.]]");
  EXPECT_EQ(Parsed(text, {.column = "x"}), "float[2,2] [[1. 2.]\n [3. 4.]]");
  EXPECT_EQ(Parsed(text, {.column = "x", .needs_column = true}),
            "no column 'x'; the first line is: a, b");
  EXPECT_THAT(*CsvFields(text, ','), ElementsAre("a", "b"));
  EXPECT_EQ(Parsed("# a, b\n1,2\n"), "float[1,2] [[1. 2.]]");
}

TEST(ParseCsv, ErrorsNameTheLine) {
  EXPECT_EQ(Parsed("1,2\n\n3\n"), "line 3: 1 fields, but the first line has 2");
  EXPECT_EQ(Parsed("1\n2.5\n", {.dtype = DT_INT32}), "line 2: '2.5' is not a value of type int32");
  EXPECT_EQ(Parsed("1\n\n"), "float[1,1] [[1.]]");
  EXPECT_EQ(Parsed("\n"), "it has no lines");
  EXPECT_EQ(Parsed("1,\n"), "line 1: '' is not a value of type float");
  EXPECT_THAT(Parsed("1\n", {.dtype = DT_COMPLEX64}), HasSubstr("complex64"));
}

TEST(ParseCsv, WholeNumbersAreExactAndFractionsAreRounded) {
  EXPECT_EQ(Parsed("18446744073709551615\n", {.dtype = DT_UINT64}),
            "uint64[1,1] [[18446744073709551615]]");
  EXPECT_THAT(Parsed("16777217\n"), HasSubstr("line 1: '16777217' is not a value of type float"));
  EXPECT_EQ(Parsed("16777217\n", {.rounding = Rounding::kAllowed}), "float[1,1] [[1.6777216e+07]]");
  EXPECT_EQ(Parsed("0.1\n"), "float[1,1] [[0.1]]");
  EXPECT_EQ(Parsed("2.5\n", {.dtype = DT_INT8, .rounding = Rounding::kAllowed}), "int8[1,1] [[2]]");
  EXPECT_THAT(Parsed("1e39\n"), HasSubstr("'1e39' is not a value of type float"));
}

TEST(FormatCsv, OneTensorHasNoHeader) {
  EXPECT_EQ(*FormatCsv({{"y", Tensor::Of<float>({2, 2}, {0.1f, 2, 3e-10f, -4})}}, ','),
            "0.1,2.0\n3e-10,-4.0\n");
  EXPECT_EQ(*FormatCsv({{"y", Tensor::Scalar<int64_t>(7)}}, ','), "7\n");
  EXPECT_EQ(*FormatCsv({{"y", Tensor::Vector<bool>({true, false})}}, ','), "true\nfalse\n");
}

TEST(FormatCsv, SeveralTensorsStandSideBySide) {
  EXPECT_EQ(*FormatCsv({{"y", Tensor::Of<int32_t>({2, 2}, {1, 2, 3, 4})},
                        {"name", Tensor::Vector<std::string>({"a,b", "\""})}},
                       ','),
            "y.0,y.1,name\n1,2,\"a,b\"\n3,4,\"\"\"\"\n");
  const auto uneven =
      FormatCsv({{"a", Tensor::Vector<int32_t>({1, 2})}, {"b", Tensor::Vector<int32_t>({1})}}, ',');
  EXPECT_THAT(uneven.status().message(), HasSubstr("'b' has 1 rows, but 'a' has 2"));
}

TEST(FormatCsv, IsReadBackWithTheSameBits) {
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  const Tensor numbers = Tensor::Of<double>({3, 1}, {0.1, 1 / 3., kLeast});
  EXPECT_TRUE(IdenticalTensors(*ParseCsv(*FormatCsv({{"x", numbers}}, ','), {.dtype = DT_DOUBLE}),
                               numbers));
  const Tensor texts = Tensor::Of<std::string>({4, 1}, {"", "#", "a\r\nb", "\"q\""});
  EXPECT_TRUE(
      IdenticalTensors(*ParseCsv(*FormatCsv({{"x", texts}}, ','), {.dtype = DT_STRING}), texts));
}

}  // namespace
}  // namespace weir::tools
