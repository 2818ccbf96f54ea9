#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weir/session/weir.h"

// Calls every builder that the public headers declare (failed_graph_calls.py) on a graph that has
// an error. It must return, with the promised number of tensors, and the graph must keep its error.
namespace weir {
namespace {

// Returns the number of tensors in a list, or -1 for a type that is not a list.
template <class T>
int Length(const T&) {
  return -1;
}
template <class T>
int Length(const std::vector<T>& list) {
  return static_cast<int>(list.size());
}
int Length(const CtcDecoded& result) { return Length(result.paths); }
int Length(const ClippedGrads& result) { return Length(result.grads); }
int Length(const RaggedTensor& result) { return Length(result.nested_splits); }
int Length(const RnnStep& result) { return Length(result.state); }
int Length(const ParsedExamples& result) { return Length(result.dense) + Length(result.sparse); }
int Length(const DecodedProto& result) { return Length(result.values); }

struct Builder {
  const char* name;
  int (*call)(Graph& graph, Output x, Variable v);
  int length;  // of its list, if it returns one
};

const Builder kBuilders[] = {
#include "tests/ops/failed_graph_calls.inc"
};

std::string NameOf(const testing::TestParamInfo<Builder>& info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return name + std::to_string(info.index);
}

class FailedGraphTest : public testing::TestWithParam<Builder> {
 protected:
  // The tensor and the variable belong to the graph, or are invalid.
  void Call(bool valid) {
    Graph graph;
    Output x;
    Variable v;
    if (valid) {
      x = Const(graph, {1.0f, 2.0f});
      v = MakeVariable(graph, {1.0f, 2.0f});
    }
    graph.Fail(absl::InvalidArgumentError("the first error"));
    if (!valid) v = MakeVariable(graph, {1.0f, 2.0f});
    const int length = GetParam().call(graph, x, v);
    EXPECT_EQ(graph.status().message(), "the first error");
    if (length < 0 || GetParam().length < 0) return;
    if (valid) {
      EXPECT_GE(length, GetParam().length);
    } else {
      EXPECT_EQ(length, GetParam().length);
    }
  }
};

TEST_P(FailedGraphTest, InvalidTensorsReturnInvalidResults) { Call(/*valid=*/false); }
TEST_P(FailedGraphTest, TensorsFromBeforeTheErrorReturnInvalidResults) { Call(/*valid=*/true); }

INSTANTIATE_TEST_SUITE_P(All, FailedGraphTest, testing::ValuesIn(kBuilders), NameOf);

}  // namespace
}  // namespace weir
