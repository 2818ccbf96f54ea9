#include <deque>
#include <map>
#include <random>

#include "weir/kernels/containers/queue.h"
#include "weir/kernels/lib/philox.h"

namespace weir {

namespace {

class FirstInFirstOut final : public QueueOrder {
 public:
  void Put(Tensors element) override { elements_.push_back(std::move(element)); }
  Tensors Take() override {
    Tensors element = std::move(elements_.front());
    elements_.pop_front();
    return element;
  }
  void PutBack(Tensors element) override { elements_.push_front(std::move(element)); }
  int64_t size() const override { return static_cast<int64_t>(elements_.size()); }
  std::vector<Tensors> Elements() const override { return {elements_.begin(), elements_.end()}; }

 private:
  std::deque<Tensors> elements_;
};

// An order in which Take returns a uniformly random element; the last element moves into its place.
// The draws are TensorFlow's: the words of a Philox stream, modulo the size.
class Shuffled final : public QueueOrder {
 public:
  explicit Shuffled(const Philox& stream) : stream_(stream), words_(stream) {}
  void Put(Tensors element) override { elements_.push_back(std::move(element)); }
  Tensors Take() override {
    std::swap(elements_[words_() % elements_.size()], elements_.back());
    ++drawn_;
    Tensors element = std::move(elements_.back());
    elements_.pop_back();
    return element;
  }
  void PutBack(Tensors element) override { elements_.push_back(std::move(element)); }
  int64_t size() const override { return static_cast<int64_t>(elements_.size()); }
  std::vector<Tensors> Elements() const override { return elements_; }
  std::vector<uint64_t> Draws() const override {
    return {stream_.key(), stream_.counter_low(), stream_.counter_high(), drawn_};
  }
  void RestoreDraws(absl::Span<const uint64_t> draws) override {
    constexpr uint64_t kWordsInBlock = 4;
    stream_ = Philox(draws[0], draws[1], draws[2]);
    drawn_ = draws[3];
    Philox next = stream_;
    next.Skip(drawn_ / kWordsInBlock);
    words_ = PhiloxWords(next);
    for (uint64_t i = 0; i < drawn_ % kWordsInBlock; ++i) words_();
  }

 private:
  Philox stream_;
  PhiloxWords words_;
  uint64_t drawn_ = 0;
  std::vector<Tensors> elements_;
};

// The element with the smallest first component is first; ties are in insertion order.
class ByPriority final : public QueueOrder {
 public:
  void Put(Tensors element) override {
    const int64_t priority = element[0].scalar<int64_t>();
    elements_.emplace(priority, std::move(element));
  }
  Tensors Take() override { return std::move(elements_.extract(elements_.begin()).mapped()); }
  void PutBack(Tensors element) override {
    const int64_t priority = element[0].scalar<int64_t>();
    elements_.emplace_hint(elements_.lower_bound(priority), priority, std::move(element));
  }
  int64_t size() const override { return static_cast<int64_t>(elements_.size()); }
  std::vector<Tensors> Elements() const override {
    std::vector<Tensors> elements;
    for (const auto& [priority, element] : elements_) elements.push_back(element);
    return elements;
  }

 private:
  std::multimap<int64_t, Tensors> elements_;
};

uint64_t AnySeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

std::unique_ptr<QueueOrder> QueueOrder::Make(const QueueSpec& spec) {
  if (spec.kind == "PriorityQueue") return std::make_unique<ByPriority>();
  if (spec.kind != "RandomShuffleQueue") return std::make_unique<FirstInFirstOut>();
  const bool seeded = spec.seed != 0 || spec.seed2 != 0;
  return std::make_unique<Shuffled>(
      seeded ? Philox(static_cast<uint64_t>(spec.seed), static_cast<uint64_t>(spec.seed2))
             : Philox(AnySeed(), AnySeed()));
}

}  // namespace weir
