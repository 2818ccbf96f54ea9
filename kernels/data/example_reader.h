#ifndef WEIR_KERNELS_DATA_EXAMPLE_READER_H_
#define WEIR_KERNELS_DATA_EXAMPLE_READER_H_

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "weir/core/tensor/tensor.h"

// Parses examples (proto/example.proto) from their bytes directly into columns: lists of the values
// that one feature has in a batch of examples. Skips features that are not requested.
namespace weir {

// The distinct names of the features that an op requests; each has a place.
class FeatureKeys {
 public:
  // Returns the place of the key, a new one if need be.
  int Add(absl::string_view key);
  // Returns -1 for a feature that is not requested.
  int Find(absl::string_view key) const;
  const std::string& key(int place) const { return keys_[place]; }
  size_t size() const { return keys_.size(); }

 private:
  std::vector<std::string> keys_;
  absl::flat_hash_map<std::string, int> places_;
};

// The requested features of one example after the other: the bytes of a Feature, or of a
// FeatureList. Views of the example.
class FeatureBytes {
 public:
  // `keys` outlives this object.
  explicit FeatureBytes(const FeatureKeys& keys) : keys_(keys), bytes_(keys.size()) {}

  // Begins the next example.
  void Clear();
  // Sets the bytes of the feature, if it is requested. A later value replaces an earlier one.
  void Set(absl::string_view key, absl::string_view bytes);
  // The bytes of the feature at this place; null if the example lacks it.
  const absl::string_view* At(int place) const {
    return bytes_[place].data() == nullptr ? nullptr : &bytes_[place];
  }

 private:
  const FeatureKeys& keys_;
  std::vector<absl::string_view> bytes_;
  std::vector<int> guesses_;  // by position in the last example: the place
  size_t position_ = 0;
};

// INVALID_ARGUMENT for bytes that are no Example (SequenceExample).
absl::Status ReadExample(absl::string_view bytes, FeatureBytes* features);
absl::Status ReadSequenceExample(absl::string_view bytes, FeatureBytes* context,
                                 FeatureBytes* feature_lists);

// The values of one feature, of type float, int64 or string, in rows: one row per example; for a
// sequence feature, one row per frame of the example. Strings are views of the examples (and of
// tensors that were added), which outlive the column.
class Column {
 public:
  // INVALID_ARGUMENT for other types.
  static absl::StatusOr<Column> Make(absl::string_view key, DataType dtype, bool is_sequence);

  const std::string& key() const { return key_; }
  // The place of the key in the op's FeatureKeys.
  int place() const { return place_; }
  void set_place(int place) { place_ = place; }
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

  // Allocates for this many examples, of `values` values each.
  void Reserve(int64_t examples, int64_t values);
  // Appends the examples of a column of the same type.
  void Append(const Column& more);

  // Copies values [begin, end) to `out`, starting at element `at`.
  void CopyTo(int64_t begin, int64_t end, Tensor* out, int64_t at) const;

 private:
  using Values =
      std::variant<std::vector<float>, std::vector<int64_t>, std::vector<absl::string_view>>;
  Column(absl::string_view key, DataType dtype, bool is_sequence, Values values)
      : key_(key), dtype_(dtype), is_sequence_(is_sequence), values_(std::move(values)) {}

  std::string key_;
  int place_ = -1;
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
