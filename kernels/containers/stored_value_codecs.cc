#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/io/coding.h"
#include "weir/core/io/graph_io.h"
#include "weir/kernels/containers/stored_values.h"
#include "weir/proto/tensor_shape.pb.h"

// The bytes of lists, maps and optionals, as TensorFlow's runtime writes them: TensorList::Encode
// in tensorflow/core/kernels/tensor_list.cc, TensorMap::Encode in tensor_map.cc, and
// OptionalVariant::Encode in optional_ops_util.h.
//
//   list      metadata: varints for the number of empty positions, each of them, the type of
//             elements and the limit of their number; then the TensorShapeProto of an element.
//             tensors: the elements that are there.
//   map       tensors: key, value, key, value, ...
//   optional  metadata: one byte, whether there is a value. tensors: its components.
namespace weir {

namespace {

absl::Status Malformed(absl::string_view type, absl::string_view what) {
  return InvalidArgument("Cannot parse variant of type ", type, ": ", what);
}

VariantParts SplitList(const std::any& value) {
  const auto& list = std::any_cast<const TensorList&>(value);
  VariantParts parts;
  std::vector<int64_t> empty;
  for (int64_t i = 0; i < list.elements.size(); ++i) {
    const Tensor* element = list.elements.at(i);
    if (element != nullptr) {
      parts.tensors.push_back(*element);
    } else {
      empty.push_back(i);
    }
  }
  PutVarint64(&parts.metadata, empty.size());
  for (const int64_t i : empty) PutVarint64(&parts.metadata, static_cast<uint64_t>(i));
  PutVarint64(&parts.metadata, static_cast<uint64_t>(list.element_dtype));
  PutVarint64(&parts.metadata, static_cast<uint64_t>(list.max_num_elements));
  proto::TensorShapeProto shape;
  ShapeToProto(list.element_shape, &shape);
  shape.AppendToString(&parts.metadata);
  return parts;
}

absl::StatusOr<std::any> JoinList(VariantParts parts) {
  const auto malformed = [](absl::string_view what) {
    return Malformed(TensorList::kTypeName, what);
  };
  absl::string_view in = parts.metadata;
  uint64_t empty, dtype, limit;
  if (!GetVarint64(&in, &empty) || empty > in.size())
    return malformed("its metadata end within the empty positions");
  TensorList list;
  list.elements = list.elements.Resized(static_cast<int64_t>(empty + parts.tensors.size()));
  int64_t next = 0;  // position
  auto element = parts.tensors.begin();
  const auto fill_to = [&](int64_t end) {
    for (; next < end && element != parts.tensors.end(); ++next)
      list.elements = std::move(list.elements).With(next, std::move(*element++));
    return next == end;
  };
  for (uint64_t i = 0; i < empty; ++i) {
    uint64_t position;
    if (!GetVarint64(&in, &position) || position >= static_cast<uint64_t>(list.elements.size()) ||
        static_cast<int64_t>(position) < next || !fill_to(static_cast<int64_t>(position)))
      return malformed("its empty positions are not ascending positions of the list");
    ++next;
  }
  if (!fill_to(list.elements.size())) return malformed("it has too few elements");
  proto::TensorShapeProto shape;
  if (!GetVarint64(&in, &dtype) || !GetVarint64(&in, &limit) ||
      !shape.ParseFromArray(in.data(), static_cast<int>(in.size())))
    return malformed("its metadata end within the type and shape of elements");
  if (dtype >= kRefOffset || !IsKnown(static_cast<DataType>(dtype)))
    return malformed(absl::StrCat("its elements have the unknown type ", dtype));
  list.element_dtype = static_cast<DataType>(dtype);
  list.max_num_elements = static_cast<int32_t>(limit);
  WEIR_ASSIGN_OR_RETURN(list.element_shape, ShapeFromProto(shape));
  WEIR_RETURN_IF_ERROR(list.elements.ForEach([&](int64_t i, const Tensor& each) -> absl::Status {
    if (each.dtype() != list.element_dtype || !list.element_shape.IsCompatibleWith(each.shape()))
      return malformed(absl::StrCat("element ", i, " is ", each.Description()));
    WEIR_ASSIGN_OR_RETURN(const int depth, NestingDepth(each));
    list.depth = std::max(list.depth, depth + 1);
    return absl::OkStatus();
  }));
  return std::any(std::move(list));
}

VariantParts SplitMap(const std::any& value) {
  VariantParts parts;
  for (const auto& [bytes, entry] : *std::any_cast<const TensorMap&>(value).entries) {
    parts.tensors.push_back(entry.key);
    parts.tensors.push_back(entry.value);
  }
  return parts;
}

absl::StatusOr<std::any> JoinMap(VariantParts parts) {
  if (parts.tensors.size() % 2 != 0)
    return Malformed(TensorMap::kTypeName, "its last key has no value");
  TensorMap map;
  auto entries = std::make_shared<TensorMap::Entries>();
  for (size_t i = 0; i < parts.tensors.size(); i += 2) {
    Tensor& key = parts.tensors[i];
    Tensor& value = parts.tensors[i + 1];
    WEIR_ASSIGN_OR_RETURN(std::string bytes, MapKey(key));
    WEIR_ASSIGN_OR_RETURN(const int depth, NestingDepth(value));
    map.depth = std::max(map.depth, depth + 1);
    (*entries)[std::move(bytes)] = {std::move(key), std::move(value)};
  }
  map.entries = std::move(entries);
  return std::any(std::move(map));
}

VariantParts SplitOptional(const std::any& value) {
  const auto& optional = std::any_cast<const Optional&>(value);
  return {.metadata = std::string(1, optional.has_value ? '\1' : '\0'), .tensors = optional.values};
}

absl::StatusOr<std::any> JoinOptional(VariantParts parts) {
  if (parts.metadata.size() != 1)
    return Malformed(Optional::kTypeName, "its metadata are not one byte");
  Optional optional;
  optional.has_value = parts.metadata[0] != 0;
  if (!optional.has_value) return std::any(optional);
  for (const Tensor& each : parts.tensors) {
    WEIR_ASSIGN_OR_RETURN(const int depth, NestingDepth(each));
    optional.depth = std::max(optional.depth, depth + 1);
  }
  optional.values = std::move(parts.tensors);
  return std::any(std::move(optional));
}

}  // namespace

bool RegisterStoredValueCodecs() {
  RegisterVariantCodec(TensorList::kTypeName, {.split = SplitList, .join = JoinList});
  RegisterVariantCodec(TensorMap::kTypeName, {.split = SplitMap, .join = JoinMap});
  RegisterVariantCodec(Optional::kTypeName, {.split = SplitOptional, .join = JoinOptional});
  return true;
}

}  // namespace weir
