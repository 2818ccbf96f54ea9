#ifndef WEIR_SERVING_BATCHING_H_
#define WEIR_SERVING_BATCHING_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/serving/servable.h"

// Batching: requests of several clients run as one step, because a step of 32 rows takes little
// longer than a step of one. The names and defaults are TensorFlow Serving's
// (session_bundle_config.proto, BatchingParameters).
namespace weir::serving {

struct BatchingOptions {
  int64_t max_batch_size = 1000;  // rows
  std::chrono::microseconds batch_timeout = std::chrono::microseconds(0);
  int64_t max_enqueued_batches = 10;  // beyond it: UNAVAILABLE
  int num_batch_threads = 0;          // batches at once; 0: processors
  // If set, a batch is padded to the next of these sizes, so that a step is compiled for few
  // shapes. In order; the last one is max_batch_size.
  std::vector<int64_t> allowed_batch_sizes = {};
  // Requests whose inputs differ in other dimensions than the first are padded to the largest.
  bool pad_variable_length_inputs = false;
};

// Parses a file for --batching_parameters_file: BatchingParameters in text format. Returns
// INVALID_ARGUMENT with the line, what was found and what was expected.
absl::StatusOr<BatchingOptions> ParseBatchingOptions(absl::string_view text);

// Collects the calls of one signature of a version into batches. Thread-safe. Batches run on
// threads that all batchers of a process share, when they are full or their first call has waited
// for `batch_timeout`; under low load a call runs at once when no batch is running and the time-out
// is zero.
class Batcher {
 public:
  // `servable` must outlive the batcher.
  Batcher(const Servable& servable, std::string signature, const BatchingOptions& options);
  // Finishes the calls that have been made.
  ~Batcher();

  // Runs the call with others'. A call that cannot be batched (inputs without rows, of different
  // numbers of rows) is INVALID_ARGUMENT; one of more rows than max_batch_size is split. The error
  // of a batch is that of all of its calls; a call whose own inputs the signature refuses never
  // joins one.
  //
  //   UNAVAILABLE   max_enqueued_batches wait already
  absl::StatusOr<NamedTensors> Run(const NamedTensors& inputs,
                                   const std::vector<std::string>& outputs = {},
                                   const RunOptions& options = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::serving

#endif  // WEIR_SERVING_BATCHING_H_
