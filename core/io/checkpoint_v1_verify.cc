#include <algorithm>

#include "weir/core/io/bundle_reader.h"
#include "weir/core/io/file.h"
#include "weir/core/io/sstable.h"

// Every byte of a V1 checkpoint is in a block of an SSTable, with a checksum. So a scan of the
// files finds damage, and the reader finds which tensors it affects: it reads the blocks of one
// tensor only, and so those of an intact tensor in a damaged file.
namespace weir::internal {
namespace {

absl::Status ScanFile(const std::string& path, BundleReport* report) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, Files().Open(path));
  WEIR_ASSIGN_OR_RETURN(const std::vector<SSTableProblem> problems,
                        ScanSSTable(*file, [](absl::string_view, absl::string_view) {}));
  uint64_t damaged = 0;
  for (const SSTableProblem& p : problems) {
    report->problems.push_back({path, p.offset, p.size, "", p.message});
    damaged += p.size;
  }
  report->data_bytes += static_cast<int64_t>(file->size() - std::min(damaged, file->size()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BundleReport> VerifyCheckpointV1(const std::string& pattern) {
  BundleReport report;
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> paths, MatchFiles(pattern));
  for (const std::string& path : paths) WEIR_RETURN_IF_ERROR(ScanFile(path, &report));
  const auto problem = [&](absl::string_view name, const absl::Status& status) {
    report.problems.push_back({pattern, 0, 0, std::string(name), std::string(status.message())});
  };
  const absl::StatusOr<std::unique_ptr<CheckpointReader>> reader = OpenCheckpointV1(pattern);
  if (!reader.ok()) {
    report.index_is_sound = false;
    if (report.problems.empty()) problem("", reader.status());
    return report;
  }
  WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> tensors, (*reader)->List());
  for (const CheckpointTensor& tensor : tensors) {
    ++report.tensors;
    const absl::Status read = (*reader)->Read(tensor.name).status();
    if (read.ok()) continue;
    problem(tensor.name, read);
    report.lost.push_back(tensor);
  }
  return report;
}

}  // namespace weir::internal
