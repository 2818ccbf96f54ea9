#ifndef WEIR_CORE_OP_H_
#define WEIR_CORE_OP_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "weir/core/attr.h"
#include "weir/core/op_traits.h"

namespace weir {

class Node;
template <class Registry>
class Families;
class GradContext;
class Grad;
class ShapeContext;

// One argument of a signature: a tensor of a fixed type ("x: float"), of an attribute's type ("x:
// T"), a list of N equal types ("inputs: N * T"), a list of mixed types ("data: Tin"), each
// possibly a reference ("ref: Ref(T)").
struct ArgSpec {
  std::string name;
  DataType type = DT_INVALID;  // when fixed
  std::string type_attr;       // attribute of kind type
  std::string number_attr;     // attribute of kind int: how many
  std::string type_list_attr;  // attribute of kind list(type)
  bool is_ref = false;
};

// Of the inputs or outputs of a node, which are few: no memory of their own.
using NodeTypes = absl::InlinedVector<DataType, 4>;

using ShapeFn = std::function<absl::Status(ShapeContext&)>;
// Builds the gradient with respect to every input (see gradient.h). Errors stick to the graph.
using GradientFn = std::function<std::vector<Grad>(GradContext&)>;

// All that Weir knows of an op, in one record: signature, shape rule, gradient rule, documentation.
// Built by chaining:
//
//   ops->Add(OpSpec("Softplus")
//                .In("features: T")
//                .Out("activations: T")
//                .Attr("T: {half, bfloat16, float, double}")
//                .InferShape(SameShape)
//                .Gradient(SoftplusGradient)
//                .Doc("log(1 + exp(features)), element by element."));
//
// Signatures are TensorFlow's, letter for letter and in TensorFlow's order.
class OpSpec {
 public:
  explicit OpSpec(absl::string_view name);
  ~OpSpec();
  OpSpec(const OpSpec& other);
  OpSpec(OpSpec&& other) noexcept;

  // One or several arguments separated by commas: "a: T, b: N * T, c: Ref(T)".
  OpSpec& In(absl::string_view args);
  OpSpec& Out(absl::string_view args);
  // One attribute, in the language of AttrSpec::Parse.
  OpSpec& Attr(absl::string_view attr);
  // Has effects or state: never folded, merged with an equal node, or run twice.
  OpSpec& Stateful();
  OpSpec& Commutative();
  // The record of a function's signature: a node of this op calls the function of its name.
  OpSpec& Function();
  OpSpec& Aggregate();
  // Accepts a reference to a variable that has no value yet (Assign).
  OpSpec& AllowsUninitializedInput();
  // Not for graphs of producer version `version` or later.
  OpSpec& Deprecated(int version, absl::string_view explanation);
  // Traits (op_traits.h).
  OpSpec& Moves(Movement movement);
  OpSpec& Elementwise();
  OpSpec& Reduction();
  OpSpec& Involution();
  OpSpec& Neutral(NeutralElement element);
  OpSpec& IdentityIfSameShape();
  OpSpec& IsPlaceholder();
  OpSpec& Flow(ControlFlow kind);
  OpSpec& Has(Effect effect);
  OpSpec& Uses(VariableUse use);
  OpSpec& Rows(RowRule rule);
  OpSpec& Uses(ContainerUse use);
  OpSpec& Calls(const FunctionCalls* calls);
  OpSpec& Flops(CostFn flops);
  OpSpec& Bytes(CostFn bytes);
  OpSpec& ShapeValue(ShapeValueFn fn);
  OpSpec& InferShape(ShapeFn fn);
  OpSpec& Gradient(GradientFn fn);
  // The gradient is zero or meaningless, and stops here without an error (Shape, ArgMax).
  OpSpec& NotDifferentiable();
  OpSpec& Doc(absl::string_view text);

  const std::string& name() const { return name_; }
  const std::vector<ArgSpec>& inputs() const { return inputs_; }
  const std::vector<ArgSpec>& outputs() const { return outputs_; }
  const std::vector<AttrSpec>& attrs() const { return attrs_; }
  // Null if there is no such attribute.
  const AttrSpec* FindAttr(absl::string_view name) const;
  bool stateful() const { return stateful_; }
  bool commutative() const { return commutative_; }
  bool is_function() const { return is_function_; }
  bool aggregate() const { return aggregate_; }
  bool allows_uninitialized_input() const { return allows_uninitialized_input_; }
  const OpTraits& traits() const { return traits_; }
  int deprecated_version() const { return deprecated_version_; }
  const std::string& deprecation() const { return deprecation_; }
  const ShapeFn& shape_fn() const { return shape_fn_; }
  const GradientFn& gradient_fn() const { return gradient_fn_; }
  bool not_differentiable() const { return not_differentiable_; }
  const std::string& doc() const { return doc_; }
  // "MatMul(a: T, b: T) -> (product: T); transpose_a: bool = false; ...": one line for people.
  std::string Signature() const;
  // The first mistake made while the record was written (a bad attribute text, say);
  // OpRegistry::Add fails on it.
  const absl::Status& status() const { return status_; }
  // Settles which attributes the arguments name, once all are declared, and returns status().
  // OpRegistry::Add calls it.
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

// The ops a graph may use, by name. A user's registry is layered over the built-in one:
//   OpRegistry mine(&BuiltinOps()); mine.Add(OpSpec("MyOp")...);
// Not changed once a graph uses it; look-ups are thread-safe.
class OpRegistry {
 public:
  explicit OpRegistry(const OpRegistry* base = nullptr);
  // With records that are made when they are first looked up.
  explicit OpRegistry(std::unique_ptr<const Families<OpRegistry>> families);
  ~OpRegistry();
  OpRegistry(const OpRegistry&) = delete;
  OpRegistry& operator=(const OpRegistry&) = delete;

  // A mistake in the record, or a second record of that name, is a bug in the program: it is
  // printed and aborts.
  void Add(OpSpec spec);
  // Null if there is none.
  const OpSpec* Find(absl::string_view name) const;
  // NOT_FOUND naming the op and the closest known names.
  absl::StatusOr<const OpSpec*> Lookup(absl::string_view name) const;
  // All records, base included, sorted by name.
  std::vector<const OpSpec*> All() const;

 private:
  const OpRegistry* base_;
  const std::unique_ptr<const Families<OpRegistry>> families_;  // may be null
  absl::flat_hash_map<std::string, std::unique_ptr<const OpSpec>> ops_;
};

// Every op that Weir ships. Defined in ops/registry.cc, the one list of families.
const OpRegistry& BuiltinOps();

}  // namespace weir

#endif  // WEIR_CORE_OP_H_
