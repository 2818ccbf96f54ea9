#ifndef WEIR_OPS_TENSOR_ARRAY_H_
#define WEIR_OPS_TENSOR_ARRAY_H_

#include <memory>
#include <optional>
#include <string>

#include "weir/core/scope.h"
#include "weir/ops/array.h"

namespace weir {

struct TensorArrayOptions {
  // A write beyond the end makes the array longer.
  bool dynamic_size = false;
  // A value is given out once, and its memory is free after that.
  bool clear_after_read = true;
  // All elements have one shape, that of the first one written if `element_shape` does not say it.
  bool infer_shape = true;
  Shape element_shape = Shape::UnknownRank();
  std::string tensor_array_name = {};
  std::string name = {};
};

// An array of tensors that a step fills and reads (tf.TensorArray of TensorFlow 1): what a loop
// collects, or is fed with, an iteration at a time. Every index is written once, and read once
// unless `clear_after_read` is false.
//
// A write returns the array after it, and only what is made with that one comes after the write. So
// a loop passes the array's `flow` on as one of its variables:
//
//   TensorArray squares(g, DT_FLOAT, n);
//   Outputs r = WhileLoop([&](const Outputs& v) { return v[0] < n; },
//                         [&](const Outputs& v) {
//                           const Output x = Cast(v[0], DT_FLOAT);
//                           return Outputs{v[0] + 1, squares.WithFlow(v[1]).Write(v[0], x *
//                           x).flow()};
//                         }, {Const(g, 0), squares.flow()});
//   Output all = squares.WithFlow(r[1]).Stack();
//
// Gradients flow through it. Errors stick to the graph, and give an invalid array or Output.
class TensorArray : public NoTruthValue {
 public:
  TensorArray() = default;
  TensorArray(Graph& graph, DataType dtype, const Ints& size,
              const TensorArrayOptions& options = {});
  // One that exists already.
  TensorArray(DataType dtype, Output handle, Output flow);

  bool valid() const { return handle_.valid() && flow_.valid(); }
  const Output& handle() const { return handle_; }
  const Output& flow() const { return flow_; }
  DataType dtype() const { return dtype_; }
  // As far as known from the options and from what was written.
  const Shape& element_shape() const { return shared_->element_shape; }

  // The same array, after what `flow` comes after.
  TensorArray WithFlow(Output flow) const;

  TensorArray Write(const Ints& index, Output value, absl::string_view name = {}) const;
  Output Read(const Ints& index, absl::string_view name = {}) const;
  // All elements, or those at these indices, along a new first dimension.
  Output Stack(absl::string_view name = {}) const;
  Output Gather(const Ints& indices, absl::string_view name = {}) const;
  // All elements joined along their first dimension.
  Output Concat(absl::string_view name = {}) const;
  // Writes the rows of `value` to the indices from 0 on, or to these.
  TensorArray Unstack(Output value, absl::string_view name = {}) const;
  TensorArray Scatter(const Ints& indices, Output value, absl::string_view name = {}) const;
  // Writes so many rows of `value` to each index.
  TensorArray Split(Output value, const Ints& lengths, absl::string_view name = {}) const;
  Output Size(absl::string_view name = {}) const;
  // Frees the elements.
  Operation Close(absl::string_view name = {}) const;
  // The array of the gradients with respect to the elements, one for each `source`. For gradient
  // rules.
  TensorArray Gradient(absl::string_view source, Output flow) const;

 private:
  // What all copies learn from one of them.
  struct Shared {
    Shape element_shape = Shape::UnknownRank();
    bool infer_shape = true;
    bool colocate_with_first_write = true;
    Node* first_write = nullptr;
  };
  bool FitsElements(const Shape& shape) const;
  void Beside(const Output& value, std::optional<ColocateWith>* scope) const;
  // "TensorArrayWriteV3" for "Write": there is a set of ops for each kind of handle.
  std::string Versioned(absl::string_view op) const;
  TensorArray Written(absl::string_view op, const Ints& where, const char* argument, Output value,
                      const Shape& element, absl::string_view name) const;
  Output Refined(Output value, const Shape& shape) const;

  DataType dtype_ = DT_INVALID;
  bool dynamic_size_ = false;
  Ints size_;
  bool has_size_ = false;
  Output handle_, flow_;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace weir

#endif  // WEIR_OPS_TENSOR_ARRAY_H_
