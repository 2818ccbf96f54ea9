#include <algorithm>

#include "weir/kernels/gemm.h"
#include "weir/kernels/cache_budget.h"
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
// A weight that is step-invariant from step to step is packed at once, so that the first step rounds as all
// others do, and let go when another one comes; where that happens all the time, none is kept
// (ReuseTracker). Plans for other shapes have kernels of their own,
// which pack it once more: what all of them keep is bounded. Products of any number of rows take it
// as it is packed for one of them.
namespace weir {

namespace {

// Of pieces.
constexpr int64_t kMinRows = 24, kMinColumns = 64;
// Of a product whose weight is step-invariant: with fewer rows all the time goes into reading B, packed or not,
// and with more of them into multiplications.
constexpr int64_t kFewestRows = 8, kMostRows = 1024;
// Of one weight, packed.
constexpr int64_t kMostBytes = int64_t{64} << 20;

Shape PackedShape(const MatMulArgs& g) {
  return Shape({gemm::Panels(g.n), g.k, gemm::PanelColumns()});
}
int64_t PackedBytes(const MatMulArgs& g) {
  return PackedShape(g).num_elements() * static_cast<int64_t>(sizeof(float));
}

}  // namespace

absl::StatusOr<Tensor> PackB(ThreadPool& pool, const MatMulArgs& g, const float* b) {
  WEIR_ASSIGN_OR_RETURN(Tensor packed, Tensor::Allocate(HostAllocator(), DT_FLOAT, PackedShape(g)));
  const gemm::Matrix matrix = {b, g.transpose_b ? 1 : g.n, g.transpose_b ? g.k : 1};
  const int64_t width = gemm::PanelColumns();
  pool.ParallelFor(
      gemm::Panels(g.n), 0.3 * static_cast<double>(g.k * width), [&](int64_t begin, int64_t end) {
        gemm::Pack(matrix, g.k, begin * width, std::min(g.n, end * width) - begin * width,
                   packed.data<float>() + begin * g.k * width);
      });
  return packed;
}

absl::Status MultiplyPacked(ThreadPool& pool, const MatMulArgs& g, const float* a,
                            const Tensor& panels, float* c, bool adds, const ProductEnd& end) {
  // Small pieces cost little, since B is packed already, and a thread that comes late finds some.
  // But each brings its rows of A into order, unless they are taken as they lie: then pieces are of
  // rows first.
  const int64_t wanted = ProductPieces(g, pool.num_threads()) == 1 ? 1 : 4 * pool.num_threads();
  const int64_t most_rows = std::max<int64_t>(1, g.m / kMinRows);
  const int64_t most_columns = std::max<int64_t>(1, g.n / kMinColumns);
  const auto rest = [wanted](int64_t parts, int64_t most) {
    return std::min((wanted + parts - 1) / parts, most);
  };
  int64_t rows = std::min(wanted, most_rows), columns = std::min(wanted, most_columns);
  const gemm::Matrix left = {a, g.transpose_a ? 1 : g.k, g.transpose_a ? g.m : 1};
  const int64_t scratch_floats = gemm::ScratchFloats(left, g.m, g.k);
  if (scratch_floats > 0) {
    columns = rest(rows, most_columns);
  } else {
    rows = rest(columns, most_rows);
  }
  WEIR_ASSIGN_OR_RETURN(Tensor scratch, Tensor::Allocate(HostAllocator(), DT_FLOAT,
                                                         Shape({rows * columns * scratch_floats})));
  const int64_t width = gemm::PanelColumns(), num_panels = gemm::Panels(g.n);
  pool.ForEach(static_cast<int>(rows * columns), [&](int piece) {
    const int64_t r = piece / columns, p = piece % columns;
    const int64_t row = g.m * r / rows, height = g.m * (r + 1) / rows - row;
    const int64_t panel = num_panels * p / columns, column = panel * width;
    const int64_t wide = std::min(g.n, num_panels * (p + 1) / columns * width) - column;
    const gemm::Epilogue tiles = end.tiles.value_or(gemm::Epilogue()).At(column);
    gemm::Multiply({left.data + row * left.row, left.row, left.column}, height, g.k,
                   panels.data<float>() + panel * g.k * width, wide, adds, c + row * g.n + column,
                   g.n, scratch.data<float>() + piece * scratch_floats, tiles);
    if (!end.tiles) end.blocks(row, column, height, wide);
  });
  return absl::OkStatus();
}

struct PackedMatMul::Packed {
  Tensor panels;  // none: there is no room for it
  CacheBudget kept;
};

PackedMatMul::PackedMatMul(Weight weight) : weight_(weight) {}
PackedMatMul::~PackedMatMul() = default;

std::shared_ptr<const PackedMatMul::Packed> PackedMatMul::Pack(ThreadPool& pool,
                                                               const MatMulArgs& g,
                                                               const Tensor& b) const {
  auto packed = std::make_shared<Packed>();
  if (weight_ == Weight::kLasting) {
    packed->kept = CacheBudget(PackedBytes(g));
    if (packed->kept.bytes() == 0) return packed;
  }
  absl::StatusOr<Tensor> panels = PackB(pool, g, b.data<float>());
  if (panels.ok()) packed->panels = *std::move(panels);
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

// Slices of a batch meet a weight for the first time all at once.
std::shared_ptr<const PackedMatMul::Packed> PackedMatMul::PackOnce(ThreadPool& pool,
                                                                   int64_t step_id,
                                                                   const MatMulArgs& g,
                                                                   const Tensor& b) {
  const std::lock_guard<std::mutex> packing(packing_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Seen& seen = Of(step_id);
    if (seen.Is(g, b) && seen.packed != nullptr) return seen.packed;
  }
  const std::shared_ptr<const Packed> packed = Pack(pool, g, b);
  const std::lock_guard<std::mutex> lock(mutex_);
  Seen& seen = Of(step_id);
  if (weight_ == Weight::kLasting && !packed->panels.initialized()) {
    refused_ = true;
    seen = Seen{};
  } else if (seen.Is(g, b)) {
    seen.packed = packed;
  }
  return packed;
}

absl::StatusOr<bool> PackedMatMul::Run(ThreadPool& pool, int64_t step_id, const MatMulArgs& g,
                                       const float* a, const Tensor& b, float* c, bool adds,
                                       const ProductEnd& end) {
  if (!b.buffer() || b.buffer()->transient()) return false;
  const bool step_invariant = weight_ == Weight::kLasting;
  if (g.n < gemm::PanelColumns() || PackedBytes(g) > kMostBytes) return false;
  if (step_invariant && (g.m < kFewestRows || g.m > kMostRows)) return false;
  if (step_invariant) step_id = 0;
  std::shared_ptr<const Packed> packed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (refused_) return false;
    Seen& seen = Of(step_id);
    if (seen.Is(g, b)) {
      uses_.Use();
    } else {
      uses_.Change();
      refused_ = step_invariant && !uses_.pays();
      seen = refused_ ? Seen{} : Seen{step_id, g, b, nullptr};
      if (refused_ || !step_invariant) return false;
    }
    packed = seen.packed;
  }
  if (packed == nullptr) packed = PackOnce(pool, step_id, g, b);
  if (!packed->panels.initialized()) return false;
  WEIR_RETURN_IF_ERROR(MultiplyPacked(pool, g, a, packed->panels, c, adds, end));
  return true;
}

}  // namespace weir
