#include "weir/ops/data/iterator.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/data/dataset_build_internal.h"
#include "weir/ops/lib/array_internal.h"

// Iterators. A one-shot iterator holds its data set as a function without arguments: a copy of all
// nodes that the data set depends on, since the iterator must be able to run without them.
namespace weir {

Iterator::Iterator(const Output& handle, ElementSpec spec)
    : handle_(handle), spec_(std::move(spec)) {
  string_handle_ = AddOp("IteratorToStringHandle", {handle_});
}

namespace {

Output AddIterator(Graph& graph, const ElementSpec& spec, absl::string_view shared_name) {
  if (!graph.status().ok()) return {};
  Node* node = AddNode(graph, "IteratorV2", {},
                       ElementAttrs(spec, {{"shared_name", shared_name}, {"container", ""}}));
  return node == nullptr ? Output() : node->output(0);
}

}  // namespace

Iterator Iterator::FromStructure(Graph& graph, const ElementSpec& spec,
                                 absl::string_view shared_name) {
  return Iterator(AddIterator(graph, spec, shared_name), spec);
}

Iterator Iterator::FromStringHandle(const Output& string_handle, const ElementSpec& spec) {
  return Iterator(AddOp("IteratorFromStringHandleV2", {string_handle}, ElementAttrs(spec)), spec);
}

Outputs Iterator::GetNext(absl::string_view name) const {
  if (!handle_.valid()) return Outputs(spec_.types.size());
  const ColocateWith near(handle_.graph(), handle_);
  return AllOutputs(AddNode("IteratorGetNext", {handle_}, ElementAttrs(spec_), name),
                    spec_.types.size());
}

Operation Iterator::MakeInitializer(const Dataset& dataset, absl::string_view name) const {
  if (!handle_.valid() || !dataset.variant().valid()) return {};
  Graph& graph = handle_.graph();
  bool fits = dataset.types() == spec_.types;
  for (size_t i = 0; fits && i < spec_.shapes.size(); ++i)
    fits = dataset.shapes()[i].IsCompatibleWith(spec_.shapes[i]);
  if (!fits) {
    graph.Fail(InvalidArgument("MakeInitializer: Expected output types ", TypesText(spec_.types),
                               " and compatible shapes for the iterator ", handle_.name(),
                               ", but got a data set with elements of types ",
                               TypesText(dataset.types())));
    return {};
  }
  const ColocateWith near(graph, handle_);
  return Operation(AddNode("MakeIterator", {dataset.variant(), handle_}, {},
                           name.empty() ? "make_initializer" : name));
}

Iterator MakeInitializableIterator(const Dataset& dataset, absl::string_view shared_name) {
  const ElementSpec& spec = dataset.element_spec();
  if (!dataset.variant().valid()) return Iterator(Output(), spec);
  Graph& graph = dataset.variant().graph();
  const ColocateWith near(graph, dataset.variant());
  const Output handle = AddIterator(graph, spec, shared_name);
  if (!handle.valid()) return Iterator(Output(), spec);
  const Operation initializer(AddNode("MakeIterator", {dataset.variant(), handle}));
  Iterator iterator(handle, spec);
  iterator.initializer_ = initializer;
  return iterator;
}

// ---- one-shot iterators

namespace {

// Returns the nodes that `root` depends on, and itself, in the order of their creation.
std::vector<const Node*> NodesBehind(const Node* root) {
  std::set<const Node*> seen = {root};
  std::vector<const Node*> nodes = {root};
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto visit = [&](const Node* node) {
      if (seen.insert(node).second) nodes.push_back(node);
    };
    const Node& node = *nodes[i];
    for (const Output& input : node.inputs()) visit(input.node);
    for (const Node* control : node.control_inputs()) visit(control);
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const Node* a, const Node* b) { return a->id() < b->id(); });
  return nodes;
}

// Data sets are stateful in TensorFlow's records, but a copy is as good as the original.
absl::Status CheckCopyable(const Node& node) {
  const bool is_placeholder = node.op().traits().placeholder;
  const bool is_dataset = node.num_outputs() > 0 && node.output_type(0) == DT_VARIANT;
  if (!is_placeholder && (!node.op().stateful() || is_dataset)) return absl::OkStatus();
  return InvalidArgument("Cannot capture a ", is_placeholder ? "placeholder" : "stateful node",
                         " by value: ", node.Label(), ". Use MakeInitializableIterator instead");
}

// Copies nodes, to which an input precedes, to another graph under the same names.
class Copier {
 public:
  explicit Copier(Graph* graph) : graph_(*graph) {}

  absl::Status Copy(const Node& node) {
    WEIR_RETURN_IF_ERROR(CheckCopyable(node));
    NodeBuilder builder(graph_, node.op_name());
    builder.Name(absl::StrCat(node.name(), "/")).Device(node.device());
    for (const ArgSpec& arg : node.op().inputs()) {
      const auto [first, last] = node.InputRange(arg.name);
      Outputs values;
      for (int i = first; i < last; ++i) {
        const auto copy = copies_.find(node.input(i).node);
        if (copy == copies_.end()) return InLoop(node);
        values.emplace_back(copy->second, node.input(i).index);
      }
      const bool is_list = !arg.number_attr.empty() || !arg.type_list_attr.empty();
      is_list ? builder.InputList(values) : builder.Input(values[0]);
    }
    for (const Node* control : node.control_inputs()) {
      const auto copy = copies_.find(control);
      if (copy == copies_.end()) return InLoop(node);
      builder.Control(copy->second);
    }
    for (const auto& [name, value] : node.attrs()) {
      if (name[0] != '_') builder.Attr(name, value);
    }
    Node* copy = builder.Build();
    if (copy == nullptr) return graph_.status();
    copies_[&node] = copy;
    return absl::OkStatus();
  }

  Output CopyOf(const Output& value) const { return {copies_.at(value.node), value.index}; }

 private:
  static absl::Status InLoop(const Node& node) {
    return InvalidArgument("Cannot capture a loop by value: ", node.Label(),
                           ". Use MakeInitializableIterator instead");
  }

  Graph& graph_;
  std::map<const Node*, Node*> copies_;
};

// Defines a function without arguments that returns a copy of the data set.
absl::StatusOr<FunctionRef> DefineFactory(const Output& variant) {
  Graph& graph = variant.graph();
  Graph body(graph.ops(), graph.options());
  body.versions() = graph.versions();
  body.set_functions(graph.functions());
  Copier copier(&body);
  for (const Node* node : NodesBehind(variant.node)) WEIR_RETURN_IF_ERROR(copier.Copy(*node));
  FunctionRef factory;
  factory.name = absl::StrCat("_make_dataset_",
                              graph.functions() == nullptr ? 0 : graph.functions()->Names().size());
  WEIR_RETURN_IF_ERROR(DefineFunction(graph, factory.name, body, {}, {copier.CopyOf(variant)}));
  return factory;
}

}  // namespace

Iterator MakeOneShotIterator(const Dataset& dataset) {
  const ElementSpec& spec = dataset.element_spec();
  if (!dataset.variant().valid() || !dataset.variant().graph().status().ok())
    return Iterator(Output(), spec);
  Graph& graph = dataset.variant().graph();
  const absl::StatusOr<FunctionRef> factory = DefineFactory(dataset.variant());
  if (!factory.ok()) {
    graph.Fail(Annotate(factory.status(), "MakeOneShotIterator"));
    return Iterator(Output(), spec);
  }
  const ColocateWith near(graph, dataset.variant());
  Node* node =
      AddNode(graph, "OneShotIterator", {}, ElementAttrs(spec, {{"dataset_factory", *factory}}));
  return Iterator(node == nullptr ? Output() : node->output(0), spec);
}

}  // namespace weir
