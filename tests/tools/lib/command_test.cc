#include "weir/tools/lib/command.h"

#include <sstream>

#include "gmock/gmock.h"

namespace weir::tools {
namespace {

using testing::HasSubstr;

struct Result {
  int status = 0;
  std::string out, err;
};

// Runs a program with two commands, of which one has a subcommand.
Result Run(const std::vector<std::string>& args, bool color = false, int width = 80) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err, .color = color, .width = width, .fits = true};
  std::string file, kind = "short";
  std::vector<std::string> feeds;
  CommandLine line("prog", "Does things.", "prog 1.0, more", "Example:\n  prog file show x");
  Command root = line.root(), files = root.Add("file", "Work on files", "  prog file show x");
  Command show = files.Add("show", "Show a file", "  prog file show x --kind long");
  show.Argument("FILE", &file, "the file").Required();
  show.Value("--kind", &kind, "how").Word("KIND").Choices({"short", "long"});
  show.Repeated("--feed", &feeds, "a value").Word("NAME=VALUE");
  show.Do([](Console& to) {
    to.out << to.Paint(Style::kBold, "shown") << (to.fits ? " narrow" : " wide") << "\n";
    return kOk;
  });
  root.Add("list", "List", "  prog list").Do([](Console&) { return kOk; });
  const int status = line.Run(args, console);
  return {status, out.str(), err.str()};
}

TEST(Command, MisspelledOptionsAreComparedWithTheKnown) {
  const Result result = Run({"file", "show", "x", "--knd", "long"});
  EXPECT_EQ(result.status, kUsage);
  EXPECT_EQ(result.err, "weir: unknown option '--knd'; did you mean '--kind'?\n");
  EXPECT_THAT(Run({"file", "show", "--kinds=long"}).err, HasSubstr("did you mean '--kind'?"));
  EXPECT_THAT(Run({"file", "show", "--colour"}).err, HasSubstr("did you mean '--color'?"));
  EXPECT_EQ(Run({"file", "show", "x", "--zzzzzzzz"}).err,
            "weir: unknown option '--zzzzzzzz'; run 'prog file show --help' for the list\n");
}

TEST(Command, AnUnknownCommandIsNeverASuccess) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"lst"},
                                             {"lst", "--help"},
                                             {"--help", "lst"},
                                             {"--version", "lst"},
                                             {"help", "lst"},
                                             {"--color", "never", "lst"},
                                             {"--wide", "lst", "--help"}}) {
    const Result result = Run(args);
    EXPECT_EQ(result.status, kUsage) << testing::PrintToString(args);
    EXPECT_EQ(result.err, "weir: unknown command 'lst'; did you mean 'list'?\n");
    EXPECT_EQ(result.out, "");
  }
  EXPECT_THAT(Run({"file", "--help", "shw"}).err, HasSubstr("did you mean 'show'?"));
  EXPECT_EQ(Run({"file", "--help"}).status, kOk);
}

TEST(Command, ColorAndWidthAreOptionsOfEveryCommand) {
  EXPECT_EQ(Run({"file", "show", "x"}).out, "shown narrow\n");
  EXPECT_EQ(Run({"--wide", "file", "show", "x"}).out, "shown wide\n");
  EXPECT_EQ(Run({"file", "show", "x", "--wide", "--color=always"}).out,
            "\x1b[1mshown\x1b[0m wide\n");
  EXPECT_EQ(Run({"file", "show", "x", "--color", "never"}, true).out, "shown narrow\n");
  EXPECT_EQ(Run({"file", "show", "x", "--color", "auto"}, true).out,
            "\x1b[1mshown\x1b[0m narrow\n");
  EXPECT_EQ(Run({"file", "show", "x", "--color", "sometimes"}).status, kUsage);
}

TEST(Command, HelpFitsTheWidth) {
  for (const int width : {60, 80, 120}) {
    std::istringstream lines(Run({"help"}, false, width).out);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(static_cast<int>(line.size()), std::min(width, 100)) << line;
  }
}

}  // namespace
}  // namespace weir::tools
