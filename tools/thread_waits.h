#ifndef WEIR_TOOLS_THREAD_WAITS_H_
#define WEIR_TOOLS_THREAD_WAITS_H_

#include <vector>

#include "weir/core/graph.h"
#include "weir/session/session.h"

// What the threads of a traced step did between nodes. Times are nanoseconds on the steady clock.
namespace weir::tools {

// A stretch of a step in which a thread ran no node of its own. It may have helped a node of
// another thread with its loops, which a trace does not show.
struct Wait {
  int thread = 0;  // as in NodeTrace
  int64_t start_ns = 0, end_ns = 0;
  // Positions in the trace: the node that the thread ran next (-1: none, the step ended), and the
  // one whose result it had waited for, being the last of what it needs to be ready (-1: all was
  // there when the wait began). Where that is a node that only hands a value on, such as Identity
  // or NoOp, it is the one before it.
  int next = -1, cause = -1;
  // The part in which the result was not ready; the rest is the hand-over and the runtime's own
  // work. 0 without a cause.
  int64_t waited_ns = 0;
};

// A thread's share of a step: these four add up to the step.
struct ThreadTime {
  int thread = 0;
  int num_nodes = 0;
  int64_t busy_ns = 0;     // in nodes
  int64_t waited_ns = 0;   // for results of other nodes
  int64_t between_ns = 0;  // before nodes that were ready: hand-over, and the runtime's own work
  int64_t over_ns = 0;     // after its last node
};

// The waits of every thread that ran a node, by thread in the order of their first nodes, then by
// time. `graph` tells of edges that no memory shows, such as control edges.
std::vector<Wait> FindWaits(const std::vector<NodeTrace>& trace, const Graph& graph,
                            int64_t start_ns, int64_t end_ns);
std::vector<ThreadTime> SumThreads(const std::vector<NodeTrace>& trace,
                                   const std::vector<Wait>& waits, int64_t start_ns,
                                   int64_t end_ns);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_THREAD_WAITS_H_
