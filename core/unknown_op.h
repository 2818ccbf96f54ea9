#ifndef WEIR_CORE_UNKNOWN_OP_H_
#define WEIR_CORE_UNKNOWN_OP_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/core/graph.h"

// Ops that a graph uses and no registry has: custom ops of other programs, Python functions, ops of
// other accelerators. Import keeps their nodes, because most steps need none of them. A builder
// still refuses such an op.
namespace weir {

// The record of one node's op. A signature is known if the file brings the op's definition along,
// or for Python functions. Without one, the node takes whatever its inputs are, and has as many
// outputs as are used; who takes an output tells its type, else an attribute such as `T` or `Tout`.
class UnknownOp : public OpSpec {
 public:
  // `spec` has the signature, or only the name. `node_def`: the node's NodeDef as it was imported,
  // without name, op, inputs and device; export gives its bytes back.
  UnknownOp(OpSpec spec, bool has_signature, std::string node_def)
      : OpSpec(std::move(spec)), has_signature_(has_signature), node_def_(std::move(node_def)) {}
  bool has_signature() const { return has_signature_; }
  const std::string& node_def() const { return node_def_; }

 private:
  const bool has_signature_;
  const std::string node_def_;
};

// The records of a graph's nodes: an extension of it.
struct UnknownOps {
  std::vector<std::unique_ptr<const UnknownOp>> ops;
};

// The graph's registry lacks the node's op, which is no function either.
bool IsUnknownOp(const Node& node);
// The record of a node for which IsUnknownOp is true.
const UnknownOp& UnknownOpOf(const Node& node);
// Whether the node gets an output when one is used: an unknown op without a signature.
bool HasOpenOutputs(const Node& node);
// What an attribute says of the type of an output; DT_INVALID if none does.
DataType TypeFromAttrs(const Node& node, int output);

// Signatures of ops that only another process can run: PyFunc, PyFuncStateless, EagerPyFunc.
const OpRegistry& ClientOps();

// NOT_FOUND with the op and why this process cannot run it.
absl::Status UnknownOpError(const Node& node);

}  // namespace weir

#endif  // WEIR_CORE_UNKNOWN_OP_H_
