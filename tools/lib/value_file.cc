#include "weir/tools/lib/value_file.h"

#include <cmath>
#include <complex>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "weir/core/io/file.h"
#include "weir/core/io/npy.h"

namespace weir::tools {

namespace {

using Json = nlohmann::json;

absl::StatusOr<Tensor> StringsFromJson(const Json& json) {
  const auto shape = json.find("shape"), data = json.find("data_base64");
  if (shape == json.end() || data == json.end() || !shape->is_array() || !data->is_array()) {
    return InvalidArgument("expected a JSON object with the lists 'shape' and 'data_base64'");
  }
  std::vector<int64_t> dims;
  for (const Json& dim : *shape) {
    if (!dim.is_number_integer() || dim < 0)
      return InvalidArgument("'shape' must contain non-negative integers");
    dims.push_back(dim);
  }
  WEIR_ASSIGN_OR_RETURN(const Shape full, Shape::Make(dims));
  if (full.num_elements() != static_cast<int64_t>(data->size())) {
    return InvalidArgument("expected ", full.num_elements(), " strings, got ", data->size(),
                           ", for the shape ", full.ToString());
  }
  Tensor tensor(DT_STRING, full);
  auto* out = tensor.data<std::string>();
  for (const Json& text : *data) {
    if (!text.is_string() || !absl::Base64Unescape(text.get_ref<const std::string&>(), out++)) {
      return InvalidArgument("'data_base64' contains a string that is not valid base64");
    }
  }
  return tensor;
}

absl::Status WriteStrings(const std::string& path, const Tensor& tensor) {
  if (tensor.dtype() != DT_STRING) {
    return InvalidArgument(path, ": a .json file stores strings, not ", tensor.Description());
  }
  Json data = Json::array();
  for (const std::string& text : tensor.flat<std::string>()) {
    data.push_back(absl::Base64Escape(text));
  }
  const absl::Span<const int64_t> dims = tensor.shape().dims();
  const Json json = {{"dtype", "string"},
                     {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                     {"data_base64", data}};
  return WriteFileAtomically(path, json.dump());
}

// Lists that are nested deeper are rejected.
constexpr int kMaxDepth = 64;

// Returns the leaves of nested lists in order, and the shape if the lists are regular.
absl::Status Flatten(const Json& json, int depth, std::vector<int64_t>* dims,
                     std::vector<const Json*>* leaves) {
  if (!json.is_array()) {
    if (depth != static_cast<int>(dims->size()))
      return InvalidArgument("nested lists differ in depth");
    leaves->push_back(&json);
    return absl::OkStatus();
  }
  const auto size = static_cast<int64_t>(json.size());
  if (depth == static_cast<int>(dims->size())) {
    if (!leaves->empty() || depth == kMaxDepth)
      return InvalidArgument("nested lists differ in depth");
    dims->push_back(size);
  } else if ((*dims)[depth] != size) {
    return InvalidArgument("nested lists differ in length: ", (*dims)[depth], " and ", size);
  }
  for (const Json& element : json) {
    WEIR_RETURN_IF_ERROR(Flatten(element, depth + 1, dims, leaves));
  }
  return absl::OkStatus();
}

// Returns false if the type cannot represent the value.
template <class T>
bool Convert(const Json& json, T* out) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) return false;
    *out = json.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    if (!json.is_number_integer()) return false;
    const bool fits =
        json.is_number_unsigned()
            ? json.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<T>::max())
            : std::is_signed_v<T> &&
                  json.get<int64_t>() >= static_cast<int64_t>(std::numeric_limits<T>::min());
    if (!fits) return false;
    *out = json.get<T>();
  } else {
    if (!json.is_number()) return false;
    *out = T(json.get<double>());
  }
  return true;
}

absl::StatusOr<Tensor> FromLeaves(const std::vector<const Json*>& leaves, const Shape& shape,
                                  DataType dtype) {
  Tensor tensor(dtype, shape);
  bool good = true;
  const bool known = DispatchType(
      dtype,
      List<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
           uint32_t, uint64_t, bool, std::complex<float>, std::complex<double>>{},
      [&]<class T>() {
        for (size_t i = 0; i < leaves.size(); ++i)
          good &= Convert(*leaves[i], tensor.data<T>() + i);
      });
  if (dtype == DT_STRING) {
    for (size_t i = 0; i < leaves.size(); ++i) {
      good &= leaves[i]->is_string();
      if (good) tensor.data<std::string>()[i] = leaves[i]->get<std::string>();
    }
  } else if (!known) {
    return InvalidArgument("type ", DataTypeName(dtype), " has no JSON form; use a .npy file");
  }
  if (!good) return InvalidArgument("not all elements are values of type ", DataTypeName(dtype));
  return tensor;
}

}  // namespace

absl::StatusOr<Tensor> ReadValueFile(const std::string& path) {
  if (!absl::EndsWith(path, ".json")) return ReadNpy(path);
  WEIR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<Tensor> tensor = StringsFromJson(Json::parse(text, nullptr, false));
  if (!tensor.ok()) return Annotate(tensor.status(), path);
  return tensor;
}

absl::Status WriteValueFile(const std::string& path, const Tensor& tensor) {
  return absl::EndsWith(path, ".json") ? WriteStrings(path, tensor) : WriteNpy(path, tensor);
}

absl::StatusOr<Tensor> ParseValue(const std::string& text, DataType dtype) {
  if (absl::EndsWith(text, ".npy") || absl::EndsWith(text, ".json")) {
    WEIR_ASSIGN_OR_RETURN(const Tensor tensor, ReadValueFile(text));
    return AsCarrier(tensor, dtype);
  }
  const Json json = Json::parse(text, nullptr, false);
  std::vector<int64_t> dims;
  std::vector<const Json*> leaves;
  absl::Status status = json.is_discarded() || json.is_object()
                            ? InvalidArgument("expected a .npy or .json file name, or JSON")
                            : Flatten(json, 0, &dims, &leaves);
  if (status.ok()) {
    absl::StatusOr<Tensor> tensor = FromLeaves(leaves, Shape(dims), dtype);
    if (tensor.ok()) return tensor;
    status = tensor.status();
  }
  return Annotate(status, absl::StrCat("the value '", text, "'"));
}

Tensor AsCarrier(const Tensor& tensor, DataType dtype) {
  const bool carrier = IsQuantized(dtype) || dtype >= DT_FLOAT8_E5M2;
  if (!carrier || !IsInteger(tensor.dtype()) || ElementSize(dtype) != ElementSize(tensor.dtype())) {
    return tensor;
  }
  return tensor.BitcastTo(dtype);
}

}  // namespace weir::tools
