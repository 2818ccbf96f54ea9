#include "weir/session/train/coordinator.h"

#include <algorithm>

#include "weir/core/tensor/exception.h"

namespace weir {

Coordinator::~Coordinator() {
  RequestStop();
  const MutexLock lock(mutex_);
  while (AnyRunning()) changed_.Wait(mutex_);  // also threads that these have started
  JoinFinished();
}

void Coordinator::Start(std::string name, std::function<void()> body) {
  const MutexLock lock(mutex_);
  Worker& worker = workers_.emplace_back();
  worker.name = std::move(name);
  // What the body holds may call the coordinator when it is destroyed, so that is before the end.
  worker.thread = std::thread([this, &worker, body = std::move(body)]() mutable {
    const absl::Status thrown = CatchExceptions(worker.name, [&] {
      body();
      return absl::OkStatus();
    });
    if (!thrown.ok()) RequestStop(thrown);
    body = nullptr;
    const MutexLock done(mutex_);
    worker.is_running = false;
    changed_.NotifyAll();
  });
  worker.is_running = true;  // not before: the thread may not start
}

void Coordinator::RequestStop(const absl::Status& why) {
  const bool is_clean =
      std::find(clean_stops_.begin(), clean_stops_.end(), why.code()) != clean_stops_.end();
  const MutexLock lock(mutex_);
  if (!stop_ && !is_clean) status_ = why;
  stop_ = true;
  changed_.NotifyAll();
}

bool Coordinator::ShouldStop() const {
  const MutexLock lock(mutex_);
  return stop_;
}

bool Coordinator::WaitForStop(std::chrono::milliseconds at_most) {
  const MutexLock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + at_most;
  while (!stop_) {
    if (!changed_.WaitUntil(mutex_, until)) return stop_;
  }
  return true;
}

void Coordinator::WaitForStop() {
  const MutexLock lock(mutex_);
  while (!stop_) changed_.Wait(mutex_);
}

absl::Status Coordinator::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

bool Coordinator::AnyRunning() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& worker) { return worker.is_running; });
}

// Joins finished threads; these no longer need the lock.
void Coordinator::JoinFinished() {
  for (auto it = workers_.begin(); it != workers_.end();) {
    if (it->is_running) {
      ++it;
    } else {
      if (it->thread.joinable()) it->thread.join();
      it = workers_.erase(it);
    }
  }
}

absl::Status Coordinator::Join(std::chrono::milliseconds grace) {
  const MutexLock lock(mutex_);
  while (!stop_ && AnyRunning()) changed_.Wait(mutex_);
  const auto until = std::chrono::steady_clock::now() + grace;
  while (AnyRunning() && changed_.WaitUntil(mutex_, until)) {
  }
  const bool all_finished = !AnyRunning();
  std::string names;
  for (const Worker& worker : workers_) {
    if (worker.is_running) absl::StrAppend(&names, " ", worker.name);
  }
  JoinFinished();
  if (!status_.ok() || all_finished) return status_;
  return absl::DeadlineExceededError(
      absl::StrCat("Coordinator stopped with threads still running:", names));
}

void Coordinator::ClearStop() {
  const MutexLock lock(mutex_);
  stop_ = false;
  status_ = absl::OkStatus();
}

}  // namespace weir
