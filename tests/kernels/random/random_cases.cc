// Rows for the ops related to random numbers whose results are short enough to list, as TensorFlow
// computes them. tests/ops/random/random_test.cc compares the random tensors themselves bit for
// bit.

#include "tests/kernels/lib/op_case.h"

namespace weir {
namespace {

constexpr uint64_t kKey = 10413732777507651514u, kCounter = 17830669156045600267u;

std::vector<OpCase> RandomCases() {
  return {
      OpCase("StatelessRandomGetKeyCounter")
          .Input(Tensor::Vector<int64_t>({1, 2}))
          .Types({DT_INT64})
          .Reference([](const Node&, const Tensors&) {
            return Tensors{Tensor::Vector<uint64_t>({kKey}),
                           Tensor::Vector<uint64_t>({0, kCounter})};
          }),
      OpCase("StatelessRandomGetKeyCounterAlg")
          .Input(Tensor::Vector<int64_t>({1, 2}))
          .Types({DT_INT64})
          .Reference([](const Node&, const Tensors&) {
            return Tensors{Tensor::Vector<uint64_t>({kKey}),
                           Tensor::Vector<uint64_t>({0, kCounter}), Tensor::Scalar<int32_t>(1)};
          }),
  };
}

INSTANTIATE_TEST_SUITE_P(Random, OpSweepTest, testing::ValuesIn(RandomCases()), OpCaseName);

}  // namespace
}  // namespace weir
