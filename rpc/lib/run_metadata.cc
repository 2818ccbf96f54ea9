#include "weir/rpc/lib/run_metadata.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/config.pb.h"

namespace weir::rpc {

namespace {

int64_t Nanos(auto time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

constexpr int64_t kMicro = 1000;
// Clocks can be that far ahead.
constexpr int64_t kMaxTimeoutMs = 1'000'000'000'000;

void WriteNode(const NodeTrace& node, int64_t epoch_ns, proto::NodeExecStats* stats) {
  const int64_t start = node.start_ns + epoch_ns, took = node.end_ns - node.start_ns;
  stats->set_node_name(node.node);
  stats->set_timeline_label(absl::StrCat(node.node, " = ", node.op, "()"));
  stats->set_thread_id(static_cast<uint32_t>(node.thread));
  stats->set_scheduled_micros(start / kMicro);
  stats->set_all_start_micros(start / kMicro);
  stats->set_op_end_rel_micros(took / kMicro);
  stats->set_all_end_rel_micros(took / kMicro);
  stats->set_scheduled_nanos(start);
  stats->set_all_start_nanos(start);
  stats->set_op_end_rel_nanos(took);
  stats->set_all_end_rel_nanos(took);
}

}  // namespace

RunReport::RunReport(const proto::RunOptions& options)
    : timeout_(std::clamp<int64_t>(options.timeout_in_ms(), 0, kMaxTimeoutMs)),
      wants_trace_(options.trace_level() != proto::RunOptions::NO_TRACE),
      wants_graph_(options.output_partition_graphs()),
      epoch_ns_(Nanos(std::chrono::system_clock::now()) - Nanos(std::chrono::steady_clock::now())) {
}

uint64_t RunReport::bytes() const {
  constexpr uint64_t kBytesPerNode = 500;
  return kBytesPerNode * trace_.size();
}

std::chrono::milliseconds ShorterLimit(std::chrono::milliseconds a, std::chrono::milliseconds b) {
  return a.count() == 0 || b.count() == 0 ? std::max(a, b) : std::min(a, b);
}

RunOptions RunReport::options(Cancellation& cancellation, std::chrono::milliseconds max_limit) {
  RunOptions options;
  // Without a limit of its own, the run has that of its session.
  if (timeout_.count() > 0) options.timeout = ShorterLimit(timeout_, max_limit);
  options.cancellation = &cancellation;
  if (wants_trace_) options.trace = &trace_;
  return options;
}

std::string FailedNodeMark(const absl::Status& error) {
  const std::string node = FailedNode(error);
  return node.empty() ? "" : absl::StrCat("\n\t [[{{node ", node, "}}]]");
}

void RunReport::WriteStatistics(const std::vector<Device*>& devices,
                                proto::RunMetadata* metadata) const {
  if (!wants_trace_) return;
  std::map<std::string, proto::DeviceStepStats*> by_device;
  const auto device_stats = [&](const std::string& name) {
    proto::DeviceStepStats*& stats = by_device[name];
    if (stats == nullptr) {
      stats = metadata->mutable_step_stats()->add_dev_stats();
      stats->set_device(name);
    }
    return stats;
  };
  for (const Device* device : devices) device_stats(device->text());
  for (const NodeTrace& node : trace_)
    WriteNode(node, epoch_ns_, device_stats(node.device)->add_node_stats());
}

void WritePartition(const Graph& graph, const Outputs& feeds, const Outputs& fetches,
                    const std::vector<Operation>& targets, const std::string& device,
                    proto::RunMetadata* metadata) {
  absl::flat_hash_set<const Node*> needed;
  std::vector<const Node*> stack;
  const absl::flat_hash_set<Output> fed(feeds.begin(), feeds.end());
  const auto need = [&](const Node* node) {
    if (needed.insert(node).second) stack.push_back(node);
  };
  for (const Output& fetch : fetches) need(fetch.node);
  for (const Operation& target : targets) need(target.node);
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (const Output& input : node->inputs()) {
      if (!fed.contains(input)) need(input.node);
    }
    for (const Node* control : node->control_inputs()) need(control);
  }
  proto::GraphDef whole;
  ExportGraphDef(graph, &whole);
  proto::GraphDef* partition = metadata->add_partition_graphs();
  *partition->mutable_versions() = whole.versions();
  *partition->mutable_library() = whole.library();
  for (proto::NodeDef& node : *whole.mutable_node()) {
    if (!needed.contains(graph.FindNode(node.name()))) continue;
    node.set_device(device);
    partition->add_node()->Swap(&node);
  }
}

}  // namespace weir::rpc
