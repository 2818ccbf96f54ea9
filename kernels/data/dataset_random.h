#ifndef WEIR_KERNELS_DATA_DATASET_RANDOM_H_
#define WEIR_KERNELS_DATA_DATASET_RANDOM_H_

#include <memory>
#include <string>

#include "weir/kernels/data/dataset.h"
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
class SeedGenerator final : public Resource {
 public:
  SeedGenerator(const StreamSeeds& seeds, bool fresh)
      : seeds_(seeds), fresh_(fresh), words_(seeds.Words()) {}

  std::string Describe() const override { return "seed generator"; }
  const StreamSeeds& seeds() const { return seeds_; }
  StreamSeeds Next();

 private:
  const StreamSeeds seeds_;
  const bool fresh_;
  Mutex mutex_;
  PhiloxWords words_ ABSL_GUARDED_BY(mutex_);
};

// Returns the generator whose handle is at an input; a new one for the handle of a placeholder
// (DummySeedGenerator), and for no handle (`input` < 0).
std::shared_ptr<SeedGenerator> SeedGeneratorOf(const KernelContext& c, int input,
                                               const StreamSeeds& seeds, bool fresh);

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_DATASET_RANDOM_H_
