#include "weir/ops/flow_context.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "weir/core/scope.h"
#include "weir/ops/variable_store.h"

// The nodes of a branch or a loop are built as anywhere else, and get their edges across its border
// afterwards, when the context is closed or another one is opened in it.
//
// A value from outside is replaced: in a branch by the branch's side of a Switch on it, which is
// dead if the branch is not taken, and so is all that depends on it; in a loop by a constant Enter.
// It comes in through each context around the node that uses it, outermost first, once; the first
// user gives the Switch or Enter its name. A node without inputs waits for the context's pivot, and
// so does one in a loop that depends on nothing but constants of the loop: it would run once more
// than the body does. Control edges do not lead into a loop: what must come before is known inside
// by an Identity of its value.
//
// These are the rules of TensorFlow's CondContext and WhileContext, which apply them to each node
// as it is made; names come out the same because nodes are settled in the order they were made, and
// before any of an inner context.
namespace weir {

FlowStack& FlowStack::Of(Graph& graph) {
  auto& stack = graph.Extension<std::unique_ptr<FlowStack>>();
  if (stack == nullptr) stack = std::make_unique<FlowStack>(graph);
  return *stack;
}

void FlowStack::Open(FlowContext* context) {
  Settle();
  context->first = context->settled = graph_.num_nodes();
  open_.push_back(context);
}

void FlowStack::Close() {
  Settle();
  open_.pop_back();
  for (FlowContext* outer : open_) outer->settled = graph_.num_nodes();
}

void FlowStack::Settle() {
  if (open_.empty()) return;
  const int level = static_cast<int>(open_.size()) - 1;
  FlowContext& c = *open_[level];
  for (; c.settled < graph_.num_nodes() && graph_.status().ok(); ++c.settled) {
    Node* node = graph_.nodes()[c.settled].get();
    if (c.Contains(node)) SettleNode(level, node);
  }
}

void FlowStack::SettleNode(int level, Node* node) {
  FlowContext& c = *open_[level];
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Output seen = SeeAt(level, node->input(i), node->name());
    if (!seen) return;
    if (seen != node->input(i)) graph_.Fail(graph_.SetInput(node, i, seen));
  }
  std::vector<Node*> outside = TakeOutsideControls(level, node);
  const auto controls = node->control_inputs();
  bool waits = true;
  if (node->num_inputs() == 0) {
    waits = std::any_of(controls.begin(), controls.end(),
                        [&c](const Node* control) { return c.Contains(control); });
  } else if (c.kind == FlowContext::Kind::kLoop) {
    const auto inputs = node->inputs();
    waits = !controls.empty() || !std::all_of(inputs.begin(), inputs.end(), IsLoopConstant);
  }
  if (!waits && c.pivot != nullptr) graph_.Fail(graph_.AddControlInput(node, c.pivot));
  if (c.kind == FlowContext::Kind::kLoop) {
    for (Node* control : outside) WaitInside(level, node, control);
  }
}

// Takes the edges away that come from outside the innermost loop around the node.
std::vector<Node*> FlowStack::TakeOutsideControls(int level, Node* node) {
  int loop = level;
  while (loop >= 0 && open_[loop]->kind != FlowContext::Kind::kLoop) --loop;
  if (loop < 0) return {};
  std::vector<Node*> inside, outside;
  for (Node* control : node->control_inputs())
    (open_[loop]->Contains(control) ? inside : outside).push_back(control);
  if (!outside.empty()) graph_.Fail(graph_.SetControlInputs(node, inside));
  return outside;
}

// Has the node wait for an Identity, inside, of what `control` makes outside.
void FlowStack::WaitInside(int level, Node* node, Node* control) {
  if (control->num_outputs() == 0) return;
  // Constants are made in the scope of the op they are for, not in one of their own.
  const std::string& name = node->name();
  const size_t slash = node->op_name() == "Const" ? name.rfind('/') : std::string::npos;
  const std::string scope = name.substr(0, slash);
  const std::string identity_name = graph_.UniqueName(scope + "/Identity");
  const Output value = SeeAt(level, control->output(), identity_name);
  if (!value) return;
  Node* identity = NodeBuilder(graph_, "Identity")
                       .Name(identity_name + "/")
                       .Input(value)
                       .Control(open_[level]->pivot)
                       .Verbatim()
                       .Build();
  if (identity != nullptr) graph_.Fail(graph_.AddControlInput(node, identity));
}

Output FlowStack::See(const Output& value, const std::string& user) {
  return SeeAt(static_cast<int>(open_.size()) - 1, value, user);
}

Output FlowStack::SeeResult(const Output& value, const std::string& user) {
  return SeeAt(static_cast<int>(open_.size()) - 1, value, user, /*is_result=*/true);
}

Output FlowStack::SeeOutside(const Output& value, const std::string& user) {
  return SeeAt(static_cast<int>(open_.size()) - 2, value, user);
}

Output FlowStack::SeeAt(int level, const Output& value, const std::string& user, bool is_result) {
  if (level < 0 || !value) return value;
  FlowContext& c = *open_[level];
  if (c.Contains(value.node)) return value;
  if (const auto it = c.seen.find(value); it != c.seen.end()) return it->second;
  const Output outer = SeeAt(level - 1, value, user);
  if (!outer) return {};
  Node* node = Bring(level, outer, user, is_result);
  if (node == nullptr) return {};
  for (size_t i = level; i < open_.size(); ++i) open_[i]->outside.insert(node);
  const Output inner = node->output(c.kind == FlowContext::Kind::kBranch ? c.side : 0);
  c.seen[inner] = inner;
  return c.seen[value] = inner;
}

// The node through which a value comes in.
Node* FlowStack::Bring(int level, const Output& outer, const std::string& user, bool is_result) {
  const FlowContext& c = *open_[level];
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

Node* FlowStack::OuterPivot() const {
  for (size_t i = open_.size(); i-- > 1;) {
    if (open_[i - 1]->pivot != nullptr) return open_[i - 1]->pivot;
  }
  return nullptr;
}

bool FlowStack::IsInside(const Output& value) const {
  return std::any_of(open_.begin(), open_.end(),
                     [&value](const FlowContext* c) { return c->Contains(value.node); });
}

bool IsLoopConstant(const Output& value) {
  const std::string& op = value.node->op_name();
  return (op == "Enter" || op == "RefEnter") && value.node->attr<bool>("is_constant");
}

OutsideFlow::OutsideFlow(Graph& graph) : graph_(graph), first_(graph.num_nodes()) {
  FlowStack& stack = FlowStack::Of(graph);
  stack.Settle();
  open_ = std::exchange(stack.open_, {});
}

OutsideFlow::~OutsideFlow() {
  for (int id = first_; id < graph_.num_nodes() && !open_.empty(); ++id) {
    const Node* node = graph_.nodes()[id].get();
    CheckOutside(*node);
    for (FlowContext* context : open_) context->outside.insert(node);
  }
  FlowStack::Of(graph_).open_ = std::move(open_);
}

void OutsideFlow::CheckOutside(const Node& node) const {
  for (const Output& in : node.inputs()) {
    if (!open_[0]->Contains(in.node)) continue;
    graph_.Fail(InvalidArgument(
        node.Label(),
        " lies outside of the branches and loops under construction, as variables and ",
        "their initial values do, but takes ", in.name(), ", which is there only inside"));
  }
}

bool IsInFlow(const Output& value) { return value && FlowStack::Of(value.graph()).IsInside(value); }

}  // namespace weir
