#ifndef WEIR_TOOLS_DATA_RECORD_CSV_H_
#define WEIR_TOOLS_DATA_RECORD_CSV_H_

#include <string>
#include <vector>

#include "weir/tools/data/data_file.h"
#include "weir/tools/data/record_json.h"

// Examples as CSV (RFC 4180): a row for each, a column for each feature.
//
//   label:int64,boxes:float,name:bytes
//   3,"[0.5, 1.0]",cat
//   ,[],"a ""quoted"" word"
//
// The header has the names and kinds. A cell is one value, or a list in JSON if it begins with a
// bracket; an empty cell means that the example lacks the feature.
namespace weir::tools {

struct CsvColumn {
  std::string name;
  FeatureKind kind = FeatureKind::kNone;
};

// INVALID_ARGUMENT for a name that is empty or has control characters, and for the kind kNone.
absl::StatusOr<std::string> CsvHeader(const std::vector<CsvColumn>& columns);
// Returns the row of a record, without a line end. Reading it gives an equal message.
// INVALID_ARGUMENT for a record that CSV cannot express: another message than an Example; features
// without a list, of another kind than the column's, or without a column; NaNs with other bits than
// usual. Values that are not plain text (they are empty, have control characters or begin with a
// bracket, or are not UTF-8) are lists.
absl::StatusOr<std::string> CsvFromRecord(const std::vector<CsvColumn>& columns,
                                          absl::string_view record);

// Calls fn for the record of each row, until it returns false or an error; returns whether it did
// not. A column whose header has no kind, and which `kinds` lacks, has the narrowest of int64,
// float and bytes that fits all its cells, for which the file is read twice. Errors have the line.
absl::StatusOr<bool> ForEachCsvRecord(const DataFile& file, const ReadOptions& options,
                                      const FeatureKinds& kinds,
                                      absl::FunctionRef<absl::StatusOr<bool>(std::string)> fn);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_DATA_RECORD_CSV_H_
