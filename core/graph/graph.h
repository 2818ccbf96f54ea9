#ifndef WEIR_CORE_GRAPH_GRAPH_H_
#define WEIR_CORE_GRAPH_GRAPH_H_

#include <atomic>
#include <cassert>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
#include "weir/core/graph/attr.h"
#include "weir/core/graph/collection.h"
#include "weir/core/graph/name_index.h"
#include "weir/core/graph/op.h"
#include "weir/core/graph/output.h"
#include "weir/core/graph/per_thread.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/mutex.h"

// Graphs, their nodes, handles to what nodes return, and what builds nodes. The builders of ops/
// are functions over this interface.
namespace WEIR_API weir {

class FunctionLibrary;
class Graph;

// The dtype and shape of the variable to which a resource output refers, as far as known at graph
// construction time. The shape functions of reads use it.
struct HandleData {
  DataType dtype = DT_INVALID;         // of the variable's value
  Shape shape = Shape::UnknownRank();  // declared
};

// A node of a graph. Created by NodeBuilder or import, owned by its graph, at a fixed address for
// the lifetime of the graph.
class Node {
 public:
  // Allocates from memory that is only ever used for nodes; see Generation.
  static void* operator new(size_t bytes);
  static void operator delete(void* memory);

  // The unique name, "hidden/MatMul"; the record of its op, and the name of that, "MatMul". The
  // record is valid as long as the graph's registry.
  const std::string& name() const { return name_; }
  const OpSpec& op() const { return *op_; }
  const std::string& op_name() const { return op_->name(); }
  int id() const { return id_; }            // position in Graph::nodes()
  Graph& graph() const { return *graph_; }  // owns the node

  // The inputs in the order of the signature, lists expanded: tensors, which never change in a
  // graph that is only built, and nodes that run first.
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Output& input(int i) const { return inputs_[i]; }
  absl::Span<const Output> inputs() const { return inputs_; }
  absl::Span<Node* const> control_inputs() const { return control_inputs_; }
  // The type that the signature requires for input i, including reference types.
  DataType input_type(int i) const { return input_types_[i]; }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // Including reference types.
  DataType output_type(int i) const { return outputs_[i].type; }
  // The static shape, and what is known of the variable behind a resource handle (null: nothing).
  const Shape& output_shape(int i) const { return outputs_[i].shape; }
  const HandleData* output_handle(int i) const { return outputs_[i].handle.get(); }
  // A handle; i < num_outputs().
  Output output(int i = 0) const { return Output(const_cast<Node*>(this), i); }
  // Returns the range [first, last) of the inputs (outputs) that belong to an argument of the
  // signature, or {0, 0} if there is no such argument.
  std::pair<int, int> InputRange(absl::string_view arg) const;
  std::pair<int, int> OutputRange(absl::string_view arg) const;

  // The requested device as text, "" if none. The Plan decides where the node runs.
  const std::string& device() const;
  // All attributes: every attribute of the signature, defaults included, and marks such as
  // `_class`.
  const AttrMap& attrs() const { return attrs_; }
  // Returns null if the node has no such attribute.
  const AttrValue* FindAttr(absl::string_view name) const;
  // Returns the value of an attribute that the signature declares with type T; anything else is a
  // bug in the caller. T is std::string, int64_t, float, bool, DataType, Shape, Tensor,
  // FunctionRef, or a vector of one of them.
  template <class T>
  T attr(absl::string_view name) const;
  // Same, but returns `fallback` if the attribute is absent or of another kind.
  template <class T>
  T attr_or(absl::string_view name, T fallback) const;
  // The names x in the "loc:@x" entries of `_class`.
  std::vector<std::string> colocations() const;
  // The name used in messages: "hidden/MatMul (MatMul)".
  std::string Label() const;

 private:
  friend class Graph;
  friend class GraphImporter;
  friend class ImportConnector;
  friend class ImportTransaction;
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
  bool name_is_deferred_ = false;  // one of Graph::deferred_names_
  std::string name_;
  // Element of Graph::devices_; null if no device is requested.
  const std::string* device_ = nullptr;
  absl::InlinedVector<Output, 2> inputs_;
  NodeTypes input_types_;
  absl::InlinedVector<Node*, 2> control_inputs_;
  absl::InlinedVector<OutputInfo, 1> outputs_;
  AttrMap attrs_;
};

// Options of a graph, set when it is created.
struct GraphOptions {
  // The default kind of variables, used if neither the call nor the scope specifies one: resource
  // variables, or (false) TensorFlow 1's reference variables.
  bool use_resource = true;
};

// The versions that TensorFlow writes into a GraphDef: `producer` is the version of the writer,
// `min_consumer` the oldest reader that may load the graph, and `bad_consumers` are readers that
// must not. Import keeps a file's versions.
struct GraphVersions {
  int producer = 2474;
  int min_consumer = 0;
  std::vector<int> bad_consumers;
};

// A graph: nodes in creation order, a stack of scopes for new nodes (core/graph/scope.h), named
// collections, and the first error. One thread at a time may modify a graph; each thread has its
// own stack of scopes. A graph that is no longer modified may be read by many threads, also to
// create sessions. Nodes live as long as the graph.
class Graph {
 public:
  // Creates a graph with the built-in ops. Inline, so that core does not depend on them.
  explicit Graph(GraphOptions options = {}) : Graph(BuiltinOps(), options) {}
  // Creates a graph with the ops of a registry, which outlives it.
  explicit Graph(const OpRegistry& ops, GraphOptions options = {});
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // What the graph was created with. The registry is that of the constructor, not owned.
  const GraphOptions& options() const { return options_; }
  const OpRegistry& ops() const { return ops_; }
  // As exported. An op that is deprecated since an older `producer` is rejected.
  GraphVersions& versions() { return versions_; }
  const GraphVersions& versions() const { return versions_; }

  // OK, or the first error of a builder, with the node's name, op and input shapes. Sessions reject
  // a graph with an error.
  const absl::Status& status() const { return status_; }
  // Stores `status` if it is the first error. Returns status().
  const absl::Status& Fail(const absl::Status& status);
  // Returns and clears the error, for tests and for builders that try an alternative.
  absl::Status TakeStatus();

  // Makes the graph immutable: adding a node returns FAILED_PRECONDITION.
  void Finalize() { finalized_ = true; }
  bool finalized() const { return finalized_; }

  // All nodes in creation order, and their number. The span is valid until a node is added.
  absl::Span<const std::unique_ptr<Node>> nodes() const { return nodes_; }
  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  // Returns null if there is no such node.
  Node* FindNode(absl::string_view name) const;
  // Finds the tensor named "name:1", or "name" for output 0. Returns NOT_FOUND, with the number of
  // outputs if the node exists, or INVALID_ARGUMENT for names like "name:x".
  absl::StatusOr<Output> FindOutput(absl::string_view name) const;
  // Returns a name that no node or scope has, like TensorFlow: `name`, `name_1`, ... (ignoring
  // case). The name is absolute: the current name scope is not prepended. With `mark`, also
  // reserves the name.
  std::string UniqueName(absl::string_view name, bool mark = true);

  // Renames `value`, if it was built with NamedAfterUser and has no user yet, as if it were created
  // now in the current name scope.
  void NameHere(const Output& value);

  // Add or replace control edges, or replace an input, of the same type. For import (loops have
  // back edges) and graph rewriting.
  absl::Status AddControlInput(Node* node, Node* control);
  absl::Status SetControlInputs(Node* node, absl::Span<Node* const> controls);
  absl::Status SetInput(Node* node, int index, Output value);
  // Replace an attribute, or the requested device, of a node that exists.
  void SetAttr(Node* node, absl::string_view name, AttrValue value);
  void SetDevice(Node* node, absl::string_view device);
  // Changes to nodes that a session may already have run; such a session keeps using the old
  // version. A session calls KeepChanges() to start recording changes to the existing nodes, and
  // inspects changes().
  // One such change: `node`, and `what` was done to it ("setting attribute").
  struct Change {
    const Node* node;
    const char* what;  // "setting attribute"
  };
  // The changes since the first KeepChanges(), oldest first.
  const std::vector<Change>& changes() const { return changes_; }
  void KeepChanges() const;
  // Recomputes the output shapes from the input shapes, and merges them with the known shapes.
  absl::Status InferShapes(Node* node);
  // Merges `shape` into the output's shape. Returns INVALID_ARGUMENT if they contradict.
  absl::Status RefineShape(Output output, const Shape& shape);

  // ---- scopes: the calling thread's stack. Users open scopes with the guards in
  // core/graph/scope.h.
  const std::string& name_scope();  // "" or "a/b/" with the slash
  // As set: neither checked nor made unique.
  void set_name_scope(std::string scope);
  // Returns the requested device of a new node: text, as DeviceScope takes it.
  using DeviceFn = std::function<std::string(const Node&)>;
  // New nodes get control edges from `controls`. A node that has a member of the group or one of
  // `controls` as an input runs after them anyway and gets no edge (as in TensorFlow, whose graphs
  // ours must equal).
  struct ControlGroup {
    std::vector<Node*> controls;
    absl::flat_hash_set<const Node*> members;  // nodes created in the scope so far
  };
  // What scopes add to new nodes.
  struct Context {
    std::vector<DeviceFn> devices;  // outermost first; merged field by field, inner wins
    // One per scope of control dependencies.
    std::vector<std::shared_ptr<ControlGroup>> control_groups;
    std::vector<std::string> colocations;                  // "loc:@x", added to every new node
    std::vector<std::pair<std::string, AttrValue>> attrs;  // added to every new node
    std::string container;  // of the resources that new nodes create; "": the default one
  };
  // The calling thread's innermost context, which its scopes may change.
  Context& context();

  // ---- random seeds. Returns {seed, seed2} for an op with the given op-level seed, by the rules
  // of TensorFlow's get_seed.
  // Sets the graph-level seed; nullopt: none, so that random ops differ from run to run.
  void set_seed(std::optional<int64_t> seed) { seed_ = seed; }
  std::optional<int64_t> seed() const { return seed_; }
  std::pair<int64_t, int64_t> NextSeed(std::optional<int64_t> op_seed);

  // ---- collections: named ordered lists, created on first use. Thread-safe.
  // Appends an item, also if it is in the collection already.
  void AddToCollection(absl::string_view key, CollectionItem item);
  // Duplicate keys count once.
  void AddToCollections(const std::vector<std::string>& keys, const CollectionItem& item);
  // Returns a copy. With `scope`, returns only the items whose name matches it as a regular
  // expression anchored at the start.
  std::vector<CollectionItem> collection(absl::string_view key, absl::string_view scope = {}) const;
  // Returns only the items of one kind: collection_as<Output>("losses"),
  // collection_as<Variable>("ema").
  template <class T>
  std::vector<T> collection_as(absl::string_view key) const;
  // Returns the list itself, creating it if necessary. The caller may modify it while no other
  // thread uses it. The reference is valid as long as the graph; after ClearCollection(key) the
  // list no longer belongs to the collection.
  std::vector<CollectionItem>& LiveCollection(absl::string_view key);
  // Empties the collection; replaces its items.
  void ClearCollection(absl::string_view key);
  void SetCollection(absl::string_view key, std::vector<CollectionItem> items);
  std::vector<std::string> CollectionKeys() const;  // sorted

  // The functions that nodes call and attributes reference (core/io/function_library.h); null if
  // there are none.
  const std::shared_ptr<const FunctionLibrary>& functions() const { return functions_; }
  void set_functions(std::shared_ptr<const FunctionLibrary> functions) {
    functions_ = std::move(functions);
  }

  // Storage for the per-graph state of a higher layer (the variable store, ...): one T per graph,
  // created on first use.
  template <class T>
  T& Extension() {
    std::shared_ptr<void>& slot = ExtensionSlot(typeid(T));
    if (slot == nullptr) slot = std::make_shared<T>();
    return *static_cast<T*>(slot.get());
  }

 private:
  friend class ImportTransaction;
  friend class NodeBuilder;
  struct Scopes {
    std::string name;
    Context context;
  };
  // A node to be named after its first user, with the name scope it was created in and the
  // requested name.
  struct DeferredName {
    Node* node;
    std::string scope, name;
  };
  std::shared_ptr<void>& ExtensionSlot(std::type_index type);
  // Sets the attributes; shares them with the op's last node if they are equal, as they usually
  // are.
  void SetSharedAttrs(Node* node, AttrMap attrs);
  // The end of one argument of a node under construction: the position after its last input.
  struct ArgEnd {
    int end;
    bool is_list;
    friend bool operator==(const ArgEnd&, const ArgEnd&) = default;
  };
  // The attributes and types of the last node built for an op, and the inputs of that computation.
  // A node built from equal inputs reuses them. Values of tensors, which may be large, are not
  // stored.
  struct LastBuilt {
    AttrMap attrs;
    bool is_built = false;
    absl::InlinedVector<ArgEnd, 4> args = {};
    NodeTypes types_given = {};  // of the inputs, as produced by their nodes
    std::vector<std::pair<std::string, AttrValue>> attrs_given = {};
    NodeTypes input_types = {}, output_types = {};
  };
  void SetInternedDevice(Node* node, absl::string_view device);
  void RecordChange(const Node* node, const char* what);
  void AddDeferredName(DeferredName deferred);
  void ResolveDeferredNames(absl::Span<const Output> inputs, const std::string& user);
  void Rename(Node* node, const std::string& name);
  void ReleaseName(const DeferredName& deferred);

  const OpRegistry& ops_;
  GraphOptions options_;
  GraphVersions versions_;
  absl::Status status_;
  bool finalized_ = false;
  std::vector<std::unique_ptr<Node>> nodes_;
  NameIndex names_;
  std::set<std::string, std::less<>> devices_;  // interned device strings
  absl::flat_hash_map<const OpSpec*, LastBuilt> last_built_;
  PerThread<Scopes> scopes_;
  std::vector<DeferredName> deferred_names_;  // few, if any: between an argument and its function
  std::vector<Change> changes_;
  mutable std::atomic<int> num_tracked_{0};  // number of nodes whose changes are recorded
  std::optional<int64_t> seed_;
  int64_t seeds_taken_ = 0;
  mutable Mutex collections_mutex_;
  using Collections = std::map<std::string, std::vector<CollectionItem>, std::less<>>;
  Collections collections_ ABSL_GUARDED_BY(collections_mutex_);
  // Callers may hold references from LiveCollection.
  std::vector<Collections::node_type> cleared_collections_ ABSL_GUARDED_BY(collections_mutex_);
  std::shared_ptr<const FunctionLibrary> functions_;
  std::map<std::type_index, std::shared_ptr<void>> extensions_;
};

// Builds one node in the graph's current scopes:
//   Node* n = NodeBuilder(g, "MatMul")
//                 .Name("xw").Input(x).Input(w).Attr("transpose_b", true).Build();
// Type attributes and list lengths are deduced from the inputs. On an error (unknown op, wrong
// type, bad attribute, incompatible shapes) Build sets the graph's status and returns null.
class NodeBuilder {
 public:
  // `graph` outlives the builder. An unknown op is an error of Build.
  NodeBuilder(Graph& graph, absl::string_view op);
  ~NodeBuilder();

  // The name, relative to the current name scope and made unique. A name that ends in '/' is
  // absolute and used unchanged (it is the name of a scope just opened). Default: the op's name.
  NodeBuilder& Name(absl::string_view name);
  // The next argument: one tensor, or a list for "N * T" and list(type) arguments.
  NodeBuilder& Input(const Output& value);
  NodeBuilder& InputList(absl::Span<const Output> values);
  NodeBuilder& Control(Node* node);
  NodeBuilder& Attr(absl::string_view name, AttrValue value);
  // Overrides the device scopes.
  NodeBuilder& Device(absl::string_view device);
  // Adds "loc:@name" and uses that node's device.
  NodeBuilder& ColocateWith(const Node* node);
  // Ignores the control inputs, devices and colocations of the current scopes (import uses names
  // and edges as given).
  NodeBuilder& Verbatim();
  // Allows any name that ends with "/", also one that no GraphDef may have.
  NodeBuilder& AnyName();
  // For a node that converts an argument before the function that uses it is called, and belongs in
  // that function's scope: "mul/ReadVariableOp". The node is renamed when its first user is built.
  // Its scope is the outermost name scope opened in between, or else the name of the user itself.
  // Until then it has an ordinary name.
  NodeBuilder& NamedAfterUser();

  // Builds the node, which the graph owns; null on an error. Call it once.
  Node* Build();
  // Builds the node and returns its output 0, or an invalid Output.
  Output BuildOutput() {
    Node* n = Build();
    return n == nullptr ? Output() : Output(n, 0);
  }

 private:
  absl::Span<const Output> InputsOf(size_t arg) const;
  bool HasFinalName() const { return !name_.empty() && name_.back() == '/'; }
  std::string RequestedName() const;
  absl::Status Make(std::unique_ptr<Node>* out, NameIndex::FreeName* name);
  absl::Status SetName(Node* node, NameIndex::FreeName* name) const;
  absl::Status CheckInputs(const OpSpec& op) const;
  std::vector<std::pair<std::string, AttrValue>> GivenAttrs() const;
  bool ReuseAttrs(Graph::LastBuilt& last, Node* node) const;
  absl::Status SetTypes(Node* node);
  absl::Status SetAttrs(Node* node);
  void SetControls(Node* node) const;
  absl::Status SetDeviceAndColocation(Node* node) const;
  absl::Status AnnotateWithNode(const absl::Status& status) const;

  Graph& graph_;
  std::string op_, name_;
  absl::InlinedVector<Output, 4> inputs_;
  absl::InlinedVector<Graph::ArgEnd, 4> args_;
  std::vector<Node*> controls_;
  std::vector<std::pair<std::string, AttrValue>> attrs_;
  std::optional<std::string> device_;
  std::vector<std::string> colocations_;
  bool verbatim_ = false, any_name_ = false, named_after_user_ = false;
};

// The short form used by op builders. Arguments are Outputs, or lists of Outputs for list
// arguments. The graph is that of the first valid Output. An invalid input yields an invalid result
// without another error.
struct Arg {
  // One tensor, and the tensors of a list argument.
  Arg(const Output& o);
  Arg(Outputs list);
  ~Arg();
  Arg(const Arg& other);
  Arg(Arg&& other) noexcept;
  Arg& operator=(const Arg& other);
  Arg& operator=(Arg&& other) noexcept;
  Outputs values;  // the tensors; one unless is_list
  bool is_list;    // made from a list
};
// An attribute of a new node, as in NodeBuilder::Attr; and several.
using NamedAttr = std::pair<absl::string_view, AttrValue>;
using Attrs = std::vector<NamedAttr>;
// Builds a node; returns null on an error.
Node* AddNode(absl::string_view op, absl::Span<const Arg> args,
              absl::Span<const NamedAttr> attrs = {}, absl::string_view name = {});
// Returns its output 0.
Output AddOp(absl::string_view op, absl::Span<const Arg> args,
             absl::Span<const NamedAttr> attrs = {}, absl::string_view name = {});
// Same, for ops without inputs.
Node* AddNode(Graph& graph, absl::string_view op, absl::Span<const Arg> args,
              absl::Span<const NamedAttr> attrs = {}, absl::string_view name = {});

// ---- template implementations

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

#endif  // WEIR_CORE_GRAPH_GRAPH_H_
