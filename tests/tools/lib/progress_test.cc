#include "weir/tools/lib/progress.h"

#include <fstream>
#include <sstream>
#include <vector>

#include "gmock/gmock.h"
#include "weir/tools/lib/text_width.h"

namespace weir::tools {
namespace {

using testing::HasSubstr;

TEST(Progress, ShowsWhatIsDoneAndTheTimeLeft) {
  const ProgressState state = {
      .what = "Running", .unit = "steps", .done = 250, .total = 1000, .seconds = 50};
  EXPECT_EQ(FormatProgress(state, 80, true),
            "Running  █████░░░░░░░░░░░░░░░  25%  250 of 1,000 steps, 2 min 30 s left");
  EXPECT_EQ(FormatProgress(state, 80, false),
            "Running  #####...............  25%  250 of 1,000 steps, 2 min 30 s left");
}

TEST(Progress, CountsBytes) {
  const ProgressState state = {
      .what = "Verifying model", .done = 1.5e9, .total = 2e9, .seconds = 3};
  EXPECT_THAT(FormatProgress(state, 80, true), HasSubstr("75%  1.5 GB of 2 GB, 1 s left"));
}

TEST(Progress, WithoutATotalShowsTheTime) {
  EXPECT_EQ(FormatProgress({.what = "Reading", .done = 2e6, .seconds = 5}, 80, true),
            "Reading  2 MB, 5 s");
}

TEST(Progress, MoreThanExpectedIsNotMoreThanAll) {
  const ProgressState state = {
      .what = "Writing", .unit = "steps", .done = 12, .total = 10, .seconds = 1};
  EXPECT_THAT(FormatProgress(state, 80, true), HasSubstr(" 99%  12 of 12 steps"));
}

TEST(Progress, FitsTheTerminal) {
  const ProgressState state = {
      .what = "Verifying " + std::string(100, 'x'), .done = 1, .total = 2, .seconds = 1};
  for (const size_t width : {20, 40, 80, 120})
    EXPECT_LT(TextWidth(FormatProgress(state, width, true)), width);
}

TEST(Progress, IsShownAfterASecondOnATerminalOnly) {
  for (const bool live : {false, true}) {
    std::ostringstream out, err;
    Console console{.out = out, .err = err, .live = live};
    {
      ProgressBar progress(console, "Running", "steps", 4);
      progress.Add(2);
      EXPECT_EQ(err.str(), "");
      std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    }
    EXPECT_EQ(out.str(), "");
    if (!live) {
      EXPECT_EQ(err.str(), "");
      continue;
    }
    EXPECT_THAT(err.str(), HasSubstr("2 of 4 steps"));
    EXPECT_THAT(err.str(), testing::EndsWith("\r\x1b[K"));  // the line is removed
  }
}

TEST(Progress, CountsTheBytesOfFiles) {
  const FileTraffic before = ReadFileTraffic();
  if (before.read == 0) GTEST_SKIP() << "the system does not count the bytes of files";
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::vector<char> bytes(100'000);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  EXPECT_GE(ReadFileTraffic().read - before.read, 100'000);
}

}  // namespace
}  // namespace weir::tools
