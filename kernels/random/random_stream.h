#ifndef WEIR_KERNELS_RANDOM_RANDOM_STREAM_H_
#define WEIR_KERNELS_RANDOM_RANDOM_STREAM_H_

#include <memory>
#include <mutex>
#include <string>

#include "absl/functional/function_ref.h"
#include "weir/core/runtime/kernel.h"
#include "weir/kernels/lib/draw_order.h"

namespace weir {

// The generator of one stateful random node in one session. Every run continues where the last one
// stopped, whichever Plan the node is in. Seeds (0, 0) start it at an unpredictable position.
// Thread-safe.
class RandomStream : public Resource, public SeedSource {
 public:
  // Returns the stream of `init`'s node, which is seeded from its attributes seed and seed2.
  static std::shared_ptr<RandomStream> Of(const KernelInit& init);
  // Returns the name of a node's stream: the node's name; in the body of a function that is called,
  // after the name of the function and a colon.
  static std::string NameOf(const Node& node);
  // Returns the stream of this name, which starts at `start` if it is new.
  static std::shared_ptr<RandomStream> Named(ResourceMap& resources, const std::string& name,
                                             absl::FunctionRef<Philox()> start);

  RandomStream(std::string name, Philox start) : name_(std::move(name)), next_(start) {}
  std::string Describe() const override { return "random stream of '" + name_ + "'"; }
  std::string source_name() const override { return name_; }

  // The stream's key, the upper half of its counter, and the lower half.
  State state() const override;
  void Restore(const State& state) override;

  // Reserves `blocks` blocks for this run, in the order of the step's draws. Returns their start.
  // Kernels of ops with Effect::kDraws call it at most once in a run.
  Philox Reserve(uint64_t blocks, const StepInfo& step) {
    if (step.draws == nullptr) return Reserve(blocks);
    return step.draws->Draw(*this, [&] { return Reserve(blocks); });
  }
  // Reserves the blocks for this many samples of a distribution.
  Philox ReserveSamples(int64_t samples, const StepInfo& step) {
    return Reserve(static_cast<uint64_t>(samples * kReservedPerSample), step);
  }

 private:
  Philox Reserve(uint64_t blocks) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Philox start = next_;
    next_.Skip(blocks);
    return start;
  }

  const std::string name_;
  mutable std::mutex mutex_;
  Philox next_;
};

// Returns the shape that input i, an integer vector, holds. Returns INVALID_ARGUMENT if it holds
// none.
absl::StatusOr<Shape> ShapeInput(const KernelContext& c, int i);

// Returns the stream of a stateless op's seed (input i, two integers).
absl::StatusOr<Philox> SeedInput(const KernelContext& c, int i);

}  // namespace weir

#endif  // WEIR_KERNELS_RANDOM_RANDOM_STREAM_H_
