#include "weir/ops/flow_context.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "weir/core/scope.h"
#include "weir/ops/collections.h"
#include "weir/ops/gradient_loops_internal.h"
#include "weir/ops/variable_store.h"

// The nodes of a branch or a loop are built as anywhere else, and get their edges across its border
// afterward, when the context is closed or another one is opened.
//
// A value from outside is replaced: in a branch by the branch's side of a Switch on it, which is
// dead if the branch is not taken, and so is all that depends on it; in a loop by a constant Enter.
// It comes in through each context around the node that uses it, outermost first, once; the first
// user gives the Switch or Enter its name. A node without inputs waits for the context's pivot, and
// so does one in a loop that depends on nothing but constants of the loop: it would run once more
// than the body does. Control edges do not lead into a loop: what must come before is known inside
// by an Identity of its value. In the loop of a gradient, a value of the loop that it goes back
// through is what it was in the iteration at hand (ops/gradient_loops_internal.h).
//
// These are the rules of TensorFlow's CondContext and WhileContext, which apply them to each node
// as it is made; names come out the same because nodes are settled in the order they were made, and
// before any of another context.
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

void FlowStack::List(const FlowContext& context) {
  if (context.outer != nullptr) return;
  const bool is_loop = context.kind == FlowContext::Kind::kLoop;
  const auto it = std::find_if(contexts_.rbegin(), contexts_.rend(),
                               [&](const auto& each) { return each.get() == &context; });
  graph_.AddToCollection(is_loop ? collections::kWhileContext : collections::kCondContext,
                         std::shared_ptr<CollectionObject>(*it));
}

void FlowStack::Open(FlowContext* context) {
  Settle();
  open_.push_back(context);
}

void FlowStack::Close() {
  Settle();
  open_.pop_back();
}

void FlowStack::Settle() {
  const int first = std::exchange(settled_, graph_.num_nodes()), last = settled_;
  FlowContext* const context = current();
  if (context == nullptr) return;
  // All belong to it before the first has its edges: other contexts may be opened for that.
  std::vector<Node*> made;
  for (int id = first; id < last; ++id) {
    Node* node = graph_.nodes()[id].get();
    if (context_of_.try_emplace(node, context).second) made.push_back(node);
  }
  for (Node* node : made) {
    if (!graph_.status().ok()) return;
    SettleNode(node);
  }
}

FlowContext* FlowStack::ContextOf(const Node* node) const {
  if (const auto it = context_of_.find(node); it != context_of_.end()) return it->second;
  return node->id() >= settled_ ? current() : nullptr;
}

FlowContext* FlowStack::OutputContextOf(const Node* node) const {
  FlowContext* const context = ContextOf(node);
  const bool leaves = node->op_name() == "Exit" || node->op_name() == "RefExit";
  return leaves && context != nullptr ? context->outer : context;
}

void FlowStack::Assign(const Node* node, FlowContext* context) { context_of_[node] = context; }

// The shape of a value that a gradient needs is taken where the value is: it takes less to keep.
void FlowStack::SettleNode(Node* node) {
  FlowContext* const context = ContextOf(node);
  FlowContext* const loop = LoopAround(context);
  const std::string& op = node->op_name();
  if (loop != nullptr && loop->gradient != nullptr &&
      (op == "Shape" || op == "Size" || op == "Rank")) {
    FlowContext* const of_value = ContextOf(node->input(0).node);
    if (of_value != nullptr && LoopAround(of_value) == loop->gradient->forward()) {
      Assign(node, of_value);
      return SettleIn(of_value, node);
    }
  }
  SettleIn(context, node);
}

void FlowStack::SettleIn(FlowContext* context, Node* node) {
  FlowContext& c = *context;
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Output seen = See(context, node->input(i), node->name());
    if (!seen.valid()) return;
    if (seen != node->input(i)) graph_.Fail(graph_.SetInput(node, i, seen));
  }
  std::vector<Node*> outside = TakeOutsideControls(context, node);
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
    for (Node* control : outside) WaitInside(context, node, control);
  }
}

// Takes the edges away that come from outside the innermost loop around the node.
std::vector<Node*> FlowStack::TakeOutsideControls(FlowContext* context, Node* node) {
  const FlowContext* const loop = LoopAround(context);
  if (loop == nullptr) return {};
  std::vector<Node*> inside, outside;
  for (Node* control : node->control_inputs())
    (loop->Contains(OutputContextOf(control)) ? inside : outside).push_back(control);
  if (!outside.empty()) graph_.Fail(graph_.SetControlInputs(node, inside));
  return outside;
}

// Has the node wait for an Identity, inside, of what `control` makes outside.
void FlowStack::WaitInside(FlowContext* context, Node* node, Node* control) {
  if (control->num_outputs() == 0) return;
  // Constants are made in the scope of the op they are for, not in one of their own.
  const std::string& name = node->name();
  const size_t slash = node->op_name() == "Const" ? name.rfind('/') : std::string::npos;
  const std::string scope = name.substr(0, slash);
  const std::string identity_name = graph_.UniqueName(scope + "/Identity");
  const Output value = See(context, control->output(), identity_name);
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

Output FlowStack::See(FlowContext* context, const Output& value, const std::string& user) {
  return SeeIn(context, value, user, /*is_result=*/false);
}

Output FlowStack::SeeResult(FlowContext* branch, const Output& value, const std::string& user) {
  return SeeIn(branch, value, user, /*is_result=*/true);
}

Output FlowStack::SeeIn(FlowContext* c, const Output& value, const std::string& user,
                        bool is_result) {
  if (c == nullptr || !value.valid()) return value;
  if (const auto it = c->seen.find(value); it != c->seen.end()) return it->second;
  FlowContext* const made_in = OutputContextOf(value.node);
  if (c->Contains(made_in)) return value;
  if (c->gradient != nullptr && LoopAround(made_in) == c->gradient->forward())
    return c->seen[value] = c->gradient->RealValue(value, user);
  const Output outer = SeeIn(c->outer, value, user, /*is_result=*/false);
  if (!outer.valid()) return {};
  Node* node = Bring(*c, outer, user, is_result);
  if (node == nullptr) return {};
  Assign(node, c);
  return c->seen[value] = node->output(c->kind == FlowContext::Kind::kBranch ? c->side : 0);
}

// The node through which a value comes in.
Node* FlowStack::Bring(const FlowContext& c, const Output& outer, const std::string& user,
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
  } else if (node != nullptr) {  // it is placed like its user
    enter.Device(node->device());
    if (const AttrValue* marks = node->FindAttr("_class")) enter.Attr("_class", *marks);
  }
  return enter.Build();
}

bool FlowStack::IsInside(const Output& value) const {
  FlowContext* const made_in = OutputContextOf(value.node);
  return std::any_of(open_.begin(), open_.end(), [made_in](const FlowContext* c) {
    return c != nullptr && c->Contains(made_in);
  });
}

bool IsLoopConstant(const Output& value) {
  const std::string& op = value.node->op_name();
  return (op == "Enter" || op == "RefEnter") && value.node->attr<bool>("is_constant");
}

OutsideFlow::OutsideFlow(Graph& graph) : graph_(graph) {
  FlowStack::Of(graph).Open(nullptr);
  first_ = graph.num_nodes();  // what was made inside now has its edges, and nodes for these
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
        node.Label(),
        " lies outside of the branches and loops under construction, as variables and ",
        "their initial values do, but takes ", in.name(), ", which is there only inside"));
  }
}

bool IsInFlow(const Output& value) {
  return value.valid() && FlowStack::Of(value.graph()).IsInside(value);
}

}  // namespace weir
