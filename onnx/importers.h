#ifndef WEIR_ONNX_IMPORTERS_H_
#define WEIR_ONNX_IMPORTERS_H_

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "weir/onnx/node_context.h"

namespace weir::onnx {

// The versions of ONNX's own operator set that are imported.
inline constexpr int kMinOpset = 7;
inline constexpr int kMaxOpset = 28;

// An operator that may have any number of inputs.
inline constexpr int kAnyNumber = std::numeric_limits<int>::max();

// How the nodes of one operator are imported.
struct Importer {
  const char* op;              // "Conv"
  int since;                   // the first version of the operator set, from kMinOpset on
  int min_inputs, max_inputs;  // the caller checks them
  // Adds nodes to the graph and returns the results in the context. Errors need not name the node:
  // the caller does. Errors of builders stay in the graph, where the caller finds them.
  absl::Status (*import)(NodeContext& c);
  int until = kMaxOpset;  // the last version that has the operator
};

// The importers by operator.
class ImporterTable {
 public:
  // Returns the table of all importers, which are listed by families.
  static ImporterTable All();

  // The rows outlive the table.
  void Add(absl::Span<const Importer> importers);
  // Returns null if the operator is not imported in any version.
  const Importer* Find(absl::string_view op) const;
  // In alphabetical order.
  std::vector<const Importer*> List() const;

 private:
  std::map<std::string, const Importer*, std::less<>> importers_;
};

// The families, each in a file of its name.
absl::Span<const Importer> ActivationImporters();
absl::Span<const Importer> ArrayImporters();
absl::Span<const Importer> CastImporters();
absl::Span<const Importer> ConvImporters();
absl::Span<const Importer> ElementwiseImporters();
absl::Span<const Importer> FlowImporters();
absl::Span<const Importer> GatherImporters();
absl::Span<const Importer> LossImporters();
absl::Span<const Importer> MatrixImporters();
absl::Span<const Importer> NormImporters();
absl::Span<const Importer> PadImporters();
absl::Span<const Importer> PoolImporters();
absl::Span<const Importer> QuantizeImporters();
absl::Span<const Importer> ReduceImporters();
absl::Span<const Importer> ResizeImporters();
absl::Span<const Importer> RnnImporters();
absl::Span<const Importer> ShapeImporters();

}  // namespace weir::onnx

#endif  // WEIR_ONNX_IMPORTERS_H_
