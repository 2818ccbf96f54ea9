#include "weir/session/plan/plan_dump.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/graph.pb.h"

namespace weir {

namespace {

absl::string_view OpOf(const PlanNode& n) {
  switch (n.kind) {
    case PlanNode::Kind::kFeed:
      return "_Feed";
    case PlanNode::Kind::kCarry:
      return "_Carry";
    default:
      return n.node->op_name();
  }
}

// Names by node, all different: several nodes of a plan may come from one node of the graph, and
// the nodes that the runtime makes have names of their own graphs.
std::vector<std::string> UniqueNames(const PlanGraph& plan) {
  absl::flat_hash_map<std::string, int> uses;
  std::vector<std::string> names;
  for (const PlanNode& n : plan.nodes) {
    std::string name = n.node->name();
    while (uses[name]++ > 0) name = absl::StrCat(n.node->name(), "__", uses[name] - 1);
    names.push_back(std::move(name));
  }
  return names;
}

// A viewer shows no large constants, and a plan is dumped once for each pass: such a node is
// written without its attributes.
bool HasLargeValue(const Node& node) {
  constexpr size_t kMaxBytes = 4096;
  for (const auto& [name, value] : node.attrs()) {
    const Tensor* const t = value.get_if<Tensor>();
    if (t != nullptr && t->initialized() && t->num_bytes() > kMaxBytes) return true;
  }
  return false;
}

std::string Line(const PlanGraph& plan, int i) {
  const PlanNode& n = plan.nodes[i];
  std::string line = absl::StrCat(i, " ", n.node->name(), " = ", OpOf(n), "(");
  absl::StrAppend(&line,
                  absl::StrJoin(n.inputs, ", ",
                                [](std::string* out, const PlanValue& v) {
                                  absl::StrAppend(out, v.node, ":", v.output);
                                }),
                  ")");
  for (const int control : n.controls) absl::StrAppend(&line, " ^", control);
  if (n.num_outputs() > 0) absl::StrAppend(&line, " ->");
  for (int k = 0; k < n.num_outputs(); ++k) {
    absl::StrAppend(&line, k > 0 ? ", " : " ", DataTypeName(n.type(k)));
    if (k < static_cast<int>(n.shapes.size())) absl::StrAppend(&line, " ", n.shapes[k].ToString());
  }
  if (n.device != nullptr) absl::StrAppend(&line, " on ", n.device->text());
  if (n.num_outputs() > 0 && n.is_constant(0)) absl::StrAppend(&line, ", constant");
  if (n.may_be_dead) absl::StrAppend(&line, ", may be dead");
  if (n.loop >= 0) absl::StrAppend(&line, ", in loop ", n.loop);
  return line + "\n";
}

}  // namespace

std::string PlanText(const PlanGraph& plan) {
  std::string text;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (!plan.nodes[i].removed) text += Line(plan, static_cast<int>(i));
  }
  const auto value = [](std::string* out, const PlanValue& v) {
    absl::StrAppend(out, v.node, ":", v.output);
  };
  absl::StrAppend(&text, "feeds ", absl::StrJoin(plan.feeds, ", ", value), "\nfetches ",
                  absl::StrJoin(plan.fetches, ", ", value), "\ntargets ",
                  absl::StrJoin(plan.targets, ", "), "\n");
  return text;
}

std::string PlanGraphDef(const PlanGraph& plan) {
  proto::GraphDef def;
  const std::vector<std::string> names = UniqueNames(plan);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    if (n.removed) continue;
    proto::NodeDef* const node = def.add_node();
    if (n.kind == PlanNode::Kind::kOp && !HasLargeValue(*n.node)) NodeToProto(*n.node, node);
    node->set_name(names[i]);
    node->set_op(std::string(OpOf(n)));
    node->clear_input();
    for (const PlanValue& v : n.inputs)
      node->add_input(v.output == 0 ? names[v.node] : absl::StrCat(names[v.node], ":", v.output));
    for (const int control : n.controls) node->add_input("^" + names[control]);
    if (n.device != nullptr) node->set_device(n.device->text());
  }
  return DeterministicBytes(def);
}

}  // namespace weir
