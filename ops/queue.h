#ifndef WEIR_OPS_QUEUE_H_
#define WEIR_OPS_QUEUE_H_

#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph.h"

// Queues: steps put tuples of tensors in, and other steps take them out; whoever finds the queue
// full or empty waits. Names of nodes are those that Python makes.
namespace weir {

struct QueueOptions {
  // One a component. Without them elements may have any shapes, and cannot be taken in batches.
  std::vector<Shape> shapes = {};
  // Sessions of one server, and nodes of one graph, that give the same name share the queue.
  std::string shared_name = {};
  bool use_resource = true;  // false: the reference-typed form
};

class Queue {
 public:
  // First in, first out.
  static Queue Fifo(Graph& graph, int64_t capacity, const DataTypes& types,
                    const QueueOptions& options = {}, absl::string_view name = {});
  // The same; dimensions of `shapes` may be unknown, and batches are then padded with zeros.
  static Queue PaddingFifo(Graph& graph, int64_t capacity, const DataTypes& types,
                           const QueueOptions& options, absl::string_view name = {});
  // In random order. Keeps `min_after_dequeue` elements until it is closed, to be well mixed.
  static Queue RandomShuffle(Graph& graph, int64_t capacity, int64_t min_after_dequeue,
                             const DataTypes& types, const QueueOptions& options = {},
                             std::optional<int64_t> seed = {}, absl::string_view name = {});
  // The smallest priority first: an int64 scalar, the first component, which `types` and
  // `options.shapes` do not list.
  static Queue Priority(Graph& graph, int64_t capacity, const DataTypes& types,
                        const QueueOptions& options, absl::string_view name = {});

  // Waits while the queue is full. CANCELLED if it is closed.
  Operation Enqueue(const Outputs& element, absl::string_view name = {}) const;
  // Rows of the tensors are elements.
  Operation EnqueueMany(const Outputs& batch, absl::string_view name = {}) const;
  // Waits while the queue is empty. OUT_OF_RANGE if it is closed and empty.
  Outputs Dequeue(absl::string_view name = {}) const;
  // Waits for n elements; OUT_OF_RANGE if the queue is closed and has fewer, or for DequeueUpTo
  // none.
  Outputs DequeueMany(Output n, absl::string_view name = {}) const;
  Outputs DequeueMany(int32_t n, absl::string_view name = {}) const;
  Outputs DequeueUpTo(Output n, absl::string_view name = {}) const;
  Outputs DequeueUpTo(int32_t n, absl::string_view name = {}) const;
  // No more elements from now on. Enqueues that wait are let in first, or cancelled.
  Operation Close(bool cancel_pending_enqueues = false, absl::string_view name = {}) const;
  Output IsClosed(absl::string_view name = {}) const;
  Output Size(absl::string_view name = {}) const;

  const Output& handle() const { return handle_; }
  // Of the components, the priority included.
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

#endif  // WEIR_OPS_QUEUE_H_
