#ifndef WEIR_KERNELS_CONTAINERS_LOOKUP_TABLE_H_
#define WEIR_KERNELS_CONTAINERS_LOOKUP_TABLE_H_

#include <memory>
#include <string>
#include <utility>

#include "weir/core/runtime/kernel.h"

namespace weir {

// A lookup table from keys to values, where all keys, and all values, have one type and shape. Keys
// are integers or strings, values have any type. Thread-safe.
class LookupTable : public Resource {
 public:
  struct Spec {
    std::string name;
    DataType key_type = DT_INVALID, value_type = DT_INVALID;
    Shape key_shape, value_shape;
  };
  explicit LookupTable(Spec spec) : spec_(std::move(spec)) {}

  std::string Describe() const override { return "table '" + spec_.name + "'"; }
  const Spec& spec() const { return spec_; }

  // INVALID_ARGUMENT unless the last dimensions of `keys` match the key shape and `values` has one
  // value per key.
  absl::Status CheckKeys(const Tensor& keys) const;
  absl::Status CheckPairs(const Tensor& keys, const Tensor& values) const;
  // The same for the arguments of Import, in Export's layout.
  virtual absl::Status CheckImport(const Tensor& keys, const Tensor& values) const {
    return CheckPairs(keys, values);
  }
  // INVALID_ARGUMENT unless `fallback` is one value, or one per key.
  absl::Status CheckFallback(const Tensor& keys, const Tensor& fallback) const;
  // Returns the shape of the values of these keys.
  Shape ShapeOfValues(const Tensor& keys) const;

  // The following functions expect validated arguments. `values` is allocated.
  virtual absl::Status Find(const Tensor& keys, const Tensor& fallback, Tensor* values) = 0;
  virtual absl::Status Insert(const Tensor& keys, const Tensor& values) = 0;
  // Ignores missing keys.
  virtual absl::Status Remove(const Tensor& keys) = 0;
  // Replaces the whole contents.
  virtual absl::Status Import(const Tensor& keys, const Tensor& values) = 0;
  virtual absl::StatusOr<std::pair<Tensor, Tensor>> Export() = 0;
  virtual int64_t size() = 0;

  // For tables that are initialized once and then immutable.
  virtual bool is_initializable() const { return false; }
  virtual bool is_initialized() { return true; }

 protected:
  // The number of keys in a tensor, and of elements in a value.
  int64_t CountKeys(const Tensor& keys) const;
  int64_t value_size() const { return value_size_; }

 private:
  const Spec spec_;
  const int64_t value_size_ = spec_.value_shape.num_elements();
};

// Creates a hash table in insertion order. With `is_static`, it is initialized once, by Import.
absl::StatusOr<std::shared_ptr<LookupTable>> NewHashTable(LookupTable::Spec spec, bool is_static);

// Creates an open-addressing hash table. Keys may be vectors; `empty_key` and `deleted_key` mark
// unused buckets.
struct DenseTableOptions {
  Tensor empty_key;
  Tensor deleted_key;  // uninitialized: nothing can be removed
  int64_t initial_num_buckets = 131072;
  float max_load_factor = 0.8f;
};
absl::StatusOr<std::shared_ptr<LookupTable>> NewDenseTable(LookupTable::Spec spec,
                                                           DenseTableOptions options);

// The part of a text file's line that is a key or a value: a column, counted from 0, or one of
// these constants.
inline constexpr int64_t kLineNumber = -1, kWholeLine = -2;
struct TextFileColumns {
  int64_t key = kWholeLine, value = kLineNumber;
  char delimiter = '\t';
  int64_t vocab_size = -1;  // number of lines to read; -1 for all
  int64_t offset = 0;       // added to line numbers
};
// Initializes a table from a file. Does nothing if the table is initialized.
absl::Status InitializeFromTextFile(const std::string& path, const TextFileColumns& columns,
                                    LookupTable* table);

}  // namespace weir

#endif  // WEIR_KERNELS_CONTAINERS_LOOKUP_TABLE_H_
