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
  // Of each process: address space, processor time for one graph, time on the clock for one.
  int64_t memory_mb = 4096;
  int cpu_seconds = 20;
  int wall_seconds = 120;
  std::string keep;  // a folder for graphs that broke something; empty: they are not kept
};

struct FuzzReport {
  uint64_t runs = 0;
  // "seed 17: killed by signal 11 (Segmentation fault) (kept in ...)", and what it had printed.
  std::vector<std::string> finds;
};

// Imports and runs mutations of `graphs` (serialized GraphDefs) until the time is over: mutation by
// mutation, seed by seed, in processes forked for some hundred of them, so that a crash, a hang, or
// memory beyond the limit ends that process only and is told with its seed. A leak is memory in use
// that grows each time the same graph is run. The caller has one thread.
FuzzReport Fuzz(const std::vector<std::string>& graphs, const FuzzOptions& options);

// Bytes of the heap that are not free.
int64_t MemoryInUse();
// The graph of one seed.
std::string MutatedGraph(const std::vector<std::string>& graphs, uint64_t seed);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_STEP_FUZZER_H_
