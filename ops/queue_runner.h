#ifndef WEIR_OPS_QUEUE_RUNNER_H_
#define WEIR_OPS_QUEUE_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/core/graph.h"
#include "weir/ops/collections.h"
#include "weir/ops/queue.h"

namespace weir::proto {
class QueueRunnerDef;
}

namespace weir {

// What keeps a queue full: operations that threads run over and over, and two that close the queue.
// StartQueueRunners (session/queue_runner.h) makes the threads.
struct QueueRunner : public CollectionObject {
  std::string queue_name;
  std::vector<Operation> enqueue_ops;  // a thread each
  Operation close_op;                  // run when all threads have come to the end of their input
  Operation cancel_op;                 // run when everything is to stop
  // An enqueue that fails with one of these has come to the end of its input.
  std::vector<absl::StatusCode> end_of_input = {absl::StatusCode::kOutOfRange};

  std::string name() const override { return queue_name; }
  // Names as they are in the graph.
  void ToProto(proto::QueueRunnerDef* def) const;
  // NOT_FOUND for an operation that the graph does not have.
  static absl::StatusOr<std::shared_ptr<QueueRunner>> FromProto(const Graph& graph,
                                                                const proto::QueueRunnerDef& def);
  // The same with a QueueRunnerDef's serialized bytes.
  std::string ToBytes() const;
  static absl::StatusOr<std::shared_ptr<QueueRunner>> FromBytes(const Graph& graph,
                                                                absl::string_view bytes);
};

// Adds the operations that close the queue, and the runner to the collection.
std::shared_ptr<QueueRunner> AddQueueRunner(
    const Queue& queue, std::vector<Operation> enqueue_ops,
    absl::string_view collection = collections::kQueueRunners);

}  // namespace weir

#endif  // WEIR_OPS_QUEUE_RUNNER_H_
