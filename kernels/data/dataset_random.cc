#include "weir/kernels/data/dataset_random.h"

#include <random>

#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/data/iterator_handle.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Seed generators, and datasets of random numbers and of random elements.
namespace weir {

StreamSeeds StreamSeeds::Unpredictable() {
  std::random_device random;
  const auto word = [&random] { return uint64_t{random()} << 32 | random(); };
  const uint64_t first = word();
  return {first, word()};
}

absl::StatusOr<StreamSeeds> StreamSeeds::Read(const KernelContext& c, int input) {
  const std::vector<ArgSpec>& args = c.node().op().inputs();
  int64_t seeds[2] = {};
  for (int i = 0; i < 2; ++i) {
    WEIR_ASSIGN_OR_RETURN(seeds[i], ReadInt(c.input(input + i), args[input + i].name));
  }
  if (seeds[0] == 0 && seeds[1] == 0) return Unpredictable();
  return StreamSeeds{static_cast<uint64_t>(seeds[0]), static_cast<uint64_t>(seeds[1])};
}

StreamSeeds SeedGenerator::seeds() {
  if (IteratorPosition* position = IteratorPosition::Current()) position->Use(*this);
  const MutexLock lock(mutex_);
  return {state_.seed, state_.seed2};
}

StreamSeeds SeedGenerator::Next() {
  if (!fresh_) return seeds();
  if (IteratorPosition* position = IteratorPosition::Current()) position->Use(*this);
  const MutexLock lock(mutex_);
  ++state_.draws;
  const uint64_t first = words_();
  return {first, words_()};
}

SeedSource::State SeedGenerator::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

void SeedGenerator::Restore(const State& state) {
  const MutexLock lock(mutex_);
  state_ = state;
  Philox stream(state.seed, state.seed2);
  stream.Skip(state.draws / 2);  // a block has four words, the seeds of two iterators
  words_ = PhiloxWords(stream);
  if (state.draws % 2 == 1) {
    words_();
    words_();
  }
}

std::shared_ptr<SeedGenerator> SeedGeneratorOf(const KernelContext& c, int input,
                                               const StreamSeeds& seeds, bool fresh) {
  if (input >= 0) {
    const absl::StatusOr<std::shared_ptr<SeedGenerator>> shared = c.resource<SeedGenerator>(input);
    if (shared.ok()) return *shared;
  }
  return std::make_shared<SeedGenerator>(seeds, fresh);
}

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

absl::Status AnonymousSeedGenerator(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const StreamSeeds seeds, StreamSeeds::Read(c, 0));
  bool fresh = true;
  if (c.num_inputs() > 2) {
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(2), 0, "reshuffle"));
    fresh = *c.input_data<bool>(2);
  }
  return SetAnonymous(c, "seed generator", std::make_shared<SeedGenerator>(seeds, fresh));
}

// The generator goes with its last handle.
absl::Status DeleteSeedGenerator(KernelContext& c) { return c.resource<SeedGenerator>(0).status(); }

// An empty handle: the dataset itself holds the seeds.
absl::Status DummySeedGenerator(KernelContext& c) {
  c.SetOutput(0, Tensor::Scalar(ResourceHandle()));
  return absl::OkStatus();
}

// The words of a stream, without end.
absl::Status RandomDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const StreamSeeds seeds, StreamSeeds::Read(c, 0));
  const auto generator = SeedGeneratorOf(c, c.num_inputs() > 2 ? 2 : -1, seeds,
                                         c.node().attr_or("rerandomize_each_iteration", false));
  const auto iterate = [generator] {
    return IteratorOf(
        [words = generator->Next().Words()](const DatasetContext&) mutable -> MaybeElement {
          return Tensors{Tensor::Scalar(int64_t{words()})};
        });
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, {.cardinality = DatasetTraits::kInfinite})));
  return absl::OkStatus();
}

// Keeps each element with probability `rate`.
absl::Status SamplingDataset(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(1), 0, "rate"));
  const float rate = *c.input_data<float>(1);
  WEIR_ASSIGN_OR_RETURN(const StreamSeeds seeds, StreamSeeds::Read(c, 2));
  const auto generator = std::make_shared<SeedGenerator>(seeds, /*fresh=*/false);
  const auto wrap = [rate, generator](IteratorPtr in) {
    return IteratorOf([in = std::move(in), rate, words = generator->Next().Words()](
                          const DatasetContext& x) mutable -> MaybeElement {
      for (;;) {
        WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
        if (!element || UnitFloat(words()) < rate) return element;
      }
    });
  };
  return WrapDataset(c, wrap);
}

}  // namespace

void AddDatasetRandomKernels(KernelRegistry* r) {
  for (const char* op : {"AnonymousRandomSeedGenerator", "AnonymousSeedGenerator"})
    r->Add(op, kCpu, AnonymousSeedGenerator);
  for (const char* op : {"DeleteRandomSeedGenerator", "DeleteSeedGenerator"})
    r->Add(op, kCpu, DeleteSeedGenerator);
  r->Add("DummySeedGenerator", kCpu, DummySeedGenerator);
  for (const char* op : {"ExperimentalRandomDataset", "RandomDataset", "RandomDatasetV2"})
    r->Add(op, kCpu, RandomDataset);
  r->Add("SamplingDataset", kCpu, SamplingDataset);
}

}  // namespace weir
