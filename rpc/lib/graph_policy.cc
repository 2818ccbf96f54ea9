#include "weir/rpc/lib/graph_policy.h"

#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/ops/lib/external_access.h"
#include "weir/proto/graph.pb.h"

namespace weir::rpc {

namespace {

using Visit = absl::FunctionRef<absl::Status(const std::string& op)>;

// Calls `visit` with the functions that an attribute names. A function's attributes may name
// others; the parser limits their nesting. An op can stand where a function is expected.
absl::Status VisitFunctions(const proto::AttrValue& attr, Visit visit) {
  std::vector<const proto::NameAttrList*> functions;
  if (attr.has_func()) functions.push_back(&attr.func());
  for (const proto::NameAttrList& function : attr.list().func()) functions.push_back(&function);
  for (const proto::NameAttrList* function : functions) {
    WEIR_RETURN_IF_ERROR(visit(function->name()));
    for (const auto& [name, value] : function->attr())
      WEIR_RETURN_IF_ERROR(VisitFunctions(value, visit));
  }
  return absl::OkStatus();
}

// Calls `visit` with the op of a node, which may be a function, and the functions that it calls.
absl::Status VisitOps(const proto::NodeDef& node, Visit visit) {
  WEIR_RETURN_IF_ERROR(visit(node.op()));
  for (const auto& [name, value] : node.attr()) WEIR_RETURN_IF_ERROR(VisitFunctions(value, visit));
  return absl::OkStatus();
}

absl::Status CheckNode(const proto::NodeDef& node) {
  return VisitOps(node, [&](const std::string& op) -> absl::Status {
    const ExternalAccess access = ExternalAccessOf(op);
    if (access == ExternalAccess::kNone) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat(
        "Node '", node.name(), "' (op ", op, "): this server does not allow graphs to access ",
        access == ExternalAccess::kFiles ? "files" : "its log", " (weir serve --untrusted)"));
  });
}

absl::Status TooLarge(const char* what, int64_t has, int64_t limit) {
  return absl::ResourceExhaustedError(absl::StrCat("The graph of the session would have ", has, " ",
                                                   what, ", but the server allows ", limit));
}

bool StartsThreads(absl::string_view op) {
  return op == "Batch" || op == "BatchFunction" || op == "Unbatch";
}

}  // namespace

absl::Status GraphPolicy::Add(const proto::GraphDef& addition) {
  if (!limits_.allow_external_access) WEIR_RETURN_IF_ERROR(CheckOps(addition));
  if (limits_.max_nodes > 0 || limits_.max_bytes > 0) WEIR_RETURN_IF_ERROR(CheckSize(addition));
  if (limits_.max_thread_nodes > 0) WEIR_RETURN_IF_ERROR(CheckThreads(addition));
  if (limits_.max_call_depth > 0) WEIR_RETURN_IF_ERROR(CheckCallDepth(addition));
  return absl::OkStatus();
}

absl::Status GraphPolicy::CheckOps(const proto::GraphDef& addition) {
  for (const proto::NodeDef& node : addition.node()) WEIR_RETURN_IF_ERROR(CheckNode(node));
  for (const proto::FunctionDef& function : addition.library().function()) {
    for (const proto::NodeDef& node : function.node_def()) {
      const absl::Status status = CheckNode(node);
      if (!status.ok())
        return Annotate(status, absl::StrCat("In function ", function.signature().name()));
    }
  }
  return absl::OkStatus();
}

absl::Status GraphPolicy::CheckSize(const proto::GraphDef& addition) {
  num_bytes_ += static_cast<int64_t>(addition.ByteSizeLong());
  num_nodes_ += addition.node_size();
  for (const proto::FunctionDef& function : addition.library().function())
    num_nodes_ += function.node_def_size();
  if (limits_.max_nodes > 0 && num_nodes_ > limits_.max_nodes)
    return TooLarge("nodes", num_nodes_, limits_.max_nodes);
  if (limits_.max_bytes > 0 && num_bytes_ > limits_.max_bytes)
    return TooLarge("bytes", num_bytes_, limits_.max_bytes);
  return absl::OkStatus();
}

absl::Status GraphPolicy::CheckThreads(const proto::GraphDef& addition) {
  for (const proto::NodeDef& node : addition.node()) {
    WEIR_RETURN_IF_ERROR(VisitOps(node, [&](const std::string& op) {
      num_thread_nodes_ += StartsThreads(op) ? 1 : 0;
      return absl::OkStatus();
    }));
  }
  if (num_thread_nodes_ > limits_.max_thread_nodes) {
    return TooLarge("nodes of Batch, BatchFunction and Unbatch, which start threads",
                    num_thread_nodes_, limits_.max_thread_nodes);
  }
  for (const proto::FunctionDef& function : addition.library().function()) {
    for (const proto::NodeDef& node : function.node_def()) {
      WEIR_RETURN_IF_ERROR(VisitOps(node, [&](const std::string& op) -> absl::Status {
        if (!StartsThreads(op)) return absl::OkStatus();
        return absl::PermissionDeniedError(absl::StrCat(
            "Node '", node.name(), "' (op ", op, ") in function ", function.signature().name(),
            " starts threads; this server allows such ops outside of functions only"));
      }));
    }
  }
  return absl::OkStatus();
}

// Removes functions that call no other function until none is left: each round removes one level of
// the calls. If only functions remain that call one of them, there is a cycle.
absl::Status GraphPolicy::CheckCallDepth(const proto::GraphDef& addition) {
  for (const proto::FunctionDef& function : addition.library().function()) {
    std::set<std::string>& callees = callees_[function.signature().name()];
    for (const proto::NodeDef& node : function.node_def()) {
      WEIR_RETURN_IF_ERROR(VisitOps(node, [&](const std::string& op) {
        callees.insert(op);
        return absl::OkStatus();
      }));
    }
  }
  std::map<std::string, std::vector<std::string>> callers;
  std::map<std::string, int> num_callees;
  std::vector<std::string> level;
  for (const auto& [name, callees] : callees_) {
    int count = 0;
    for (const std::string& callee : callees) {
      if (!callees_.contains(callee)) continue;
      callers[callee].push_back(name);
      ++count;
    }
    num_callees[name] = count;
    if (count == 0) level.push_back(name);
  }
  int depth = 0;
  for (; !level.empty() && depth <= limits_.max_call_depth; ++depth) {
    std::vector<std::string> next;
    for (const std::string& name : level) {
      num_callees.erase(name);
      for (const std::string& caller : callers[name]) {
        if (--num_callees[caller] == 0) next.push_back(caller);
      }
    }
    level = std::move(next);
  }
  if (depth > limits_.max_call_depth) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The functions of the session would call each other more than ",
                     limits_.max_call_depth, " levels deep, which the server does not allow"));
  }
  if (!num_callees.empty())
    return InvalidArgument("Function ", num_callees.begin()->first,
                           " calls itself, or functions that do; this server does not allow "
                           "recursion");
  return absl::OkStatus();
}

}  // namespace weir::rpc
