#ifndef WEIR_OPS_CONTAINERS_FUNCTIONAL_H_
#define WEIR_OPS_CONTAINERS_FUNCTIONAL_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/while_loop.h"

// Functions applied to the rows of tensors, one row after the other, in a loop of the step:
// TensorFlow 1's map_fn, scan, foldl and case. All are differentiable. On failure each returns as
// many invalid outputs as it would return results.
namespace WEIR_API weir {

// Options of MapFn.
struct MapOptions {
  // The dtypes of the function's results; default: those of `elems`.
  std::optional<DataTypes> dtypes = {};
  int64_t parallel_iterations = 10;
  // The function's results have the same shape for all rows.
  bool infer_shape = true;
  std::string name = "map";
};

// Applies `fn` to each row of the tensors (element i of the first dimension, whose size all tensors
// share) and stacks the results along a new first dimension. `fn` is called once, at graph
// construction; the nodes it adds run once per row.
//
//   Output squares = MapFn([](const Outputs& row) { return Outputs{row[0] * row[0]}; }, {x})[0];
using RowFn = std::function<Outputs(const Outputs& row)>;
Outputs MapFn(const RowFn& fn, const Outputs& elems, const MapOptions& options = {});

// Options of Scan.
struct ScanOptions {
  // Recorded in the graph; Weir runs one iteration after the other.
  int64_t parallel_iterations = 10;
  // Processes the last row first.
  bool reverse = false;
  bool infer_shape = true;
  std::string name = "scan";
};

// Starts with the state `initial` and replaces it by fn(state, row) for each row of `elems` in
// turn. Returns all states stacked along a new first dimension. If `initial` is empty, the first
// row is the initial state.
//
//   Output sums = Scan([](const Outputs& sum, const Outputs& row) {
//     return Outputs{sum[0] + row[0]};
//   }, {x}, {zero})[0];
using ScanFn = std::function<Outputs(const Outputs& state, const Outputs& row)>;
Outputs Scan(const ScanFn& fn, const Outputs& elems, const Outputs& initial,
             const ScanOptions& options = {});

// Options of Case.
struct CaseOptions {
  // The step fails with INVALID_ARGUMENT if more than one predicate is true.
  bool exclusive = false;
  std::string name = "case";
};

// Returns the outputs of the first function whose predicate is true, or those of `otherwise`. Built
// from nested Conds.
Outputs Case(const std::vector<std::pair<Output, BranchListFn>>& cases,
             const BranchListFn& otherwise, const CaseOptions& options = {});

}  // namespace weir

#endif  // WEIR_OPS_CONTAINERS_FUNCTIONAL_H_
