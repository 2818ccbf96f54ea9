#include "tests/docs/readme_program.inc"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

TEST(Readme, ProgramFitsALine) {
  Tensor xs(DT_FLOAT, {100}), ys(DT_FLOAT, {100});
  for (int i = 0; i < 100; ++i) {
    xs.data<float>()[i] = static_cast<float>(i % 10 - 4.5) / 3;
    ys.data<float>()[i] = 3 * xs.data<float>()[i] - 1;
  }
  ::testing::internal::CaptureStdout();
  const absl::Status status = Fit(xs, ys);
  const std::string printed = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(printed, HasSubstr("step   0  loss "));
  EXPECT_THAT(printed, HasSubstr("step 100  loss 0.00000\n"));
  EXPECT_THAT(printed, HasSubstr("y = 3.000 x + -1.000"));
}

}  // namespace
}  // namespace weir
