#ifndef WEIR_CORE_GRAPH_OP_H_
#define WEIR_CORE_GRAPH_OP_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "weir/core/graph/attr.h"
#include "weir/core/graph/op_traits.h"
#include "weir/core/tensor/api.h"

// Ops: their records, and the registries where graphs find them. docs/add_an_op.md writes one.
namespace WEIR_API weir {

class Node;
template <class Registry>
class Families;
class GradContext;
class Grad;
class ShapeContext;

// One argument of a signature: a tensor of a fixed type ("x: float") or of an attribute's type ("x:
// T"), a list of N equal types ("inputs: N * T"), or a list of mixed types ("data: Tin"); each may
// be a reference ("ref: Ref(T)").
struct ArgSpec {
  std::string name;            // "features"
  DataType type = DT_INVALID;  // if fixed
  std::string type_attr;       // attribute of kind type
  std::string number_attr;     // attribute of kind int: list length
  std::string type_list_attr;  // attribute of kind list(type)
  bool is_ref = false;         // takes or returns a reference to a variable
};

// The types of a node's inputs or outputs; inline-allocated, since most nodes have few.
using NodeTypes = absl::InlinedVector<DataType, 4>;

// Infers the shapes of a node's outputs (shape_context.h).
using ShapeFn = std::function<absl::Status(ShapeContext&)>;
// Builds the gradient with respect to every input (see gradient.h). Errors are stored in the graph.
using GradientFn = std::function<std::vector<Grad>(GradContext&)>;

// The record of an op: signature, shape function, gradient function, documentation. Built by
// chaining:
//
//   ops->Add(OpSpec("Softplus")
//                .In("features: T")
//                .Out("activations: T")
//                .Attr("T: {half, bfloat16, float, double}")
//                .InferShape(SameShape)
//                .Gradient(SoftplusGradient)
//                .Doc("log(1 + exp(features)), element by element."));
//
// Signatures equal TensorFlow's, including the order of arguments and attributes.
class OpSpec {
 public:
  // A record without arguments. Ops are named in CamelCase, as in TensorFlow.
  explicit OpSpec(absl::string_view name);
  ~OpSpec();
  OpSpec(const OpSpec& other);
  OpSpec(OpSpec&& other) noexcept;

  // Adds one or more arguments separated by commas: "a: T, b: N * T, c: Ref(T)".
  OpSpec& In(absl::string_view args);
  OpSpec& Out(absl::string_view args);
  // Adds one attribute, in the syntax of AttrSpec::Parse.
  OpSpec& Attr(absl::string_view attr);
  // Has side effects or state: nodes are never folded, merged with an equal node, or run twice.
  OpSpec& Stateful();
  // f(x, y) = f(y, x), so that nodes whose inputs are swapped may be merged.
  OpSpec& Commutative();
  // Marks the record of a function's signature: a node of this op calls the function of that name.
  OpSpec& Function();
  // Sums any number of inputs, in any order: AddN.
  OpSpec& Aggregate();
  // Accepts a reference to a variable that has no value yet (Assign).
  OpSpec& AllowsUninitializedInput();
  // Disallowed in graphs of producer version `version` or later.
  OpSpec& Deprecated(int version, absl::string_view explanation);
  // Traits, one setter for each field of OpTraits (op_traits.h).
  // Traits (op_traits.h).
  OpSpec& Moves(Movement movement);
  OpSpec& Elementwise();
  OpSpec& Reduction();
  OpSpec& Involution();
  OpSpec& Neutral(NeutralElement element);
  OpSpec& IdentityIfSameShape();
  OpSpec& Repeats(int input);
  OpSpec& IsPlaceholder();
  OpSpec& Flow(ControlFlow kind);
  OpSpec& Has(Effect effect);
  OpSpec& Waits(WaitsFor what);
  OpSpec& CrossesTasks();
  OpSpec& Uses(VariableUse use);
  OpSpec& Rows(RowRule rule);
  OpSpec& Uses(ContainerUse use);
  OpSpec& Calls(const FunctionCalls* calls);
  OpSpec& Flops(CostFn flops);
  OpSpec& Bytes(CostFn bytes);
  OpSpec& ShapeValue(ShapeValueFn fn);
  // The shape function; without one the outputs have unknown rank.
  OpSpec& InferShape(ShapeFn fn);
  // The gradient function; without one, Gradients sets an error that names the node.
  OpSpec& Gradient(GradientFn fn);
  // The gradient is zero or undefined; differentiation stops here without an error (Shape, ArgMax).
  OpSpec& NotDifferentiable();
  // The documentation of the op that `weir ops` prints.
  OpSpec& Doc(absl::string_view text);

  // What the setters above have set.
  const std::string& name() const { return name_; }
  const std::vector<ArgSpec>& inputs() const { return inputs_; }
  const std::vector<ArgSpec>& outputs() const { return outputs_; }
  const std::vector<AttrSpec>& attrs() const { return attrs_; }
  // Returns null if there is no such attribute.
  const AttrSpec* FindAttr(absl::string_view name) const;
  // What the setters of the same names have set.
  bool stateful() const { return stateful_; }
  bool commutative() const { return commutative_; }
  bool is_function() const { return is_function_; }
  bool aggregate() const { return aggregate_; }
  bool allows_uninitialized_input() const { return allows_uninitialized_input_; }
  // What passes may assume; the version from which the op is disallowed (0: none), and the reason.
  const OpTraits& traits() const { return traits_; }
  int deprecated_version() const { return deprecated_version_; }
  const std::string& deprecation() const { return deprecation_; }
  // Empty if there is none.
  const ShapeFn& shape_fn() const { return shape_fn_; }
  const GradientFn& gradient_fn() const { return gradient_fn_; }
  bool not_differentiable() const { return not_differentiable_; }
  const std::string& doc() const { return doc_; }
  // One line for people: "MatMul(a: T, b: T) -> (product: T); transpose_a: bool = false; ...".
  std::string Signature() const;
  // The first mistake in the record (such as a malformed attribute); OpRegistry::Add fails on it.
  const absl::Status& status() const { return status_; }
  // Resolves the attributes that the arguments name, once all are declared, and returns status().
  // Called by OpRegistry::Add.
  const absl::Status& Resolve();

 private:
  friend class OpRegistry;
  void ParseArgs(absl::string_view text, std::vector<ArgSpec>* out);

  std::string name_;
  std::vector<ArgSpec> inputs_, outputs_;
  std::vector<AttrSpec> attrs_;
  bool stateful_ = false, commutative_ = false, aggregate_ = false,
       allows_uninitialized_input_ = false;
  bool not_differentiable_ = false;
  bool is_function_ = false;
  OpTraits traits_;
  int deprecated_version_ = 0;
  std::string deprecation_;
  ShapeFn shape_fn_;
  GradientFn gradient_fn_;
  std::string doc_;
  absl::Status status_;
};

// The ops that a graph may use, by name. A user's registry is layered over the built-in one:
//   OpRegistry mine(&BuiltinOps()); mine.Add(OpSpec("MyOp")...);
// Must not change, but for Rebase, once a graph uses it; lookups are thread-safe.
class OpRegistry {
 public:
  // Creates an empty registry layered over `base` (null: over none), which outlives it.
  explicit OpRegistry(const OpRegistry* base = nullptr);
  // Creates a registry whose records are constructed when they are first looked up.
  explicit OpRegistry(std::unique_ptr<const Families<OpRegistry>> families);
  ~OpRegistry();
  OpRegistry(const OpRegistry&) = delete;
  OpRegistry& operator=(const OpRegistry&) = delete;

  // Adds a record. A mistake in the record or a duplicate name is a bug in the program: prints it
  // and aborts.
  void Add(OpSpec spec);
  // Replaces the base by one that has all of its records, and more, for records that are registered
  // while graphs use this registry. Thread-safe, also with lookups. Both bases outlive it.
  void Rebase(const OpRegistry* base) { base_.store(base, std::memory_order_release); }
  // Returns null if there is no such op.
  const OpSpec* Find(absl::string_view name) const;
  // Returns the traits of an op; no traits if there is no such op.
  const OpTraits& TraitsOf(absl::string_view name) const;
  // Returns NOT_FOUND, with the op and the most similar names, if there is no such op.
  absl::StatusOr<const OpSpec*> Lookup(absl::string_view name) const;
  // Returns all records, including those of the base registry, sorted by name.
  std::vector<const OpSpec*> All() const;

 private:
  const OpRegistry* base() const { return base_.load(std::memory_order_acquire); }

  std::atomic<const OpRegistry*> base_;
  const std::unique_ptr<const Families<OpRegistry>> families_;  // may be null
  absl::flat_hash_map<std::string, std::unique_ptr<const OpSpec>> ops_;
};

// All built-in ops. Defined in ops/registry.cc, which lists the families.
const OpRegistry& BuiltinOps();

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_OP_H_
