#ifndef WEIR_KERNELS_STORED_VALUES_H_
#define WEIR_KERNELS_STORED_VALUES_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/kernel.h"
#include "weir/core/variant.h"
#include "weir/kernels/tensor_sequence.h"

// Values that hold tensors and outlive the kernel that makes them: arrays, lists, maps, optionals,
// and the arithmetic on them that gradients need.
namespace weir {

// An element of a DT_VARIANT tensor: tensors of one type in a row, of which some may be missing;
// those stand for zeros. A value: every op makes a new list, which shares what has not changed.
struct TensorList {
  static constexpr char kTypeName[] = "tensorflow::TensorList";
  DataType element_dtype = DT_INVALID;
  Shape element_shape = Shape::UnknownRank();  // all elements fit it
  int64_t max_num_elements = -1;               // for pushing; -1: any number
  int depth = 1;                               // of lists in lists
  TensorSequence elements = {};
};

// An element of a DT_VARIANT tensor: tensors by tensors. Keys are told apart by type, shape and
// bytes.
struct TensorMap {
  static constexpr char kTypeName[] = "tensorflow::TensorMap";
  struct Entry {
    Tensor key, value;
  };
  using Entries = std::map<std::string, Entry>;
  int depth = 1;
  std::shared_ptr<const Entries> entries = std::make_shared<Entries>();
};

// An element of a DT_VARIANT tensor: several tensors, or nothing.
struct Optional {
  static constexpr char kTypeName[] = "tensorflow::data::Optional";
  bool has_value = false;
  int depth = 1;
  std::vector<Tensor> values = {};
};

// A scalar that holds one of these.
template <class T>
Tensor VariantScalar(T value) {
  Variant v;
  v.type_name = T::kTypeName;
  v.value = std::move(value);
  return Tensor::Scalar(std::move(v));
}
// What a variant holds; null if it is something else.
template <class T>
const T* VariantAs(const Variant& v) {
  return std::any_cast<T>(&v.value);
}

// How deep values in values go: 0 for a plain tensor. INVALID_ARGUMENT beyond a limit, since they
// are freed recursively.
absl::StatusOr<int> NestingDepth(const Tensor& t);

// INVALID_ARGUMENT unless `indices` is a vector with an index for each row of the argument `name`.
absl::Status CheckRowIndices(const Tensor& indices, const Tensor& rows, absl::string_view name);

// ---- tensors in host memory of their own

absl::StatusOr<Tensor> NewTensor(DataType dtype, const Shape& shape);
// Zeros, false, empty strings; INVALID_ARGUMENT for handles and variants, which have no zero.
absl::StatusOr<Tensor> ZeroTensor(ThreadPool& pool, DataType dtype, const Shape& shape);
// Rows [begin, end) of dimension 0, in this shape, copied.
absl::StatusOr<Tensor> CopyRows(const Tensor& t, int64_t begin, int64_t end, const Shape& shape);
// RESOURCE_EXHAUSTED if there is no memory for so many tensors of their own, empty ones even: rows
// without elements take no memory where they come from, so there may be any number of them.
absl::Status CheckRoomForTensors(int64_t count);

// Zeros of the same shape and type; a list of zeros for a list, and so on.
absl::StatusOr<Tensor> ZerosOf(ThreadPool& pool, const Tensor& t);
// a + b, of one shape and type; lists are added element by element.
absl::StatusOr<Tensor> SumOf(ThreadPool& pool, const Tensor& a, const Tensor& b);

// ---- the same in memory of the kernel's device, where its arguments lie

absl::StatusOr<Tensor> ZeroTensor(KernelContext& c, DataType dtype, const Shape& shape);
absl::StatusOr<Tensor> CopyRows(KernelContext& c, const Tensor& t, int64_t begin, int64_t end,
                                const Shape& shape);
absl::StatusOr<Tensor> SumOf(KernelContext& c, const Tensor& a, const Tensor& b);

}  // namespace weir

#endif  // WEIR_KERNELS_STORED_VALUES_H_
