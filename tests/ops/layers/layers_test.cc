#include "weir/ops/layers/layers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/layers/losses.h"
#include "weir/ops/layers/metrics.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"

// Behavior of layers, losses and metrics other than TensorFlow's nodes and values.
namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Output In(Graph& g, const Shape& shape = Shape::UnknownRank(), DataType dtype = DT_FLOAT) {
  return Placeholder(g, dtype, shape);
}

std::vector<std::string> Names(const Variables& variables) {
  std::vector<std::string> names;
  for (const Variable& v : variables) names.push_back(v.op_name());
  return names;
}

Session Start(const Graph& g) {
  EXPECT_TRUE(g.status().ok()) << g.status();
  absl::StatusOr<Session> session = Session::Create(g);
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

void ExpectInvalid(const absl::Status& status, const std::string& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

// ---- layers

TEST(Layers, UseTheDefaultsOfTheVariableScope) {
  Graph g;
  const VariableScope scope(
      g, "scope", {.initializer = Ones(), .regularizer = [](Output w) { return L2Loss(w); }});
  layers::Dense(In(g, {2, 3}), 4);
  ASSERT_TRUE(g.status().ok()) << g.status();
  const Variables all = GlobalVariables(g);
  EXPECT_THAT(Names(all), ElementsAre("scope/dense/kernel", "scope/dense/bias"));
  EXPECT_EQ(all[0].initial_value().node->name(), "scope/dense/kernel/Initializer/ones");
  EXPECT_EQ(losses::GetRegularizationLosses(g).size(), 2u);
}

TEST(Layers, InABranchHaveVariablesAndLossesOutsideOfIt) {
  Graph g;
  const Output pred = In(g, Shape(), DT_BOOL), x = Ones(g, {1, 2});
  const layers::DenseOptions options = {.kernel_initializer = Ones(),
                                        .kernel_regularizer = layers::L2Regularizer(1)};
  const Output y = Cond(
      pred, [&] { return layers::Dense(x, 1, options); },
      [&] {
        return Zeros(g, {1, 1});
      });
  const Output loss = losses::GetRegularizationLoss(g);
  Session session = Start(g);
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g)).ok());
  for (const bool taken : {true, false}) {
    const absl::StatusOr<Tensors> out = session.Run({{pred, Tensor::Scalar(taken)}}, {y, loss});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].data<float>()[0], taken ? 2 : 0);
    EXPECT_EQ((*out)[1].scalar<float>(), 2);
  }
}

TEST(Layers, CallTheCustomGetterOfTheScope) {
  Graph g;
  std::vector<std::string> asked;
  const VariableScope scope(
      g, "scope",
      {.custom_getter = [&](const VariableGetter& next, Graph& graph, absl::string_view name,
                            const VariableOptions& options) {
        asked.emplace_back(name);
        return next(graph, name, options);
      }});
  layers::Conv2D(In(g, {1, 5, 5, 2}), 3, 2);
  EXPECT_THAT(asked, ElementsAre("scope/conv2d/kernel", "scope/conv2d/bias"));
}

TEST(Layers, AreSharedByNameAndReuse) {
  Graph g;
  const Output x = In(g, {2, 3});
  for (int i = 0; i < 2; ++i) layers::Dense(x, 4, {.name = "twin", .reuse = Reuse::kAuto});
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_THAT(Names(GlobalVariables(g)), ElementsAre("twin/kernel", "twin/bias"));
  EXPECT_NE(g.FindNode("twin_1/MatMul"), nullptr);
  layers::Dense(x, 4, {.name = "twin"});
  EXPECT_EQ(g.TakeStatus().code(), absl::StatusCode::kAlreadyExists);
  layers::Dense(x, 4, {.name = "stranger", .reuse = Reuse::kReuse});
  EXPECT_EQ(g.status().code(), absl::StatusCode::kNotFound);
}

TEST(Layers, KeepStatisticsOf16BitInputsInFloat) {
  Graph g;
  const Output y = layers::BatchNormalization(In(g, {-1, 3, 3, 2}, DT_HALF), {.training = true});
  layers::BatchNormalization(In(g, {-1, 2}, DT_HALF), {.training = true});
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_EQ(y.dtype(), DT_HALF);
  for (const Variable& v : GlobalVariables(g)) EXPECT_EQ(v.dtype(), DT_FLOAT) << v.name();
}

TEST(Layers, DropoutByATensorPassesInputsInInference) {
  Graph g;
  g.set_seed(1);
  const Output training = In(g, Shape(), DT_BOOL), x = Ones(g, {100});
  const Output y = layers::Dropout(x, 0.5, {.training = training});
  Session session = Start(g);
  for (const bool on : {false, true}) {
    const absl::StatusOr<Tensors> out = session.Run({{training, Tensor::Scalar(on)}}, {y});
    ASSERT_TRUE(out.ok()) << out.status();
    int zeros = 0, ones = 0, twos = 0;
    for (const float v : (*out)[0].flat<float>()) {
      zeros += v == 0;
      ones += v == 1;
      twos += v == 2;
    }
    EXPECT_EQ(ones, on ? 0 : 100);
    EXPECT_EQ(zeros + twos, on ? 100 : 0);
    EXPECT_EQ(zeros > 20, on);
  }
}

TEST(Layers, EmbeddingLooksUpRows) {
  for (const bool use_resource : {false, true}) {
    Graph g({.use_resource = use_resource});
    const Output y = layers::Embedding(Const<int32_t>(g, {2, 0}), 3, 2,
                                       {.embeddings_initializer = Constant({1, 2, 3, 4, 5, 6})});
    EXPECT_THAT(Names(GlobalVariables(g)), ElementsAre("embedding/embeddings"));
    Session session = Start(g);
    ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g)).ok());
    const absl::StatusOr<Tensors> out = session.Run({y});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT((*out)[0].flat<float>(), ElementsAre(5, 6, 1, 2));
  }
}

TEST(Layers, DepthwiseConvolutionKeepsChannelsApart) {
  Graph g;
  const Output x = Const<float>(g, {1, 2, 2, 2}, {1, 10, 2, 20, 3, 30, 4, 40});
  const Output y = layers::DepthwiseConv2D(x, 2, {.depthwise_initializer = Ones()});
  EXPECT_THAT(Names(GlobalVariables(g)),
              ElementsAre("depthwise_conv2d/depthwise_kernel", "depthwise_conv2d/bias"));
  Session session = Start(g);
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g)).ok());
  const absl::StatusOr<Tensors> out = session.Run({y});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<float>(), ElementsAre(10, 100));
}

TEST(Layers, DilateImagesOfUnknownSize) {
  Tensors results;
  for (const int64_t size : {int64_t{6}, int64_t{-1}}) {
    Graph g;
    const Output x = In(g, {1, size, size, 1});
    const Output y = layers::Conv2D(x, 1, 2, {.dilation_rate = 2, .kernel_initializer = Ones()});
    Tensor image(DT_FLOAT, Shape({1, 6, 6, 1}));
    for (int i = 0; i < 36; ++i) image.data<float>()[i] = static_cast<float>(i * i % 17);
    Session session = Start(g);
    ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g)).ok());
    const absl::StatusOr<Tensors> out = session.Run({{x, image}}, {y});
    ASSERT_TRUE(out.ok()) << out.status();
    results.push_back((*out)[0]);
  }
  EXPECT_EQ(results[0].shape(), Shape({1, 4, 4, 1}));
  EXPECT_TRUE(IdenticalTensors(results[0], results[1]));
}

TEST(Layers, ReportInvalidArguments) {
  const struct {
    void (*build)(Graph&);
    const char* message;
  } rows[] = {
      {[](Graph& g) {
         layers::Dense(In(g, {2, -1}), 3);
       },
       "the last dimension should be defined"},
      {[](Graph& g) {
         layers::Dense(In(g, {2, 3}, DT_INT32), 3);
       },
       "floating-point dtype"},
      {[](Graph& g) {
         layers::Dense(In(g, {2, 3}), 0);
       },
       "units=0"},
      {[](Graph& g) {
         layers::Conv2D(In(g, {2, 3}), 3, 3);
       },
       "conv2d: expected ndim=4"},
      {[](Graph& g) {
         layers::Conv2D(In(g, {2, 9, 9, -1}), 3, 3);
       },
       "channel dimension"},
      {[](Graph& g) {
         layers::Conv2D(In(g, {2, 9, 9, 1}), 0, 3);
       },
       "filters=0"},
      {[](Graph& g) {
         layers::Conv2D(In(g, {2, 9, 9, 1}), 1, {3, 3, 3});
       },
       "kernel_size"},
      {[](Graph& g) {
         layers::Conv2D(In(g, {2, 9, 9, 1}), 1, 0);
       },
       "kernel_size"},
      {[](Graph& g) {
         layers::Conv2D(In(g, {2, 9, 9, 1}), 1, 3, {.padding = "both"});
       },
       "Received: both"},
      {[](Graph& g) {
         layers::Conv2D(In(g, {2, 9, 9, 1}), 1, 3, {.data_format = "NHWC"});
       },
       "Received: NHWC"},
      {[](Graph& g) {
         layers::Conv2D(In(g, {2, 9, 9, 1}), 1, 3, {.strides = 2, .dilation_rate = 2});
       },
       "not supported in conjunction with"},
      {[](Graph& g) {
         layers::Conv2D(In(g, {2, 2, 2, 1}), 1, 5);
       },
       "output size would be negative"},
      {[](Graph& g) {
         layers::BatchNormalization(In(g, {2, -1}));
       },
       "undefined `axis` dimension"},
      {[](Graph& g) {
         layers::BatchNormalization(In(g, {2, 3}), {.axis = 2});
       },
       "Invalid axis 2"},
      {[](Graph& g) {
         layers::Dropout(In(g, {2, 3}), 1.5);
       },
       "between 0 and 1"},
      {[](Graph& g) {
         layers::Dropout(In(g, {2, 3}), 0.5, {.noise_shape = {{1}}});
       },
       "`noise_shape` has 1 dimensions"},
      {[](Graph& g) { layers::Flatten(In(g, Shape())); }, "min_ndim=1"},
      {[](Graph& g) {
         layers::MaxPooling2D(In(g, {2, 9, 9, 1}), 2, 0);
       },
       "strides"},
      {[](Graph& g) { layers::Embedding(In(g, {2}, DT_INT32), 0, 3); }, "should be positive"},
  };
  for (const auto& row : rows) {
    Graph g;
    row.build(g);
    ExpectInvalid(g.status(), row.message);
  }
}

// ---- losses

TEST(Losses, ReportIncompatibleWeights) {
  const struct {
    Shape weights;
    const char* message;
  } rows[] = {
      {Shape({4}), "weights can not be broadcast to values. values.rank=2. weights.rank=1."},
      {Shape({2, 1}), "weights can not be broadcast to values. Mismatch at dim 0."},
  };
  for (const auto& row : rows) {
    Graph g;
    EXPECT_FALSE(
        (losses::MeanSquaredError(In(g, {4, 3}), In(g, {4, 3}), {.weights = In(g, row.weights)}))
            .valid());
    ExpectInvalid(g.status(), row.message);
    EXPECT_TRUE(losses::GetLosses(g).empty());
  }
}

TEST(Losses, RejectWeightsAtRunTimeIfShapesAreUnknown) {
  Graph g;
  const Output x = In(g), w = In(g);
  const Output loss = losses::MeanSquaredError(x, Zeros(g, {2, 3}), {.weights = w});
  Session session = Start(g);
  const auto run = [&](const Shape& weights) {
    Tensor ones(DT_FLOAT, weights);
    std::fill_n(ones.data<float>(), ones.num_elements(), 1.0f);
    Tensor values(DT_FLOAT, Shape({2, 3}));
    std::fill_n(values.data<float>(), 6, 2.0f);
    return session.Run({{x, values}, {w, ones}}, {loss});
  };
  for (const Shape& fits : {Shape(), Shape({1, 1}), Shape({2, 1}), Shape({1, 3}), Shape({2, 3})}) {
    const absl::StatusOr<Tensors> out = run(fits);
    ASSERT_TRUE(out.ok()) << fits.ToString() << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), 4);
  }
  for (const Shape& does_not : {Shape({3}), Shape({1, 1, 1}), Shape({4, 1})}) {
    ExpectInvalid(run(does_not).status(), "weights can not be broadcast to values.");
  }
}

TEST(Losses, AreZeroIfAllWeightsAreZero) {
  Graph g;
  const Output loss = losses::AbsoluteDifference(Ones(g, {3}), Zeros(g, {3}), {.weights = 0.0});
  Session session = Start(g);
  EXPECT_EQ((*session.Run({loss}))[0].scalar<float>(), 0);
}

TEST(Losses, ReportInvalidArguments) {
  Graph g;
  losses::MeanSquaredError(In(g, {4, 3}), In(g, {4, 2}));
  ExpectInvalid(g.TakeStatus(), "Shapes [4,2] and [4,3] are incompatible");
  losses::GetTotalLoss(g);
  ExpectInvalid(g.TakeStatus(), "has no losses");
}

// ---- metrics

TEST(Metrics, StartOverWithTheLocalVariablesInitializer) {
  Graph g;
  const Output x = In(g, {-1});
  const metrics::Metric mean = metrics::Mean(x);
  EXPECT_THAT(Names(LocalVariables(g)), ElementsAre("mean/total", "mean/count"));
  EXPECT_THAT(Names(MetricVariables(g)), ElementsAre("mean/total", "mean/count"));
  EXPECT_TRUE(GlobalVariables(g).empty());
  EXPECT_TRUE(TrainableVariables(g).empty());
  const Operation init = LocalVariablesInitializer(g);
  Session session = Start(g);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(session.Run(init).ok());
    EXPECT_EQ((*session.Run({mean.value}))[0].scalar<float>(), 0);
    for (const float v : {1.0f, 5.0f}) {
      ASSERT_TRUE(session.Run({{x, Tensor::Vector<float>({v})}}, {mean.update_op}).ok());
    }
    EXPECT_EQ((*session.Run({mean.value}))[0].scalar<float>(), 3);
  }
}

TEST(Metrics, RejectOutOfRangeValuesAtRunTime) {
  Graph g;
  const Output labels = In(g, {2}, DT_INT64), classes = In(g, {2}, DT_INT64);
  const Output p = In(g, {2}, DT_DOUBLE);
  const metrics::Metric iou = metrics::MeanIou(labels, classes, 3);
  const metrics::Metric auc = metrics::Auc(Cast(labels, DT_BOOL), p);
  const Operation init = LocalVariablesInitializer(g);
  Session session = Start(g);
  ASSERT_TRUE(session.Run(init).ok());
  const auto iou_of = [&](int64_t label, int64_t prediction) {
    return session
        .Run({{labels, Tensor::Vector<int64_t>({label, 0})},
              {classes, Tensor::Vector<int64_t>({prediction, 0})}},
             {iou.update_op})
        .status();
  };
  EXPECT_TRUE(iou_of(2, 1).ok());
  ExpectInvalid(iou_of(3, 1), "`labels` out of bound");
  ExpectInvalid(iou_of(-1, 1), "`labels` contains negative values");
  ExpectInvalid(iou_of(1, 3), "`predictions` out of bound");
  ExpectInvalid(iou_of(1, -2), "`predictions` contains negative values");
  for (const double bad : {-0.1, 1.5}) {
    ExpectInvalid(session
                      .Run({{labels, Tensor::Vector<int64_t>({0, 1})},
                            {p, Tensor::Vector<double>({0.5, bad})}},
                           {auc.update_op})
                      .status(),
                  "predictions must be in [0, 1]");
  }
}

TEST(Metrics, AdjustUnknownRanksAtRunTime) {
  Graph g;
  const Output x = In(g), w = In(g);
  const metrics::Metric mean = metrics::Mean(x, {.weights = w});
  const Operation init = LocalVariablesInitializer(g);
  Session session = Start(g);
  const Tensor values = Tensor::Of<float>({2, 1}, {1, 5});
  for (const Tensor& weights : {Tensor::Of<float>({2, 1}, {1, 3}), Tensor::Vector<float>({1, 3}),
                                Tensor::Of<float>({2, 1, 1}, {1, 3})}) {
    ASSERT_TRUE(session.Run(init).ok());
    const absl::StatusOr<Tensors> out = session.Run({{x, values}, {w, weights}}, {mean.update_op});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), 4);
  }
}

TEST(Metrics, ConfusionMatrixInfersItsSize) {
  Graph g;
  const Output labels = Const<int32_t>(g, {0, 2, 2}), predictions = Const<int32_t>(g, {1, 2, 0});
  const Output matrix = metrics::ConfusionMatrix(labels, predictions);
  Session session = Start(g);
  const absl::StatusOr<Tensors> out = session.Run({matrix});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].shape(), Shape({3, 3}));
  EXPECT_THAT((*out)[0].flat<int32_t>(), ElementsAre(0, 1, 0, 0, 0, 0, 1, 0, 1));
}

TEST(Metrics, ReportInvalidArguments) {
  const struct {
    void (*build)(Graph&);
    const char* message;
  } rows[] = {
      {[](Graph& g) { metrics::Accuracy(In(g, {4}), In(g, {3})); }, "are incompatible"},
      {[](Graph& g) {
         metrics::Mean(In(g, {4, 3}), {.weights = In(g, {2, 3})});
       },
       "weights can not be broadcast to values."},
      {[](Graph& g) {
         metrics::MeanTensor(In(g, {-1, 3}));
       },
       "static shape"},
      {[](Graph& g) {
         metrics::TruePositives(In(g, {4, 3}), In(g, {4, 3}), {.weights = In(g, {4, 3, 2, 1})});
       },
       "must have rank in (0, 2)"},
      {[](Graph& g) { metrics::Auc(In(g, {4}), In(g, {4}), {}, {.num_thresholds = 1}); },
       "num_thresholds must be between 2 and"},
      {[](Graph& g) { metrics::TruePositivesAtThresholds(In(g, {4}), In(g, {4}), {}); },
       "no thresholds"},
      {[](Graph& g) { metrics::SensitivityAtSpecificity(In(g, {4}), In(g, {4}), 1.5); },
       "`specificity` must be in the range [0, 1]"},
      {[](Graph& g) { metrics::MeanIou(In(g, {4}), In(g, {4}), 0); }, "num_classes"},
      {[](Graph& g) {
         metrics::RecallAtK(In(g, {4}, DT_INT64), In(g, {4, 3}), 0);
       },
       "k=0"},
      {[](Graph& g) {
         metrics::RecallAtK(In(g, {4, 1, 1, 1}, DT_INT64), In(g, {4, 3}), 1);
       },
       "Unexpected labels shape"},
  };
  for (const auto& row : rows) {
    Graph g;
    row.build(g);
    ExpectInvalid(g.status(), row.message);
  }
}

}  // namespace
}  // namespace weir
