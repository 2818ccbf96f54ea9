#include <map>
#include <utility>

#include "weir/core/tensor/variant.h"
#include "weir/kernels/data/dataset_files.h"
#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/data/example_features.h"
#include "weir/kernels/lib/arguments.h"

// The dataset that parses batches of serialized examples. An element has one component for each
// feature, in the order of the features' names; those of sparse and ragged tensors are packed into
// variants.
namespace weir {

namespace {

Variant Packed(const char* type_name, Tensors parts) {
  return Variant{.type_name = type_name, .metadata = "", .value = std::move(parts)};
}

// A vector of three variants, for indices, values and shape.
Tensor PackSparse(const Tensors& parts) {
  Tensor packed(DT_VARIANT, Shape({3}));
  for (int i = 0; i < 3; ++i)
    packed.data<Variant>()[i] = Packed("tensorflow::Tensor", {parts[static_cast<size_t>(i)]});
  return packed;
}

// What is parsed, known when the dataset is made.
struct ExampleParser {
  FeatureSet features;  // without examples
  DataTypes ragged_split_types;
  ElementSpec spec;

  // Parses an element of the input: a vector of examples.
  MaybeElement Parse(const DatasetContext& x, const Tensors& element) const {
    if (element.size() != 1 || element[0].dtype() != DT_STRING || element[0].rank() != 1) {
      return InvalidArgument("Expected an element with one vector of strings, got ", element.size(),
                             " components", element.empty() ? "" : ", the first of them ",
                             element.empty() ? "" : element[0].Description());
    }
    WEIR_ASSIGN_OR_RETURN(const FeatureSet parsed, ParseBatch(*x.step.pool, element[0], features));
    WEIR_ASSIGN_OR_RETURN(Tensors components, Components(*x.step.pool, parsed));
    WEIR_RETURN_IF_ERROR(CheckShapes(components));
    return components;
  }

 private:
  // Writes the tensors of the features, and packs them.
  absl::StatusOr<Tensors> Components(ThreadPool& pool, const FeatureSet& parsed) const {
    const size_t num_sparse = parsed.sparse.size(), num_dense = parsed.dense.size(),
                 num_ragged = parsed.ragged.size();
    DataTypes types(num_sparse, DT_INT64);
    for (const Column& column : parsed.sparse) types.push_back(column.dtype());
    types.insert(types.end(), num_sparse, DT_INT64);
    for (const DenseFeature& f : parsed.dense) types.push_back(f.column.dtype());
    for (const Column& column : parsed.ragged) types.push_back(column.dtype());
    types.insert(types.end(), ragged_split_types.begin(), ragged_split_types.end());
    Tensors tensors(types.size());
    const auto allocate = [&](int i, const Shape& shape) -> absl::StatusOr<Tensor*> {
      Tensor& t = tensors[static_cast<size_t>(i)];
      WEIR_ASSIGN_OR_RETURN(
          t, Tensor::Allocate(HostAllocator(), types[static_cast<size_t>(i)], shape));
      return &t;
    };
    const size_t dense = 3 * num_sparse, ragged = dense + num_dense;
    const FeatureOutputs outputs = {.sparse_indices = 0,
                                    .sparse_values = static_cast<int>(num_sparse),
                                    .sparse_shapes = static_cast<int>(2 * num_sparse),
                                    .dense_values = static_cast<int>(dense),
                                    .ragged_values = static_cast<int>(ragged),
                                    .row_splits = static_cast<int>(ragged + num_ragged),
                                    .allocate = allocate};
    WEIR_RETURN_IF_ERROR(parsed.WriteOutputs(pool, outputs, /*single=*/false));
    std::map<std::string, Tensor> by_key;
    for (size_t i = 0; i < num_dense; ++i)
      by_key[parsed.dense[i].column.key()] = tensors[dense + i];
    for (size_t i = 0; i < num_sparse; ++i) {
      by_key[parsed.sparse[i].key()] =
          PackSparse({tensors[i], tensors[num_sparse + i], tensors[2 * num_sparse + i]});
    }
    for (size_t i = 0; i < num_ragged; ++i) {
      by_key[parsed.ragged[i].key()] = Tensor::Scalar(
          Packed("RaggedTensorVariant", {tensors[ragged + num_ragged + i], tensors[ragged + i]}));
    }
    Tensors components;
    for (auto& [key, tensor] : by_key) components.push_back(std::move(tensor));
    return components;
  }

  // A sparse tensor is a vector of three variants here, a ragged one a scalar.
  absl::Status CheckShapes(const Tensors& components) const {
    if (components.size() != spec.types.size()) {
      return InvalidArgument("There are ", components.size(), " features, but ", spec.types.size(),
                             " output_types");
    }
    for (size_t i = 0; i < components.size(); ++i) {
      if (components[i].dtype() != spec.types[i]) {
        return InvalidArgument("Feature ", i, " in the order of names is a tensor of type ",
                               DataTypeName(components[i].dtype()), ", not ",
                               DataTypeName(spec.types[i]), " as output_types has it");
      }
      if (i >= spec.shapes.size()) continue;
      if (spec.shapes[i].IsCompatibleWith(components[i].shape())) continue;
      return InvalidArgument("Feature ", i, " in the order of names has shape ",
                             components[i].shape().ToString(), ", but output_shapes has ",
                             spec.shapes[i].ToString());
    }
    return absl::OkStatus();
  }
};

absl::StatusOr<Kernel> MakeParseExampleDataset(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(FeatureSignature signature,
                        FeatureSignature::Of(init, "", "Tdense", false));
  const auto splits = init.node.attr_or<DataTypes>("ragged_split_types", {});
  if (splits.size() != init.node.attr_or<DataTypes>("ragged_value_types", {}).size())
    return InvalidArgument("len(ragged_value_types) != len(ragged_split_types)");
  const auto policy = init.node.attr_or<std::string>("deterministic", "default");
  if (policy != "default" && policy != "true" && policy != "false")
    return InvalidArgument("Unrecognized determinism policy: ", policy);
  return Kernel(
      [signature, splits, spec = ElementSpec::Of(init.node)](KernelContext& c) -> absl::Status {
        WEIR_ASSIGN_OR_RETURN(const int64_t calls, ReadInt(c.input(1), "num_parallel_calls"));
        if (calls <= 0 && calls != -1)
          return InvalidArgument("num_parallel_calls must be greater than zero.");
        ExampleParser parser{{}, splits, spec};
        WEIR_ASSIGN_OR_RETURN(parser.features, signature.Begin(c));
        for (DenseFeature& f : parser.features.dense) {
          WEIR_ASSIGN_OR_RETURN(f.fallback, c.Own(f.fallback));
        }
        return WrapDataset(c, [parser, calls](std::unique_ptr<DatasetIterator> in) {
          const auto parse = [parser](const DatasetContext& x, const Tensors& element) {
            return parser.Parse(x, element);
          };
          return PrefetchedMap(std::move(in), parse, calls);
        });
      });
}

}  // namespace

void AddDatasetExampleKernels(KernelRegistry* r) {
  for (const char* op :
       {"ExperimentalParseExampleDataset", "ParseExampleDataset", "ParseExampleDatasetV2"})
    r->Add(op, kCpu, MakeParseExampleDataset);
}

}  // namespace weir
