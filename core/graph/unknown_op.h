#ifndef WEIR_CORE_GRAPH_UNKNOWN_OP_H_
#define WEIR_CORE_GRAPH_UNKNOWN_OP_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"

// Unknown ops: ops used by a graph that are in no registry, such as custom ops of other programs,
// Python functions, and ops of other accelerators. Import keeps their nodes, because most steps do
// not need them. Builders reject such ops.
namespace weir {

// The record of one node's op. The signature is known if the file includes the op's definition, and
// for Python functions. Otherwise the node accepts any inputs and has as many outputs as are used;
// the consumer of an output determines its type, or else an attribute such as `T` or `Tout`.
class UnknownOp : public OpSpec {
 public:
  // `spec` has the signature, or only the name. `node_def` is the imported NodeDef without name,
  // op, inputs and device, serialized; export writes it back.
  UnknownOp(OpSpec spec, bool has_signature, std::string node_def)
      : OpSpec(std::move(spec)), has_signature_(has_signature), node_def_(std::move(node_def)) {}
  bool has_signature() const { return has_signature_; }
  const std::string& node_def() const { return node_def_; }

 private:
  const bool has_signature_;
  const std::string node_def_;
};

// The records of a graph's nodes with unknown ops, stored as a Graph extension.
struct UnknownOps {
  std::vector<std::unique_ptr<const UnknownOp>> ops;
};

// Returns true if the graph's registry lacks the node's op and it is not a function.
bool IsUnknownOp(const Node& node);
// Returns the record of a node for which IsUnknownOp is true.
const UnknownOp& UnknownOpOf(const Node& node);
// Returns true if using an output adds it to the node: an unknown op without a signature.
bool HasOpenOutputs(const Node& node);
// Returns the type that an attribute specifies for an output, or DT_INVALID.
DataType TypeFromAttrs(const Node& node, int output);

// Signatures of ops that only another process can run: PyFunc, PyFuncStateless, EagerPyFunc.
const OpRegistry& ClientOps();

// Returns NOT_FOUND with the op and the reason why this process cannot run it.
absl::Status UnknownOpError(const Node& node);

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_UNKNOWN_OP_H_
