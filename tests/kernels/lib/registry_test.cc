#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weir/kernels/math/families.h"
#include "weir/ops/lib/families.h"

namespace weir {
namespace {

// The contents of an index, as pairs of ops and families.
std::set<std::pair<std::string, int>> Entries(const FamilyIndex& index) {
  std::set<std::pair<std::string, int>> entries;
  for (const FamilyIndex::Entry& e : index.entries) entries.emplace(std::string(e.op), e.family);
  return entries;
}

TEST(BuiltinOps, IndexMatchesTheFamilies) {
  std::set<std::pair<std::string, int>> have;
  for (size_t i = 0; i < OpFamilies().size(); ++i) {
    OpRegistry family;
    OpFamilies()[i](&family);
    for (const OpSpec* op : family.All()) have.emplace(op->name(), static_cast<int>(i));
  }
  EXPECT_GT(have.size(), 900u);
  EXPECT_EQ(Entries(OpFamilyIndex()), have);
}

TEST(BuiltinOps, FindsEveryOpOfEveryFamily) {
  const std::vector<const OpSpec*> all = BuiltinOps().All();
  EXPECT_EQ(all.size(), OpFamilyIndex().entries.size());
  for (const OpSpec* op : all) EXPECT_EQ(BuiltinOps().Find(op->name()), op) << op->name();
}

TEST(BuiltinKernels, IndexMatchesTheFamilies) {
  std::set<std::pair<std::string, int>> have;
  for (size_t i = 0; i < KernelFamilies().size(); ++i) {
    KernelRegistry family;
    KernelFamilies()[i](&family);
    for (const Place place : {kCpu, kGpu}) {
      for (const std::string& op : family.Ops(place)) have.emplace(op, static_cast<int>(i));
    }
  }
  EXPECT_EQ(Entries(KernelFamilyIndex()), have);
}

size_t NumCpuKernels(const KernelRegistry& registry) {
  size_t count = 0;
  for (const std::string& op : registry.Ops(kCpu)) {
    for (const KernelDef* kernel : registry.KernelsOf(op)) count += kernel->place == kCpu;
  }
  return count;
}

TEST(BuiltinKernels, FindsTheKernelsOfAllFamilies) {
  size_t in_families = 0;
  for (const auto add : KernelFamilies()) {
    KernelRegistry family;
    add(&family);
    in_families += NumCpuKernels(family);
  }
  EXPECT_EQ(NumCpuKernels(BuiltinKernels()), in_families);
}

TEST(Loops, IndexMatchesTheFamilies) {
  std::set<std::pair<std::string, int>> have;
  for (size_t i = 0; i < LoopFamilies().size(); ++i) {
    LoopRegistry family;
    LoopFamilies()[i](&family);
    for (const std::string& op : family.Ops()) have.emplace(op, static_cast<int>(i));
  }
  EXPECT_EQ(Entries(LoopFamilyIndex()), have);
}

// The cost of a start: no family loads the records of many other families.
TEST(BuiltinOps, FamiliesAreSmall) {
  std::vector<int> ops(OpFamilies().size());
  for (const FamilyIndex::Entry& e : OpFamilyIndex().entries) ++ops[e.family];
  EXPECT_LT(*std::max_element(ops.begin(), ops.end()), 100);
}

}  // namespace
}  // namespace weir
