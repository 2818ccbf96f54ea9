#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/string_util.h"
#include "weir/kernels/text/proto_schema.h"

// Serialized messages of any type from tensors with the values of their fields (EncodeProto).
namespace weir {

namespace {

namespace pb = google::protobuf;
using pb::internal::WireFormatLite;
using pb::io::CodedOutputStream;

// Writes element i of a tensor of numbers without a tag.
void WriteNumber(WireFormatLite::FieldType type, const Tensor& values, int64_t i,
                 CodedOutputStream* out) {
  const auto real = [&]() -> double {
    return values.dtype() == DT_FLOAT ? values.data<float>()[i] : values.data<double>()[i];
  };
  const auto wide = [&] { return values.IntAt(i); };
  const auto narrow = [&] { return static_cast<int32_t>(values.IntAt(i)); };
  switch (type) {
    case WireFormatLite::TYPE_DOUBLE:
      return WireFormatLite::WriteDoubleNoTag(real(), out);
    case WireFormatLite::TYPE_FLOAT:
      return WireFormatLite::WriteFloatNoTag(static_cast<float>(real()), out);
    case WireFormatLite::TYPE_INT64:
      return WireFormatLite::WriteInt64NoTag(wide(), out);
    case WireFormatLite::TYPE_UINT64:
      return WireFormatLite::WriteUInt64NoTag(static_cast<uint64_t>(wide()), out);
    case WireFormatLite::TYPE_INT32:
      return WireFormatLite::WriteInt32NoTag(narrow(), out);
    case WireFormatLite::TYPE_FIXED64:
      return WireFormatLite::WriteFixed64NoTag(static_cast<uint64_t>(wide()), out);
    case WireFormatLite::TYPE_FIXED32:
      return WireFormatLite::WriteFixed32NoTag(static_cast<uint32_t>(narrow()), out);
    case WireFormatLite::TYPE_UINT32:
      return WireFormatLite::WriteUInt32NoTag(static_cast<uint32_t>(narrow()), out);
    case WireFormatLite::TYPE_SFIXED32:
      return WireFormatLite::WriteSFixed32NoTag(narrow(), out);
    case WireFormatLite::TYPE_SFIXED64:
      return WireFormatLite::WriteSFixed64NoTag(wide(), out);
    case WireFormatLite::TYPE_SINT32:
      return WireFormatLite::WriteSInt32NoTag(narrow(), out);
    case WireFormatLite::TYPE_SINT64:
      return WireFormatLite::WriteSInt64NoTag(wide(), out);
    case WireFormatLite::TYPE_ENUM:
      return WireFormatLite::WriteEnumNoTag(narrow(), out);
    default:
      return WireFormatLite::WriteBoolNoTag(values.data<bool>()[i], out);
  }
}

// protobuf aborts for longer ones.
absl::Status CheckLength(const pb::FieldDescriptor& field, size_t bytes) {
  constexpr size_t kMostBytes = std::numeric_limits<int32_t>::max();
  if (bytes <= kMostBytes) return absl::OkStatus();
  return InvalidArgument("a value of field ", field.name(), " has ", bytes, " bytes, more than ",
                         kMostBytes);
}

// Writes elements [begin, end) of a tensor as values of a field.
absl::Status WriteField(const pb::FieldDescriptor& field, const Tensor& values, int64_t begin,
                        int64_t end, CodedOutputStream* out) {
  const auto type = static_cast<WireFormatLite::FieldType>(field.type());
  if (field.is_packed()) {
    std::string packed;
    {
      pb::io::StringOutputStream stream(&packed);
      CodedOutputStream numbers(&stream);
      for (int64_t i = begin; i < end; ++i) WriteNumber(type, values, i, &numbers);
    }
    WEIR_RETURN_IF_ERROR(CheckLength(field, packed.size()));
    WireFormatLite::WriteBytes(field.number(), packed, out);
    return absl::OkStatus();
  }
  for (int64_t i = begin; i < end; ++i) {
    if (values.dtype() == DT_STRING)
      WEIR_RETURN_IF_ERROR(CheckLength(field, values.data<std::string>()[i].size()));
    if (type == WireFormatLite::TYPE_GROUP) {
      WireFormatLite::WriteTag(field.number(), WireFormatLite::WIRETYPE_START_GROUP, out);
      out->WriteString(values.data<std::string>()[i]);
      WireFormatLite::WriteTag(field.number(), WireFormatLite::WIRETYPE_END_GROUP, out);
    } else if (values.dtype() == DT_STRING) {
      WireFormatLite::WriteBytes(field.number(), values.data<std::string>()[i], out);
    } else {
      WireFormatLite::WriteTag(field.number(), WireFormatLite::WireTypeForFieldType(type), out);
      WriteNumber(type, values, i, out);
    }
  }
  return absl::OkStatus();
}

class ProtoEncoder {
 public:
  static absl::StatusOr<Kernel> Make(const KernelInit& init) {
    auto e = std::make_shared<ProtoEncoder>();
    e->names_ = init.attr<std::vector<std::string>>("field_names");
    WEIR_ASSIGN_OR_RETURN(e->type_, FindMessageType(init.attr<std::string>("descriptor_source"),
                                                    init.attr<std::string>("message_type")));
    WEIR_ASSIGN_OR_RETURN(e->fields_, FindProtoFields(e->type_, e->names_, /*extensions=*/false));
    return Kernel([e](KernelContext& c) { return e->Run(c); });
  }

 private:
  absl::Status Run(KernelContext& c) const {
    WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckValues(c));
    WEIR_RETURN_IF_ERROR(CheckSizes(c, shape));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    const auto width = static_cast<int64_t>(fields_.size());
    for (int64_t m = 0; m < out->num_elements(); ++m) {
      ThrowIfCancelledAt(m);
      std::string& message = out->data<std::string>()[m];
      pb::io::StringOutputStream stream(&message);
      CodedOutputStream writer(&stream);
      for (const ProtoField& field : fields_) {
        const auto index = static_cast<int64_t>(field.index);
        const int64_t count = c.input(0).data<int32_t>()[m * width + index];
        const Tensor& values = c.input(static_cast<int>(index) + 1);
        const int64_t begin = m * values.dim(values.rank() - 1);
        if (count == 0) continue;
        WEIR_RETURN_IF_ERROR(WriteField(*field.descriptor, values, begin, begin + count, &writer));
      }
    }
    return absl::OkStatus();
  }

  // Returns the common shape of the values but for the last dimension.
  absl::StatusOr<Shape> CheckValues(const KernelContext& c) const {
    if (c.num_inputs() != static_cast<int>(fields_.size()) + 1) {
      return InvalidArgument("Length of inputs list must match field_names, got ",
                             c.num_inputs() - 1, " and ", fields_.size());
    }
    Shape common;
    for (size_t i = 0; i < names_.size(); ++i) {
      const Tensor& values = c.input(static_cast<int>(i) + 1);
      const pb::FieldDescriptor& field = *type_.descriptor->FindFieldByName(names_[i]);
      if (!FieldFitsType(field, values.dtype())) {
        return InvalidArgument("Incompatible type for field ", names_[i],
                               ".  Saw dtype: ", DataTypeName(values.dtype()),
                               " but field type is: ", field.type_name());
      }
      if (values.rank() < 2) {
        return InvalidArgument("Invalid shape for field ", names_[i], ".  Saw shape ",
                               values.shape().ToString(), " but it should be at least a matrix.");
      }
      const Shape prefix = Shape(values.shape().dims().subspan(0, values.rank() - 1));
      if (i == 0) common = prefix;
      if (prefix != common) {
        return InvalidArgument("Values must match up to the last dimension, but ", names_[i],
                               " has shape ", values.shape().ToString(), " beside ",
                               c.input(1).shape().ToString());
      }
    }
    return common;
  }

  absl::Status CheckSizes(const KernelContext& c, const Shape& shape) const {
    const Tensor& sizes = c.input(0);
    const auto width = static_cast<int64_t>(names_.size());
    const Shape expected = shape.Concatenate(Shape({width}));
    if (sizes.shape() != expected) {
      return InvalidArgument("sizes should be batch_size + [len(field_names)].  Saw: ",
                             sizes.shape().ToString(), " but expected: ", expected.ToString());
    }
    for (int64_t i = 0; i < sizes.num_elements(); ++i) {
      const int64_t size = sizes.data<int32_t>()[i];
      const Tensor& values = c.input(static_cast<int>(i % width) + 1);
      const int64_t most = values.dim(values.rank() - 1);
      if (size >= 0 && size <= most) continue;
      return InvalidArgument(
          "Size to write must not be larger than value tensor, nor negative; "
          "but saw: ",
          size, " > ", most, " at message ", i / width, " field ", i % width);
    }
    return absl::OkStatus();
  }

  MessageType type_;
  std::vector<std::string> names_;
  std::vector<ProtoField> fields_;  // by number
};

}  // namespace

void AddEncodeProtoKernels(KernelRegistry* r) { r->Add("EncodeProto", kCpu, ProtoEncoder::Make); }

}  // namespace weir
