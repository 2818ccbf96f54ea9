#include "weir/kernels/data/dataset_ahead.h"

#include <algorithm>
#include <utility>

namespace weir {

// Iterators come and go (an epoch, a slot of an interleaver), so the dead ones are dropped.
void AheadGroup::Add(std::weak_ptr<AheadWork> work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(members_, [](const std::weak_ptr<AheadWork>& m) { return m.expired(); });
  members_.push_back(std::move(work));
}

std::vector<std::shared_ptr<AheadWork>> AheadGroup::Members() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<AheadWork>> members;
  for (const std::weak_ptr<AheadWork>& m : members_) {
    if (std::shared_ptr<AheadWork> alive = m.lock()) members.push_back(std::move(alive));
  }
  return members;
}

bool AheadGroup::HasWork() {
  const auto members = Members();
  return std::any_of(members.begin(), members.end(), [](const auto& m) { return m->HasWork(); });
}

bool AheadGroup::Work(const DatasetContext& x) {
  const auto members = Members();
  return std::any_of(members.begin(), members.end(), [&](const auto& m) { return m->Work(x); });
}

}  // namespace weir
