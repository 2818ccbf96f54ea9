#ifndef WEIR_CORE_GRAPH_OUTPUT_H_
#define WEIR_CORE_GRAPH_OUTPUT_H_

#include <atomic>
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/core/tensor/dtype.h"
#include "weir/core/tensor/shape.h"
#include "weir/core/tensor/status.h"

// Handles to the nodes of a graph and to their outputs.
namespace WEIR_API weir {

class Graph;
class Node;
struct HandleData;

// Identifies one of the nodes that successively occupy the same address. Nodes live in memory that
// is only ever used for nodes and has a generation counter (see Node::operator new). So a handle
// detects that its graph has been destroyed by reading the counter next to the node.
class Generation {
 public:
  Generation() = default;
  // The generation of the node that lives at this address now; null: of no node.
  explicit Generation(const Node* node) : value_(node == nullptr ? 0 : Of(node)) {}
  // Whether the node at this address is still the one that the generation was taken of.
  bool IsOf(const Node* node) const { return node != nullptr && Of(node) == value_; }
  friend bool operator==(Generation a, Generation b) { return a.value_ == b.value_; }

 private:
  friend class Node;
  static uint32_t Of(const Node* node) {
    return (reinterpret_cast<const std::atomic<uint32_t>*>(node) - 1)
        ->load(std::memory_order_relaxed);
  }
  uint32_t value_ = 0;
};

// The base of graph handles; makes their use as a condition a compile-time error. Such a condition
// would either ask at graph construction time for a value that is only known at run time, or merely
// test whether the handle is valid.
struct NoTruthValue {
  // Never compiles for bool: see above.
  template <std::same_as<bool> T>
  explicit operator T() const {
    static_assert(sizeof(T) == 0,
                  "A tensor or operation of a graph cannot be used as a condition while the graph "
                  "is built. Combine tensors with LogicalAnd, LogicalOr and LogicalNot (also & and "
                  "|), branch with Cond, and check handles with .valid().");
    return false;
  }
};

// A handle to one output of a node; builders take and return these. Valid while its graph lives. A
// builder that fails returns an invalid Output and stores the error in the graph (Graph::status);
// builders also accept invalid Outputs.
struct Output : NoTruthValue {
  Node* node = nullptr;   // null: invalid
  int index = 0;          // of the node's output, from 0
  Generation generation;  // of the node, when the handle was made

  Output() = default;
  // A handle to output i of a node. If the node has fewer outputs, the graph gets the error of
  // CheckIndex as soon as a builder takes the handle or asks for more than its name.
  Output(Node* n, int i = 0) : node(n), index(i), generation(n) {}
  // Returns false for the result of a failed builder, and after the graph is destroyed.
  bool valid() const { return generation.IsOf(node); }
  // Returns true if its graph has been destroyed.
  bool expired() const { return node != nullptr && !generation.IsOf(node); }
  // The node's graph. The handle is valid.
  Graph& graph() const;
  // Returns INVALID_ARGUMENT if the node of a valid handle has no output of this index.
  absl::Status CheckIndex() const;
  std::string name() const;    // "hidden/MatMul:0"
  DataType dtype() const;      // base type; DT_INVALID if invalid
  bool is_ref() const;         // whether the output is a reference to a variable
  const Shape& shape() const;  // as inferred; unknown rank if invalid
  int64_t dim(int i) const;    // -1 if unknown; negative i counts from the end
  // What is known of the variable behind a resource; null: nothing.
  const HandleData* handle_data() const;
  friend bool operator==(const Output& a, const Output& b) {
    return a.node == b.node && a.index == b.index && a.generation == b.generation;
  }
  friend bool operator!=(const Output& a, const Output& b) { return !(a == b); }
  template <class H>
  friend H AbslHashValue(H h, const Output& o) {
    return H::combine(std::move(h), o.node, o.index);
  }
};
// Outputs, in an order that the function which takes or returns them states.
using Outputs = std::vector<Output>;

// A handle to a node that is run for its side effects: an initializer, a training step.
struct Operation : NoTruthValue {
  Node* node = nullptr;   // null: invalid
  Generation generation;  // of the node, when the handle was made
  Operation() = default;
  // A handle to a node, or to the node of an output; null is invalid.
  Operation(Node* n) : node(n), generation(n) {}
  Operation(const Output& o) : node(o.node), generation(o.generation) {}
  // As those of Output.
  bool valid() const { return generation.IsOf(node); }
  bool expired() const { return node != nullptr && !generation.IsOf(node); }
  std::string name() const;  // "hidden/MatMul"; "" if invalid
  friend bool operator==(const Operation& a, const Operation& b) {
    return a.node == b.node && a.generation == b.generation;
  }
};

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_OUTPUT_H_
