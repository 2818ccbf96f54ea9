#ifndef WEIR_KERNELS_CONTAINERS_QUEUE_H_
#define WEIR_KERNELS_CONTAINERS_QUEUE_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "weir/kernels/lib/waiter_queue.h"

namespace weir {

// The definition of a queue, from the attributes of its node.
struct QueueSpec {
  std::string kind;  // "FIFOQueue"
  std::string name;
  std::string container = {};
  bool is_own = false;  // ResourceName::is_own
  DataTypes types;
  // One shape per component, or empty: then elements may have any shapes and cannot be batched.
  // Shapes of padding queues may be partially unknown.
  std::vector<Shape> shapes;
  int64_t capacity = kUnbounded;
  // For shuffling queues.
  int64_t min_after_dequeue = 0, seed = 0, seed2 = 0;

  static constexpr int64_t kUnbounded = INT32_MAX;
  bool pads() const { return kind == "PaddingFIFOQueue"; }
  // Returns INVALID_ARGUMENT if the attributes contradict each other.
  absl::Status Check() const;
};

// The elements of a queue, in the order that its kind defines. An element is a tuple of tensors.
class QueueOrder {
 public:
  static std::unique_ptr<QueueOrder> Make(const QueueSpec& spec);
  virtual ~QueueOrder() = default;
  virtual void Put(Tensors element) = 0;
  // Removes the next element. Requires a non-empty queue.
  virtual Tensors Take() = 0;
  // Undoes Take; called in the reverse order of the Takes.
  virtual void PutBack(Tensors element) = 0;
  virtual int64_t size() const = 0;
  // The elements, in an order in which Put makes the same queue.
  virtual std::vector<Tensors> Elements() const = 0;
  // The stream that decides which element is next, as key, counter and words drawn; empty if none
  // does. Restore continues it after Elements() were put.
  virtual std::vector<uint64_t> Draws() const { return {}; }
  virtual void RestoreDraws(absl::Span<const uint64_t> /*draws*/) {}
};

// A queue. Steps that find it full or empty wait in arrival order. No element is lost before the
// queue is destroyed: a step that ends while it waits puts back the elements it has taken.
// Thread-safe.
class QueueState final : public WaitableResource {
 public:
  using TakeCallback = std::function<void(absl::StatusOr<Tensors>)>;

  explicit QueueState(QueueSpec spec);

  std::string Describe() const override { return "queue '" + spec_.name + "'"; }
  const QueueSpec& spec() const { return spec_; }
  // Returns INVALID_ARGUMENT unless a node with the definition `other` may share this queue.
  absl::Status CheckSame(const QueueSpec& other) const;

  // Return INVALID_ARGUMENT unless the tensors are an element of this queue, or a batch of
  // elements.
  absl::Status CheckElement(const Tensors& element) const;
  absl::Status CheckBatch(const Tensors& batch) const;

  // Calls `done` once all elements are in the queue. CANCELLED if the queue is closed before that.
  void Enqueue(std::vector<Tensors> elements, Cancellation* cancellation, Done done);
  // Dequeues one element. OUT_OF_RANGE if the queue is closed and empty.
  void Dequeue(Cancellation* cancellation, TakeCallback done);
  // Dequeues `count` elements as a batch. OUT_OF_RANGE if the queue is closed and holds fewer,
  // unless `allow_fewer` is set and it holds at least one.
  void DequeueMany(int64_t count, bool allow_fewer, Cancellation* cancellation, TakeCallback done);
  // Closes the queue to further elements. Pending enqueues complete first, or fail with CANCELLED
  // if `cancel_pending_enqueues` is set.
  void Close(bool cancel_pending_enqueues, Cancellation* cancellation, Done done);
  int64_t size();
  bool is_closed();

  // What the queue holds, and how many calls wait for room or for elements.
  struct Contents {
    std::vector<Tensors> elements;
    std::vector<uint64_t> draws;
    bool closed = false;
    int64_t waiting = 0;
  };
  Contents contents();
  // Replaces the contents. INVALID_ARGUMENT if an element is not one of this queue.
  absl::Status Restore(Contents contents);

 private:
  enum Lane { kEnqueue, kDequeue };
  // A dequeue in progress.
  struct PendingDequeue {
    int64_t wanted = 1;
    bool batch = false, allow_fewer = false;
    std::vector<Tensors> taken;
    Tensors result;
  };

  std::optional<absl::Status> TryEnqueue(std::vector<Tensors>* elements, size_t* next);
  std::optional<absl::Status> TryDequeue(PendingDequeue* pending);
  void Take(std::shared_ptr<PendingDequeue> pending, Cancellation* cancellation, TakeCallback done);
  void PutBack(PendingDequeue* pending);
  absl::StatusOr<Tensors> Batch(const std::vector<Tensors>& elements) const;
  absl::Status CheckComponents(const Tensors& tuple) const;
  absl::Status Closed() const;
  void ResetState() override;

  const QueueSpec spec_;
  std::unique_ptr<QueueOrder> order_;
  bool closed_ = false;
  std::atomic<int64_t> waiting_{0};  // calls that are not done
};

// Splits a batch, component by component, into its rows, which are copied. All components have the
// same number of rows.
absl::StatusOr<std::vector<Tensors>> RowsOf(const Tensors& batch);

}  // namespace weir

#endif  // WEIR_KERNELS_CONTAINERS_QUEUE_H_
