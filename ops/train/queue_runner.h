#ifndef WEIR_OPS_TRAIN_QUEUE_RUNNER_H_
#define WEIR_OPS_TRAIN_QUEUE_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/containers/queue.h"
#include "weir/ops/lib/collections.h"

namespace weir::proto {
class QueueRunnerDef;
}

namespace WEIR_API weir {

// The ops that keep a queue full: ops that threads run repeatedly, and two ops that close the
// queue. StartQueueRunners (session/train/queue_runner.h) starts the threads.
struct QueueRunner : public CollectionObject {
  std::string queue_name;              // the name of the queue's node
  std::vector<Operation> enqueue_ops;  // one thread each
  Operation close_op;                  // run when all threads have reached the end of their input
  Operation cancel_op;                 // run when all threads are requested to stop
  // An enqueue that fails with one of these codes has reached the end of its input.
  std::vector<absl::StatusCode> end_of_input = {absl::StatusCode::kOutOfRange};

  std::string name() const override { return queue_name; }
  // Names are those of the graph.
  void ToProto(proto::QueueRunnerDef* def) const;
  // NOT_FOUND if the graph does not have an operation.
  static absl::StatusOr<std::shared_ptr<QueueRunner>> FromProto(const Graph& graph,
                                                                const proto::QueueRunnerDef& def);
  // Conversion to and from the serialized bytes of a QueueRunnerDef.
  std::string ToBytes() const;
  static absl::StatusOr<std::shared_ptr<QueueRunner>> FromBytes(const Graph& graph,
                                                                absl::string_view bytes);
};

// Adds the operations that close the queue, and adds the runner to the collection.
std::shared_ptr<QueueRunner> AddQueueRunner(
    const Queue& queue, std::vector<Operation> enqueue_ops,
    absl::string_view collection = collections::kQueueRunners);

}  // namespace weir

#endif  // WEIR_OPS_TRAIN_QUEUE_RUNNER_H_
