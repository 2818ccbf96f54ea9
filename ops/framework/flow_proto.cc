// Serialization of branches and loops for a meta graph, so that TensorFlow can extend the graph:
// the context of imported nodes, where values enter from outside, and the parts of a loop.

#include <map>
#include <set>
#include <vector>

#include "weir/ops/framework/flow_context.h"
#include "weir/proto/control_flow.pb.h"

namespace weir {

namespace {

// Writes one outermost context and the contexts nested in it.
class ContextWriter {
 public:
  explicit ContextWriter(const FlowContext& root) {
    const FlowStack& stack = *root.stack;
    for (const auto& context : stack.contexts()) {
      if (context->outer != nullptr) nested_[context->outer].push_back(context.get());
    }
    for (const auto& node : stack.graph().nodes()) {
      const FlowContext* const context = stack.ContextOf(node.get());
      if (root.Contains(context)) AddValues(context, *node);
    }
  }

  void Write(const FlowContext& c, proto::CondContextDef* def) {
    def->set_context_name(c.name());
    def->set_pred_name(c.pred.name());
    def->set_pivot_name(c.pivot->output().name());
    def->set_branch(c.side);
    std::set<std::string>& values = values_[&c];
    values.insert({c.pred.name(), c.pivot->output().name()});
    (*def->mutable_values_def()->mutable_external_values())[c.pred.name()] = c.pred.name();
    WriteValues(c, def->mutable_values_def());
    for (const FlowContext* inner : nested_[&c]) Write(*inner, def->add_nested_contexts());
  }

  void Write(const FlowContext& c, proto::WhileContextDef* def) {
    def->set_context_name(c.name());
    def->set_parallel_iterations(static_cast<int32_t>(c.parallel_iterations));
    def->set_back_prop(true);
    if (c.maximum_iterations.valid()) def->set_maximum_iterations_name(c.maximum_iterations.name());
    def->set_pivot_name(c.condition.name());
    if (c.pivot_for_pred != nullptr)
      def->set_pivot_for_pred_name(c.pivot_for_pred->output().name());
    def->set_pivot_for_body_name(c.pivot->output().name());
    for (const Output& exit : c.exits) def->add_loop_exit_names(exit.name());
    for (const Output& enter : c.enters) def->add_loop_enter_names(enter.name());
    WriteValues(c, def->mutable_values_def());
    for (const FlowContext* inner : nested_[&c]) Write(*inner, def->add_nested_contexts());
  }

 private:
  // Adds a value of a branch to all contexts around it as well; TensorFlow's reader then returns it
  // to the branch.
  void AddValues(const FlowContext* context, const Node& node) {
    const bool is_branch = context->kind == FlowContext::Kind::kBranch;
    for (; context != nullptr; context = is_branch ? context->outer : nullptr) {
      for (int i = 0; i < node.num_outputs(); ++i) values_[context].insert(node.output(i).name());
    }
  }

  void Write(const FlowContext& c, proto::ControlFlowContextDef* def) {
    if (c.kind == FlowContext::Kind::kBranch) {
      Write(c, def->mutable_cond_ctxt());
    } else {
      Write(c, def->mutable_while_ctxt());
    }
  }

  void WriteValues(const FlowContext& c, proto::ValuesDef* def) {
    std::set<std::string>& values = values_[&c];
    for (const auto& [outside, inside] : c.imported) {
      values.insert({outside.name(), inside.name()});
      if (outside != inside) (*def->mutable_external_values())[outside.name()] = inside.name();
    }
    for (const std::string& value : values) def->add_values(value);
  }

  std::map<const FlowContext*, std::vector<const FlowContext*>> nested_;
  std::map<const FlowContext*, std::set<std::string>> values_;
};

}  // namespace

std::string FlowContext::Serialize() const {
  ContextWriter writer(*this);
  if (kind == Kind::kLoop) {
    proto::WhileContextDef def;
    writer.Write(*this, &def);
    return def.SerializeAsString();
  }
  proto::CondContextDef def;
  writer.Write(*this, &def);
  return def.SerializeAsString();
}

}  // namespace weir
