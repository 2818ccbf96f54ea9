#ifndef WEIR_TOOLS_LIB_TEXT_TABLE_H_
#define WEIR_TOOLS_LIB_TEXT_TABLE_H_

#include <string>
#include <vector>

#include "weir/tools/lib/cli.h"

namespace weir::tools {

// Rows of cells, printed in columns as wide as their widest cell. Titles are dim, and omitted if
// all of them are empty. Cells are made printable (Printable).
//
// A table that is wider than the terminal is fitted to it (Console::fits). Left-aligned columns
// become narrower: several words continue on the next line, a single word is shortened in its
// middle. Columns whose titles begin with '?' are left out, the last one first, if the others do
// not fit otherwise. A last line says what is missing.
class TextTable {
 public:
  // '>' before a title (after '?') makes the column right-aligned. Such columns are never
  // shortened.
  explicit TextTable(std::vector<std::string> titles);
  // Adds a row with one cell per title.
  void Row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void Print(Console& console) const;

 private:
  struct Column {
    std::string title;
    bool right = false, optional = false;
  };
  struct Layout;

  std::vector<size_t> NaturalWidths() const;
  bool HasWords(size_t column) const;
  Layout Fit(const std::vector<size_t>& natural, size_t total) const;
  std::vector<std::vector<std::string>> Lines(const std::vector<std::string>& cells,
                                              Layout& layout) const;
  std::string Line(const std::vector<std::string>& cells, const Layout& layout) const;
  void PrintNote(const Layout& layout, Console& console) const;

  std::vector<Column> columns_;
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
