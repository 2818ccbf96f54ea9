#include "weir/ops/text/string.h"
#include "weir/tests/kernels/lib/recorded.h"

// Strings: substrings, joins, patterns, hashes.
namespace weir {

namespace {

using namespace recorded;  // NOLINT: a vocabulary made for these tables

void AddParts(std::vector<OpCase>* rows) {
  const Tensor texts = Strings({2, 2}, {"a\xc3\xb1\xf0\x9f\x98\x80", "", "\xff\x80\x80", "hi "});
  rows->push_back(
      Row("StringLength", "bytes", {texts}, {Tensor::Of<int32_t>({2, 2}, {7, 0, 3, 3})}));
  rows->push_back(Row("StringLength", "characters", {texts},
                      {Tensor::Of<int32_t>({2, 2}, {3, 0, 1, 3})}, {{"unit", "UTF8_CHAR"}}));
  rows->push_back(Row("StringStrip", "",
                      {Strings({" a b\t\n\v\f\r",
                                "\xc2\xa0"
                                "a",
                                "", " "})},
                      {Strings({"a b",
                                "\xc2\xa0"
                                "a",
                                "", ""})}));
  const Tensor hello = Strings({"hello"}), accents = Strings({"he\xc3\xa9\xc3\xa9o"});
  const auto substr = [&](const char* label, const Tensor& in, int32_t pos, int32_t len,
                          const char* out, const char* unit) {
    rows->push_back(Row("Substr", label, {in, Tensor::Scalar(pos), Tensor::Scalar(len)},
                        {Strings({out})}, {{"unit", unit}}));
  };
  substr("inside", hello, 1, 3, "ell", "BYTE");
  substr("from_end", hello, -3, 2, "ll", "BYTE");
  substr("at_end", hello, 5, 3, "", "BYTE");
  substr("negative_length", hello, 2, -1, "llo", "BYTE");
  substr("beyond_end", hello, -2, 10, "lo", "BYTE");
  substr("none", hello, -5, 0, "", "BYTE");
  substr("characters", accents, 1, 3, "e\xc3\xa9\xc3\xa9", "UTF8_CHAR");
  substr("characters_from_end", accents, -3, 2, "\xc3\xa9\xc3\xa9", "UTF8_CHAR");
  substr("characters_negative_length", accents, 2, -1, "", "UTF8_CHAR");
  substr("characters_beyond_end", accents, -2, 10, "\xc3\xa9o", "UTF8_CHAR");
  rows->push_back(
      Row("Substr", "rows",
          {Strings({2, 2}, {"hello", "world", "abcde", "fghij"}), Longs({1, 2}), Longs({2, 3})},
          {Strings({2, 2}, {"el", "rld", "bc", "hij"})}));
  rows->push_back(Row("Substr", "wider_positions",
                      {Tensor::Scalar("hello"), Longs({1, 2}), Longs({2, 3})},
                      {Strings({"el", "llo"})}));
  rows->push_back(Row("Substr", "empty", {Strings({0, 2}, {}), Longs({1, 2}), Longs({2, 3})},
                      {Strings({0, 2}, {})}));
}

void AddSplits(std::vector<OpCase>* rows) {
  const Tensor texts = Strings({"a b  c", "", " d "});
  const auto split = [&](const char* label, const Tensor& in, const char* delimiter, bool skip,
                         const Tensors& out) {
    rows->push_back(
        Row("StringSplit", label, {in, Tensor::Scalar(delimiter)}, out, {{"skip_empty", skip}}));
  };
  split("space", texts, " ", true,
        {Pairs({0, 0, 0, 1, 0, 2, 2, 0}), Strings({"a", "b", "c", "d"}), Longs({3, 3})});
  split("keep_empty", texts, " ", false,
        {Pairs({0, 0, 0, 1, 0, 2, 0, 3, 2, 0, 2, 1, 2, 2}),
         Strings({"a", "b", "", "c", "", "d", ""}), Longs({3, 4})});
  split("several", Strings({"a,b;;c;"}), ",;", false,
        {Pairs({0, 0, 0, 1, 0, 2, 0, 3, 0, 4}), Strings({"a", "b", "", "c", ""}), Longs({1, 5})});
  split("bytes", Strings({"ab", "c"}), "", true,
        {Pairs({0, 0, 0, 1, 1, 0}), Strings({"a", "b", "c"}), Longs({2, 2})});
  split("nothing", Strings({}), " ", true, {Pairs({}), Strings({}), Longs({0, 0})});
  const auto split2 = [&](const char* label, const Tensor& in, const char* sep, int64_t limit,
                          const Tensors& out) {
    rows->push_back(
        Row("StringSplitV2", label, {in, Tensor::Scalar(sep)}, out, {{"maxsplit", limit}}));
  };
  split2("white_space", texts, "", -1,
         {Pairs({0, 0, 0, 1, 0, 2, 2, 0}), Strings({"a", "b", "c", "d"}), Longs({3, 3})});
  split2("space", texts, " ", -1,
         {Pairs({0, 0, 0, 1, 0, 2, 0, 3, 1, 0, 2, 0, 2, 1, 2, 2}),
          Strings({"a", "b", "", "c", "", "", "d", ""}), Longs({3, 4})});
  const Tensor angles = Strings({"a<>b<><>c"});
  split2("text", angles, "<>", -1,
         {Pairs({0, 0, 0, 1, 0, 2, 0, 3}), Strings({"a", "b", "", "c"}), Longs({1, 4})});
  split2("text_once", angles, "<>", 1,
         {Pairs({0, 0, 0, 1}), Strings({"a", "b<><>c"}), Longs({1, 2})});
  split2("white_space_twice", Strings({"a b c d "}), "", 2,
         {Pairs({0, 0, 0, 1, 0, 2}), Strings({"a", "b", "c d "}), Longs({1, 3})});
  split2("white_space_twice_at_end", Strings({"a b"}), "", 2,
         {Pairs({0, 0, 0, 1, 0, 2}), Strings({"a", "b", ""}), Longs({1, 3})});
  split2("never", Strings({" a "}), "", 0, {Pairs({0, 0}), Strings({" a "}), Longs({1, 1})});
}

void AddNGrams(std::vector<OpCase>* rows) {
  const auto grams = [&](const char* label, const Tensor& data, const Tensor& splits,
                         const std::vector<int64_t>& widths, const char* pad, int64_t pad_width,
                         bool keep_short, const Tensors& out) {
    const std::string left = *pad == 0 ? "" : std::string(1, pad[0]),
                      right = *pad == 0 ? "" : std::string(1, pad[1]);
    rows->push_back(Row("StringNGrams", label, {data, splits}, out,
                        {{"separator", "|"},
                         {"ngram_widths", widths},
                         {"left_pad", left},
                         {"right_pad", right},
                         {"pad_width", pad_width},
                         {"preserve_short_sequences", keep_short}}));
  };
  const Tensor five = Strings({"a", "b", "c", "d", "e"}), one = Strings({"a"});
  grams("padded", five, Longs({0, 3, 5}), {2}, "LR", -1, false,
        {Strings({"L|a", "a|b", "b|c", "c|R", "L|d", "d|e", "e|R"}), Longs({0, 4, 7})});
  grams("two_widths", five, Tensor::Vector<int32_t>({0, 3, 5}), {3, 1}, "LR", 0, false,
        {Strings({"a|b|c", "a", "b", "c", "d", "e"}), Tensor::Vector<int32_t>({0, 4, 6})});
  grams("empty_row", five, Longs({0, 4, 4, 5}), {3}, "LR", 1, false,
        {Strings({"L|a|b", "a|b|c", "b|c|d", "c|d|R", "L|e|R"}), Longs({0, 4, 4, 5})});
  grams("short_row", five, Longs({0, 4, 4, 5}), {3}, "", 0, true,
        {Strings({"a|b|c", "b|c|d", "e"}), Longs({0, 2, 2, 3})});
  grams("short_padded", one, Longs({0, 1}), {5}, "LR", 1, true,
        {Strings({"L|a|R"}), Longs({0, 1})});
  grams(
      "wide", one, Longs({0, 1}), {5}, "LR", -1, false,
      {Strings({"L|L|L|L|a", "L|L|L|a|R", "L|L|a|R|R", "L|a|R|R|R", "a|R|R|R|R"}), Longs({0, 5})});
  grams("no_data", Strings({}), Longs({0, 0}), {2}, "LR", -1, false, {Strings({}), Longs({0, 0})});
  grams("no_splits", Strings({}), Longs({}), {1}, "", 0, false, {Strings({}), Longs({})});
}

void AddJoins(std::vector<OpCase>* rows) {
  const Tensor square = Strings({2, 2}, {"a", "b", "c", "d"});
  const auto join = [&](const char* label, const Tensor& in, const Tensor& axes, bool keep,
                        const Tensor& out) {
    rows->push_back(Row("ReduceJoin", label, {in, axes}, {out},
                        {{"keep_dims", keep}, {"separator", keep ? "-" : ""}}));
  };
  const auto axes = [](std::initializer_list<int32_t> list) {
    return Tensor::Vector<int32_t>(list);
  };
  join("columns", square, axes({0}), false, Strings({"ac", "bd"}));
  join("rows", square, axes({-1}), true, Strings({2, 1}, {"a-b", "c-d"}));
  join("all", square, axes({0, 1}), false, Tensor::Scalar("acbd"));
  join("all_other_order", square, axes({1, 0}), false, Tensor::Scalar("abcd"));
  join("none", square, axes({}), false, square);
  join("scalar_axis", square, Tensor::Scalar<int32_t>(0), false, Strings({"ac", "bd"}));
  join("of_nothing", Strings({2, 0}, {}), axes({1}), false, Strings({"", ""}));
  join("nothing", Strings({2, 0}, {}), axes({0}), false, Strings({}));
  rows->push_back(Row("UnsortedSegmentJoin", "rows",
                      {Strings({3, 2}, {"a", "b", "", "d", "e", "f"}), Longs({1, 0, 1}),
                       Tensor::Scalar<int32_t>(3)},
                      {Strings({3, 2}, {"", "d", "a:e", "b:f", "", ""})}, {{"separator", ":"}}));
  rows->push_back(Row("UnsortedSegmentJoin", "elements",
                      {Strings({3, 2}, {"a", "b", "", "d", "e", ""}),
                       Tensor::Of<int32_t>({3, 2}, {1, 0, 0, 0, 1, 0}), Tensor::Scalar<int64_t>(2)},
                      {Strings({"b::d:", "a:e"})}, {{"separator", ":"}}));
  rows->push_back(Row("UnsortedSegmentJoin", "nothing",
                      {Strings({0, 2}, {}), Longs({}), Tensor::Scalar<int32_t>(1)},
                      {Strings({1, 2}, {"", ""})}));
}

void AddPatterns(std::vector<OpCase>* rows) {
  const Tensor in = Strings({"abcab", "", "b"});
  rows->push_back(Row("RegexFullMatch", "", {in, Tensor::Scalar("[abc]+")},
                      {Tensor::Vector<bool>({true, false, true})}));
  rows->push_back(Row("RegexReplace", "once",
                      {in, Tensor::Scalar("(a)(b)"), Tensor::Scalar("\\2\\1")},
                      {Strings({"bacab", "", "b"})}, {{"replace_global", false}}));
  rows->push_back(Row("RegexReplace", "no_such_group",
                      {in, Tensor::Scalar("a"), Tensor::Scalar("\\1x")}, {in}));
  rows->push_back(Row("StaticRegexReplace", "", {in}, {Strings({"[ab]c[ab]", "", "b"})},
                      {{"pattern", "ab"}, {"rewrite", "[\\0]"}}));
}

// Twenty strings of all the lengths that the hash functions distinguish.
Tensor Hashed() {
  std::vector<std::string> strings;
  for (const int n :
       {0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 31, 32, 33, 64, 65, 127, 128, 129, 200, 1000}) {
    std::string each;
    for (int i = 0; i < n; ++i) each.push_back(static_cast<char>((i * 7 + 3) % 251));
    strings.push_back(each);
  }
  return Tensor::Vector<std::string>(absl::MakeConstSpan(strings));
}

void AddHashes(std::vector<OpCase>* rows) {
  constexpr uint64_t kFarm[] = {
      11160318154034397263u, 13745158429558087051u, 1655114877597445365u,  4662423180930907492u,
      17566270577251613586u, 5759834791111993764u,  907454142650066470u,   16509338067675758591u,
      9140634717936656744u,  14506534093795057959u, 13644964512845808587u, 11907377154618496232u,
      14001582926318596329u, 13553471402377765257u, 1211280069609972654u,  10583811621160810774u,
      14985605507026599427u, 2251973765653130762u,  16186836956213607745u, 94813854267120103u};
  std::vector<int64_t> fast;
  std::vector<uint8_t> bytes;
  for (const uint64_t h : kFarm) {
    fast.push_back(static_cast<int64_t>(h % (uint64_t{1} << 62)));
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<uint8_t>(h >> (8 * i)));
  }
  const Attrs buckets = {{"num_buckets", int64_t{1} << 62}};
  rows->push_back(Row("StringToHashBucketFast", "", {Hashed()},
                      {Tensor::Vector<int64_t>(absl::MakeConstSpan(fast))}, buckets));
  rows->push_back(Row(
      "StringToHashBucket", "", {Hashed()},
      {Longs({105434511174508091,  2390083232481883231, 791948408015468714,  664798910978920875,
              1187556667134885745, 1142397842043859390, 384654127350334882,  4354291440890684152,
              518267028919322712,  2425880782976345813, 2139119004151307922, 1458650421252541103,
              2574933530128875931, 3627370486952346753, 373995253809968246,  4179014823903470625,
              1596353955865861877, 881495265315218849,  2226121744997150737, 4177156777162620116})},
      buckets));
  rows->push_back(Row(
      "StringToHashBucketStrong", "", {Hashed()},
      {Longs({2485238625977559268, 727912685080587747,  2362471203173856930, 544220484734611640,
              2053019061987873129, 239963209637428246,  1119848231688133461, 3867136497142502601,
              1870902853501191038, 178443462591300363,  2167070173281553816, 1948901341247660584,
              1044320698162782199, 1210750576472689340, 3866611877713462038, 4114542000345384862,
              3894227888568048587, 4103735903580736716, 847450397191743858,  1646855076256986318})},
      {{"num_buckets", int64_t{1} << 62}, {"key", std::vector<int64_t>{123456789, -5}}}));
  const auto fingerprint = [&](const char* label, const Tensor& in, const Tensor& out) {
    rows->push_back(Row("Fingerprint", label, {in, Tensor::Scalar("farmhash64")}, {out}));
  };
  fingerprint("strings", Hashed(), Tensor::Of<uint8_t>({20, 8}, absl::MakeConstSpan(bytes)));
  fingerprint("rows_of_strings", Strings({2, 2}, {"a", "b", "c", "d"}),
              Tensor::Of<uint8_t>({2, 8}, {122, 64, 59, 169, 136, 60, 55, 83,  //
                                           52, 252, 224, 38, 64, 226, 155, 60}));
  fingerprint("floats", Tensor::Of<float>({2, 2}, {1, 2, 3, 4}),
              Tensor::Of<uint8_t>({2, 8}, {223, 178, 164, 36, 10, 49, 237, 154,  //
                                           174, 215, 15, 51, 84, 145, 74, 9}));
  fingerprint("bools", Tensor::Vector<bool>({true, false}),
              Tensor::Of<uint8_t>({2, 8}, {62, 88, 126, 177, 19, 76, 162, 71,  //
                                           84, 75, 233, 245, 237, 86, 96, 190}));
  fingerprint("nothing", Tensor(DT_FLOAT, {0, 3}), Tensor(DT_UINT8, {0, 8}));
}

std::vector<OpCase> StringCases() {
  std::vector<OpCase> rows;
  for (void (*add)(std::vector<OpCase>*) :
       {AddParts, AddSplits, AddNGrams, AddJoins, AddPatterns, AddHashes}) {
    add(&rows);
  }
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Strings, OpSweepTest, testing::ValuesIn(StringCases()), OpCaseName);

namespace {

Attrs NGramAttrs(int64_t width, int64_t pad, bool keep_short) {
  return {{"separator", ""},
          {"ngram_widths", width == 0 ? std::vector<int64_t>() : std::vector<int64_t>{width}},
          {"left_pad", ""},
          {"right_pad", ""},
          {"pad_width", pad},
          {"preserve_short_sequences", keep_short}};
}

TEST(Strings, BuildersNameNodesAsPythonDoes) {
  Graph g;
  const Output s = Placeholder(g, DT_STRING, {-1}, "s"), m = Placeholder(g, DT_STRING, {2, 3}, "m");
  const Output ids = Placeholder(g, DT_INT32, {-1}, "i");
  EXPECT_EQ(ReduceJoin(m, 0).shape(), Shape({3}));
  EXPECT_EQ(ReduceJoin(m, {0, 1}, true, {}, "rj").shape(), Shape({1, 1}));
  Substr(s, 1, 2);
  EXPECT_EQ(StringSplit(s).indices.shape(), Shape({-1, 2}));
  StringSplitV2(s, ",", 1, "spl");
  RegexReplace(s, "a", "b");
  EXPECT_EQ(UnsortedSegmentJoin(s, ids, 3).shape(), Shape({3}));
  StringToHashBucketStrong(s, 10, {1, 2});
  ASSERT_TRUE(g.status().ok()) << g.status();
  std::vector<std::string> names;
  for (const auto& node : g.nodes()) {
    if (node->op_name() != "Placeholder") names.push_back(node->name());
  }
  const std::vector<std::string> python = {
      "ReduceJoin/ReduceJoin/reduction_indices",
      "ReduceJoin/ReduceJoin",
      "ReduceJoin_1/rj/reduction_indices",
      "ReduceJoin_1/rj",
      "Substr/pos",
      "Substr/len",
      "Substr",
      "StringSplit/Const",
      "StringSplit/StringSplit",
      "spl/Const",
      "spl/StringSplitV2",
      "StaticRegexReplace",
      "UnsortedSegmentJoin/num_segments",
      "UnsortedSegmentJoin",
      "StringToHashBucketStrong",
  };
  EXPECT_EQ(names, python);
}

TEST(Strings, RejectsInvalidArguments) {
  const Tensor s = Strings({"hello"}), one = Tensor::Scalar<int32_t>(1),
               matrix = Strings({1, 1}, {"a"});
  const auto i32 = [](int32_t v) { return Tensor::Scalar(v); };
  const auto axes = [](std::initializer_list<int32_t> v) { return Tensor::Vector<int32_t>(v); };
  const Tensor square = Strings({2, 2}, {"a", "b", "c", "d"});
  ExpectRejections({
      {"Substr", {s, i32(6), one}, {}, "pos 6 out of range for string b'hello'"},
      {"Substr", {s, i32(-6), one}, {{"unit", "UTF8_CHAR"}}, "pos -6 out of range"},
      {"Substr", {s, i32(INT32_MIN), i32(-1)}, {{"unit", "UTF8_CHAR"}}, "out of range"},
      {"Substr", {s, axes({1, 2}), axes({2})}, {}, "pos and len should have the same shape"},
      {"Substr",
       {Strings({"a", "b"}), axes({1, 2, 3}), axes({1, 2, 3})},
       {},
       "Incompatible shapes"},
      {"StringSplit", {matrix, Tensor::Scalar(" ")}, {}, "input must be a vector"},
      {"StringSplitV2", {s, Strings({" "})}, {}, "sep must be a scalar"},
      {"StringNGrams", {s, Longs({1, 1})}, NGramAttrs(1, 0, false), "First split value must be 0"},
      {"StringNGrams", {s, Longs({0, 2})}, NGramAttrs(1, 0, false), "Invalid split value 2"},
      {"StringNGrams",
       {s, Longs({0, 0})},
       NGramAttrs(1, 0, false),
       "Last split value must be data"},
      {"StringNGrams",
       {s, Longs({0, 1})},
       NGramAttrs(-1, 0, false),
       "must contain positive values"},
      {"StringNGrams", {s, Longs({0, 1})}, NGramAttrs(0, -1, true), "Pad width should be >= 0"},
      {"StringNGrams", {s, Longs({0, 1})}, NGramAttrs(0, 1 << 30, true), "Pad width is too large"},
      {"StringNGrams", {s, Longs({0, 1})}, NGramAttrs(1 << 30, -1, false), "integer overflow"},
      {"ReduceJoin",
       {square, axes({2})},
       {},
       "Invalid reduction dimension 2",
       0,
       absl::StatusCode::kOutOfRange},
      {"ReduceJoin", {square, axes({0, -2})}, {}, "Duplicate reduction dimension -2"},
      {"UnsortedSegmentJoin", {s, Longs({1}), one}, {}, "not allowed to exceed num_segments"},
      {"UnsortedSegmentJoin", {s, Longs({-1}), one}, {}, "not allowed to exceed num_segments"},
      {"UnsortedSegmentJoin", {s, Longs({0}), i32(-1)}, {}, "must be non-negative but got -1"},
      {"UnsortedSegmentJoin", {s, Tensor::Scalar<int64_t>(0), one}, {}, "cannot have rank 0"},
      {"UnsortedSegmentJoin", {s, Longs({0, 0}), one}, {}, "must start with"},
      {"RegexFullMatch", {s, Tensor::Scalar("(")}, {}, "Invalid pattern: ("},
      {"RegexReplace", {s, Strings({"a", "b"}), Tensor::Scalar("")}, {}, "Pattern"},
      {"StaticRegexReplace", {s}, {{"pattern", "("}, {"rewrite", ""}}, "Invalid pattern: ("},
      {"StringToHashBucketStrong",
       {s},
       {{"num_buckets", 2}, {"key", std::vector<int64_t>{1}}},
       "Key must have 2 elements"},
      {"Fingerprint", {s, Tensor::Scalar("md5")}, {}, "Unsupported fingerprint method: md5"},
      {"Fingerprint",
       {Tensor::Scalar("a"), Tensor::Scalar("farmhash64")},
       {},
       "at least one dimension"},
  });
}

}  // namespace

}  // namespace weir
