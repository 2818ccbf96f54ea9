#ifndef WEIR_SESSION_PLAN_SESSION_OPTIONS_H_
#define WEIR_SESSION_PLAN_SESSION_OPTIONS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/tensor.h"

// The options of sessions and of their runs, and what a traced run records.
namespace WEIR_API weir {

class BackendRegistry;
class Rendezvous;
struct PassReport;

// What a session runs on, and how. The defaults fit most programs.
struct SessionOptions {
  // The number of threads that kernels and the executor use, including the calling one; 0: one per
  // processor. More than 1024 is INVALID_ARGUMENT.
  int num_threads = 0;
  // If true, a node whose device does not exist, or has no kernel for it, is placed on the CPU,
  // with a line in the log; if false, it is an error.
  bool allow_soft_placement = true;
  // Prints `name: (Op): /job:.../device:...` for every node when a step is prepared.
  bool log_device_placement = false;
  // The optimizations to disable: names of passes, of groups of passes ("fusion") and of switches
  // within them. docs/PASSES.md and `weir passes` list all; an unknown name is INVALID_ARGUMENT.
  // Results do not depend on them, except for rounding: of filters with folded factors, and of sums
  // that are fused, computed on fewer rows, or computed by another algorithm. The number of threads
  // does not affect results: they are equal bit for bit.
  std::set<std::string> disable = {};
  // Called after each pass that compiles a step, by the thread that compiles, perhaps by several at
  // once (session/plan/pass_report.h). Null: not called.
  std::function<void(const PassReport&)> on_pass = {};
  // Flushes subnormal floats (below 1.2e-38) to zero in kernel inputs and outputs, on every thread,
  // as TensorFlow's sessions do: arithmetic with them is many times slower.
  bool flush_subnormals = true;
  // Rejects steps with data races: two nodes use one variable, at least one of them writes it, and
  // no path of the graph orders the two. The INVALID_ARGUMENT error names both nodes. If false, the
  // read comes first, and writes run one after the other (docs/how_a_run_works.md).
  bool forbid_races = false;
  // The default time limit of a run; zero, and anything over a century, means no limit.
  std::chrono::milliseconds operation_timeout{0};
  // The kinds of devices besides the CPU, each of which has the kernels and creates the devices
  // that the session uses (kernels/lib/backend.h); null for the built-in ones: every usable GPU. A
  // registry without backends leaves only the CPU.
  std::shared_ptr<const BackendRegistry> backends = {};
  // The kernels to use, for example layered over BackendRegistry::kernels(); null for those of the
  // backends. A step returns INTERNAL, with the node, if a kernel that is not built in sets no
  // output, or one of another dtype.
  const KernelRegistry* kernels = nullptr;
  // Deprecated, use `backends`: creates the devices besides the CPU, in place of the backends.
  std::function<std::vector<std::unique_ptr<Device>>()> make_devices = {};
  // The prefix of device names, "/job:worker/replica:0/task:1", for graphs whose nodes are placed
  // on devices of a cluster's task. Missing parts default to those of
  // "/job:localhost/replica:0/task:0".
  std::string task = {};
  // State shared between sessions, by container and name: all sessions with the same map share
  // variables, queues and tables. Null: the session has its own.
  std::shared_ptr<ResourceMap> resources = {};
  // What belongs to the session alone, such as queues without a shared_name and random streams: for
  // sessions that run parts of one graph, as those of a cluster's task do. Whoever made the map
  // clears it, before it destroys the sessions. Null: the session has its own.
  std::shared_ptr<ResourceMap> own_resources = {};
  // The server to run on, "grpc://host:port", Weir's or TensorFlow's; empty: this process. The
  // program must link //rpc:client and call rpc::EnableGrpcTargets. The server receives the two
  // placement options, the time limit and the next option; the other options have no effect then.
  std::string target = {};
  // On a server: keeps this session's state separate from other sessions'; it is deleted with the
  // session.
  bool isolate_session_state = false;
};

// The execution of one node in a traced run.
struct NodeTrace {
  // An input or output of the node.
  struct Value {
    // DT_INVALID: the dead output of a branch not taken, or an output that nothing uses.
    DataType dtype = DT_INVALID;
    Shape shape;  // as computed
    const void* data =
        nullptr;  // address of the buffer: an output at an input's address was not copied
  };
  std::string node, op, device;        // names of the node, its op and its device
  int64_t start_ns = 0, end_ns = 0;    // on the steady clock
  int thread = 0;                      // a small number for each thread that ran nodes of the step
  std::vector<Value> inputs, outputs;  // in the order of the node's
  // The ops that a fused node performs, in order: {"BiasAdd", "Relu"}.
  std::vector<std::string> fused_ops;
  // The traits of the op; null in the trace of a remote session. Valid as long as the session.
  const OpTraits* traits = nullptr;
};

// What applies to one run of a step.
struct RunOptions {
  // The time limit; zero: the session's default. A step with a limit runs on a thread of the
  // session. If a kernel does not end in time (one call of LAPACK or oneDNN), the run returns half
  // a second after the limit without waiting for it. The session then owns the kernel's data, and
  // its destructor waits for the kernel. A kernel that writes a variable may still complete the
  // write, but no other node runs.
  std::chrono::milliseconds timeout{0};
  // If not null, receives one record per node; one per slice for nodes that run slice by slice.
  std::vector<NodeTrace>* trace = nullptr;
  Cancellation* cancellation = nullptr;  // if not null, cancelling it ends the run
  // Where the Send and Recv nodes of the step exchange values with the step's parts on other tasks
  // (core/runtime/rendezvous.h); outlives the run. Null: such nodes fail.
  Rendezvous* rendezvous = nullptr;
};

// A tensor of the graph and the value that replaces it, which has its dtype and a compatible shape;
// and those of a step.

// Pairs of tensors: in a step with connections, every user of the second tensor of a pair receives
// the value of the first, as if the step's value of the first were fed to the second.
using Connections = std::vector<std::pair<Output, Output>>;
using NamedConnections = std::vector<std::pair<std::string, std::string>>;

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_SESSION_OPTIONS_H_
