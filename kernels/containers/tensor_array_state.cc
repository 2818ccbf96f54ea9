#include "weir/kernels/containers/tensor_array_state.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "weir/kernels/containers/stored_values.h"

namespace weir {

void TensorArrayState::Clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  elements_.clear();
  gradients_.clear();
}

std::string TensorArrayState::Label() const {
  return absl::StrCat("TensorArray ", options_.name, "_", options_.number, ": ");
}

absl::Status TensorArrayState::CheckOpen() const {
  if (!closed_) return absl::OkStatus();
  return InvalidArgument("TensorArray ", options_.name, " has already been closed.");
}

absl::Status TensorArrayState::CheckType(DataType dtype, bool is_write) const {
  if (dtype == options_.dtype) return absl::OkStatus();
  return InvalidArgument("TensorArray dtype is ", DataTypeName(options_.dtype), " but Op ",
                         is_write ? "is trying to write" : "requested", " dtype ",
                         DataTypeName(dtype), ".");
}

absl::StatusOr<int64_t> TensorArrayState::Size() {
  const std::lock_guard<std::mutex> lock(mutex_);
  WEIR_RETURN_IF_ERROR(CheckOpen());
  return size_;
}

absl::StatusOr<int64_t> TensorArrayState::ConcatSize() {
  const std::lock_guard<std::mutex> lock(mutex_);
  WEIR_RETURN_IF_ERROR(CheckOpen());
  return options_.is_gradient ? parts_.value_or(size_) : size_;
}

void TensorArrayState::SetNumParts(int64_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!options_.is_gradient) parts_ = count;
}

bool TensorArrayState::dynamic_size() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return options_.dynamic_size;
}

absl::Status TensorArrayState::MergeElementShape(const Shape& shape) {
  const std::lock_guard<std::mutex> lock(mutex_);
  WEIR_ASSIGN_OR_RETURN(element_shape_, element_shape_.MergeWith(shape));
  return absl::OkStatus();
}

absl::Status TensorArrayState::Write(KernelContext& c, absl::Span<const int64_t> indices,
                                     std::vector<Tensor> values) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < indices.size(); ++i) {
    WEIR_RETURN_IF_ERROR(WriteOne(c, indices[i], std::move(values[i])));
  }
  return absl::OkStatus();
}

absl::Status TensorArrayState::CheckElement(int64_t index, const Tensor& value) const {
  if (value.dtype() != options_.dtype) {
    return InvalidArgument(Label(), "Could not write to TensorArray index ", index,
                           " because the value dtype is ", DataTypeName(value.dtype()),
                           " but TensorArray dtype is ", DataTypeName(options_.dtype), ".");
  }
  if (!element_shape_.IsCompatibleWith(value.shape())) {
    return InvalidArgument(Label(), "Could not write to TensorArray index ", index,
                           " because the value shape is ", value.shape().ToString(),
                           " which is incompatible with the TensorArray's inferred element shape: ",
                           element_shape_.ToString(), " (consider setting infer_shape=False).");
  }
  return absl::OkStatus();
}

absl::Status TensorArrayState::WriteOne(KernelContext& c, int64_t index, Tensor value) {
  WEIR_RETURN_IF_ERROR(CheckOpen());
  if (index < 0 || (!options_.dynamic_size && index >= size_)) {
    return InvalidArgument(Label(), "Tried to write to index ", index,
                           " but array is not resizeable and size is: ", size_);
  }
  // The size is an int32, and one more than the largest index.
  if (index >= std::numeric_limits<int32_t>::max()) {
    return InvalidArgument(Label(), "Tried to write to index ", index,
                           " but an array has at most 2^31 - 1 elements");
  }
  WEIR_RETURN_IF_ERROR(CheckElement(index, value));
  size_ = std::max(size_, index + 1);
  if (options_.identical_element_shapes && !element_shape_.IsFullyDefined())
    element_shape_ = value.shape();
  Element& e = elements_[index];
  const auto fail = [&](absl::string_view what) {
    return InvalidArgument(Label(), "Could not write to TensorArray index ", index,
                           " because it has already been ", what);
  };
  if (e.read) return fail("read.");
  if (!e.written) {
    e.shape = value.shape();
    e.value = std::move(value);
    e.written = true;
    return absl::OkStatus();
  }
  if (!options_.is_gradient) return fail("written to.");
  if (value.shape() != e.shape) {
    return InvalidArgument(Label(), "Could not aggregate to TensorArray index ", index,
                           " because the existing shape is ", e.shape.ToString(),
                           " but the new input shape is ", value.shape().ToString(), ".");
  }
  if (!e.value.initialized() || e.value.num_elements() == 0) {
    e.value = std::move(value);
    return absl::OkStatus();
  }
  has_sums_ = true;
  WEIR_ASSIGN_OR_RETURN(e.value, SumOf(c, e.value, value));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> TensorArrayState::Read(KernelContext& c,
                                                           absl::Span<const int64_t> indices) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Tensor> values;
  for (const int64_t index : indices) {
    WEIR_ASSIGN_OR_RETURN(Tensor value, ReadOne(c, index));
    values.push_back(std::move(value));
  }
  return values;
}

absl::StatusOr<Shape> TensorArrayState::ShapeOfMissing(int64_t index) const {
  if (element_shape_.IsFullyDefined()) return element_shape_;
  return InvalidArgument(
      Label(), "Could not read from TensorArray index ", index,
      ".  Furthermore, the element shape is not fully defined: ", element_shape_.ToString(),
      ".  It is possible you are working with a resizeable TensorArray and stop_gradients is not ",
      "allowing the gradients to be written.  If you set the full element_shape property on the ",
      "forward TensorArray, the proper all-zeros tensor will be returned instead of incurring "
      "this ",
      "error.");
}

absl::StatusOr<Tensor> TensorArrayState::ReadOne(KernelContext& c, int64_t index) {
  WEIR_RETURN_IF_ERROR(CheckOpen());
  if (index < 0 || (!options_.is_gradient && index >= size_)) {
    return InvalidArgument("Tried to read from index ", index, " but array size is: ", size_);
  }
  const auto it = elements_.find(index);
  if (it == elements_.end() || !it->second.written) {
    WEIR_ASSIGN_OR_RETURN(const Shape shape, ShapeOfMissing(index));
    Element& missing = elements_[index];
    missing.shape = shape;
    missing.written = true;
    size_ = std::max(size_, index + 1);
  }
  Element& e = elements_[index];
  if (e.cleared) {
    return InvalidArgument(Label(), "Could not read index ", index,
                           " twice because it was cleared after a previous read (perhaps try "
                           "setting clear_after_read = false?).");
  }
  if (!e.value.initialized()) {
    WEIR_ASSIGN_OR_RETURN(e.value, ZeroTensor(c, options_.dtype, e.shape));
  }
  e.read = true;
  if (!options_.clear_after_read) return e.value;
  e.cleared = true;
  return std::exchange(e.value, Tensor());
}

absl::StatusOr<std::shared_ptr<TensorArrayState>> TensorArrayState::Gradient(
    const std::string& source, const Shape& prepend) {
  const std::lock_guard<std::mutex> lock(mutex_);
  WEIR_RETURN_IF_ERROR(CheckOpen());
  options_.dynamic_size = false;
  if (has_sums_) {
    return InvalidArgument("Unable to create a gradients TensorArray for ", options_.name,
                           ".  Perhaps you used the multiple_writes_aggregate flag on a previous "
                           "write?  Gradient calculation is impossible when multiple writes are "
                           "performed to the same index.");
  }
  std::shared_ptr<TensorArrayState>& gradient = gradients_[source];
  if (gradient != nullptr) return gradient;
  Options options = options_;
  options.name = absl::StrCat(options_.name, "@", source);
  options.clear_after_read = true;
  options.is_gradient = true;
  options.element_shape =
      element_shape_.has_rank() ? prepend.Concatenate(element_shape_) : Shape::UnknownRank();
  gradient = std::make_shared<TensorArrayState>(std::move(options), size_);
  gradient->parts_ = parts_;
  for (const auto& [index, e] : elements_) {
    if (!e.written) continue;
    Element& zero = gradient->elements_[index];
    zero.shape = prepend.Concatenate(e.shape);
    zero.written = true;
  }
  return gradient;
}

}  // namespace weir
