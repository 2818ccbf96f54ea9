#include "weir/rpc/cluster/partial_steps.h"

#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weir::rpc {

namespace {

constexpr size_t kMaxSteps = 1000;

}  // namespace

struct PartialSteps::Running {
  Cancellation cancellation;
  absl::Status status;  // once the thread has ended
  std::thread thread;
};

PartialSteps::PartialSteps() = default;

PartialSteps::~PartialSteps() {
  std::map<int64_t, std::unique_ptr<Running>> steps;
  {
    const MutexLock lock(mutex_);
    steps.swap(steps_);
  }
  for (const auto& [step_id, step] : steps) {
    step->cancellation.Cancel(absl::CancelledError("The server is shutting down"));
    step->thread.join();
  }
}

absl::Status PartialSteps::Start(int64_t step_id, std::function<absl::Status(Cancellation&)> run) {
  const MutexLock lock(mutex_);
  if (steps_.contains(step_id)) return absl::OkStatus();
  if (steps_.size() >= kMaxSteps)
    return absl::ResourceExhaustedError("The task has too many unfinished partial runs");
  auto step = std::make_unique<Running>();
  try {
    step->thread = std::thread(
        [step = step.get(), run = std::move(run)] { step->status = run(step->cancellation); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("No thread can be started for the partial run: ", error.what()));
  }
  steps_[step_id] = std::move(step);
  return absl::OkStatus();
}

std::unique_ptr<PartialSteps::Running> PartialSteps::Take(int64_t step_id) {
  const MutexLock lock(mutex_);
  const auto found = steps_.find(step_id);
  if (found == steps_.end()) return nullptr;
  std::unique_ptr<Running> step = std::move(found->second);
  steps_.erase(found);
  return step;
}

absl::Status PartialSteps::Finish(int64_t step_id) {
  const std::unique_ptr<Running> step = Take(step_id);
  if (step == nullptr) return absl::OkStatus();
  step->thread.join();
  return step->status;
}

void PartialSteps::Cancel(int64_t step_id, const absl::Status& why) {
  const std::unique_ptr<Running> step = Take(step_id);
  if (step == nullptr) return;
  step->cancellation.Cancel(why);
  step->thread.join();
}

}  // namespace weir::rpc
