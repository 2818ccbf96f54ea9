#ifndef WEIR_KERNELS_QUEUE_H_
#define WEIR_KERNELS_QUEUE_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/kernels/waiter_queue.h"

namespace weir {

// What a queue is, by the attributes of its node.
struct QueueSpec {
  std::string kind;  // "FIFOQueue"
  std::string name;
  DataTypes types;
  // One a component, or none: then elements may have any shapes, and cannot be batched. Of padding
  // queues they may be partly unknown.
  std::vector<Shape> shapes;
  int64_t capacity = kUnbounded;
  // Of shuffling queues.
  int64_t min_after_dequeue = 0, seed = 0, seed2 = 0;

  static constexpr int64_t kUnbounded = INT32_MAX;
  bool pads() const { return kind == "PaddingFIFOQueue"; }
  // INVALID_ARGUMENT if it contradicts itself.
  absl::Status Check() const;
};

// The elements of a queue, in the order that makes its kind. An element is a tuple of tensors.
class QueueOrder {
 public:
  static std::unique_ptr<QueueOrder> Make(const QueueSpec& spec);
  virtual ~QueueOrder() = default;
  virtual void Put(Tensors element) = 0;
  // There is one.
  virtual Tensors Take() = 0;
  // Undoes Take, the last one first.
  virtual void PutBack(Tensors element) = 0;
  virtual int64_t size() const = 0;
};

// A queue: who finds it full or empty waits, in the order of arrival. Elements are lost only with
// the queue: a step that ends while it waits puts back what it has taken. Thread-safe.
class QueueState final : public WaitableResource {
 public:
  using DoneTaking = std::function<void(absl::StatusOr<Tensors>)>;

  explicit QueueState(QueueSpec spec);

  std::string Describe() const override { return "queue '" + spec_.name + "'"; }
  const QueueSpec& spec() const { return spec_; }
  // INVALID_ARGUMENT unless a node that wants `other` may have this one.
  absl::Status CheckSame(const QueueSpec& other) const;

  // INVALID_ARGUMENT unless it is an element of this queue, or a batch of them.
  absl::Status CheckElement(const Tensors& element) const;
  absl::Status CheckBatch(const Tensors& batch) const;

  // Calls `done` once all elements are in. CANCELLED if the queue is closed by then.
  void Enqueue(std::vector<Tensors> elements, Cancellation* cancellation, Done done);
  // One element. OUT_OF_RANGE if the queue is closed and empty.
  void Dequeue(Cancellation* cancellation, DoneTaking done);
  // `count` elements in a batch; OUT_OF_RANGE if the queue is closed and holds fewer, unless
  // `allow_fewer` and it holds any.
  void DequeueMany(int64_t count, bool allow_fewer, Cancellation* cancellation, DoneTaking done);
  // No more elements from now on. Those who wait to put some do so first, or are sent away with
  // CANCELLED.
  void Close(bool cancel_pending_enqueues, Cancellation* cancellation, Done done);
  int64_t size();
  bool is_closed();

 private:
  enum Lane { kEnqueue, kDequeue };
  // A dequeue under way.
  struct Taking {
    int64_t wanted = 1;
    bool batch = false, allow_fewer = false;
    std::vector<Tensors> taken;
    Tensors result;
  };

  std::optional<absl::Status> TryEnqueue(std::vector<Tensors>* elements, size_t* next);
  std::optional<absl::Status> TryDequeue(Taking* taking);
  void Take(std::shared_ptr<Taking> taking, Cancellation* cancellation, DoneTaking done);
  void PutBack(Taking* taking);
  absl::StatusOr<Tensors> Batch(const std::vector<Tensors>& elements) const;
  absl::Status CheckComponents(const Tensors& tuple) const;
  absl::Status Closed() const;
  void Forget() override;

  const QueueSpec spec_;
  std::unique_ptr<QueueOrder> order_;
  bool closed_ = false;
};

// Component by component, the rows of a batch; the batch has them.
absl::StatusOr<std::vector<Tensors>> RowsOf(const Tensors& batch);

}  // namespace weir

#endif  // WEIR_KERNELS_QUEUE_H_
