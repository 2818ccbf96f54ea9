#include "tests/docs/embedding_program.inc"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::ElementsAre;

// One part of the document exports a model; the other part loads and calls it.
TEST(Embedding, ScorerCallsTheModelThatWasExported) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, 2}, "x");
  const Variable w = MakeVariable(g, Tensor::Of<float>({2, 1}, {1, 10}), {.name = "w"});
  const Output scores = MatMul(x, w);
  absl::StatusOr<Session> session = Session::Create(g);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run(GlobalVariablesInitializer(g)).ok());
  const std::string directory = testing::MakeTempDirectory("exported") + "/1";
  const absl::Status exported = Export(*session, g, x, scores, directory);
  ASSERT_TRUE(exported.ok()) << exported;

  const absl::StatusOr<Scorer> scorer = Scorer::Load(directory);
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  const Tensor rows = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) {
        const absl::StatusOr<Tensor> got = scorer->Score(rows);
        ASSERT_TRUE(got.ok()) << got.status();
        EXPECT_THAT(got->flat<float>(), ElementsAre(21, 43));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  Graph frozen;
  ASSERT_TRUE(ImportGraphFile(frozen, directory + ".pb").ok());
  auto other = Session::Create(frozen);
  ASSERT_TRUE(other.ok());
  const auto out = other->Run({{"x", rows}}, {scores.name()}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<float>(), ElementsAre(21, 43));
  EXPECT_TRUE(absl::IsNotFound(Scorer::Load(directory + "/none").status()));
}

}  // namespace
}  // namespace weir
