#ifndef WEIR_TESTS_SESSION_LIB_RESUME_MODEL_H_
#define WEIR_TESTS_SESSION_LIB_RESUME_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/containers/queue.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/linalg/linalg.h"
#include "weir/ops/nn/nn.h"
#include "weir/ops/random/random.h"

// A training step with all kinds of state that an exact resume restores.
namespace weir::testing {

// What a step depends on.
struct ResumeParts {
  bool dropout = true, dataset = true, queue = true, local_variable = true;
  int64_t elements = 40;  // of the dataset
  int maps = 1;           // functions of the dataset, with the same nodes
  int64_t seed = 0;       // of everything random; 0: every run is another one
};

inline Output Number(Graph& g, int64_t n) { return Const(g, Tensor::Scalar(n)); }

// A weight that each step changes by numbers from a shuffled and augmented dataset, from a
// shuffling queue, from dropout, and from a variable that no checkpoint has.
class ResumeModel {
 public:
  explicit ResumeModel(const ResumeParts& parts = {}) {
    if (parts.seed != 0) graph.set_seed(parts.seed);
    step = CreateGlobalStep(graph);
    w = MakeVariable(graph, Tensor::Zeros(DT_FLOAT, Shape({kBatch})), {.name = "w"});
    Output change = Ones(graph, Shape({kBatch}));
    if (parts.dataset) change = Add(change, NextBatch(Iterate(Dataset(parts))));
    if (parts.dropout) change = Dropout(change, 0.5);
    if (parts.queue) change = Add(change, Exchanged(change));
    if (parts.local_variable) {
      const Variable seen = MakeVariable(
          graph, 0.f,
          {.name = "seen", .trainable = false, .collections = {{collections::kLocalVariables}}});
      change = Multiply(change, seen.AssignAdd(1.f));
    }
    changed = w.AssignAdd(change);
    const ControlDependencies after(graph, {changed});
    train = step.AssignAdd(1, {.read_value = false, .name = "train"});
  }

  // Returns an iterator over batches of a dataset, which `start` begins.
  Output Iterate(const Output& set) {
    Attrs attrs = ElementAttrs(DT_FLOAT);
    attrs.emplace_back("shared_name", "");
    attrs.emplace_back("container", "");
    const Output iterator = AddOp("IteratorV2", {}, attrs);
    start = Operation(AddNode("MakeIterator", {set, iterator}));
    return iterator;
  }

  static Output NextBatch(const Output& iterator) {
    return Reshape(AddNode("IteratorGetNext", {iterator}, ElementAttrs(DT_FLOAT))->output(0),
                   {kBatch});
  }

  Graph graph;
  Variable step, w;
  Output changed;
  Operation train;
  Operation start;  // initializes the iterator
  Output dataset;

 private:
  static constexpr int kBatch = 8;

  static Attrs ElementAttrs(DataType type) {
    return {{"output_types", DataTypes{type}},
            {"output_shapes", std::vector<Shape>{Shape::UnknownRank()}}};
  }
  // The work makes an element slow enough to be prepared ahead of its consumer.
  FunctionRef DefineAugment(const std::string& name, DataType type, int64_t seed) {
    Graph body;
    if (seed != 0) body.set_seed(seed);
    const Output x = Placeholder(body, type, Shape());
    const Output noise = RandomUniform(body, {64, 64});
    const Output work = ReduceSum(MatMul(noise, MatMul(noise, noise)));
    const Output y = Add(Cast(x, DT_FLOAT), Multiply(work, Const(body, 1e-3f)));
    EXPECT_TRUE(DefineFunction(graph, name, body, {x}, {y}).ok());
    return FunctionRef{name, nullptr};
  }
  Output AddOp(absl::string_view op, const std::vector<Arg>& args, const Attrs& attrs) {
    return AddNode(graph, op, args, attrs)->output(0);
  }
  Output Dataset(const ResumeParts& parts) {
    const Attrs numbers = ElementAttrs(DT_INT64), floats = ElementAttrs(DT_FLOAT);
    Output set =
        AddOp("RangeDataset", {Number(graph, 0), Number(graph, parts.elements), Number(graph, 1)},
              numbers);
    set = AddOp("ShuffleDataset",
                {set, Number(graph, 16), Number(graph, parts.seed), Number(graph, parts.seed)},
                numbers);
    set = AddOp("RepeatDataset", {set, Number(graph, -1)}, numbers);
    for (int i = 0; i < parts.maps; ++i) {
      const FunctionRef augment =
          DefineAugment(absl::StrCat("augment", i), i == 0 ? DT_INT64 : DT_FLOAT, parts.seed);
      Attrs map = floats;
      map.emplace_back("f", augment);
      set = AddOp("ParallelMapDatasetV2", {set, Outputs(), Number(graph, 2)}, map);
    }
    set = AddOp("BatchDataset", {set, Number(graph, kBatch)}, floats);
    dataset = AddOp("PrefetchDataset", {set, Number(graph, 4)}, floats);
    return dataset;
  }
  // Puts a value into a queue and takes another one.
  Output Exchanged(const Output& value) {
    const Queue queue = Queue::RandomShuffle(graph, 100, 0, {DT_FLOAT},
                                             {.shapes = {Shape({kBatch})}}, {}, "waiting");
    const ControlDependencies first(graph, {queue.Enqueue({value})});
    const ControlDependencies second(graph, {queue.Enqueue({Multiply(value, value)})});
    return queue.Dequeue()[0];
  }
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_SESSION_LIB_RESUME_MODEL_H_
