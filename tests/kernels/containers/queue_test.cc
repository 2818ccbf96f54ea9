#include "weir/kernels/containers/queue.h"

#include <atomic>
#include <future>
#include <random>
#include <thread>

#include "gtest/gtest.h"

namespace weir {

namespace {

// Records the argument of a callback.
template <class T>
class Answer {
 public:
  auto callback() {
    return [this](T value) { promise_.set_value(std::move(value)); };
  }
  T Wait() { return promise_.get_future().get(); }

 private:
  std::promise<T> promise_;
};

// A step that ends after some microseconds, on a thread of its own.
class ShortStep {
 public:
  explicit ShortStep(int64_t microseconds)
      : thread_([this, microseconds] {
          std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
          cancellation.Cancel(absl::DeadlineExceededError("late"));
        }) {}
  ~ShortStep() { thread_.join(); }
  Cancellation cancellation;

 private:
  std::thread thread_;
};

class QueueStateTest : public ::testing::TestWithParam<const char*> {
 protected:
  static std::shared_ptr<QueueState> Make(int64_t capacity) {
    QueueSpec spec;
    spec.kind = GetParam();
    spec.name = "q";
    spec.types = {DT_INT64};
    spec.shapes = {Shape()};
    spec.capacity = capacity;
    return std::make_shared<QueueState>(spec);
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, QueueStateTest,
                         ::testing::Values("FIFOQueue", "PaddingFIFOQueue", "PriorityQueue",
                                           "RandomShuffleQueue"));

// Steps that request more elements than there are end at random times; the elements they had taken
// are dequeued by others.
TEST_P(QueueStateTest, NoElementIsLostIfStepsEndEarly) {
  const auto queue = Make(GetParam() == std::string("PriorityQueue") ? 50 : 4);
  std::atomic<int64_t> in{0}, out{0};
  std::vector<std::thread> putters, takers;
  for (int t = 0; t < 3; ++t) {
    putters.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 100; ++i) {
        std::vector<Tensors> elements(1 + random() % 3);
        for (Tensors& element : elements) {
          const int64_t value = random() % 100;
          element = {Tensor::Scalar(value)};
          in += value;
        }
        Answer<absl::Status> answer;
        Cancellation never;
        queue->Enqueue(std::move(elements), &never, answer.callback());
        EXPECT_TRUE(answer.Wait().ok());
      }
    });
  }
  for (int t = 0; t < 4; ++t) {
    takers.emplace_back([&, t] {
      std::mt19937 random(t + 9);
      for (;;) {
        Answer<absl::StatusOr<Tensors>> answer;
        ShortStep step(random() % 300);
        queue->DequeueMany(1 + random() % 6, /*allow_fewer=*/t == 1, &step.cancellation,
                           answer.callback());
        const absl::StatusOr<Tensors> taken = answer.Wait();
        if (absl::IsOutOfRange(taken.status())) return;
        if (!taken.ok()) {
          EXPECT_TRUE(absl::IsCancelled(taken.status())) << taken.status();
          continue;
        }
        for (const int64_t value : (*taken)[0].flat<int64_t>()) out += value;
      }
    });
  }
  for (std::thread& t : putters) t.join();
  Answer<absl::Status> closed;
  queue->Close(/*cancel_pending_enqueues=*/false, nullptr, closed.callback());
  EXPECT_TRUE(closed.Wait().ok());
  for (std::thread& t : takers) t.join();
  while (queue->size() > 0) {
    Answer<absl::StatusOr<Tensors>> rest;
    queue->Dequeue(nullptr, rest.callback());
    out += (*rest.Wait())[0].scalar<int64_t>();
  }
  EXPECT_EQ(in, out);
}

TEST_P(QueueStateTest, ACancelledStepTakesNothing) {
  const auto queue = Make(4);
  Answer<absl::Status> put;
  queue->Enqueue({{Tensor::Scalar(int64_t{1})}}, nullptr, put.callback());
  ASSERT_TRUE(put.Wait().ok());
  Cancellation over;
  over.Cancel(absl::CancelledError("closed"));
  Answer<absl::StatusOr<Tensors>> taken;
  queue->Dequeue(&over, taken.callback());
  EXPECT_TRUE(absl::IsCancelled(taken.Wait().status()));
  EXPECT_EQ(queue->size(), 1);
}

}  // namespace

}  // namespace weir
