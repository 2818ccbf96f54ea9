#include <algorithm>

#include "weir/kernels/gemm.h"
#include "weir/kernels/kept_bytes.h"
#include "weir/kernels/matmul.h"

// A product of few rows spends most of its time on bringing B into the order in which the inner
// loop takes it: with 32 rows, 1.6 times as long as the multiplications. A loop over time steps
// does this again in each iteration, for the same weight, and a step that infers in each step. Here
// the weight is packed once.
//
// What "the same" means: in a loop, the graph cannot tell. The forward loop reads the variable anew
// in each iteration, and the backward loop takes what it multiplied with from a stack. But all of
// them hand on one tensor, so the kernel sees the same memory again. Holding that tensor, it also
// knows that the values in it have not changed: whoever writes to a variable copies first what
// others hold. Memory of a step's arena, which has no such owners, is not held. A tensor that does
// not come again in the next iteration is let go there, and the last one with the next step.
//
// A weight that lasts from step to step is packed at once, so that the first step rounds as all
// others do, and let go when another one comes. Plans for other shapes have kernels of their own,
// which pack it once more: what all of them keep is bounded.
namespace weir {

namespace {

constexpr int64_t kMinColumns = 64;
// Of a product whose weight lasts: with fewer rows all the time goes into reading B, packed or not,
// and with more of them into multiplications.
constexpr int64_t kFewestRows = 8, kMostRows = 1024;
// Of one lasting weight.
constexpr int64_t kMostBytes = int64_t{64} << 20;

}  // namespace

struct PackedMatMul::Packed {
  Tensor panels;  // none: there is no room for it
  KeptBytes kept;
};

PackedMatMul::PackedMatMul(Weight weight) : weight_(weight) {}
PackedMatMul::~PackedMatMul() = default;

std::shared_ptr<const PackedMatMul::Packed> PackedMatMul::Pack(ThreadPool& pool,
                                                               const MatMulArgs& g,
                                                               const Tensor& b) const {
  auto packed = std::make_shared<Packed>();
  const int64_t width = gemm::PanelColumns(), panels = gemm::Panels(g.n);
  const Shape shape({panels, g.k, width});
  if (weight_ == Weight::kLasting) {
    packed->kept = KeptBytes(shape.num_elements() * static_cast<int64_t>(sizeof(float)));
    if (packed->kept.bytes() == 0) return packed;
  }
  absl::StatusOr<Tensor> room = Tensor::Allocate(HostAllocator(), DT_FLOAT, shape);
  if (!room.ok()) return packed;
  packed->panels = *std::move(room);
  const gemm::Matrix matrix = {b.data<float>(), g.transpose_b ? 1 : g.n, g.transpose_b ? g.k : 1};
  pool.ParallelFor(panels, static_cast<double>(g.k * width), [&](int64_t begin, int64_t end) {
    gemm::Pack(matrix, g.k, begin * width, std::min(g.n, end * width) - begin * width,
               packed->panels.data<float>() + begin * g.k * width);
  });
  return packed;
}

PackedMatMul::Seen& PackedMatMul::Of(int64_t step_id) {
  for (Seen& seen : seen_) {
    if (seen.step_id == step_id) return seen;
  }
  Seen& oldest = seen_[next_++ % kMostSteps];
  oldest = Seen{};
  oldest.step_id = step_id;
  return oldest;
}

absl::StatusOr<bool> PackedMatMul::Run(ThreadPool& pool, int64_t step_id, const MatMulArgs& g,
                                       const float* a, const Tensor& b, float* c, bool adds,
                                       Finish finish) {
  if (!b.buffer() || b.buffer()->transient()) return false;
  const bool lasts = weight_ == Weight::kLasting;
  if (lasts &&
      (g.m < kFewestRows || g.m > kMostRows || static_cast<int64_t>(b.num_bytes()) > kMostBytes)) {
    return false;
  }
  if (lasts) step_id = 0;
  std::shared_ptr<const Packed> packed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (refused_) return false;
    Seen& seen = Of(step_id);
    if (!seen.Is(g, b)) {
      seen = Seen{step_id, g, b, nullptr};
      if (!lasts) return false;
    }
    packed = seen.packed;
  }
  if (packed == nullptr) {
    packed = Pack(pool, g, b);
    const std::lock_guard<std::mutex> lock(mutex_);
    Seen& seen = Of(step_id);
    refused_ = lasts && !packed->panels.initialized();
    if (refused_) {
      seen = Seen{};
    } else if (seen.Is(g, b)) {
      seen.packed = packed;
    }
  }
  if (!packed->panels.initialized()) return false;
  const gemm::Matrix left = {a, g.transpose_a ? 1 : g.k, g.transpose_a ? g.m : 1};
  const int64_t width = gemm::PanelColumns(), panels = gemm::Panels(g.n);
  // Small ones cost nothing, since B is packed already, and a thread that comes late finds some.
  const int64_t wanted = ProductPieces(g, pool.num_threads());
  const int64_t pieces = std::clamp<int64_t>(wanted == 1 ? 1 : 4 * pool.num_threads(), 1,
                                             std::max<int64_t>(1, g.n / kMinColumns));
  const int64_t scratch_floats = gemm::ScratchFloats(left, g.m, g.k);
  WEIR_ASSIGN_OR_RETURN(Tensor scratch, Tensor::Allocate(HostAllocator(), DT_FLOAT,
                                                         Shape({pieces * scratch_floats})));
  pool.ForEach(static_cast<int>(pieces), [&](int i) {
    const int64_t panel = panels * i / pieces, column = panel * width;
    const int64_t columns = std::min(g.n, panels * (i + 1) / pieces * width) - column;
    gemm::Multiply(left, g.m, g.k, packed->panels.data<float>() + panel * g.k * width, columns,
                   adds, c + column, g.n, scratch.data<float>() + i * scratch_floats);
    finish(0, column, g.m, columns);
  });
  return true;
}

}  // namespace weir
