#ifndef WEIR_ONNX_NODE_CONTEXT_H_
#define WEIR_ONNX_NODE_CONTEXT_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/tensor.h"
#include "weir/onnx/value.h"

namespace weir::proto::onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
class TensorProto;
class TypeProto;
}  // namespace weir::proto::onnx

namespace weir::onnx {

class GraphImporter;

// Returns the value of a tensor that is known while the graph is built: of a constant, or of up to
// 64 small integers and booleans computed from constants, as shapes are. Otherwise nothing.
std::optional<Tensor> ConstantOf(const Output& tensor);

// What the importer of an operator is given: the node's inputs and attributes, and where its
// results go. An attribute of the wrong type is an error of the node, which the caller reports
// after the importer returns; so is an attribute that the importer did not read.
class NodeContext {
 public:
  // The arguments outlive the context.
  NodeContext(GraphImporter& importer, const proto::onnx::NodeProto& node, int version,
              Values inputs);

  GraphImporter& importer() const { return importer_; }
  Graph& graph() const;
  const std::string& op() const;  // "Conv"
  // The version of the operator set, which says what the operator means.
  int version() const { return version_; }

  // ---- inputs
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  bool has(int i) const;            // whether input i is given
  const Value& value(int i) const;  // i < num_inputs()
  // The tensor; invalid if the input is not given, or is not a tensor (then also an error).
  Output in(int i) const;
  Outputs tensors() const;  // all inputs
  DataType dtype(int i) const { return in(i).dtype(); }
  const Shape& shape(int i) const { return in(i).shape(); }
  // The static rank. UNIMPLEMENTED if it is unknown.
  absl::StatusOr<int> Rank(int i) const;
  // The value of an input, if it is a constant; the second as integers.
  std::optional<Tensor> Constant(int i) const { return ConstantOf(in(i)); }
  std::optional<std::vector<int64_t>> ConstantInts(int i) const;
  // An input of one element as a scalar, which is a constant if its value is known.
  Output Scalar(int i) const;

  // ---- attributes, with the values that ones not given have
  bool HasAttr(absl::string_view name) const;
  int64_t Int(absl::string_view name, int64_t fallback) const;
  float Float(absl::string_view name, float fallback) const;
  std::string String(absl::string_view name, absl::string_view fallback) const;
  std::vector<int64_t> Ints(absl::string_view name, std::vector<int64_t> fallback = {}) const;
  std::vector<float> Floats(absl::string_view name, std::vector<float> fallback = {}) const;
  std::vector<std::string> Strings(absl::string_view name) const;
  // The dtype whose ONNX number the attribute is; `fallback` if it is not given.
  absl::StatusOr<DataType> Type(absl::string_view name, DataType fallback) const;
  absl::StatusOr<Tensor> TensorAttr(absl::string_view name) const;
  // The message; null if the attribute is not given.
  const proto::onnx::GraphProto* GraphAttr(absl::string_view name) const;
  const proto::onnx::TypeProto* TypeAttr(absl::string_view name) const;
  const proto::onnx::AttributeProto* Attr(absl::string_view name) const;
  // For attributes that say what the inputs say anyway, and hints.
  void Ignore(absl::string_view name) const { Attr(name); }

  // ---- results
  int num_outputs() const;
  bool wants(int i) const;  // whether output i has a name, so something may use it
  absl::Status Return(const Output& result);
  absl::Status Return(const Outputs& results);
  absl::Status ReturnValues(Values results);
  Values& results() { return results_; }

  // The first error of the accessors, or an attribute that nobody read.
  absl::Status CheckAttributes() const;

 private:
  const proto::onnx::AttributeProto* Find(absl::string_view name, int type) const;
  void Fail(const absl::Status& status) const;

  GraphImporter& importer_;
  const proto::onnx::NodeProto& node_;
  const int version_;
  const Values inputs_;
  Values results_;
  mutable std::set<std::string, std::less<>> read_;
  mutable absl::Status status_;
};

}  // namespace weir::onnx

#endif  // WEIR_ONNX_NODE_CONTEXT_H_
