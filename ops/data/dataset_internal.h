#ifndef WEIR_OPS_DATA_DATASET_INTERNAL_H_
#define WEIR_OPS_DATA_DATASET_INTERNAL_H_

#include "absl/strings/string_view.h"
#include "weir/core/graph/op.h"
#include "weir/ops/lib/registry.h"

// What the records of datasets and iterators have in common.
namespace weir {

inline constexpr char kDatasetTypes[] = "output_types: list(type) >= 1";
inline constexpr char kDatasetShapes[] = "output_shapes: list(shape) >= 1";
inline constexpr char kDatasetMetadata[] = "metadata: string = ''";

// The outputs have the shapes of the attribute `output_shapes`. INVALID_ARGUMENT unless there are
// as many as outputs.
absl::Status DatasetElementShapes(ShapeContext& c);
// A dataset op: one scalar handle output, scalar numbers as inputs, and no gradient.
OpSpec DatasetOp(absl::string_view name, absl::string_view doc);
// Adds the attributes of the elements' types and shapes.
OpSpec& WithElements(OpSpec& op);
// A dataset op that takes a dataset and other inputs; `attr`, if any, stands before the types.
OpSpec DatasetTransformOp(absl::string_view name, absl::string_view inputs, absl::string_view doc,
                          absl::string_view attr = {});

}  // namespace weir

#endif  // WEIR_OPS_DATA_DATASET_INTERNAL_H_
