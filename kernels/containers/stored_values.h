#ifndef WEIR_KERNELS_CONTAINERS_STORED_VALUES_H_
#define WEIR_KERNELS_CONTAINERS_STORED_VALUES_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/variant.h"
#include "weir/kernels/containers/tensor_sequence.h"

// Values that hold tensors and outlive the kernel that creates them: arrays, lists, maps,
// optionals, and the arithmetic on them that gradients need.
namespace weir {

// An element of a DT_VARIANT tensor: a sequence of tensors of one type, some of which may be
// missing; missing tensors read as zeros. Immutable: every op creates a new list, which shares the
// unchanged elements.
struct TensorList {
  static constexpr char kTypeName[] = "tensorflow::TensorList";
  DataType element_dtype = DT_INVALID;
  Shape element_shape = Shape::UnknownRank();  // compatible with all elements
  int64_t max_num_elements = -1;               // limit for pushing; -1: unlimited
  int depth = 1;                               // nesting depth of lists
  TensorSequence elements = {};
};

// An element of a DT_VARIANT tensor: a map from tensors to tensors. Keys are compared by type,
// shape and bytes.
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

// Returns a string that is equal for equal keys only; INVALID_ARGUMENT for keys that are handles or
// variants.
absl::StatusOr<std::string> MapKey(const Tensor& key);

// Registers how these values are written and read (core/tensor/variant.h), in TensorFlow's form.
// Returns true.
bool RegisterStoredValueCodecs();

// Returns a scalar that holds one of these.
template <class T>
Tensor VariantScalar(T value) {
  Variant v;
  v.type_name = T::kTypeName;
  v.value = std::move(value);
  return Tensor::Scalar(std::move(v));
}
// Returns the value in a variant; null if it has another type.
template <class T>
const T* VariantAs(const Variant& v) {
  return std::any_cast<T>(&v.value);
}

// Returns the nesting depth of a value: 0 for a plain tensor. Returns INVALID_ARGUMENT beyond a
// limit, because values are freed recursively.
absl::StatusOr<int> NestingDepth(const Tensor& t);

// Returns INVALID_ARGUMENT unless `indices` is a vector with an index for each row of the argument
// `name`.
absl::Status CheckRowIndices(const Tensor& indices, const Tensor& rows, absl::string_view name);

// ---- tensors in newly allocated host memory

absl::StatusOr<Tensor> NewTensor(DataType dtype, const Shape& shape);
// Returns zeros, false, or empty strings; INVALID_ARGUMENT for handles and variants, which have no
// zero.
absl::StatusOr<Tensor> ZeroTensor(ThreadPool& pool, DataType dtype, const Shape& shape);
// Copies rows [begin, end) of dimension 0 to a tensor of this shape.
absl::StatusOr<Tensor> CopyRows(const Tensor& t, int64_t begin, int64_t end, const Shape& shape);
// Returns RESOURCE_EXHAUSTED if there is no memory for this many separate tensors, even empty ones:
// rows without elements use no memory in the tensor they come from, so there may be any number of
// them.
absl::Status CheckRoomForTensors(int64_t count);

// Returns zeros of the same shape and type; a list of zeros for a list, and so on.
absl::StatusOr<Tensor> ZerosOf(ThreadPool& pool, const Tensor& t);
// Returns a + b, which have one shape and type; lists are added element by element.
absl::StatusOr<Tensor> SumOf(ThreadPool& pool, const Tensor& a, const Tensor& b);

// ---- the same in memory of the kernel's device, which holds the arguments

absl::StatusOr<Tensor> ZeroTensor(KernelContext& c, DataType dtype, const Shape& shape);
absl::StatusOr<Tensor> CopyRows(KernelContext& c, const Tensor& t, int64_t begin, int64_t end,
                                const Shape& shape);
absl::StatusOr<Tensor> SumOf(KernelContext& c, const Tensor& a, const Tensor& b);

}  // namespace weir

#endif  // WEIR_KERNELS_CONTAINERS_STORED_VALUES_H_
