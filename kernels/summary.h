#ifndef WEIR_KERNELS_SUMMARY_H_
#define WEIR_KERNELS_SUMMARY_H_

#include <string>

#include "weir/core/kernel.h"

namespace weir::proto {
class Summary;
}  // namespace weir::proto

// What the kernels of summary ops share.
namespace weir {

// Output 0 becomes the summary, serialized.
absl::Status SetSummary(KernelContext& ctx, const proto::Summary& summary);
// The tag of a summary that has one.
absl::StatusOr<std::string> ScalarTag(const Tensor& tag);

}  // namespace weir

#endif  // WEIR_KERNELS_SUMMARY_H_
