// Requirements that a session has of a device with a stream (core/runtime/device.h).

#include <algorithm>
#include <future>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/kernels/lib/backend.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/math.h"
#include "weir/tests/gpu/test_gpu.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

class GpuDevice : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    gpu_ = NewTestGpu(std::chrono::microseconds(50), &why);
    if (gpu_ == nullptr) GTEST_SKIP() << why;
  }

  Tensor OnGpu(DataType type, const Shape& shape) {
    absl::StatusOr<Tensor> t = Tensor::Allocate(gpu_->allocator(), type, shape);
    EXPECT_TRUE(t.ok()) << t.status();
    return *std::move(t);
  }
  void In(const Tensor& from, const Tensor& to) {
    gpu_->CopyFromHost(from, to, [](absl::Status s) { EXPECT_TRUE(s.ok()) << s; });
  }
  // Waits until the bytes have been copied.
  Tensor Out(const Tensor& from) {
    Tensor to(from.dtype(), from.shape());
    // A shared_ptr: the thread that sets the value may still be inside the call when the caller
    // returns.
    const auto done = std::make_shared<std::promise<absl::Status>>();
    gpu_->CopyToHost(from, to, [done](absl::Status s) { done->set_value(s); });
    const absl::Status status = done->get_future().get();
    EXPECT_TRUE(status.ok()) << status;
    return to;
  }

  std::unique_ptr<Device> gpu_;
};

Tensor Numbers(int64_t n, int64_t first) {
  Tensor t(DT_INT64, Shape({n}));
  for (int64_t i = 0; i < n; ++i) t.data<int64_t>()[i] = first + i;
  return t;
}

TEST_F(GpuDevice, IsNoHost) {
  EXPECT_EQ(gpu_->text(), "/job:localhost/replica:0/task:0/device:GPU:0");
  EXPECT_TRUE(gpu_->has_stream());
  EXPECT_FALSE(gpu_->is_host());
  EXPECT_EQ(gpu_->place(), kGpu);
  EXPECT_NE(gpu_->stream(), nullptr);
  EXPECT_FALSE(gpu_->allocator().host_accessible());
  EXPECT_GT(gpu_->memory_limit(), 0);
  EXPECT_FALSE(gpu_->Description().empty());
}

TEST_F(GpuDevice, BytesComeBackAsTheyWent) {
  for (const int64_t n : {0, 1, 63, 1000, 700001}) {
    const Tensor there = OnGpu(DT_INT64, Shape({n})), copy = OnGpu(DT_INT64, Shape({n}));
    Tensor from = Numbers(n, n);
    const Tensor want = from.DeepCopy();
    In(from, there);
    // `done` has been called: the source may be overwritten.
    std::fill_n(from.data<int64_t>(), n, -1);
    ASSERT_TRUE(gpu_->CopyOnDevice(there, copy).ok());
    EXPECT_TRUE(IdenticalTensors(Out(there), want)) << n;
    EXPECT_TRUE(IdenticalTensors(Out(copy), want)) << n;
  }
  EXPECT_TRUE(gpu_->Synchronize().ok());
}

TEST_F(GpuDevice, RejectsCopiesBetweenSizes) {
  const Tensor there = OnGpu(DT_INT64, Shape({4}));
  absl::Status status;
  gpu_->CopyFromHost(Numbers(5, 0), there, [&](absl::Status s) { status = s; });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_FALSE(gpu_->CopyOnDevice(there, OnGpu(DT_INT64, Shape({3}))).ok());
}

// Memory is freed when the work has been enqueued, not when it has run.
TEST_F(GpuDevice, MemoryIsReusedInStreamOrder) {
  constexpr int64_t kN = 5000;
  std::vector<Tensor> results;
  for (int64_t i = 0; i < 40; ++i) {
    Tensor first = OnGpu(DT_INT64, Shape({kN}));
    In(Numbers(kN, i), first);
    results.push_back(OnGpu(DT_INT64, Shape({kN})));
    ASSERT_TRUE(gpu_->CopyOnDevice(first, results.back()).ok());
  }
  for (int64_t i = 0; i < 40; ++i)
    EXPECT_TRUE(IdenticalTensors(Out(results[i]), Numbers(kN, i))) << i;
}

TEST_F(GpuDevice, CountsMemoryInUse) {
  const int64_t before = gpu_->allocator().bytes_in_use();
  {
    const Tensor t = OnGpu(DT_FLOAT, Shape({1000, 100}));
    EXPECT_GE(gpu_->allocator().bytes_in_use(), before + 400000);
  }
  EXPECT_EQ(gpu_->allocator().bytes_in_use(), before);
  const int64_t free =
      gpu_->allocator().bytes_free();  // including freed blocks that the allocator caches
  EXPECT_GE(free, 400000);
  EXPECT_LE(free, gpu_->memory_limit());
}

TEST_F(GpuDevice, HasNoRoomForMoreThanItsMemory) {
  const int64_t n = gpu_->memory_limit() / 4 + 1024;
  const auto t = Tensor::Allocate(gpu_->allocator(), DT_FLOAT, Shape({n}));
  EXPECT_EQ(t.status().code(), absl::StatusCode::kResourceExhausted) << t.status();
  const Tensor small = OnGpu(DT_INT64, Shape({3}));  // and the caller continues
  In(Numbers(3, 7), small);
  EXPECT_TRUE(IdenticalTensors(Out(small), Numbers(3, 7)));
}

// In any build: if no GPU is usable, sessions run on the CPU, and report it to programs that insist
// on one.
TEST(WithoutGpu, SessionsRunOnTheCpu) {
  const auto devices = BuiltinBackends().CreateDevices({});
  ASSERT_TRUE(devices.ok()) << devices.status();
  if (!devices->empty()) GTEST_SKIP() << "this machine has a GPU";
  Graph g;
  Output sum;
  {
    const DeviceScope scope(g, "/gpu:0");
    sum = Const(g, {1.f, 2.f}) + Placeholder(g, DT_FLOAT, {2}, "x");
  }
  const Feeds feeds = {{*g.FindOutput("x:0"), Tensor::Vector<float>({10, 20})}};
  auto session = Session::Create(g);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->devices().size(), 1u);
  const auto out = session->Run(feeds, {sum});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].data<float>()[1], 22.f);

  auto strict = Session::Create(g, {.allow_soft_placement = false});
  ASSERT_TRUE(strict.ok()) << strict.status();
  const absl::Status refused = strict->Run(feeds, {sum}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("Cannot assign a device for operation"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("GPU:0"));
}

}  // namespace
}  // namespace weir
