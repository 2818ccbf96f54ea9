#ifndef WEIR_KERNELS_LINALG_EPILOGUE_H_
#define WEIR_KERNELS_LINALG_EPILOGUE_H_

#include <optional>

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/linalg/gemm.h"
#include "weir/kernels/math/elementwise_loops.h"

namespace weir {

// The epilogue of a fused op (_FusedConv2D, _FusedMatMul, ...), applied to each element of the
// matrix product or convolution while it is in the cache: activation(x + bias[channel] + addend).
// Float only.
struct Epilogue {
  bool bias = false;  // has a bias: the first of `args`
  bool add = false;   // has an addend: the next of `args`, a tensor of the result's shape

  // Reads the attribute "fused_ops": BiasAdd, Add, and an activation, each of them optional.
  // UNIMPLEMENTED for others, INVALID_ARGUMENT if "num_args" does not match.
  static absl::StatusOr<Epilogue> Read(const Node& node);

  // The operands of a run; null if absent.
  struct Operands {
    const float* bias = nullptr;
    const float* addend = nullptr;
  };
  // Reads the inputs that follow the two operands of the product. INVALID_ARGUMENT if the bias is
  // not a vector of `channels` floats, or the addend is not a float tensor of the result's shape.
  absl::StatusOr<Operands> ReadOperands(const KernelContext& ctx, const Shape& result,
                                        int64_t channels) const;
  // Kernels with epilogues are InPlace for the epilogue's operands. If the result reuses the memory
  // of an operand that is still needed, copies the operand to the tensor that this returns.
  static absl::StatusOr<Tensor> PreserveOperand(KernelContext& ctx, const Shape& shape,
                                                const float** operand);

  // Applies the epilogue to `rows` rows of `columns` elements with row stride `stride`, on the
  // calling thread. The operands begin at the block's first column, the addend also at its first
  // row; the addend has the same row stride.
  void Apply(float* x, const Operands& operands, int64_t rows, int64_t columns,
             int64_t stride) const;
  // Returns the equivalent epilogue of our own GEMM, which accumulates into the addend. Nullopt if
  // GEMM does not support it.
  std::optional<gemm::Epilogue> AsGemmEpilogue(const Operands& operands) const;
  // Returns the bounds to which an activation clamps, if that is all it does. An empty name means
  // no activation.
  static std::optional<gemm::Epilogue> ClampOf(absl::string_view activation);
  // x += y for contiguous elements.
  static void Add(float* x, const float* y, int64_t n);
  // Applies only the activation to contiguous elements.
  void Activate(float* x, int64_t n) const {
    if (loop_ != nullptr) loop_->run(*loop_, x, x, n, alpha_);
  }
  bool has_activation() const { return loop_ != nullptr; }

 private:
  const UnaryLoop* loop_ = nullptr;  // the activation
  float alpha_ = 0;                  // of LeakyRelu
  std::optional<gemm::Epilogue> clip_ = gemm::Epilogue();
};

}  // namespace weir

#endif  // WEIR_KERNELS_LINALG_EPILOGUE_H_
