#include "weir/kernels/data/iterator_position.h"

#include <atomic>

namespace weir {

thread_local constinit IteratorPosition* IteratorPosition::current_ = nullptr;

namespace {

constexpr int64_t kVersion = 1;       // of the saved tensors
constexpr int64_t kStateNumbers = 3;  // of a generator

uint64_t NextId() {
  static std::atomic<uint64_t> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

SeedSource::SeedSource() : id_(NextId()) {}

void IteratorPosition::Use(SeedSource& source) {
  const MutexLock lock(mutex_);
  if (!sources_.insert(source.id()).second) return;
  if (states_.size() < to_restore_.size()) source.Restore(to_restore_[states_.size()]);
  states_.push_back(source.state());
}

void IteratorPosition::CountCall() {
  const MutexLock lock(mutex_);
  ++calls_;
}

bool IteratorPosition::has_restored_all() const {
  const MutexLock lock(mutex_);
  return states_.size() >= to_restore_.size();
}

Tensors IteratorPosition::Save() const {
  const MutexLock lock(mutex_);
  Tensor states(DT_UINT64, Shape({static_cast<int64_t>(states_.size()), kStateNumbers}));
  auto* out = states.data<uint64_t>();
  for (const SeedSource::State& state : states_) {
    *out++ = state.seed;
    *out++ = state.seed2;
    *out++ = state.draws;
  }
  return {Tensor::Vector<int64_t>({kVersion, calls_}), std::move(states)};
}

absl::StatusOr<std::shared_ptr<IteratorPosition>> IteratorPosition::Load(const Tensors& saved,
                                                                         int64_t* calls) {
  const bool fits = saved.size() == 2 && saved[0].dtype() == DT_INT64 &&
                    saved[0].shape() == Shape({2}) && saved[1].dtype() == DT_UINT64 &&
                    saved[1].rank() == 2 && saved[1].dim(1) == kStateNumbers;
  if (!fits || saved[0].IntAt(0) != kVersion || saved[0].IntAt(1) < 0) {
    return InvalidArgument(
        "The variant does not hold the position of an iterator, as SerializeIterator returns it");
  }
  *calls = saved[0].IntAt(1);
  auto position = std::make_shared<IteratorPosition>();
  const MutexLock lock(position->mutex_);
  const auto* in = saved[1].data<uint64_t>();
  for (int64_t i = 0; i < saved[1].dim(0); ++i, in += kStateNumbers)
    position->to_restore_.push_back({in[0], in[1], in[2]});
  return position;
}

}  // namespace weir
