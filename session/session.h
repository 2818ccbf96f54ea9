#ifndef WEIR_SESSION_SESSION_H_
#define WEIR_SESSION_SESSION_H_

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/tensor.h"
#include "weir/ops/framework/variable.h"
#include "weir/session/plan/session_options.h"

// Sessions, which run graphs.
//   Session session = *Session::Create(graph);
//   Tensors out = *session.Run({{x, value}}, {y});
namespace WEIR_API weir {

// A tensor of the graph and the value that replaces it, which has its dtype and a compatible shape;
// and those of a step.
using Feed = std::pair<Output, Tensor>;
using Feeds = std::vector<Feed>;

// An element to fetch: a tensor, or a variable, whose value is fetched through the read that was
// created with it. So fetching a variable adds no node, and works in a finalized graph. A
// partitioned variable has no such read: the first fetch adds a node that concatenates its parts,
// and later fetches share it; so does one whose copies are aggregated (mirrored_variable.h).
struct Fetch : public Output {
  // A tensor, a variable, or what converts to a tensor.
  using Output::Output;
  Fetch(const Variable& variable);
  template <class T, std::enable_if_t<std::is_convertible_v<const T&, Output> &&
                                          !std::is_convertible_v<const T&, const Variable&>,
                                      int> = 0>
  Fetch(const T& tensor) : Output(tensor) {}
};
// The fetches of a step, in order: `{y, v}`, or Outputs.
class Fetches {
 public:
  Fetches() = default;
  // Of tensors and variables, or of all of one kind.
  Fetches(std::initializer_list<Fetch> fetches) : outputs_(fetches.begin(), fetches.end()) {}
  Fetches(Outputs fetches) : outputs_(std::move(fetches)) {}
  Fetches(const Variables& fetches) : Fetches(std::vector<Fetch>(fetches.begin(), fetches.end())) {}
  // The tensors to fetch; a variable is its read.
  const Outputs& outputs() const { return outputs_; }

 private:
  explicit Fetches(const std::vector<Fetch>& fetches) : outputs_(fetches.begin(), fetches.end()) {}
  Outputs outputs_;
};

// A prepared step: feeds, fetches and targets are bound, and a call looks nothing up. Created by
// Session::Prepare. Cheap to copy; thread-safe. It may outlive the session, whose memory and
// threads then stay alive as long; a run returns CANCELLED, as after Close.
class Step {
 public:
  // Runs the step. `feeds` are in the order given to Prepare. On success `fetches` contains the
  // fetched tensors in order (it is resized; reuse it between calls). On an error nothing is
  // fetched, and variables keep the values assigned before the error.
  absl::Status Run(absl::Span<const Tensor> feeds, Tensors* fetches) const;
  absl::Status Run(absl::Span<const Tensor> feeds, Tensors* fetches,
                   const RunOptions& options) const;

 private:
  friend class PartialRun;
  friend class Session;
  struct Impl;
  std::shared_ptr<Impl> impl_;  // shares ownership of the session, which owns it
};

// A step that is fed and fetched piece by piece: each piece runs the nodes that its fetches and
// targets need and that no earlier piece has run. Created by Session::StartPartialRun; cheap to
// copy. Thread-safe: concurrent pieces run one after another.
class PartialRun {
 public:
  // Feeds some of the step's feeds, and returns some of its fetches, in order. Each feed and each
  // fetch may be used once. When all have been used, targets that no piece has requested are run as
  // well.
  //
  // clang-format off
  //   INVALID_ARGUMENT  a feed, fetch or target that is not part of the step, or was used before;
  //                     a fetch that depends on a feed not fed yet (the run can continue)
  // clang-format on
  //
  // Other errors are those of Session::Run: they end the partial run.
  absl::StatusOr<Tensors> Run(const Feeds& feeds, const Outputs& fetches,
                              const std::vector<Operation>& targets = {},
                              const RunOptions& options = {});
  // Returns true once all feeds and fetches have been used, or a piece has failed.
  bool is_over() const;

 private:
  friend class Session;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Returns the name of the node that caused a run's error; "" if there is none.
std::string FailedNode(const absl::Status& error);

// Runs parts of a graph, and holds the state (variables, queues, ...) that persists between runs.
// The graph must outlive the session. Nodes added to it later can be run too, but if a node that
// has run is changed, the session returns an error from then on. Thread-safe. Movable.
class Session {
 public:
  // Creates a session. Returns the graph's own error if it has one. All variables are
  // uninitialized, unless the state is shared. An error that the graph gets later (a failed builder
  // call) is returned only by steps that need the node.
  static absl::StatusOr<Session> Create(const Graph& graph, SessionOptions options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Runs the part of the graph that the fetches and targets need. Feeds replace the tensors they
  // name. Returns the fetched values in order; they never change afterward. They may share memory
  // with variables and constants: use DeepCopy before writing to one.
  //
  // clang-format off
  //   INVALID_ARGUMENT     feed of the wrong dtype or shape, tensor fed twice or both fed and
  //                        fetched, placeholder not fed, element of another graph
  //   FAILED_PRECONDITION  uninitialized variables (names all that the step reads); a node that had
  //                        run was changed; an element of a destroyed graph
  //   CANCELLED            session closed
  //   DEADLINE_EXCEEDED    exceeded the time limit (the session stays usable); names the running
  //                        node, or what it waited for
  // clang-format on
  absl::StatusOr<Tensors> Run(const Feeds& feeds, const Fetches& fetches,
                              const std::vector<Operation>& targets = {},
                              const RunOptions& options = {});
  absl::StatusOr<Tensors> Run(const Fetches& fetches) { return Run(Feeds{}, fetches); }
  // Runs one operation for its effect. (A template, so that `Run({y})` is a fetch of y and not
  // ambiguous.)
  template <class T, std::enable_if_t<std::is_same_v<T, Operation>, int> = 0>
  absl::Status Run(const T& target) {
    return Run(Feeds{}, Outputs{}, std::vector<Operation>{target}).status();
  }
  // Runs a step by names: "x:0" (or "x"), "train". Returns NOT_FOUND for names that are not in the
  // graph.
  absl::StatusOr<Tensors> Run(const std::vector<std::pair<std::string, Tensor>>& feeds,
                              const std::vector<std::string>& fetches,
                              const std::vector<std::string>& targets,
                              const RunOptions& options = {});

  // Binds feeds, fetches and targets. Also returns INVALID_ARGUMENT for a connection between two
  // dtypes, or to a tensor that is fed, fetched or connected already; UNIMPLEMENTED for a
  // connection on a server. A session caches the 1,000 most recently used steps, and every step
  // that a caller holds.
  absl::StatusOr<Step> Prepare(const Outputs& feeds, const Fetches& fetches,
                               const std::vector<Operation>& targets = {},
                               const Connections& connections = {});
  // Prepares a step by names, as Run.
  absl::StatusOr<Step> Prepare(const std::vector<std::string>& feeds,
                               const std::vector<std::string>& fetches,
                               const std::vector<std::string>& targets,
                               const NamedConnections& connections = {});

  // Starts a partial run with all feeds, fetches and targets of its pieces. Returns
  // INVALID_ARGUMENT if there is nothing to fetch or run.
  absl::StatusOr<PartialRun> StartPartialRun(const Outputs& feeds, const Outputs& fetches,
                                             const std::vector<Operation>& targets = {});

  // Calls `add`, which adds nodes to the graph, while no step reads the graph: for graphs that grow
  // while steps run. Returns the result of `add`.
  absl::Status Extend(const std::function<absl::Status()>& add);

  // The graph that it was created with, not owned, and the session's state.
  const Graph& graph() const;
  ResourceMap& resources();
  // The devices of this process, CPU first; none for a session on a server.
  std::vector<Device*> devices() const;
  // The threads that kernels run on. Owned by the session, as its devices are.
  ThreadPool& pool();
  // Deletes the state in these containers (empty: the default one), including dtypes and shapes.
  // Steps in flight continue with their own old state.
  void Reset(const std::vector<std::string>& containers = {});
  // Cancels running steps, and makes every later call return CANCELLED.
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
