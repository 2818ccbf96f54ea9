#include "weir/ops/train/queue_runner.h"

#include "weir/core/io/proto_values.h"
#include "weir/proto/queue_runner.pb.h"

namespace weir {

namespace {

absl::StatusOr<Operation> FindOperation(const Graph& graph, const std::string& name) {
  Node* const node = graph.FindNode(name.substr(0, name.find(':')));
  if (node == nullptr) return NotFound("the graph has no node '", name, "'");
  return Operation(node);
}

}  // namespace

void QueueRunner::ToProto(proto::QueueRunnerDef* def) const {
  def->set_queue_name(queue_name);
  for (const Operation& op : enqueue_ops) def->add_enqueue_op_name(op.name());
  def->set_close_op_name(close_op.name());
  def->set_cancel_op_name(cancel_op.name());
  for (const absl::StatusCode code : end_of_input)
    def->add_queue_closed_exception_types(static_cast<proto::error::Code>(code));
}

absl::StatusOr<std::shared_ptr<QueueRunner>> QueueRunner::FromProto(
    const Graph& graph, const proto::QueueRunnerDef& def) {
  auto runner = std::make_shared<QueueRunner>();
  runner->queue_name = def.queue_name();
  for (const std::string& name : def.enqueue_op_name()) {
    WEIR_ASSIGN_OR_RETURN(const Operation op, FindOperation(graph, name));
    runner->enqueue_ops.push_back(op);
  }
  WEIR_ASSIGN_OR_RETURN(runner->close_op, FindOperation(graph, def.close_op_name()));
  WEIR_ASSIGN_OR_RETURN(runner->cancel_op, FindOperation(graph, def.cancel_op_name()));
  if (def.queue_closed_exception_types_size() > 0) runner->end_of_input.clear();
  for (const int code : def.queue_closed_exception_types())
    runner->end_of_input.push_back(static_cast<absl::StatusCode>(code));
  return runner;
}

std::shared_ptr<QueueRunner> AddQueueRunner(const Queue& queue, std::vector<Operation> enqueue_ops,
                                            absl::string_view collection) {
  auto runner = std::make_shared<QueueRunner>();
  runner->enqueue_ops = std::move(enqueue_ops);
  runner->close_op = queue.Close();
  runner->cancel_op = queue.Close(/*cancel_pending_enqueues=*/true);
  if (!queue.handle().valid()) return runner;
  runner->queue_name = queue.handle().node->name();
  queue.handle().graph().AddToCollection(collection, std::shared_ptr<CollectionObject>(runner));
  return runner;
}

std::string QueueRunner::ToBytes() const {
  proto::QueueRunnerDef def;
  ToProto(&def);
  return DeterministicBytes(def);
}

absl::StatusOr<std::shared_ptr<QueueRunner>> QueueRunner::FromBytes(const Graph& graph,
                                                                    absl::string_view bytes) {
  proto::QueueRunnerDef def;
  WEIR_RETURN_IF_ERROR(ParseBytes(bytes, &def));
  return FromProto(graph, def);
}

}  // namespace weir
