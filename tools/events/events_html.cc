#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "weir/tools/events/events.h"
#include "weir/tools/lib/html_page.h"
#include "weir/tools/lib/text_table.h"

// weir events plot --html: charts as pictures (SVG) in a page.
namespace weir::tools {

namespace {

using Point = std::pair<double, double>;

// Of a chart, in the units of its view box.
constexpr double kWidth = 560, kHeight = 260, kLeft = 62, kRight = 12, kTop = 10, kBottom = 34;
constexpr size_t kMostPoints = 1000;  // of a line; more cannot be distinguished
constexpr size_t kMostDots = 250;     // with values under the pointer

std::string Number(double value) { return absl::StrFormat("%.4g", value); }

bool IsDrawable(const Point& p) { return std::isfinite(p.first) && std::isfinite(p.second); }

// A direction of a chart: maps values to coordinates, and chooses round values for its ticks.
class Axis {
 public:
  Axis(double from, double to) : from_(from), to_(to) {}

  AxisRange& range() { return range_; }

  double Place(double value) const {
    const double part = range_.Part(value);
    return std::isfinite(part) ? from_ + std::clamp(part, 0., 1.) * (to_ - from_) : from_;
  }

  // Multiples of 1, 2 or 5 times a power of ten: about five.
  std::vector<double> Ticks() const {
    const auto [low, high] = range_;
    const double rough = high / 7 - low / 7;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    if (!std::isfinite(rough) || !std::isnormal(power)) return {low, high};
    double step = 10 * power;
    for (const double factor : {5, 2, 1}) {
      if (factor * power >= rough) step = factor * power;
    }
    std::vector<double> ticks;
    for (double at = std::ceil(low / step); at * step <= high && ticks.size() < 12; ++at)
      ticks.push_back(at * step);
    return ticks;
  }

 private:
  double from_, to_;
  AxisRange range_;
};

// Keeps the least and the greatest point of each of equally many points, in their order.
std::vector<Point> Reduce(const std::vector<Point>& points) {
  if (points.size() <= kMostPoints) return points;
  const size_t parts = kMostPoints / 2;
  std::vector<Point> kept;
  for (size_t part = 0; part < parts; ++part) {
    const auto begin = points.begin() + static_cast<int64_t>(part * points.size() / parts),
               end = points.begin() + static_cast<int64_t>((part + 1) * points.size() / parts);
    const auto [least, greatest] = std::minmax_element(
        begin, end, [](const Point& a, const Point& b) { return a.second < b.second; });
    kept.push_back(*std::min(least, greatest));
    if (least != greatest) kept.push_back(*std::max(least, greatest));
  }
  return kept;
}

class SvgChart {
 public:
  SvgChart(const std::vector<ChartLine>& lines, bool log_y)
      : log_y_(log_y), x_(kLeft, kWidth - kRight), y_(kHeight - kBottom, kTop) {
    for (const ChartLine& line : lines) {
      std::vector<Point> points;
      for (const auto& [x, y] : line.points) {
        points.emplace_back(x, log_y ? std::log10(y) : y);
        if (!IsDrawable(points.back())) continue;
        x_.range().Add(x);
        y_.range().Add(points.back().second);
      }
      lines_.push_back({line.name, Reduce(points), line.color});
    }
  }

  std::string Text() {
    if (x_.range().empty()) return "<p class=\"dim\">no points to draw</p>\n";
    x_.range().Widen();
    y_.range().Widen();
    std::string svg =
        absl::StrFormat("<svg viewBox=\"0 0 %g %g\" role=\"img\">\n", kWidth, kHeight);
    AddAxes(&svg);
    for (size_t i = 0; i < lines_.size(); ++i) AddLine(i, &svg);
    return svg + "</svg>\n";
  }

 private:
  double Value(double y) const { return log_y_ ? std::pow(10, y) : y; }

  void AddAxes(std::string* svg) const {
    const double bottom = kHeight - kBottom;
    for (const double tick : y_.Ticks()) {
      const double y = y_.Place(tick);
      absl::StrAppendFormat(svg,
                            "<line class=\"tick\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>"
                            "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                            kLeft, kWidth - kRight, y, y, kLeft - 6, y + 4, Number(Value(tick)));
    }
    for (const double tick : x_.Ticks()) {
      absl::StrAppendFormat(svg, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>\n",
                            x_.Place(tick), bottom + 15, Number(tick));
    }
    absl::StrAppendFormat(svg,
                          "<line class=\"axis\" x1=\"%g\" x2=\"%g\" y1=\"%g\" y2=\"%g\"/>"
                          "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">step</text>\n",
                          kLeft, kWidth - kRight, bottom, bottom, (kLeft + kWidth - kRight) / 2,
                          kHeight - 4);
  }

  void AddLine(size_t index, std::string* svg) const {
    const std::vector<Point>& points = lines_[index].points;
    std::string path, dots;
    bool joined = false;
    for (const Point& p : points) {
      const bool drawable = IsDrawable(p);
      if (drawable) {
        const double x = x_.Place(p.first), y = y_.Place(p.second);
        // A point between two gaps is a line of no length, which the round cap shows.
        absl::StrAppendFormat(&path, joined ? "L%.1f %.1f" : "M%.1f %.1fh0", x, y);
        if (points.size() <= kMostDots) {
          absl::StrAppendFormat(
              &dots, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>", x, y);
          absl::StrAppend(&dots, EscapeHtml(lines_[index].name), ": ", Number(Value(p.second)),
                          " at ", Number(p.first), "</title></circle>\n");
        }
      }
      joined = drawable;
    }
    absl::StrAppend(svg, "<path class=\"line", lines_[index].color % kNumLineColors,
                    "\" stroke-linecap=\"round\" d=\"", path, "\"/>\n", dots);
  }

  const bool log_y_;
  Axis x_, y_;
  std::vector<ChartLine> lines_;
};

std::string Legend(const std::vector<ChartLine>& lines) {
  std::string html = HtmlTableHeader({"", ">least", ">greatest", ">last", ">points"});
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<Point>& points = lines[i].points;
    const auto [least, greatest] = ExtremesOf(lines[i]);
    const auto cell = [](const std::string& text) {
      return absl::StrCat("<td class=\"right\">", text, "</td>");
    };
    const auto value = [&](const Point* p) { return cell(p == nullptr ? "" : Number(p->second)); };
    absl::StrAppend(&html, "<tr><td class=\"name\"><span class=\"swatch fill",
                    lines[i].color % kNumLineColors, "\"></span>", EscapeHtml(lines[i].name),
                    "</td>", value(least), value(greatest),
                    value(points.empty() ? nullptr : &points.back()),
                    cell(WithCommas(static_cast<int64_t>(points.size()))), "</tr>\n");
  }
  return html + "</table>\n";
}

}  // namespace

std::string EventsPage(const std::vector<std::vector<std::string>>& charts,
                       const std::vector<EventLog>& logs, const EventsOptions& options) {
  std::string body =
      absl::StrCat("<p class=\"dim\">", logs.size(), logs.size() == 1 ? " run" : " runs",
                   options.log ? ", logarithmic" : "");
  if (options.smooth > 0) absl::StrAppend(&body, ", smoothed by ", Number(options.smooth));
  absl::StrAppend(&body, "</p>\n<div class=\"grid\">\n");
  for (const std::vector<std::string>& tags : charts) {
    const std::vector<ChartLine> lines = LinesOf(tags, logs, options);
    absl::StrAppend(&body, "<section class=\"card\">\n<h2>", EscapeHtml(absl::StrJoin(tags, ", ")),
                    "</h2>\n", SvgChart(lines, options.log).Text(), Legend(lines), "</section>\n");
  }
  absl::StrAppend(&body, "</div>\n");
  return HtmlPage(absl::StrCat("Events of ", absl::StrJoin(options.paths, ", ")), body);
}

}  // namespace weir::tools
