#ifndef WEIR_TOOLS_RUN_RESULTS_H_
#define WEIR_TOOLS_RUN_RESULTS_H_

#include <string>
#include <vector>

#include "weir/core/tensor/tensor.h"
#include "weir/tools/lib/cli.h"

// What becomes of the values that a run fetches.
namespace weir::tools {

// A fetched value's name, and the file it goes to; empty: it is printed.
struct ResultTarget {
  std::string label, file;
};

// INVALID_ARGUMENT if a file's name does not say its format: .npy and .json hold one value; .npz,
// .csv, .tsv and .jsonl hold those of all fetches that name the same file.
absl::Status CheckResultFiles(const std::vector<ResultTarget>& targets);

// Prints the values, or writes their files, each of which appears whole: arrays under the names of
// the fetches (.npz), a line for each row of dimension 0 (.csv, csv.h; .jsonl, an object by the
// fetches' names, json_value.h), or the value itself. Names are without ":0".
absl::Status WriteResults(const std::vector<ResultTarget>& targets, const Tensors& values,
                          Console& console);

// Collects the values that several steps fetch, one batch after the other.
class ResultRows {
 public:
  void Add(Tensors fetched) { batches_.push_back(std::move(fetched)); }
  // Joins each fetch's values along dimension 0. Scalars become a vector with one element for each
  // batch. INVALID_ARGUMENT, with the label, for values that differ in their other dimensions.
  absl::StatusOr<Tensors> Join(const std::vector<ResultTarget>& targets) const;

 private:
  std::vector<Tensors> batches_;
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_RUN_RESULTS_H_
