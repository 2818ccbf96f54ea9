#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"

namespace weir {
namespace {

// A graph that keeps a value, and takes it back by a handle that is fed.
class SessionTensorTest : public testing::Test {
 protected:
  std::string Keep(const char* op = "GetSessionHandle") {
    const auto out = Evaluate(g_, {AddOp(op, {Const<float>(g_, {2}, {3, 4})})}, &resources_);
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) return "";
    return (*out)[0].dtype() == DT_STRING ? (*out)[0].scalar<std::string>()
                                          : (*out)[0].data<ResourceHandle>()->name;
  }
  absl::StatusOr<Tensors> Get(const std::string& handle, DataType dtype = DT_FLOAT) {
    const Output fed = Placeholder(g_, DT_STRING, {});
    const Output value = AddOp("GetSessionTensor", {fed}, {{"dtype", dtype}});
    return Evaluate(g_, {{fed, Tensor::Scalar(handle)}}, {value}, &resources_);
  }
  absl::Status Delete(const std::string& handle) {
    Node* const node = AddNode("DeleteSessionTensor", {Const(g_, handle)});
    return EvaluateTargets(g_, {Operation(node)}, &resources_);
  }

  Graph g_;
  ResourceMap resources_;
};

TEST_F(SessionTensorTest, AValueStaysUntilItIsDeleted) {
  for (const char* op : {"GetSessionHandle", "GetSessionHandleV2"}) {
    const std::string handle = Keep(op);
    EXPECT_NE(handle, Keep(op));
    const auto out = Get(handle);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT((*out)[0].flat<float>(), testing::ElementsAre(3, 4));
    EXPECT_TRUE(Delete(handle).ok());
    EXPECT_THAT(std::string(Get(handle).status().message()),
                testing::HasSubstr("is not in the session store"));
    const absl::Status again = Delete(handle);
    EXPECT_TRUE(absl::IsInvalidArgument(again)) << again;
    EXPECT_THAT(std::string(again.message()), testing::HasSubstr("Failed to delete a tensor"));
  }
}

// Python makes the reading node on the device that the handle ends with.
TEST_F(SessionTensorTest, AHandleNamesNodeNumberAndDevice) {
  EXPECT_THAT(Keep(), testing::MatchesRegex("GetSessionHandle;0;/job:.*/device:CPU:0"));
  EXPECT_THAT(Keep(), testing::MatchesRegex("GetSessionHandle_1;1;/job:.*/device:CPU:0"));
}

TEST_F(SessionTensorTest, TheTypeMustBeThatOfTheValue) {
  EXPECT_THAT(std::string(Get(Keep(), DT_INT32).status().message()),
              testing::HasSubstr("has type float, but dtype is int32"));
}

}  // namespace
}  // namespace weir
