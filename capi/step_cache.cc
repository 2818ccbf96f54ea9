#include "weir/capi/step_cache.h"

#include <algorithm>
#include <cstdint>

namespace weir::capi {

struct StepCache::Entry {
  std::vector<TF_Output> inputs, outputs;
  std::vector<const TF_Operation*> targets;
  PreparedCall call;
  const Entry* next = nullptr;  // in the bucket
};

namespace {

bool IsSame(absl::Span<const TF_Output> a, absl::Span<const TF_Output> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TF_Output& x, const TF_Output& y) {
                      return x.oper == y.oper && x.index == y.index;
                    });
}

// Combines the handles to a number by multiplications with an odd constant (2^64 / golden ratio).
class Hash {
 public:
  void Add(uint64_t word) {
    constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;
    state_ = (state_ ^ word) * kMultiplier;
    state_ ^= state_ >> 32;
  }
  void Add(absl::Span<const TF_Output> outputs) {
    for (const TF_Output& output : outputs)
      Add(reinterpret_cast<uintptr_t>(output.oper) + static_cast<uint64_t>(output.index));
    Add(outputs.size());
  }
  uint64_t state() const { return state_; }

 private:
  uint64_t state_ = 0;
};

uint64_t HashOf(const StepHandles& handles) {
  Hash hash;
  hash.Add(handles.inputs);
  hash.Add(handles.outputs);
  for (const TF_Operation* target : handles.targets) hash.Add(reinterpret_cast<uintptr_t>(target));
  return hash.state();
}

}  // namespace

StepCache::~StepCache() {
  for (const auto& bucket : buckets_) {
    for (const Entry* entry = bucket.load(); entry != nullptr;)
      delete std::exchange(entry, entry->next);
  }
}

const PreparedCall* StepCache::Find(const StepHandles& handles) const {
  const auto& bucket = buckets_[HashOf(handles) % kBuckets];
  for (const Entry* entry = bucket.load(std::memory_order_acquire); entry != nullptr;
       entry = entry->next) {
    if (IsSame(entry->inputs, handles.inputs) && IsSame(entry->outputs, handles.outputs) &&
        std::equal(entry->targets.begin(), entry->targets.end(), handles.targets.begin(),
                   handles.targets.end()))
      return &entry->call;
  }
  return nullptr;
}

void StepCache::Insert(const StepHandles& handles, const PreparedCall& call) {
  const MutexLock lock(mutex_);
  if (num_steps_ >= kMaxSteps || Find(handles) != nullptr) return;
  auto& bucket = buckets_[HashOf(handles) % kBuckets];
  const auto* const entry = new Entry{
      .inputs = {handles.inputs.begin(), handles.inputs.end()},
      .outputs = {handles.outputs.begin(), handles.outputs.end()},
      .targets = {handles.targets.begin(), handles.targets.end()},
      .call = call,
      .next = bucket.load(std::memory_order_relaxed),
  };
  bucket.store(entry, std::memory_order_release);
  ++num_steps_;
}

}  // namespace weir::capi
