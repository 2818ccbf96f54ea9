#include "weir/tools/data/record_csv.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "weir/proto/example.pb.h"
#include "weir/tools/lib/csv.h"
#include "weir/tools/lib/element_text.h"

namespace weir::tools {

namespace {

using Fields = std::vector<std::string>;
using RowFunction = absl::FunctionRef<absl::StatusOr<bool>(const Fields&)>;

constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";  // as spreadsheets begin a file

bool HasControls(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_iscntrl(c); });
}

// ---- writing

std::string Quoted(const std::string& cell) {
  const bool is_plain = cell.find_first_of(",\"\r\n") == std::string::npos &&
                        cell == absl::StripAsciiWhitespace(cell) &&
                        !absl::StartsWith(cell, kByteOrderMark);
  if (is_plain) return cell;
  return absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
}

// Whether a value can be a cell without brackets, given as JSON.
bool IsPlainText(const std::string& value, absl::string_view as_json) {
  const bool is_utf8 = absl::StartsWith(as_json, "[\"");
  return is_utf8 && !value.empty() && value[0] != '[' && !HasControls(value);
}

std::string CellOf(const proto::Feature& feature) {
  std::string list;
  AppendValues(feature, &list);
  if (NumValues(feature) != 1) return list;
  if (KindOf(feature) == FeatureKind::kBytes) {
    const std::string& value = feature.bytes_list().value(0);
    return IsPlainText(value, list) ? value : list;
  }
  return list.substr(1, list.size() - 2);
}

// ---- reading

// Calls fn for each row, until it returns false; a quoted field may span lines. Empty lines are no
// rows.
absl::StatusOr<bool> ForEachRow(const DataFile& file, const ReadOptions& options, RowFunction fn) {
  std::string row;
  bool is_open = false;
  const auto add = [&](const std::string& line, int64_t number) -> absl::StatusOr<bool> {
    absl::string_view text = line;
    if (number == 1) absl::ConsumePrefix(&text, kByteOrderMark);
    if (!is_open && text.empty()) return true;
    absl::StrAppend(&row, is_open ? "\n" : "", text);
    if (row.size() > options.max_record_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a row has more than ", options.max_record_bytes, " bytes; --max-record-mb raises it"));
    }
    if (std::count(text.begin(), text.end(), '"') % 2 != 0) is_open = !is_open;
    if (is_open) return true;
    WEIR_ASSIGN_OR_RETURN(const Fields fields, CsvFields(std::exchange(row, {}), ','));
    return fn(fields);
  };
  WEIR_ASSIGN_OR_RETURN(const bool goes_on, ForEachLine(file, options, add));
  if (is_open) return InvalidArgument(file.path, ": a quote is not closed");
  return goes_on;
}

absl::StatusOr<std::vector<CsvColumn>> ReadHeader(const Fields& fields, const FeatureKinds& kinds) {
  std::vector<CsvColumn> columns;
  std::set<std::string> names;
  for (const std::string& field : fields) {
    CsvColumn column{.name = field};
    const size_t colon = field.rfind(':');
    if (colon != std::string::npos) {
      const absl::StatusOr<FeatureKind> kind = FeatureKindOf(field.substr(colon + 1));
      if (kind.ok()) column = {field.substr(0, colon), *kind};
    }
    if (const auto known = kinds.find(column.name); known != kinds.end())
      column.kind = known->second;
    if (column.name.empty()) return InvalidArgument("the header has a column without a name");
    std::string json;
    AppendString(column.name, &json);
    if (!absl::StartsWith(json, "\""))  // protobuf has no such names
      return InvalidArgument("the header is not UTF-8: '", absl::CEscape(column.name), "'");
    if (!names.insert(column.name).second)
      return InvalidArgument("the header has two columns '", column.name, "'");
    columns.push_back(std::move(column));
  }
  return columns;
}

// The kind of a column that has cells of two kinds.
FeatureKind Both(FeatureKind a, FeatureKind b) {
  if (a == b || b == FeatureKind::kNone) return a;
  if (a == FeatureKind::kNone) return b;
  return a == FeatureKind::kBytes || b == FeatureKind::kBytes ? FeatureKind::kBytes
                                                              : FeatureKind::kFloat;
}

// Numbers are those of JSON: an identifier such as 007 keeps its zeros.
absl::StatusOr<FeatureKind> KindOfCell(const std::string& cell) {
  static const RE2* const number =
      new RE2(R"(-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|NaN|-?Infinity)");
  if (cell.empty() || cell == "[]") return FeatureKind::kNone;
  if (cell[0] == '[') {
    proto::Feature feature;
    WEIR_RETURN_IF_ERROR(ValuesFromJson(cell, FeatureKind::kNone, &feature));
    return KindOf(feature);
  }
  if (!RE2::FullMatch(cell, *number)) return FeatureKind::kBytes;
  if (cell.find_first_of(".eENI") != std::string::npos) return FeatureKind::kFloat;
  int64_t value;
  return absl::SimpleAtoi(cell, &value) ? FeatureKind::kInt64 : FeatureKind::kBytes;
}

absl::Status ParseCell(const std::string& cell, FeatureKind kind, proto::Feature* feature) {
  if (cell[0] == '[') return ValuesFromJson(cell, kind, feature);
  const auto bad = [&] {
    return InvalidArgument("'", cell, "' is not of kind ", FeatureKindName(kind));
  };
  if (kind == FeatureKind::kInt64) {
    int64_t value;
    if (!absl::SimpleAtoi(cell, &value)) return bad();
    feature->mutable_int64_list()->add_value(value);
  } else if (kind == FeatureKind::kFloat) {
    float value;
    if (!absl::SimpleAtof(cell, &value)) return bad();
    const bool has_digits = cell.find_first_of("0123456789") != std::string::npos;
    if (std::isinf(value) && has_digits) return bad();
    feature->mutable_float_list()->add_value(value);
  } else {
    feature->mutable_bytes_list()->add_value(cell);
  }
  return absl::OkStatus();
}

bool KnowsKinds(const std::vector<CsvColumn>& columns) {
  return std::none_of(columns.begin(), columns.end(),
                      [](const CsvColumn& column) { return column.kind == FeatureKind::kNone; });
}

class CsvReader {
 public:
  CsvReader(const DataFile& file, const FeatureKinds& kinds) : file_(file), kinds_(kinds) {}

  // Reads the header, and the rest of the file if it does not tell all kinds.
  absl::Status ReadColumns(const ReadOptions& options) {
    const auto add = [&](const Fields& fields) -> absl::StatusOr<bool> {
      if (columns_.empty()) {
        WEIR_ASSIGN_OR_RETURN(columns_, ReadHeader(fields, kinds_));
        inferred_.resize(columns_.size());
        return !KnowsKinds(columns_);
      }
      WEIR_RETURN_IF_ERROR(CheckSize(fields));
      for (size_t i = 0; i < fields.size(); ++i) {
        if (columns_[i].kind != FeatureKind::kNone) continue;
        const absl::StatusOr<FeatureKind> kind = KindOfCell(fields[i]);
        if (!kind.ok()) return InColumn(i, kind.status());
        inferred_[i] = Both(inferred_[i], *kind);
      }
      return true;
    };
    WEIR_RETURN_IF_ERROR(ForEachRow(file_, options, add).status());
    for (size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].kind == FeatureKind::kNone) columns_[i].kind = inferred_[i];
    return absl::OkStatus();
  }

  // Calls fn for each row below the header.
  absl::StatusOr<bool> ReadRecords(const ReadOptions& options,
                                   absl::FunctionRef<absl::StatusOr<bool>(std::string)> fn) const {
    bool is_header = true;
    return ForEachRow(file_, options, [&](const Fields& fields) -> absl::StatusOr<bool> {
      if (std::exchange(is_header, false)) return true;
      WEIR_RETURN_IF_ERROR(CheckSize(fields));
      proto::SequenceExample message;
      for (size_t i = 0; i < fields.size(); ++i) {
        if (fields[i].empty()) continue;
        auto& features = *message.mutable_context()->mutable_feature();
        const absl::Status status =
            ParseCell(fields[i], columns_[i].kind, &features[columns_[i].name]);
        if (!status.ok()) return InColumn(i, status);
      }
      return fn(SerializeExampleRecord(message));
    });
  }

 private:
  absl::Status CheckSize(const Fields& fields) const {
    if (fields.size() == columns_.size()) return absl::OkStatus();
    return InvalidArgument(fields.size(), " fields, but the header has ", columns_.size());
  }
  absl::Status InColumn(size_t i, const absl::Status& status) const {
    return Annotate(status, absl::StrCat("column '", columns_[i].name, "'"));
  }

  const DataFile& file_;
  const FeatureKinds& kinds_;
  std::vector<CsvColumn> columns_;
  std::vector<FeatureKind> inferred_;
};

}  // namespace

absl::StatusOr<std::string> CsvHeader(const std::vector<CsvColumn>& columns) {
  Fields cells;
  for (const CsvColumn& column : columns) {
    if (column.name.empty() || HasControls(column.name)) {
      return InvalidArgument("CSV cannot express the name '", absl::CEscape(column.name),
                             "' of a feature; convert to JSON lines");
    }
    if (column.kind == FeatureKind::kNone) {
      return InvalidArgument("feature '", column.name,
                             "' has no list in any record, which CSV cannot express; convert to "
                             "JSON lines");
    }
    cells.push_back(Quoted(absl::StrCat(column.name, ":", FeatureKindName(column.kind))));
  }
  return absl::StrJoin(cells, ",");
}

absl::StatusOr<std::string> CsvFromRecord(const std::vector<CsvColumn>& columns,
                                          absl::string_view record) {
  proto::SequenceExample message;
  const RecordKind kind = ParseExampleRecord(record, &message);
  if (kind != RecordKind::kExample || !HasExactJson(message, kind))
    return InvalidArgument("CSV cannot express this record; convert to JSON lines");
  const auto& features = message.context().feature();
  Fields cells;
  int written = 0;
  for (const CsvColumn& column : columns) {
    const auto found = features.find(column.name);
    cells.emplace_back();
    if (found == features.end()) continue;
    ++written;
    if (KindOf(found->second) != column.kind) {
      return InvalidArgument("feature '", column.name, "' is of kind ",
                             FeatureKindName(KindOf(found->second)), ", but of kind ",
                             FeatureKindName(column.kind),
                             " in other records, which CSV cannot express; convert to JSON lines");
    }
    cells.back() = Quoted(CellOf(found->second));
  }
  if (written < features.size()) return InvalidArgument("the record has features without a column");
  const bool is_blank = cells.size() == 1 && cells[0].empty();  // not an empty line
  return is_blank ? "\"\"" : absl::StrJoin(cells, ",");
}

absl::StatusOr<bool> ForEachCsvRecord(const DataFile& file, const ReadOptions& options,
                                      const FeatureKinds& kinds,
                                      absl::FunctionRef<absl::StatusOr<bool>(std::string)> fn) {
  CsvReader reader(file, kinds);
  WEIR_RETURN_IF_ERROR(reader.ReadColumns(options));
  return reader.ReadRecords(options, fn);
}

}  // namespace weir::tools
