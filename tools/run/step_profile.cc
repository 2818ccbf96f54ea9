#include "weir/tools/run/step_profile.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

// How limits are computed. A node has bytes to move and operations to do (node_cost.h). The machine
// has a memory bandwidth and a peak rate of operations with all threads of the session
// (machine_limits.h). Each of the two gives a time, and the larger one is the limit, because
// processors overlap computation and loads. The peak is half as high for doubles as for floats,
// because a vector holds half as many; integers and 16-bit floats use the peak of float.
//
// The limit is not a strict lower bound. A value that was just computed is in a cache, and a node
// may read it faster than from memory: the ratio is then below 1. A kernel that packs its arguments
// moves more bytes than the count, and a node that runs in parallel with others has only some of
// the threads and of the bandwidth. So a ratio of 2 deserves a look, and a ratio of 1.2 does not.
//
// Below 200 ns per run the limit is meaningless: calling a kernel, allocating its output and (here)
// writing a trace record takes as long. Such nodes are bound by overhead, and only fewer nodes
// help.
//
// Medians are computed per node over the sums of each step; a step in which the node did not run
// counts as zero. So the parts need not add up to the median of the steps, and the share of a node
// is relative to the median of traced steps. Copies, waits and timelines come from one step, the
// fastest, because they are consistent only within a step.
namespace weir::tools {

namespace {

constexpr int kTimelineCells = 64;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string Describe(const std::vector<NodeTrace::Value>& values) {
  if (values.empty() || values[0].dtype == DT_INVALID) return "";
  return absl::StrCat(DataTypeName(values[0].dtype), values[0].shape.ToString());
}

// Nodes that the runtime inserts share a name, so their outputs identify them.
std::string NameOf(const NodeTrace& run) {
  const bool is_shared = run.op == "_Read" || run.op == "_Copy";
  return is_shared ? absl::StrCat(run.node, " ", Describe(run.outputs)) : run.node;
}

template <class T, class Key>
void SortDescending(std::vector<T>& values, Key key) {
  std::stable_sort(values.begin(), values.end(),
                   [&](const T& a, const T& b) { return key(a) > key(b); });
}

// Returns, for each cell of the step, the share of time in which the thread ran a node: the
// complement of its waits.
std::vector<double> Timeline(const std::vector<Wait>& waits, int thread, int64_t start_ns,
                             int64_t end_ns) {
  std::vector<double> cells(kTimelineCells, 1);
  const double width = static_cast<double>(end_ns - start_ns) / kTimelineCells;
  for (const Wait& wait : waits) {
    if (wait.thread != thread || width <= 0) continue;
    const double from = static_cast<double>(wait.start_ns - start_ns) / width,
                 to = static_cast<double>(wait.end_ns - start_ns) / width;
    for (int i = std::max(0, static_cast<int>(from)); i < kTimelineCells && i < to; ++i)
      cells[i] -= std::max(0., std::min(to, i + 1.) - std::max<double>(from, i));
  }
  for (double& cell : cells) cell = std::clamp(cell, 0., 1.);
  return cells;
}

std::vector<WaitProfile> SumWaits(const std::vector<NodeTrace>& trace,
                                  const std::vector<Wait>& waits) {
  std::map<std::pair<int, std::string>, WaitProfile> by_node;
  for (const Wait& wait : waits) {
    if (wait.next < 0 || wait.cause < 0) continue;
    const std::string next = NameOf(trace[wait.next]);
    WaitProfile& sum = by_node[{wait.thread, next}];
    sum.thread = wait.thread;
    sum.next = next;
    sum.cause = NameOf(trace[wait.cause]);
    ++sum.times;
    sum.waited_ns += wait.waited_ns;
    sum.between_ns += wait.end_ns - wait.start_ns - wait.waited_ns;
  }
  std::vector<WaitProfile> sums;
  for (auto& [key, sum] : by_node) sums.push_back(std::move(sum));
  SortDescending(sums, [](const WaitProfile& w) { return w.waited_ns; });
  return sums;
}

}  // namespace

const char* BoundName(Bound bound) {
  static constexpr const char* kNames[] = {"memory", "arithmetic", "overhead", "unknown"};
  return kNames[static_cast<int>(bound)];
}

double StepProfile::node_ns() const {
  double sum = 0;
  for (const NodeProfile& node : nodes) sum += node.time_ns;
  return sum;
}

double StepProfile::idle_share() const {
  const double all = static_cast<double>(fastest_ns) * std::max(1, limits.num_threads);
  double busy = 0;
  for (const ThreadTime& thread : threads) busy += static_cast<double>(thread.busy_ns);
  return all > 0 ? std::clamp(1 - busy / all, 0., 1.) : 0;
}

StepProfiler::StepProfiler(const Graph& graph, const MachineLimits& limits) : graph_(graph) {
  profile_.limits = limits;
}

void StepProfiler::AddTraced(const std::vector<NodeTrace>& trace, int64_t start_ns,
                             int64_t end_ns) {
  const size_t step = traced_ns_.size();
  traced_ns_.push_back(static_cast<double>(end_ns - start_ns));
  std::vector<std::pair<size_t, Total>> totals;
  absl::flat_hash_map<size_t, size_t> place;  // in totals, by node
  const MachineLimits& limits = profile_.limits;
  for (const NodeTrace& run : trace) {
    const std::string name = NameOf(run);
    const auto [found, is_new] = positions_.emplace(absl::StrCat(run.op, " ", name), nodes_.size());
    if (is_new) {
      nodes_.emplace_back();
      nodes_.back().node = {.name = name, .op = run.op, .device = run.device};
      nodes_.back().node.fused_ops = run.fused_ops;
    }
    NodeProfile& node = nodes_[found->second].node;
    const auto [at, first] = place.emplace(found->second, totals.size());
    if (first) totals.emplace_back(found->second, Total());
    Total& total = totals[at->second].second;
    total.time_ns += static_cast<double>(run.end_ns - run.start_ns);
    if (IsDead(run)) continue;
    if (std::string output = Describe(run.outputs); !output.empty())
      node.output = std::move(output);
    const NodeCost cost = CostOf(run, graph_.FindNode(run.node));
    node.knows_flops |= cost.knows_flops;
    node.estimated |= cost.estimated;
    total.runs += 1;
    total.bytes += cost.bytes;
    total.flops += cost.flops;
    if (limits.bytes_per_second <= 0 || limits.flops_per_second <= 0) continue;
    const double flops_ns =
        cost.flops * std::max(1., cost.element_bytes / 4.) / limits.flops_per_second * 1e9;
    total.flops_ns += flops_ns;
    total.limit_ns += std::max(cost.bytes / limits.bytes_per_second * 1e9, flops_ns);
  }
  for (auto& [position, total] : totals) nodes_[position].steps.push_back(total);
  if (step == 0 || end_ns - start_ns < profile_.fastest_ns)
    DescribeFastest(trace, start_ns, end_ns);
}

void StepProfiler::DescribeFastest(const std::vector<NodeTrace>& trace, int64_t start_ns,
                                   int64_t end_ns) {
  profile_.fastest_ns = end_ns - start_ns;
  profile_.num_runs = static_cast<int64_t>(trace.size());
  FindCopies(trace);
  const std::vector<Wait> waits = FindWaits(trace, graph_, start_ns, end_ns);
  profile_.waits = SumWaits(trace, waits);
  profile_.threads = SumThreads(trace, waits, start_ns, end_ns);
  profile_.timelines.clear();
  std::map<int, int> number;
  for (size_t i = 0; i < profile_.threads.size(); ++i) {
    ThreadTime& thread = profile_.threads[i];
    profile_.timelines.push_back(Timeline(waits, thread.thread, start_ns, end_ns));
    number[thread.thread] = static_cast<int>(i);
    thread.thread = static_cast<int>(i);
  }
  for (WaitProfile& wait : profile_.waits) wait.thread = number[wait.thread];
}

void StepProfiler::FindCopies(const std::vector<NodeTrace>& trace) {
  std::map<std::string, CopyProfile> copies;
  for (const NodeTrace& run : trace) {
    const std::string reason = CopyReason(run);
    if (reason.empty()) continue;
    CopyProfile& copy = copies[NameOf(run)];
    copy.name = NameOf(run);
    copy.op = run.op;
    copy.output = Describe(run.outputs);
    copy.reason = reason;
    ++copy.runs;
    copy.time_ns += run.end_ns - run.start_ns;
    copy.bytes += CostOf(run, nullptr).bytes;
  }
  profile_.copies.clear();
  for (auto& [name, copy] : copies) profile_.copies.push_back(std::move(copy));
  SortDescending(profile_.copies, [](const CopyProfile& c) { return c.time_ns; });
}

NodeProfile StepProfiler::Summary(const Collected& collected) const {
  const auto median = [&](double Total::*part) {
    std::vector<double> values;
    for (const Total& total : collected.steps) values.push_back(total.*part);
    values.resize(traced_ns_.size());  // zero where it did not run
    return Median(std::move(values));
  };
  NodeProfile node = collected.node;
  node.runs = median(&Total::runs);
  node.time_ns = median(&Total::time_ns);
  node.bytes = median(&Total::bytes);
  node.flops = median(&Total::flops);
  // Only processors were measured.
  if (!absl::StrContains(node.device, "CPU:")) return node;
  node.limit_ns = median(&Total::limit_ns);
  const bool is_small = node.limit_ns < kOverheadNs * std::max(1., node.runs);
  const bool computes = median(&Total::flops_ns) >= node.limit_ns;
  node.bound = is_small ? Bound::kOverhead : computes ? Bound::kArithmetic : Bound::kMemory;
  return node;
}

StepProfile StepProfiler::Profile() const {
  StepProfile profile = profile_;
  profile.num_steps = static_cast<int>(traced_ns_.size());
  profile.untraced_ns = Median(untraced_ns_);
  profile.traced_ns = Median(traced_ns_);
  std::map<std::string, OpProfile> ops;
  for (const Collected& collected : nodes_) {
    profile.nodes.push_back(Summary(collected));
    const NodeProfile& node = profile.nodes.back();
    OpProfile& op = ops[node.op];
    op.op = node.op;
    ++op.num_nodes;
    op.runs += node.runs;
    op.time_ns += node.time_ns;
    op.bytes += node.bytes;
    op.flops += node.flops;
    op.limit_ns += node.limit_ns;
  }
  for (auto& [name, op] : ops) profile.ops.push_back(std::move(op));
  SortDescending(profile.nodes, [](const NodeProfile& n) { return n.time_ns; });
  SortDescending(profile.ops, [](const OpProfile& o) { return o.time_ns; });
  return profile;
}

}  // namespace weir::tools
