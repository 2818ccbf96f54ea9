#include "weir/serving/loaded_version.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/record.h"
#include "weir/proto/prediction_log.pb.h"
#include "weir/tests/serving/lib/watched_model.h"

namespace weir::serving {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(LoadedVersion, WarmsUpTheAllowedBatchSizes) {
  WatchedModel model;
  proto::serving::PredictionLog log;
  auto& inputs = *log.mutable_predict_log()->mutable_request()->mutable_inputs();
  TensorToProto(Tensor::Of<float>({1, 2}, {5, 6}), &inputs["x"]);
  ASSERT_TRUE(MakeDirectories(model.directory() + "/assets.extra").ok());
  const auto writer =
      RecordWriter::Create(model.directory() + "/assets.extra/tf_serving_warmup_requests");
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(log.SerializeAsString()).ok());
  ASSERT_TRUE((*writer)->Close().ok());

  const LoadedVersion alone(model.shared(), {});
  ASSERT_TRUE(alone.WarmUpBatches(model.directory()).ok());
  EXPECT_THAT(model.steps(), SizeIs(0));
  const LoadedVersion batched(model.shared(),
                              BatchingOptions{.max_batch_size = 4, .allowed_batch_sizes = {2, 4}});
  ASSERT_TRUE(batched.WarmUpBatches(model.directory()).ok());
  // The request, which is padded to two rows, and the sizes.
  EXPECT_THAT(model.steps(),
              ElementsAre(ElementsAre(5, 5), ElementsAre(5, 5), ElementsAre(5, 5, 5, 5)));
}

}  // namespace
}  // namespace weir::serving
