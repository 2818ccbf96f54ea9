#ifndef WEIR_SESSION_SESSION_H_
#define WEIR_SESSION_SESSION_H_

#include <chrono>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/core/graph.h"
#include "weir/core/kernel.h"
#include "weir/core/tensor.h"
#include "weir/ops/variable.h"

namespace weir {

struct SessionOptions {
  // Threads that kernels and the executor use, the calling one included; 0: one a processor.
  // INVALID_ARGUMENT if they are more than 1024.
  int num_threads = 0;
  // A node whose device is missing, or has no kernel for it, goes to the CPU, with a line in the
  // log; off: an error.
  bool allow_soft_placement = true;
  // Prints `name: (Op): /job:.../device:...` for every node when a Plan is made.
  bool log_device_placement = false;
  // OptimizationNames by name that are not to be applied: "algebraic_simplification", "tile_batch"
  // (layers take one slice of a batch after the other), "common_subexpression_elimination",
  // "constant_folding", "fast_algorithms" (of convolutions: Winograd's), "fusion", "in_place",
  // "inline_functions" (what functions do is a part of the step that calls them), "cache_step_invariants"
  // (what is computed from weights alone is computed once), "plan_memory", "prune_control_edges"
  // (control edges that order no effects), "no_ops", "partition_tasks", "structure_loops",
  // "eliminate_dead_nodes". Results do not depend on them, but for the rounding of filters that take up
  // factors, and of sums that are fused, made of fewer rows, or computed by such an algorithm. On
  // any number of threads they are the same, bit for bit.
  std::set<std::string> disable = {};
  // Floats too small to be normal (below 1.2e-38) count as zero where a step takes or makes them,
  // on every thread, as in TensorFlow's sessions: arithmetic with them is many times slower.
  bool flush_subnormals = true;
  // Steps in which two nodes use one variable, at least one of them writes it, and no path of the
  // graph orders the two are INVALID_ARGUMENT, naming both nodes. Off: the read comes first, and
  // writes come one after the other (docs/how_a_run_works.md).
  bool forbid_races = false;
  // Default time limit of a run; zero is none, and so is a century.
  std::chrono::milliseconds operation_timeout{0};
  // Kernels to use; null for the built-in ones. A step is INTERNAL, with the node, if a kernel that
  // is not built in sets no output, or one of another type.
  const KernelRegistry* kernels = nullptr;
  // Devices besides the CPU; null for every GPU that can be used. Shared with nobody else while the
  // session lives.
  std::function<std::vector<std::unique_ptr<Device>>()> make_devices = {};
  // "/job:worker/replica:0/task:1": what the names of devices begin with, for graphs whose nodes
  // are on devices of a cluster's task. Unset parts are those of "/job:localhost/replica:0/task:0".
  std::string task = {};
  // State that sessions have in common, by container and name: all that are given the same map see
  // the same variables, queues and tables. Null: the session's own.
  std::shared_ptr<ResourceMap> resources = {};
  // A server to run on, "grpc://host:port", Weir's or TensorFlow's; empty: here. The program links
  // //rpc:client and calls rpc::EnableGrpcTargets. The server is told of the two options of
  // placement, of the time limit and of the next option; the others have no meaning then.
  std::string target = {};
  // On a server: other sessions do not see this one's state, which goes with it.
  bool isolate_session_state = false;
};

// How long one node took in a traced run, and on what.
struct NodeTrace {
  struct Value {
    DataType dtype = DT_INVALID;  // of the dead output of a branch not taken
    Shape shape;
    const void* data = nullptr;  // where it lay: an output at an input's place was not copied
  };
  std::string node, op, device;
  int64_t start_ns = 0, end_ns = 0;  // on the steady clock
  int thread = 0;
  std::vector<Value> inputs, outputs;
  // What a node that Weir has made of several does, in order: {"BiasAdd", "Relu"}.
  std::vector<std::string> fused_ops;
};

struct RunOptions {
  // Zero: the session's default. A step with a limit runs on a thread of the session's. If a kernel
  // does not end in time (one call of LAPACK or oneDNN), the run returns half a second after the
  // limit without it. What the kernel works on then belongs to the session, whose destructor waits
  // for it; a kernel that writes a variable may still do so, but no other node runs.
  std::chrono::milliseconds timeout{0};
  // Filled with one record a node, if given; one a slice, where a batch is taken slice by slice.
  std::vector<NodeTrace>* trace = nullptr;
  Cancellation* cancellation = nullptr;  // ends the run when cancelled, if given
};

using Feed = std::pair<Output, Tensor>;
using Feeds = std::vector<Feed>;

// One thing to fetch: a tensor, or a variable, whose value is fetched by the read that was made
// with it. So to fetch a variable adds no node, and works in a finalized graph. A partitioned
// variable has no such read: the first fetch joins its parts, and the others share that.
struct Fetch : public Output {
  using Output::Output;
  Fetch(const Variable& variable);
  template <class T, std::enable_if_t<std::is_convertible_v<const T&, Output> &&
                                          !std::is_convertible_v<const T&, const Variable&>,
                                      int> = 0>
  Fetch(const T& tensor) : Output(tensor) {}
};
// What a step fetches, in order: `{y, v}`, or Outputs.
class Fetches {
 public:
  Fetches() = default;
  Fetches(std::initializer_list<Fetch> fetches) : outputs_(fetches.begin(), fetches.end()) {}
  Fetches(Outputs fetches) : outputs_(std::move(fetches)) {}
  Fetches(const Variables& fetches) : Fetches(std::vector<Fetch>(fetches.begin(), fetches.end())) {}
  const Outputs& outputs() const { return outputs_; }

 private:
  explicit Fetches(const std::vector<Fetch>& fetches) : outputs_(fetches.begin(), fetches.end()) {}
  Outputs outputs_;
};

// Pairs of tensors: in a step with connections, whoever takes the second of a pair gets the value
// of the first, as if it were fed with what the step has just computed.
using Connections = std::vector<std::pair<Output, Output>>;
using NamedConnections = std::vector<std::pair<std::string, std::string>>;

// A step made ready: feeds, fetches and targets are bound, and a call looks nothing up. Made by
// Session::Prepare; cheap to copy, safe to call from many threads. It may outlive the session,
// whose memory and threads then live as long: a run is CANCELLED, as after Close.
class Step {
 public:
  // `feeds` in the order given to Prepare. On success `fetches` holds the fetched tensors in order
  // (it is resized; reuse it between calls). On an error no fetch is returned, and variables keep
  // whatever was assigned before it.
  absl::Status Run(absl::Span<const Tensor> feeds, Tensors* fetches) const;
  absl::Status Run(absl::Span<const Tensor> feeds, Tensors* fetches,
                   const RunOptions& options) const;

 private:
  friend class PartialRun;
  friend class Session;
  struct Impl;
  std::shared_ptr<Impl> impl_;  // counts the session, which owns it
};

// A step that is fed and fetched piece by piece: each piece runs what its fetches and targets need
// and no earlier piece has run. Made by Session::StartPartialRun; cheap to copy. Pieces called from
// several threads run one after another.
class PartialRun {
 public:
  // Gives some of the step's feeds, and returns some of its fetches, in order. Each feed and each
  // fetch may come once. When all have come, targets that no piece has asked for are run as well.
  //
  // clang-format off
  //   INVALID_ARGUMENT  a feed, fetch or target that the step was not made with, or that has come
  //                     before; a fetch that needs a feed which is still to come (the step goes on)
  // clang-format on
  //
  // and the errors of Session::Run: after those the step is over.
  absl::StatusOr<Tensors> Run(const Feeds& feeds, const Outputs& fetches,
                              const std::vector<Operation>& targets = {},
                              const RunOptions& options = {});
  // All feeds and fetches have come, or a piece has failed.
  bool is_over() const;

 private:
  friend class Session;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// The name of the node that a run's error came from; "" if it came from none.
std::string FailedNode(const absl::Status& error);

// Runs parts of a graph, and holds the state (variables, queues, ...) that outlives a run. The
// graph outlives the session; nodes added to it later can be run too, but after a change to one
// that has run the session refuses to go on. Safe to use from many threads. Movable.
class Session {
 public:
  // The graph's own error if it has one. State is new: every variable is uninitialized. An error
  // that the graph gets later (a builder call that fails) is that of steps that need the node.
  static absl::StatusOr<Session> Create(const Graph& graph, SessionOptions options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Runs the part of the graph that the fetches and targets need. Feeds replace the tensors they
  // name. Returns the fetched values in order; they never change afterward. They may share memory
  // with variables and constants: who wants to write to one takes its DeepCopy.
  //
  // clang-format off
  //   INVALID_ARGUMENT     feed of the wrong dtype or shape, tensor fed twice or both fed and fetched,
  //                        placeholder not fed, element of another graph
  //   FAILED_PRECONDITION  uninitialized variable; names all that the step reads. A node that had
  //                        run was changed. An element of a graph that is gone
  //   CANCELLED            session closed
  //   DEADLINE_EXCEEDED    took too long (the session stays usable); names the node that ran, or
  //                        what it waited for
  // clang-format on
  absl::StatusOr<Tensors> Run(const Feeds& feeds, const Fetches& fetches,
                              const std::vector<Operation>& targets = {},
                              const RunOptions& options = {});
  absl::StatusOr<Tensors> Run(const Fetches& fetches) { return Run(Feeds{}, fetches); }
  // Runs one operation for its effect. (A template, so that `Run({y})` is a fetch of y and nothing
  // else.)
  template <class T, std::enable_if_t<std::is_same_v<T, Operation>, int> = 0>
  absl::Status Run(const T& target) {
    return Run(Feeds{}, Outputs{}, std::vector<Operation>{target}).status();
  }
  // By name: "x:0" (or "x"), "train". NOT_FOUND for names the graph does not have.
  absl::StatusOr<Tensors> Run(const std::vector<std::pair<std::string, Tensor>>& feeds,
                              const std::vector<std::string>& fetches,
                              const std::vector<std::string>& targets,
                              const RunOptions& options = {});

  // Binds feeds, fetches and targets. INVALID_ARGUMENT, besides, for a connection of two types, or
  // to a tensor that is fed, fetched or connected already; UNIMPLEMENTED for one on a server.
  // A session keeps the 1,000 steps that were asked for last, and whatever steps somebody has.
  absl::StatusOr<Step> Prepare(const Outputs& feeds, const Fetches& fetches,
                               const std::vector<Operation>& targets = {},
                               const Connections& connections = {});
  // By name, as Run.
  absl::StatusOr<Step> Prepare(const std::vector<std::string>& feeds,
                               const std::vector<std::string>& fetches,
                               const std::vector<std::string>& targets,
                               const NamedConnections& connections = {});

  // All that the pieces will feed, fetch and run. INVALID_ARGUMENT if there is nothing to fetch or
  // run.
  absl::StatusOr<PartialRun> StartPartialRun(const Outputs& feeds, const Outputs& fetches,
                                             const std::vector<Operation>& targets = {});

  // Calls `add`, which adds nodes to the graph, while nobody else looks at it: for graphs that grow
  // while steps run. Returns what `add` returns.
  absl::Status Extend(const std::function<absl::Status()>& add);

  const Graph& graph() const;
  ResourceMap& resources();
  // CPU first. Those of this process: on a server, none.
  std::vector<Device*> devices() const;
  ThreadPool& pool();
  // Forgets the state in these containers (empty: the default one), and of what type and shape it
  // was. Steps in flight go on with state that nobody else sees.
  void Reset(const std::vector<std::string>& containers = {});
  // Ends running steps with CANCELLED, and every later call too.
  void Close();

 private:
  friend class PartialRun;
  friend class Step;
  struct Impl;
  explicit Session(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace weir

#endif  // WEIR_SESSION_SESSION_H_
