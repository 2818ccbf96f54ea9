#include "weir/tools/lib/csv.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "weir/tools/lib/element_text.h"

namespace weir::tools {

namespace {

constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

// Splits a text into fields, one after the other, so that no more than a line's are in memory.
class CsvScanner {
 public:
  CsvScanner(absl::string_view text, char separator, bool has_comments)
      : text_(text), separator_(separator), has_comments_(has_comments) {
    if (text_.substr(0, kByteOrderMark.size()) == kByteOrderMark) at_ = kByteOrderMark.size();
  }

  // Reads the next line that is not empty and no comment. False at the end of the text.
  absl::StatusOr<bool> Next(std::vector<std::string>* fields) {
    while (at_ < text_.size() && (AtLineEnd() || (has_comments_ && text_[at_] == '#'))) SkipLine();
    if (at_ >= text_.size()) return false;
    line_ = next_line_;
    for (size_t count = 1;; ++count) {
      if (fields->size() < count) fields->emplace_back();
      WEIR_RETURN_IF_ERROR(ReadField(&(*fields)[count - 1]));
      if (at_ < text_.size() && text_[at_] == separator_) {
        ++at_;
        continue;
      }
      fields->resize(count);
      SkipLine();
      return true;
    }
  }
  int64_t line() const { return line_; }

 private:
  bool AtLineEnd() const {
    return at_ >= text_.size() || text_[at_] == '\n' ||
           (text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n'));
  }

  void SkipLine() {
    at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
    ++next_line_;
  }

  absl::Status ReadField(std::string* field) {
    field->clear();
    bool quoted = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        const bool is_doubled = quoted && at_ + 1 < text_.size() && text_[at_ + 1] == '"';
        if (is_doubled) {
          field->push_back(text_[at_++]);
        } else {
          quoted = !quoted;
        }
      } else if (!quoted && (c == separator_ || AtLineEnd())) {
        break;
      } else {
        if (c == '\n') ++next_line_;
        field->push_back(c);
      }
    }
    return quoted ? InvalidArgument("line ", line_, ": a quote is not closed") : absl::OkStatus();
  }

  const absl::string_view text_;
  const char separator_;
  const bool has_comments_;
  size_t at_ = 0;
  int64_t line_ = 0, next_line_ = 1;
};

// What the first pass over a text finds.
struct CsvLayout {
  std::vector<std::string> first;  // the fields of the first line
  int64_t lines = 0;
  bool has_header = false;
  int64_t column = -1;  // that is taken; -1: all
};

bool IsNumber(const std::string& field) {
  TextNumber number;
  bool boolean;
  return ParseNumber(field, &number) || absl::SimpleAtob(field, &boolean);
}

absl::StatusOr<CsvLayout> FindLayout(absl::string_view text, const CsvOptions& options) {
  const bool is_text = options.dtype == DT_STRING;
  CsvScanner scanner(text, options.separator, !is_text);
  CsvLayout layout;
  std::vector<std::string> fields;
  for (;; ++layout.lines) {
    WEIR_ASSIGN_OR_RETURN(const bool more, scanner.Next(&fields));
    if (!more) break;
    if (layout.lines == 0) layout.first = fields;
    if (fields.size() != layout.first.size()) {
      return InvalidArgument("line ", scanner.line(), ": ", fields.size(),
                             " fields, but the first line has ", layout.first.size());
    }
  }
  if (layout.lines == 0) return InvalidArgument("it has no lines");
  const auto found = std::find(layout.first.begin(), layout.first.end(), options.column);
  if (!options.column.empty() && found != layout.first.end()) {
    layout.column = found - layout.first.begin();
  } else if (options.needs_column) {
    return NotFound("no column '", options.column,
                    "'; the first line is: ", absl::StrJoin(layout.first, ", "));
  }
  layout.has_header =
      layout.column >= 0 || (!is_text && layout.lines > 1 &&
                             std::none_of(layout.first.begin(), layout.first.end(), IsNumber));
  return layout;
}

// Stores a field. Returns false if it is not a value of the dtype.
bool StoreField(std::string* field, const CsvOptions& options, int64_t i, Tensor* tensor) {
  if (options.dtype == DT_STRING) {
    tensor->data<std::string>()[i] = std::move(*field);
    return true;
  }
  if (options.dtype == DT_BOOL && absl::SimpleAtob(*field, tensor->data<bool>() + i)) return true;
  TextNumber number;
  if (!ParseNumber(*field, &number)) return false;
  const bool rounds = !number.is_whole && IsFloating(options.dtype);
  return StoreNumber(number.value, rounds ? Rounding::kAllowed : options.rounding, i, tensor);
}

}  // namespace

absl::StatusOr<Tensor> ParseCsv(absl::string_view text, const CsvOptions& options) {
  if (!HasTextForm(options.dtype)) {
    return InvalidArgument("a CSV file cannot hold values of type ", DataTypeName(options.dtype),
                           "; give a .npy file");
  }
  WEIR_ASSIGN_OR_RETURN(const CsvLayout layout, FindLayout(text, options));
  const int64_t rows = layout.lines - (layout.has_header ? 1 : 0);
  const int64_t columns = layout.column >= 0 ? 1 : static_cast<int64_t>(layout.first.size());
  WEIR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({rows, columns}));
  WEIR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(HostAllocator(), options.dtype, shape));
  CsvScanner scanner(text, options.separator, options.dtype != DT_STRING);
  std::vector<std::string> fields;
  if (layout.has_header) WEIR_RETURN_IF_ERROR(scanner.Next(&fields).status());
  for (int64_t row = 0; row < rows; ++row) {
    WEIR_RETURN_IF_ERROR(scanner.Next(&fields).status());
    for (int64_t column = 0; column < columns; ++column) {
      std::string& field = fields[static_cast<size_t>(std::max(layout.column, column))];
      if (StoreField(&field, options, row * columns + column, &tensor)) continue;
      return InvalidArgument("line ", scanner.line(), ": '", field, "' is not a value of type ",
                             DataTypeName(options.dtype));
    }
  }
  return tensor;
}

absl::StatusOr<std::vector<std::string>> CsvFields(absl::string_view text, char separator) {
  std::vector<std::string> fields;
  WEIR_RETURN_IF_ERROR(CsvScanner(text, separator, false).Next(&fields).status());
  return fields;
}

namespace {

void AppendField(const Tensor& tensor, int64_t i, char separator, std::string* out) {
  if (tensor.dtype() != DT_STRING) return AppendNumber(tensor, i, out);
  const std::string& text = tensor.data<std::string>()[i];
  const char special[] = {separator, '"', '\n', '\r', '\0'};
  // An empty line would be skipped, a first # is a comment to others, and a byte order mark no
  // text.
  const bool is_plain = !text.empty() && text.front() != '#' && text.front() != kByteOrderMark[0];
  if (is_plain && text.find_first_of(special) == text.npos) {
    out->append(text);
    return;
  }
  out->push_back('"');
  for (const char c : text) out->append(c == '"' ? 2 : 1, c);
  out->push_back('"');
}

// Returns the number of rows that all columns have.
absl::StatusOr<int64_t> CountRows(const std::vector<std::pair<std::string, Tensor>>& columns) {
  int64_t rows = -1;
  for (const auto& [name, tensor] : columns) {
    if (!HasTextForm(tensor.dtype())) {
      return InvalidArgument("'", name, "' is ", tensor.Description(),
                             ", whose elements have no text form; write a .npy file");
    }
    const int64_t own = tensor.rank() == 0 ? 1 : tensor.dim(0);
    if (rows >= 0 && own != rows) {
      return InvalidArgument("'", name, "' has ", own, " rows, but '", columns[0].first, "' has ",
                             rows, "; write them to separate files");
    }
    rows = own;
  }
  return rows;
}

int64_t RowSize(const Tensor& tensor, int64_t rows) {
  return rows == 0 ? 0 : tensor.num_elements() / rows;
}

}  // namespace

absl::StatusOr<std::string> FormatCsv(const std::vector<std::pair<std::string, Tensor>>& columns,
                                      char separator) {
  WEIR_ASSIGN_OR_RETURN(const int64_t rows, CountRows(columns));
  std::string out;
  const auto end_field = [&] { out.push_back(separator); };
  const auto end_line = [&] {
    if (!out.empty() && out.back() == separator) out.pop_back();
    out.push_back('\n');
  };
  if (columns.size() > 1) {
    for (const auto& [name, tensor] : columns) {
      const int64_t size = RowSize(tensor, rows);
      for (int64_t i = 0; i < size; ++i) {
        AppendField(Tensor::Scalar(size == 1 ? name : absl::StrCat(name, ".", i)), 0, separator,
                    &out);
        end_field();
      }
    }
    end_line();
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (const auto& [name, tensor] : columns) {
      const int64_t size = RowSize(tensor, rows);
      for (int64_t i = 0; i < size; ++i) {
        AppendField(tensor, row * size + i, separator, &out);
        end_field();
      }
    }
    end_line();
  }
  return out;
}

}  // namespace weir::tools
