#include <limits>
#include <vector>

#include "weir/kernels/lib/registry.h"

// Computes the nearest non-increasing sequence by pooling adjacent violators: each element starts
// as a block of its own, and a block higher than its predecessor is merged with it. The remaining
// blocks have decreasing means. Source: Best and Chakravarti, "Active set algorithms for isotonic
// regression", Mathematical Programming 47, 1990.
namespace weir {

namespace {

template <class Out>
struct Block {
  Out sum, mean;
  int32_t count;
};

template <class In, class Out>
void FitRow(const In* x, int64_t n, std::vector<Block<Out>>* blocks, Out* y, int32_t* segments) {
  blocks->clear();
  for (int64_t i = 0; i < n; ++i) {
    ThrowIfCancelledAt(i);
    Block<Out> block = {static_cast<Out>(x[i]), static_cast<Out>(x[i]), 1};
    while (!blocks->empty() && blocks->back().mean < block.mean) {
      block.sum = static_cast<Out>(blocks->back().sum + block.sum);
      block.count += blocks->back().count;
      block.mean = static_cast<Out>(block.sum / static_cast<Out>(block.count));
      blocks->pop_back();
    }
    blocks->push_back(block);
  }
  int32_t segment = 0;
  for (const Block<Out>& block : *blocks) {
    for (int32_t i = 0; i < block.count; ++i) {
      *y++ = block.mean;
      *segments++ = segment;
    }
    ++segment;
  }
}

template <class In, class Out>
absl::Status Fit(KernelContext& c) {
  const Tensor& x = c.input(0);
  const int64_t n = x.rank() == 0 ? 1 : x.dim(-1), count = x.num_elements();
  if (count > std::numeric_limits<int32_t>::max()) return InvalidArgument("Tensor too large");
  WEIR_ASSIGN_OR_RETURN(Tensor * y, c.AllocateOutput(0, x.shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor * segments, c.AllocateOutput(1, x.shape()));
  if (count == 0) return absl::OkStatus();
  const double cost = 5 * static_cast<double>(n);
  c.pool().ParallelFor(count / n, cost, [&](int64_t begin, int64_t end) {
    std::vector<Block<Out>> blocks;
    for (int64_t row = begin; row < end; ++row) {
      FitRow(x.data<In>() + row * n, n, &blocks, y->data<Out>() + row * n,
             segments->data<int32_t>() + row * n);
    }
  });
  return absl::OkStatus();
}

template <class In, class Out>
void Add(KernelRegistry* r) {
  r->Add("IsotonicRegression", kCpu,
         TypeConstraints{{"T", DataTypeOf<In>::value}, {"output_dtype", DataTypeOf<Out>::value}},
         Fit<In, Out>);
}

}  // namespace

void AddIsotonicCpu(KernelRegistry* r) {
  Add<float, float>(r);
  Add<double, double>(r);
  Add<half, half>(r);
  Add<bfloat16, bfloat16>(r);
  Add<int8_t, float>(r);
  Add<int16_t, float>(r);
  Add<int32_t, double>(r);
  Add<int64_t, double>(r);
}

}  // namespace weir
