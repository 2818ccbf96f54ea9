#ifndef WEIR_KERNELS_DATA_DATASET_RANDOM_H_
#define WEIR_KERNELS_DATA_DATASET_RANDOM_H_

#include <memory>
#include <string>

#include "weir/kernels/data/dataset.h"
#include "weir/kernels/data/iterator_state.h"
#include "weir/kernels/lib/philox.h"

// The random streams of datasets, number for number those of TensorFlow.
namespace weir {

// The two seeds of a stream. Two zeros stand for seeds that nobody can predict.
struct StreamSeeds {
  uint64_t first = 0, second = 0;

  PhiloxWords Words() const { return PhiloxWords(Philox(first, second)); }
  // Reads the scalars at two inputs, and replaces two zeros. Returns INVALID_ARGUMENT for other
  // shapes.
  static absl::StatusOr<StreamSeeds> Read(const KernelContext& c, int input);
  static StreamSeeds Unpredictable();
};

// Gives each iterator of a dataset its seeds: two words of the stream of the dataset's seeds or,
// if not `fresh`, these seeds themselves. Iterators of several datasets, and of several steps, may
// share a generator: its handle is the output of AnonymousSeedGenerator. Thread-safe.
class SeedGenerator final : public Resource, public SeedSource {
 public:
  SeedGenerator(const StreamSeeds& seeds, bool fresh) : fresh_(fresh) {
    Restore({seeds.first, seeds.second, 0});
  }

  std::string Describe() const override { return "seed generator"; }
  // Returns the dataset's seeds.
  StreamSeeds seeds();
  StreamSeeds Next();
  State state() const override;
  void Restore(const State& state) override;

 private:
  const bool fresh_;
  mutable Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
  PhiloxWords words_ ABSL_GUARDED_BY(mutex_){Philox()};
};

// Returns the generator whose handle is at an input; a new one for the handle of a placeholder
// (DummySeedGenerator), and for no handle (`input` < 0).
std::shared_ptr<SeedGenerator> SeedGeneratorOf(const KernelContext& c, int input,
                                               const StreamSeeds& seeds, bool fresh);

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_DATASET_RANDOM_H_
