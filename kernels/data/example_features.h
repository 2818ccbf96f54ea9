#ifndef WEIR_KERNELS_DATA_EXAMPLE_FEATURES_H_
#define WEIR_KERNELS_DATA_EXAMPLE_FEATURES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/runtime/kernel.h"
#include "weir/kernels/data/example_reader.h"

// Features that the parsing ops request, and how the ops output them. Each op has one or two sets
// of features (SequenceExamples: context and feature lists), whose attributes, inputs and outputs
// have a common prefix ("context_sparse_keys"). A feature is output as a sparse, dense or ragged
// tensor.
namespace weir {

// Identifies an example in error messages.
struct ExampleLabel {
  absl::string_view name;
  int64_t index;
};

// A feature that is output as a dense tensor. Each row has the shape `row`. If a non-sequence
// example may have several rows, each row.num_elements() values form one.
struct DenseFeature {
  Column column;
  Shape row;
  int64_t row_size;  // row.num_elements()
  bool several;      // outputs have a padded dimension for an example's rows
  Tensor fallback;   // for examples that lack the feature (several: the padding); may be empty
  bool required;

  // Returns the number of rows of an example.
  int64_t NumRows(int64_t example) const;
};

// Where the outputs of a set go: the number of the first output of each list (-1: there is no such
// list), and a function that allocates an output.
struct FeatureOutputs {
  int sparse_indices = -1, sparse_values = -1, sparse_shapes = -1;
  int dense_values = -1, dense_lengths = -1;
  int ragged_values = -1, row_splits = -1;   // non-sequence
  int outer_splits = -1, inner_splits = -1;  // sequence
  absl::FunctionRef<absl::StatusOr<Tensor*>(int output, const Shape& shape)> allocate;
};

// The features of a set, filled during one run of a kernel.
struct FeatureSet {
  std::string prefix;
  std::shared_ptr<const FeatureKeys> keys;
  std::vector<Column> sparse, ragged;
  std::vector<DenseFeature> dense;

  // Calls fn(Column&) for all columns.
  template <class F>
  void ForEachColumn(F fn) {
    for (DenseFeature& f : dense) fn(f.column);
    for (std::vector<Column>* columns : {&sparse, &ragged}) {
      for (Column& column : *columns) fn(column);
    }
  }
  // Allocates for this many examples.
  void Reserve(int64_t examples);
  // Appends the examples of a set of the same features.
  void Append(const FeatureSet& more);

  // Appends the values of one example.
  absl::Status AddExample(const FeatureBytes& features, const ExampleLabel& label);
  // Writes the set's outputs: for a batch, or for the single example added.
  absl::Status WriteOutputs(KernelContext& c, bool single) const;
  absl::Status WriteOutputs(ThreadPool& pool, const FeatureOutputs& outputs, bool single) const;
};

// A node's description of a feature set: types and shapes, known when the kernel is created.
class FeatureSignature {
 public:
  // `dense_types`: the name of that attribute. INVALID_ARGUMENT if attributes contradict each
  // other.
  static absl::StatusOr<FeatureSignature> Of(const KernelInit& init, absl::string_view prefix,
                                             absl::string_view dense_types, bool is_sequence);
  // Returns an empty set, with the keys and default values from the inputs (or attributes).
  absl::StatusOr<FeatureSet> Begin(const KernelContext& c) const;

 private:
  absl::Status Check(const Node& node) const;
  absl::StatusOr<DenseFeature> BeginDense(const KernelContext& c, const std::string& key,
                                          size_t i) const;

  std::string prefix_;
  bool is_sequence_ = false;
  DataTypes sparse_types_, dense_types_, ragged_types_;
  std::vector<Shape> dense_shapes_;
};

// Parses a vector of examples into the features of a set without examples (parse_example.cc).
absl::StatusOr<FeatureSet> ParseBatch(ThreadPool& pool, const Tensor& serialized,
                                      const FeatureSet& empty);

// Returns the strings of an argument or attribute, which may be a list of scalars, one tensor, or a
// list attribute. There must be `count` of them.
absl::StatusOr<std::vector<std::string>> ReadKeys(const KernelContext& c, absl::string_view name,
                                                  size_t count);

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_EXAMPLE_FEATURES_H_
