#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "weir/kernels/containers/lookup_table.h"
#include "weir/kernels/lib/line_reader.h"

namespace weir {

namespace {

// One of the two tensors read from the file, with one element per line.
class Column {
 public:
  Column(DataType dtype, int64_t index, int64_t offset)
      : dtype_(dtype), index_(index), offset_(offset) {}

  // `what` is "Key" or "Value"; `table` is the word for it in the error text.
  absl::Status Check(const char* what, const char* table) const {
    if (index_ < kWholeLine) return InvalidArgument(what, " index ", index_, " must be >= -2");
    if (index_ == kLineNumber && dtype_ != DT_INT64) {
      return InvalidArgument(what, " index for line number requires table ", table,
                             " dtype of int64, got ", DataTypeName(dtype_));
    }
    if (index_ == kWholeLine && !IsInteger(dtype_) && dtype_ != DT_STRING) {
      return InvalidArgument(what, " index for whole line requires table ", table,
                             " dtype of integer or string, got ", DataTypeName(dtype_));
    }
    return absl::OkStatus();
  }

  absl::Status Add(int64_t number, absl::string_view line,
                   const std::vector<absl::string_view>& fields) {
    if (index_ == kLineNumber) {
      int64s_.push_back(Shifted(number));
      return absl::OkStatus();
    }
    const absl::string_view text = index_ == kWholeLine ? line : fields[index_];
    switch (dtype_) {
      case DT_INT32: {
        int32_t v = 0;
        if (!absl::SimpleAtoi(text, &v)) return NotValid(text, number);
        int32s_.push_back(static_cast<int32_t>(Shifted(v)));
        return absl::OkStatus();
      }
      case DT_INT64:
        return AddNumber(absl::SimpleAtoi<int64_t>, text, number, &int64s_);
      case DT_FLOAT:
        return AddNumber(absl::SimpleAtof, text, number, &floats_);
      case DT_DOUBLE:
        return AddNumber(absl::SimpleAtod, text, number, &doubles_);
      case DT_STRING:
        strings_.emplace_back(text);
        return absl::OkStatus();
      default:
        return InvalidArgument("Data type ", DataTypeName(dtype_), " not supported.");
    }
  }

  Tensor Finish() const {
    switch (dtype_) {
      case DT_INT32:
        return Tensor::Vector<int32_t>(int32s_);
      case DT_INT64:
        return Tensor::Vector<int64_t>(int64s_);
      case DT_FLOAT:
        return Tensor::Vector<float>(floats_);
      case DT_DOUBLE:
        return Tensor::Vector<double>(doubles_);
      default:
        return Tensor::Vector<std::string>(strings_);
    }
  }

 private:
  // The offset may be any number.
  int64_t Shifted(int64_t v) const {
    return static_cast<int64_t>(static_cast<uint64_t>(v) + static_cast<uint64_t>(offset_));
  }
  template <class T, class Parse>
  absl::Status AddNumber(const Parse& parse, absl::string_view text, int64_t number,
                         std::vector<T>* to) const {
    T v{};
    if (!parse(text, &v)) return NotValid(text, number);
    to->push_back(v);
    return absl::OkStatus();
  }
  absl::Status NotValid(absl::string_view text, int64_t number) const {
    return InvalidArgument("Field ", text, " in line ", number, " is not a valid ",
                           DataTypeName(dtype_), ".");
  }

  const DataType dtype_;
  const int64_t index_, offset_;
  std::vector<int32_t> int32s_;
  std::vector<int64_t> int64s_;
  std::vector<float> floats_;
  std::vector<double> doubles_;
  std::vector<std::string> strings_;
};

absl::Status ReadColumns(const std::string& path, const TextFileColumns& columns, Column* keys,
                         Column* values) {
  WEIR_ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path));
  const int64_t last = std::max(columns.key, columns.value);
  std::string line;
  for (int64_t number = 0; number != columns.vocab_size; ++number) {
    WEIR_ASSIGN_OR_RETURN(const bool any, reader.Next(&line));
    if (!any && columns.vocab_size >= 0) {
      return InvalidArgument("Invalid vocab_size in ", path, ": expected ", columns.vocab_size,
                             " but got ", number);
    }
    if (!any) return number > 0 ? absl::OkStatus() : OutOfRange(path, ": the file is empty");
    if (line.empty()) {
      return InvalidArgument("Invalid content in ", path, ": empty line found at line ", number,
                             ".");
    }
    std::vector<absl::string_view> fields;
    if (last >= 0) fields = absl::StrSplit(line, columns.delimiter);
    if (last >= static_cast<int64_t>(fields.size())) {
      return InvalidArgument("Invalid number of columns in ", path, " line ", number, " (", line,
                             ") : expected at least ", last + 1, " got ", fields.size());
    }
    WEIR_RETURN_IF_ERROR(keys->Add(number, line, fields));
    WEIR_RETURN_IF_ERROR(values->Add(number, line, fields));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InitializeFromTextFile(const std::string& path, const TextFileColumns& columns,
                                    LookupTable* table) {
  const LookupTable::Spec& spec = table->spec();
  Column keys(spec.key_type, columns.key, columns.offset);
  Column values(spec.value_type, columns.value, columns.offset);
  WEIR_RETURN_IF_ERROR(keys.Check("Key", "key"));
  WEIR_RETURN_IF_ERROR(values.Check("Value", "value"));
  WEIR_RETURN_IF_ERROR(ReadColumns(path, columns, &keys, &values));
  const Tensor key_tensor = keys.Finish(), value_tensor = values.Finish();
  WEIR_RETURN_IF_ERROR(table->CheckPairs(key_tensor, value_tensor));
  const bool was_filled = table->is_initialized();
  const absl::Status status = table->Import(key_tensor, value_tensor);
  return absl::IsFailedPrecondition(status) && was_filled ? absl::OkStatus() : status;
}

}  // namespace weir
