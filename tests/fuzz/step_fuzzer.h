#ifndef WEIR_TESTS_FUZZ_STEP_FUZZER_H_
#define WEIR_TESTS_FUZZ_STEP_FUZZER_H_

#include <cstdint>
#include <string>
#include <vector>

namespace weir::fuzz {

struct FuzzOptions {
  uint64_t first_seed = 1;
  int seconds = 60;
  int jobs = 1;
  // Limits of each process: address space, CPU time per graph, wall time per graph.
  int64_t memory_mb = 4096;
  int cpu_seconds = 20;
  int wall_seconds = 120;
  std::string keep;  // directory for graphs that caused a failure; empty: they are not saved
};

struct FuzzReport {
  uint64_t runs = 0;
  // "seed 17: killed by signal 11 (Segmentation fault) (saved as ...)", and the output.
  std::vector<std::string> finds;
};

// Imports and runs mutations of `graphs` (serialized GraphDefs) until the time is over, mutation by
// mutation, seed by seed. Each forked process runs some hundred of them, so that a crash, a hang,
// or exceeding the memory limit ends only that process and is reported with its seed. A leak is
// memory in use that grows each time the same graph is run. The caller must be single-threaded.
FuzzReport Fuzz(const std::vector<std::string>& graphs, const FuzzOptions& options);

// Returns the number of heap bytes in use.
int64_t MemoryInUse();
// Returns the graph of one seed.
std::string MutatedGraph(const std::vector<std::string>& graphs, uint64_t seed);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_STEP_FUZZER_H_
