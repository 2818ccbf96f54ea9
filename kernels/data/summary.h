#ifndef WEIR_KERNELS_DATA_SUMMARY_H_
#define WEIR_KERNELS_DATA_SUMMARY_H_

#include <string>

#include "weir/core/runtime/kernel.h"

namespace weir::proto {
class Summary;
}  // namespace weir::proto

// Shared code of the kernels of summary ops.
namespace weir {

// Writes the serialized summary to output 0.
absl::Status SetSummary(KernelContext& ctx, const proto::Summary& summary);
// Returns the tag of a summary with a single tag.
absl::StatusOr<std::string> ScalarTag(const Tensor& tag);

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_SUMMARY_H_
