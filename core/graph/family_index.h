#ifndef WEIR_CORE_GRAPH_FAMILY_INDEX_H_
#define WEIR_CORE_GRAPH_FAMILY_INDEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "weir/core/graph/families.h"

// Generation of a FamilyIndex (core/graph/families.h), for programs that run when Weir is built and
// for tests.
namespace weir {

// For each family, the names of the ops that it has records of.
using FamilyOps = std::vector<std::vector<std::string>>;

class FamilyIndexEntries {
 public:
  explicit FamilyIndexEntries(FamilyOps ops);
  // Returns an index that points into this object.
  FamilyIndex index() const { return {entries_, starts_}; }

 private:
  const FamilyOps ops_;
  std::vector<FamilyIndex::Entry> entries_;
  std::vector<uint16_t> starts_;
};

// Returns C++ source that defines `FamilyIndex weir::<function>()`.
std::string FamilyIndexSource(FamilyOps ops, absl::string_view function);

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_FAMILY_INDEX_H_
