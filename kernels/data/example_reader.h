#ifndef WEIR_KERNELS_DATA_EXAMPLE_READER_H_
#define WEIR_KERNELS_DATA_EXAMPLE_READER_H_

#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "weir/core/tensor/tensor.h"

// Parses examples (proto/example.proto) from their bytes directly into columns: lists of the values
// that one feature has in a batch of examples. Skips features that are not requested.
namespace weir {

// An example's features by name: the bytes of a Feature, or of a FeatureList.
using FeatureBytes =
    std::unordered_map<absl::string_view, absl::string_view, absl::Hash<absl::string_view>>;

// INVALID_ARGUMENT for bytes that are no Example (SequenceExample).
absl::Status ReadExample(absl::string_view bytes, FeatureBytes* features);
absl::Status ReadSequenceExample(absl::string_view bytes, FeatureBytes* context,
                                 FeatureBytes* feature_lists);

// The values of one feature, of type float, int64 or string, in rows: one row per example; for a
// sequence feature, one row per frame of the example.
class Column {
 public:
  // INVALID_ARGUMENT for other types.
  static absl::StatusOr<Column> Make(absl::string_view key, DataType dtype, bool is_sequence);

  const std::string& key() const { return key_; }
  DataType dtype() const { return dtype_; }
  bool is_sequence() const { return is_sequence_; }
  int64_t num_values() const;
  // The end offset of each row's values.
  const std::vector<int64_t>& row_ends() const { return row_ends_; }
  // The end offset of each example's rows.
  const std::vector<int64_t>& example_ends() const { return example_ends_; }
  int64_t num_examples() const { return static_cast<int64_t>(example_ends_.size()); }
  int64_t RowBegin(int64_t row) const { return row == 0 ? 0 : row_ends_[row - 1]; }
  int64_t ExampleBegin(int64_t example) const {
    return example == 0 ? 0 : example_ends_[example - 1];
  }

  // Appends the values of a serialized Feature to the current row. Returns false if it has no
  // values of any type. INVALID_ARGUMENT for malformed bytes and for values of another type.
  absl::StatusOr<bool> AddFeature(absl::string_view bytes);
  // Appends the elements of a tensor of the column's type.
  void AddTensor(const Tensor& values);
  // The number of values in the current row.
  int64_t row_size() const { return num_values() - RowBegin(row_ends_.size()); }
  void EndRow() { row_ends_.push_back(num_values()); }
  void EndExample() { example_ends_.push_back(static_cast<int64_t>(row_ends_.size())); }

  // Copies values [begin, end) to `out`, starting at element `at`.
  void CopyTo(int64_t begin, int64_t end, Tensor* out, int64_t at) const;

 private:
  using Values = std::variant<std::vector<float>, std::vector<int64_t>, std::vector<std::string>>;
  Column(absl::string_view key, DataType dtype, bool is_sequence, Values values)
      : key_(key), dtype_(dtype), is_sequence_(is_sequence), values_(std::move(values)) {}

  std::string key_;
  DataType dtype_;
  bool is_sequence_;
  Values values_;
  std::vector<int64_t> row_ends_, example_ends_;
};

// Calls fn(bytes of a Feature) -> Status for each frame of a serialized FeatureList.
absl::Status ForEachFrame(absl::string_view bytes,
                          absl::FunctionRef<absl::Status(absl::string_view)> fn);

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_EXAMPLE_READER_H_
