#ifndef WEIR_TOOLS_LIB_JSON_VALUE_H_
#define WEIR_TOOLS_LIB_JSON_VALUE_H_

#include <string>
#include <utility>
#include <vector>

#include "weir/core/tensor/convert.h"
#include "weir/core/tensor/tensor.h"

// Tensors as JSON: nested lists of numbers, booleans or strings, as in [[1, 2], [3, 4]]. A string
// of any bytes is {"b64": "YQ=="}, as in TensorFlow Serving's REST API. A whole tensor of strings
// may also be {"shape": [2], "data_base64": ["YQ==", ""]}.
//
// For a tensor of strings, an object that is none of these is a tf.Example, and becomes its
// serialized form (json_example.h).
namespace weir::tools {

// Texts have at most as many bytes: in memory, a parsed one takes eight times as much.
inline constexpr size_t kMaxJsonBytes = size_t{1} << 28;

struct JsonOptions {
  DataType dtype = DT_FLOAT;
  Rounding rounding = Rounding::kNever;  // of whole numbers; fractions are rounded to the dtype
  std::string member;                    // taken alone where the text is an object that has it
  bool needs_member = false;             // NOT_FOUND if it does not
};

// Parses one value. INVALID_ARGUMENT for what is no JSON, for lists of unequal length, and, with
// the index, for what is not a value of the dtype. RESOURCE_EXHAUSTED for more than kMaxJsonBytes.
absl::StatusOr<Tensor> ParseJson(absl::string_view text, const JsonOptions& options);
// Parses a text with a value on each line (empty ones are skipped), the rows of the tensor. The
// lines may be objects with `member`. Errors name the line.
absl::StatusOr<Tensor> ParseJsonLines(absl::string_view text, const JsonOptions& options);

// Returns the names of the values in an object (for lines: in the first of them), sorted. Empty if
// it is no object.
std::vector<std::string> JsonNames(absl::string_view text);
std::vector<std::string> JsonLinesNames(absl::string_view text);

// Reads and writes only that last form of a tensor of strings, which keeps all bytes.
absl::StatusOr<Tensor> ParseStringsJson(absl::string_view text);
std::string FormatStringsJson(const Tensor& strings);

// Returns a tensor as JSON. Numbers that are not finite are the words of Python's json: NaN,
// Infinity, -Infinity. A string that is not UTF-8 is in base64. INVALID_ARGUMENT for dtypes without
// a text form.
absl::StatusOr<std::string> FormatJson(const Tensor& tensor);
// Returns a line for each row of dimension 0: an object with the row of each tensor (a scalar is
// one row). INVALID_ARGUMENT also for tensors with different numbers of rows.
absl::StatusOr<std::string> FormatJsonLines(
    const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_JSON_VALUE_H_
