#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/serving/batching.h"

namespace weir::serving {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(BatchingParameters, ReadsAFileOfTensorFlowServing) {
  const auto options = ParseBatchingOptions(R"(# comment
    max_batch_size { value: 128 }
    batch_timeout_micros { value: 1500 }
    max_enqueued_batches { value: 20 }
    num_batch_threads { value: 8 }
    thread_pool_name { value: "batch" }
    allowed_batch_sizes: 32
    allowed_batch_sizes: [64, 128]
    pad_variable_length_inputs: true
  )");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->max_batch_size, 128);
  EXPECT_EQ(options->batch_timeout, std::chrono::microseconds(1500));
  EXPECT_EQ(options->max_enqueued_batches, 20);
  EXPECT_EQ(options->num_batch_threads, 8);
  EXPECT_THAT(options->allowed_batch_sizes, ElementsAre(32, 64, 128));
  EXPECT_TRUE(options->pad_variable_length_inputs);
  EXPECT_EQ(options->max_call_rows, 0);
}

TEST(BatchingParameters, DefaultsAreThoseOfTensorFlowServing) {
  const auto options = ParseBatchingOptions("");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->max_batch_size, 1000);
  EXPECT_EQ(options->batch_timeout.count(), 0);
  EXPECT_EQ(options->max_enqueued_batches, 10);
  EXPECT_EQ(options->num_batch_threads, 0);
}

TEST(BatchingParameters, SplittingSetsTheRowsOfACall) {
  const auto off = ParseBatchingOptions(
      "max_batch_size { value: 4 } enable_large_batch_splitting { value: false }");
  ASSERT_TRUE(off.ok()) << off.status();
  EXPECT_EQ(off->max_batch_size, 4);
  EXPECT_EQ(off->max_call_rows, 4);
  const auto on = ParseBatchingOptions(R"(
    max_batch_size { value: 100 }
    enable_large_batch_splitting { value: true }
    max_execution_batch_size { value: 10 }
    allowed_batch_sizes: [5, 10])");
  ASSERT_TRUE(on.ok()) << on.status();
  EXPECT_EQ(on->max_batch_size, 10);
  EXPECT_EQ(on->max_call_rows, 100);
}

TEST(BatchingParameters, MistakesHaveALine) {
  const auto error = [](absl::string_view text) {
    const absl::Status status = ParseBatchingOptions(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(status.message());
  };
  EXPECT_THAT(error("\nbatch_size { value: 3 }"),
              AllOf(StartsWith("line 2: "), HasSubstr("batch_size"), HasSubstr("max_batch_size")));
  EXPECT_THAT(error("max_batch_size: 3"), StartsWith("line 1: "));
  EXPECT_THAT(error("\n\nmax_batch_size { value: 0 }"),
              AllOf(StartsWith("line 3: max_batch_size is 0"), HasSubstr("from 1 to")));
  EXPECT_THAT(error("batch_timeout_micros { value: -1 }"),
              StartsWith("line 1: batch_timeout_micros is -1; expected a number from 0"));
  EXPECT_THAT(error("\nmax_enqueued_batches { value: 0 }"), StartsWith("line 2: max_enqueued"));
  EXPECT_THAT(error("num_batch_threads { value: 0 }"), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(error("num_batch_threads { value: 4294967297 }"), HasSubstr("4294967297"));
  EXPECT_THAT(error("max_batch_size { value: 4 }\nallowed_batch_sizes: 2\nallowed_batch_sizes: 2"),
              AllOf(StartsWith("line 3: "), HasSubstr("monotonically increasing")));
  EXPECT_THAT(error("max_batch_size { value: 8 }\nallowed_batch_sizes: 2\nallowed_batch_sizes: 4"),
              AllOf(StartsWith("line 3: Last entry"), HasSubstr("was 4; expected 8")));
  EXPECT_THAT(error("allowed_batch_sizes: 0"), HasSubstr("entry 0 is 0"));
  EXPECT_THAT(error("max_batch_size { value: 8 }\nallowed_batch_sizes: [2, 4]"),
              HasSubstr("line 2: Last entry"));
  EXPECT_THAT(error("max_batch_size { value: 4 }\nmax_execution_batch_size { value: 8 }"),
              AllOf(StartsWith("line 2: "), HasSubstr("from 1 to 4")));
  EXPECT_THAT(error("enable_large_batch_splitting { value: false }\n"
                    "max_execution_batch_size { value: 8 }"),
              AllOf(StartsWith("line 2: "), HasSubstr("no effect")));
}

}  // namespace
}  // namespace weir::serving
