#include "weir/kernels/data/iterator_state.h"

#include <utility>

#include "weir/core/graph/graph.h"
#include "weir/kernels/lib/resumable.h"

namespace weir {

thread_local constinit IteratorPosition* IteratorPosition::current_ = nullptr;

namespace {

constexpr int64_t kVersion = 2;       // of the saved tensors
constexpr int64_t kStateNumbers = 3;  // of a generator

// Writes a row for each state.
Tensor NewStates(size_t count) {
  return Tensor(DT_UINT64, Shape({static_cast<int64_t>(count), kStateNumbers}));
}
uint64_t* Write(const SeedSource::State& state, uint64_t* out) {
  *out++ = state.seed;
  *out++ = state.seed2;
  *out++ = state.draws;
  return out;
}

bool HoldsStates(const Tensor& t) {
  return t.dtype() == DT_UINT64 && t.rank() == 2 && t.dim(1) == kStateNumbers;
}

SeedSource::State StateAt(const Tensor& states, int64_t i) {
  const uint64_t* in = states.data<uint64_t>() + i * kStateNumbers;
  return {in[0], in[1], in[2]};
}

}  // namespace

void IteratorPosition::Use(SeedSource& source) {
  const MutexLock lock(mutex_);
  if (!sources_.insert(source.id()).second) return;
  if (states_.size() < to_restore_.size()) source.Restore(to_restore_[states_.size()]);
  states_.push_back(source.state());
}

// What two iterations, or two functions, draw from one stream depends on how they take turns, and
// is not repeated by either.
void IteratorPosition::UseIn(const Function& function, SeedSource& source) {
  const std::string name = source.source_name();
  if (const std::shared_ptr<void> other = source.SetUser(shared_from_this())) {
    auto& position = *static_cast<IteratorPosition*>(other.get());
    const MutexLock lock(position.mutex_);
    position.shared_.insert(name);
  }
  const MutexLock lock(mutex_);
  if (functions_.emplace(name, &function).first->second != &function) shared_.insert(name);
  if (!sources_.insert(source.id()).second) return;
  const auto saved = named_to_restore_.find(name);
  if (saved != named_to_restore_.end()) source.Restore(saved->second);
  named_states_[name] = source.state();
}

void IteratorPosition::NoteChange(const std::string& node) {
  const MutexLock lock(mutex_);
  changes_.insert(node);
}

std::vector<std::string> IteratorPosition::lost() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> lost;
  for (const std::string& node : changes_)
    lost.push_back(absl::StrCat("what ", node, " changes, since resuming calls it again"));
  for (const std::string& stream : shared_) {
    lost.push_back(absl::StrCat("random numbers of '", stream,
                                "', from which another iterator or function draws too"));
  }
  return lost;
}

void IteratorPosition::CountCall() {
  const MutexLock lock(mutex_);
  ++calls_;
}

absl::Status IteratorPosition::CheckBegin() {
  const MutexLock lock(mutex_);
  used_at_begin_ = static_cast<int64_t>(states_.size());
  if (used_at_begin_ == saved_used_at_begin_.value_or(used_at_begin_)) return absl::OkStatus();
  return DataLoss("its dataset begins with ", used_at_begin_, " random orders instead of ",
                  *saved_used_at_begin_);
}

Tensors IteratorPosition::Save() const {
  const MutexLock lock(mutex_);
  Tensor states = NewStates(states_.size()), named = NewStates(named_states_.size());
  auto* out = states.data<uint64_t>();
  for (const SeedSource::State& state : states_) out = Write(state, out);
  std::vector<std::string> names;
  out = named.data<uint64_t>();
  for (const auto& [name, state] : named_states_) {
    names.push_back(name);
    out = Write(state, out);
  }
  return {Tensor::Vector<int64_t>({kVersion, calls_, used_at_begin_}), std::move(states),
          Tensor::Vector<std::string>(names), std::move(named)};
}

absl::StatusOr<std::shared_ptr<IteratorPosition>> IteratorPosition::Load(const Tensors& saved,
                                                                         int64_t* calls) {
  const bool fits = saved.size() == 4 && saved[0].dtype() == DT_INT64 &&
                    saved[0].shape() == Shape({3}) && HoldsStates(saved[1]) &&
                    saved[2].dtype() == DT_STRING && saved[2].rank() == 1 &&
                    HoldsStates(saved[3]) && saved[3].dim(0) == saved[2].dim(0);
  if (!fits || saved[0].IntAt(0) != kVersion || saved[0].IntAt(1) < 0) {
    return InvalidArgument(
        "The variant does not hold the position of an iterator, as SerializeIterator returns it");
  }
  *calls = saved[0].IntAt(1);
  auto position = std::make_shared<IteratorPosition>();
  const MutexLock lock(position->mutex_);
  position->saved_used_at_begin_ = saved[0].IntAt(2);
  for (int64_t i = 0; i < saved[1].dim(0); ++i)
    position->to_restore_.push_back(StateAt(saved[1], i));
  for (int64_t i = 0; i < saved[2].dim(0); ++i)
    position->named_to_restore_[saved[2].data<std::string>()[i]] = StateAt(saved[3], i);
  return position;
}

// The state is noted just before the draw, in whose turn no other call draws from the stream.
Philox NotedDraws::Draw(SeedSource& stream, absl::FunctionRef<Philox()> reserve) {
  const auto noted = [&] {
    position_.UseIn(function_, stream);
    return reserve();
  };
  return order_ != nullptr ? order_->Draw(stream, noted) : noted();
}

// ---- iterators

absl::StatusOr<IteratorState::Iteration> IteratorState::Iteration::Of(
    DatasetPtr dataset, std::shared_ptr<IteratorPosition> position) {
  const IteratorPosition::Scope scope(position.get());
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<DatasetIterator> iterator, dataset->Iterate());
  WEIR_RETURN_IF_ERROR(position->CheckBegin());
  return Iteration{std::move(dataset), std::move(position), std::move(iterator)};
}

MaybeElement IteratorState::Iteration::Next(const DatasetContext& x) {
  const IteratorPosition::Scope scope(position.get());
  MaybeElement element = late ? *std::exchange(late, std::nullopt) : iterator->Next(x);
  if (const absl::Status end = HowItEnded(x.step); element.ok() && !end.ok()) {
    late = std::move(element);
    return end;
  }
  if (!ended && (element.ok() || !HasEnded(x.step))) position->CountCall();
  ended = element.ok() && !*element;
  return element;
}

void IteratorState::Clear() {
  Replace(Iteration());
  const std::lock_guard<std::mutex> lock(mutex_);
  pending_.clear();
}

absl::Status IteratorState::Start(DatasetPtr dataset) {
  WEIR_ASSIGN_OR_RETURN(Iteration iteration,
                        Iteration::Of(std::move(dataset), std::make_shared<IteratorPosition>()));
  Replace(std::move(iteration));
  return absl::OkStatus();
}

absl::Status IteratorState::StartOnce(const std::function<absl::StatusOr<DatasetPtr>()>& make) {
  const std::lock_guard<std::mutex> start(start_mutex_);
  if (started()) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(DatasetPtr dataset, make());
  return Start(std::move(dataset));
}

MaybeElement IteratorState::Next(const StepInfo& step, const Node& caller) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (iteration_.iterator == nullptr) return Uninitialized("GetNext()");
  if (!pending_.empty()) {
    WEIR_RETURN_IF_ERROR(Repeat(step, caller, pending_));
    pending_.clear();
  }
  return iteration_.Next({step, caller, ahead_});
}

bool IteratorState::started() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return iteration_.iterator != nullptr;
}

absl::StatusOr<Tensors> IteratorState::Save() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!pending_.empty()) return pending_;
  if (iteration_.iterator == nullptr) return Uninitialized("Save()");
  return iteration_.position->Save();
}

absl::Status IteratorState::Restore(const StepInfo& step, const Node& caller,
                                    const Tensors& saved) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (iteration_.iterator == nullptr) return Uninitialized("Restore()");
  WEIR_RETURN_IF_ERROR(Repeat(step, caller, saved));
  pending_.clear();
  return absl::OkStatus();
}

absl::Status IteratorState::RestoreLater(Tensors saved) {
  int64_t calls = 0;
  WEIR_RETURN_IF_ERROR(IteratorPosition::Load(saved, &calls).status());
  const std::lock_guard<std::mutex> lock(mutex_);
  pending_ = std::move(saved);
  return absl::OkStatus();
}

std::vector<std::string> IteratorState::lost() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (iteration_.position == nullptr) return {};
  return iteration_.position->lost();
}

absl::Status IteratorState::Uninitialized(absl::string_view call) {
  return FailedPrecondition(
      call,
      " failed because the iterator has not been initialized. Ensure that you have run the "
      "initializer operation for this iterator before getting the next element.");
}

// Called with the lock held.
absl::Status IteratorState::Repeat(const StepInfo& step, const Node& caller, const Tensors& saved) {
  int64_t calls = 0;
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<IteratorPosition> position,
                        IteratorPosition::Load(saved, &calls));
  const auto misfit = [&](absl::string_view why) {
    return DataLoss("The position that was saved does not fit ", Describe(), ": ", why);
  };
  absl::StatusOr<Iteration> iteration = Iteration::Of(iteration_.dataset, std::move(position));
  if (absl::IsDataLoss(iteration.status())) return misfit(iteration.status().message());
  WEIR_RETURN_IF_ERROR(iteration.status());
  for (; calls > 0; --calls) {
    const MaybeElement dropped = iteration->Next({step, caller, ahead_});
    if (!dropped.ok() && HasEnded(step)) return dropped.status();
    if (dropped.ok() && !*dropped) break;
  }
  if (calls > 1) return misfit("its dataset has fewer elements");
  std::swap(iteration_, *iteration);
  return absl::OkStatus();
}

// The old iteration is destroyed from its iterator on: what works ahead for it uses the others.
void IteratorState::Replace(Iteration iteration) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::swap(iteration_, iteration);
}

namespace {

void TakeIterators(ResourceMap& resources, std::vector<ResumableState>* states,
                   std::vector<std::string>* lost) {
  for (const std::shared_ptr<IteratorState>& iterator : resources.All<IteratorState>()) {
    absl::StatusOr<Tensors> position = iterator->Save();
    if (!position.ok()) continue;  // it has not begun
    for (const std::string& each : iterator->lost())
      lost->push_back(absl::StrCat(iterator->Describe(), ": ", each));
    const ResourceName& name = iterator->name();
    states->push_back({.kind = "iterator",
                       .container = name.container,
                       .name = name.name,
                       .is_own = name.is_own,
                       .values = *std::move(position)});
  }
}

bool MakesIterator(const Node& node) {
  const std::string& op = node.op_name();
  return op == "Iterator" || op == "IteratorV2" || op == "OneShotIterator";
}

absl::Status RestoreIterator(ResourceMap& resources, const ResumableState& state) {
  const ResourceName name = {state.container, state.name, state.is_own};
  const auto iterator = name.SelectMap(resources).LookupOrCreate<IteratorState>(
      name.container, name.name, [&] { return std::make_shared<IteratorState>(name); });
  const absl::Status restored = iterator->RestoreLater(state.values);
  return restored.ok() ? restored : DataLoss("it is not the position of an iterator");
}

}  // namespace

ResumableKind Iterators() {
  return {.name = "iterator",
          .makes = MakesIterator,
          .take = TakeIterators,
          .restore = RestoreIterator};
}

}  // namespace weir
