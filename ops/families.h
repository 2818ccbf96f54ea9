#ifndef WEIR_OPS_FAMILIES_H_
#define WEIR_OPS_FAMILIES_H_

#include "weir/core/families.h"
#include "weir/core/op.h"

namespace weir {

// What BuiltinOps() is made of: the functions of ops/registry.h, and which ops each adds. An op is
// of one family.
absl::Span<const Families<OpRegistry>::Add> OpFamilies();
// Written by generate_family_index.cc when Weir is built.
FamilyIndex OpFamilyIndex();

}  // namespace weir

#endif  // WEIR_OPS_FAMILIES_H_
