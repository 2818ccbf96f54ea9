#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/string_util.h"
#include "weir/kernels/text/proto_sanitizer.h"
#include "weir/kernels/text/proto_schema.h"

// Fields of serialized messages of any type as tensors (DecodeProtoV2). The fields are read from
// the wire format directly: no message is made, except from text, or if the op is to parse the
// bytes first ("sanitize").
namespace weir {

namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;
using pb::internal::WireFormatLite;
using pb::io::CodedInputStream;
using pb::io::CodedOutputStream;

struct Field : ProtoField {
  int number() const { return descriptor->number(); }
  WireFormatLite::FieldType type() const {
    return static_cast<WireFormatLite::FieldType>(descriptor->type());
  }
  WireFormatLite::WireType wire_type() const {
    return WireFormatLite::WireTypeForFieldType(type());
  }
};

// ---- values: a number is an int64 or a uint64 or the bits of a double, by the field's type

uint64_t FromVarint(WireFormatLite::FieldType type, uint64_t raw) {
  const auto low = static_cast<uint32_t>(raw);
  const auto extended = [](int32_t x) { return static_cast<uint64_t>(int64_t{x}); };
  switch (type) {
    case WireFormatLite::TYPE_INT32:
    case WireFormatLite::TYPE_ENUM:
      return extended(static_cast<int32_t>(low));
    case WireFormatLite::TYPE_SINT32:
      return extended(WireFormatLite::ZigZagDecode32(low));
    case WireFormatLite::TYPE_SINT64:
      return static_cast<uint64_t>(WireFormatLite::ZigZagDecode64(raw));
    case WireFormatLite::TYPE_UINT32:
      return low;
    case WireFormatLite::TYPE_BOOL:
      return raw != 0;
    default:
      return raw;
  }
}

uint64_t FromFixed32(WireFormatLite::FieldType type, uint32_t raw) {
  if (type == WireFormatLite::TYPE_FLOAT)
    return std::bit_cast<uint64_t>(double{std::bit_cast<float>(raw)});
  if (type != WireFormatLite::TYPE_SFIXED32) return raw;
  return static_cast<uint64_t>(int64_t{static_cast<int32_t>(raw)});
}

void SetNumber(Tensor* to, int64_t i, uint64_t value) {
  switch (to->dtype()) {
    case DT_FLOAT:
      to->data<float>()[i] = static_cast<float>(std::bit_cast<double>(value));
      return;
    case DT_DOUBLE:
      to->data<double>()[i] = std::bit_cast<double>(value);
      return;
    case DT_BOOL:
      to->data<bool>()[i] = value != 0;
      return;
    default:
      to->SetIntAt(i, static_cast<int64_t>(value));
  }
}

uint64_t DefaultNumber(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return std::bit_cast<uint64_t>(field.default_value_double());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return std::bit_cast<uint64_t>(double{field.default_value_float()});
    case FieldDescriptor::CPPTYPE_INT32:
      return static_cast<uint64_t>(int64_t{field.default_value_int32()});
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<uint64_t>(field.default_value_int64());
    case FieldDescriptor::CPPTYPE_UINT32:
      return field.default_value_uint32();
    case FieldDescriptor::CPPTYPE_UINT64:
      return field.default_value_uint64();
    case FieldDescriptor::CPPTYPE_BOOL:
      return field.default_value_bool();
    case FieldDescriptor::CPPTYPE_ENUM:
      return static_cast<uint64_t>(int64_t{field.default_value_enum()->number()});
    default:
      return 0;
  }
}

std::string DefaultText(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_STRING ? field.default_value_string() : "";
}

// ---- the wire format

// The values of one field, those of one message after the other.
struct Column {
  std::vector<uint64_t> numbers;
  std::vector<std::string> texts;
  std::vector<int32_t> counts;  // of each message

  int32_t count() const { return counts.back(); }
  // As on the wire, the last value of a field that is not repeated is the one that counts.
  void Add(const Field& field, uint64_t number) {
    if (StartValue(field)) numbers.emplace_back();
    numbers.back() = number;
  }
  void Add(const Field& field, std::string text) {
    if (StartValue(field)) texts.emplace_back();
    texts.back() = std::move(text);
  }

 private:
  // Whether the value is a further one.
  bool StartValue(const Field& field) {
    if (count() > 0 && !field.descriptor->is_repeated()) return false;
    ++counts.back();
    return true;
  }
};

absl::Status Corrupt(const Field& field, absl::string_view what) {
  return DataLoss("Failed reading field ", field.descriptor->full_name(), ": ", what);
}

absl::Status ReadNumber(const Field& field, CodedInputStream* in, Column* column) {
  uint64_t wide = 0;
  uint32_t narrow = 0;
  switch (field.wire_type()) {
    case WireFormatLite::WIRETYPE_VARINT:
      if (!in->ReadVarint64(&wide)) return Corrupt(field, "Corrupt varint");
      column->Add(field, FromVarint(field.type(), wide));
      return absl::OkStatus();
    case WireFormatLite::WIRETYPE_FIXED32:
      if (!in->ReadLittleEndian32(&narrow)) return Corrupt(field, "the message ends");
      column->Add(field, FromFixed32(field.type(), narrow));
      return absl::OkStatus();
    case WireFormatLite::WIRETYPE_START_GROUP:
      return Corrupt(field, "TYPE_GROUP encountered as packed");
    default:
      if (!in->ReadLittleEndian64(&wide)) return Corrupt(field, "the message ends");
      column->Add(field, wide);
      return absl::OkStatus();
  }
}

absl::Status ReadPacked(const Field& field, CodedInputStream* in, Column* column) {
  int length = 0;
  if (!in->ReadVarintSizeAsInt(&length)) return Corrupt(field, "Failed reading packed size");
  const CodedInputStream::Limit limit = in->PushLimit(length);
  if (in->BytesUntilLimit() != length) return Corrupt(field, "Skipping packed field failed");
  while (in->BytesUntilLimit() > 0) WEIR_RETURN_IF_ERROR(ReadNumber(field, in, column));
  in->PopLimit(limit);
  return absl::OkStatus();
}

absl::Status ReadText(const Field& field, CodedInputStream* in, Column* column) {
  std::string text;
  uint32_t length = 0;
  if (!in->ReadVarint32(&length) || !in->ReadString(&text, static_cast<int>(length)))
    return Corrupt(field, "Failed reading bytes");
  column->Add(field, std::move(text));
  return absl::OkStatus();
}

// A group is returned with its tags.
absl::Status ReadGroup(const Field& field, uint32_t tag, CodedInputStream* in, Column* column) {
  std::string text;
  bool read = false;
  {
    pb::io::StringOutputStream stream(&text);
    CodedOutputStream out(&stream);
    read = WireFormatLite::SkipField(in, tag, &out);
  }
  if (!read) return Corrupt(field, "Failed reading group");
  column->Add(field, std::move(text));
  return absl::OkStatus();
}

absl::Status ReadField(const Field& field, uint32_t tag, CodedInputStream* in, Column* column) {
  const WireFormatLite::WireType wire = WireFormatLite::GetTagWireType(tag);
  if (wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED && wire != field.wire_type())
    return ReadPacked(field, in, column);
  if (wire != field.wire_type()) {  // no value of this field
    return WireFormatLite::SkipField(in, tag) ? absl::OkStatus()
                                              : Corrupt(field, "Failed skipping malformed field");
  }
  if (wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) return ReadText(field, in, column);
  if (wire == WireFormatLite::WIRETYPE_START_GROUP) return ReadGroup(field, tag, in, column);
  return ReadNumber(field, in, column);
}

// ---- DecodeProtoV2

class ProtoDecoder {
 public:
  static absl::StatusOr<Kernel> Make(const KernelInit& init) {
    auto d = std::make_shared<ProtoDecoder>();
    const auto names = init.attr<std::vector<std::string>>("field_names");
    d->types_ = init.attr<DataTypes>("output_types");
    const auto format = init.attr<std::string>("message_format");
    WEIR_ASSIGN_OR_RETURN(d->type_, FindMessageType(init.attr<std::string>("descriptor_source"),
                                                    init.attr<std::string>("message_type")));
    if (names.size() != d->types_.size())
      return InvalidArgument(
          "field_names and output_types attributes must have the same length, got ", names.size(),
          " and ", d->types_.size());
    WEIR_ASSIGN_OR_RETURN(const auto fields, FindProtoFields(d->type_, names, /*extensions=*/true));
    for (const ProtoField& field : fields) {
      d->fields_.push_back({field});
      if (FieldFitsType(*field.descriptor, d->types_[field.index])) continue;
      return InvalidArgument("Unexpected output type for ", field.descriptor->full_name(), ": ",
                             field.descriptor->cpp_type_name(), " to ",
                             DataTypeName(d->types_[field.index]));
    }
    if (format != "binary" && format != "text")
      return InvalidArgument("format must be one of binary or text, not '", format, "'");
    const bool text = format == "text";
    if (text || init.attr<bool>("sanitize"))
      d->sanitizer_ = std::make_unique<ProtoSanitizer>(d->type_.descriptor, text);
    return Kernel([d](KernelContext& c) { return d->Run(c); });
  }

 private:
  absl::Status Run(KernelContext& c) const {
    const Tensor& messages = c.input(0);
    const int64_t n = messages.num_elements();
    if (n < 1) return InvalidArgument("Bufs argument must contain at least one value");
    std::vector<Column> columns(fields_.size());
    for (int64_t i = 0; i < n; ++i) {
      ThrowIfCancelledAt(i);
      const std::string& message = messages.data<std::string>()[i];
      if (sanitizer_ == nullptr) {
        WEIR_RETURN_IF_ERROR(Read(message, &columns));
      } else {
        WEIR_ASSIGN_OR_RETURN(const std::string bytes, sanitizer_->Reserialized(message));
        WEIR_RETURN_IF_ERROR(Read(bytes, &columns));
      }
    }
    return SetOutputs(c, messages.shape(), columns);
  }

  absl::Status Read(const std::string& message, std::vector<Column>* columns) const {
    if (message.size() > std::numeric_limits<int32_t>::max())
      return DataLoss("a message of ", message.size(), " bytes");
    for (Column& column : *columns) column.counts.push_back(0);
    CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()),
                        static_cast<int>(message.size()));
    for (;;) {
      const uint32_t tag = in.ReadTag();
      if (tag == 0 || WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_END_GROUP)
        break;
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      const auto it =
          std::lower_bound(fields_.begin(), fields_.end(), number,
                           [](const Field& field, int wanted) { return field.number() < wanted; });
      if (it != fields_.end() && it->number() == number) {
        WEIR_RETURN_IF_ERROR(ReadField(*it, tag, &in, &(*columns)[it - fields_.begin()]));
      } else if (!WireFormatLite::SkipField(&in, tag)) {
        return DataLoss("Failed skipping unrequested field ", number, " of ",
                        type_.descriptor->full_name());
      }
    }
    if (in.ConsumedEntireMessage()) return absl::OkStatus();
    return DataLoss("Failed to consume entire buffer of a ", type_.descriptor->full_name());
  }

  absl::Status SetOutputs(KernelContext& c, const Shape& shape,
                          const std::vector<Column>& columns) const {
    const auto width = static_cast<int64_t>(columns.size());
    WEIR_ASSIGN_OR_RETURN(Tensor * sizes, c.AllocateOutput(0, shape.Concatenate(Shape({width}))));
    for (int64_t f = 0; f < width; ++f) {
      const std::vector<int32_t>& counts = columns[f].counts;
      const auto at = static_cast<int64_t>(fields_[f].index);
      for (size_t i = 0; i < counts.size(); ++i)
        sizes->data<int32_t>()[static_cast<int64_t>(i) * width + at] = counts[i];
      WEIR_RETURN_IF_ERROR(SetValues(c, shape, fields_[f], columns[f]));
    }
    return absl::OkStatus();
  }

  // The values of each message, and the field's default behind those of the others.
  static absl::Status SetValues(KernelContext& c, const Shape& shape, const Field& field,
                                const Column& column) {
    const int64_t width =
        std::max(1, *std::max_element(column.counts.begin(), column.counts.end()));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(static_cast<int>(field.index) + 1,
                                                         shape.Concatenate(Shape({width}))));
    const uint64_t number = DefaultNumber(*field.descriptor);
    const std::string text = DefaultText(*field.descriptor);
    size_t next = 0;
    int64_t at = 0;
    for (const int32_t count : column.counts) {
      for (int64_t k = 0; k < width; ++k, ++at) {
        const bool given = k < count;
        if (out->dtype() == DT_STRING) {
          out->data<std::string>()[at] = given ? column.texts[next++] : text;
        } else {
          SetNumber(out, at, given ? column.numbers[next++] : number);
        }
      }
    }
    return absl::OkStatus();
  }

  MessageType type_;
  std::vector<Field> fields_;  // by number
  DataTypes types_;
  std::unique_ptr<const ProtoSanitizer> sanitizer_;  // null: messages are read as they are
};

}  // namespace

void AddDecodeProtoKernels(KernelRegistry* r) { r->Add("DecodeProtoV2", kCpu, ProtoDecoder::Make); }

}  // namespace weir
