#ifndef WEIR_CAPI_UPDATED_INPUTS_H_
#define WEIR_CAPI_UPDATED_INPUTS_H_

#include <set>
#include <utility>

#include "weir/core/graph/graph.h"

namespace weir::capi {

// The inputs of a graph that TF_UpdateEdge has set, an Extension of the graph.
// TF_OperationToNodeDef writes "x:0" for them where it writes "x" for others, as TensorFlow does.
// Operations are read without the lock of their graph, so all graphs share one record and its lock.
class UpdatedInputs {
 public:
  UpdatedInputs() = default;
  ~UpdatedInputs();
  UpdatedInputs(const UpdatedInputs&) = delete;
  UpdatedInputs& operator=(const UpdatedInputs&) = delete;

  // Records input `index` of a node of the graph.
  void Add(const Node* node, int index);
  // Returns whether an input is recorded, of a node of any graph.
  static bool Has(const Node* node, int index);

 private:
  using Inputs = std::set<std::pair<const Node*, int>>;
  struct Record;
  static Record& All();

  Inputs own_;
};

}  // namespace weir::capi

#endif  // WEIR_CAPI_UPDATED_INPUTS_H_
