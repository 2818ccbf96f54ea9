#include <algorithm>
#include <utility>

#include "weir/kernels/data/byte_stream.h"
#include "weir/kernels/data/dataset_files.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/string_util.h"

// The dataset of the records of CSV files (RFC 4180). Unlike DecodeCSV, which is given one record
// per string, it finds the ends of records itself, because a quoted field may contain line breaks.
namespace weir {

namespace {

using CsvTypes = List<float, double, int32_t, int64_t, std::string>;

// The op's arguments.
struct CsvFormat {
  char delimiter = ',';
  bool header = false, quotes = true;
  std::string missing;
  std::vector<int64_t> selected, excluded;  // indices of fields, ascending; empty: not given
  DataTypes types;
  Tensors defaults;  // by selected field: a scalar, or an empty vector for a required field

  bool Selects(int64_t field, size_t num_selected) const {
    if (!selected.empty()) return num_selected < selected.size() && selected[num_selected] == field;
    return !std::binary_search(excluded.begin(), excluded.end(), field);
  }
};

// Reads one file.
class CsvReader {
 public:
  CsvReader(std::shared_ptr<const CsvFormat> format, std::unique_ptr<ByteStream> bytes)
      : format_(std::move(format)), bytes_(std::move(bytes)) {}

  MaybeElement Next() {
    if (format_->header && !header_read_) {
      header_read_ = true;
      WEIR_ASSIGN_OR_RETURN(const bool any, ReadRecord(nullptr));
      if (!any || !record_status_.ok()) return InvalidArgument("Can't read header of file");
    }
    Tensors element;
    WEIR_ASSIGN_OR_RETURN(const bool any, ReadRecord(&element));
    if (!any) return std::nullopt;
    WEIR_RETURN_IF_ERROR(record_status_);
    if (element.size() == format_->types.size()) return element;
    return InvalidArgument("Expect ", format_->types.size(), " fields but have ", element.size(),
                           " in record");
  }

 private:
  // A longer field is taken for a missing quote, or for a bomb of compressed zeros.
  static constexpr size_t kMostFieldBytes = size_t{1} << 30;

  // Reads the next record, and appends its selected fields unless `element` is null; returns false
  // at the end of the file. The first error of a field becomes record_status_; the record is read
  // to its end nevertheless, so that the next call returns the next one.
  absl::StatusOr<bool> ReadRecord(Tensors* element) {
    record_status_ = absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(const bool any, Fill());
    if (!any) return false;
    size_t num_selected = 0;
    end_of_record_ = false;
    for (int64_t field = 0; !end_of_record_; ++field) {
      WEIR_ASSIGN_OR_RETURN(const bool more, Fill());
      std::string text;
      end_of_record_ = !more;
      if (more) {
        const bool quoted = format_->quotes && buffer_[place_] == '"';
        WEIR_RETURN_IF_ERROR(quoted ? ReadQuoted(&text) : ReadPlain(&text));
      }
      if (element != nullptr && format_->Selects(field, num_selected))
        Add(num_selected++, std::move(text), element);
    }
    return true;
  }

  void Add(size_t i, std::string text, Tensors* element) {
    if (i >= format_->types.size())
      return Note("Expect ", format_->types.size(), " fields but have more in record");
    if (!record_status_.ok()) return;
    absl::StatusOr<Tensor> value = Parse(i, std::move(text));
    record_status_ = value.status();
    if (value.ok()) element->push_back(*std::move(value));
  }

  // Notes an error of a field. The first one of a record is returned.
  template <class... Args>
  void Note(const Args&... what) {
    if (record_status_.ok()) record_status_ = InvalidArgument(what...);
  }

  // Makes the next character available; returns false at the end of the file.
  absl::StatusOr<bool> Fill() {
    if (place_ < buffer_.size()) return true;
    constexpr size_t kPiece = size_t{1} << 18;
    buffer_.resize(kPiece);
    place_ = 0;
    const absl::StatusOr<size_t> size = bytes_->Read(kPiece, buffer_.data());
    buffer_.resize(size.value_or(0));
    if (!size.ok()) return size.status();
    return *size > 0;
  }

  // Passes a line break, which may have two characters.
  absl::Status PassLineBreak() {
    end_of_record_ = true;
    if (buffer_[place_++] != '\r') return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(const bool more, Fill());
    if (more && buffer_[place_] == '\n') ++place_;
    return absl::OkStatus();
  }

  // Reads a field and what ends it. A quote in the wrong place does not end it.
  absl::Status ReadPlain(std::string* field) {
    for (;;) {
      const size_t begin = place_;
      while (place_ < buffer_.size() && !EndsPlain(buffer_[place_])) ++place_;
      field->append(buffer_, begin, place_ - begin);
      if (field->size() > kMostFieldBytes) return TooLong();
      WEIR_ASSIGN_OR_RETURN(const bool more, Fill());
      end_of_record_ = !more;
      if (!more) return absl::OkStatus();
      const char c = buffer_[place_];
      if (c == '\n' || c == '\r') return PassLineBreak();
      if (!EndsPlain(c)) continue;
      ++place_;
      if (c == format_->delimiter) return absl::OkStatus();
      Note("Unquoted fields cannot have quotes inside");
    }
  }

  bool EndsPlain(char c) const {
    return c == format_->delimiter || c == '\n' || c == '\r' || (format_->quotes && c == '"');
  }

  absl::Status ReadQuoted(std::string* field) {
    ++place_;
    for (bool stray_quote = false;;) {
      WEIR_ASSIGN_OR_RETURN(bool more, Fill());
      end_of_record_ = !more;
      if (!more) {
        Note("Reached end of file without closing quoted field in record");
        return absl::OkStatus();
      }
      if (field->size() > kMostFieldBytes) return TooLong();
      const char c = buffer_[place_++];
      if (c != '"') {
        field->push_back(c);
        continue;
      }
      WEIR_ASSIGN_OR_RETURN(more, Fill());
      end_of_record_ = !more;
      const char next = more ? buffer_[place_] : '\n';
      const bool ends = next == '\n' || next == '\r' || next == format_->delimiter;
      if (ends && stray_quote) Note("Quote inside a string has to be escaped by another quote");
      if (!more) return absl::OkStatus();
      if (next == '\n' || next == '\r') return PassLineBreak();
      ++place_;
      if (ends) return absl::OkStatus();
      field->push_back(next);
      stray_quote = stray_quote || next != '"';
    }
  }

  static absl::Status TooLong() {
    return absl::ResourceExhaustedError(
        absl::StrCat("A field of a CSV file has more than ", kMostFieldBytes, " bytes"));
  }

  absl::StatusOr<Tensor> Parse(size_t i, std::string text) const {
    const DataType type = format_->types[i];
    if (text.empty() || text == format_->missing) {
      if (format_->defaults[i].num_elements() > 0) return format_->defaults[i].Reshaped(Shape());
      return InvalidArgument("Field ", i, " is required but missing in record!");
    }
    Tensor value;
    bool valid = true;
    DispatchType(type, CsvTypes{}, [&]<class T>() {
      T parsed{};
      if constexpr (std::is_same_v<T, std::string>) {
        parsed = std::move(text);
      } else {
        valid = ParseNumber(text, &parsed);
      }
      value = Tensor::Scalar(std::move(parsed));
    });
    if (valid) return value;
    return InvalidArgument("Field ", i, " in record is not a valid ", DataTypeName(type), ": ",
                           text);
  }

  std::shared_ptr<const CsvFormat> format_;
  std::unique_ptr<ByteStream> bytes_;
  std::string buffer_;
  size_t place_ = 0;  // in the buffer
  bool end_of_record_ = false, header_read_ = false;
  absl::Status record_status_;
};

absl::StatusOr<bool> ReadBool(const Tensor& t, absl::string_view argument) {
  WEIR_RETURN_IF_ERROR(CheckRank(t, 0, argument));
  return t.scalar<bool>();
}

// Returns column indices, which must ascend.
absl::StatusOr<std::vector<int64_t>> ReadColumns(const Tensor& t, absl::string_view argument) {
  WEIR_RETURN_IF_ERROR(CheckRank(t, 1, argument));
  const auto flat = t.flat<int64_t>();
  std::vector<int64_t> columns(flat.begin(), flat.end());
  for (size_t k = 1; k < columns.size(); ++k) {
    if (columns[k - 1] >= columns[k])
      return InvalidArgument(argument, " should be strictly increasing indices");
  }
  if (!columns.empty() && columns[0] < 0)
    return InvalidArgument(argument, " should be non-negative indices");
  return columns;
}

absl::StatusOr<CsvFormat> ReadFormat(const KernelContext& c) {
  CsvFormat format;
  WEIR_ASSIGN_OR_RETURN(format.header, ReadBool(c.input(3), "header"));
  WEIR_ASSIGN_OR_RETURN(const std::string delimiter, ReadString(c.input(4), "field_delim"));
  if (delimiter.size() != 1) return InvalidArgument("field_delim should be only 1 char");
  format.delimiter = delimiter[0];
  WEIR_ASSIGN_OR_RETURN(format.quotes, ReadBool(c.input(5), "use_quote_delim"));
  WEIR_ASSIGN_OR_RETURN(format.missing, ReadString(c.input(6), "na_value"));
  format.types = c.node().attr<DataTypes>("output_types");
  WEIR_ASSIGN_OR_RETURN(format.selected, ReadColumns(c.input(7), "select_cols"));
  if (!format.selected.empty() && format.selected.size() != format.types.size())
    return InvalidArgument("select_cols should match output size");
  const auto [first, last] = c.node().InputRange("record_defaults");
  for (int i = first; i < last; ++i) {
    if (c.input(i).rank() > 1)
      return InvalidArgument("Each record default should be at most rank 1");
    if (c.input(i).num_elements() > 1) {
      return InvalidArgument("There should only be 1 default per field but field ", i - first,
                             " has ", c.input(i).num_elements());
    }
    WEIR_ASSIGN_OR_RETURN(format.defaults.emplace_back(), c.Own(c.input(i)));
  }
  if (last < c.num_inputs()) {
    WEIR_ASSIGN_OR_RETURN(format.excluded, ReadColumns(c.input(last), "exclude_cols"));
  }
  if (!format.selected.empty() && !format.excluded.empty())
    return InvalidArgument("Either select_cols or exclude_cols should be empty");
  return format;
}

absl::Status CsvDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> files, ReadStrings(c, 0));
  WEIR_ASSIGN_OR_RETURN(const std::string compression, ReadCompression(c, 1));
  WEIR_ASSIGN_OR_RETURN(const int64_t buffer_size, ReadInt(c.input(2), "buffer_size"));
  if (buffer_size <= 0) return InvalidArgument("buffer_size should be positive");
  WEIR_ASSIGN_OR_RETURN(CsvFormat read, ReadFormat(c));
  const auto format = std::make_shared<const CsvFormat>(std::move(read));
  const auto open = [files, compression, format](size_t i) -> absl::StatusOr<FileElements> {
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> bytes,
                          ByteStream::Open(files[i], compression));
    auto reader = std::make_shared<CsvReader>(format, std::move(bytes));
    return FileElements([reader = std::move(reader)] { return reader->Next(); });
  };
  c.SetOutput(0, DatasetTensor(FilesDataset(files.size(), open)));
  return absl::OkStatus();
}

}  // namespace

void AddDatasetCsvKernels(KernelRegistry* r) {
  for (const char* op : {"CSVDataset", "CSVDatasetV2", "ExperimentalCSVDataset"})
    r->Add(op, kCpu, CsvDataset);
}

}  // namespace weir
