#ifndef WEIR_KERNELS_EPILOGUE_H_
#define WEIR_KERNELS_EPILOGUE_H_

#include <optional>

#include "weir/core/kernel.h"
#include "weir/kernels/gemm.h"
#include "weir/kernels/elementwise_loops.h"

namespace weir {

// What a fused op (_FusedConv2D, _FusedMatMul, ...) does to each element of its product while that
// is still in the cache: activation(x + bias[channel] + addend). Floats only.
struct Epilogue {
  bool bias = false;  // the first of `args`
  bool add = false;   // the next one: a tensor of the result's shape

  // From "fused_ops": BiasAdd, Add, and an activation, each if it is there. UNIMPLEMENTED
  // for others, INVALID_ARGUMENT if "num_args" does not fit.
  static absl::StatusOr<Epilogue> Read(const Node& node);

  // The arguments of a run; null where there is none.
  struct Operands {
    const float* bias = nullptr;
    const float* addend = nullptr;
  };
  // From the inputs that follow the two of the product. INVALID_ARGUMENT if the bias is not a
  // vector of `channels` floats, or the addend not floats of the result's shape.
  absl::StatusOr<Operands> ReadOperands(const KernelContext& ctx, const Shape& result,
                                        int64_t channels) const;
  // Kernels with epilogues are InPlace for their arguments: where the result has taken the memory
  // of one that is needed later on, this copies it to the tensor that is returned.
  static absl::StatusOr<Tensor> PutAside(KernelContext& ctx, const Shape& shape,
                                         const float** operand);

  // Finishes `rows` rows of `columns` elements, `stride` apart, on this thread. The operands begin
  // at the block's first column, the addend also at its first row; its rows are `stride` apart too.
  void Apply(float* x, const Operands& operands, int64_t rows, int64_t columns,
             int64_t stride) const;
  // The same for our own products, which add what is there already: the addend. Nothing if they
  // cannot do it.
  std::optional<gemm::Epilogue> AsGemmEpilogue(const Operands& operands) const;
  // What an activation clips to, if that is all that it does; an empty name is none.
  static std::optional<gemm::Epilogue> ClipOf(absl::string_view activation);
  // x += y, of elements side by side.
  static void Add(float* x, const float* y, int64_t n);
  // The activation alone, likewise.
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

#endif  // WEIR_KERNELS_EPILOGUE_H_
