#include <iostream>
#include <set>
#include <string>
#include <utility>

#include "weir/core/graph/family_index.h"
#include "weir/kernels/math/families.h"

// Prints the source of KernelFamilyIndex() and LoopFamilyIndex() to standard output.
namespace weir {

// The registries linked into this program call these: they have no index yet.
FamilyIndex KernelFamilyIndex() { return {}; }
FamilyIndex LoopFamilyIndex() { return {}; }

namespace {

FamilyOps OpsOfKernels() {
  FamilyOps ops;
  for (const auto add : KernelFamilies()) {
    KernelRegistry family;
    add(&family);
    std::set<std::string> names;
    for (const Place place : {kCpu, kGpu}) {
      for (std::string& op : family.Ops(place)) names.insert(std::move(op));
    }
    ops.emplace_back(names.begin(), names.end());
  }
  return ops;
}

FamilyOps OpsOfLoops() {
  FamilyOps ops;
  for (const auto add : LoopFamilies()) {
    LoopRegistry family;
    add(&family);
    ops.push_back(family.Ops());
  }
  return ops;
}

}  // namespace

}  // namespace weir

int main() {
  std::cout << weir::FamilyIndexSource(weir::OpsOfKernels(), "KernelFamilyIndex")
            << weir::FamilyIndexSource(weir::OpsOfLoops(), "LoopFamilyIndex");
}
