#ifndef WEIR_KERNELS_DATA_CAPTURED_FUNCTION_H_
#define WEIR_KERNELS_DATA_CAPTURED_FUNCTION_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "weir/core/runtime/function.h"
#include "weir/kernels/data/dataset.h"

// Functions that datasets call, for their elements or their state.
namespace weir {

// A function with the captured arguments that follow those of a call.
struct CapturedFunction {
  Function* function = nullptr;
  Tensors captured = {};
  // Whether the end of a mapped sequence is an error (the attribute of that name).
  bool preserve_cardinality = false;
  // Describes a node that changes more than random streams, which a repeated iteration changes
  // again; "" if there is none.
  std::string changes = {};

  absl::StatusOr<Tensors> Call(const DatasetContext& x, const Tensors& args) const;
  // Returns the result for an element. OUT_OF_RANGE means the end, unless the sequence must be as
  // long as the input.
  MaybeElement Map(const DatasetContext& x, const Tensors& element) const;
  // Returns the result of a predicate. INVALID_ARGUMENT if it is no scalar bool.
  absl::StatusOr<bool> Test(const DatasetContext& x, const Tensors& element) const;
  // Returns the result of a function of one integer. INVALID_ARGUMENT, with the name of the
  // function's attribute, if it is no scalar int64.
  absl::StatusOr<int64_t> Number(const DatasetContext& x, const Tensors& args,
                                 absl::string_view attr) const;
};

// Returns the function that an attribute names, without captured arguments.
absl::StatusOr<CapturedFunction> CapturedFunctionOf(const KernelInit& init, absl::string_view attr);
// Returns `f` with the inputs of the list argument `argument` captured.
absl::StatusOr<CapturedFunction> WithCaptured(const KernelContext& c, CapturedFunction f,
                                              absl::string_view argument);
// Returns the inputs of a list argument, in memory that outlives the step.
absl::StatusOr<Tensors> OwnInputs(const KernelContext& c, absl::string_view argument);

// Calls `visit` once for `node` and for each node that computes it, after the node's inputs, and
// then for the nodes of the functions that the node names. `functions` may be null: then for none
// of these.
absl::Status VisitNodesBehind(const Node& node, Functions* functions,
                              absl::FunctionRef<void(const Node&)> visit);

// An iterator over a dataset that only the iterator's owner knows.
struct NestedIterator {
  DatasetPtr dataset;
  std::unique_ptr<DatasetIterator> iterator;
};
absl::StatusOr<NestedIterator> IterateOver(DatasetPtr dataset);
// Begins to iterate over the dataset that a function has returned. INVALID_ARGUMENT, with the name
// of the function's attribute, if it has returned anything else.
absl::StatusOr<NestedIterator> IterateResult(const Tensors& results, absl::string_view attr);

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_CAPTURED_FUNCTION_H_
