#include <algorithm>

#include "weir/kernels/data/example_features.h"
#include "weir/kernels/data/parsing.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// ParseExample and related ops: parse serialized examples.
namespace weir {

namespace {

// Returns the names of examples: none, or one each.
absl::Status CheckNames(const Tensor& names, const Tensor& serialized) {
  if (names.num_elements() == 0 || names.shape() == serialized.shape()) return absl::OkStatus();
  return InvalidArgument(
      "Expected names have the same shape as serialized: name.shape=", names.shape().ToString(),
      ", serialized.shape=", serialized.shape().ToString());
}

ExampleLabel LabelOf(const Tensor* names, int64_t example) {
  const bool named = names != nullptr && names->num_elements() > 0;
  return {named ? names->data<std::string>()[example] : absl::string_view("<unknown>"), example};
}

absl::Status CheckSerialized(const Tensor& serialized) {
  if (serialized.rank() <= 1) return absl::OkStatus();
  return InvalidArgument("Expected serialized to be a scalar or vector, got shape: ",
                         serialized.shape().ToString());
}

// Returns input 0: a vector of examples, or a single one. `names`: null for ops without such an
// input.
absl::Status ParseExamples(KernelContext& c, const FeatureSignature& signature,
                           const Tensor* names) {
  const Tensor& serialized = c.input(0);
  if (names != nullptr) WEIR_RETURN_IF_ERROR(CheckNames(*names, serialized));
  WEIR_ASSIGN_OR_RETURN(FeatureSet set, signature.Begin(c));
  FeatureBytes features;
  for (int64_t e = 0; e < serialized.num_elements(); ++e) {
    ThrowIfCancelledAt(e);
    features.clear();
    WEIR_RETURN_IF_ERROR(ReadExample(serialized.data<std::string>()[e], &features));
    WEIR_RETURN_IF_ERROR(set.AddExample(features, LabelOf(names, e)));
  }
  return set.WriteOutputs(c, serialized.rank() == 0);
}

// The first version takes a vector, the second also a scalar.
absl::StatusOr<Kernel> MakeParseExample(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(FeatureSignature signature,
                        FeatureSignature::Of(init, "", "Tdense", false));
  const bool scalars = init.node.op_name() == "ParseExampleV2";
  return Kernel([signature, scalars](KernelContext& c) -> absl::Status {
    if (scalars) {
      WEIR_RETURN_IF_ERROR(CheckSerialized(c.input(0)));
    } else {
      WEIR_RETURN_IF_ERROR(CheckRank(c.input(0), 1, "serialized"));
    }
    return ParseExamples(c, signature, &c.input(1));
  });
}

absl::StatusOr<Kernel> MakeParseSingleExample(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(FeatureSignature signature,
                        FeatureSignature::Of(init, "", "Tdense", false));
  return Kernel([signature](KernelContext& c) -> absl::Status {
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(0), 0, "serialized"));
    return ParseExamples(c, signature, nullptr);
  });
}

// ---- SequenceExamples

struct SequenceSignature {
  FeatureSignature context, lists;

  static absl::StatusOr<SequenceSignature> Of(const KernelInit& init) {
    WEIR_ASSIGN_OR_RETURN(FeatureSignature context,
                          FeatureSignature::Of(init, "context_", "Tcontext_dense", false));
    WEIR_ASSIGN_OR_RETURN(
        FeatureSignature lists,
        FeatureSignature::Of(init, "feature_list_", "feature_list_dense_types", true));
    return SequenceSignature{std::move(context), std::move(lists)};
  }
};

// Marks the lists that may be missing: given by one boolean per list, or by the names of some
// lists.
absl::Status ReadMayBeMissing(const KernelContext& c, std::vector<DenseFeature>* lists) {
  constexpr absl::string_view kName = "feature_list_dense_missing_assumed_empty";
  auto names = c.node().attr_or<std::vector<std::string>>(kName, {});
  if (const auto [first, last] = c.node().InputRange(kName); first != last) {
    const Tensor& given = c.input(first);
    WEIR_RETURN_IF_ERROR(CheckRank(given, 1, kName));
    if (given.dtype() == DT_STRING) {
      names.assign(given.flat<std::string>().begin(), given.flat<std::string>().end());
    } else if (given.num_elements() != static_cast<int64_t>(lists->size())) {
      return InvalidArgument("Expected len(", kName, ") to match Nfeature_list_dense");
    } else {
      for (size_t i = 0; i < lists->size(); ++i) {
        if (given.data<bool>()[i]) names.push_back((*lists)[i].column.key());
      }
    }
  }
  for (DenseFeature& f : *lists) {
    f.required = std::find(names.begin(), names.end(), f.column.key()) == names.end();
  }
  return absl::OkStatus();
}

absl::Status ParseSequences(KernelContext& c, const SequenceSignature& signature) {
  const Tensor& serialized = c.input(0);
  const Tensor& names = c.input(c.node().InputRange("debug_name").first);
  WEIR_RETURN_IF_ERROR(CheckNames(names, serialized));
  WEIR_ASSIGN_OR_RETURN(FeatureSet context, signature.context.Begin(c));
  WEIR_ASSIGN_OR_RETURN(FeatureSet lists, signature.lists.Begin(c));
  WEIR_RETURN_IF_ERROR(ReadMayBeMissing(c, &lists.dense));
  FeatureBytes context_bytes, list_bytes;
  for (int64_t e = 0; e < serialized.num_elements(); ++e) {
    ThrowIfCancelledAt(e);
    context_bytes.clear();
    list_bytes.clear();
    WEIR_RETURN_IF_ERROR(
        ReadSequenceExample(serialized.data<std::string>()[e], &context_bytes, &list_bytes));
    WEIR_RETURN_IF_ERROR(context.AddExample(context_bytes, LabelOf(&names, e)));
    WEIR_RETURN_IF_ERROR(lists.AddExample(list_bytes, LabelOf(&names, e)));
  }
  WEIR_RETURN_IF_ERROR(context.WriteOutputs(c, serialized.rank() == 0));
  return lists.WriteOutputs(c, serialized.rank() == 0);
}

absl::StatusOr<Kernel> MakeParseSequences(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(SequenceSignature signature, SequenceSignature::Of(init));
  return Kernel([signature](KernelContext& c) -> absl::Status {
    WEIR_RETURN_IF_ERROR(CheckSerialized(c.input(0)));
    return ParseSequences(c, signature);
  });
}

absl::StatusOr<Kernel> MakeParseSingleSequence(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(SequenceSignature signature, SequenceSignature::Of(init));
  return Kernel([signature](KernelContext& c) -> absl::Status {
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(0), 0, "serialized"));
    return ParseSequences(c, signature);
  });
}

}  // namespace

void AddParseExampleKernels(KernelRegistry* r) {
  r->Add("ParseExample", kCpu, MakeParseExample);
  r->Add("ParseExampleV2", kCpu, MakeParseExample);
  r->Add("ParseSingleExample", kCpu, MakeParseSingleExample);
  r->Add("ParseSequenceExample", kCpu, MakeParseSequences);
  r->Add("ParseSequenceExampleV2", kCpu, MakeParseSequences);
  r->Add("ParseSingleSequenceExample", kCpu, MakeParseSingleSequence);
}

}  // namespace weir
