#ifndef WEIR_KERNELS_LOOKUP_TABLE_H_
#define WEIR_KERNELS_LOOKUP_TABLE_H_

#include <memory>
#include <string>
#include <utility>

#include "weir/core/kernel.h"

namespace weir {

// A table from keys to values, each a tensor of one type and shape. Keys are integers or strings,
// values anything. Thread-safe.
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

  // INVALID_ARGUMENT unless `keys` has keys in its last dimensions, and `values` a value for each.
  absl::Status CheckKeys(const Tensor& keys) const;
  absl::Status CheckPairs(const Tensor& keys, const Tensor& values) const;
  // The same for what Import takes, in the layout that Export gives.
  virtual absl::Status CheckImport(const Tensor& keys, const Tensor& values) const {
    return CheckPairs(keys, values);
  }
  // INVALID_ARGUMENT unless `fallback` is one value, or one for each key.
  absl::Status CheckFallback(const Tensor& keys, const Tensor& fallback) const;
  // The shape of values for these keys.
  Shape ShapeOfValues(const Tensor& keys) const;

  // The arguments of these have been checked. `values` has memory for the values.
  virtual absl::Status Find(const Tensor& keys, const Tensor& fallback, Tensor* values) = 0;
  virtual absl::Status Insert(const Tensor& keys, const Tensor& values) = 0;
  // Keys that are not there do not matter.
  virtual absl::Status Remove(const Tensor& keys) = 0;
  // Replaces everything.
  virtual absl::Status Import(const Tensor& keys, const Tensor& values) = 0;
  virtual absl::StatusOr<std::pair<Tensor, Tensor>> Export() = 0;
  virtual int64_t size() = 0;

  // Tables that are filled once, and only read from then on.
  virtual bool is_initializable() const { return false; }
  virtual bool is_initialized() { return true; }

 protected:
  // How many keys a tensor of them has, and elements a value.
  int64_t CountKeys(const Tensor& keys) const;
  int64_t value_size() const { return value_size_; }

 private:
  const Spec spec_;
  const int64_t value_size_ = spec_.value_shape.num_elements();
};

// A hash table in order of insertion. With `is_static` it is filled once, by Import.
absl::StatusOr<std::shared_ptr<LookupTable>> NewHashTable(LookupTable::Spec spec, bool is_static);

// An open hash table whose keys may be vectors; `empty_key` and `deleted_key` mark what is no key.
struct DenseTableOptions {
  Tensor empty_key;
  Tensor deleted_key;  // of none: nothing can be removed
  int64_t initial_num_buckets = 131072;
  float max_load_factor = 0.8f;
};
absl::StatusOr<std::shared_ptr<LookupTable>> NewDenseTable(LookupTable::Spec spec,
                                                           DenseTableOptions options);

// Which part of a line of a text file is a key or a value: a column, counted from 0, or one of
// these.
inline constexpr int64_t kLineNumber = -1, kWholeLine = -2;
struct TextFileColumns {
  int64_t key = kWholeLine, value = kLineNumber;
  char delimiter = '\t';
  int64_t vocab_size = -1;  // lines to read; -1 is all
  int64_t offset = 0;       // added to line numbers
};
// Fills a table from a file. One that is filled already stays as it is.
absl::Status InitializeFromTextFile(const std::string& path, const TextFileColumns& columns,
                                    LookupTable* table);

}  // namespace weir

#endif  // WEIR_KERNELS_LOOKUP_TABLE_H_
