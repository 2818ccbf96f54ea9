#ifndef WEIR_OPS_CONTAINERS_TABLE_H_
#define WEIR_OPS_CONTAINERS_TABLE_H_

#include <string>
#include <utility>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Lookup tables: from integers or strings to any type. The names of nodes are those that Python
// generates.
namespace WEIR_API weir {

// The part of each line of a text file that is a key or a value.
struct TextFileIndex {
  static constexpr int64_t kLineNumber = -1,
                           kWholeLine = -2;  // other values: a column, counted from 0
};
// A text file whose lines are the elements of a table: `key_index` and `value_index` say which part
// of a line is the key and the value.
struct TextFileTable {
  std::string path;  // read by the initializer
  // Int64 or string; any type that a line can be parsed as.
  DataType key_type = DT_STRING, value_type = DT_INT64;
  int64_t key_index = TextFileIndex::kWholeLine, value_index = TextFileIndex::kLineNumber;
  int64_t vocab_size = -1;  // number of lines to read; -1: all
  char delimiter = '\t';    // of columns
  int64_t offset = 0;       // added to line numbers
};

// The base class of all tables.
class Table {
 public:
  // The table's resource handle.
  const Output& handle() const { return handle_; }
  // Returns the number of elements, an int64 scalar.
  Output Size(absl::string_view name = {}) const;

 protected:
  // For the tables below.
  Table(Output handle, Output default_value, bool is_static)
      : handle_(handle), default_value_(default_value), is_static_(is_static) {}
  // Adds a node with the table as its first input, named after the table and `suffix` unless `name`
  // is given.
  Node* Add(absl::string_view op, std::vector<Arg> args, absl::string_view suffix,
            absl::string_view name, bool colocate, Attrs attrs = {}) const;
  // Returns the values of keys, and all keys and values.
  Output Find(Output keys, absl::string_view name) const;
  std::pair<Output, Output> Exported(DataType key_type, absl::string_view name) const;

  Output handle_, default_value_;  // of the table; the value of keys that are not in it
  bool is_static_;                 // filled once
};

// A table that its initializer fills once. The initializer is also in the collection of table
// initializers. Keys that are not in the table map to `default_value`, a scalar.
class StaticHashTable : public Table {
 public:
  // From tensors of n keys and n values, or from a file that the initializer reads.
  // FAILED_PRECONDITION at run time for a key with two values.
  StaticHashTable(Output keys, Output values, Output default_value, absl::string_view name = {});
  StaticHashTable(const TextFileTable& file, Output default_value, absl::string_view name = {});

  // The operation that fills the table; run it, or TablesInitializer, before the first lookup.
  const Operation& initializer() const { return initializer_; }
  // Returns the values of `keys`, in the shape of `keys`.
  Output Lookup(Output keys, absl::string_view name = {}) const { return Find(keys, name); }
  // Returns all keys and values in insertion order.
  std::pair<Output, Output> Export(absl::string_view name = {}) const {
    return Exported(key_type_, name);
  }

 private:
  Operation initializer_;
  DataType key_type_;
};

// A mutable table. Values have the shape of `default_value`, a scalar or a vector.
class MutableHashTable : public Table {
 public:
  // An empty table with keys of this type (int32, int64 or string).
  MutableHashTable(DataType key_type, Output default_value, absl::string_view name = {});

  // Returns the values of `keys`: the shape of `keys`, and then that of a value.
  Output Lookup(Output keys, absl::string_view name = {}) const { return Find(keys, name); }
  // Insert n keys with their values, replacing older values, or remove keys, ignoring those that
  // are not in the table.
  Operation Insert(Output keys, Output values, absl::string_view name = {}) const;
  Operation Remove(Output keys, absl::string_view name = {}) const;
  // Returns all keys and values; for a DenseHashTable, all buckets.
  std::pair<Output, Output> Export(absl::string_view name = {}) const {
    return Exported(key_type_, name);
  }

 protected:
  // For kinds of mutable tables.
  MutableHashTable(Output handle, DataType key_type, Output default_value)
      : Table(handle, default_value, /*is_static=*/false), key_type_(key_type) {}

 private:
  DataType key_type_;
};

// Options of DenseHashTable.
struct DenseHashTableOptions {
  int64_t initial_num_buckets = 131072;  // a power of two
  float max_load_factor = 0.8f;          // between 0 and 1; the table grows above it
};
// A mutable table that is stored in contiguous memory. Keys may be vectors. Two reserved values,
// which are never keys, mark empty and deleted buckets.
class DenseHashTable : public MutableHashTable {
 public:
  // Keys have the shape and dtype of `empty_key` and `deleted_key`.
  DenseHashTable(Output default_value, Output empty_key, Output deleted_key,
                 const DenseHashTableOptions& options = {}, absl::string_view name = {});
};

// Returns an op that runs the initializers of all tables of the graph.
Operation TablesInitializer(Graph& graph, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_CONTAINERS_TABLE_H_
