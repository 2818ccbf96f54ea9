#ifndef WEIR_KERNELS_CONTAINERS_TENSOR_ARRAY_STATE_H_
#define WEIR_KERNELS_CONTAINERS_TENSOR_ARRAY_STATE_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "weir/core/runtime/kernel.h"

namespace weir {

// The object behind a TensorArray's handle: tensors by index, each written once and, if
// clear_after_read is set, read once. Thread-safe.
//
// The gradient of an array is an array as well, one for each `source`, the name of the call of
// Gradients: values written to one index are accumulated, and an index that is never written reads
// as zeros of the shape that the array had there. Positions that were never written use no memory.
class TensorArrayState final : public Resource {
 public:
  struct Options {
    std::string name;
    int64_t number = 0;  // for error texts: the sequence number among the arrays of its node
    DataType dtype = DT_INVALID;
    Shape element_shape = Shape::UnknownRank();
    bool identical_element_shapes = false;
    bool dynamic_size = false;
    bool clear_after_read = true;
    bool is_gradient = false;
  };
  TensorArrayState(Options options, int64_t size)
      : options_(std::move(options)), size_(size), element_shape_(options_.element_shape) {}

  std::string Describe() const override { return "TensorArray '" + options_.name + "'"; }
  // Closes the array.
  void Clear() override;
  const std::string& name() const { return options_.name; }
  DataType dtype() const { return options_.dtype; }

  // Returns an error if elements of this type cannot be read from the array ("requested") or
  // written to it ("is trying to write").
  absl::Status CheckType(DataType dtype, bool is_write) const;
  absl::StatusOr<int64_t> Size();
  // Returns the number of elements that a concatenation of all elements has. For a gradient into
  // which a tensor was split, that is the number of its parts; more elements may have been written
  // to the array since.
  absl::StatusOr<int64_t> ConcatSize();
  void SetNumParts(int64_t count);
  bool dynamic_size();
  absl::Status MergeElementShape(const Shape& shape);

  // The values own their memory, which belongs to the kernel's device.
  absl::Status Write(KernelContext& c, absl::Span<const int64_t> indices,
                     std::vector<Tensor> values);
  absl::StatusOr<std::vector<Tensor>> Read(KernelContext& c, absl::Span<const int64_t> indices);
  // Returns the gradient for `source`, which is created on first use. The shapes of its elements
  // are those of the array, with `prepend` before them. The array cannot grow after that.
  absl::StatusOr<std::shared_ptr<TensorArrayState>> Gradient(const std::string& source,
                                                             const Shape& prepend);

 private:
  struct Element {
    Tensor value;  // uninitialized: zeros
    Shape shape;
    bool written = false, read = false, cleared = false;
  };

  // These require the lock.
  absl::Status CheckOpen() const;
  absl::Status WriteOne(KernelContext& c, int64_t index, Tensor value);
  absl::Status CheckElement(int64_t index, const Tensor& value) const;
  absl::StatusOr<Tensor> ReadOne(KernelContext& c, int64_t index);
  absl::StatusOr<Shape> ShapeOfMissing(int64_t index) const;
  std::string Label() const;

  Options options_;
  std::mutex mutex_;
  bool closed_ = false;
  bool has_sums_ = false;  // if set, the array has no gradient
  int64_t size_;
  std::optional<int64_t> parts_;  // of the tensor that was split last
  Shape element_shape_;
  std::unordered_map<int64_t, Element> elements_;
  std::map<std::string, std::shared_ptr<TensorArrayState>> gradients_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_CONTAINERS_TENSOR_ARRAY_STATE_H_
