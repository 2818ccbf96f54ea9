#include "weir/ops/text/string.h"
#include "weir/tests/kernels/lib/recorded.h"

// Unicode: decoding and encoding, scripts, case.
namespace weir {

namespace {

using namespace recorded;  // NOLINT: a vocabulary made for these tables

Tensor Characters(std::initializer_list<int32_t> values) { return Tensor::Vector<int32_t>(values); }

void AddDecode(std::vector<OpCase>* rows) {
  const auto decode = [&](const char* label, const std::string& bytes, const Attrs& attrs,
                          std::initializer_list<int32_t> characters,
                          std::initializer_list<int64_t> starts) {
    Attrs all = {{"input_encoding", "UTF-8"}};
    if (!attrs.empty() && attrs[0].first == "input_encoding") all.clear();
    all.insert(all.end(), attrs.begin(), attrs.end());
    const Tensor splits = Longs({0, static_cast<int64_t>(characters.size())});
    rows->push_back(Row("UnicodeDecodeWithOffsets", label, {Strings({bytes})},
                        {splits, Characters(characters), Longs(starts)}, all)
                        .Types({DT_INT64}));
  };
  decode("mixed",
         "a\x01\xf0\x9f\x98\x80"
         "b\xf0\x9f\x98",
         {}, {97, 1, 128512, 98, 65533}, {0, 1, 2, 6, 7});
  decode("control_replaced",
         "a\x01\xf0\x9f\x98\x80"
         "b\xf0\x9f\x98",
         {{"replace_control_characters", true}, {"replacement_char", 63}}, {97, 63, 128512, 98, 63},
         {0, 1, 2, 6, 7});
  decode("cut_off", "a\xe2\x82", {}, {97, 65533}, {0, 1});
  decode("cut_off_ignored", "a\xe2\x82", {{"errors", "ignore"}}, {97}, {0});
  decode("not_utf8",
         "\xff\xfe"
         "ab",
         {}, {65533, 65533, 97, 98}, {0, 1, 2, 3});
  decode("not_utf8_ignored",
         "\xff\xfe"
         "ab",
         {{"errors", "ignore"}}, {97, 98}, {2, 3});
  decode("overlong", "\xc0\xaf", {}, {65533, 65533}, {0, 1});
  decode("surrogate", "\xed\xa0\x80", {}, {65533, 65533, 65533}, {0, 1, 2});
  decode("strict", "\xc3\xa9", {{"errors", "strict"}}, {233}, {0});
  const auto from = [](const char* encoding) { return Attrs{{"input_encoding", encoding}}; };
  decode("utf16", Raw("\x00\x61\xd8\x3d\xde\x00"), from("UTF-16-BE"), {97, 128512}, {0, 2});
  decode("utf16_half_pair", Raw("\x00\x61\xd8\x3d"), from("UTF-16-BE"), {97, 65533}, {0, 2});
  decode("utf16_half_unit", Raw("\x00\x61\x00"), from("UTF-16-BE"), {97, 65533}, {0, 2});
  decode("utf16_with_mark", Raw("\xff\xfe\x61\x00"), from("UTF-16"), {97}, {0});
  decode("utf16_only_mark", Raw("\xfe\xff"), from("UTF-16"), {65535}, {0});
  decode("utf32", Raw("\x00\x00\x00\x61"), from("UTF-32-BE"), {97}, {0});
  decode("utf32_too_large", Raw("\x00\x11\x00\x00"), from("UTF-32-BE"), {65533}, {0});
  decode("ascii", "a\xe9", from("US-ASCII"), {97, 65533}, {0, 1});
  decode("windows", "a\xe9\x81", from("windows-1252"), {97, 233, 129}, {0, 1, 2});
  decode("latin1", "\xe9", from("latin1"), {233}, {0});
  decode("shift_jis",
         "\x83"
         "e",
         from("shift_jis"), {12486}, {0});
  decode("gb2312", "\xd6\xd0", from("gb2312"), {20013}, {0});
  decode("mark_kept",
         "\xef\xbb\xbf"
         "a",
         from("utf8"), {65279, 97}, {0, 3});
  rows->push_back(Row("UnicodeDecodeWithOffsets", "mark_of_each",
                      {Strings({2, 1}, {Raw("\xff\xfe\x61\x00"), Raw("\x00\x61")})},
                      {Longs({0, 1, 2}), Characters({97, 97}), Longs({0, 0})}, from("UTF-16"))
                      .Types({DT_INT64}));
  rows->push_back(Row("UnicodeDecode", "", {Strings({"a\xc3\xb1", "", "\xf0\x9f\x98\x80"})},
                      {Doubles({4}, {0, 2, 2, 3}), Characters({97, 241, 128512})}, from("UTF-8"))
                      .TypeAttr("Tsplits")
                      .Types({DT_INT32, DT_INT64}));
  rows->push_back(Row("UnicodeDecode", "nothing", {Strings({0, 2}, {})},
                      {Doubles({1}, {0}), Characters({})}, from("UTF-8"))
                      .TypeAttr("Tsplits")
                      .Types({DT_INT32, DT_INT64}));
}

void AddEncode(std::vector<OpCase>* rows) {
  const auto encode = [&](const char* label, const char* encoding, const Tensor& characters,
                          const Tensor& splits, std::initializer_list<std::string> out,
                          const char* errors = "replace") {
    rows->push_back(Row("UnicodeEncode", label, {characters, splits}, {Strings(out)},
                        {{"output_encoding", encoding}, {"errors", errors}}));
  };
  const Tensor good = Characters({97, 0x1F600, 233}), splits = Longs({0, 0, 2, 3});
  const Tensor bad = Characters({97, 0xD800, -1, 0x110000}), all = Tensor::Vector<int32_t>({0, 4});
  encode("utf8", "UTF-8", good, splits, {"", "a\xf0\x9f\x98\x80", "\xc3\xa9"});
  encode("utf16", "UTF-16-BE", good, splits,
         {"", Raw("\x00\x61\xd8\x3d\xde\x00"), Raw("\x00\xe9")});
  encode("utf32", "UTF-32-BE", good, splits,
         {"", Raw("\x00\x00\x00\x61\x00\x01\xf6\x00"), Raw("\x00\x00\x00\xe9")});
  encode("bad_utf8", "UTF-8", bad, all, {"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"});
  encode("bad_utf16", "UTF-16-BE", bad, all, {Raw("\x00\x61\xff\xfd\xff\xfd\xff\xfd")});
  encode("bad_utf32", "UTF-32-BE", bad, all,
         {Raw("\x00\x00\x00\x61\x00\x00\xff\xfd\x00\x00\xff\xfd\x00\x00\xff\xfd")});
  encode("bad_ignored", "UTF-8", bad, all, {"a"}, "ignore");
  encode("nothing", "UTF-8", Characters({}), Longs({0}), {});
  const auto transcode = [&](const char* label, const std::string& in, const std::string& out,
                             const Attrs& attrs) {
    Attrs with_input = {{"input_encoding", "UTF-8"}};
    with_input.insert(with_input.end(), attrs.begin(), attrs.end());
    rows->push_back(Row("UnicodeTranscode", label, {Strings({1, 1}, {in})},
                        {Strings({1, 1}, {out})}, with_input));
  };
  const std::string mixed =
      "a\x01\xf0\x9f\x98\x80"
      "b\xf0\x9f\x98";
  transcode("utf16", mixed, Raw("\x00\x61\x00\x01\xd8\x3d\xde\x00\x00\x62\xff\xfd"),
            {{"output_encoding", "UTF-16-BE"}});
  transcode("utf32", "\xc3\xa9", Raw("\x00\x00\x00\xe9"), {{"output_encoding", "UTF-32-BE"}});
  transcode(
      "ignore", mixed,
      "a\xf0\x9f\x98\x80"
      "b",
      {{"output_encoding", "UTF-8"}, {"errors", "ignore"}, {"replace_control_characters", true}});
  transcode("empty", "", "", {{"output_encoding", "UTF-8"}, {"errors", "strict"}});
}

std::vector<OpCase> UnicodeCases() {
  std::vector<OpCase> rows;
  AddDecode(&rows);
  AddEncode(&rows);
  rows.push_back(
      Row("UnicodeScript", "",
          {Characters({97, 0x43b, 0x3b1, 0x5d0, 0x4e2d, 0x1F600, 48, -1, 0x110000, 0xD800, 0x378})},
          {Characters({25, 8, 14, 19, 17, 0, 0, -1, -1, 103, 103})}));
  const Tensor latin = Strings({"aBc\xc3\x84\xc3\xa4", ""});
  rows.push_back(Row("StringLower", "", {latin}, {Strings({"abc\xc3\x84\xc3\xa4", ""})}));
  rows.push_back(Row("StringUpper", "", {latin}, {Strings({"ABC\xc3\x84\xc3\xa4", ""})}));
  // One letter may become two, or more bytes; the final sigma is a separate letter.
  const Tensor words =
      Strings({"aBc\xc3\x84\xc3\xa4\xc3\x9f\xc4\xb0\xc4\xb1 \xce\x91\xce\xa3", "\xc7\x85 \xc7\xb0",
               "a\xff"
               "B"});
  const Attrs utf8 = {{"encoding", "utf-8"}};
  rows.push_back(Row("StringLower", "utf8", {words},
                     {Strings({"abc\xc3\xa4\xc3\xa4\xc3\x9fi\xcc\x87\xc4\xb1 \xce\xb1\xcf\x82",
                               "\xc7\x86 \xc7\xb0",
                               "a\xef\xbf\xbd"
                               "b"})},
                     utf8));
  rows.push_back(
      Row("StringUpper", "utf8", {words},
          {Strings({"ABC\xc3\x84\xc3\x84SS\xc4\xb0I \xce\x91\xce\xa3", "\xc7\x84 J\xcc\x8c",
                    "A\xef\xbf\xbd"
                    "B"})},
          utf8));
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Unicode, OpSweepTest, testing::ValuesIn(UnicodeCases()), OpCaseName);

namespace {

TEST(Unicode, RejectsMalformedInput) {
  const Tensor s = Strings({"a\xe2\x82"}), two = Characters({97, 98});
  const Attrs strict = {{"input_encoding", "UTF-8"}, {"errors", "strict"}};
  const auto encode = [&](const Tensor& values, const Tensor& splits, const char* message,
                          const Attrs& more = {}) {
    Attrs attrs = {{"output_encoding", "UTF-8"}};
    attrs.insert(attrs.end(), more.begin(), more.end());
    return Rejection{"UnicodeEncode", {values, splits}, attrs, message};
  };
  ExpectRejections({
      {"UnicodeDecode", {s}, strict, "Invalid formatting on input string"},
      {"UnicodeTranscode",
       {s},
       {{"input_encoding", "UTF-8"}, {"output_encoding", "UTF-8"}, {"errors", "strict"}},
       "Invalid formatting on input string"},
      {"UnicodeDecode", {s}, {{"input_encoding", "nope"}}, "Could not create converter for input"},
      {"UnicodeDecode",
       {s},
       {{"input_encoding", "UTF-8"}, {"replacement_char", -5}},
       "replacement_char out of unicode codepoint range"},
      encode(two, Longs({1, 2}), "First value in input_splits must be zero."),
      encode(two, Longs({0, 1}), "Last value in input_splits must be equal"),
      encode(two, Longs({0, 2, 1, 2}), "equal or in ascending order."),
      encode(two, Longs({0, 3, 2}), "equal or in ascending order."),
      encode(two, Longs({}), "Input_splits should contain elements"),
      encode(Tensor::Of<int32_t>({1, 1}, {97}), Longs({0, 1}), "should be of rank 1"),
      encode(Characters({0xD800}), Longs({0, 1}), "Code point is out of range",
             {{"errors", "strict"}}),
      {"StringLower", {s}, {{"encoding", "latin1"}}, "only utf-8 or '' (no encoding) is supported"},
  });
}

}  // namespace

}  // namespace weir
