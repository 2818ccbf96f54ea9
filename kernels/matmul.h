#ifndef WEIR_KERNELS_MATMUL_H_
#define WEIR_KERNELS_MATMUL_H_

#include <array>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/functional/function_ref.h"
#include "weir/core/dtype.h"
#include "weir/core/shape.h"
#include "weir/core/status.h"
#include "weir/core/tensor.h"
#include "weir/core/thread_pool.h"
#include "weir/kernels/gemm.h"
#include "weir/kernels/cache_budget.h"

namespace weir {

class KernelRegistry;

// One matrix product C = op(A) op(B): op(A) is m x k, op(B) is k x n, C is m x n, all stored row by
// row without gaps. A flag says that a matrix is stored transposed (A as k x m), and for complex
// numbers that it is conjugated as well.
struct MatMulArgs {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool conjugate_a = false, conjugate_b = false;
  friend bool operator==(const MatMulArgs&, const MatMulArgs&) = default;
};

// The product that MatMul computes of matrices of these shapes. INVALID_ARGUMENT if there is none.
absl::StatusOr<MatMulArgs> MatMulOf(const Shape& a, const Shape& b, bool transpose_a,
                                    bool transpose_b);

// The products that BatchMatMul computes, of the matrices in the last two dimensions: one for each
// element of `batch`, to which the leading dimensions of x and y broadcast.
struct BatchMatMulArgs {
  MatMulArgs one;
  Shape batch_x, batch_y, batch;
  Shape out;
};
// INVALID_ARGUMENT if there are none. Without `broadcasts` the leading dimensions must be equal.
absl::StatusOr<BatchMatMulArgs> BatchMatMulOf(const Shape& x, const Shape& y, bool adj_x,
                                              bool adj_y, bool broadcasts);

// Computes one product with all threads of the pool. UNIMPLEMENTED if the type has no kernel:
// MatMulTypes lists those that have. INTERNAL or RESOURCE_EXHAUSTED if oneDNN fails.
using MatMulTypes = List<half, bfloat16, float, double, int16_t, int32_t, int64_t, uint8_t,
                         uint16_t, uint32_t, uint64_t, std::complex<float>, std::complex<double>>;
absl::Status RunMatMul(ThreadPool& pool, DataType type, const MatMulArgs& args, const void* a,
                       const void* b, void* c);
// C += op(A) op(B) of floats, in the same way.
absl::Status AddMatMul(ThreadPool& pool, const MatMulArgs& args, const float* a, const float* b,
                       float* c);

// What becomes of the elements of a product of floats. `blocks` is called for each block of the
// result when it is there, from any thread; products by our own loops do `tiles` instead, if it is
// known, which comes to the same.
using FinishBlock =
    absl::FunctionRef<void(int64_t row, int64_t column, int64_t rows, int64_t columns)>;
inline constexpr auto kAsItIs = [](int64_t, int64_t, int64_t, int64_t) {};
struct ProductEnd {
  std::optional<gemm::Epilogue> tiles = {};
  FinishBlock blocks = kAsItIs;
};

// B of a product of floats in panels (gemm.h), and the product with it, which is added to what C
// holds if `adds`; both with all threads.
absl::StatusOr<Tensor> PackB(ThreadPool& pool, const MatMulArgs& args, const float* b);
absl::Status MultiplyPacked(ThreadPool& pool, const MatMulArgs& args, const float* a,
                            const Tensor& panels, float* c, bool adds, const ProductEnd& end);

// Products of floats that are computed again and again with the same B, a weight, which is kept
// packed (gemm.h) for the calls that follow. One for each node; thread-safe.
class PackedMatMul {
 public:
  // What is known of B: it may come twice in a step, in a loop, and is packed once it has; or it
  // is step-invariant (KernelInit::step_invariant_inputs), and is packed when it comes first.
  enum class Weight { kInLoop, kLasting };

  explicit PackedMatMul(Weight weight);
  ~PackedMatMul();
  // C = op(A) op(B), added to what C holds if `adds`. False, and nothing is done, if the B at hand
  // is not packed.
  absl::StatusOr<bool> Run(ThreadPool& pool, int64_t step_id, const MatMulArgs& args,
                           const float* a, const Tensor& b, float* c, bool adds,
                           const ProductEnd& end);

 private:
  struct Packed;
  std::shared_ptr<const Packed> Pack(ThreadPool& pool, const MatMulArgs& args,
                                     const Tensor& b) const;
  std::shared_ptr<const Packed> PackOnce(ThreadPool& pool, int64_t step_id, const MatMulArgs& args,
                                         const Tensor& b);

  // What a step has brought last: between steps a program may write to a tensor that it feeds, so
  // that nothing is known of one from the step before. If B is step-invariant, all steps count as one.
  struct Seen {
    int64_t step_id = -1;
    MatMulArgs args;
    Tensor b;  // held, so that nobody writes to it: owners copy what is shared
    std::shared_ptr<const Packed> packed;
    bool Is(const MatMulArgs& other_args, const Tensor& other) const {
      return b.raw() == other.raw() && b.SharesBufferWith(other) && args.k == other_args.k &&
             args.n == other_args.n && args.transpose_b == other_args.transpose_b;
    }
  };
  static constexpr int kMostSteps = 4;  // at a time
  Seen& Of(int64_t step_id);            // needs the lock

  const Weight weight_;
  std::mutex packing_;    // held while B is packed: who needs it as well waits
  std::mutex mutex_;      // guards what follows
  bool refused_ = false;  // a lasting weight could not be packed, or is not worth keeping
  ReuseTracker uses_;         // of a lasting weight
  std::array<Seen, kMostSteps> seen_;
  unsigned next_ = 0;
};

// How many pieces a product of floats is worth cutting into.
int64_t ProductPieces(const MatMulArgs& args, int threads);

void AddDeferredMatMulKernels(KernelRegistry* r);  // deferred_matmul.cc

}  // namespace weir

#endif  // WEIR_KERNELS_MATMUL_H_
