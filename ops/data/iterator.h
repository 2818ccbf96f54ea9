#ifndef WEIR_OPS_DATA_ITERATOR_H_
#define WEIR_OPS_DATA_ITERATOR_H_

#include <string>

#include "weir/core/tensor/api.h"
#include "weir/ops/data/dataset.h"

// Iterators: where a session stands in a data set. The names of nodes are those that Python
// generates.
namespace WEIR_API weir {

// An iterator in the graph, which keeps its position from step to step. A value type: copies are
// handles to the same iterator.
class Iterator {
 public:
  // An iterator without a data set, for data sets whose elements have these dtypes and shapes;
  // MakeInitializer gives it one. Sessions of one server share iterators of the same `shared_name`.
  static Iterator FromStructure(Graph& graph, const ElementSpec& spec,
                                absl::string_view shared_name = {});
  // The iterator that a string, fed or computed, names: that of string_handle() in this session.
  static Iterator FromStringHandle(const Output& string_handle, const ElementSpec& spec);

  // Returns the components of the next element. The step fails with OUT_OF_RANGE at the end, and
  // with FAILED_PRECONDITION before the initializer has run.
  Outputs GetNext(absl::string_view name = {}) const;
  // Starts from the beginning, when it runs. Only of MakeInitializableIterator; otherwise invalid.
  const Operation& initializer() const { return initializer_; }
  // An operation that starts this iterator from the beginning of a data set. INVALID_ARGUMENT if
  // its elements have other dtypes, or shapes that are not compatible.
  Operation MakeInitializer(const Dataset& dataset, absl::string_view name = {}) const;
  // A string scalar to be fetched, and then fed to FromStringHandle.
  const Output& string_handle() const { return string_handle_; }
  // The iterator's resource, and what its elements are.
  const Output& handle() const { return handle_; }
  const ElementSpec& element_spec() const { return spec_; }

 private:
  friend Iterator MakeInitializableIterator(const Dataset& dataset, absl::string_view shared_name);
  friend Iterator MakeOneShotIterator(const Dataset& dataset);
  Iterator(const Output& handle, ElementSpec spec);

  Output handle_, string_handle_;
  Operation initializer_;
  ElementSpec spec_;
};

// Returns an iterator over the data set that starts each time its initializer runs. Tensors that
// the data set depends on are computed then, so that they may be fed.
Iterator MakeInitializableIterator(const Dataset& dataset, absl::string_view shared_name = {});
// Returns an iterator that needs no initializer, and ends for good after one pass. The data set is
// copied to a function, so it may not depend on placeholders, variables or other state:
// INVALID_ARGUMENT with the node.
Iterator MakeOneShotIterator(const Dataset& dataset);

}  // namespace weir

#endif  // WEIR_OPS_DATA_ITERATOR_H_
