#include "weir/core/io/graph_io.h"

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "weir/core/graph/unknown_op.h"
#include "weir/core/io/coding.h"
#include "weir/core/io/file.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/proto_values.h"
#include "weir/core/io/text_proto.h"
#include "weir/proto/graph.pb.h"

namespace weir {

namespace {

// Compares parsed values: one value has several encodings.
bool EncodesSameValue(const proto::AttrValue& proto, const AttrValue& value) {
  const absl::StatusOr<AttrValue> parsed = AttrFromProto(proto);
  return parsed.ok() && AttrToBytes(*parsed) == AttrToBytes(value);
}

}  // namespace

void NodeToProto(const Node& node, proto::NodeDef* def) {
  const bool is_unknown = IsUnknownOp(node);
  if (is_unknown) def->ParsePartialFromString(UnknownOpOf(node).node_def());
  def->set_name(node.name());
  def->set_op(node.op_name());
  def->set_device(node.device());
  for (const Output& in : node.inputs()) {
    def->add_input(in.index == 0 ? in.node->name() : in.name());
  }
  std::vector<std::string> controls;
  for (const Node* control : node.control_inputs()) controls.push_back("^" + control->name());
  std::sort(controls.begin(), controls.end());
  for (std::string& control : controls) def->add_input(std::move(control));
  for (const auto& [name, value] : node.attrs()) {
    proto::AttrValue& attr = (*def->mutable_attr())[name];
    if (!is_unknown || !EncodesSameValue(attr, value)) AttrToProto(value, &attr);
  }
}

namespace {

void ExportAllButNodes(const Graph& graph, proto::GraphDef* def) {
  const GraphVersions& versions = graph.versions();
  def->mutable_versions()->set_producer(versions.producer);
  def->mutable_versions()->set_min_consumer(versions.min_consumer);
  for (const int bad : versions.bad_consumers) def->mutable_versions()->add_bad_consumers(bad);
  if (graph.functions() != nullptr) graph.functions()->ToProto(def->mutable_library());
}

}  // namespace

void ExportGraphDef(const Graph& graph, proto::GraphDef* def) {
  def->Clear();
  for (const auto& node : graph.nodes()) NodeToProto(*node, def->add_node());
  ExportAllButNodes(graph, def);
}

std::string DeterministicBytes(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// The output is deterministic: equal graphs serialize to equal bytes.
std::string SerializeGraph(const Graph& graph) {
  proto::GraphDef def;
  ExportGraphDef(graph, &def);
  return DeterministicBytes(def);
}

std::string GraphToText(const Graph& graph) {
  proto::GraphDef def;
  ExportGraphDef(graph, &def);
  return PrintTextProto(def);
}

// A message is the concatenation of its fields: writes each node as it is converted, and then the
// rest.
absl::Status WriteGraphFile(const Graph& graph, const std::string& path) {
  if (absl::EndsWith(path, ".pbtxt")) return WriteFileAtomically(path, GraphToText(graph));
  return WriteFileAtomically(path, [&](BufferedFile* file) -> absl::Status {
    constexpr char kTag = proto::GraphDef::kNodeFieldNumber << 3 | 2;  // a length and the bytes
    for (const auto& node : graph.nodes()) {
      proto::NodeDef def;
      NodeToProto(*node, &def);
      if (def.ByteSizeLong() > std::numeric_limits<int>::max())
        return InvalidArgument(node->Label(), " is too large to be serialized (2 GiB)");
      const std::string bytes = DeterministicBytes(def);
      std::string head(1, kTag);
      PutVarint64(&head, bytes.size());
      WEIR_RETURN_IF_ERROR(file->Append(head));
      WEIR_RETURN_IF_ERROR(file->Append(bytes));
    }
    proto::GraphDef rest;
    ExportAllButNodes(graph, &rest);
    return file->Append(DeterministicBytes(rest));
  });
}

absl::Status ParseBytes(absl::string_view bytes, google::protobuf::MessageLite* message) {
  const bool fits = bytes.size() <= static_cast<size_t>(std::numeric_limits<int>::max());
  if (fits && message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  return InvalidArgument("Cannot parse ", bytes.size(), " bytes as ", message->GetTypeName());
}

absl::StatusOr<Tensor> TensorFromBytes(absl::string_view bytes) {
  proto::TensorProto proto;
  WEIR_RETURN_IF_ERROR(ParseBytes(bytes, &proto));
  return TensorFromProto(std::move(proto));
}

std::string TensorToBytes(const Tensor& tensor) {
  proto::TensorProto proto;
  TensorToProto(tensor, &proto);
  return DeterministicBytes(proto);
}

absl::StatusOr<Shape> ShapeFromBytes(absl::string_view bytes) {
  proto::TensorShapeProto proto;
  WEIR_RETURN_IF_ERROR(ParseBytes(bytes, &proto));
  return ShapeFromProto(proto);
}

std::string ShapeToBytes(const Shape& shape) {
  proto::TensorShapeProto proto;
  ShapeToProto(shape, &proto);
  return DeterministicBytes(proto);
}

absl::StatusOr<AttrValue> AttrFromBytes(absl::string_view bytes) {
  proto::AttrValue proto;
  WEIR_RETURN_IF_ERROR(ParseBytes(bytes, &proto));
  return AttrFromProto(proto);
}

std::string AttrToBytes(const AttrValue& value) {
  proto::AttrValue proto;
  AttrToProto(value, &proto);
  return DeterministicBytes(proto);
}

std::string OpToBytes(const OpSpec& op) {
  proto::OpDef def;
  OpToProto(op, &def);
  return DeterministicBytes(def);
}

}  // namespace weir
