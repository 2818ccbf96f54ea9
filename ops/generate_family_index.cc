#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "weir/core/graph/family_index.h"
#include "weir/ops/lib/families.h"

// Writes the source of OpFamilyIndex() to standard output. Fails if an op is in two families,
// because the second definition would never be found.
namespace weir {

// An empty index for the registry that this program is linked with.
FamilyIndex OpFamilyIndex() { return {}; }

namespace {

int WriteFamilyIndex() {
  FamilyOps ops;
  std::map<std::string, size_t> family_of;
  for (const auto add : OpFamilies()) {
    OpRegistry family;
    add(&family);
    ops.emplace_back();
    for (const OpSpec* op : family.All()) {
      if (const auto [it, is_new] = family_of.emplace(op->name(), ops.size()); !is_new) {
        std::cerr << "'" << op->name() << "' is in two families of ops/registry.cc, numbers "
                  << it->second << " and " << ops.size() << "\n";
        return EXIT_FAILURE;
      }
      ops.back().push_back(op->name());
    }
  }
  std::cout << FamilyIndexSource(std::move(ops), "OpFamilyIndex");
  return EXIT_SUCCESS;
}

}  // namespace

}  // namespace weir

int main() { return weir::WriteFamilyIndex(); }
