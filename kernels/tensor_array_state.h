#ifndef WEIR_KERNELS_TENSOR_ARRAY_STATE_H_
#define WEIR_KERNELS_TENSOR_ARRAY_STATE_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "weir/core/kernel.h"

namespace weir {

// What a TensorArray's handle refers to: tensors by index, each written once and, unless it is to
// be kept, read once. Thread-safe.
//
// The gradient of an array is an array as well, one for each `source`, the name of the call of
// Gradients: values written to one index add up, and what nobody wrote reads as zeros of the shape
// that the array had there. Positions that were never written take no memory.
class TensorArrayState final : public Resource {
 public:
  struct Options {
    std::string name;
    int64_t number = 0;  // for errors: which one this is of those that its node made
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

  // Errors if elements of this type cannot be read from it ("requested") or written to it ("is
  // trying to write").
  absl::Status CheckType(DataType dtype, bool is_write) const;
  absl::StatusOr<int64_t> Size();
  // How many elements are joined when all are: of a gradient, those that one tensor was taken apart
  // into, where it was; more may have been written to the array since.
  absl::StatusOr<int64_t> JoinedSize();
  void NoteParts(int64_t count);
  bool dynamic_size();
  absl::Status MergeElementShape(const Shape& shape);

  // The values own their memory, which is of the kernel's device.
  absl::Status Write(KernelContext& c, absl::Span<const int64_t> indices,
                     std::vector<Tensor> values);
  absl::StatusOr<std::vector<Tensor>> Read(KernelContext& c, absl::Span<const int64_t> indices);
  // The gradient for `source`, made when first asked for; its elements have `prepend` before the
  // dimensions that the array's have. The array can grow no more.
  absl::StatusOr<std::shared_ptr<TensorArrayState>> Gradient(const std::string& source,
                                                             const Shape& prepend);

 private:
  struct Element {
    Tensor value;  // not initialized: zeros
    Shape shape;
    bool written = false, read = false, cleared = false;
  };

  // All need the lock.
  absl::Status CheckOpen() const;
  absl::Status WriteOne(KernelContext& c, int64_t index, Tensor value);
  absl::Status CheckElement(int64_t index, const Tensor& value) const;
  absl::StatusOr<Tensor> ReadOne(KernelContext& c, int64_t index);
  absl::StatusOr<Shape> ShapeOfMissing(int64_t index) const;
  std::string Label() const;

  Options options_;
  std::mutex mutex_;
  bool closed_ = false;
  bool has_sums_ = false;  // so that it has no gradient
  int64_t size_;
  std::optional<int64_t> parts_;  // of the tensor that was taken apart last
  Shape element_shape_;
  std::unordered_map<int64_t, Element> elements_;
  std::map<std::string, std::shared_ptr<TensorArrayState>> gradients_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_TENSOR_ARRAY_STATE_H_
