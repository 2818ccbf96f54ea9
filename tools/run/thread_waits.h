#ifndef WEIR_TOOLS_RUN_THREAD_WAITS_H_
#define WEIR_TOOLS_RUN_THREAD_WAITS_H_

#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/session/session.h"

// What the threads of a traced step did between nodes. Times are nanoseconds on the steady clock.
namespace weir::tools {

// An interval of a step in which a thread ran no node of its own. It may have helped with the loops
// of another thread's node, which a trace does not show.
struct Wait {
  int thread = 0;  // as in NodeTrace
  int64_t start_ns = 0, end_ns = 0;
  // Indices into the trace. `next`: the node that the thread ran next (-1: the step ended).
  // `cause`: the node whose result the thread waited for, the input that was ready last (-1: all
  // inputs were ready when the wait began). If that node only forwards a value, such as Identity or
  // NoOp, the cause is the node before it.
  int next = -1, cause = -1;
  // The part of the wait in which the result was not ready; the rest is the hand-over and the
  // runtime's own work. 0 without a cause.
  int64_t waited_ns = 0;
};

// How a thread spent a step: these four add up to the step.
struct ThreadTime {
  int thread = 0;
  int num_nodes = 0;
  int64_t busy_ns = 0;     // in nodes
  int64_t waited_ns = 0;   // for results of other nodes
  int64_t between_ns = 0;  // before nodes that were ready: hand-over, and the runtime's own work
  int64_t over_ns = 0;     // after its last node
};

// Returns the waits of every thread that ran a node, by thread in the order of their first nodes,
// then by time. `graph` supplies the edges that memory does not show, such as control edges.
std::vector<Wait> FindWaits(const std::vector<NodeTrace>& trace, const Graph& graph,
                            int64_t start_ns, int64_t end_ns);
std::vector<ThreadTime> SumThreads(const std::vector<NodeTrace>& trace,
                                   const std::vector<Wait>& waits, int64_t start_ns,
                                   int64_t end_ns);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_RUN_THREAD_WAITS_H_
