#include <algorithm>
#include <random>

#include "gtest/gtest.h"
#include "weir/core/io/file.h"
#include "weir/tests/fuzz/targets.h"
#include "weir/tests/io/test_files.h"

// Every test run feeds the inputs that fuzzers have found, and the seeds of their search, to the
// targets; also damaged versions of them, and noise.
namespace weir::fuzz {
namespace {

class Corpus : public ::testing::TestWithParam<Row> {
 protected:
  static std::vector<std::string> Inputs() {
    const std::string folder = absl::StrCat("tests/fuzz/corpus/", GetParam().name);
    std::vector<std::string> inputs;
    const auto names = Files().List(folder);
    if (!names.ok()) return inputs;
    for (const std::string& name : *names)
      inputs.push_back(testing::ReadBytes(JoinPath(folder, name)));
    return inputs;
  }
};

TEST_P(Corpus, IsAcceptedOrRejected) {
  const std::vector<std::string> inputs = Inputs();
  EXPECT_FALSE(inputs.empty());
  for (const std::string& input : inputs) GetParam().target(input);
}

TEST_P(Corpus, DamagedIsAcceptedOrRejected) {
  std::mt19937 random(1);
  for (const std::string& input : Inputs()) {
    for (int i = 0; i < GetParam().rounds / 4; ++i) {
      std::string damaged = input;
      if (damaged.empty()) continue;
      for (uint32_t k = 0; k <= random() % 3; ++k)
        damaged[random() % damaged.size()] = static_cast<char>(random());
      if (i % 4 == 0) damaged.resize(random() % damaged.size());
      GetParam().target(damaged);
    }
  }
}

TEST_P(Corpus, NoiseIsAcceptedOrRejected) {
  std::mt19937 random(2);
  for (int i = 0; i < GetParam().rounds; ++i) {
    std::string noise(random() % 200, '\0');
    for (char& c : noise) c = static_cast<char>(random() % (i % 2 == 0 ? 256 : 16));
    GetParam().target(noise);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Corpus, ::testing::ValuesIn(Rows()),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace weir::fuzz
