#ifndef WEIR_TESTS_ONNX_MODEL_BUILDER_H_
#define WEIR_TESTS_ONNX_MODEL_BUILDER_H_

#include <string>
#include <vector>

#include "weir/proto/onnx.pb.h"

namespace weir::onnx {

// Small ONNX models for tests, of floats: Model().In("x", {-1, 2}).Node("Relu", {"x"},
// "y").Out("y").
class Model {
 public:
  explicit Model(int64_t opset = 17) {
    def.set_ir_version(8);
    def.add_opset_import()->set_version(opset);
    def.mutable_graph()->set_name("test");
  }
  // -1 is an unknown dimension.
  Model& In(const std::string& name, const std::vector<int64_t>& dims, int type = 1) {
    SetInfo(name, dims, type, def.mutable_graph()->add_input());
    return *this;
  }
  Model& Out(const std::string& name, int type = 1) {
    auto* const info = def.mutable_graph()->add_output();
    info->set_name(name);
    info->mutable_type()->mutable_tensor_type()->set_elem_type(type);
    return *this;
  }
  Model& Weight(const std::string& name, const std::vector<int64_t>& dims,
                const std::vector<float>& values) {
    auto* const tensor = def.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(proto::onnx::TensorProto::FLOAT);
    for (const int64_t dim : dims) tensor->add_dims(dim);
    for (const float value : values) tensor->add_float_data(value);
    return *this;
  }
  // Adds a node named as its output.
  Model& Node(const std::string& op, const std::vector<std::string>& inputs,
              const std::string& output) {
    auto* const node = def.mutable_graph()->add_node();
    node->set_op_type(op);
    node->set_name(output);
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    return *this;
  }
  // Adds an attribute to the latest node.
  Model& Int(const std::string& name, int64_t value) {
    auto* const attribute = Attr(name);
    attribute->set_type(proto::onnx::AttributeProto::INT);
    attribute->set_i(value);
    return *this;
  }
  proto::onnx::AttributeProto* Attr(const std::string& name) {
    auto* const nodes = def.mutable_graph()->mutable_node();
    auto* const attribute = nodes->Mutable(nodes->size() - 1)->add_attribute();
    attribute->set_name(name);
    return attribute;
  }
  std::string Bytes() const { return def.SerializeAsString(); }

  proto::onnx::ModelProto def;

 private:
  static void SetInfo(const std::string& name, const std::vector<int64_t>& dims, int type,
                      proto::onnx::ValueInfoProto* info) {
    info->set_name(name);
    auto* const tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const int64_t dim : dims) {
      auto* const one = tensor->mutable_shape()->add_dim();
      if (dim >= 0) one->set_dim_value(dim);
      if (dim < 0) one->set_dim_param("n");
    }
  }
};

}  // namespace weir::onnx

#endif  // WEIR_TESTS_ONNX_MODEL_BUILDER_H_
