#ifndef WEIR_TESTS_KERNELS_LIB_PICK_H_
#define WEIR_TESTS_KERNELS_LIB_PICK_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weir/tests/kernels/lib/op_case.h"
#include "weir/tests/kernels/lib/vectors.h"

// Helpers for the references of ops that copy elements: a reference names, for each element of the
// result, the input and the element it is copied from.
namespace weir::pick {

using Index = std::vector<int64_t>;
using Moved = List<double, complex128, bool, std::string>;

inline int64_t Flat(const Shape& shape, const Index& index) {
  int64_t flat = 0;
  for (int d = 0; d < shape.rank(); ++d) flat = flat * shape.dim(d) + index[d];
  return flat;
}

// Returns the tensor of this shape whose element at `index` is xs[k] at `flat`, where pick(index)
// returns {k, flat}; k = -1 is zero (false, empty).
using Source = std::pair<int, int64_t>;
inline Tensor Pick(const Tensors& xs, const Shape& shape,
                   const std::function<Source(const Index&)>& pick) {
  Tensor out = Tensor::Zeros(xs[0].dtype(), shape);
  DispatchType(out.dtype(), Moved{}, [&]<class T>() {
    ForEachIndex(shape, [&](int64_t flat, const Index& index) {
      const auto [k, from] = pick(index);
      out.data<T>()[flat] = k < 0 ? T() : xs[k].data<T>()[from];
    });
  });
  return out;
}

inline Tensor PickOne(const Tensor& x, const Shape& shape,
                      const std::function<int64_t(const Index&)>& pick) {
  return Pick({x}, shape, [&](const Index& i) {
    const int64_t flat = pick(i);
    return Source(flat < 0 ? -1 : 0, flat);
  });
}

inline Tensor SumTo(const Tensor& x, const Shape& shape,
                    const std::function<int64_t(const Index&)>& to) {
  Tensor out = Tensor::Zeros(x.dtype(), shape);
  ForEachIndex(x.shape(), [&](int64_t flat, const Index& index) {
    const int64_t at = to(index);
    if (x.dtype() == DT_COMPLEX128) {
      out.data<complex128>()[at] += x.data<complex128>()[flat];
    } else {
      out.data<double>()[at] += x.data<double>()[flat];
    }
  });
  return out;
}

inline Index Ints(const Tensor& t) {
  Index out;
  for (int64_t i = 0; i < t.num_elements(); ++i) out.push_back(t.IntAt(i));
  return out;
}

inline Tensor Rows(std::initializer_list<int32_t> values) {
  return Tensor::Of<int32_t>(Shape({static_cast<int64_t>(values.size()) / 2, 2}), values);
}

}  // namespace weir::pick

#endif  // WEIR_TESTS_KERNELS_LIB_PICK_H_
