#include "weir/tools/lib/text_table.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace weir::tools {

TextTable::TextTable(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) {
    absl::string_view text = title;
    right_.push_back(absl::ConsumePrefix(&text, ">"));
    title = std::string(text);
  }
}

std::string TextTable::Line(const std::vector<std::string>& cells,
                            const std::vector<size_t>& widths) const {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += "  ";
    const std::string fill(widths[i] - cells[i].size(), ' ');
    line += right_[i] ? fill + cells[i] : cells[i] + fill;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

void TextTable::Print(Console& console) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < titles_.size(); ++i) {
    widths.push_back(titles_[i].size());
    for (const auto& row : rows_) widths[i] = std::max(widths[i], row[i].size());
  }
  const std::string titles = Line(titles_, widths);
  if (!titles.empty()) console.out << console.Paint(Style::kDim, titles) << "\n";
  for (const auto& row : rows_) console.out << Line(row, widths) << "\n";
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
