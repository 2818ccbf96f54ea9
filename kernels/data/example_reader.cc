#include "weir/kernels/data/example_reader.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <type_traits>

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

// Most varints are of one byte.
inline bool TakeVarint(absl::string_view* in, uint64_t* v) {
  if (in->empty() || static_cast<uint8_t>(in->front()) >= 128) return GetVarint64(in, v);
  *v = static_cast<uint8_t>(in->front());
  in->remove_prefix(1);
  return true;
}

inline bool TakeBytes(absl::string_view* in, uint64_t size, absl::string_view* out) {
  if (size > in->size()) return false;
  *out = in->substr(0, static_cast<size_t>(size));
  in->remove_prefix(static_cast<size_t>(size));
  return true;
}

// Reads a field from the front. Returns false for malformed bytes (and for groups, which are long
// deprecated).
bool NextField(absl::string_view* in, Field* field) {
  uint64_t tag;
  if (!TakeVarint(in, &tag) || tag > UINT32_MAX) return false;
  field->number = static_cast<uint32_t>(tag >> 3);
  field->wire = static_cast<int>(tag & 7);
  if (field->number == 0) return false;
  switch (field->wire) {
    case Field::kVarint:
      return TakeVarint(in, &field->varint);
    case Field::kFixed64:
      return TakeBytes(in, 8, &field->bytes);
    case Field::kBytes:
      return TakeVarint(in, &field->varint) && TakeBytes(in, field->varint, &field->bytes);
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
    // Not null, also if they are missing.
    absl::string_view key(""), value("");
    const bool ok = ForEachField(entry, [&](const Field& field) {
      if (field.wire == Field::kBytes && field.number == 1) key = field.bytes;
      if (field.wire == Field::kBytes && field.number == 2) value = field.bytes;
      return true;
    });
    map->Set(key, value);
    return ok;
  });
}

// ---- lists of values: the message in a Feature's field 1, 2 or 3

bool ReadList(absl::string_view list, std::vector<absl::string_view>* values) {
  return ForEachIn(list, 1, [&](absl::string_view bytes) {
    values->push_back(bytes);
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
      if (!TakeVarint(&packed, &value)) return false;
      values->push_back(static_cast<int64_t>(value));
    }
    return true;
  });
}

// The type of a tensor's elements whose values are of type T.
template <class T>
using ElementOf = std::conditional_t<std::is_same_v<T, absl::string_view>, std::string, T>;

absl::Status Malformed() { return InvalidArgument("Can't parse serialized Example."); }

}  // namespace

int FeatureKeys::Add(absl::string_view key) {
  const auto [it, added] = places_.emplace(key, static_cast<int>(keys_.size()));
  if (added) keys_.emplace_back(key);
  return it->second;
}

int FeatureKeys::Find(absl::string_view key) const {
  const auto it = places_.find(key);
  return it == places_.end() ? -1 : it->second;
}

void FeatureBytes::Clear() {
  std::fill(bytes_.begin(), bytes_.end(), absl::string_view());
  position_ = 0;
}

// Examples of one writer mostly have the same features in the same order, so the place is that of
// the last example's feature at this position, if the key confirms it. This is the trick of
// TensorFlow's fast_parse_example too; a comparison takes a fifth of the time of a hash lookup.
void FeatureBytes::Set(absl::string_view key, absl::string_view bytes) {
  constexpr size_t kMostGuesses = 1024;
  if (position_ >= guesses_.size() && position_ < kMostGuesses) guesses_.push_back(-1);
  int* const guess = position_ < guesses_.size() ? &guesses_[position_] : nullptr;
  ++position_;
  int place = guess != nullptr ? *guess : -1;
  if (place < 0 || keys_.key(place) != key) place = keys_.Find(key);
  if (place < 0) return;
  if (guess != nullptr) *guess = place;
  bytes_[place] = bytes;
}

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
      return Column(key, dtype, is_sequence, std::vector<absl::string_view>());
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
        const auto elements = tensor.flat<ElementOf<T>>();
        values.insert(values.end(), elements.begin(), elements.end());
      },
      values_);
}

void Column::Reserve(int64_t examples, int64_t values) {
  constexpr int64_t kMost = int64_t{1} << 20;  // of values that no example may have
  row_ends_.reserve(examples);
  example_ends_.reserve(examples);
  std::visit([&](auto& v) { v.reserve(std::min(examples * std::min(values, kMost), kMost)); },
             values_);
}

void Column::Append(const Column& more) {
  const int64_t values = num_values(), rows = static_cast<int64_t>(row_ends_.size());
  for (const int64_t end : more.row_ends_) row_ends_.push_back(values + end);
  for (const int64_t end : more.example_ends_) example_ends_.push_back(rows + end);
  std::visit(
      [&]<class T>(std::vector<T>& own) {
        const auto& added = std::get<std::vector<T>>(more.values_);
        own.insert(own.end(), added.begin(), added.end());
      },
      values_);
}

void Column::CopyTo(int64_t begin, int64_t end, Tensor* out, int64_t at) const {
  std::visit(
      [&]<class T>(const std::vector<T>& values) {
        using Element = ElementOf<T>;
        std::transform(values.begin() + begin, values.begin() + end, out->data<Element>() + at,
                       [](const T& value) { return Element(value); });
      },
      values_);
}

}  // namespace weir
