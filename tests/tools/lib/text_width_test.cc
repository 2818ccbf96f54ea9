#include "weir/tools/lib/text_width.h"

#include "gmock/gmock.h"

namespace weir::tools {
namespace {

using testing::ElementsAre;

TEST(TextWidth, CountsColumnsOfATerminal) {
  EXPECT_EQ(TextWidth("abc"), 3u);
  EXPECT_EQ(TextWidth("é"), 1u);
  EXPECT_EQ(TextWidth("e\u0301"), 1u);  // a combining accent
  EXPECT_EQ(TextWidth("重み"), 4u);
  EXPECT_EQ(TextWidth("🙂"), 2u);
  EXPECT_EQ(TextWidth("a\u200bb"), 2u);  // a space without width
}

TEST(TextWidth, PrintableTextCannotControlTheTerminal) {
  EXPECT_EQ(Printable("a\x1b[2Jb\n", true), "a\\x1b[2Jb\\x0a");
  EXPECT_EQ(Printable("\u009b", true), "\\u009b");  // the control sequence introducer
  EXPECT_EQ(Printable("\xff\xc3", true), "\\xff\\xc3");
  EXPECT_EQ(Printable("重み", true), "重み");
  EXPECT_EQ(Printable("é🙂", false), "\\u00e9\\U0001f642");
}

TEST(TextWidth, ShortensInTheMiddle) {
  EXPECT_EQ(Shorten("kernel", 6, true), "kernel");
  EXPECT_EQ(Shorten("layer/kernel", 7, true), "lay…nel");
  EXPECT_EQ(Shorten("layer/kernel", 7, false), "la...el");
  // A wide character that does not fit is left out whole.
  EXPECT_EQ(Shorten("重み重み重み", 6, true), "重…み");
  EXPECT_EQ(TextWidth(Shorten("重み重み重み", 6, true)), 5u);
  EXPECT_EQ(Shorten("abc", 1, true), "a");
}

TEST(TextWidth, ABeginningHasWholeCharacters) {
  EXPECT_EQ(Beginning("重み", 4), "重み");
  EXPECT_EQ(Beginning("重み", 3), "重");
  EXPECT_EQ(Beginning("e\u0301a", 1), "e\u0301");
}

TEST(TextWidth, WrapsAtSpaces) {
  EXPECT_THAT(WrapText("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(WrapText("incomprehensible", 5), ElementsAre("incomprehensible"));
  EXPECT_THAT(WrapText("", 5), ElementsAre(""));
  EXPECT_THAT(WrapText("a\nb c", 5), ElementsAre("a", "b c"));
}

}  // namespace
}  // namespace weir::tools
