#ifndef WEIR_OPS_CONTAINERS_TENSOR_ARRAY_H_
#define WEIR_OPS_CONTAINERS_TENSOR_ARRAY_H_

#include <memory>
#include <optional>
#include <string>

#include "weir/core/graph/scope.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/array.h"

namespace WEIR_API weir {

// Options of a TensorArray.
struct TensorArrayOptions {
  // A write beyond the end extends the array.
  bool dynamic_size = false;
  // A read returns the value once and frees its memory.
  bool clear_after_read = true;
  // All elements have the same shape, that of the first one written if `element_shape` is not
  // given.
  bool infer_shape = true;
  Shape element_shape = Shape::UnknownRank();
  std::string tensor_array_name = {};
  std::string name = {};
};

// An array of tensors that a step writes and reads (tf.TensorArray of TensorFlow 1), with which a
// loop collects or consumes one tensor per iteration. Each index is written once, and read once
// unless `clear_after_read` is false.
//
// A write returns the array after the write, and only operations on that array are ordered after
// the write. So a loop passes the array's `flow` on as a loop-carried variable:
//
//   TensorArray squares(g, DT_FLOAT, n);
//   Outputs r = WhileLoop([&](const Outputs& v) { return v[0] < n; },
//                         [&](const Outputs& v) {
//                           const Output x = Cast(v[0], DT_FLOAT);
//                           const TensorArray next = squares.WithFlow(v[1]).Write(v[0], x * x);
//                           return Outputs{v[0] + 1, next.flow()};
//                         }, {Const(g, 0), squares.flow()});
//   Output all = squares.WithFlow(r[1]).Stack();
//
// Differentiable. Errors are recorded in the graph and return an invalid array or Output.
class TensorArray : public NoTruthValue {
 public:
  TensorArray() = default;
  // Adds an array of `size` elements of this dtype, which have no value.
  TensorArray(Graph& graph, DataType dtype, const Ints& size,
              const TensorArrayOptions& options = {});
  // Wraps an array that already exists.
  TensorArray(DataType dtype, Output handle, Output flow);

  // False for a default-constructed or failed array.
  bool valid() const { return handle_.valid() && flow_.valid(); }
  // The resource handle; the float scalar that orders its operations; the type of the elements.
  const Output& handle() const { return handle_; }
  const Output& flow() const { return flow_; }
  DataType dtype() const { return dtype_; }
  // The element shape as far as the options and the written values determine it.
  const Shape& element_shape() const { return shared_->element_shape; }

  // Returns the same array, ordered after `flow`.
  TensorArray WithFlow(Output flow) const;

  // Writes an element, and returns the array after it; reads an element. INVALID_ARGUMENT at run
  // time for an index out of range, an element that was written before, or one that was not.
  TensorArray Write(const Ints& index, Output value, absl::string_view name = {}) const;
  Output Read(const Ints& index, absl::string_view name = {}) const;
  // Stack returns all elements, Gather those at the given indices, stacked along a new first
  // dimension.
  Output Stack(absl::string_view name = {}) const;
  Output Gather(const Ints& indices, absl::string_view name = {}) const;
  // Concatenates all elements along their first dimension.
  Output Concat(absl::string_view name = {}) const;
  // Unstack writes the rows of `value` to the indices from 0 on, Scatter to the given indices.
  TensorArray Unstack(Output value, absl::string_view name = {}) const;
  TensorArray Scatter(const Ints& indices, Output value, absl::string_view name = {}) const;
  // Writes lengths[i] rows of `value` to index i.
  TensorArray Split(Output value, const Ints& lengths, absl::string_view name = {}) const;
  Output Size(absl::string_view name = {}) const;
  // Frees the elements.
  Operation Close(absl::string_view name = {}) const;
  // Returns the array of the gradients with respect to the elements, one array per `source`. For
  // gradient functions.
  TensorArray Gradient(absl::string_view source, Output flow) const;

 private:
  // State that all copies of the array share.
  struct Shared {
    Shape element_shape = Shape::UnknownRank();
    bool infer_shape = true;
    bool colocate_with_first_write = true;
    Node* first_write = nullptr;
  };
  bool FitsElements(const Shape& shape) const;
  void PlaceWrite(const Output& value, std::optional<ColocateWith>* scope) const;
  // Returns "TensorArrayWriteV3" for "Write": there is one set of ops for each kind of handle.
  std::string Versioned(absl::string_view op) const;
  TensorArray AddWrite(absl::string_view op, const Ints& indices, const char* argument,
                       Output value, const Shape& element, absl::string_view name) const;
  Output Refined(Output value, const Shape& shape) const;

  DataType dtype_ = DT_INVALID;
  bool dynamic_size_ = false;
  Ints size_;
  bool has_size_ = false;
  Output handle_, flow_;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace weir

#endif  // WEIR_OPS_CONTAINERS_TENSOR_ARRAY_H_
