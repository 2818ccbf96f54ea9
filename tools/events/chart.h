#ifndef WEIR_TOOLS_EVENTS_CHART_H_
#define WEIR_TOOLS_EVENTS_CHART_H_

#include <limits>
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

// The points of a line with the least and the greatest finite value; null if no value is finite.
struct Extremes {
  const std::pair<double, double>*least = nullptr, *greatest = nullptr;
};
Extremes ExtremesOf(const ChartLine& line);

// The values along an axis.
struct AxisRange {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void Add(double value);
  bool empty() const { return low > high; }
  // Gives a constant some room.
  void Widen();
  // Maps `low` to 0 and `high` to 1. Not finite if they, or the value, are not.
  double Part(double value) const;
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
