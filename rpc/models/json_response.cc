#include "weir/rpc/models/json_response.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "weir/rpc/models/json_store.h"

namespace weir::rpc {

namespace {

template <class T>
void AppendInteger(T value, std::string* out) {
  absl::StrAppend(out,
                  static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(value));
}

// The shortest number that reads back as this one. As Serving does, it has a point or an exponent.
template <class T>
void AppendFloat(T value, std::string* out) {
  if (std::isnan(value)) return out->append("NaN"), void();
  if (std::isinf(value)) return out->append(value < 0 ? "-Infinity" : "Infinity"), void();
  std::array<char, 64> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  const absl::string_view text(digits.data(), static_cast<size_t>(end - digits.data()));
  absl::StrAppend(out, text, text.find_first_of(".e") == text.npos ? ".0" : "");
}

absl::Status AppendString(const std::string& value, bool as_bytes, std::string* out) {
  if (as_bytes) {
    absl::StrAppend(out, R"({"b64": ")", absl::Base64Escape(value), R"("})");
    return absl::OkStatus();
  }
  try {
    out->append(nlohmann::json(value).dump());
  } catch (const nlohmann::json::type_error&) {
    return InvalidArgument(
        "A string of the output is not UTF-8, which JSON cannot express: an output whose name ends "
        "with \"_bytes\" is sent in base64");
  }
  return absl::OkStatus();
}

// Writes values of tensors.
class TensorWriter {
 public:
  explicit TensorWriter(size_t max_bytes) : max_bytes_(max_bytes) {}
  std::string& text() { return text_; }

  // Writes the part of the tensor with these indices in its leading dimensions, `begin` is its
  // first element.
  absl::Status Write(const Tensor& tensor, int dimension, int64_t begin, bool as_bytes) {
    if (dimension == tensor.rank()) return WriteElement(tensor, begin, as_bytes);
    int64_t stride = 1;
    for (int i = dimension + 1; i < tensor.rank(); ++i) stride *= tensor.dim(i);
    text_.push_back('[');
    for (int64_t i = 0; i < tensor.dim(dimension); ++i) {
      if (i > 0) text_.append(", ");
      WEIR_RETURN_IF_ERROR(Write(tensor, dimension + 1, begin + i * stride, as_bytes));
      if (text_.size() > max_bytes_) return CheckSize();
    }
    text_.push_back(']');
    return absl::OkStatus();
  }

  absl::Status CheckSize() const {
    if (text_.size() <= max_bytes_) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("The response takes more than ", max_bytes_,
                     " bytes (weir serve --max-response-mb): send fewer rows at once"));
  }

 private:
  absl::Status WriteElement(const Tensor& tensor, int64_t i, bool as_bytes) {
    switch (tensor.dtype()) {
      case DT_FLOAT:
        return AppendFloat(tensor.data<float>()[i], &text_), absl::OkStatus();
      case DT_DOUBLE:
        return AppendFloat(tensor.data<double>()[i], &text_), absl::OkStatus();
      case DT_HALF:
        return AppendFloat(static_cast<float>(tensor.data<half>()[i]), &text_), absl::OkStatus();
      case DT_BFLOAT16:
        return AppendFloat(static_cast<float>(tensor.data<bfloat16>()[i]), &text_),
               absl::OkStatus();
      case DT_UINT64:
        return AppendInteger(tensor.data<uint64_t>()[i], &text_), absl::OkStatus();
      case DT_BOOL:
        return text_.append(tensor.data<bool>()[i] ? "true" : "false"), absl::OkStatus();
      case DT_STRING:
        return AppendString(tensor.data<std::string>()[i], as_bytes, &text_);
      default:
        return AppendInteger(tensor.IntAt(i), &text_), absl::OkStatus();
    }
  }

  const size_t max_bytes_;
  std::string text_;
};

std::string Quoted(const std::string& name) {
  return nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool IsBytes(const std::string& name, const Tensor& tensor) {
  return tensor.dtype() == DT_STRING && absl::EndsWith(name, "_bytes");
}

// Writes one value, or one object of several: of row `row`, or of whole tensors if it is negative.
absl::Status WriteOutputs(const serving::NamedTensors& outputs, int64_t row, TensorWriter* writer) {
  const bool is_object = outputs.size() > 1;
  absl::string_view separator = is_object ? "{" : "";
  for (const auto& [name, tensor] : outputs) {
    writer->text().append(separator.data(), separator.size());
    separator = ", ";
    if (is_object) absl::StrAppend(&writer->text(), Quoted(name), ": ");
    const int64_t row_size = row <= 0 ? 0 : tensor.num_elements() / tensor.dim(0);
    WEIR_RETURN_IF_ERROR(writer->Write(
        tensor, row < 0 ? 0 : 1, std::max<int64_t>(row, 0) * row_size, IsBytes(name, tensor)));
  }
  if (is_object) writer->text().push_back('}');
  return writer->CheckSize();
}

// Returns the number of rows of all outputs.
absl::StatusOr<int64_t> CountRows(const serving::NamedTensors& outputs) {
  int64_t rows = -1;
  for (const auto& [name, tensor] : outputs) {
    if (tensor.rank() == 0)
      return InvalidArgument("Tensor name: ", name, " has no shape information ");
    if (rows >= 0 && rows != tensor.dim(0)) {
      return InvalidArgument("Tensor name: ", name, " has inconsistent batch size: ", tensor.dim(0),
                             " expecting: ", rows);
    }
    rows = tensor.dim(0);
  }
  return rows;
}

}  // namespace

absl::StatusOr<std::string> PredictResponse(const serving::NamedTensors& outputs, bool by_rows,
                                            size_t max_bytes) {
  if (outputs.empty()) return InvalidArgument("Cannot convert empty tensor map to JSON");
  for (const auto& [name, tensor] : outputs) {
    if (!IsInJson(tensor.dtype()))
      return Unimplemented("Failed to write JSON value of output ", name,
                           " for tensor type: ", DataTypeName(tensor.dtype()));
  }
  TensorWriter writer(max_bytes);
  if (by_rows) {
    WEIR_ASSIGN_OR_RETURN(const int64_t rows, CountRows(outputs));
    writer.text() = "{\n    \"predictions\": [";
    for (int64_t row = 0; row < rows; ++row) {
      if (row > 0) writer.text().append(", ");
      WEIR_RETURN_IF_ERROR(WriteOutputs(outputs, row, &writer));
    }
    writer.text().append("\n    ]");
  } else {
    writer.text() = "{\n    \"outputs\": ";
    WEIR_RETURN_IF_ERROR(WriteOutputs(outputs, -1, &writer));
  }
  writer.text().append("\n}\n");
  return std::move(writer.text());
}

absl::StatusOr<std::string> ClassifyResponse(const serving::Classification& classification) {
  std::string text = "{\n    \"results\": [";
  for (const auto& classes : classification.classes) {
    if (text.back() == ']') text.append(", ");
    text.push_back('[');
    for (const serving::Class& one : classes) {
      if (text.back() == ']') text.append(", ");
      text.push_back('[');
      WEIR_RETURN_IF_ERROR(AppendString(one.label, /*as_bytes=*/false, &text));
      text.append(", ");
      AppendFloat(one.score, &text);
      text.push_back(']');
    }
    text.push_back(']');
  }
  text.append("\n    ]\n}\n");
  return text;
}

std::string RegressResponse(const serving::Regression& regression) {
  std::string text = "{\n    \"results\": [";
  for (size_t i = 0; i < regression.values.size(); ++i) {
    if (i > 0) text.append(", ");
    AppendFloat(regression.values[i], &text);
  }
  text.append("\n    ]\n}\n");
  return text;
}

}  // namespace weir::rpc
