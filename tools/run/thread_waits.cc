#include "weir/tools/run/thread_waits.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "weir/tools/run/node_cost.h"

// Thread waits. The waits of a thread are the parts of the step in which it runs no node: its
// records are sorted by start time, and there is a gap where a record starts after all earlier ones
// have ended. (Records may overlap: an asynchronous node counts for the thread on which it
// finished.) The last gap extends to the end of the step and has no next node.
//
// What ended the gap? The node that the thread ran next needed inputs. The producer of each input
// is the record of the same step that last wrote the input's memory before the node began. Memory
// tells more than the graph, because the executed nodes are not those of the graph: many are fused,
// copies are inserted, and common subexpressions are eliminated. But if a node forwards the memory
// of another node, as Identity does, several records have that memory. Of these, the producer is
// the record that the graph names, if it names one, and otherwise the last one. Control edges have
// no memory, so only the graph shows them.
//
// Of these producers, the one that ended last is the cause, if it ended after the gap began: before
// that moment the node could not run, so the thread waited for the producer. (If the cause only
// forwards a value, the wait is attributed to the node that did the work.) The rest of the gap is
// the hand-over: waking a thread, and the runtime's work between two nodes. If all inputs were
// ready when the gap began, the whole gap is of that kind, or the thread helped with the loops of a
// kernel that another thread runs.
namespace weir::tools {

namespace {

class WaitFinder {
 public:
  WaitFinder(const std::vector<NodeTrace>& trace, const Graph& graph)
      : trace_(trace), graph_(graph) {
    std::vector<int> by_end(trace.size());
    for (size_t i = 0; i < trace.size(); ++i) by_end[i] = static_cast<int>(i);
    std::stable_sort(by_end.begin(), by_end.end(),
                     [&](int a, int b) { return trace[a].end_ns < trace[b].end_ns; });
    for (const int i : by_end) {
      runs_[trace[i].node].push_back(i);
      for (const NodeTrace::Value& output : trace[i].outputs) {
        if (output.data != nullptr) holders_[output.data].push_back(i);
      }
    }
  }

  // Returns the producer of record i's inputs that ended last; -1 if there is none, or if it ended
  // earlier.
  int LastProducer(int i, int64_t before_ns) const {
    const int last = LastProducer(i);
    return last >= 0 && trace_[last].end_ns > before_ns ? last : -1;
  }

  // Returns the record whose result this one forwards, if this one does no work itself.
  int Origin(int i, int64_t before_ns) const {
    while (i >= 0 && (trace_[i].op == "NoOp" || OnlyMoves(trace_[i])) &&
           CopyReason(trace_[i]).empty()) {
      const int producer = LastProducer(i, before_ns);
      if (producer < 0 || trace_[producer].end_ns >= trace_[i].end_ns) break;  // avoids a cycle
      i = producer;
    }
    return i;
  }

 private:
  int LastProducer(int i) const {
    const NodeTrace& record = trace_[i];
    const Node* node = graph_.FindNode(record.node);
    if (node != nullptr && node->op_name() != record.op) node = nullptr;  // a fused node
    int last = -1;
    const auto consider = [&](int producer) {
      if (producer >= 0 && (last < 0 || trace_[producer].end_ns > trace_[last].end_ns))
        last = producer;
    };
    for (size_t k = 0; k < record.inputs.size(); ++k) {
      const bool has_edge = node != nullptr && static_cast<int>(k) < node->num_inputs();
      consider(Producer(i, record.inputs[k],
                        has_edge ? node->input(static_cast<int>(k)).node : nullptr));
    }
    if (node == nullptr) return last;
    for (const Node* control : node->control_inputs()) consider(LastRun(i, *control));
    return last;
  }

  // Returns the last of these records, sorted by end time, that ended before record i began.
  int LastBefore(int i, const std::vector<int>& records) const {
    const auto after =
        std::upper_bound(records.begin(), records.end(), trace_[i].start_ns,
                         [&](int64_t start, int record) { return start < trace_[record].end_ns; });
    for (auto it = after; it != records.begin();) {
      if (*--it != i) return *it;
    }
    return -1;
  }

  int LastRun(int i, const Node& node) const {
    const auto found = runs_.find(node.name());
    return found == runs_.end() ? -1 : LastBefore(i, found->second);
  }

  int Producer(int i, const NodeTrace::Value& input, const Node* source) const {
    const int named = source == nullptr ? -1 : LastRun(i, *source);
    const auto found = input.data == nullptr ? holders_.end() : holders_.find(input.data);
    if (found == holders_.end()) return named;
    const int holder = LastBefore(i, found->second);
    return named >= 0 && (holder < 0 || Holds(named, input.data)) ? named : holder;
  }

  bool Holds(int record, const void* data) const {
    const auto& outputs = trace_[record].outputs;
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](const NodeTrace::Value& v) { return v.data == data; });
  }

  const std::vector<NodeTrace>& trace_;
  const Graph& graph_;
  // By the end of the record.
  absl::flat_hash_map<std::string, std::vector<int>> runs_;     // by node
  absl::flat_hash_map<const void*, std::vector<int>> holders_;  // by the memory of an output
};

// Returns the records of each thread sorted by start time; threads are in the order of their first
// record.
std::vector<std::vector<int>> ByThread(const std::vector<NodeTrace>& trace) {
  std::vector<int> order(trace.size());
  for (size_t i = 0; i < trace.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return trace[a].start_ns < trace[b].start_ns; });
  std::vector<std::vector<int>> threads;
  std::map<int, size_t> position;
  for (const int i : order) {
    const size_t thread = position.emplace(trace[i].thread, threads.size()).first->second;
    if (thread == threads.size()) threads.emplace_back();
    threads[thread].push_back(i);
  }
  return threads;
}

}  // namespace

std::vector<Wait> FindWaits(const std::vector<NodeTrace>& trace, const Graph& graph,
                            int64_t start_ns, int64_t end_ns) {
  const WaitFinder finder(trace, graph);
  std::vector<Wait> waits;
  for (const std::vector<int>& records : ByThread(trace)) {
    Wait wait{.thread = trace[records[0]].thread, .start_ns = start_ns};
    for (const int i : records) {
      if (trace[i].start_ns > wait.start_ns) {
        wait.end_ns = trace[i].start_ns;
        wait.next = i;
        wait.cause = finder.LastProducer(i, wait.start_ns);
        wait.waited_ns = wait.cause < 0 ? 0 : trace[wait.cause].end_ns - wait.start_ns;
        wait.cause = finder.Origin(wait.cause, wait.start_ns);
        waits.push_back(wait);
      }
      wait.start_ns = std::max(wait.start_ns, trace[i].end_ns);
    }
    if (end_ns > wait.start_ns)
      waits.push_back({.thread = wait.thread, .start_ns = wait.start_ns, .end_ns = end_ns});
  }
  return waits;
}

std::vector<ThreadTime> SumThreads(const std::vector<NodeTrace>& trace,
                                   const std::vector<Wait>& waits, int64_t start_ns,
                                   int64_t end_ns) {
  std::vector<ThreadTime> threads;
  std::map<int, size_t> position;
  for (const std::vector<int>& records : ByThread(trace)) {
    position[trace[records[0]].thread] = threads.size();
    threads.push_back({.thread = trace[records[0]].thread,
                       .num_nodes = static_cast<int>(records.size()),
                       .busy_ns = end_ns - start_ns});
  }
  for (const Wait& wait : waits) {
    const auto found = position.find(wait.thread);
    if (found == position.end()) continue;
    ThreadTime& thread = threads[found->second];
    const int64_t length = wait.end_ns - wait.start_ns;
    thread.busy_ns -= length;
    thread.waited_ns += wait.waited_ns;
    (wait.next < 0 ? thread.over_ns : thread.between_ns) += length - wait.waited_ns;
  }
  return threads;
}

}  // namespace weir::tools
