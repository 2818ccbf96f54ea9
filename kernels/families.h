#ifndef WEIR_KERNELS_FAMILIES_H_
#define WEIR_KERNELS_FAMILIES_H_

#include "weir/core/families.h"
#include "weir/core/kernel.h"
#include "weir/kernels/spans.h"

namespace weir {

// What BuiltinKernels() is made of, but for a GPU's kernels: the functions of kernels/registry.h,
// and the ops that each adds kernels of. An op may be of several families.
absl::Span<const Families<KernelRegistry>::Add> KernelFamilies();
// And what the spans of all ops are (kernels/spans.h).
absl::Span<const Families<SpanTable>::Add> SpanFamilies();

// Written by write_index.cc when Weir is built.
FamilyIndex KernelFamilyIndex();
FamilyIndex SpanFamilyIndex();

}  // namespace weir

#endif  // WEIR_KERNELS_FAMILIES_H_
