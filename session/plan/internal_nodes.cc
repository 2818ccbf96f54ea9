#include "weir/session/plan/internal_nodes.h"

#include <map>
#include <string>
#include <utility>

#include "weir/core/graph/shape_context.h"
#include "weir/core/tensor/mutex.h"

namespace weir {

namespace {

// The runtime's internal ops. Their nodes only carry types, and all plans share them.
class InternalNodes {
 public:
  InternalNodes() : graph_(Register(&ops_)) {}

  const Node& Get(absl::string_view op, DataType dtype) {
    const MutexLock lock(mutex_);
    const Node*& node = nodes_[{std::string(op), dtype}];
    if (node == nullptr) {
      Node* source = NodeBuilder(graph_, "_Source").Name("Source").Attr("T", dtype).Build();
      node = NodeBuilder(graph_, op).Name(op.substr(1)).Input(source->output()).Build();
    }
    return *node;
  }

  const OpRegistry& ops() const { return ops_; }

 private:
  static const OpRegistry& Register(OpRegistry* ops) {
    ops->Add(OpSpec("_Source")
                 .Out("y: T")
                 .Attr("T: type")
                 .InferShape(UnknownShape)
                 .Doc("A placeholder for any value."));
    ops->Add(OpSpec("_Read")
                 .In("x: T")
                 .Out("y: T")
                 .Attr("T: type")
                 .Moves(Movement::kStored)
                 .InferShape(SameShape)
                 .Doc("Reads the value of a reference."));
    ops->Add(OpSpec("_Copy")
                 .In("x: T")
                 .Out("y: T")
                 .Attr("T: type")
                 .Moves(Movement::kCopy)
                 .InferShape(SameShape)
                 .Doc("Copies a tensor to another device."));
    ops->Add(OpSpec("_Wait").In("x: T").Attr("T: type").Doc("Waits for its control inputs."));
    const auto add_subplan = [ops](const char* op, const char* doc) {
      ops->Add(OpSpec(op)
                   .In("args: Targs")
                   .Out("results: Tresults")
                   .Attr("Targs: list(type)")
                   .Attr("Tresults: list(type)")
                   .Attr("fused_ops: list(string)")
                   .InferShape(UnknownShape)
                   .Doc(doc));
    };
    add_subplan("_TiledSubplan", "Runs a subplan on a batch, slice by slice.");
    add_subplan("_CachedSubplan", "Runs a subplan of step-invariant values; caches its results.");
    return *ops;
  }

  Mutex mutex_;
  OpRegistry ops_;
  Graph graph_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<std::string, DataType>, const Node*> nodes_ ABSL_GUARDED_BY(mutex_);
};

InternalNodes& AllInternalNodes() {
  static InternalNodes* const nodes = new InternalNodes;
  return *nodes;
}

}  // namespace

const Node& InternalNode(absl::string_view op, DataType dtype) {
  return AllInternalNodes().Get(op, dtype);
}
const OpRegistry& InternalOps() { return AllInternalNodes().ops(); }

}  // namespace weir
