#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Kernels of strings on so many elements that several threads share them, compared with the C
// library or a plain loop.
namespace weir {
namespace {

using Texts = std::vector<std::string>;

Tensor Strings(const Texts& texts) {
  Tensor t(DT_STRING, Shape({static_cast<int64_t>(texts.size())}));
  std::copy(texts.begin(), texts.end(), t.data<std::string>());
  return t;
}

template <class T>
Tensor Vector(const std::vector<T>& values) {
  Tensor t(DataTypeOf<T>::value, Shape({static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), t.data<T>());
  return t;
}

Tensors RunOp(absl::string_view op, const Tensors& inputs, const Attrs& attrs = {},
              size_t list = 0) {
  absl::StatusOr<Tensors> out = RunFed(op, inputs, attrs, list);
  EXPECT_TRUE(out.ok()) << op << ": " << out.status();
  return out.ok() ? *std::move(out) : Tensors(3);
}

template <class T = std::string>
std::vector<T> ValuesOf(const Tensor& t) {
  return std::vector<T>(t.data<T>(), t.data<T>() + t.num_elements());
}

// Texts of 0 to 40 bytes, some of them on the heap: letters and spaces.
Texts RandomTexts(int n) {
  std::minstd_rand random(7);
  Texts texts(static_cast<size_t>(n));
  for (std::string& text : texts) {
    for (auto left = random() % 41; left > 0; --left) text += "abc  \t-"[random() % 7];
  }
  return texts;
}

constexpr int kMany = 20000;

// ---- numbers

std::string Fixed(double value, int decimals) {
  char text[512];
  return {text, static_cast<size_t>(std::snprintf(text, sizeof(text), "%.*f", decimals, value))};
}

// Numbers of all sizes, ties, and the limits of integer arithmetic.
std::vector<double> Reals() {
  std::vector<double> all = {0.0,
                             -0.0,
                             0.5,
                             1.5,
                             -2.5,
                             0.125,
                             0x1p-20,
                             0x1p-21,
                             9.5,
                             99.9999995,
                             1e15,
                             0x1p52 + 0.5,
                             0x1p53 - 1,
                             0x1p53,
                             0x1p63,
                             1e22,
                             1e300,
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::min()};
  for (int d = 0; d <= 20; ++d) {
    const double limit = 0x1p63 / std::pow(10.0, d);
    for (const double x : {limit, std::nextafter(limit, 0.0), std::nextafter(limit, 1e30)}) {
      all.push_back(x);
    }
  }
  std::mt19937_64 random(5);
  for (int i = 0; i < 5000; ++i) {
    all.push_back(
        std::ldexp(static_cast<double>(random() >> 11), -static_cast<int>(random() % 140)));
    all.push_back(
        std::ldexp(static_cast<double>(random() % 4096), -static_cast<int>(random() % 20)));
    all.push_back(-static_cast<double>(random() % 2000000) / 1000);
  }
  return all;
}

TEST(StringTest, PrintsFixedNotationAsPrintf) {
  const std::vector<double> reals = Reals();
  for (int decimals = -1; decimals <= 20; ++decimals) {
    const Texts got = ValuesOf(
        RunOp("AsString", {Vector(reals)}, {{"precision", static_cast<int64_t>(decimals)}})[0]);
    for (size_t i = 0; i < reals.size(); ++i) {
      ASSERT_EQ(got[i], Fixed(reals[i], decimals < 0 ? 6 : decimals))
          << std::bit_cast<uint64_t>(reals[i]) << " to " << decimals << " decimals";
    }
  }
}

TEST(StringTest, PrintsComplexNumbersAndIntegers) {
  using C = std::complex<double>;
  EXPECT_EQ(ValuesOf(RunOp("AsString", {Vector<C>({{1.5, -2}, {0.25, 1e30}})})[0]),
            (Texts{"(1.500000,-2.000000)", absl::StrCat("(0.250000,", Fixed(1e30, 6), ")")}));
  EXPECT_EQ(ValuesOf(RunOp("AsString", {Vector<int64_t>({INT64_MIN, -1, 0, 10, INT64_MAX})})[0]),
            (Texts{"-9223372036854775808", "-1", "0", "10", "9223372036854775807"}));
  EXPECT_EQ(ValuesOf(RunOp("AsString", {Vector<uint64_t>({UINT64_MAX})})[0]),
            (Texts{"18446744073709551615"}));
  EXPECT_EQ(ValuesOf(RunOp("AsString", {Vector<int32_t>({-7, 12})},
                           {{"width", int64_t{5}}, {"fill", "0"}})[0]),
            (Texts{"-0007", "00012"}));
}

template <class T>
T Parse(const std::string& text) {
  if constexpr (std::is_same_v<T, float>) return std::strtof(text.c_str(), nullptr);
  return static_cast<T>(std::strtod(text.c_str(), nullptr));
}

template <class T>
void ExpectParsesAsStrtod() {
  Texts texts = {"0",      "-0",       "  1.5 ",           "+2",          "1e400", "-1e400",
                 "1e-400", "inf",      "-Infinity",        "0x1.8p1",     ".5",    "5.",
                 "1E+5",   "16777217", "9007199254740993", "3.4028236e38"};
  for (const double x : Reals()) {
    char text[64];
    for (const int digits : {3, 9, 17}) {
      std::snprintf(text, sizeof(text), "%.*g", digits, x);
      if (!std::isnan(x)) texts.push_back(text);
    }
  }
  const auto got = ValuesOf<T>(
      RunOp("StringToNumber", {Strings(texts)}, {{"out_type", DataTypeOf<T>::value}})[0]);
  for (size_t i = 0; i < texts.size(); ++i) {
    const T want = Parse<T>(texts[i]);
    ASSERT_EQ(got[i], want) << texts[i];
    ASSERT_EQ(std::signbit(got[i]), std::signbit(want)) << texts[i];
  }
}

TEST(StringTest, ParsesFloatsAsTheCLibrary) { ExpectParsesAsStrtod<float>(); }
TEST(StringTest, ParsesDoublesAsTheCLibrary) { ExpectParsesAsStrtod<double>(); }

TEST(StringTest, ReturnsTheErrorOfTheFirstWrongString) {
  for (const int wrong : {0, 5, 1023, 1024, kMany - 1}) {
    Texts texts(kMany, "1.5");
    for (int i = wrong; i < kMany; i += 700) texts[i] = absl::StrCat("wrong", i);
    texts[wrong] = absl::StrCat("wrong", wrong, "!");
    const absl::Status status =
        RunFed("StringToNumber", {Strings(texts)}, {{"out_type", DT_FLOAT}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(), texts[wrong])) << status;
  }
}

// ---- splitting

// The indices, words and shape that a split should return.
void ExpectSplit(const Tensors& got, const std::vector<Texts>& want) {
  std::vector<int64_t> indices;
  Texts words;
  size_t widest = 0;
  for (size_t row = 0; row < want.size(); ++row) {
    for (size_t column = 0; column < want[row].size(); ++column) {
      indices.insert(indices.end(), {static_cast<int64_t>(row), static_cast<int64_t>(column)});
      words.push_back(want[row][column]);
    }
    widest = std::max(widest, want[row].size());
  }
  EXPECT_EQ(ValuesOf<int64_t>(got[0]), indices);
  EXPECT_EQ(ValuesOf(got[1]), words);
  EXPECT_EQ(ValuesOf<int64_t>(got[2]), (std::vector<int64_t>{static_cast<int64_t>(want.size()),
                                                             static_cast<int64_t>(widest)}));
}

// The words between bytes that `is_delimiter`.
template <class F>
Texts WordsOf(const std::string& text, bool skip_empty, F is_delimiter) {
  Texts words(1);
  for (const char c : text) {
    if (is_delimiter(c)) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (text.empty()) words.clear();
  if (skip_empty) std::erase(words, "");
  return words;
}

TEST(StringTest, SplitsAnyNumberOfRows) {
  for (const int rows : {0, 1, 255, 256, 257, 3000}) {
    const Texts texts = RandomTexts(rows);
    std::vector<Texts> at_space, at_two, bytes, at_white;
    for (const std::string& text : texts) {
      at_space.push_back(WordsOf(text, true, [](char c) { return c == ' '; }));
      at_two.push_back(WordsOf(text, false, [](char c) { return c == ' ' || c == '-'; }));
      at_white.push_back(WordsOf(text, true, [](char c) { return c == ' ' || c == '\t'; }));
      bytes.emplace_back();
      for (const char c : text) bytes.back().push_back(std::string(1, c));
    }
    const Tensor in = Strings(texts);
    SCOPED_TRACE(rows);
    ExpectSplit(RunOp("StringSplit", {in, Tensor::Scalar(" ")}), at_space);
    ExpectSplit(RunOp("StringSplit", {in, Tensor::Scalar(" -")}, {{"skip_empty", false}}), at_two);
    ExpectSplit(RunOp("StringSplit", {in, Tensor::Scalar("")}), bytes);
    ExpectSplit(RunOp("StringSplitV2", {in, Tensor::Scalar("")}), at_white);
  }
}

TEST(StringTest, StopsSplittingAtTheLimit) {
  const Tensor in = Strings({" a b  c d ", "a ", "", "a b", "  "});
  ExpectSplit(RunOp("StringSplitV2", {in, Tensor::Scalar("")}, {{"maxsplit", int64_t{2}}}),
              {{"a", "b", "c d "}, {"a"}, {}, {"a", "b", ""}, {}});
  ExpectSplit(RunOp("StringSplitV2", {in, Tensor::Scalar("")}, {{"maxsplit", int64_t{1}}}),
              {{"a", "b  c d "}, {"a", ""}, {}, {"a", "b"}, {}});
}

// ---- joining, matching, encoding

TEST(StringTest, JoinsManyStrings) {
  const Texts a = RandomTexts(kMany), b(a.rbegin(), a.rend());
  const Texts got = ValuesOf(RunOp("StringJoin", {Strings(a), Tensor::Scalar("+"), Strings(b)},
                                   {{"separator", "::"}}, 3)[0]);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(got[i], absl::StrCat(a[i], "::+::", b[i]));
}

TEST(StringTest, JoinsOverEachDimension) {
  constexpr int kRows = 40, kColumns = 250;
  const Texts a = RandomTexts(kRows * kColumns);
  Texts rows(kRows), columns(kColumns);
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) {
      const std::string& each = a[i * kColumns + j];
      absl::StrAppend(&rows[i], j == 0 ? "" : "/", each);
      absl::StrAppend(&columns[j], i == 0 ? "" : "/", each);
    }
  }
  const Tensor in = Strings(a).Reshaped({kRows, kColumns});
  const Attrs attrs = {{"separator", "/"}};
  const auto join = [&](std::initializer_list<int32_t> axes) {
    return ValuesOf(RunOp("ReduceJoin", {in, Tensor::Vector<int32_t>(axes)}, attrs)[0]);
  };
  EXPECT_EQ(join({1}), rows);
  EXPECT_EQ(join({0}), columns);
  EXPECT_EQ(join({1, 0}), Texts{absl::StrJoin(rows, "/")});
  EXPECT_EQ(join({0, 1}), Texts{absl::StrJoin(columns, "/")});
}

TEST(StringTest, InsertsMalformedRewritesUpToTheFault) {
  const Tensor in = Tensor::Scalar("abcab"), pattern = Tensor::Scalar("(b)");
  for (const auto& [rewrite, result] :
       std::vector<std::pair<std::string, std::string>>{{"<\\1\\\\>", "a<b\\>ca<b\\>"},
                                                        {"<\\1\\", "a<bca<b"},
                                                        {"<\\x\\1>", "a<ca<"},
                                                        {"\\", "aca"},
                                                        {"<\\x\\2>", "abcab"}}) {
    EXPECT_EQ(ValuesOf(RunOp("RegexReplace", {in, pattern, Tensor::Scalar(rewrite)})[0]),
              Texts{result})
        << rewrite;
  }
  EXPECT_EQ(ValuesOf(RunOp("RegexReplace", {in, pattern, Tensor::Scalar("<\\x")},
                           {{"replace_global", false}})[0]),
            Texts{"abcab"});
}

TEST(StringTest, MatchesPatternsInManyStrings) {
  const Texts texts = RandomTexts(kMany);
  const Tensor in = Strings(texts), b = Tensor::Scalar("b"), x = Tensor::Scalar("<\\0>");
  const Texts all = ValuesOf(RunOp("RegexReplace", {in, b, x})[0]);
  const Texts first =
      ValuesOf(RunOp("StaticRegexReplace", {in},
                     {{"pattern", "b"}, {"rewrite", "<\\0>"}, {"replace_global", false}})[0]);
  const Texts none = ValuesOf(RunOp("RegexReplace", {in, b, Tensor::Scalar("\\1")})[0]);
  const auto full = ValuesOf<bool>(RunOp("RegexFullMatch", {in, Tensor::Scalar("[^b]*")})[0]);
  EXPECT_EQ(none, texts) << "the pattern has no group 1";
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_EQ(all[i], absl::StrReplaceAll(texts[i], {{"b", "<b>"}}));
    const size_t at = texts[i].find('b');
    std::string replaced = texts[i];
    if (at != std::string::npos) replaced.replace(at, 1, "<b>");
    ASSERT_EQ(first[i], replaced);
    ASSERT_EQ(full[i], at == std::string::npos) << texts[i];
  }
}

TEST(StringTest, DecodesWhatItEncodes) {
  Texts texts = RandomTexts(kMany);
  for (int i = 0; i < 256; ++i) {
    texts.push_back(std::string(static_cast<size_t>(i % 7), static_cast<char>(i)));
  }
  for (const bool pad : {false, true}) {
    const Tensor encoded = RunOp("EncodeBase64", {Strings(texts)}, {{"pad", pad}})[0];
    EXPECT_EQ(ValuesOf(RunOp("DecodeBase64", {encoded})[0]), texts);
  }
  for (const char* wrong : {"ab+d", "ab/d", "abc\x80", "a=cd", "abc.", "abcde"}) {
    EXPECT_FALSE(RunFed("DecodeBase64", {Strings({"YWJj", wrong})}).ok()) << wrong;
  }
  const Attrs utf8 = {{"input_encoding", "UTF-8"}, {"output_encoding", "UTF-16-BE"}};
  const Attrs utf16 = {{"input_encoding", "UTF-16-BE"}, {"output_encoding", "UTF-8"}};
  texts = RandomTexts(kMany);
  for (std::string& text : texts) text += "\xc3\xa9\xf0\x9f\x98\x80";
  const Tensor wide = RunOp("UnicodeTranscode", {Strings(texts)}, utf8)[0];
  EXPECT_EQ(ValuesOf(RunOp("UnicodeTranscode", {wide}, utf16)[0]), texts);
}

TEST(StringTest, TakesPartsOfManyStrings) {
  const Texts texts = RandomTexts(kMany);
  std::vector<int32_t> positions, lengths;
  Texts want;
  for (size_t i = 0; i < texts.size(); ++i) {
    positions.push_back(static_cast<int32_t>(texts[i].size() / 2));
    lengths.push_back(static_cast<int32_t>(i % 5));
    want.push_back(texts[i].substr(texts[i].size() / 2, i % 5));
  }
  const Tensor in = Strings(texts);
  EXPECT_EQ(ValuesOf(RunOp("Substr", {in, Vector(positions), Vector(lengths)})[0]), want);
  const Tensors scalars = {in, Tensor::Scalar<int32_t>(0), Tensor::Scalar<int32_t>(0)};
  EXPECT_EQ(ValuesOf(RunOp("Substr", scalars)[0]), Texts(kMany));
}

}  // namespace
}  // namespace weir
