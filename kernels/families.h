#ifndef WEIR_KERNELS_FAMILIES_H_
#define WEIR_KERNELS_FAMILIES_H_

#include "weir/core/families.h"
#include "weir/core/kernel.h"
#include "weir/kernels/elementwise_loops.h"

namespace weir {

// What BuiltinKernels() is made of, but for a GPU's kernels: the functions of kernels/registry.h,
// and the ops that each adds kernels of. An op may be of several families.
absl::Span<const Families<KernelRegistry>::Add> KernelFamilies();
// And what the loops of all ops are (kernels/elementwise_loops.h).
absl::Span<const Families<LoopRegistry>::Add> LoopFamilies();

// Written by generate_family_index.cc when Weir is built.
FamilyIndex KernelFamilyIndex();
FamilyIndex LoopFamilyIndex();

}  // namespace weir

#endif  // WEIR_KERNELS_FAMILIES_H_
