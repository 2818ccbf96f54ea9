#include "weir/rpc/cluster/task_calls.h"

#include <chrono>

namespace weir::rpc {

absl::Status FromTask(const TaskName& task, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("From ", task.ToString(), ":\n", status.message()));
}

Peers::Answered TaskAnswers::Expect(size_t i) {
  return [this, i](const absl::Status& status) {
    const MutexLock lock(mutex_);
    answers_[i] = status;
    is_there_[i] = true;
    if (--missing_ == 0) answered_.NotifyAll();
  };
}

std::vector<absl::Status> TaskAnswers::Wait(const std::function<void(size_t)>& waiting) {
  constexpr std::chrono::seconds kPeriod(10);
  const MutexLock lock(mutex_);
  while (missing_ > 0) {
    const bool in_time = answered_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kPeriod);
    for (size_t i = 0; !in_time && waiting && i < is_there_.size(); ++i) {
      if (!is_there_[i]) waiting(i);
    }
  }
  return answers_;
}

}  // namespace weir::rpc
