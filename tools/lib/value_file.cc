#include "weir/tools/lib/value_file.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
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

// The types between which numbers are converted.
using Numbers = List<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                     uint16_t, uint32_t, uint64_t, bool>;

// Every value of these types is a long double.
template <class T>
long double ToReal(T x) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return static_cast<float>(x);
  } else {
    return x;
  }
}

// Returns false if the type cannot represent the value, or with rounding if it is out of its range.
template <class T>
bool FromReal(long double value, Rounding rounding, T* out) {
  const bool rounds = rounding == Rounding::kAllowed;
  if constexpr (std::is_same_v<T, bool> || std::is_integral_v<T>) {
    const long double whole = rounds ? std::nearbyint(value) : value;
    if (!(whole >= static_cast<long double>(std::numeric_limits<T>::min()) &&
          whole <= static_cast<long double>(std::numeric_limits<T>::max())) ||
        whole != std::trunc(whole))
      return false;
    *out = static_cast<T>(whole);
    return true;
  } else {
    constexpr bool kNarrow = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;
    using Wide = std::conditional_t<kNarrow, float, T>;
    *out = T(static_cast<Wide>(value));
    const long double back = ToReal(*out);
    return back == value || std::isnan(value) || (rounds && !std::isinf(back));
  }
}

// Lines of fields, separated by commas, all with as many. Fields of strings may be in quotes, in
// which a doubled quote is one (RFC 4180, without line ends in fields).
absl::StatusOr<std::vector<std::string>> FieldsOf(absl::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"')
        fields.back().push_back(line[i++]);
      else
        quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back().push_back(line[i]);
    }
  }
  if (quoted) return InvalidArgument("a quote is not closed");
  return fields;
}

absl::StatusOr<Tensor> ReadCsv(const std::string& path, DataType dtype, Rounding rounding) {
  WEIR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<std::string> all;
  int64_t rows = 0, columns = 0;
  for (absl::string_view line : absl::StrSplit(absl::StripTrailingAsciiWhitespace(text), '\n')) {
    absl::ConsumeSuffix(&line, "\r");
    absl::StatusOr<std::vector<std::string>> fields = FieldsOf(line);
    if (!fields.ok()) return Annotate(fields.status(), absl::StrCat(path, ", line ", rows + 1));
    if (rows++ == 0) columns = static_cast<int64_t>(fields->size());
    if (static_cast<int64_t>(fields->size()) != columns) {
      return InvalidArgument(path, ", line ", rows, ": ", fields->size(),
                             " fields, but line 1 has ", columns);
    }
    std::move(fields->begin(), fields->end(), std::back_inserter(all));
  }
  if (dtype == DT_STRING) {
    Tensor strings(DT_STRING, Shape({rows, columns}));
    std::move(all.begin(), all.end(), strings.data<std::string>());
    return strings;
  }
  WEIR_ASSIGN_OR_RETURN(Tensor tensor,
                        Tensor::Allocate(HostAllocator(), dtype, Shape({rows, columns})));
  int64_t bad = -1;
  const bool known = DispatchType(dtype, Numbers{}, [&]<class T>() {
    for (size_t i = 0; i < all.size() && bad < 0; ++i) {
      T* const out = tensor.data<T>() + i;
      // Whole numbers are exact; a double would round the large ones, and a fraction is rounded as
      // in the text of a program.
      int64_t whole;
      uint64_t large;
      double real;
      const bool good =
          absl::SimpleAtoi(all[i], &whole) ? FromReal(whole, rounding, out)
          : absl::SimpleAtoi(all[i], &large)
              ? FromReal(large, rounding, out)
              : absl::SimpleAtod(all[i], &real) &&
                    FromReal(real, IsFloating(dtype) ? Rounding::kAllowed : rounding, out);
      if (!good) bad = static_cast<int64_t>(i);
    }
  });
  if (!known) return InvalidArgument(path, ": a CSV file cannot hold type ", DataTypeName(dtype));
  if (bad < 0) return tensor;
  return InvalidArgument(path, ", line ", bad / columns + 1, ": '", all[static_cast<size_t>(bad)],
                         "' is not a value of type ", DataTypeName(dtype));
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

absl::StatusOr<Tensor> ConvertTensor(const Tensor& tensor, DataType dtype, Rounding rounding) {
  if (tensor.dtype() == dtype) return tensor;
  int64_t bad = -1;
  WEIR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(HostAllocator(), dtype, tensor.shape()));
  const bool from_numbers = DispatchType(tensor.dtype(), Numbers{}, [&]<class From>() {
    const bool to_numbers = DispatchType(dtype, Numbers{}, [&]<class To>() {
      const From* const from = tensor.data<From>();
      for (int64_t i = 0; i < tensor.num_elements() && bad < 0; ++i) {
        if (!FromReal(ToReal(from[i]), rounding, out.data<To>() + i)) bad = i;
      }
    });
    if (!to_numbers) bad = 0;
  });
  if (!from_numbers || !DispatchType(dtype, Numbers{}, []<class To>() {})) {
    return InvalidArgument("the value is of type ", DataTypeName(tensor.dtype()), ", not ",
                           DataTypeName(dtype));
  }
  if (bad < 0) return out;
  return InvalidArgument("element ", bad, " of the value, of type ", DataTypeName(tensor.dtype()),
                         ", is not a value of type ", DataTypeName(dtype),
                         rounding == Rounding::kNever ? "; --round allows rounding" : "");
}

absl::StatusOr<Tensor> ParseValue(const std::string& text, DataType dtype, Rounding rounding) {
  if (absl::EndsWith(text, ".npy") || absl::EndsWith(text, ".json")) {
    WEIR_ASSIGN_OR_RETURN(Tensor tensor, ReadValueFile(text));
    tensor = AsCarrier(tensor, dtype);
    absl::StatusOr<Tensor> converted = ConvertTensor(tensor, dtype, rounding);
    if (!converted.ok()) return Annotate(converted.status(), text);
    return converted;
  }
  if (absl::EndsWith(text, ".csv")) return ReadCsv(text, dtype, rounding);
  if (dtype == DT_STRING && absl::StartsWith(text, "@")) {
    WEIR_ASSIGN_OR_RETURN(std::string bytes, ReadFile(text.substr(1)));
    return Tensor::Scalar(std::move(bytes));
  }
  const Json json = Json::parse(text, nullptr, false);
  std::vector<int64_t> dims;
  std::vector<const Json*> leaves;
  absl::Status status = json.is_discarded() || json.is_object()
                            ? InvalidArgument("expected a .npy, .json or .csv file name, ",
                                              dtype == DT_STRING ? "@FILE, " : "", "or JSON")
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
