#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"

// The ops of word2vec, compared with TensorFlow 2.21.
namespace weir {
namespace {

using testing::ElementsAre;

std::string TextFile() {
  const char* const folder = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(folder == nullptr ? "/tmp" : folder) + "/text.txt";
  std::ofstream file(path);
  for (int i = 0; i < 12; ++i) {
    file << (i == 0 ? "" : " ") << "the cat sat on the mat and the dog ran";
  }
  return path;
}

Node* AddSkipgram(Graph& g, const std::string& file, int window = 3) {
  g.versions().producer = 18;
  return AddNode(g, "Skipgram", {},
                 {{"filename", file},
                  {"batch_size", 12},
                  {"window_size", window},
                  {"min_count", 13},
                  {"subsample", 0.05f}});
}

TEST(Skipgram, DrawsTensorFlowsPairs) {
  Graph g;
  Node* const node = AddSkipgram(g, TextFile());
  ASSERT_NE(node, nullptr) << g.status();
  Outputs all;
  for (int i = 0; i < node->num_outputs(); ++i) all.push_back(node->output(i));
  ResourceMap resources;
  auto out = Evaluate(g, all, &resources);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<std::string>(), ElementsAre("UNK", "the"));
  EXPECT_THAT((*out)[1].flat<int32_t>(), ElementsAre(84, 36));
  EXPECT_EQ((*out)[2].scalar<int64_t>(), 120);
  EXPECT_EQ((*out)[3].scalar<int32_t>(), 20);
  EXPECT_EQ((*out)[4].scalar<int64_t>(), 758);
  EXPECT_THAT((*out)[5].flat<int32_t>(), ElementsAre(1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0));
  EXPECT_THAT((*out)[6].flat<int32_t>(), ElementsAre(0, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1));
  out = Evaluate(g, all, &resources);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[5].flat<int32_t>(), ElementsAre(0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT((*out)[6].flat<int32_t>(), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1));
}

TEST(Skipgram, NamesAFileThatIsMissingOrTooShort) {
  Graph g;
  const absl::Status missing =
      Evaluate(g, {AddSkipgram(g, "/nonexistent/text")->output(0)}).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  Graph h;
  const absl::Status little = Evaluate(h, {AddSkipgram(h, TextFile(), 13)->output(0)}).status();
  EXPECT_THAT(std::string(little.message()), testing::HasSubstr("contains too little data: 120"));
}

// Trains on the pairs (0, 1) and (3, 2) twice, and returns the embeddings of inputs and outputs.
absl::StatusOr<Tensors> Train(int negative_samples, const std::vector<int32_t>& labels = {1, 2}) {
  Graph g;
  g.versions().producer = 18;
  std::vector<Output> variables;
  std::vector<Operation> assigns;
  for (int k = 0; k < 2; ++k) {
    Tensor value(DT_FLOAT, Shape({4, 2}));
    for (int i = 0; i < 8; ++i) value.data<float>()[i] = static_cast<float>(i) / (k == 0 ? 10 : -5);
    Node* const variable =
        AddNode(g, "VariableV2", {}, {{"dtype", DT_FLOAT}, {"shape", Shape({4, 2})}});
    if (variable == nullptr) return g.status();
    variables.push_back(variable->output(0));
    assigns.push_back(Operation(AddNode("Assign", {variables.back(), Const(g, value)})));
  }
  const Output examples = Const(g, Tensor::Vector<int32_t>({0, 3}));
  const Output label = Const(g, Tensor::Vector<int32_t>(labels));
  Node* const train =
      AddNode("NegTrain", {variables[0], variables[1], examples, label, Const(g, 0.5f)},
              {{"vocab_count", std::vector<int64_t>{10, 5, 3, 1}},
               {"num_negative_samples", negative_samples}});
  WEIR_RETURN_IF_ERROR(g.status());
  ResourceMap resources;
  WEIR_RETURN_IF_ERROR(EvaluateTargets(g, assigns, &resources));
  for (int i = 0; i < 2; ++i)
    WEIR_RETURN_IF_ERROR(EvaluateTargets(g, {Operation(train)}, &resources));
  return Evaluate(g, {variables[0], variables[1]}, &resources);
}

TEST(NegTrain, TakesTensorFlowsStepsTowardLabels) {
  const auto out = Train(0);
  ASSERT_TRUE(out.ok()) << out.status();
  const auto near = [](const std::vector<float>& values) {
    return testing::Pointwise(testing::FloatNear(1e-6f), values);
  };
  EXPECT_THAT((*out)[0].flat<float>(),
              near({-0.1993759f, -0.19285965f, 0.2f, 0.3f, 0.4f, 0.5f, 0.12322289f, 0.09830342f}));
  EXPECT_THAT((*out)[1].flat<float>(), near({0, -0.2f, -0.42481682f, -0.58738124f, -0.48249322f,
                                             -0.63720894f, -1.2f, -1.3999999f}));
}

// TensorFlow draws them unpredictably.
TEST(NegTrain, NegativeSamplesMoveAwayFromTheExamples) {
  const auto without = Train(0), with = Train(20);
  ASSERT_TRUE(without.ok() && with.ok()) << without.status() << with.status();
  // Word 0 is no label, and the most frequent sample; its score with word 3 falls.
  const auto score = [](const Tensors& t) {
    return t[0].data<float>()[6] * t[1].data<float>()[0] +
           t[0].data<float>()[7] * t[1].data<float>()[1];
  };
  EXPECT_NE((*with)[1].data<float>()[1], (*without)[1].data<float>()[1]);
  EXPECT_LT(score(*with), score(*without));
}

TEST(NegTrain, RejectsWordsOutOfRange) {
  EXPECT_THAT(std::string(Train(1, {1, 4}).status().message()),
              testing::HasSubstr("word 4 is not in [0, 4)"));
  EXPECT_THAT(std::string(Train(1, {1}).status().message()),
              testing::HasSubstr("examples.shape == labels.shape"));
}

}  // namespace
}  // namespace weir
