#include "weir/kernels/data/example_reader.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "weir/core/io/coding.h"

namespace weir {

namespace {

// ---- the wire format of protocol buffers
//
// A message is a sequence of fields in any order, each a tag (the field number and, in the low
// three bits, the wire type) and a value: a varint (0), eight bytes (1), a length and that many
// bytes (2: strings, messages, packed numbers), or four bytes (5). A later value of a non-repeated
// field replaces an earlier one, and the concatenation of two messages is their merger. A repeated
// number may be packed into one field or written one by one, regardless of the schema.
struct Field {
  enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  uint32_t number = 0;
  int wire = kVarint;
  uint64_t varint = 0;
  absl::string_view bytes;
};

bool TakeBytes(absl::string_view* in, uint64_t size, absl::string_view* out) {
  if (size > in->size()) return false;
  *out = in->substr(0, static_cast<size_t>(size));
  in->remove_prefix(static_cast<size_t>(size));
  return true;
}

// Reads a field from the front. Returns false for malformed bytes (and for groups, which are long
// deprecated).
bool NextField(absl::string_view* in, Field* field) {
  uint32_t tag;
  if (!GetVarint32(in, &tag)) return false;
  field->number = tag >> 3;
  field->wire = static_cast<int>(tag & 7);
  if (field->number == 0) return false;
  switch (field->wire) {
    case Field::kVarint:
      return GetVarint64(in, &field->varint);
    case Field::kFixed64:
      return TakeBytes(in, 8, &field->bytes);
    case Field::kBytes:
      return GetVarint64(in, &field->varint) && TakeBytes(in, field->varint, &field->bytes);
    case Field::kFixed32:
      return TakeBytes(in, 4, &field->bytes);
    default:
      return false;
  }
}

// Calls fn(field) -> bool for each field of a message, until it returns false. Returns false in
// that case, and for malformed bytes.
template <class F>
bool ForEachField(absl::string_view message, F fn) {
  Field field;
  while (!message.empty()) {
    if (!NextField(&message, &field) || !fn(field)) return false;
  }
  return true;
}

// The same for each message or string in field `number`.
template <class F>
bool ForEachIn(absl::string_view message, uint32_t number, F fn) {
  return ForEachField(message, [&](const Field& field) {
    return field.number != number || field.wire != Field::kBytes || fn(field.bytes);
  });
}

// A map<string, message> is a repeated message with the key in field 1 and the value in field 2.
bool ReadMap(absl::string_view message, FeatureBytes* map) {
  return ForEachIn(message, 1, [&](absl::string_view entry) {
    absl::string_view key, value;
    const bool ok = ForEachField(entry, [&](const Field& field) {
      if (field.wire == Field::kBytes && field.number == 1) key = field.bytes;
      if (field.wire == Field::kBytes && field.number == 2) value = field.bytes;
      return true;
    });
    (*map)[key] = value;
    return ok;
  });
}

// ---- lists of values: the message in a Feature's field 1, 2 or 3

bool ReadList(absl::string_view list, std::vector<std::string>* values) {
  return ForEachIn(list, 1, [&](absl::string_view bytes) {
    values->emplace_back(bytes);
    return true;
  });
}

bool ReadList(absl::string_view list, std::vector<float>* values) {
  return ForEachField(list, [&](const Field& field) {
    if (field.number != 1) return true;
    if (field.wire != Field::kBytes && field.wire != Field::kFixed32) return false;
    if (field.bytes.size() % 4 != 0) return false;
    for (size_t i = 0; i < field.bytes.size(); i += 4) {
      values->push_back(std::bit_cast<float>(LoadFixed32(field.bytes.data() + i)));
    }
    return true;
  });
}

bool ReadList(absl::string_view list, std::vector<int64_t>* values) {
  return ForEachField(list, [&](const Field& field) {
    if (field.number != 1) return true;
    if (field.wire == Field::kVarint) values->push_back(static_cast<int64_t>(field.varint));
    if (field.wire == Field::kVarint) return true;
    if (field.wire != Field::kBytes) return false;
    absl::string_view packed = field.bytes;
    while (!packed.empty()) {
      uint64_t value;
      if (!GetVarint64(&packed, &value)) return false;
      values->push_back(static_cast<int64_t>(value));
    }
    return true;
  });
}

absl::Status Malformed() { return InvalidArgument("Can't parse serialized Example."); }

}  // namespace

absl::Status ReadExample(absl::string_view bytes, FeatureBytes* features) {
  const bool ok =
      ForEachIn(bytes, 1, [&](absl::string_view message) { return ReadMap(message, features); });
  if (ok) return absl::OkStatus();
  return InvalidArgument("Could not parse example input, value: '", bytes, "'");
}

absl::Status ReadSequenceExample(absl::string_view bytes, FeatureBytes* context,
                                 FeatureBytes* feature_lists) {
  const bool ok = ForEachField(bytes, [&](const Field& field) {
    if (field.wire != Field::kBytes || field.number > 2) return true;
    return ReadMap(field.bytes, field.number == 1 ? context : feature_lists);
  });
  if (ok) return absl::OkStatus();
  return InvalidArgument("Invalid protocol message input, value: '", bytes, "'");
}

absl::Status ForEachFrame(absl::string_view bytes,
                          absl::FunctionRef<absl::Status(absl::string_view)> fn) {
  absl::Status status;
  const bool ok = ForEachIn(bytes, 1, [&](absl::string_view feature) {
    status = fn(feature);
    return status.ok();
  });
  if (!status.ok()) return status;
  return ok ? absl::OkStatus() : InvalidArgument("Error in sequence feature");
}

absl::StatusOr<Column> Column::Make(absl::string_view key, DataType dtype, bool is_sequence) {
  switch (dtype) {
    case DT_FLOAT:
      return Column(key, dtype, is_sequence, std::vector<float>());
    case DT_INT64:
      return Column(key, dtype, is_sequence, std::vector<int64_t>());
    case DT_STRING:
      return Column(key, dtype, is_sequence, std::vector<std::string>());
    default:
      return InvalidArgument("Invalid feature type: ", DataTypeName(dtype));
  }
}

int64_t Column::num_values() const {
  return std::visit([](const auto& values) { return static_cast<int64_t>(values.size()); },
                    values_);
}

absl::StatusOr<bool> Column::AddFeature(absl::string_view bytes) {
  static constexpr DataType kTypes[] = {DT_STRING, DT_FLOAT, DT_INT64};
  DataType type = DT_INVALID;
  absl::string_view list;
  const bool ok = ForEachField(bytes, [&](const Field& field) {
    if (field.wire != Field::kBytes || field.number > std::size(kTypes)) return true;
    type = kTypes[field.number - 1];
    list = field.bytes;
    return true;
  });
  if (!ok) return Malformed();
  if (type == DT_INVALID) return false;
  if (type != dtype_) {
    return InvalidArgument("Data types don't match. Expected type: ", DataTypeName(dtype_),
                           ", Actual type: ", DataTypeName(type));
  }
  if (!std::visit([&](auto& values) { return ReadList(list, &values); }, values_)) {
    return Malformed();
  }
  return true;
}

void Column::AddTensor(const Tensor& tensor) {
  std::visit(
      [&]<class T>(std::vector<T>& values) {
        values.insert(values.end(), tensor.flat<T>().begin(), tensor.flat<T>().end());
      },
      values_);
}

void Column::CopyTo(int64_t begin, int64_t end, Tensor* out, int64_t at) const {
  std::visit(
      [&]<class T>(const std::vector<T>& values) {
        std::copy(values.begin() + begin, values.begin() + end, out->data<T>() + at);
      },
      values_);
}

}  // namespace weir
