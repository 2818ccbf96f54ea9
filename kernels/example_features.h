#ifndef WEIR_KERNELS_EXAMPLE_FEATURES_H_
#define WEIR_KERNELS_EXAMPLE_FEATURES_H_

#include <string>
#include <vector>

#include "weir/core/kernel.h"
#include "weir/kernels/example_reader.h"

// What the ops that parse examples ask for, and how they give it. Each op has one or two sets of
// features (SequenceExamples: context and feature lists), whose attributes, inputs and outputs
// begin with the same word ("context_sparse_keys"); a feature of a set comes out as a sparse, a
// dense or a ragged tensor.
namespace weir {

// Which example errors speak of.
struct ExampleLabel {
  absl::string_view name;
  int64_t index;
};

// One feature that comes out dense. Every row has the shape of `row`, or, where the rows of a plain
// example may be several, every so many values are one.
struct DenseFeature {
  Column column;
  Shape row;
  bool several;     // outputs get a dimension for the rows of an example, filled up
  Tensor fallback;  // for examples that lack it (several: what is filled in); may be empty
  bool required;

  // How many rows an example has.
  int64_t NumRows(int64_t example) const;
};

// The features of a set, filled in one run of a kernel.
struct FeatureSet {
  std::string prefix;
  std::vector<Column> sparse, ragged;
  std::vector<DenseFeature> dense;

  // Adds the values that one example has.
  absl::Status AddExample(const FeatureBytes& features, const ExampleLabel& label);
  // Writes the outputs of the set: for a batch, or for the single example that was added.
  absl::Status WriteOutputs(KernelContext& c, bool single) const;
};

// What a node says of a set of features: types and shapes, known when its kernel is made.
class FeatureSignature {
 public:
  // `dense_types`: the name of that attribute. INVALID_ARGUMENT for attributes that contradict each
  // other.
  static absl::StatusOr<FeatureSignature> Of(const KernelInit& init, absl::string_view prefix,
                                             absl::string_view dense_types, bool is_sequence);
  // An empty set, with the keys and default values that the inputs (or attributes) give.
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

// The strings of an argument or attribute, which must be `count`: a list of scalars, one tensor, or
// a list attribute.
absl::StatusOr<std::vector<std::string>> ReadKeys(const KernelContext& c, absl::string_view name,
                                                  size_t count);

}  // namespace weir

#endif  // WEIR_KERNELS_EXAMPLE_FEATURES_H_
