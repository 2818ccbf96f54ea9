#ifndef WEIR_CORE_TENSOR_TENSOR_H_
#define WEIR_CORE_TENSOR_TENSOR_H_

#include <cassert>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/buffer.h"
#include "weir/core/tensor/dtype.h"
#include "weir/core/tensor/shape.h"

namespace WEIR_API weir {

// An n-dimensional array: an element type, a fully defined shape, and a ref-counted buffer that
// several tensors may share. Copying a tensor copies the handle, not the elements; DeepCopy copies
// the elements. Elements are contiguous in row-major order, and 64-byte aligned unless the tensor
// is a slice or a view of external memory. A default-constructed tensor has dtype DT_INVALID and no
// elements.
//
// Threads: different Tensor objects may be used from different threads even if they share a buffer,
// as long as nobody writes to it. A single object is not thread-safe.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;
  Tensor(Tensor&& o) noexcept
      : dtype_(std::exchange(o.dtype_, DT_INVALID)),
        shape_(std::move(o.shape_)),
        num_elements_(std::exchange(o.num_elements_, 0)),
        data_(std::exchange(o.data_, nullptr)),
        buffer_(std::move(o.buffer_)) {}
  Tensor& operator=(Tensor&& o) noexcept {
    if (this == &o) return *this;
    dtype_ = std::exchange(o.dtype_, DT_INVALID);
    shape_ = std::move(o.shape_);
    num_elements_ = std::exchange(o.num_elements_, 0);
    data_ = std::exchange(o.data_, nullptr);
    buffer_ = std::move(o.buffer_);
    return *this;
  }
  // Allocates uninitialized elements in host memory (strings and handles are default-constructed).
  // Running out of memory is fatal here; use Allocate for sizes that come from users or files.
  Tensor(DataType dtype, Shape shape);
  // Allocates uninitialized elements from `allocator`. Returns RESOURCE_EXHAUSTED, with dtype,
  // shape and allocator, when out of memory; INVALID_ARGUMENT for a shape that is not fully defined
  // or whose size in bytes overflows.
  static absl::StatusOr<Tensor> Allocate(Allocator& allocator, DataType dtype, const Shape& shape);
  // Creates a tensor on an existing buffer. `data` points into the buffer.
  Tensor(DataType dtype, Shape shape, BufferPtr buffer, void* data);
  // Creates a view of memory that the caller keeps alive and unchanged while any copy of the tensor
  // exists.
  static Tensor View(DataType dtype, Shape shape, void* data);

  // Swaps the elements with those of a tensor of the same type and shape.
  void SwapElements(Tensor& o) {
    assert(dtype_ == o.dtype_ && shape_ == o.shape_);
    std::swap(data_, o.data_);
    std::swap(buffer_, o.buffer_);
  }

  // Creates a scalar.
  template <class T>
  static Tensor Scalar(T value) {
    Tensor t(DataTypeOf<T>::value, Shape());
    *t.data<T>() = std::move(value);
    return t;
  }
  // A scalar of DT_STRING.
  static Tensor Scalar(const char* text);
  // Creates a tensor of the given shape. A different number of `values` is fatal.
  template <class T>
  static Tensor Of(const Shape& shape, absl::Span<const T> values) {
    Tensor t(DataTypeOf<T>::value, shape);
    t.CheckCount(static_cast<int64_t>(values.size()));
    std::copy(values.begin(), values.end(), t.data<T>());
    return t;
  }
  template <class T>
  static Tensor Of(const Shape& shape, std::initializer_list<T> values) {
    return Of<T>(shape, absl::Span<const T>(values.begin(), values.size()));
  }
  // Creates a vector.
  template <class T>
  static Tensor Vector(absl::Span<const T> values) {
    return Of<T>(Shape({static_cast<int64_t>(values.size())}), values);
  }
  template <class T>
  static Tensor Vector(std::initializer_list<T> values) {
    return Vector<T>(absl::Span<const T>(values.begin(), values.size()));
  }
  // Creates a tensor whose elements are all zero, false, or empty.
  static Tensor Zeros(DataType dtype, const Shape& shape);

  // The dtype; DT_INVALID for an uninitialized tensor.
  DataType dtype() const { return dtype_; }
  // The shape, which is fully defined, its rank, one extent (a negative `i` counts from the end),
  // and the product of the extents.
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_.dim(i); }
  int64_t num_elements() const { return num_elements_; }
  // The size of the elements in bytes; for strings, the size of the string objects.
  size_t num_bytes() const { return static_cast<size_t>(num_elements_) * ElementSize(dtype_); }
  // False only for a default-constructed or moved-from tensor.
  bool initialized() const { return dtype_ != DT_INVALID; }

  // The elements. A type T other than the tensor's is a bug in the program and fatal, as is an
  // out-of-range index in builds with checks. Check `dtype()` first, or use DispatchType.
  template <class T>
  T* data() {
    CheckType(DataTypeOf<std::remove_const_t<T>>::value);
    return static_cast<T*>(data_);
  }
  template <class T>
  const T* data() const {
    CheckType(DataTypeOf<std::remove_const_t<T>>::value);
    return static_cast<const T*>(data_);
  }
  // The elements in row-major order, with their number. The same types as for data().
  template <class T>
  absl::Span<T> flat() {
    return absl::Span<T>(data<T>(), static_cast<size_t>(num_elements_));
  }
  template <class T>
  absl::Span<const T> flat() const {
    return absl::Span<const T>(data<T>(), static_cast<size_t>(num_elements_));
  }
  // The element of a scalar (or one-element tensor). Fatal for any other number of elements.
  template <class T>
  const T& scalar() const {
    CheckCount(1);
    return *data<T>();
  }
  // The first element, of any type; the address that kernels of a device pass on.
  void* raw() { return data_; }
  const void* raw() const { return data_; }
  // Returns element i of an integer tensor (of any integer dtype) as int64: shapes, axes, indices.
  // Fatal for other types.
  int64_t IntAt(int64_t i) const;
  // Sets element i; a value out of the type's range is truncated.
  void SetIntAt(int64_t i, int64_t value);

  // Returns the same elements with another shape, without copying. Fatal if the number of elements
  // differs.
  Tensor Reshaped(Shape shape) const;
  // Returns rows [begin, end) of dimension 0, without copying. Fatal if out of range. The result
  // may not be 64-byte aligned.
  Tensor Slice(int64_t begin, int64_t end) const;
  // Returns row i of dimension 0, with that dimension removed, without copying.
  Tensor Row(int64_t i) const;
  // Reinterprets the bits as another dtype of the same element size, without copying.
  Tensor BitcastTo(DataType dtype) const;
  // Returns a copy in its own host memory.
  Tensor DeepCopy() const;

  // The buffer; null for an uninitialized tensor, and for a view.
  const BufferPtr& buffer() const { return buffer_; }
  // Whether a write to one of the two may change the other.
  bool SharesBufferWith(const Tensor& other) const {
    return buffer_.get() != nullptr && buffer_.get() == other.buffer_.get();
  }
  // False if the elements are in the memory of an accelerator, which the host must not touch.
  bool host_accessible() const { return !buffer_ || buffer_->host_accessible(); }
  // Returns true if this is the only reference to the buffer, so that the elements may be
  // overwritten.
  bool OwnsBufferAlone() const { return buffer_ && buffer_->unique() && !buffer_->transient(); }

  // Formats the tensor like NumPy: "[[1. 2.]\n [3. 4.]]", with "..." beyond `max_elements` (NumPy's
  // threshold 1000, edgeitems 3).
  std::string ToString(int64_t max_elements = 1000) const;
  // A description for messages: "float[2,3]".
  std::string Description() const;

 private:
  void CheckType(DataType asked) const {
    if (asked != dtype_) [[unlikely]]
      FailTypeCheck(asked);
  }
  void CheckCount(int64_t expected) const {
    if (expected != num_elements_) [[unlikely]]
      FailCountCheck(expected);
  }
  [[noreturn]] void FailTypeCheck(DataType asked) const;
  [[noreturn]] void FailCountCheck(int64_t expected) const;

  DataType dtype_ = DT_INVALID;
  Shape shape_;
  int64_t num_elements_ = 0;
  void* data_ = nullptr;
  BufferPtr buffer_;
};

// Returns true if dtype, shape and all elements are equal. Plain elements are compared bitwise (a
// NaN equals the same NaN), strings by content.
bool IdenticalTensors(const Tensor& a, const Tensor& b);

// Tensors in an order that the function which takes or returns them states.
using Tensors = std::vector<Tensor>;

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_TENSOR_H_
