#include "weir/rpc/cluster/worker_session.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "weir/core/graph/op.h"
#include "weir/core/graph/signature.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/graph.pb.h"
#include "weir/rpc/lib/function_holders.h"
#include "weir/rpc/lib/run_metadata.h"
#include "weir/rpc/lib/session_requests.h"

namespace weir::rpc {

namespace {

// How many parts a session has at a time: TensorFlow's masters never drop one.
constexpr size_t kMaxParts = 10'000;

// Whether state that the node makes would have the node's name.
bool NamesState(const proto::NodeDef& node) {
  const OpSpec* const op = BuiltinOps().Find(node.op());
  if (op == nullptr || op->FindAttr("shared_name") == nullptr) return false;
  const auto shared_name = node.attr().find("shared_name");
  return shared_name == node.attr().end() || shared_name->second.s().empty();
}

// Masters add nodes whose names begin with '_', which no other graph may have: "_recv_x_0_S5"
// becomes "._recv_x_0_S5". INVALID_ARGUMENT if that is no name, or that of another node, or if
// state would have it, which a user's node could then reach.
absl::Status RenameInternalNodes(proto::GraphDef* def) {
  const auto rename = [](std::string* name) {
    const size_t begin = absl::StartsWith(*name, "^") ? 1 : 0;
    if (name->compare(begin, 1, "_") == 0) name->insert(begin, ".");
  };
  absl::flat_hash_set<std::string> names;
  for (proto::NodeDef& node : *def->mutable_node()) {
    const std::string given = node.name();
    rename(node.mutable_name());
    if (absl::StartsWith(given, "_") && (!IsNodeName(node.name()) || NamesState(node))) {
      return InvalidArgument("Node '", absl::CHexEscape(given), "' (op ", node.op(),
                             "): a name that begins with '_' must consist of [A-Za-z0-9_.\\/>-], "
                             "and no state may be named after it");
    }
    if (!names.insert(node.name()).second)
      return InvalidArgument("Duplicate node name in graph: '", given, "'");
    for (std::string& input : *node.mutable_input()) rename(&input);
  }
  return absl::OkStatus();
}

// The nodes that nothing waits for. With all that they need they are the whole graph.
std::vector<Operation> Ends(const Graph& graph) {
  std::vector<bool> is_needed(graph.num_nodes(), false);
  for (const auto& node : graph.nodes()) {
    for (const Output& in : node->inputs()) is_needed[in.node->id()] = true;
    for (const Node* control : node->control_inputs()) is_needed[control->id()] = true;
  }
  std::vector<Operation> ends;
  for (const auto& node : graph.nodes()) {
    if (!is_needed[node->id()]) ends.emplace_back(node.get());
  }
  return ends;
}

}  // namespace

absl::StatusOr<std::shared_ptr<GraphPart>> GraphPart::Create(proto::GraphDef* def,
                                                             const WorkerSessionOptions& options,
                                                             bool allow_soft_placement) {
  GraphPolicy policy(options.limits);
  WEIR_RETURN_IF_ERROR(policy.Add(*def));
  WEIR_RETURN_IF_ERROR(RenameInternalNodes(def));
  std::shared_ptr<GraphPart> part(new GraphPart);
  part->function_holders_ = ContainersHoldingFunctions(*def);
  WEIR_RETURN_IF_ERROR(ImportGraphDef(part->graph_, *def).status());
  SessionOptions session = options.session;
  session.allow_soft_placement = allow_soft_placement;
  WEIR_ASSIGN_OR_RETURN(Session made, Session::Create(part->graph_, std::move(session)));
  part->session_ = std::make_unique<Session>(std::move(made));
  WEIR_ASSIGN_OR_RETURN(part->step_,
                        part->session_->Prepare(Outputs(), Fetches(), Ends(part->graph_)));
  return part;
}

absl::Status GraphPart::Run(const RunOptions& options) const {
  const absl::Status status = step_.Run({}, nullptr, options);
  return absl::Status(status.code(), absl::StrCat(status.message(), FailedNodeMark(status)));
}

WorkerSession::WorkerSession(WorkerSessionOptions options) : options_(std::move(options)) {}

WorkerSession::~WorkerSession() { options_.session.own_resources->Reset({}); }

std::shared_ptr<MemoryQuota> WorkerSession::MemoryOfStep() const {
  return StepMemory(options_.memory, options_.step_memory_bytes);
}

absl::Status WorkerSession::Add(const std::string& handle, std::shared_ptr<GraphPart> part) {
  const MutexLock lock(mutex_);
  if (parts_.size() + removed_.size() >= kMaxParts) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The worker session has ", kMaxParts,
                     " steps, and takes no more: run the same feeds and "
                     "fetches again, or begin a new session"));
  }
  parts_[handle] = std::move(part);
  return absl::OkStatus();
}

std::shared_ptr<GraphPart> WorkerSession::Find(const std::string& handle) const {
  const MutexLock lock(mutex_);
  const auto found = parts_.find(handle);
  return found == parts_.end() ? nullptr : found->second;
}

bool WorkerSession::Remove(const std::string& handle) {
  std::shared_ptr<GraphPart> part;  // destroyed without the lock
  const MutexLock lock(mutex_);
  const auto found = parts_.find(handle);
  if (found == parts_.end()) return false;
  part = std::move(found->second);
  parts_.erase(found);
  if (part->graph().functions() != nullptr) removed_.push_back(std::move(part));
  return true;
}

std::set<std::string> WorkerSession::ContainersHoldingFunctions() const {
  std::set<std::string> containers;
  if (!options_.shares_state) return containers;
  const auto add = [&](const std::shared_ptr<GraphPart>& part) {
    containers.insert(part->function_holders().begin(), part->function_holders().end());
  };
  const MutexLock lock(mutex_);
  for (const auto& [handle, part] : parts_) add(part);
  for (const std::shared_ptr<GraphPart>& part : removed_) add(part);
  return containers;
}

void WorkerSession::Close() {
  const MutexLock lock(mutex_);
  for (const auto& [handle, part] : parts_) part->Close();
  for (const std::shared_ptr<GraphPart>& part : removed_) part->Close();
}

}  // namespace weir::rpc
