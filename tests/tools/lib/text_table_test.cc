#include "weir/tools/lib/text_table.h"

#include <sstream>

#include "gmock/gmock.h"
#include "weir/tools/lib/text_width.h"

namespace weir::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Printed(const TextTable& table, int width, bool unicode = true) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err, .width = width, .fits = width > 0, .unicode = unicode};
  table.Print(console);
  return out.str();
}

void ExpectFits(const std::string& text, size_t width) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(TextWidth(line), width) << line;
}

TEST(TextTable, AlignsByColumnsOfTheTerminal) {
  TextTable table({"name", ">n"});
  table.Row({"重み", "1"});
  table.Row({"bias", "23"});
  EXPECT_EQ(Printed(table, 0), "name   n\n重み   1\nbias  23\n");
  EXPECT_EQ(Printed(table, 0, false), "name           n\n\\u91cd\\u307f   1\nbias          23\n");
}

TEST(TextTable, ATableThatFitsIsNotChanged) {
  TextTable table({"name", "?>n"});
  table.Row({"weights", "12"});
  EXPECT_EQ(Printed(table, 20), Printed(table, 0));
}

TEST(TextTable, TextContinuesOnTheNextLineBeforeNamesAreShortened) {
  TextTable table({"name", "what it does"});
  table.Row({"a_name_of_25_characters__", "one two three four five six seven eight nine ten"});
  EXPECT_EQ(Printed(table, 60),
            "name                       what it does\n"
            "a_name_of_25_characters__  one two three four five six seven\n"
            "                           eight nine ten\n");
}

TEST(TextTable, NamesAreShortenedAndOptionalColumnsLeftOut) {
  TextTable table({"name", "?dtype", "?>bytes"});
  table.Row({"encoder/layer_0/attention/kernel", "bfloat16", "1,234,567"});
  EXPECT_EQ(Printed(table, 42),
            "name                              dtype\n"
            "encoder/layer_0/attention/kernel  bfloat16\n"
            "(without bytes to fit 42 columns; --wide\n"
            "prints all)\n");
  EXPECT_EQ(Printed(table, 30),
            "name                  dtype\n"
            "encoder/l…ion/kernel  bfloat16\n"
            "(shortened, without bytes to\n"
            "fit 30 columns; --wide prints\n"
            "all)\n");
}

TEST(TextTable, NoLineIsWiderThanTheTerminal) {
  TextTable table({"tensor", "dtype", "?why", ">bytes", "?>runs"});
  table.Row({"encoder/layer_0/attention/kernel/Adam_1", "bfloat16", "the value of a variable",
             "1,234,567", "12"});
  table.Row({"エンコーダ/重み/とても長い名前の変数です", "float", "", "1", "3"});
  for (const int width : {40, 50, 60, 80, 100}) ExpectFits(Printed(table, width), width);
  EXPECT_THAT(Printed(table, 40), HasSubstr("--wide"));
  EXPECT_THAT(Printed(table, 40), HasSubstr("without"));
  EXPECT_THAT(Printed(table, 0), Not(HasSubstr("--wide")));
}

}  // namespace
}  // namespace weir::tools
