#ifndef WEIR_TOOLS_RUN_STEP_PROFILE_H_
#define WEIR_TOOLS_RUN_STEP_PROFILE_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/session/session.h"
#include "weir/tools/run/machine_limits.h"
#include "weir/tools/run/node_cost.h"
#include "weir/tools/run/thread_waits.h"

// A summary of traced steps: each node compared with the limits of the machine. Times are
// nanoseconds, and medians over the steps unless noted otherwise. For a node that runs several
// times in a step, the sum counts.
namespace weir::tools {

// Below this many nanoseconds per run, the overhead of running a node dominates.
inline constexpr double kOverheadNs = 200;

// What limits the time of a node.
enum class Bound {
  kMemory,      // memory bandwidth
  kArithmetic,  // arithmetic
  kOverhead,    // both limits are below kOverheadNs per run
  kUnknown,     // it runs on a device that was not measured
};
const char* BoundName(Bound bound);

struct NodeProfile {
  std::string name, op, device;
  std::string output;                  // the first, "float[2,3]"; empty if none was live
  std::vector<std::string> fused_ops;  // as in NodeTrace
  double runs = 0;                     // per step
  double time_ns = 0, bytes = 0, flops = 0;
  double limit_ns = 0;                          // max(bytes / bandwidth, operations / peak)
  bool knows_flops = false, estimated = false;  // as in NodeCost
  Bound bound = Bound::kUnknown;
};

// All nodes of an op.
struct OpProfile {
  std::string op;
  int num_nodes = 0;
  double runs = 0, time_ns = 0, bytes = 0, flops = 0, limit_ns = 0;
};

// A node that only moved values, in the fastest step.
struct CopyProfile {
  std::string name, op, output, reason;  // CopyReason
  int64_t runs = 0, time_ns = 0;
  double bytes = 0;
};

// The waits before one node on one thread, in the fastest step.
struct WaitProfile {
  int thread = 0;
  std::string next;   // the node that ran next
  std::string cause;  // the node whose result the thread waited for; the last one of several
  int64_t times = 0, waited_ns = 0, between_ns = 0;
};

struct StepProfile {
  int num_steps = 0;
  double untraced_ns = 0, traced_ns = 0;
  // Processor time of the process divided by the time of the untraced steps; includes idle threads
  // that spin.
  double busy_threads = 0;
  int64_t fastest_ns = 0;  // of the traced steps
  int64_t num_runs = 0;    // of nodes, in the fastest step
  MachineLimits limits;
  // Slowest first.
  std::vector<NodeProfile> nodes;
  std::vector<OpProfile> ops;
  std::vector<CopyProfile> copies;
  std::vector<WaitProfile> waits;   // those with a cause
  std::vector<ThreadTime> threads;  // in the fastest step, numbered by their first node
  // By thread: the share of each 64th of the fastest step spent in nodes, 0 to 1.
  std::vector<std::vector<double>> timelines;

  double node_ns() const;  // of all nodes
  // The share of the fastest step during which the pool's threads, including those that ran no
  // node, had no node assigned, 0 to 1.
  double idle_share() const;
};

// Accumulates traces one by one with little memory: a step may have a million records.
class StepProfiler {
 public:
  // `graph` must outlive the profiler.
  StepProfiler(const Graph& graph, const MachineLimits& limits);
  // Adds a step without a trace.
  void AddUntraced(double step_ns) { untraced_ns_.push_back(step_ns); }
  void SetBusyThreads(double busy_threads) { profile_.busy_threads = busy_threads; }
  void AddTraced(const std::vector<NodeTrace>& trace, int64_t start_ns, int64_t end_ns);
  StepProfile Profile() const;

 private:
  struct Total {  // of a node, in one step
    double runs = 0, time_ns = 0, bytes = 0, flops = 0, limit_ns = 0, flops_ns = 0;
  };
  struct Collected {
    NodeProfile node;
    std::vector<Total> steps;  // number of steps in which it ran
  };
  void DescribeFastest(const std::vector<NodeTrace>& trace, int64_t start_ns, int64_t end_ns);
  void FindCopies(const std::vector<NodeTrace>& trace);
  NodeProfile Summary(const Collected& collected) const;

  const Graph& graph_;
  StepProfile profile_;
  absl::flat_hash_map<std::string, size_t> positions_;
  std::vector<Collected> nodes_;
  std::vector<double> untraced_ns_, traced_ns_;
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_RUN_STEP_PROFILE_H_
