#ifndef WEIR_TOOLS_LIB_ELEMENT_TEXT_H_
#define WEIR_TOOLS_LIB_ELEMENT_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "weir/core/tensor/tensor.h"

// Elements of tensors in text files.
namespace weir::tools {

// Whether the elements of a dtype have a form in CSV and JSON: real numbers, booleans and strings.
bool HasTextForm(DataType dtype);

// Appends element i of a tensor of numbers or booleans: a short text that reads back as the same
// value, with the words NaN, Infinity and -Infinity, as Python's json writes and reads them.
void AppendNumber(const Tensor& tensor, int64_t i, std::string* out);

// Appends a number in the same form: not always the shortest text, because a reader may parse a
// double first, which rounds twice.
void AppendFloat(float value, std::string* out);
// Appends a string as JSON, or {"b64": "..."} if it is not UTF-8.
void AppendString(const std::string& text, std::string* out);

// A number as a text has it.
struct TextNumber {
  long double value = 0;  // a double, or any integer of 64 bits
  bool is_whole = false;  // without point and exponent
};
// Parses a number, also nan and inf. Returns false for other texts.
bool ParseNumber(absl::string_view text, TextNumber* out);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_ELEMENT_TEXT_H_
