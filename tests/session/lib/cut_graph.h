#ifndef WEIR_TESTS_SESSION_LIB_CUT_GRAPH_H_
#define WEIR_TESTS_SESSION_LIB_CUT_GRAPH_H_

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/session/session.h"
#include "weir/tests/session/lib/test_models.h"

namespace weir {

// A graph cut into two parts, as TensorFlow's graph_partition.cc cuts one for two tasks: a _Send
// and a _Recv for each value that crosses, a constant for each control edge that does, and in each
// frame of a while loop a control loop in the part that does not have its LoopCond. The parts run
// in sessions of this process and meet in a rendezvous.
class CutGraph {
 public:
  // Returns 0 or 1 for a node, asked once for each group of nodes that must stay together: those
  // joined by references, resources and `_class`, and the nodes of a loop variable.
  using PartFn = std::function<int(const Node& node)>;

  // `graph` outlives this. Errors: those of the import of a part; INVALID_ARGUMENT for a loop
  // without a LoopCond.
  static absl::StatusOr<std::unique_ptr<CutGraph>> Create(const Graph& graph, const PartFn& part_of,
                                                          const SessionOptions& options = {});
  ~CutGraph();

  // As Session::Run. Both parts run, each in a thread, within `timeout`. The first error of a part
  // ends the other one.
  absl::StatusOr<Tensors> Run(const NamedTensors& feeds, const std::vector<std::string>& fetches,
                              const std::vector<std::string>& targets,
                              std::chrono::milliseconds timeout);

  int num_edges() const;  // how many values cross, those of control loops included

 private:
  class Cutter;
  CutGraph() = default;

  std::unique_ptr<Cutter> cutter_;
  std::array<std::unique_ptr<Graph>, 2> graphs_;
  std::vector<Session> sessions_;
};

}  // namespace weir

#endif  // WEIR_TESTS_SESSION_LIB_CUT_GRAPH_H_
