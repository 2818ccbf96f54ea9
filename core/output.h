#ifndef WEIR_CORE_OUTPUT_H_
#define WEIR_CORE_OUTPUT_H_

#include <atomic>
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/dtype.h"
#include "weir/core/shape.h"

// Handles to the nodes of a graph and to their outputs.
namespace weir {

class Graph;
class Node;

// Identifies one of the nodes that successively occupy the same address. Nodes live in memory that
// is only ever used for nodes and has a generation counter (see Node::operator new). So a handle
// detects that its graph has been destroyed by reading the counter next to the node.
class Generation {
 public:
  Generation() = default;
  explicit Generation(const Node* node) : value_(node == nullptr ? 0 : Of(node)) {}
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
  Node* node = nullptr;
  int index = 0;
  Generation generation;

  Output() = default;
  Output(Node* n, int i = 0) : node(n), index(i), generation(n) {}
  // Returns false for the result of a failed builder, and after the graph is destroyed.
  bool valid() const { return generation.IsOf(node); }
  // Returns true if its graph has been destroyed.
  bool expired() const { return node != nullptr && !generation.IsOf(node); }
  Graph& graph() const;
  DataType dtype() const;  // base type; DT_INVALID if invalid
  bool is_ref() const;
  const Shape& shape() const;  // as inferred; unknown rank if invalid
  int64_t dim(int i) const;    // -1 if unknown; negative i counts from the end
  std::string name() const;    // "hidden/MatMul:0"
  friend bool operator==(const Output& a, const Output& b) {
    return a.node == b.node && a.index == b.index && a.generation == b.generation;
  }
  friend bool operator!=(const Output& a, const Output& b) { return !(a == b); }
  template <class H>
  friend H AbslHashValue(H h, const Output& o) {
    return H::combine(std::move(h), o.node, o.index);
  }
};
using Outputs = std::vector<Output>;

// A handle to a node that is run for its side effects: an initializer, a training step.
struct Operation : NoTruthValue {
  Node* node = nullptr;
  Generation generation;
  Operation() = default;
  Operation(Node* n) : node(n), generation(n) {}
  Operation(const Output& o) : node(o.node), generation(o.generation) {}
  bool valid() const { return generation.IsOf(node); }
  bool expired() const { return node != nullptr && !generation.IsOf(node); }
  std::string name() const;
  friend bool operator==(const Operation& a, const Operation& b) {
    return a.node == b.node && a.generation == b.generation;
  }
};

}  // namespace weir

#endif  // WEIR_CORE_OUTPUT_H_
