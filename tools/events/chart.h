#ifndef WEIR_TOOLS_EVENTS_CHART_H_
#define WEIR_TOOLS_EVENTS_CHART_H_

#include <string>
#include <utility>
#include <vector>

#include "weir/tools/lib/cli.h"

namespace weir::tools {

// A line of a chart: points in drawing order. Points that are not finite leave a gap.
struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;
  int color = 0;  // on a page, where a run has the same color in all charts
};

struct ChartOptions {
  std::string title, x_title;
  int width = 80, height = 16;  // in characters, axes included
  bool log_y = false;           // points that are not positive leave a gap
};

// Draws lines with Braille dots (eight per character) between axes, and a legend below: the
// minimum, maximum and last value of each line. Several lines differ by color; without color, or in
// ASCII, each line is drawn with a different letter.
void DrawChart(const std::vector<ChartLine>& lines, const ChartOptions& options, Console& console);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_EVENTS_CHART_H_
