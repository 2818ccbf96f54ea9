#include "weir/tools/lib/text_table.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weir/tools/lib/text_width.h"

namespace weir::tools {

namespace {

constexpr size_t kGap = 2;  // columns between two cells

// How narrow left-aligned columns may become: those of names, and those of several words. Words are
// tried first: nothing of them is lost.
struct Level {
  size_t name, text;
};
constexpr Level kLevels[] = {{std::numeric_limits<size_t>::max(), 30}, {20, 30}, {12, 12}};

size_t SumOfWidths(const std::vector<size_t>& widths, const std::vector<size_t>& shown) {
  size_t sum = shown.empty() ? 0 : kGap * (shown.size() - 1);
  for (const size_t i : shown) sum += widths[i];
  return sum;
}

}  // namespace

// The columns that are printed.
struct TextTable::Layout {
  std::vector<size_t> widths;  // of all columns
  std::vector<size_t> shown;   // indices of columns
  bool unicode = true, shortened = false;
};

TextTable::TextTable(std::vector<std::string> titles) {
  for (const std::string& title : titles) {
    absl::string_view text = title;
    Column column;
    column.optional = absl::ConsumePrefix(&text, "?");
    column.right = absl::ConsumePrefix(&text, ">");
    column.title = std::string(text);
    columns_.push_back(std::move(column));
  }
}

std::vector<size_t> TextTable::NaturalWidths() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(TextWidth(columns_[i].title));
    for (const auto& row : rows_) widths[i] = std::max(widths[i], TextWidth(row[i]));
  }
  return widths;
}

bool TextTable::HasWords(size_t column) const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [&](const auto& row) { return row[column].find(' ') != std::string::npos; });
}

// Takes the first level at which the columns, possibly without optional ones, have room. Columns
// that become narrower than they were have a common limit: the largest one with which the table
// fits.
TextTable::Layout TextTable::Fit(const std::vector<size_t>& natural, size_t total) const {
  std::vector<size_t> columns(columns_.size());
  std::iota(columns.begin(), columns.end(), 0);
  std::vector<bool> words;
  for (const size_t i : columns) words.push_back(HasWords(i));
  const auto narrow = [&](const Level& level, size_t limit) {
    std::vector<size_t> widths = natural;
    for (const size_t i : columns) {
      if (columns_[i].right) continue;
      const size_t least =
          std::max(words[i] ? level.text : level.name, TextWidth(columns_[i].title));
      widths[i] = std::min(natural[i], std::max(limit, least));
    }
    return widths;
  };
  Layout layout;
  for (const Level& level : kLevels) {
    const auto fits = [&](size_t limit) {
      return SumOfWidths(narrow(level, limit), layout.shown) <= total;
    };
    layout.shown = columns;
    for (size_t i = columns.size(); i-- > 0 && !fits(0);) {
      if (columns_[i].optional) std::erase(layout.shown, i);
    }
    size_t limit = total;
    while (limit > 0 && !fits(limit)) --limit;
    layout.widths = narrow(level, limit);
    if (fits(0)) break;
  }
  return layout;
}

// Returns the lines of a row: cells of several words may need more than one.
std::vector<std::vector<std::string>> TextTable::Lines(const std::vector<std::string>& cells,
                                                       Layout& layout) const {
  std::vector<std::vector<std::string>> lines;
  for (const size_t i : layout.shown) {
    const size_t width = layout.widths[i];
    std::vector<std::string> parts = {cells[i]};
    if (TextWidth(cells[i]) > width) parts = WrapText(cells[i], width);
    for (size_t line = 0; line < parts.size(); ++line) {
      if (line == lines.size()) lines.emplace_back(columns_.size());
      layout.shortened |= TextWidth(parts[line]) > width;
      lines[line][i] = Shorten(parts[line], width, layout.unicode);
    }
  }
  return lines;
}

std::string TextTable::Line(const std::vector<std::string>& cells, const Layout& layout) const {
  std::string line;
  for (const size_t i : layout.shown) {
    if (i != layout.shown[0]) line.append(kGap, ' ');
    const std::string fill(layout.widths[i] - std::min(layout.widths[i], TextWidth(cells[i])), ' ');
    line += columns_[i].right ? fill + cells[i] : cells[i] + fill;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

void TextTable::PrintNote(const Layout& layout, Console& console) const {
  std::vector<std::string> changes, left_out;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (std::find(layout.shown.begin(), layout.shown.end(), i) == layout.shown.end())
      left_out.push_back(columns_[i].title);
  }
  if (layout.shortened) changes.push_back("shortened");
  if (!left_out.empty()) changes.push_back(absl::StrCat("without ", absl::StrJoin(left_out, ", ")));
  if (changes.empty()) return;
  const std::string note = absl::StrCat("(", absl::StrJoin(changes, ", "), " to fit ",
                                        console.width, " columns; --wide prints all)");
  for (const std::string& line : WrapText(note, console.width))
    console.out << console.Paint(Style::kDim, line) << "\n";
}

void TextTable::Print(Console& console) const {
  TextTable printable = *this;
  for (auto& row : printable.rows_) {
    for (std::string& cell : row) cell = Printable(cell, console.unicode);
  }
  const std::vector<size_t> natural = printable.NaturalWidths();
  const size_t total = console.fits
                           ? console.width
                           : std::accumulate(natural.begin(), natural.end(), kGap * natural.size());
  Layout layout = printable.Fit(natural, total);
  layout.unicode = console.unicode;
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  const std::string line = Line(titles, layout);
  if (!line.empty()) console.out << console.Paint(Style::kDim, line) << "\n";
  for (const auto& row : printable.rows_) {
    for (const auto& cells : printable.Lines(row, layout))
      console.out << Line(cells, layout) << "\n";
  }
  PrintNote(layout, console);
}

std::string WithCommas(int64_t n) {
  std::string digits = absl::StrCat(n);
  for (int at = static_cast<int>(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3) {
    digits.insert(digits.begin() + at, ',');
  }
  return digits;
}

std::string HumanBytes(int64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  static constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double n = static_cast<double>(bytes) / 1000;
  int unit = 0;
  while (n >= 999.5 && unit < 5) {
    n /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.3g %s", n, kUnits[unit]);
}

std::string HumanDuration(double seconds) {
  if (seconds < 1e-3) return absl::StrFormat("%.3g us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.3g ms", seconds * 1e3);
  return absl::StrFormat("%.3g s", seconds);
}

}  // namespace weir::tools
