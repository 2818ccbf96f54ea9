#include "weir/ops/text/proto_fields.h"

#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/text/text_internal.h"

// Serialized protobuf messages of any type.
namespace weir {

namespace {

absl::Status DecodeProtoShape(ShapeContext& c) {
  const auto types = c.attr<DataTypes>("output_types");
  if (!c.input(0).has_rank()) return absl::OkStatus();
  const auto fields = static_cast<int64_t>(types.size());
  c.set_output(0, c.input(0).Concatenate(Shape({fields})));
  for (int i = 0; i < static_cast<int>(types.size()); ++i)
    c.set_output(i + 1, c.input(0).Concatenate(Shape({Shape::kUnknown})));
  return absl::OkStatus();
}

absl::Status EncodeProtoShape(ShapeContext& c) {
  Shape out = Shape::UnknownRank();
  for (int i = c.num_inputs() - 1; i > 0; --i) {
    WEIR_ASSIGN_OR_RETURN(const Shape values, c.WithRankAtLeast(i, 2));
    if (!values.has_rank()) continue;
    const Shape messages(values.dims().subspan(0, values.rank() - 1));
    WEIR_ASSIGN_OR_RETURN(out, out.MergeWith(messages));
  }
  c.set_output(0, out);
  return absl::OkStatus();
}

}  // namespace

void AddProtoFieldOps(OpRegistry* ops) {
  ops->Add(OpSpec("DecodeProtoV2")
               .In("bytes: string")
               .Out("sizes: int32, values: output_types")
               .Attr("message_type: string")
               .Attr("field_names: list(string)")
               .Attr("output_types: list(type) >= 0")
               .Attr("descriptor_source: string = 'local://'")
               .Attr("message_format: string = 'binary'")
               .Attr("sanitize: bool = false")
               .InferShape(DecodeProtoShape)
               .NotDifferentiable()
               .Doc("Returns the values of fields of serialized protobuf messages."));
  ops->Add(OpSpec("EncodeProto")
               .In("sizes: int32, values: Tinput_types")
               .Out("bytes: string")
               .Attr("field_names: list(string)")
               .Attr("message_type: string")
               .Attr("descriptor_source: string = 'local://'")
               .Attr("Tinput_types: list(type) >= 1")
               .InferShape(EncodeProtoShape)
               .NotDifferentiable()
               .Doc("Serializes protobuf messages from the values of their fields."));
}

// ---- builders

namespace {

std::string Source(const std::string& given) { return given.empty() ? "local://" : given; }

}  // namespace

DecodedProto DecodeProto(Output bytes, absl::string_view message_type,
                         const std::vector<std::string>& field_names, const DataTypes& output_types,
                         const DecodeProtoOptions& o, absl::string_view name) {
  Node* const node = AddNode("DecodeProtoV2", {bytes},
                             {{"message_type", message_type},
                              {"field_names", field_names},
                              {"output_types", output_types},
                              {"descriptor_source", Source(o.descriptor_source)},
                              {"message_format", o.message_format},
                              {"sanitize", o.sanitize}},
                             name.empty() ? "DecodeProtoV2" : name);
  Outputs all = AllOutputs(node, output_types.size() + 1);
  DecodedProto decoded = {all[0], {}};
  decoded.values.assign(all.begin() + 1, all.end());
  return decoded;
}

Output EncodeProto(Output sizes, const Outputs& values, const std::vector<std::string>& field_names,
                   absl::string_view message_type, const std::string& descriptor_source,
                   absl::string_view name) {
  return AddOp("EncodeProto", {sizes, values},
               {{"field_names", field_names},
                {"message_type", message_type},
                {"descriptor_source", Source(descriptor_source)}},
               name);
}

}  // namespace weir
