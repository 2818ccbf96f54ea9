#ifndef WEIR_KERNELS_LINALG_MATMUL_H_
#define WEIR_KERNELS_LINALG_MATMUL_H_

#include <array>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/functional/function_ref.h"
#include "weir/core/runtime/thread_pool.h"
#include "weir/core/tensor/dtype.h"
#include "weir/core/tensor/shape.h"
#include "weir/core/tensor/status.h"
#include "weir/core/tensor/tensor.h"
#include "weir/kernels/linalg/cache_budget.h"
#include "weir/kernels/linalg/gemm.h"

namespace weir {

class KernelRegistry;

// One matrix multiplication C = op(A) op(B): op(A) is m x k, op(B) is k x n, C is m x n, all
// row-major without padding. The flags mean that a matrix is stored transposed (A as k x m), and
// for complex numbers also conjugated.
struct MatMulArgs {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool conjugate_a = false, conjugate_b = false;
  friend bool operator==(const MatMulArgs&, const MatMulArgs&) = default;
};

// Returns the multiplication that MatMul computes for these shapes. INVALID_ARGUMENT if there is
// none.
absl::StatusOr<MatMulArgs> MatMulOf(const Shape& a, const Shape& b, bool transpose_a,
                                    bool transpose_b);

// The multiplications that BatchMatMul computes for the matrices in the last two dimensions: one
// per element of `batch`, to which the leading dimensions of x and y are broadcast.
struct BatchMatMulArgs {
  MatMulArgs one;
  Shape batch_x, batch_y, batch;
  Shape out;
};
// INVALID_ARGUMENT if the shapes do not match. Without `broadcasts` the leading dimensions must be
// equal.
absl::StatusOr<BatchMatMulArgs> BatchMatMulOf(const Shape& x, const Shape& y, bool adj_x,
                                              bool adj_y, bool broadcasts);

// Computes one product with all threads of the pool. UNIMPLEMENTED if the type is not in
// MatMulTypes. INTERNAL or RESOURCE_EXHAUSTED if oneDNN fails.
using MatMulTypes = List<half, bfloat16, float, double, int16_t, int32_t, int64_t, uint8_t,
                         uint16_t, uint32_t, uint64_t, std::complex<float>, std::complex<double>>;
absl::Status RunMatMul(ThreadPool& pool, DataType type, const MatMulArgs& args, const void* a,
                       const void* b, void* c);
// Computes C += op(A) op(B) for floats, in the same way.
absl::Status AddMatMul(ThreadPool& pool, const MatMulArgs& args, const float* a, const float* b,
                       float* c);

// The epilogue of a float product. `blocks` is called for each finished block of the result, from
// any thread. Our own GEMM applies `tiles` instead, if it is set; both must be equivalent.
using BlockEpilogue =
    absl::FunctionRef<void(int64_t row, int64_t column, int64_t rows, int64_t columns)>;
inline constexpr auto kNoBlockEpilogue = [](int64_t, int64_t, int64_t, int64_t) {};
struct ProductEpilogue {
  std::optional<gemm::Epilogue> tiles = {};
  BlockEpilogue blocks = kNoBlockEpilogue;
};

// Packs B of a float product into panels (gemm.h), and multiplies by packed panels; with `adds`,
// accumulates into C. Both use all threads.
absl::StatusOr<Tensor> PackB(ThreadPool& pool, const MatMulArgs& args, const float* b);
absl::Status MultiplyPacked(ThreadPool& pool, const MatMulArgs& args, const float* a,
                            const Tensor& panels, float* c, bool adds, const ProductEpilogue& end);

// Float products that are computed repeatedly with the same B, a weight, whose packed form (gemm.h)
// is cached. One object per node; thread-safe.
class PackedMatMul {
 public:
  // The kind of weight: B may occur repeatedly in a step, in a loop, and is packed on its second
  // use; or it is step-invariant (KernelInit::step_invariant_inputs) and is packed on its first
  // use.
  enum class Weight { kInLoop, kStepInvariant };

  explicit PackedMatMul(Weight weight);
  ~PackedMatMul();
  // Computes C = op(A) op(B), or C += with `adds`. Returns false, without side effects, if this B
  // is not packed.
  absl::StatusOr<bool> Run(ThreadPool& pool, int64_t step_id, const MatMulArgs& args,
                           const float* a, const Tensor& b, float* c, bool adds,
                           const ProductEpilogue& end);

 private:
  struct Packed;
  std::shared_ptr<const Packed> Pack(ThreadPool& pool, const MatMulArgs& args,
                                     const Tensor& b) const;
  std::shared_ptr<const Packed> PackOnce(ThreadPool& pool, int64_t step_id, const MatMulArgs& args,
                                         const Tensor& b);

  // The last B of a step. Between steps a program may write to a tensor that it feeds, so entries
  // of previous steps are not valid. If B is step-invariant, all steps share an entry.
  struct Entry {
    int64_t step_id = -1;
    MatMulArgs args;
    Tensor b;  // the reference prevents writes: owners copy shared tensors
    std::shared_ptr<const Packed> packed;
    bool Is(const MatMulArgs& other_args, const Tensor& other) const {
      return b.raw() == other.raw() && b.SharesBufferWith(other) && args.k == other_args.k &&
             args.n == other_args.n && args.transpose_b == other_args.transpose_b;
    }
  };
  static constexpr int kMaxSteps = 4;  // concurrently
  Entry& EntryFor(int64_t step_id);    // requires mutex_

  const Weight weight_;
  std::mutex packing_;  // held while B is packed, so that other users of B wait
  std::mutex mutex_;    // guards the following members
  // True if a step-invariant weight could not be packed, or caching it does not pay.
  bool disabled_ = false;
  ReuseTracker reuse_;  // of a step-invariant weight
  std::array<Entry, kMaxSteps> entries_;
  unsigned next_ = 0;
};

// Returns the number of pieces into which to split a float product.
int64_t ProductPieces(const MatMulArgs& args, int threads);

void AddDeferredMatMulKernels(KernelRegistry* r);  // deferred_matmul.cc

}  // namespace weir

#endif  // WEIR_KERNELS_LINALG_MATMUL_H_
