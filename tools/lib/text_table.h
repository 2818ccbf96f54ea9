#ifndef WEIR_TOOLS_LIB_TEXT_TABLE_H_
#define WEIR_TOOLS_LIB_TEXT_TABLE_H_

#include <string>
#include <vector>

#include "weir/tools/lib/cli.h"

namespace weir::tools {

// Rows of cells, printed in columns as wide as their widest cell. A column whose title begins with
// '>' is right-aligned. Titles are dim, and omitted if all of them are empty.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> titles);
  // Adds a row with one cell per title.
  void Row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void Print(Console& console) const;

 private:
  std::string Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;

  std::vector<std::string> titles_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

// "1,234,567"
std::string WithCommas(int64_t n);
// "12.3 MB"
std::string HumanBytes(int64_t bytes);
// "12.3 us", "12.3 ms", "12.3 s".
std::string HumanDuration(double seconds);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_TEXT_TABLE_H_
