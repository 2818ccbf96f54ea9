#ifndef WEIR_SERVING_BATCHING_H_
#define WEIR_SERVING_BATCHING_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weir/serving/servable.h"

// Batching: calls of several clients run as one step, because a step of 32 rows takes little longer
// than a step of one. The names and defaults are TensorFlow Serving's
// (session_bundle_config.proto, BatchingParameters).
namespace weir::serving {

struct BatchingOptions {
  int64_t max_batch_size = 1000;  // rows of a step
  // How long the first call of a batch waits for others. Zero: not at all, but calls that arrive
  // while all threads are busy share a batch. A call does not wait, either, if the last batch had
  // only one call and a thread is free: at low load, waiting would be in vain.
  std::chrono::microseconds batch_timeout = std::chrono::microseconds(0);
  // So many batches of full size may wait in each lane (see Priority); beyond it: UNAVAILABLE.
  int64_t max_enqueued_batches = 10;
  int num_batch_threads = 0;  // batches at once, at most 1024; 0: processors
  // Rows are added to a batch up to the next of these sizes (copies of its last row, whose results
  // are dropped), because a session compiles a step for each shape, and for 16 combinations of
  // shapes at most; it runs others with a slower plan. In increasing order; the last one is
  // max_batch_size. Empty: the powers of two below max_batch_size, and max_batch_size.
  std::vector<int64_t> allowed_batch_sizes = {};
  // Calls whose inputs differ in other dimensions than the first share a batch: the inputs are
  // padded to the largest, with the first element of the call's tensor as in TensorFlow Serving.
  // The outputs keep the padding, so a result depends on the other calls in the batch. If false,
  // such calls run in different batches.
  bool pad_variable_length_inputs = false;
  // A call of more rows is INVALID_ARGUMENT; 0: no limit. A call of more rows than max_batch_size
  // runs in several batches.
  int64_t max_call_rows = 0;
};

// Returns INVALID_ARGUMENT, with the field, its value and what is allowed, for options that
// contradict each other or are out of range.
absl::Status CheckBatchingOptions(const BatchingOptions& options);

// Parses a file for --batching_parameters_file: BatchingParameters in text format. Returns
// INVALID_ARGUMENT with the line, what was found and what was expected.
//
// enable_large_batch_splitting: if it is true, or not in the file, calls of more than
// max_batch_size rows are split; if it is false, they are INVALID_ARGUMENT. With
// max_execution_batch_size, a batch has that size, and a call may have max_batch_size rows.
// thread_pool_name has no effect: all batchers share their threads.
absl::StatusOr<BatchingOptions> ParseBatchingOptions(absl::string_view text);

// The lane of a call. In each batch, and among the batches of all models, calls of high priority go
// first, and calls of low priority take the room that is left. One batch in nine at least serves a
// model's waiting calls of low priority, so that they make progress under any load.
enum class Priority { kHigh, kLow };

// Collects the calls of one signature of a version into batches. Thread-safe. Batches run on
// threads that all batchers of a process share; models take turns. Under low load, calls run at
// once on their callers' threads.
//
// A row of a result has the same bits as without batching if the ops of the model treat rows
// independently, and if the kernels compute a row alike in steps of any number of rows (products of
// matrices may round differently).
class Batcher {
 public:
  // `servable` must outlive the batcher.
  Batcher(const Servable& servable, std::string signature, const BatchingOptions& options);
  // Finishes the calls that have been made, without waiting for others to join them.
  ~Batcher();

  // Returns FAILED_PRECONDITION, with the tensor and its shape, for a signature whose calls cannot
  // share a step: an input or output that has no batch dimension (the first one, of unknown size),
  // or that holds handles.
  static absl::Status CheckSignature(const SignatureInfo& signature);

  // Runs the call with others'. Calls share a batch if they select the same outputs, and their
  // inputs have the same dimensions after the first. A call that the signature refuses, a call
  // without rows and a traced call run alone. If the step of a batch fails, the batch is halved
  // until each call has the result or the error of its own rows; a model with side effects sees
  // such rows several times.
  //
  // clang-format off
  //   INVALID_ARGUMENT     inputs without a first dimension, or of different numbers of rows; more
  //                        than max_call_rows; the options (see CheckBatchingOptions)
  //   FAILED_PRECONDITION  the signature (see CheckSignature); a result that does not have one row
  //                        for each row of the inputs
  //   UNAVAILABLE          max_enqueued_batches wait already
  //   DEADLINE_EXCEEDED, CANCELLED: the caller's; the other calls of the batch go on
  // clang-format on
  //
  // Other errors are those of Servable::Run.
  absl::StatusOr<NamedTensors> Run(const NamedTensors& inputs,
                                   const std::vector<std::string>& outputs = {},
                                   const RunOptions& options = {},
                                   Priority priority = Priority::kHigh);

  // Makes the call, and then compiles the steps of the allowed batch sizes in the options, by
  // running each with copies of the call's first row. Returns the first error.
  absl::Status WarmUp(const NamedTensors& inputs, const std::vector<std::string>& outputs = {});

  // The rows that wait to be run, in both lanes: a measure of the load.
  int64_t waiting_rows() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::serving

#endif  // WEIR_SERVING_BATCHING_H_
