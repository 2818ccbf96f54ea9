#ifndef WEIR_CORE_FAMILY_INDEX_H_
#define WEIR_CORE_FAMILY_INDEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "weir/core/families.h"

// How an index of families (core/families.h) is made and written: for programs that run when Weir
// is built, and for tests.
namespace weir {

// The names of the ops that a family has records of, family by family.
using FamilyOps = std::vector<std::vector<std::string>>;

class FamilyIndexTable {
 public:
  explicit FamilyIndexTable(FamilyOps ops);
  // Points into this.
  FamilyIndex index() const { return {entries_, starts_}; }

 private:
  const FamilyOps ops_;
  std::vector<FamilyIndex::Entry> entries_;
  std::vector<uint16_t> starts_;
};

// A source that defines `FamilyIndex weir::<function>()`.
std::string FamilyIndexSource(FamilyOps ops, absl::string_view function);

}  // namespace weir

#endif  // WEIR_CORE_FAMILY_INDEX_H_
