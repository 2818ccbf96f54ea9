#ifndef WEIR_KERNELS_NN_IMAGE_OPERAND_H_
#define WEIR_KERNELS_NN_IMAGE_OPERAND_H_

#include <type_traits>

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/lib/layout.h"
#include "weir/kernels/lib/scalar_math.h"

namespace weir {

// An operand of a kernel that processes channels-last images in a compute type C. data() always has
// that layout and type: it is the tensor's own memory if possible, otherwise a temporary that is
// converted or transposed. Call Read() for an input. For a result, call Prepare(), write to data(),
// and call Write().
template <class T, class C = Wide<T>>
class ImageOperand {
 public:
  absl::Status Read(KernelContext& ctx, const Tensor& tensor, bool channels_first, int64_t batch,
                    int64_t channels) {
    const int64_t n = tensor.num_elements();
    if constexpr (std::is_same_v<T, C>) {
      data_ = const_cast<C*>(tensor.data<T>());
    } else {
      WEIR_ASSIGN_OR_RETURN(converted_, ctx.AllocateTemp(DataTypeOf<C>::value, Shape({n})));
      data_ = converted_.template data<C>();
      ConvertElements(ctx.pool(), tensor.data<T>(), data_, n);
    }
    if (!channels_first || n == 0) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(transposed_, ctx.AllocateTemp(DataTypeOf<C>::value, Shape({n})));
    const C* const from = data_;
    data_ = transposed_.template data<C>();
    TransposeMatrices(ctx.pool(), from, data_, batch, channels, n / (batch * channels));
    return absl::OkStatus();
  }

  // Provides memory for a result that `tensor` will hold.
  absl::Status Prepare(KernelContext& ctx, Tensor& tensor, bool channels_first) {
    if constexpr (std::is_same_v<T, C>) {
      if (!channels_first) {
        data_ = tensor.data<T>();
        return absl::OkStatus();
      }
    }
    WEIR_ASSIGN_OR_RETURN(converted_,
                          ctx.AllocateTemp(DataTypeOf<C>::value, Shape({tensor.num_elements()})));
    data_ = converted_.template data<C>();
    return absl::OkStatus();
  }

  // Stores the result in `tensor`.
  absl::Status Write(KernelContext& ctx, Tensor& tensor, bool channels_first, int64_t batch,
                     int64_t channels) {
    const int64_t n = tensor.num_elements();
    const C* from = data_;
    if (channels_first && n > 0) {
      C* to = nullptr;
      if constexpr (std::is_same_v<T, C>) {
        to = tensor.data<T>();
      } else {
        WEIR_ASSIGN_OR_RETURN(transposed_, ctx.AllocateTemp(DataTypeOf<C>::value, Shape({n})));
        to = transposed_.template data<C>();
      }
      TransposeMatrices(ctx.pool(), from, to, batch, n / (batch * channels), channels);
      from = to;
    }
    if constexpr (!std::is_same_v<T, C>) ConvertElements(ctx.pool(), from, tensor.data<T>(), n);
    return absl::OkStatus();
  }

  C* data() const { return data_; }

 private:
  C* data_ = nullptr;
  Tensor converted_, transposed_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_NN_IMAGE_OPERAND_H_
