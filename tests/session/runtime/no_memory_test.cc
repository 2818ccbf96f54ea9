#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/containers/data_flow.h"
#include "weir/ops/containers/tensor_array.h"
#include "weir/ops/data/parsing.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/image/image.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

// Host memory exhaustion: the step fails and reports for what it needed memory.
namespace weir {
namespace {

using ::testing::ExitedWithCode;

constexpr int64_t kElements = int64_t{1} << 25;  // 128 MiB of floats

// Limits the process to this many more bytes of memory.
void LimitMemory(size_t bytes) {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + bytes;
  const rlimit both{limit, limit};
  if (setrlimit(RLIMIT_AS, &both) != 0) std::abort();
}

[[noreturn]] void AddUpWithRoomForOneOfTwo() {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {});
  ConditionalAccumulator sum(g, DT_FLOAT, {.shape = {kElements}});
  const Output gradient = Fill(Const(g, {kElements}), x);
  const Operation apply = sum.ApplyGradient(gradient, Const(g, int64_t{0}));
  absl::StatusOr<Session> session = Session::Create(g, {.num_threads = 1});
  if (!session.ok()) std::abort();
  LimitMemory(size_t{200} << 20);
  const absl::Status status = session->Run({{x, Tensor::Scalar(1.f)}}, {}, {apply}).status();
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  _exit(absl::IsResourceExhausted(status) ? 0 : 1);
}

[[noreturn]] void PadWithRoomForTheResultAlone() {
  constexpr int32_t kLength = 1 << 27;
  Graph g;
  const Output text = Placeholder(g, DT_STRING, {1});
  const Output padded = DecodePaddedRaw(text, kLength, DT_INT16);
  absl::StatusOr<Session> session = Session::Create(g, {.num_threads = 1});
  if (!session.ok()) std::abort();
  LimitMemory(size_t{200} << 20);
  const Tensor abc = Tensor::Of<std::string>({1}, {"abc"});
  const auto out = session->Run({{text, abc}}, {padded});
  std::fprintf(stderr, "%s\n", out.status().ToString().c_str());
  const bool is_right = out.ok() && (*out)[0].num_elements() == kLength / 2 &&
                        (*out)[0].data<int16_t>()[1] == 'c' && (*out)[0].data<int16_t>()[2] == 0;
  _exit(is_right ? 0 : 1);
}

TEST(NoMemoryDeathTest, PaddedBytesAreAllocatedOnce) {
#ifdef WEIR_SANITIZED
  GTEST_SKIP() << "sanitizers need all the address space";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(PadWithRoomForTheResultAlone(), ExitedWithCode(0), "OK");
}

// The kernel builds tables with an entry for each row of the result, which are several times as
// large.
[[noreturn]] void ResizeWithRoomForTheResult() {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {1, 2, 2, 1});
  const Output y = ResizeBilinear(x, {1 << 24, 1});
  absl::StatusOr<Session> session = Session::Create(g, {.num_threads = 2});
  if (!session.ok()) std::abort();
  LimitMemory(size_t{150} << 20);
  const absl::Status status =
      session->Run({{x, Tensor::Zeros(DT_FLOAT, {1, 2, 2, 1})}}, {y}).status();
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  _exit(absl::IsResourceExhausted(status) ? 0 : 1);
}

TEST(NoMemoryDeathTest, KernelScratchSpaceIsResourceExhausted) {
#ifdef WEIR_SANITIZED
  GTEST_SKIP() << "sanitizers need all the address space";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ResizeWithRoomForTheResult(), ExitedWithCode(0),
              "RESOURCE_EXHAUSTED: ResizeBilinear .node ResizeBilinear.: OOM");
}

// An infinite loop that writes to its array: memory is exhausted in the array's own tables, in the
// values, or between them; and the array must be in a state that can be freed.
[[noreturn]] void CollectForEver() {
  Graph g;
  const Output go = Placeholder(g, DT_BOOL, {});
  const TensorArray made(g, DT_FLOAT, 0, {.dynamic_size = true, .element_shape = Shape()});
  const Outputs ends =
      WhileLoop([&](const Outputs&) { return go; },
                [&](const Outputs& v) {
                  return Outputs{v[0] + 1, made.WithFlow(v[1]).Write(v[0], Const(g, 1.f)).flow()};
                },
                {Const(g, 0), made.flow()});
  absl::StatusOr<Session> session = Session::Create(g, {.num_threads = 1});
  if (!session.ok()) std::abort();
  LimitMemory(size_t{150} << 20);
  const absl::Status status = session->Run({{go, Tensor::Scalar(true)}}, {ends[1]}).status();
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  _exit(absl::IsResourceExhausted(status) ? 0 : 1);
}

TEST(NoMemoryDeathTest, AnEndlesslyGrowingArrayIsResourceExhausted) {
#ifdef WEIR_SANITIZED
  GTEST_SKIP() << "sanitizers need all the address space";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(CollectForEver(), ExitedWithCode(0), "RESOURCE_EXHAUSTED");
}

TEST(NoMemoryDeathTest, ForASumOfGradientsIsResourceExhaustedWithNodeAndShape) {
#ifdef WEIR_SANITIZED
  GTEST_SKIP() << "sanitizers need all the address space";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(AddUpWithRoomForOneOfTwo(), ExitedWithCode(0),
              "RESOURCE_EXHAUSTED: ResourceAccumulatorApplyGradient .node .*shape .33554432. and "
              "type float");
}

}  // namespace
}  // namespace weir
