#ifndef WEIR_KERNELS_DATA_SUMMARY_WRITER_H_
#define WEIR_KERNELS_DATA_SUMMARY_WRITER_H_

#include "weir/kernels/data/summary.h"

namespace weir {

// The destination of a kernel's summary: output 0, serialized (SetSummary), or an event file.
using SummarySink = absl::Status (*)(KernelContext& ctx, const proto::Summary& summary);

// The writer is at input 0, the step at input 1.
absl::Status WriteSummaryEvent(KernelContext& ctx, const proto::Summary& summary);

// The index of the first input of the summary: writer ops have their own inputs before it.
inline int FirstInput(SummarySink sink) { return sink == SetSummary ? 0 : 2; }

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_SUMMARY_WRITER_H_
