#ifndef WEIR_TESTS_KERNELS_DATA_DATASET_TEST_UTIL_H_
#define WEIR_TESTS_KERNELS_DATA_DATASET_TEST_UTIL_H_

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

namespace weir {

// A graph of datasets, and what a session reads from them. A dataset of numbers has scalar int64
// elements; texts list elements as TensorFlow's Python would print them.
class DatasetTransformsTest : public ::testing::Test {
 protected:
  struct Set {
    Output handle;
    DataTypes types = {DT_INT64};
  };

  Output Number(int64_t n) { return Const(g_, Tensor::Scalar(n)); }
  Output Flag(bool b) { return Const(g_, Tensor::Scalar(b)); }
  Output Numbers(std::initializer_list<int64_t> n) { return Const(g_, Tensor::Vector<int64_t>(n)); }
  static Attrs ElementAttrs(const DataTypes& types) {
    const std::vector<Shape> shapes(types.size(), Shape::UnknownRank());
    return {{"output_types", types}, {"output_shapes", shapes}};
  }
  static Attrs With(Attrs attrs, const Attrs& more) {
    attrs.insert(attrs.end(), more.begin(), more.end());
    return attrs;
  }
  // Adds a dataset op with elements of these types.
  Set Make(const char* op, const std::vector<Arg>& args, const Attrs& more = {},
           const DataTypes& types = {DT_INT64}) {
    return {AddNode(g_, op, args, With(ElementAttrs(types), more))->output(0), types};
  }
  Set Range(int64_t start, int64_t stop, int64_t step = 1) {
    return Make("RangeDataset", {Number(start), Number(stop), Number(step)});
  }
  Set Values(std::initializer_list<int64_t> values) {
    return {AddOp(
        "TensorSliceDataset", {Outputs{Numbers(values)}},
        {{"Toutput_types", DataTypes{DT_INT64}}, {"output_shapes", std::vector<Shape>{Shape()}}})};
  }
  Set Batch(const Set& set, int64_t size) {
    return Make("BatchDatasetV2", {set.handle, Number(size), Flag(false)}, {}, set.types);
  }
  Set Repeat(const Set& set, int64_t count) {
    return Make("RepeatDataset", {set.handle, Number(count)}, {}, set.types);
  }
  // Defines a function of the graph.
  using Build = std::function<Outputs(Graph&, const Outputs&)>;
  FunctionRef Define(const DataTypes& types, const Build& build) {
    Graph body;
    Outputs args;
    for (const DataType type : types) args.push_back(Placeholder(body, type));
    const std::string name = "f" + std::to_string(num_functions_++);
    const absl::Status defined = DefineFunction(g_, name, body, args, build(body, args));
    EXPECT_TRUE(defined.ok()) << defined;
    return FunctionRef{name, nullptr};
  }
  static Output In(Graph& body, int64_t n) { return Const(body, Tensor::Scalar(n)); }
  // A function that makes batches of a dataset, which is its last argument.
  FunctionRef Batching(const DataTypes& types, int64_t size = 100) {
    return Define(types, [size](Graph& body, const Outputs& a) {
      return Outputs{AddOp("BatchDatasetV2",
                           {a.back(), In(body, size), Const(body, Tensor::Scalar(false))},
                           ElementAttrs({DT_INT64}))};
    });
  }
  // Applies a function that returns a dataset to each element.
  Set FlatMap(const Set& set, const FunctionRef& f) {
    return Make("FlatMapDataset", {set.handle, Outputs()}, {{"f", f}});
  }
  // Elements 1 / n, of which 1 / 0 is an error.
  Set Inverse(const Set& set) {
    const FunctionRef f = Define({DT_INT64}, [](Graph& body, const Outputs& a) {
      return Outputs{FloorDiv(In(body, 60), a[0])};
    });
    return Make("MapDataset", {set.handle, Outputs()}, {{"f", f}});
  }

  static std::string Text(const absl::StatusOr<Tensors>& element) {
    if (!element.ok()) {
      if (element.status().code() == absl::StatusCode::kOutOfRange) return "end";
      return std::string(absl::StatusCodeToString(element.status().code())) + ": " +
             std::string(element.status().message());
    }
    std::string text;
    for (const Tensor& t : *element) text += (text.empty() ? "" : " ; ") + t.ToString();
    return text;
  }
  // Returns the elements, up to the end or to `limit`, separated by commas.
  std::string Elements(const Set& set, int limit = 40) {
    const Output iterator =
        AddNode(g_, "IteratorV2", {},
                With(ElementAttrs(set.types), {{"shared_name", ""}, {"container", ""}}))
            ->output(0);
    const Operation start(AddNode("MakeIterator", {set.handle, iterator}));
    Node* const next = AddNode("IteratorGetNext", {iterator}, ElementAttrs(set.types));
    Outputs fetches;
    for (int i = 0; i < next->num_outputs(); ++i) fetches.push_back(next->output(i));
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_, {.num_threads = 2});
    const absl::Status started = session.Run(start);
    if (!started.ok()) return Text(started);
    std::string all;
    for (int i = 0; i < limit; ++i) {
      const std::string text = Text(session.Run(fetches));
      all += (all.empty() ? "" : ", ") + text;
      if (text == "end") break;
    }
    return all;
  }
  // Returns all outputs of the node.
  std::string Fetched(const Output& output) {
    Outputs fetches;
    for (int i = 0; i < output.node->num_outputs(); ++i) fetches.push_back(output.node->output(i));
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_, {.num_threads = 2});
    return Text(session.Run(fetches));
  }
  std::string Cardinality(const Set& set) {
    return Fetched(AddOp("DatasetCardinality", {set.handle}));
  }
  std::string At(const Set& set, int64_t index) {
    return Fetched(
        AddOp("GetElementAtIndex", {set.handle, Number(index)}, ElementAttrs(set.types)));
  }

  Graph g_;
  int num_functions_ = 0;
};

}  // namespace weir

#endif  // WEIR_TESTS_KERNELS_DATA_DATASET_TEST_UTIL_H_
