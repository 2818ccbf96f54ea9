#include "weir/tools/run/pass_recorder.h"

#include "absl/strings/str_format.h"
#include "weir/core/io/file.h"
#include "weir/session/plan/plan_dump.h"

namespace weir::tools {

absl::StatusOr<std::shared_ptr<PassRecorder>> PassRecorder::Create(const std::string& folder) {
  if (!folder.empty()) {
    // A file that is written and removed tells before anything runs that the folder can be used.
    const std::string probe = JoinPath(folder, ".weir_passes");
    absl::Status status = Files().MakeDirectory(folder);
    if (status.ok()) status = WriteFileAtomically(probe, "");
    if (status.ok()) status = Files().Remove(probe);
    if (!status.ok())
      return Annotate(status, absl::StrCat("cannot write plans to the folder ", folder));
  }
  return std::shared_ptr<PassRecorder>(new PassRecorder(folder));
}

void PassRecorder::Start() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_started_ = true;
}

void PassRecorder::Add(const PassReport& report) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_started_) return;
  records_.push_back({report.name, report.phase, report.ns, report.changes, report.num_nodes});
  if (folder_.empty() || !status_.ok()) return;
  const std::string path =
      JoinPath(folder_, absl::StrFormat("%02d_%s", records_.size(), report.name));
  status_ = WriteFileAtomically(path + ".txt", PlanText(report.plan));
  if (status_.ok()) status_ = WriteFileAtomically(path + ".pb", PlanGraphDef(report.plan));
}

absl::Status PassRecorder::status() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

std::vector<PassRecorder::Record> PassRecorder::records() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return records_;
}

}  // namespace weir::tools
