#include "weir/tools/events/chart.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "gtest/gtest.h"

namespace weir::tools {
namespace {

std::string Drawn(const std::vector<ChartLine>& lines, ChartOptions options, bool color = false) {
  std::ostringstream out, err;
  Console console{out, err, color};
  DrawChart(lines, options, console);
  return out.str();
}

TEST(Chart, ADiagonalRunsFromCornerToCorner) {
  EXPECT_EQ(Drawn({{"up", {{0, 0}, {19, 8}}}},
                  {.title = "up", .x_title = "step", .width = 24, .height = 7}),
            " up\n"
            " 8┤              ⢀⣀⠤⠤⠒⠊\n"
            " 4┤       ⢀⣀⠤⠤⠒⠊⠉⠁\n"
            " 0┤⣀⣀⠤⠤⠒⠊⠉⠁\n"
            "  └────────────────────\n"
            "   0      step       19\n"
            " ━ up  min 0 at 0  max 8 at 19  last 8 at 19\n");
}

TEST(Chart, LinesDifferByLetterOrColor) {
  const std::vector<ChartLine> lines = {{"one", {{0, 0}, {1, 0}}}, {"two", {{0, 1}, {1, 1}}}};
  const std::string plain = Drawn(lines, {.width = 30, .height = 8});
  EXPECT_NE(plain.find("bbbb"), std::string::npos) << plain;
  EXPECT_NE(plain.find("aaaa"), std::string::npos) << plain;
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  const std::string colored = Drawn(lines, {.width = 30, .height = 8}, true);
  EXPECT_NE(colored.find("\x1b[38;5;32m"), std::string::npos);
  EXPECT_NE(colored.find("\x1b[38;5;166m"), std::string::npos);
}

TEST(Chart, SkipsPointsThatCannotBeDrawn) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  EXPECT_NE(Drawn({{"none", {}}}, {}).find("(no points to draw)"), std::string::npos);
  EXPECT_NE(Drawn({{"nan", {{0, nan}, {1, inf}}}}, {}).find("(no points to draw)"),
            std::string::npos);
  EXPECT_NE(Drawn({{"log", {{0, -1}}}}, {.log_y = true}).find("(no points to draw)"),
            std::string::npos);
  const double big = std::numeric_limits<double>::max();
  EXPECT_NE(Drawn({{"big", {{0, -big}, {1, big}, {2, nan}}}}, {}).find("┤"), std::string::npos);
  EXPECT_NE(Drawn({{"same", {{5, 3}}}}, {}).find("min 3 at 5  max 3 at 5"), std::string::npos);
}

}  // namespace
}  // namespace weir::tools
