#include "weir/kernels/random/random_stream.h"

#include <random>

#include "weir/core/graph/graph.h"
#include "weir/kernels/lib/resumable.h"

namespace weir {

std::string RandomStream::NameOf(const Node& node) {
  const std::vector<CollectionItem> function = node.graph().collection(kFunctionNameCollection);
  if (function.empty()) return node.name();
  return absl::StrCat(std::get<std::string>(function[0]), ":", node.name());
}

std::shared_ptr<RandomStream> RandomStream::Named(ResourceMap& resources, const std::string& name,
                                                  absl::FunctionRef<Philox()> start) {
  // A separate container: resetting the session's variables does not rewind the generators.
  constexpr char kContainer[] = "random streams";
  return resources.LookupOrCreate<RandomStream>(
      kContainer, name, [&] { return std::make_shared<RandomStream>(name, start()); });
}

std::shared_ptr<RandomStream> RandomStream::Of(const KernelInit& init) {
  return Named(init.resources, NameOf(init.node), [&] {
    uint64_t seed = static_cast<uint64_t>(init.attr<int64_t>("seed"));
    uint64_t seed2 = static_cast<uint64_t>(init.attr<int64_t>("seed2"));
    if (seed == 0 && seed2 == 0) {
      std::random_device device;
      seed = device() | uint64_t{device()} << 32;
      seed2 = device() | uint64_t{device()} << 32;
    }
    return Philox(seed, seed2);
  });
}

SeedSource::State RandomStream::state() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {next_.key(), next_.counter_high(), next_.counter_low()};
}

void RandomStream::Restore(const State& state) {
  const std::lock_guard<std::mutex> lock(mutex_);
  next_ = Philox(state.seed, state.draws, state.seed2);
}

namespace {

void TakeStreams(ResourceMap& resources, std::vector<ResumableState>* states,
                 std::vector<std::string>* /*lost*/) {
  for (const std::shared_ptr<RandomStream>& stream : resources.All<RandomStream>()) {
    const SeedSource::State state = stream->state();
    states->push_back(
        {.kind = "random stream",
         .name = stream->source_name(),
         .is_own = true,
         .values = {Tensor::Vector<uint64_t>({state.seed, state.seed2, state.draws})}});
  }
}

bool Draws(const Node& node) { return node.op().traits().effect == Effect::kDraws; }

absl::Status RestoreStream(ResourceMap& resources, const ResumableState& state) {
  if (state.values.size() != 1 || state.values[0].dtype() != DT_UINT64 ||
      state.values[0].shape() != Shape({3})) {
    return DataLoss("it is not the position of a random stream");
  }
  const uint64_t* words = state.values[0].data<uint64_t>();
  RandomStream::Named(resources, state.name, [] {
    return Philox();
  })->Restore({words[0], words[1], words[2]});
  return absl::OkStatus();
}

}  // namespace

ResumableKind RandomStreams() {
  return {.name = "random stream",
          .makes = Draws,
          .take = TakeStreams,
          .restore = RestoreStream,
          .is_named_as_node = true};
}

}  // namespace weir
