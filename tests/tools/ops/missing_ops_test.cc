#include <set>
#include <string>

#include "gtest/gtest.h"
#include "weir/core/graph/op.h"
#include "weir/tests/tools/lib/tools_testing.h"
#include "weir/tools/ops/left_out_ops.h"

namespace weir::tools {
namespace {

TEST(MissingOps, EveryOpOfTensorFlowIsThereOrHasAReason) {
  const std::vector<std::string> all = TensorFlowOps();
  const std::map<std::string, std::string> reasons = LeftOutOps();
  EXPECT_GT(all.size(), 1290u);
  for (const std::string& op : all) {
    const bool is_there = BuiltinOps().Find(op) != nullptr;
    EXPECT_TRUE(is_there || reasons.contains(op))
        << op << " is not in Weir, and has no reason in tools/ops/left_out_ops.txt";
    EXPECT_FALSE(is_there && reasons.contains(op))
        << op << " is in Weir: remove it from tools/ops/left_out_ops.txt";
  }
}

TEST(MissingOps, ReasonsAreOfOpsThatTensorFlowHas) {
  const std::vector<std::string> all = TensorFlowOps();
  const std::set<std::string> known(all.begin(), all.end());
  for (const auto& [op, reason] : LeftOutOps()) {
    EXPECT_TRUE(known.contains(op)) << op;
    EXPECT_FALSE(reason.empty()) << op;
  }
}

TEST(MissingOps, AreListedWithReasons) {
  const CommandResult out = Weir({"ops", "--missing"});
  EXPECT_EQ(out.status, 0);
  EXPECT_NE(out.out.find("PyFunc "), std::string::npos) << out.out;
  EXPECT_NE(out.out.find("are left out"), std::string::npos);
  EXPECT_EQ(out.out.find("no reason is stated"), std::string::npos);
}

}  // namespace
}  // namespace weir::tools
