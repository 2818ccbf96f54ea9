#include "weir/onnx/onnx_import.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <limits>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "weir/onnx/graph_importer.h"
#include "weir/ops/lib/array.h"
#include "weir/proto/onnx.pb.h"

namespace weir::onnx {

namespace {

using proto::onnx::GraphProto;
using proto::onnx::ModelProto;
using proto::onnx::ValueInfoProto;

constexpr char kSignature[] = "serving_default";
constexpr int64_t kMinIrVersion = 3, kMaxIrVersion = 14;

// Returns false for bytes that are no message of this kind, or larger than any message may be.
bool Parse(absl::string_view bytes, ModelProto* model) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return false;
  return model->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

bool IsModel(const ModelProto& model) {
  return model.ir_version() > 0 && model.has_graph() && model.opset_import_size() > 0;
}

absl::Status CheckModel(const ModelProto& model) {
  if (!IsModel(model))
    return InvalidArgument("not an ONNX model: no IR version, graph or operator set");
  if (model.ir_version() < kMinIrVersion || model.ir_version() > kMaxIrVersion)
    return Unimplemented("IR version ", model.ir_version(), " of ONNX is not supported; versions ",
                         kMinIrVersion, " to ", kMaxIrVersion, " are");
  return absl::OkStatus();
}

absl::StatusOr<DeclaredType> TypeOf(const ValueInfoProto& info) {
  const auto type = [&]() -> absl::StatusOr<DeclaredType> {
    if (!info.type().has_tensor_type()) return Unimplemented("it is not a tensor");
    DeclaredType out;
    WEIR_ASSIGN_OR_RETURN(out.dtype, DataTypeOfOnnx(info.type().tensor_type().elem_type()));
    WEIR_ASSIGN_OR_RETURN(out.shape, ShapeOfType(info.type().tensor_type()));
    return out;
  };
  absl::StatusOr<DeclaredType> declared = type();
  if (declared.ok()) return declared;
  return Annotate(declared.status(),
                  absl::StrCat("input or output '", absl::CHexEscape(info.name()), "'"));
}

absl::Status AddInputs(const GraphProto& def, GraphImporter& importer, MetaGraph* meta) {
  std::set<absl::string_view> constants;
  for (const auto& initializer : def.initializer()) constants.insert(initializer.name());
  for (const auto& initializer : def.sparse_initializer())
    constants.insert(initializer.values().name());
  for (const ValueInfoProto& input : def.input()) {
    if (constants.contains(input.name())) continue;
    WEIR_ASSIGN_OR_RETURN(const DeclaredType type, TypeOf(input));
    const Output placeholder =
        Placeholder(importer.graph(), type.dtype, type.shape, NodeNameOf(input.name(), "input"));
    WEIR_RETURN_IF_ERROR(importer.graph().status());
    WEIR_RETURN_IF_ERROR(importer.Define(input.name(), Value(placeholder)));
    meta->signatures[kSignature].inputs[input.name()] = placeholder.name();
    meta->declared[placeholder.name()] = type;
  }
  return absl::OkStatus();
}

absl::Status AddOutputs(const GraphProto& def, GraphImporter& importer, MetaGraph* meta) {
  for (const ValueInfoProto& output : def.output()) {
    WEIR_ASSIGN_OR_RETURN(const Value value, importer.Find(output.name()));
    if (!value.is_tensor())
      return Unimplemented("output '", absl::CHexEscape(output.name()), "' is not a tensor");
    const Output result = Identity(value.tensor, NodeNameOf(output.name(), "output"));
    WEIR_RETURN_IF_ERROR(importer.graph().status());
    meta->signatures[kSignature].outputs[output.name()] = result.name();
    const absl::StatusOr<DeclaredType> declared = TypeOf(output);
    const bool fits = declared.ok() && declared->dtype == result.dtype() &&
                      declared->shape.IsCompatibleWith(result.shape());
    meta->declared[result.name()] =
        fits ? *declared : DeclaredType{.dtype = result.dtype(), .shape = result.shape()};
  }
  return absl::OkStatus();
}

absl::Status Import(const ModelProto& def, ModelImport& model, MetaGraph* meta) {
  WEIR_RETURN_IF_ERROR(CheckModel(def));
  WEIR_ASSIGN_OR_RETURN(const Opsets opsets, OpsetsOf(def.opset_import()));
  for (const auto& function : def.functions()) {
    const std::string domain = function.domain() == "ai.onnx" ? "" : function.domain();
    model.functions[{domain, function.name(), function.overload()}] = &function;
  }
  meta->signatures[kSignature].method_name = "tensorflow/serving/predict";
  GraphImporter importer(model, opsets, nullptr);
  WEIR_RETURN_IF_ERROR(AddInputs(def.graph(), importer, meta));
  WEIR_RETURN_IF_ERROR(importer.ImportInitializers(def.graph()));
  WEIR_RETURN_IF_ERROR(importer.ImportNodes(def.graph().node()));
  return AddOutputs(def.graph(), importer, meta);
}

}  // namespace

bool LooksLikeOnnx(absl::string_view bytes) {
  using google::protobuf::internal::WireFormatLite;
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return false;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  bool has_version = false, has_graph = false, has_opset = false;
  while (const uint32_t tag = in.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    const bool is_message =
        WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    const bool is_number = WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_VARINT;
    has_version |= field == ModelProto::kIrVersionFieldNumber && is_number;
    has_graph |= field == ModelProto::kGraphFieldNumber && is_message;
    has_opset |= field == ModelProto::kOpsetImportFieldNumber && is_message;
    if (!WireFormatLite::SkipField(&in, tag)) return false;
  }
  return in.ConsumedEntireMessage() && has_version && has_graph && has_opset;
}

absl::StatusOr<MetaGraph> ImportOnnx(Graph& graph, absl::string_view bytes,
                                     const ImportOptions& options) {
  WEIR_RETURN_IF_ERROR(graph.status());
  ModelProto def;
  if (!Parse(bytes, &def))
    return graph.Fail(InvalidArgument("not an ONNX model: the bytes do not parse"));
  ModelImport model{
      .graph = graph, .options = options, .tensors = TensorReader(options.data_folder)};
  MetaGraph meta;
  const absl::Status status = Import(def, model, &meta);
  if (status.ok()) return meta;
  graph.TakeStatus().IgnoreError();  // a builder's error, which the import's contains
  return graph.Fail(status);
}

absl::StatusOr<MetaGraph> ImportOnnxFile(Graph& graph, const std::string& path,
                                         ImportOptions options) {
  options.data_folder = DirectoryOf(path);
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  absl::StatusOr<MetaGraph> meta = ImportOnnx(graph, bytes, options);
  if (meta.ok()) return meta;
  return Annotate(meta.status(), path);
}

}  // namespace weir::onnx
