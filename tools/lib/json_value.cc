#include "weir/tools/lib/json_value.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "weir/tools/lib/element_text.h"
#include "weir/tools/lib/example_value.h"

namespace weir::tools {

namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 64;  // of lists and objects in each other

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
    if (!leaves->empty()) return InvalidArgument("nested lists differ in depth");
    dims->push_back(size);
  } else if ((*dims)[depth] != size) {
    return InvalidArgument("nested lists differ in length: ", (*dims)[depth], " and ", size);
  }
  for (const Json& element : json) {
    WEIR_RETURN_IF_ERROR(Flatten(element, depth + 1, dims, leaves));
  }
  return absl::OkStatus();
}

bool StoreString(const Json& json, std::string* out) {
  if (IsBase64(json)) return DecodeBase64(json, out);
  if (!json.is_string()) return false;
  *out = json.get_ref<const std::string&>();
  return true;
}

// Stores a leaf. Returns false if it is not a value of the tensor's dtype.
bool StoreLeaf(const Json& json, Rounding rounding, int64_t i, Tensor* tensor) {
  if (tensor->dtype() == DT_STRING) return StoreString(json, tensor->data<std::string>() + i);
  if (tensor->dtype() == DT_BOOL) {
    if (json.is_boolean()) tensor->data<bool>()[i] = json.get<bool>();
    return json.is_boolean();
  }
  if (json.is_number_float()) {
    const bool rounds = IsFloating(tensor->dtype()) || IsComplex(tensor->dtype());
    return StoreNumber(json.get<double>(), rounds ? Rounding::kAllowed : rounding, i, tensor);
  }
  if (!json.is_number()) return false;
  const long double whole = json.is_number_unsigned()
                                ? static_cast<long double>(json.get<uint64_t>())
                                : static_cast<long double>(json.get<int64_t>());
  return StoreNumber(whole, rounding, i, tensor);
}

bool HasJsonForm(DataType dtype) { return HasTextForm(dtype) || IsComplex(dtype); }

absl::StatusOr<Tensor> FromLists(const Json& json, const JsonOptions& options) {
  if (!HasJsonForm(options.dtype)) {
    return InvalidArgument("type ", DataTypeName(options.dtype),
                           " has no JSON form; give a .npy file");
  }
  std::vector<int64_t> dims;
  std::vector<const Json*> leaves;
  WEIR_RETURN_IF_ERROR(Flatten(json, 0, &dims, &leaves));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  WEIR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(HostAllocator(), options.dtype, shape));
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (StoreLeaf(*leaves[i], options.rounding, static_cast<int64_t>(i), &tensor)) continue;
    constexpr size_t kShown = 40;
    const std::string leaf = leaves[i]->dump(-1, ' ', false, Json::error_handler_t::replace);
    return InvalidArgument("element ", i, " is ", leaf.substr(0, kShown),
                           leaf.size() > kShown ? "..." : "", ", which is not a value of type ",
                           DataTypeName(options.dtype));
  }
  return tensor;
}

// {"shape": [2], "data_base64": ["YQ==", ""]}
absl::StatusOr<Tensor> StringsFromJson(const Json& json) {
  const auto shape = json.find("shape"), data = json.find("data_base64");
  if (shape == json.end() || data == json.end() || !shape->is_array() || !data->is_array())
    return InvalidArgument("expected a JSON object with the lists 'shape' and 'data_base64'");
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

bool IsExample(const Json& json) { return json.is_object() && !IsBase64(json); }

absl::StatusOr<Tensor> FromJson(const Json& json, const JsonOptions& options) {
  if (options.dtype != DT_STRING) return FromLists(json, options);
  if (json.is_object() && json.contains("data_base64")) return StringsFromJson(json);
  if (IsExample(json)) {
    WEIR_ASSIGN_OR_RETURN(std::string example, SerializeExample(json));
    return Tensor::Scalar(std::move(example));
  }
  const bool are_examples = json.is_array() && std::any_of(json.begin(), json.end(), IsExample);
  if (!are_examples) return FromLists(json, options);
  Tensor examples(DT_STRING, {static_cast<int64_t>(json.size())});
  for (size_t i = 0; i < json.size(); ++i) {
    absl::StatusOr<std::string> example = SerializeExample(json[i]);
    if (!example.ok()) return Annotate(example.status(), absl::StrCat("example ", i));
    examples.data<std::string>()[i] = *std::move(example);
  }
  return examples;
}

// Returns how deep lists and objects are nested in a text.
int NestingDepth(absl::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string) {
      i += c == '\\' ? 1 : 0;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

// nlohmann copies and prints nested values recursively: their depth must have a limit.
absl::Status CheckText(absl::string_view text) {
  if (text.size() > kMaxJsonBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("it has ", text.size(), " bytes, but at most ",
                                                     kMaxJsonBytes,
                                                     " are read as JSON; give a .npy file"));
  }
  if (NestingDepth(text) > kMaxDepth)
    return InvalidArgument("it is nested more than ", kMaxDepth, " levels deep");
  return absl::OkStatus();
}

Json ParseText(absl::string_view text) {
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

std::vector<std::string> Keys(const Json& json) {
  std::vector<std::string> keys;
  if (!json.is_object()) return keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

// Replaces an object by its member, if that is asked for.
absl::Status TakeMember(const JsonOptions& options, Json* json) {
  if (options.member.empty()) return absl::OkStatus();
  if (json->is_object() && json->contains(options.member)) {
    Json member = std::move((*json)[options.member]);
    *json = std::move(member);
    return absl::OkStatus();
  }
  if (!options.needs_member) return absl::OkStatus();
  return NotFound("no member '", options.member, "'; members: ",
                  json->is_object() ? absl::StrJoin(Keys(*json), ", ") : "none, it is no object");
}

// Calls `add` with each line that is not empty, and its number, until it fails.
absl::Status ForEachLine(absl::string_view text,
                         absl::FunctionRef<absl::Status(absl::string_view, int64_t)> add) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const absl::string_view line = absl::StripAsciiWhitespace(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty()) WEIR_RETURN_IF_ERROR(add(line, number));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> ParseJson(absl::string_view text, const JsonOptions& options) {
  WEIR_RETURN_IF_ERROR(CheckText(text));
  Json json = ParseText(text);
  if (json.is_discarded()) return InvalidArgument("it is not JSON");
  WEIR_RETURN_IF_ERROR(TakeMember(options, &json));
  return FromJson(json, options);
}

absl::StatusOr<Tensor> ParseStringsJson(absl::string_view text) {
  WEIR_RETURN_IF_ERROR(CheckText(text));
  return StringsFromJson(ParseText(text));
}

std::string FormatStringsJson(const Tensor& strings) {
  Json data = Json::array();
  for (const std::string& text : strings.flat<std::string>()) {
    data.push_back(absl::Base64Escape(text));
  }
  const absl::Span<const int64_t> dims = strings.shape().dims();
  return Json({{"dtype", "string"},
               {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
               {"data_base64", data}})
      .dump();
}

absl::StatusOr<Tensor> ParseJsonLines(absl::string_view text, const JsonOptions& options) {
  WEIR_RETURN_IF_ERROR(CheckText(text));
  Json rows = Json::array();
  WEIR_RETURN_IF_ERROR(ForEachLine(text, [&](absl::string_view line, int64_t number) {
    Json row = ParseText(line);
    const absl::Status status =
        row.is_discarded() ? InvalidArgument("it is not JSON") : TakeMember(options, &row);
    rows.push_back(std::move(row));
    return Annotate(status, absl::StrCat("line ", number));
  }));
  return FromJson(rows, options);
}

std::vector<std::string> JsonNames(absl::string_view text) {
  if (!CheckText(text).ok()) return {};
  const Json json = ParseText(text);
  return json.is_object() && json.contains("data_base64") ? std::vector<std::string>() : Keys(json);
}

std::vector<std::string> JsonLinesNames(absl::string_view text) {
  const absl::string_view rest = absl::StripLeadingAsciiWhitespace(text);
  return JsonNames(rest.substr(0, rest.find('\n')));
}

namespace {

// Appends the part of a tensor with some indices in its leading dimensions, whose first element is
// `begin`.
void AppendPart(const Tensor& tensor, int dimension, int64_t begin, std::string* out) {
  if (dimension == tensor.rank()) {
    if (tensor.dtype() != DT_STRING) return AppendNumber(tensor, begin, out);
    return AppendString(tensor.data<std::string>()[begin], out);
  }
  int64_t stride = 1;
  for (int i = dimension + 1; i < tensor.rank(); ++i) stride *= tensor.dim(i);
  out->push_back('[');
  for (int64_t i = 0; i < tensor.dim(dimension); ++i) {
    if (i > 0) out->append(", ");
    AppendPart(tensor, dimension + 1, begin + i * stride, out);
  }
  out->push_back(']');
}

absl::Status CheckHasText(const Tensor& tensor) {
  if (HasTextForm(tensor.dtype())) return absl::OkStatus();
  return InvalidArgument(tensor.Description(),
                         " has elements without a text form; write a .npy file");
}

}  // namespace

absl::StatusOr<std::string> FormatJson(const Tensor& tensor) {
  WEIR_RETURN_IF_ERROR(CheckHasText(tensor));
  std::string out;
  AppendPart(tensor, 0, 0, &out);
  out.push_back('\n');
  return out;
}

absl::StatusOr<std::string> FormatJsonLines(
    const std::vector<std::pair<std::string, Tensor>>& tensors) {
  int64_t rows = -1;
  for (const auto& [name, tensor] : tensors) {
    const int64_t own = tensor.rank() == 0 ? 1 : tensor.dim(0);
    const absl::Status status =
        rows >= 0 && own != rows ? InvalidArgument(own, " rows, but '", tensors[0].first, "' has ",
                                                   rows, "; write them to separate files")
                                 : CheckHasText(tensor);
    if (!status.ok()) return Annotate(status, absl::StrCat("'", name, "'"));
    rows = own;
  }
  std::string out;
  for (int64_t row = 0; row < rows; ++row) {
    const char* separator = "{";
    for (const auto& [name, tensor] : tensors) {
      out.append(separator);
      AppendString(name, &out);
      out.append(": ");
      AppendPart(tensor, std::min(tensor.rank(), 1), row * (tensor.num_elements() / rows), &out);
      separator = ", ";
    }
    out.append("}\n");
  }
  return out;
}

}  // namespace weir::tools
