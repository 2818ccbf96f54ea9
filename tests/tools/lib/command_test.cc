#include "weir/tools/lib/command.h"

#include <sstream>

#include "gmock/gmock.h"
#include "weir/tools/lib/completion.h"
#include "weir/tools/lib/manual.h"

namespace weir::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Result {
  int status = 0;
  std::string out, err;
};

// Runs a program with two commands, of which one has a subcommand.
Result RunProgram(const std::vector<std::string>& args, bool color = false, int width = 80) {
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
  const Result result = RunProgram({"file", "show", "x", "--knd", "long"});
  EXPECT_EQ(result.status, kUsage);
  EXPECT_EQ(result.err, "weir: unknown option '--knd'; did you mean '--kind'?\n");
  EXPECT_THAT(RunProgram({"file", "show", "--kinds=long"}).err,
              HasSubstr("did you mean '--kind'?"));
  EXPECT_THAT(RunProgram({"file", "show", "--colr"}).err, HasSubstr("did you mean '--color'?"));
  EXPECT_EQ(RunProgram({"file", "show", "x", "--zzzzzzzz"}).err,
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
    const Result result = RunProgram(args);
    EXPECT_EQ(result.status, kUsage) << testing::PrintToString(args);
    EXPECT_EQ(result.err, "weir: unknown command 'lst'; did you mean 'list'?\n");
    EXPECT_EQ(result.out, "");
  }
  EXPECT_THAT(RunProgram({"file", "--help", "shw"}).err, HasSubstr("did you mean 'show'?"));
  EXPECT_EQ(RunProgram({"file", "--help"}).status, kOk);
}

TEST(Command, ColorAndWidthAreOptionsOfEveryCommand) {
  EXPECT_EQ(RunProgram({"file", "show", "x"}).out, "shown narrow\n");
  EXPECT_EQ(RunProgram({"--wide", "file", "show", "x"}).out, "shown wide\n");
  EXPECT_EQ(RunProgram({"file", "show", "x", "--wide", "--color=always"}).out,
            "\x1b[1mshown\x1b[0m wide\n");
  EXPECT_EQ(RunProgram({"file", "show", "x", "--color", "never"}, true).out, "shown narrow\n");
  EXPECT_EQ(RunProgram({"file", "show", "x", "--color", "auto"}, true).out,
            "\x1b[1mshown\x1b[0m narrow\n");
  EXPECT_EQ(RunProgram({"file", "show", "x", "--color", "sometimes"}).status, kUsage);
}

TEST(Command, HelpFitsTheWidth) {
  for (const int width : {60, 80, 120}) {
    std::istringstream lines(RunProgram({"help"}, false, width).out);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(static_cast<int>(line.size()), std::min(width, 100)) << line;
  }
}

std::vector<std::string> Completed(const std::vector<std::string>& words) {
  std::vector<std::string> args = {"__complete"};
  args.insert(args.end(), words.begin(), words.end());
  std::istringstream lines(RunProgram(args).out);
  std::vector<std::string> out;
  for (std::string line; std::getline(lines, line);) out.push_back(line.substr(0, line.find('\t')));
  return out;
}

TEST(Completion, OffersCommandsOptionsValuesAndFiles) {
  EXPECT_THAT(Completed({""}), ElementsAre("none", "file", "list", "help", "completion"));
  EXPECT_THAT(Completed({"file", "s"}), ElementsAre("none", "show"));
  EXPECT_THAT(Completed({"file", "show", ""}), ElementsAre("files"));
  EXPECT_THAT(Completed({"file", "show", "x", ""}), ElementsAre("none"));
  EXPECT_THAT(Completed({"file", "show", "--k"}), ElementsAre("none", "--kind"));
  EXPECT_THAT(Completed({"file", "show", "--kind", ""}), ElementsAre("none", "short", "long"));
  EXPECT_THAT(Completed({"file", "show", "--kind=l"}), ElementsAre("none", "--kind=long"));
  // As bash splits it.
  EXPECT_THAT(Completed({"file", "show", "--kind", "=", "l"}), ElementsAre("none", "long"));
  EXPECT_THAT(Completed({"help", "file", ""}), ElementsAre("none", "show"));
  EXPECT_THAT(Completed({"completion", "f"}), ElementsAre("none", "fish"));
  EXPECT_THAT(Completed({"nonsense", ""}), Not(testing::IsEmpty()));
}

TEST(Completion, OptionsThatAreGivenAreNotOfferedAgainUnlessTheyRepeat) {
  EXPECT_THAT(Completed({"file", "show", "--kind", "long", "--k"}), ElementsAre("none"));
  EXPECT_THAT(Completed({"file", "show", "--feed", "a=1", "--f"}), ElementsAre("none", "--feed"));
}

TEST(Manual, DescribesEveryCommandAndEscapesRoff) {
  CommandInfo root = {.name = "prog", .description = "Does things."};
  root.commands.push_back({.name = "prog show",
                           .description = ".starts with a period",
                           .example = "Example:\n  prog show 'a\\1'\nNotes."});
  root.commands[0].options.push_back({.names = {"-o", "--out"}, .word = "FILE", .help = "where"});
  const std::string page = ManualPage(root, "prog 1.0");
  EXPECT_THAT(page, HasSubstr(".TH PROG 1 \"\" \"prog 1.0\""));
  EXPECT_THAT(page, HasSubstr("\n\\&.starts with a period"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-o\\fR, \\fB\\-\\-out\\fR \\fIFILE\\fR\nwhere\n"));
  EXPECT_THAT(page, HasSubstr(".nf\nprog show 'a\\e1'\n.fi\n.PP\nNotes.\n"));
}

}  // namespace
}  // namespace weir::tools
