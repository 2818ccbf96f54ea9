#ifndef WEIR_KERNELS_SUMMARY_WRITER_H_
#define WEIR_KERNELS_SUMMARY_WRITER_H_

#include "weir/kernels/summary.h"

namespace weir {

// Where a kernel's summary goes: to output 0, serialized (SetSummary), or into a file of events.
using SummarySink = absl::Status (*)(KernelContext& ctx, const proto::Summary& summary);

// The writer is at input 0, the step at input 1.
absl::Status WriteSummaryEvent(KernelContext& ctx, const proto::Summary& summary);

// The first of the inputs that a summary is made of: writers have theirs before them.
inline int FirstInput(SummarySink sink) { return sink == SetSummary ? 0 : 2; }

}  // namespace weir

#endif  // WEIR_KERNELS_SUMMARY_WRITER_H_
