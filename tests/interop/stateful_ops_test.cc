#include <fstream>
#include <set>
#include <string>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/op.h"

namespace weir {
namespace {

// The ops that tests/interop/shared_state.txt has a row for: "Name (how) | TensorFlow | Weir".
std::set<std::string> OpsWithARow() {
  std::ifstream file("tests/interop/shared_state.txt");
  std::set<std::string> ops;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    ops.emplace(*absl::StrSplit(line, absl::ByAnyChar(" |")).begin());
  }
  return ops;
}

TEST(StatefulOps, EachHasARowThatSaysWhetherSessionsShareItsState) {
  const std::set<std::string> rows = OpsWithARow();
  ASSERT_FALSE(rows.empty());
  for (const OpSpec* op : BuiltinOps().All()) {
    if (op->stateful()) {
      EXPECT_THAT(rows, testing::Contains(op->name()));
    }
  }
}

TEST(StatefulOps, EachRowIsOfAnOp) {
  for (const std::string& name : OpsWithARow()) EXPECT_NE(BuiltinOps().Find(name), nullptr) << name;
}

}  // namespace
}  // namespace weir
