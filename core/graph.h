#ifndef WEIR_CORE_GRAPH_H_
#define WEIR_CORE_GRAPH_H_

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "weir/core/attr.h"
#include "weir/core/name_table.h"
#include "weir/core/op.h"
#include "weir/core/per_thread.h"

namespace weir {

class FunctionLibrary;
class Graph;
class Node;

// Which of the nodes that lie at an address, one after another, a handle means: nodes are made in
// memory that is only ever used for nodes, and counts its uses (Node::operator new). So a handle
// can tell that its graph is gone, for the price of reading a number beside the node.
class Generation {
 public:
  Generation() = default;
  explicit Generation(const Node* node) : use_(node == nullptr ? 0 : Of(node)) {}
  bool IsOf(const Node* node) const { return node != nullptr && Of(node) == use_; }
  friend bool operator==(Generation a, Generation b) { return a.use_ == b.use_; }

 private:
  friend class Node;
  static uint32_t Of(const Node* node) {
    return (reinterpret_cast<const std::atomic<uint32_t>*>(node) - 1)
        ->load(std::memory_order_relaxed);
  }
  uint32_t use_ = 0;
};

// What handles of a graph derive from: a condition on one would ask, when the graph is built, for
// what is known when it runs, or mean no more than that the handle is valid. It does not compile.
struct NoTruthValue {
  template <std::same_as<bool> T>
  explicit operator T() const {
    static_assert(sizeof(T) == 0,
                  "What a graph computes has no truth value while the graph is built. Combine "
                  "tensors with LogicalAnd, LogicalOr and LogicalNot (also & and |), branch with "
                  "Cond, and ask by .valid() whether a handle means something.");
    return false;
  }
};

// One output of a node: what builders take and return. A value; valid while its graph lives, and
// invalid after that. Builders that fail return an invalid Output, and accept one: the error has
// stuck to the graph (Graph::status).
struct Output : NoTruthValue {
  Node* node = nullptr;
  int index = 0;
  Generation use;

  Output() = default;
  Output(Node* n, int i = 0) : node(n), index(i), use(n) {}
  // False after a builder that failed, and once its graph is gone.
  bool valid() const { return use.IsOf(node); }
  // Its graph is gone.
  bool expired() const { return node != nullptr && !use.IsOf(node); }
  Graph& graph() const;
  DataType dtype() const;  // base type; DT_INVALID if invalid
  bool is_ref() const;
  const Shape& shape() const;  // as far as inferred; unknown rank if invalid
  int64_t dim(int i) const;    // -1 if unknown; negative i counts from the end
  std::string name() const;    // "hidden/MatMul:0"
  friend bool operator==(const Output& a, const Output& b) {
    return a.node == b.node && a.index == b.index && a.use == b.use;
  }
  friend bool operator!=(const Output& a, const Output& b) { return !(a == b); }
  template <class H>
  friend H AbslHashValue(H h, const Output& o) {
    return H::combine(std::move(h), o.node, o.index);
  }
};
using Outputs = std::vector<Output>;

// A node run for its effect: an initializer, a training step.
struct Operation : NoTruthValue {
  Node* node = nullptr;
  Generation use;
  Operation() = default;
  Operation(Node* n) : node(n), use(n) {}
  Operation(const Output& o) : node(o.node), use(o.use) {}
  bool valid() const { return use.IsOf(node); }
  bool expired() const { return node != nullptr && !use.IsOf(node); }
  std::string name() const;
  friend bool operator==(const Operation& a, const Operation& b) {
    return a.node == b.node && a.use == b.use;
  }
};

// What a resource output refers to, as far as known when the graph is built: shape rules of reads
// need it.
struct HandleData {
  DataType dtype = DT_INVALID;
  Shape shape = Shape::UnknownRank();
};

// A node of a graph. Made by NodeBuilder or import, owned by its graph, at one address for the
// graph's life.
class Node {
 public:
  // From memory that is kept for nodes for ever; see Generation.
  static void* operator new(size_t bytes);
  static void operator delete(void* memory);

  const std::string& name() const { return name_; }
  const OpSpec& op() const { return *op_; }
  const std::string& op_name() const { return op_->name(); }
  int id() const { return id_; }  // position in Graph::nodes()
  Graph& graph() const { return *graph_; }

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Output& input(int i) const { return inputs_[i]; }
  absl::Span<const Output> inputs() const { return inputs_; }
  absl::Span<Node* const> control_inputs() const { return control_inputs_; }
  // The type the signature asks for at input i, with reference types as such.
  DataType input_type(int i) const { return input_types_[i]; }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // With reference types as such.
  DataType output_type(int i) const { return outputs_[i].type; }
  const Shape& output_shape(int i) const { return outputs_[i].shape; }
  const HandleData* output_handle(int i) const { return outputs_[i].handle.get(); }
  Output output(int i = 0) const { return Output(const_cast<Node*>(this), i); }
  // The inputs (outputs) that belong to an argument of the signature: [first, last). {0, 0} if
  // there is no such one.
  std::pair<int, int> InputRange(absl::string_view arg) const;
  std::pair<int, int> OutputRange(absl::string_view arg) const;

  // The device asked for, as text ("" for none). Where the node runs is the Plan's decision.
  const std::string& device() const;
  // Every attribute of the signature has a value here, defaults included; `_class` and other marks
  // as well.
  const AttrMap& attrs() const { return attrs_; }
  const AttrValue* FindAttr(absl::string_view name) const;
  // The value of an attribute that the signature has with this type; a mismatch is a bug in the
  // caller. Types: std::string, int64_t, float, bool, DataType, Shape, Tensor, FunctionRef, and
  // vectors of them.
  template <class T>
  T attr(absl::string_view name) const;
  // The same, or `fallback` if the attribute is absent or of another kind.
  template <class T>
  T attr_or(absl::string_view name, T fallback) const;
  // Names from "loc:@x" entries of `_class`.
  std::vector<std::string> colocations() const;
  // "hidden/MatMul (MatMul)": how messages name a node.
  std::string Label() const;

 private:
  friend class Graph;
  friend class GraphImporter;
  friend class NodeBuilder;
  struct OutputInfo {
    DataType type = DT_INVALID;
    Shape shape = Shape::UnknownRank();
    std::unique_ptr<HandleData> handle;
  };
  void SetOutputTypes(const NodeTypes& types) {
    outputs_.resize(types.size());
    for (size_t i = 0; i < types.size(); ++i) outputs_[i].type = types[i];
  }

  Graph* graph_ = nullptr;
  const OpSpec* op_ = nullptr;
  int id_ = -1;
  bool unclaimed_ = false;  // one of Graph::unclaimed_
  std::string name_;
  const std::string* device_ = nullptr;  // of Graph::devices_; null if none is asked for
  absl::InlinedVector<Output, 2> inputs_;
  NodeTypes input_types_;
  absl::InlinedVector<Node*, 2> control_inputs_;
  absl::InlinedVector<OutputInfo, 1> outputs_;
  AttrMap attrs_;
};

// Anything that a collection holds beyond numbers, strings, tensors and ops: variables, savers,
// users' objects.
class CollectionObject {
 public:
  virtual ~CollectionObject() = default;
  virtual std::string name() const {
    return "";
  }  // what `get_collection(key, scope)` filters by; "" has none
};
// A handle that stands for such an object, and is made from it again: Variable.
template <class T>
concept CollectionHandle = requires(const T& handle) {
  { handle.info() } -> std::convertible_to<std::shared_ptr<CollectionObject>>;
};

// What a collection holds one of. A handle goes in as its object, not as a tensor that is read from
// it.
class CollectionItem : public std::variant<int64_t, float, std::string, Output, Operation,
                                           std::shared_ptr<CollectionObject>> {
 public:
  template <class T>
  requires(!std::derived_from<std::remove_cvref_t<T>, CollectionItem>) CollectionItem(T&& value)
      : variant(Alternative(std::forward<T>(value))) {}

 private:
  template <class T>
  static variant Alternative(T&& value) {
    if constexpr (CollectionHandle<std::remove_cvref_t<T>>) {
      return std::shared_ptr<CollectionObject>(value.info());
    } else {
      return std::forward<T>(value);
    }
  }
};

struct GraphOptions {
  // The kind of variables where neither the call nor the scope says: resource variables, or (false)
  // TensorFlow 1's reference variables.
  bool use_resource = true;
};

struct GraphVersions {
  int producer = 2474;
  int min_consumer = 0;
  std::vector<int> bad_consumers;
};

// A graph under construction: nodes in the order they were made, a stack of scopes that new nodes
// are made in (core/scope.h), named collections, and the first error that happened. One graph is
// built by one thread at a time, and each has a stack of scopes of its own; a graph that is no
// longer changed may be read, and sessions made of it, from many. Nodes live as long as the graph.
class Graph {
 public:
  // A graph of the built-in ops. Inline, so that core itself does not depend on them.
  explicit Graph(GraphOptions options = {}) : Graph(BuiltinOps(), options) {}
  // A graph of these ops, which outlive it.
  explicit Graph(const OpRegistry& ops, GraphOptions options = {});
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const GraphOptions& options() const { return options_; }
  const OpRegistry& ops() const { return ops_; }
  GraphVersions& versions() { return versions_; }
  const GraphVersions& versions() const { return versions_; }

  // OK, or the first error of a builder, with the node's name, op and input shapes. Sessions refuse
  // a graph with an error.
  const absl::Status& status() const { return status_; }
  // Keeps `status` if it is the first error. Returns status().
  const absl::Status& Fail(const absl::Status& status);
  // Forgets the error: for tests, and for builders that try something else.
  absl::Status TakeStatus();

  // No more nodes: adding one is FAILED_PRECONDITION.
  void Finalize() { finalized_ = true; }
  bool finalized() const { return finalized_; }

  absl::Span<const std::unique_ptr<Node>> nodes() const { return nodes_; }
  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  // Null if there is none.
  Node* FindNode(absl::string_view name) const;
  // "name:1", "name" (output 0). NOT_FOUND; of a node that is there it says how
  // many outputs it has. INVALID_ARGUMENT for "name:x".
  absl::StatusOr<Output> FindOutput(absl::string_view name) const;
  // A name that no node or scope has yet, as TensorFlow makes it: `name`, `name_1`, ... (case
  // ignored). Absolute: the current name scope is not applied. `mark` also takes the name.
  std::string UniqueName(absl::string_view name, bool mark = true);

  // `value`, if it was built to be NamedAfterUser and has no user yet, is named as if it were made
  // here and now.
  void NameHere(const Output& value);

  // Adds or replaces control edges, or replaces an input; the types must agree. For import (loops
  // have back edges) and rewriting.
  absl::Status AddControlInput(Node* node, Node* control);
  absl::Status SetControlInputs(Node* node, absl::Span<Node* const> controls);
  absl::Status SetInput(Node* node, int index, Output value);
  void SetAttr(Node* node, absl::string_view name, AttrValue value);
  void SetDevice(Node* node, absl::string_view device);
  // What these did to nodes that a session may have run, which goes on with them as they were. A
  // session says that it runs (some of) the nodes that there are, and looks here.
  struct Change {
    const Node* node;
    const char* what;  // "setting attribute"
  };
  const std::vector<Change>& changes() const { return changes_; }
  void KeepChanges() const;
  // Infers output shapes anew from the inputs' shapes and merges them with what is known.
  absl::Status InferShapes(Node* node);
  // Sharpens what is known of an output's shape; INVALID_ARGUMENT if it contradicts.
  absl::Status RefineShape(Output output, const Shape& shape);

  // ---- scopes: the stack itself, of this thread; users open scopes with the guards of
  // core/scope.h.
  const std::string& name_scope();  // "" or "a/b/" with the slash
  void set_name_scope(std::string scope);
  using DeviceFn = std::function<std::string(const Node&)>;
  // New nodes run after `controls`. One that reads a member of the group, or one of `controls`,
  // does so anyway and gets no edge of its own (as in TensorFlow, whose graphs ours must equal).
  struct ControlGroup {
    std::vector<Node*> controls;
    absl::flat_hash_set<const Node*> members;  // made in the scope so far
  };
  struct Context {
    std::vector<DeviceFn> devices;  // outermost first; merged field by field, inner wins
    std::vector<std::shared_ptr<ControlGroup>>
        control_groups;                                    // one a scope of control dependencies
    std::vector<std::string> colocations;                  // "loc:@x", given to every new node
    std::vector<std::pair<std::string, AttrValue>> attrs;  // given to every new node
    std::string container;
  };
  Context& context();

  // ---- random seeds: the rule of TensorFlow's get_seed. Returns {seed, seed2} for an op with the
  // given op-level seed.
  void set_seed(std::optional<int64_t> seed) { seed_ = seed; }
  std::optional<int64_t> seed() const { return seed_; }
  std::pair<int64_t, int64_t> NextSeed(std::optional<int64_t> op_seed);

  // ---- collections: named ordered lists, made on first use. Safe from many threads.
  void AddToCollection(absl::string_view key, CollectionItem item);
  // A repeated key counts once.
  void AddToCollections(const std::vector<std::string>& keys, const CollectionItem& item);
  // A copy; with `scope`, only items that have a name which matches it as a regular expression
  // anchored at the start.
  std::vector<CollectionItem> collection(absl::string_view key, absl::string_view scope = {}) const;
  // Only the items of one kind: collection_as<Output>("losses"), collection_as<Variable>("ema").
  template <class T>
  std::vector<T> collection_as(absl::string_view key) const;
  // The list itself, made if there is none; to change it while no other thread uses it. It lives as
  // long as the graph; after ClearCollection(key) it is no longer the collection's.
  std::vector<CollectionItem>& LiveCollection(absl::string_view key);
  void ClearCollection(absl::string_view key);
  void SetCollection(absl::string_view key, std::vector<CollectionItem> items);
  std::vector<std::string> CollectionKeys() const;  // sorted

  // The functions that nodes may call and attributes name (core/function_library.h); null if there
  // are none.
  const std::shared_ptr<const FunctionLibrary>& functions() const { return functions_; }
  void set_functions(std::shared_ptr<const FunctionLibrary> functions) {
    functions_ = std::move(functions);
  }

  // A place where a layer above keeps its state for this graph (the variable store, ...): one T a
  // graph, made on first use.
  template <class T>
  T& Extension() {
    std::shared_ptr<void>& slot = ExtensionSlot(typeid(T));
    if (slot == nullptr) slot = std::make_shared<T>();
    return *static_cast<T*>(slot.get());
  }

 private:
  friend class GraphImporter;
  friend class NodeBuilder;
  struct Scopes {
    std::string name;
    Context context;
  };
  // A node that is to be named after its first user; the name scope it was made in, and the name
  // that was asked for.
  struct Unclaimed {
    Node* node;
    std::string scope, name;
  };
  std::shared_ptr<void>& ExtensionSlot(std::type_index type);
  // Nodes of an op seldom differ in their attributes, and share them then.
  void GiveAttrs(Node* node, AttrMap attrs);
  // An argument of a node that is built: the input after its last.
  struct ArgEnd {
    int end;
    bool is_list;
    friend bool operator==(const ArgEnd&, const ArgEnd&) = default;
  };
  // The latest node of an op: its attributes, and what it was built from. What is built from the
  // same has the same attributes and types. Tensors, which may be large, have no value there.
  struct Latest {
    AttrMap attrs;
    bool is_built = false;
    absl::InlinedVector<ArgEnd, 4> args = {};
    NodeTypes types_given = {};  // of the inputs, as the nodes that make them have them
    std::vector<std::pair<std::string, AttrValue>> attrs_given = {};
    NodeTypes input_types = {}, output_types = {};
  };
  void GiveDevice(Node* node, absl::string_view device);
  void NoteChange(const Node* node, const char* what);
  void AddUnclaimed(Unclaimed unclaimed);
  void Claim(absl::Span<const Output> inputs, const std::string& user);
  void Rename(Node* node, const std::string& name);
  void ReleaseName(const Unclaimed& unclaimed);

  const OpRegistry& ops_;
  GraphOptions options_;
  GraphVersions versions_;
  absl::Status status_;
  bool finalized_ = false;
  std::vector<std::unique_ptr<Node>> nodes_;
  NameTable names_;
  std::set<std::string, std::less<>> devices_;  // texts that nodes have
  absl::flat_hash_map<const OpSpec*, Latest> latest_;
  PerThread<Scopes> scopes_;
  std::vector<Unclaimed> unclaimed_;  // few, if any: between an argument and its function
  std::vector<Change> changes_;
  mutable std::atomic<int> num_kept_{0};  // nodes of which changes are kept
  std::optional<int64_t> seed_;
  int64_t seeds_taken_ = 0;
  mutable std::mutex collections_mutex_;
  using Collections = std::map<std::string, std::vector<CollectionItem>, std::less<>>;
  Collections collections_;
  std::vector<Collections::node_type> cleared_collections_;  // somebody may hold a live reference
  std::shared_ptr<const FunctionLibrary> functions_;
  std::map<std::type_index, std::shared_ptr<void>> extensions_;
};

// Builds one node in the graph's current scopes:
//   Node* n = NodeBuilder(g, "MatMul").Name("xw").Input(x).Input(w).Attr("transpose_b",
//   true).Build();
// Type attributes and list lengths are taken from the inputs. On an error (unknown op, wrong type,
// bad attribute, shapes that do not fit) the graph's status is set and Build returns null.
class NodeBuilder {
 public:
  NodeBuilder(Graph& graph, absl::string_view op);
  ~NodeBuilder();

  // Relative to the current name scope and made unique; a name that ends in '/' is absolute and
  // final (it is the name of a scope just opened). Default: the op's name.
  NodeBuilder& Name(absl::string_view name);
  // The next argument: one tensor, or a list for "N * T" and list(type) arguments.
  NodeBuilder& Input(const Output& value);
  NodeBuilder& InputList(absl::Span<const Output> values);
  NodeBuilder& Control(Node* node);
  NodeBuilder& Attr(absl::string_view name, AttrValue value);
  // Overrides the device scopes.
  NodeBuilder& Device(absl::string_view device);
  // Adds "loc:@name" and takes that node's device.
  NodeBuilder& ColocateWith(const Node* node);
  // Leaves out control inputs, devices and colocations of the current scopes (import uses names and
  // edges as given).
  NodeBuilder& Verbatim();
  // For what is made of an argument before the function it is for is called, and belongs in that
  // function's scope: "mul/ReadVariableOp". It gets that name from the first node that takes it:
  // the outermost name scope opened since then, or else the node's own name, is the scope. Until
  // then it is named as usual.
  NodeBuilder& NamedAfterUser();

  Node* Build();
  // Output 0 of the built node, or an invalid Output.
  Output BuildOutput() {
    Node* n = Build();
    return n == nullptr ? Output() : Output(n, 0);
  }

 private:
  absl::Span<const Output> InputsOf(size_t arg) const;
  bool HasFinalName() const { return !name_.empty() && name_.back() == '/'; }
  std::string RequestedName() const;
  absl::Status Make(std::unique_ptr<Node>* out, NameTable::FreeName* name);
  absl::Status SetName(Node* node, NameTable::FreeName* name) const;
  absl::Status CheckInputs(const OpSpec& op) const;
  std::vector<std::pair<std::string, AttrValue>> GivenAttrs() const;
  bool TakeAttrs(Graph::Latest& latest, Node* node) const;
  absl::Status SetTypes(Node* node);
  absl::Status SetAttrs(Node* node);
  void SetControls(Node* node) const;
  absl::Status SetPlace(Node* node) const;
  absl::Status Locate(const absl::Status& status) const;

  Graph& graph_;
  std::string op_, name_;
  absl::InlinedVector<Output, 4> inputs_;
  absl::InlinedVector<Graph::ArgEnd, 4> args_;
  std::vector<Node*> controls_;
  std::vector<std::pair<std::string, AttrValue>> attrs_;
  std::optional<std::string> device_;
  std::vector<std::string> colocations_;
  bool verbatim_ = false, named_after_user_ = false;
};

// The short form that builders of ops use. Arguments are Outputs, or lists of Outputs for list
// arguments; the graph is the first valid Output's. An invalid input gives an invalid result
// without a second error.
struct Arg {
  Arg(const Output& o);
  Arg(Outputs list);
  ~Arg();
  Arg(const Arg& other);
  Arg(Arg&& other) noexcept;
  Arg& operator=(const Arg& other);
  Arg& operator=(Arg&& other) noexcept;
  Outputs values;
  bool is_list;
};
using NamedAttr = std::pair<absl::string_view, AttrValue>;
using Attrs = std::vector<NamedAttr>;
// The node, or null.
Node* AddNode(absl::string_view op, absl::Span<const Arg> args,
              absl::Span<const NamedAttr> attrs = {}, absl::string_view name = {});
// Output 0 of it.
Output AddOp(absl::string_view op, absl::Span<const Arg> args,
             absl::Span<const NamedAttr> attrs = {}, absl::string_view name = {});
// For ops without inputs.
Node* AddNode(Graph& graph, absl::string_view op, absl::Span<const Arg> args,
              absl::Span<const NamedAttr> attrs = {}, absl::string_view name = {});

// ---- implementation of the templates

template <class T>
T Node::attr(absl::string_view name) const {
  const AttrValue* v = FindAttr(name);
  assert(v != nullptr);
  if (const T* p = v->get_if<T>()) return *p;
  return T();
}

template <class T>
T Node::attr_or(absl::string_view name, T fallback) const {
  const AttrValue* v = FindAttr(name);
  if (v == nullptr) return fallback;
  const T* p = v->get_if<T>();
  return p != nullptr ? *p : fallback;
}

template <class T>
std::vector<T> Graph::collection_as(absl::string_view key) const {
  std::vector<T> out;
  for (const CollectionItem& item : collection(key)) {
    if constexpr (CollectionHandle<T>) {
      using Info = std::remove_reference_t<decltype(*std::declval<T>().info())>;
      const auto* object = std::get_if<std::shared_ptr<CollectionObject>>(&item);
      if (object == nullptr) continue;
      if (auto info = std::dynamic_pointer_cast<Info>(*object)) out.push_back(T(std::move(info)));
    } else if (const T* p = std::get_if<T>(&item)) {
      out.push_back(*p);
    }
  }
  return out;
}

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_H_
