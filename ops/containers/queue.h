#ifndef WEIR_OPS_CONTAINERS_QUEUE_H_
#define WEIR_OPS_CONTAINERS_QUEUE_H_

#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Queues: steps enqueue tuples of tensors, and other steps dequeue them. A step blocks while the
// queue is full or empty. The names of nodes are those that Python generates.
namespace WEIR_API weir {

// Options of all queues.
struct QueueOptions {
  // One shape per component. Without them elements may have any shape, and batches cannot be
  // dequeued.
  std::vector<Shape> shapes = {};
  // Sessions of one server, and nodes of one graph, with the same name share the queue.
  std::string shared_name = {};
  bool use_resource = true;  // false: the ref-typed form
};

// A queue in the graph. A value type: copies are handles to the same queue.
class Queue {
 public:
  // First in, first out.
  static Queue Fifo(Graph& graph, int64_t capacity, const DataTypes& types,
                    const QueueOptions& options = {}, absl::string_view name = {});
  // First in, first out. Dimensions of `shapes` may be unknown; batches are then padded with zeros.
  static Queue PaddingFifo(Graph& graph, int64_t capacity, const DataTypes& types,
                           const QueueOptions& options, absl::string_view name = {});
  // Random order. Retains at least `min_after_dequeue` elements until it is closed, for good
  // shuffling.
  static Queue RandomShuffle(Graph& graph, int64_t capacity, int64_t min_after_dequeue,
                             const DataTypes& types, const QueueOptions& options = {},
                             std::optional<int64_t> seed = {}, absl::string_view name = {});
  // Smallest priority first. The priority is an int64 scalar, the first component, which `types`
  // and `options.shapes` do not list.
  static Queue Priority(Graph& graph, int64_t capacity, const DataTypes& types,
                        const QueueOptions& options, absl::string_view name = {});

  // Blocks while the queue is full. CANCELLED if the queue is closed.
  Operation Enqueue(const Outputs& element, absl::string_view name = {}) const;
  // The rows of the tensors are the elements.
  Operation EnqueueMany(const Outputs& batch, absl::string_view name = {}) const;
  // Blocks while the queue is empty. OUT_OF_RANGE if the queue is closed and empty.
  Outputs Dequeue(absl::string_view name = {}) const;
  // Blocks until there are n elements. OUT_OF_RANGE if the queue is closed and has fewer, or for
  // DequeueUpTo if it is closed and empty.
  Outputs DequeueMany(Output n, absl::string_view name = {}) const;
  Outputs DequeueMany(int32_t n, absl::string_view name = {}) const;
  Outputs DequeueUpTo(Output n, absl::string_view name = {}) const;
  Outputs DequeueUpTo(int32_t n, absl::string_view name = {}) const;
  // Closes the queue for new elements. Pending enqueues are completed first, or cancelled.
  Operation Close(bool cancel_pending_enqueues = false, absl::string_view name = {}) const;
  Output IsClosed(absl::string_view name = {}) const;
  Output Size(absl::string_view name = {}) const;

  // The queue's resource handle.
  const Output& handle() const { return handle_; }
  // The types of the components, including the priority.
  const DataTypes& types() const { return types_; }

 private:
  Queue(Output handle, DataTypes types, std::vector<Shape> shapes)
      : handle_(handle), types_(std::move(types)), shapes_(std::move(shapes)) {}
  static Queue Make(Graph& graph, absl::string_view kind, int64_t capacity, const DataTypes& types,
                    const QueueOptions& options, Attrs attrs, absl::string_view name);
  Node* Add(absl::string_view op, std::vector<Arg> args, Attrs attrs, absl::string_view suffix,
            absl::string_view name) const;
  Outputs Components(Node* node, const Shape& front) const;
  Outputs TakeMany(absl::string_view op, Output n, absl::string_view suffix,
                   absl::string_view name) const;
  Outputs TakeMany(absl::string_view op, int32_t n, absl::string_view suffix,
                   absl::string_view name) const;

  Output handle_;
  DataTypes types_;
  std::vector<Shape> shapes_;
};

}  // namespace weir

#endif  // WEIR_OPS_CONTAINERS_QUEUE_H_
