#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/answers.h"

// WebP files, including malformed ones.
namespace weir {
namespace {

constexpr char kAnswers[] = "tests/kernels/golden/webp_answers.txt";

// The files of the recorded answers, the first of which have no animation.
std::vector<std::string> Files() {
  std::vector<std::string> files;
  for (const Answer& a : ReadAnswers(kAnswers)) {
    if (a.op == "DecodeWebP") files.push_back(a.inputs[0].scalar<std::string>());
  }
  return files;
}

TEST(Webp, MatchesTensorFlow) { ExpectAnswers(kAnswers, 12, 0); }

TEST(Webp, RejectsOtherChannelsAndTypes) {
  const Tensor file = Tensor::Scalar(Files()[0]);  // which has three channels
  const auto words = [&](const char* op, const Attrs& attrs) {
    return std::string(RunFed(op, {file}, attrs).status().message());
  };
  EXPECT_THAT(words("DecodeWebP", {{"channels", 4}}),
              testing::HasSubstr("channels requested does not match input"));
  EXPECT_THAT(words("DecodeImage", {{"channels", 1}}),
              testing::HasSubstr("WebP only supports 3 or 4 channels"));
  EXPECT_THAT(words("DecodeImage", {{"dtype", DT_FLOAT}}),
              testing::HasSubstr("WebP only supports uint8"));
}

// A file that is cut off or damaged is an error or an image, and never more.
TEST(Webp, DamagedFilesDoNoHarm) {
  for (const std::string& file : Files()) {
    for (size_t n = 0; n < file.size(); n += std::max<size_t>(1, file.size() / 64)) {
      const auto cut = RunFed("DecodeImage", {Tensor::Scalar(file.substr(0, n))});
      EXPECT_TRUE(cut.ok() || absl::IsInvalidArgument(cut.status())) << cut.status();
      std::string damaged = file;
      damaged[n] = static_cast<char>(damaged[n] ^ 0x55);
      const auto out = RunFed("DecodeImage", {Tensor::Scalar(damaged)});
      EXPECT_TRUE(out.ok() || absl::IsInvalidArgument(out.status())) << out.status();
    }
  }
}

TEST(Webp, RejectsHugeSizesInHeaders) {
  std::string file = Files().back();  // the canvas of an animation is in bytes 24 to 29
  for (int i = 24; i < 30; ++i) file[i] = i % 3 == 2 ? '\0' : '\xff';
  const auto out = RunFed("DecodeWebP", {Tensor::Scalar(file)});
  EXPECT_TRUE(absl::IsInvalidArgument(out.status())) << out.status();
}

}  // namespace
}  // namespace weir
