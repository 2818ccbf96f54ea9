#include "weir/ops/framework/flow_context.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradient_loops_internal.h"
#include "weir/ops/framework/variable_store.h"
#include "weir/ops/lib/collections.h"

// The nodes of a branch or a loop are built like any other nodes. The edges that cross the
// context's border are rewired later, when the context is closed or another one is opened.
//
// A value from outside is replaced. In a branch, its replacement is the branch's output of a Switch
// on it, which is dead if the branch is not taken, as is everything that depends on it. In a loop,
// its replacement is a constant Enter. The value enters each context around the node that uses it
// once, outermost first; the first user gives the Switch or Enter its name. A node without inputs
// gets a control dependency on the context's pivot. So does a node in a loop that depends only on
// loop constants; otherwise it would run once more than the body does. Control edges do not cross
// into a loop: inside, an Identity of the predecessor's value replaces the predecessor. In a
// gradient loop, a value of the forward loop is replaced by its value in the corresponding
// iteration (ops/framework/gradient_loops_internal.h).
//
// These are the rules of TensorFlow's CondContext and WhileContext, which apply them to each node
// as it is created. The names match because nodes are rewired in the order in which they were
// created, and before any node of another context.
namespace weir {

FlowContext* LoopAround(FlowContext* context) {
  while (context != nullptr && context->kind != FlowContext::Kind::kLoop) context = context->outer;
  return context;
}

FlowStack& FlowStack::Of(Graph& graph) {
  auto& stack = graph.Extension<std::unique_ptr<FlowStack>>();
  if (stack == nullptr) stack = std::make_unique<FlowStack>(graph);
  return *stack;
}

FlowContext* FlowStack::Make(FlowContext::Kind kind) {
  contexts_.push_back(std::make_shared<FlowContext>());
  contexts_.back()->kind = kind;
  contexts_.back()->stack = this;
  contexts_.back()->outer = current();
  return contexts_.back().get();
}

void FlowStack::AddToCollection(const FlowContext& context) {
  if (context.outer != nullptr) return;
  const bool is_loop = context.kind == FlowContext::Kind::kLoop;
  const auto it = std::find_if(contexts_.rbegin(), contexts_.rend(),
                               [&](const auto& each) { return each.get() == &context; });
  graph_.AddToCollection(is_loop ? collections::kWhileContext : collections::kCondContext,
                         std::shared_ptr<CollectionObject>(*it));
}

void FlowStack::Open(FlowContext* context) {
  RewireNewNodes();
  open_.push_back(context);
}

void FlowStack::Close() {
  RewireNewNodes();
  open_.pop_back();
}

void FlowStack::RewireNewNodes() {
  const int first = std::exchange(num_rewired_, graph_.num_nodes()), last = num_rewired_;
  FlowContext* const context = current();
  if (context == nullptr) return;
  // Assign all nodes to the context before rewiring the first one, because rewiring may open other
  // contexts.
  std::vector<Node*> new_nodes;
  for (int id = first; id < last; ++id) {
    Node* node = graph_.nodes()[id].get();
    if (context_of_.try_emplace(node, context).second) new_nodes.push_back(node);
  }
  for (Node* node : new_nodes) {
    if (!graph_.status().ok()) return;
    RewireNode(node);
  }
}

FlowContext* FlowStack::ContextOf(const Node* node) const {
  if (const auto it = context_of_.find(node); it != context_of_.end()) return it->second;
  return node->id() >= num_rewired_ ? current() : nullptr;
}

FlowContext* FlowStack::OutputContextOf(const Node* node) const {
  FlowContext* const context = ContextOf(node);
  const bool leaves = node->op_name() == "Exit" || node->op_name() == "RefExit";
  return leaves && context != nullptr ? context->outer : context;
}

void FlowStack::Assign(const Node* node, FlowContext* context) { context_of_[node] = context; }

// If a gradient needs the shape of a value, the shape is computed in the value's own context,
// because a shape takes less memory to keep than the value.
void FlowStack::RewireNode(Node* node) {
  FlowContext* const context = ContextOf(node);
  FlowContext* const loop = LoopAround(context);
  const std::string& op = node->op_name();
  if (loop != nullptr && loop->gradient != nullptr &&
      (op == "Shape" || op == "Size" || op == "Rank")) {
    FlowContext* const value_context = ContextOf(node->input(0).node);
    if (value_context != nullptr && LoopAround(value_context) == loop->gradient->forward()) {
      Assign(node, value_context);
      return RewireIn(value_context, node);
    }
  }
  RewireIn(context, node);
}

void FlowStack::RewireIn(FlowContext* context, Node* node) {
  FlowContext& c = *context;
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Output imported = ImportValue(context, node->input(i), node->name());
    if (!imported.valid()) return;
    if (imported != node->input(i)) graph_.Fail(graph_.SetInput(node, i, imported));
  }
  std::vector<Node*> outside = RemoveOutsideControls(context, node);
  const auto controls = node->control_inputs();
  bool waits = true;
  if (node->num_inputs() == 0) {
    waits = std::any_of(controls.begin(), controls.end(),
                        [&](const Node* control) { return c.Contains(OutputContextOf(control)); });
  } else if (c.kind == FlowContext::Kind::kLoop) {
    const auto inputs = node->inputs();
    waits = !controls.empty() || !std::all_of(inputs.begin(), inputs.end(), IsLoopConstant);
  }
  if (!waits && c.pivot != nullptr) graph_.Fail(graph_.AddControlInput(node, c.pivot));
  if (c.kind == FlowContext::Kind::kLoop) {
    for (Node* control : outside) AddInnerControl(context, node, control);
  }
}

// Removes the control edges that come from outside the innermost loop around the node, and returns
// their sources.
std::vector<Node*> FlowStack::RemoveOutsideControls(FlowContext* context, Node* node) {
  const FlowContext* const loop = LoopAround(context);
  if (loop == nullptr) return {};
  std::vector<Node*> inside, outside;
  for (Node* control : node->control_inputs())
    (loop->Contains(OutputContextOf(control)) ? inside : outside).push_back(control);
  if (!outside.empty()) graph_.Fail(graph_.SetControlInputs(node, inside));
  return outside;
}

// Adds a control dependency of `node` on an Identity, inside the context, of the output of
// `control`, which is outside.
void FlowStack::AddInnerControl(FlowContext* context, Node* node, Node* control) {
  if (control->num_outputs() == 0) return;
  // Constants are created in the scope of the op that uses them, not in a scope of their own.
  const std::string& name = node->name();
  const size_t slash = node->op_name() == "Const" ? name.rfind('/') : std::string::npos;
  const std::string scope = name.substr(0, slash);
  const std::string identity_name = graph_.UniqueName(scope + "/Identity");
  const Output value = ImportValue(context, control->output(), identity_name);
  if (!value.valid()) return;
  Node* identity = NodeBuilder(graph_, "Identity")
                       .Name(identity_name + "/")
                       .Input(value)
                       .Control(context->pivot)
                       .Verbatim()
                       .Build();
  if (identity == nullptr) return;
  Assign(identity, context);
  graph_.Fail(graph_.AddControlInput(node, identity));
}

Output FlowStack::ImportValue(FlowContext* context, const Output& value, const std::string& user) {
  return ImportInto(context, value, user, /*is_result=*/false);
}

Output FlowStack::ImportResult(FlowContext* branch, const Output& value, const std::string& user) {
  return ImportInto(branch, value, user, /*is_result=*/true);
}

Output FlowStack::ImportInto(FlowContext* c, const Output& value, const std::string& user,
                             bool is_result) {
  if (c == nullptr || !value.valid()) return value;
  if (const auto it = c->imported.find(value); it != c->imported.end()) return it->second;
  FlowContext* const source_context = OutputContextOf(value.node);
  if (c->Contains(source_context)) return value;
  if (c->gradient != nullptr && LoopAround(source_context) == c->gradient->forward())
    return c->imported[value] = c->gradient->RealValue(value, user);
  const Output outer = ImportInto(c->outer, value, user, /*is_result=*/false);
  if (!outer.valid()) return {};
  Node* node = AddEntryNode(*c, outer, user, is_result);
  if (node == nullptr) return {};
  Assign(node, c);
  return c->imported[value] = node->output(c->kind == FlowContext::Kind::kBranch ? c->side : 0);
}

// Adds the Switch or Enter through which a value enters the context.
Node* FlowStack::AddEntryNode(const FlowContext& c, const Output& outer, const std::string& user,
                              bool is_result) {
  std::optional<ClearControlDependencies> no_controls;
  if (!is_result) no_controls.emplace(graph_);
  if (c.kind == FlowContext::Kind::kBranch) {
    const std::string name = graph_.UniqueName(user + "/Switch") + "/";
    const PlaceWith beside(graph_, outer.node, true);
    return AddNode(outer.is_ref() ? "RefSwitch" : "Switch", {outer, c.pred}, {}, name);
  }
  const char* const op = outer.is_ref() ? "RefEnter" : "Enter";
  NodeBuilder enter(graph_, op);
  enter.Name(graph_.UniqueName(absl::StrCat(user, "/", op)) + "/").Input(outer).Verbatim();
  enter.Attr("frame_name", c.frame_name);
  enter.Attr("is_constant", true);
  enter.Attr("parallel_iterations", c.parallel_iterations);
  const Node* node = graph_.FindNode(user);
  if (outer.is_ref()) {
    enter.ColocateWith(outer.node);
  } else if (node != nullptr) {  // placed like its user
    enter.Device(node->device());
    if (const AttrValue* marks = node->FindAttr("_class")) enter.Attr("_class", *marks);
  }
  return enter.Build();
}

bool FlowStack::IsInside(const Output& value) const {
  FlowContext* const source_context = OutputContextOf(value.node);
  return std::any_of(open_.begin(), open_.end(), [source_context](const FlowContext* c) {
    return c != nullptr && c->Contains(source_context);
  });
}

bool IsLoopConstant(const Output& value) {
  const std::string& op = value.node->op_name();
  return (op == "Enter" || op == "RefEnter") && value.node->attr<bool>("is_constant");
}

OutsideFlow::OutsideFlow(Graph& graph) : graph_(graph) {
  FlowStack::Of(graph).Open(nullptr);
  first_ = graph.num_nodes();  // all nodes created inside have been rewired
}

OutsideFlow::~OutsideFlow() {
  FlowStack& stack = FlowStack::Of(graph_);
  stack.Close();
  for (int id = first_; id < graph_.num_nodes(); ++id) CheckOutside(*graph_.nodes()[id]);
}

void OutsideFlow::CheckOutside(const Node& node) const {
  for (const Output& in : node.inputs()) {
    if (!IsInFlow(in)) continue;
    graph_.Fail(InvalidArgument(
        node.Label(), " is outside of the branches and loops under construction, as variables and ",
        "their initial values are, but uses ", in.name(), ", which exists only inside"));
  }
}

bool IsInFlow(const Output& value) {
  return value.valid() && FlowStack::Of(value.graph()).IsInside(value);
}

}  // namespace weir
