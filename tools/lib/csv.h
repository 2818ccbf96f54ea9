#ifndef WEIR_TOOLS_LIB_CSV_H_
#define WEIR_TOOLS_LIB_CSV_H_

#include <string>
#include <utility>
#include <vector>

#include "weir/core/tensor/convert.h"
#include "weir/core/tensor/tensor.h"

// CSV files (RFC 4180): lines of fields, all with as many. A field in double quotes may hold
// separators, line ends, and quotes, which are doubled. Empty lines are skipped.
namespace weir::tools {

struct CsvOptions {
  DataType dtype = DT_FLOAT;             // numbers, booleans (true, false, 1, 0) or strings
  Rounding rounding = Rounding::kNever;  // of whole numbers; fractions are rounded to the dtype
  char separator = ',';
  std::string column;         // taken alone if the first line has this field
  bool needs_column = false;  // NOT_FOUND if it does not
};

// Parses a file, as numpy.savetxt or pandas write it, into a tensor [lines, fields]. A first line
// with options.column in it, and for numbers a first line without any number, has the names of the
// columns; for numbers, lines that begin with # are comments. INVALID_ARGUMENT, with the line, for
// lines of different lengths and for what is not a value of the dtype.
absl::StatusOr<Tensor> ParseCsv(absl::string_view text, const CsvOptions& options);

// Returns the fields of the first line, which has line ends of its own where they are quoted.
absl::StatusOr<std::vector<std::string>> CsvFields(absl::string_view text, char separator);

// Returns a file with the rows of one or more tensors side by side: a line for each row of
// dimension 0, its elements in row-major order (a scalar is one row). Several tensors get a line
// with their names first, in which the elements of a row are numbered: "y.0,y.1". INVALID_ARGUMENT
// for tensors with different numbers of rows, and for dtypes without a text form.
absl::StatusOr<std::string> FormatCsv(const std::vector<std::pair<std::string, Tensor>>& columns,
                                      char separator);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_CSV_H_
