#ifndef WEIR_TOOLS_DATA_DATA_H_
#define WEIR_TOOLS_DATA_DATA_H_

#include <string>
#include <vector>

#include "weir/tools/data/data_records.h"
#include "weir/tools/lib/command.h"
#include "weir/tools/lib/progress.h"

// Declarations that the parts of `weir data` share.
namespace weir::tools {

// The files of a command, and how they are read.
struct DataOptions {
  std::vector<std::string> paths, kinds;
  int64_t max_record_mb = 64;
  bool json = false;
};
// Adds the argument PATH, --max-record-mb, and --json with its description.
void AddDataOptions(Command& command, DataOptions* options, const char* json);
// Adds --kind, for commands that read text.
void AddKindOption(Command& command, DataOptions* options);

// Returns the files, and the options to read them with. INVALID_ARGUMENT for a kind that is none.
absl::StatusOr<std::vector<DataFile>> FindFiles(const DataOptions& options);
absl::StatusOr<RecordOptions> ReadingOf(const DataOptions& options);

// "records", "JSON lines", "CSV".
const char* FileFormName(FileForm form);
// Returns "1 record", "2,000 records".
std::string CountText(int64_t n, const std::string& what);
// Returns text for a terminal: control characters, and all of what is not UTF-8, are escaped.
std::string ShownText(const std::string& text);
// Cuts shown text off at so many columns, with an ellipsis.
std::string CutText(const std::string& text, size_t width);
// Returns how many columns `used` ones leave of the terminal, at least ten; any number where
// nothing must fit (Console::fits).
size_t ColumnsLeft(size_t used, const Console& console);
// The bytes of files on disk.
uint64_t TotalBytes(const std::vector<DataFile>& files);
// A bar of how much of the files has been read, all of which are read in each of some passes.
ProgressBar ShowReadingOf(const std::vector<DataFile>& files, Console& console, int passes = 1);

// Each adds subcommands of `weir data`.
void AddDataSummaryCommands(Command& data);  // count, schema and stats
void AddDataShowCommands(Command& data);     // show and head
void AddDataVerifyCommand(Command& data);
void AddDataConvertCommand(Command& data);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_DATA_DATA_H_
