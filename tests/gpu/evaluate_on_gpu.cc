#include <cstdio>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/gpu/test_gpu.h"

// The main function of tests that evaluate graphs (tests/evaluate.h): it runs them on the GPU, as
// far as there are kernels.
namespace weir {
namespace {

class OnGpu : public testing::Environment {
 public:
  void SetUp() override {
    std::string why;
    gpu_ = NewTestGpu(std::chrono::microseconds(0), &why);
    if (gpu_ == nullptr) GTEST_SKIP() << why;
    EvaluateOn(gpu_.get(), &TestGpuKernels());
  }
  void TearDown() override {
    if (gpu_ == nullptr) return;
    int64_t nodes = 0;
    for (const auto& [op, count] : EvaluatedThere()) nodes += count;
    std::printf("%lld nodes of %zu ops ran on %s (%s); ops with kernels that none was of:",
                static_cast<long long>(nodes), EvaluatedThere().size(), gpu_->text().c_str(),
                gpu_->Description().c_str());
    for (const std::string& op : TestGpuKernels().Ops(kGpu)) {
      if (!EvaluatedThere().contains(op)) std::printf(" %s", op.c_str());
    }
    std::printf("\n");
    EXPECT_GT(nodes, 0);
    EvaluateOn(nullptr, nullptr);
    gpu_.reset();
  }

 private:
  std::unique_ptr<Device> gpu_;
};

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new weir::OnGpu);
  return RUN_ALL_TESTS();
}
