#ifndef WEIR_TOOLS_DATA_DATA_RECORDS_H_
#define WEIR_TOOLS_DATA_DATA_RECORDS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weir/tools/data/data_file.h"
#include "weir/tools/data/record_json.h"

// The records of several files, one after the other, in memory for one record.
namespace weir::tools {

struct RecordOptions {
  ReadOptions read;
  FeatureKinds kinds;  // of features in JSON and CSV: see RecordFromJson
  // If it is set, damaged records are skipped, and told to it as DATA_LOSS.
  std::function<void(const absl::Status&)> on_damage = nullptr;
};

// A record, and where it is.
struct PlacedRecord {
  const DataFile& file;
  int64_t index = 0;               // among the records of its file
  std::optional<uint64_t> offset;  // in the decompressed file; none in text
  std::string bytes;
};
// Returns false to end the reading.
using RecordFunction = absl::FunctionRef<absl::StatusOr<bool>(const PlacedRecord&)>;

// Calls fn for each record of the files, those of text converted, until it returns false or an
// error. DATA_LOSS for damage that is not skipped, with the number of intact records before it.
absl::Status ForEachRecord(const std::vector<DataFile>& files, const RecordOptions& options,
                           RecordFunction fn);

// Returns the status, with the option that raises the limit if a record is longer.
absl::Status NameLimit(const absl::Status& status);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_DATA_DATA_RECORDS_H_
