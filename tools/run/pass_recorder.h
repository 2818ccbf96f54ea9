#ifndef WEIR_TOOLS_RUN_PASS_RECORDER_H_
#define WEIR_TOOLS_RUN_PASS_RECORDER_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "weir/core/tensor/status.h"
#include "weir/session/plan/pass_report.h"

namespace weir::tools {

// Records the passes that compile a step, and writes the plan after each of them to a folder if one
// is given: "07_fuse_softmax.txt" for people, "07_fuse_softmax.pb" for Netron. Thread-safe.
class PassRecorder {
 public:
  struct Record {
    absl::string_view name, phase;
    int64_t ns;
    PlanChanges changes;
    int num_nodes;  // after the pass
  };

  // `folder` may be empty. Creates it; NOT_FOUND or PERMISSION_DENIED, naming it, if it cannot be
  // written to.
  static absl::StatusOr<std::shared_ptr<PassRecorder>> Create(const std::string& folder);

  // Passes are recorded from now on (and not those of initializers before).
  void Start();
  void Add(const PassReport& report);

  // Returns the first error of writing a plan.
  absl::Status status() const;
  std::vector<Record> records() const;

 private:
  explicit PassRecorder(std::string folder) : folder_(std::move(folder)) {}

  const std::string folder_;
  mutable std::mutex mutex_;
  bool is_started_ = false;
  absl::Status status_;
  std::vector<Record> records_;
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_RUN_PASS_RECORDER_H_
