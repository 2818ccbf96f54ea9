#include "weir/kernels/data/parsing.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/string_util.h"

// Parses records of delimited fields (RFC 4180).
namespace weir {

namespace {

using Fields = List<float, double, int32_t, int64_t, std::string>;

// The kernel's constant settings.
struct Format {
  char delimiter;
  bool quotes;
  std::string missing;
  std::vector<int64_t> columns;  // indices of the selected fields, ascending; empty: all
};

// Splits one record into fields.
class RecordReader {
 public:
  RecordReader(const Format& format, absl::string_view record) : format_(format), record_(record) {}

  // Returns the selected fields. Does not parse fields after the last selected one.
  absl::StatusOr<std::vector<std::string>> Read() {
    while (at_ < record_.size() && !Complete()) {
      if (IsLineBreak(record_[at_])) {
        ++at_;
        continue;
      }
      std::string field;
      if (format_.quotes && record_[at_] == '"') {
        WEIR_RETURN_IF_ERROR(ReadQuoted(&field));
      } else {
        WEIR_RETURN_IF_ERROR(ReadPlain(&field));
      }
      ++at_;  // the delimiter
      Keep(std::move(field));
    }
    if (!Complete() && !record_.empty() && record_.back() == format_.delimiter) Keep("");
    return std::move(fields_);
  }

 private:
  static bool IsLineBreak(char c) { return c == '\n' || c == '\r'; }
  bool Complete() const {
    return !format_.columns.empty() && fields_.size() == format_.columns.size();
  }
  void Keep(std::string field) {
    const bool wanted = format_.columns.empty() || format_.columns[fields_.size()] == column_;
    if (wanted) fields_.push_back(std::move(field));
    ++column_;
  }

  absl::Status ReadPlain(std::string* field) {
    for (; at_ < record_.size() && record_[at_] != format_.delimiter; ++at_) {
      const char c = record_[at_];
      if (IsLineBreak(c) || (format_.quotes && c == '"')) {
        return InvalidArgument("Unquoted fields cannot have quotes/CRLFs inside");
      }
      field->push_back(c);
    }
    return absl::OkStatus();
  }

  // Stops at the delimiter or the end, after the closing quote.
  absl::Status ReadQuoted(std::string* field) {
    for (++at_; at_ < record_.size(); ++at_) {
      if (record_[at_] == '"') {
        ++at_;
        if (at_ == record_.size() || record_[at_] == format_.delimiter) return absl::OkStatus();
        if (record_[at_] != '"') {
          return InvalidArgument("Quote inside a string has to be escaped by another quote");
        }
      }
      field->push_back(record_[at_]);
    }
    return InvalidArgument("Quoted field has to end with quote followed by delim or end");
  }

  const Format& format_;
  const absl::string_view record_;
  size_t at_ = 0;
  int64_t column_ = 0;
  std::vector<std::string> fields_;
};

template <class T>
bool ParseField(std::string& text, T* value) {
  if constexpr (std::is_same_v<T, std::string>) {
    *value = std::move(text);
    return true;
  } else {
    return ParseNumber(text, value);
  }
}

// Parses field f of record i into `value`.
template <class T>
absl::Status ReadField(const Format& format, const Tensor& fallback, int f, int64_t i,
                       std::string& text, T* value) {
  if (text.empty() || text == format.missing) {
    if (fallback.num_elements() == 0) {
      return InvalidArgument("Field ", f, " is required but missing in record ", i, "!");
    }
    *value = fallback.scalar<T>();
    return absl::OkStatus();
  }
  if (ParseField(text, value)) return absl::OkStatus();
  return InvalidArgument("Field ", f, " in record ", i, " is not a valid ",
                         DataTypeName(DataTypeOf<T>::value), ": ", text);
}

absl::Status CheckDefaults(const KernelContext& c) {
  for (int f = 0; f < c.num_outputs(); ++f) {
    const Tensor& fallback = c.input(f + 1);
    if (fallback.rank() > 1) {
      return InvalidArgument("Each record default should be at most rank 1");
    }
    if (fallback.num_elements() > 1) {
      return InvalidArgument("There should only be 1 default per field but field ", f, " has ",
                             fallback.num_elements());
    }
  }
  return absl::OkStatus();
}

absl::Status Decode(KernelContext& c, const Format& format) {
  const Tensor& records = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckDefaults(c));
  std::vector<Tensor*> outputs(static_cast<size_t>(c.num_outputs()));
  for (int f = 0; f < c.num_outputs(); ++f) {
    WEIR_ASSIGN_OR_RETURN(outputs[f], c.AllocateOutput(f, records.shape()));
  }
  for (int64_t i = 0; i < records.num_elements(); ++i) {
    ThrowIfCancelledAt(i);
    WEIR_ASSIGN_OR_RETURN(std::vector<std::string> fields,
                          RecordReader(format, records.data<std::string>()[i]).Read());
    if (fields.size() != outputs.size()) {
      return InvalidArgument("Expect ", outputs.size(), " fields but have ", fields.size(),
                             " in record ", i);
    }
    for (int f = 0; f < c.num_outputs(); ++f) {
      absl::Status status;
      DispatchType(outputs[f]->dtype(), Fields{}, [&]<class T>() {
        status = ReadField(format, c.input(f + 1), f, i, fields[f], outputs[f]->data<T>() + i);
      });
      WEIR_RETURN_IF_ERROR(status);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeDecodeCsv(const KernelInit& init) {
  const auto delimiter = init.attr<std::string>("field_delim");
  if (delimiter.size() != 1) return InvalidArgument("field_delim should be only 1 char");
  const Format format = {.delimiter = delimiter[0],
                         .quotes = init.attr<bool>("use_quote_delim"),
                         .missing = init.attr<std::string>("na_value"),
                         .columns = init.attr<std::vector<int64_t>>("select_cols")};
  const std::vector<int64_t>& columns = format.columns;
  if (!columns.empty() && columns.size() != static_cast<size_t>(init.node.num_outputs())) {
    return InvalidArgument("select_cols should match output size");
  }
  for (size_t k = 1; k < columns.size(); ++k) {
    if (columns[k - 1] >= columns[k]) {
      return InvalidArgument("select_cols should be strictly increasing indices");
    }
  }
  if (!columns.empty() && columns[0] < 0) {
    return InvalidArgument("select_cols should be non-negative indices");
  }
  return Kernel([format](KernelContext& c) -> absl::Status { return Decode(c, format); });
}

}  // namespace

void AddCsvKernels(KernelRegistry* r) { r->Add("DecodeCSV", kCpu, MakeDecodeCsv); }

}  // namespace weir
