#include <algorithm>

#include "weir/kernels/linalg/cache_budget.h"
#include "weir/kernels/linalg/gemm.h"
#include "weir/kernels/linalg/matmul.h"

// A product of few rows spends most of its time on packing B: with 32 rows, 1.6 times as long as on
// the multiplications. A loop over time steps repeats this in each iteration for the same weight,
// and inference repeats it in each step. Here the weight is packed once.
//
// In a loop, the graph does not show that the weight is the same. The forward loop reads the
// variable again in each iteration, and the backward loop pops its operand from a stack. But all of
// them pass on one tensor, so the kernel sees the same memory again. While it holds a reference to
// the tensor, its values do not change: writes to a variable copy its value first if others
// reference it. Memory of a step's arena is not ref-counted and not cached. A tensor that does not
// recur in the next iteration is released there, and the last one with the next step.
//
// A step-invariant weight is packed at once, so that the first step rounds like all others, and
// released when another one replaces it. If it is replaced all the time, nothing is cached
// (ReuseTracker). Plans for other shapes have their own kernels, which pack it again; CacheBudget
// bounds their total size. The packed form is independent of the number of rows.
namespace weir {

namespace {

// The minimum size of a piece.
constexpr int64_t kMinRows = 24, kMinColumns = 64;
// The number of rows for which a step-invariant weight is packed: with fewer rows the product is
// bound by reading B, packed or not, and with more of them by multiplications.
constexpr int64_t kFewestRows = 8, kMostRows = 1024;
// The maximum size of one packed weight.
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
                            const Tensor& panels, float* c, bool adds, const ProductEpilogue& end) {
  // Small pieces cost little, since B is packed already, and leave work for threads that become
  // free late. But each piece packs its rows of A, unless A is used in place: in that case, splits
  // by rows first.
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
  Tensor panels;  // uninitialized: there is no room for it
  CacheBudget kept;
};

PackedMatMul::PackedMatMul(Weight weight) : weight_(weight) {}
PackedMatMul::~PackedMatMul() = default;

std::shared_ptr<const PackedMatMul::Packed> PackedMatMul::Pack(ThreadPool& pool,
                                                               const MatMulArgs& g,
                                                               const Tensor& b) const {
  auto packed = std::make_shared<Packed>();
  if (weight_ == Weight::kStepInvariant) {
    packed->kept = CacheBudget(PackedBytes(g));
    if (packed->kept.bytes() == 0) return packed;
  }
  absl::StatusOr<Tensor> panels = PackB(pool, g, b.data<float>());
  if (panels.ok()) packed->panels = *std::move(panels);
  return packed;
}

PackedMatMul::Entry& PackedMatMul::EntryFor(int64_t step_id) {
  for (Entry& entry : entries_) {
    if (entry.step_id == step_id) return entry;
  }
  Entry& oldest = entries_[next_++ % kMaxSteps];
  oldest = Entry{};
  oldest.step_id = step_id;
  return oldest;
}

// The tiles of a batch encounter a new weight at the same time.
std::shared_ptr<const PackedMatMul::Packed> PackedMatMul::PackOnce(ThreadPool& pool,
                                                                   int64_t step_id,
                                                                   const MatMulArgs& g,
                                                                   const Tensor& b) {
  const std::lock_guard<std::mutex> packing(packing_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Entry& entry = EntryFor(step_id);
    if (entry.Is(g, b) && entry.packed != nullptr) return entry.packed;
  }
  const std::shared_ptr<const Packed> packed = Pack(pool, g, b);
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = EntryFor(step_id);
  if (weight_ == Weight::kStepInvariant && !packed->panels.initialized()) {
    disabled_ = true;
    entry = Entry{};
  } else if (entry.Is(g, b)) {
    entry.packed = packed;
  }
  return packed;
}

absl::StatusOr<bool> PackedMatMul::Run(ThreadPool& pool, int64_t step_id, const MatMulArgs& g,
                                       const float* a, const Tensor& b, float* c, bool adds,
                                       const ProductEpilogue& end) {
  if (!b.buffer() || b.buffer()->transient()) return false;
  const bool step_invariant = weight_ == Weight::kStepInvariant;
  if (g.n < gemm::PanelColumns() || PackedBytes(g) > kMostBytes) return false;
  if (step_invariant && (g.m < kFewestRows || g.m > kMostRows)) return false;
  if (step_invariant) step_id = 0;
  std::shared_ptr<const Packed> packed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (disabled_) return false;
    Entry& entry = EntryFor(step_id);
    if (entry.Is(g, b)) {
      reuse_.RecordReuse();
    } else {
      reuse_.RecordNewValue();
      disabled_ = step_invariant && !reuse_.pays();
      entry = disabled_ ? Entry{} : Entry{step_id, g, b, nullptr};
      if (disabled_ || !step_invariant) return false;
    }
    packed = entry.packed;
  }
  if (packed == nullptr) packed = PackOnce(pool, step_id, g, b);
  if (!packed->panels.initialized()) return false;
  WEIR_RETURN_IF_ERROR(MultiplyPacked(pool, g, a, packed->panels, c, adds, end));
  return true;
}

}  // namespace weir
