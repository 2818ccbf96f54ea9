#include "weir/tools/events/chart.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "weir/tools/lib/text_width.h"

namespace weir::tools {

namespace {

using Point = std::pair<double, double>;

// Of the 256 colors, those that have contrast on dark and light backgrounds.
constexpr const char* kLineColors[] = {"38;5;32", "38;5;166", "38;5;133",
                                       "38;5;29", "38;5;167", "38;5;100"};

std::string Number(double value) { return absl::StrFormat("%.4g", value); }

std::string Utf8(uint32_t code) {  // three bytes
  return {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

// A grid of dots, two columns and four rows per character. Each character has the color of the last
// line that set a dot in it.
class Canvas {
 public:
  Canvas(int columns, int rows) : columns_(columns), rows_(rows), cells_(columns * rows) {}
  int dots_across() const { return columns_ * 2; }
  int dots_down() const { return rows_ * 4; }

  void Set(int x, int y, int line) {
    if (x < 0 || y < 0 || x >= dots_across() || y >= dots_down()) return;
    static constexpr uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    Cell& cell = cells_[y / 4 * columns_ + x / 2];
    cell.dots |= kBits[y % 4][x % 2];
    cell.line = line;
  }

  // Sets every dot between two points, stepping along the steeper axis.
  void Join(int x0, int y0, int x1, int y1, int line) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i) {
      Set(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps, line);
    }
  }

  // Draws Braille dots, or `letter` and those after it, one for each line.
  std::string Row(int row, bool color, char letter) const {
    std::string out;
    for (int i = 0; i < columns_; ++i) {
      const Cell& cell = cells_[row * columns_ + i];
      if (cell.dots == 0) {
        out += ' ';
        continue;
      }
      std::string mark = Utf8(0x2800 + cell.dots);
      if (letter != 0) mark = static_cast<char>(letter + cell.line % 26);
      if (color) mark = absl::StrCat("\x1b[", kLineColors[cell.line % 6], "m", mark, "\x1b[0m");
      out += mark;
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
  }

 private:
  struct Cell {
    uint8_t dots = 0;
    int line = 0;
  };
  int columns_, rows_;
  std::vector<Cell> cells_;
};

// Maps the range to 0 ... `steps`.
int Place(const AxisRange& range, double value, int steps) {
  const double part = range.Part(value);
  return std::isfinite(part) ? static_cast<int>(std::lround(part * steps)) : 0;
}

class Chart {
 public:
  Chart(const std::vector<ChartLine>& lines, const ChartOptions& options) : options_(options) {
    for (const ChartLine& line : lines) {
      std::vector<Point> points;
      for (const auto& [x, y] : line.points) {
        const double drawn = options.log_y ? std::log10(y) : y;
        points.emplace_back(x, drawn);
        if (!Drawable(points.back())) continue;
        x_.Add(x);
        y_.Add(drawn);
      }
      drawn_.push_back(std::move(points));
    }
  }

  bool empty() const { return x_.empty(); }

  void Draw(Console& console) {
    x_.Widen();
    y_.Widen();
    const int rows = std::max(options_.height - 4, 3);
    std::vector<std::string> labels(rows);
    labels[0] = Label(y_.high);
    labels[rows / 2] = Label(y_.high + (y_.low - y_.high) * (rows / 2) / (rows - 1));
    labels[rows - 1] = Label(y_.low);
    size_t label_width = 0;
    for (const std::string& label : labels) label_width = std::max(label_width, label.size());
    const int columns = std::max(options_.width - static_cast<int>(label_width) - 3, 10);

    const Canvas canvas = Rasterize(columns, rows);
    const bool many = drawn_.size() > 1;
    char letter = 0;
    if (many && (!console.color || !console.unicode)) letter = 'a';
    if (!many && !console.unicode) letter = '*';
    const char* const tick = console.unicode ? "┤" : "+";
    const char* const side = console.unicode ? "│" : "|";
    for (int row = 0; row < rows; ++row) {
      console.out << " " << std::string(label_width - labels[row].size(), ' ')
                  << console.Paint(Style::kDim, labels[row] + (labels[row].empty() ? side : tick))
                  << canvas.Row(row, console.color, letter) << "\n";
    }
    DrawXAxis(label_width, columns, console);
  }

 private:
  static bool Drawable(const Point& p) { return std::isfinite(p.first) && std::isfinite(p.second); }
  std::string Label(double y) const { return Number(options_.log_y ? std::pow(10, y) : y); }

  Canvas Rasterize(int columns, int rows) const {
    Canvas canvas(columns, rows);
    for (size_t i = 0; i < drawn_.size(); ++i) {
      const Point* last = nullptr;
      for (const Point& p : drawn_[i]) {
        const Point* from = last != nullptr ? last : &p;
        last = Drawable(p) ? &p : nullptr;
        if (last == nullptr) continue;
        const auto x = [&](const Point* q) {
          return Place(x_, q->first, canvas.dots_across() - 1);
        };
        const auto y = [&](const Point* q) {
          return canvas.dots_down() - 1 - Place(y_, q->second, canvas.dots_down() - 1);
        };
        canvas.Join(x(from), y(from), x(last), y(last), static_cast<int>(i));
      }
    }
    return canvas;
  }

  void DrawXAxis(size_t label_width, int columns, Console& console) const {
    std::string axis = console.unicode ? "└" : "+";
    for (int i = 0; i < columns; ++i) axis += console.unicode ? "─" : "-";
    const std::string left = Number(x_.low), right = Number(x_.high);
    const int middle = columns - static_cast<int>(left.size() + right.size());
    std::string title = options_.x_title;
    if (static_cast<int>(title.size()) + 2 > middle) title.clear();
    const int before = std::max((middle - static_cast<int>(title.size())) / 2, 1);
    const int after = std::max(middle - before - static_cast<int>(title.size()), 1);
    const std::string indent(label_width + 1, ' ');
    console.out << indent << console.Paint(Style::kDim, axis) << "\n"
                << indent << " "
                << console.Paint(Style::kDim, absl::StrCat(left, std::string(before, ' '), title,
                                                           std::string(after, ' '), right))
                << "\n";
  }

  const ChartOptions& options_;
  std::vector<std::vector<Point>> drawn_;  // y as drawn, possibly its logarithm
  AxisRange x_, y_;
};

void DrawLegend(const std::vector<ChartLine>& lines, Console& console) {
  std::vector<std::string> names;
  size_t name_width = 0;
  for (const ChartLine& line : lines) {
    names.push_back(Printable(line.name, console.unicode));
    name_width = std::max(name_width, TextWidth(names.back()));
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<Point>& points = lines[i].points;
    const auto [least, greatest] = ExtremesOf(lines[i]);
    std::string mark = console.unicode ? "━" : "*";
    if (lines.size() > 1 && (!console.color || !console.unicode))
      mark = static_cast<char>('a' + i % 26);
    if (console.color) mark = absl::StrCat("\x1b[", kLineColors[i % 6], "m", mark, "\x1b[0m");
    console.out << " " << mark << " " << names[i]
                << std::string(name_width - TextWidth(names[i]), ' ');
    if (least != nullptr) {
      console.out << "  min " << Number(least->second) << " at " << Number(least->first) << "  max "
                  << Number(greatest->second) << " at " << Number(greatest->first);
    }
    if (!points.empty()) {
      console.out << "  last " << console.Paint(Style::kBold, Number(points.back().second))
                  << " at " << Number(points.back().first);
    }
    console.out << "\n";
  }
}

}  // namespace

Extremes ExtremesOf(const ChartLine& line) {
  Extremes found;
  for (const Point& p : line.points) {
    if (!std::isfinite(p.second)) continue;
    if (found.least == nullptr || p.second < found.least->second) found.least = &p;
    if (found.greatest == nullptr || p.second > found.greatest->second) found.greatest = &p;
  }
  return found;
}

void AxisRange::Add(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

void AxisRange::Widen() {
  if (high > low) return;
  const double room = low == 0 ? 1 : std::abs(low) / 2;
  low -= room;
  high += room;
}

// Halved, because the difference of two large doubles may overflow.
double AxisRange::Part(double value) const { return (value / 2 - low / 2) / (high / 2 - low / 2); }

void DrawChart(const std::vector<ChartLine>& lines, const ChartOptions& options, Console& console) {
  Chart chart(lines, options);
  console.out << " " << console.Paint(Style::kBold, Printable(options.title, console.unicode))
              << "\n";
  if (chart.empty()) {
    console.out << " (no points to draw)\n";
  } else {
    chart.Draw(console);
  }
  DrawLegend(lines, console);
}

}  // namespace weir::tools
