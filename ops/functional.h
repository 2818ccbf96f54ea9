#ifndef WEIR_OPS_FUNCTIONAL_H_
#define WEIR_OPS_FUNCTIONAL_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/ops/cond.h"
#include "weir/ops/while_loop.h"

// Functions applied to the rows of tensors, one after the other, in a loop of the step: TensorFlow
// 1's map_fn, scan, foldl and case. All are differentiable. What fails gives as many invalid
// outputs as it promises.
namespace weir {

struct MapOptions {
  // The types of what the function returns; default: those of `elems`.
  std::optional<DataTypes> dtypes = {};
  int64_t parallel_iterations = 10;
  // What the function returns has one shape for all rows.
  bool infer_shape = true;
  std::string name = "map";
};

// What `fn` gives for each row of the tensors (element i of their first dimension, which all have
// in common), along a new first dimension. `fn` is called once, now; what it builds runs once a
// row.
//
//   Output squares = MapFn([](const Outputs& row) { return Outputs{row[0] * row[0]}; }, {x})[0];
using RowFn = std::function<Outputs(const Outputs& row)>;
Outputs MapFn(const RowFn& fn, const Outputs& elems, const MapOptions& options = {});

struct ScanOptions {
  int64_t parallel_iterations = 10;
  // The last row first.
  bool reverse = false;
  bool infer_shape = true;
  std::string name = "scan";
};

// Starts with `initial`, and replaces it by fn(it, row) for each row of `elems` in turn; all that
// come of it, along a new first dimension. An empty `initial` starts with the first row.
//
//   Output sums = Scan([](const Outputs& sum, const Outputs& row) {
//     return Outputs{sum[0] + row[0]};
//   }, {x}, {zero})[0];
using ScanFn = std::function<Outputs(const Outputs& state, const Outputs& row)>;
Outputs Scan(const ScanFn& fn, const Outputs& elems, const Outputs& initial,
             const ScanOptions& options = {});

struct CaseOptions {
  // INVALID_ARGUMENT when run, if more than one predicate is true.
  bool exclusive = false;
  std::string name = "case";
};

// The outputs of the function whose predicate is the first that is true, else those of
// `otherwise`: one Cond in another.
Outputs Case(const std::vector<std::pair<Output, BranchListFn>>& cases,
             const BranchListFn& otherwise, const CaseOptions& options = {});

}  // namespace weir

#endif  // WEIR_OPS_FUNCTIONAL_H_
