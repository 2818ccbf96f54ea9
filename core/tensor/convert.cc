#include "weir/core/tensor/convert.h"

#include <cmath>
#include <complex>
#include <limits>

namespace weir {

namespace {

using Reals = JoinLists<RealNumbers, List<bool>>;

// Every value of these types is a long double.
template <class T>
long double ToReal(T x) {
  if constexpr (kContains<T, NarrowFloats>) {
    return static_cast<float>(x);
  } else {
    return x;
  }
}

// Converts one value. Returns false if the type does not have it.
template <class T>
bool FromReal(long double value, Rounding rounding, T* out) {
  const bool rounds = rounding == Rounding::kAllowed;
  if constexpr (std::is_same_v<T, bool> || std::is_integral_v<T>) {
    const long double whole = rounds ? std::nearbyint(value) : value;
    const bool fits = whole >= static_cast<long double>(std::numeric_limits<T>::min()) &&
                      whole <= static_cast<long double>(std::numeric_limits<T>::max());
    if (!fits || whole != std::trunc(whole)) return false;
    *out = static_cast<T>(whole);
    return true;
  } else {
    using Wide = std::conditional_t<kContains<T, NarrowFloats>, float, T>;
    *out = T(static_cast<Wide>(value));
    const long double back = ToReal(*out);
    return back == value || std::isnan(value) || (rounds && !std::isinf(back));
  }
}

template <class From, class To>
bool ConvertElement(From from, Rounding rounding, To* out) {
  if constexpr (!kContains<To, Complexes>) {
    return FromReal(ToReal(from), rounding, out);
  } else {
    typename To::value_type parts[2] = {};
    bool fits = false;
    if constexpr (kContains<From, Complexes>) {
      fits = FromReal(ToReal(from.real()), rounding, &parts[0]) &&
             FromReal(ToReal(from.imag()), rounding, &parts[1]);
    } else {
      fits = FromReal(ToReal(from), rounding, &parts[0]);
    }
    *out = To(parts[0], parts[1]);
    return fits;
  }
}

// Converts the elements. Returns the index of the first that does not fit, or -1.
template <class From, class To>
int64_t ConvertElements(const Tensor& from, Rounding rounding, Tensor* to) {
  const From* const in = from.data<From>();
  To* const out = to->data<To>();
  for (int64_t i = 0; i < from.num_elements(); ++i) {
    if (!ConvertElement(in[i], rounding, out + i)) return i;
  }
  return -1;
}

}  // namespace

bool StoreNumber(long double value, Rounding rounding, int64_t i, Tensor* tensor) {
  bool fits = false;
  DispatchType(tensor->dtype(), JoinLists<Reals, Complexes>{},
               [&]<class T>() { fits = ConvertElement(value, rounding, tensor->data<T>() + i); });
  return fits;
}

absl::StatusOr<Tensor> ConvertTensor(const Tensor& tensor, DataType dtype, Rounding rounding) {
  if (tensor.dtype() == dtype) return tensor;
  bool known = false;
  int64_t bad = -1;
  WEIR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(HostAllocator(), dtype, tensor.shape()));
  DispatchType(tensor.dtype(), JoinLists<Reals, Complexes>{}, [&]<class From>() {
    using Targets =
        std::conditional_t<kContains<From, Complexes>, Complexes, JoinLists<Reals, Complexes>>;
    known = DispatchType(dtype, Targets{}, [&]<class To>() {
      bad = ConvertElements<From, To>(tensor, rounding, &out);
    });
  });
  if (!known) {
    return InvalidArgument("a value of type ", DataTypeName(tensor.dtype()),
                           " cannot be converted to ", DataTypeName(dtype));
  }
  if (bad < 0) return out;
  return InvalidArgument(
      "element ", bad, " is ", tensor.Reshaped(Shape({tensor.num_elements()})).Row(bad).ToString(),
      " (", DataTypeName(tensor.dtype()), "), which is not a value of type ", DataTypeName(dtype));
}

}  // namespace weir
