#include "weir/rpc/cluster/partial_steps.h"

#include <thread>
#include <utility>

namespace weir::rpc {

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

void PartialSteps::Start(int64_t step_id, std::function<absl::Status(Cancellation&)> run) {
  const MutexLock lock(mutex_);
  std::unique_ptr<Running>& step = steps_[step_id];
  if (step != nullptr) return;
  step = std::make_unique<Running>();
  step->thread = std::thread(
      [step = step.get(), run = std::move(run)] { step->status = run(step->cancellation); });
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
