// Losses, metrics and layers compute the same values as TensorFlow (make_layer_values.py), and the
// gradients of layers match their outputs.

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/layers/layers.h"
#include "weir/ops/layers/losses.h"
#include "weir/ops/layers/metrics.h"
#include "weir/ops/nn/nn.h"
#include "weir/ops/train/optimizers.h"
#include "weir/session/session.h"

namespace weir {
namespace {

// The same numbers as pattern() in the script.
Tensor Pattern(const Shape& shape, int64_t seed, DataType dtype = DT_FLOAT) {
  Tensor t(dtype, shape);
  DispatchType(dtype, List<float, double>{}, [&]<class T>() {
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      const int64_t residue = (i * (17 + 2 * seed) + 5 * seed + 3) % 23;
      t.data<T>()[i] = static_cast<T>(static_cast<double>(residue) / 23.0 - 0.5);
    }
  });
  return t;
}

std::vector<double> Golden(const std::string& name) {
  std::ifstream file("tests/ops/golden/layer_values.txt");
  std::vector<double> values;
  for (std::string line; std::getline(file, line);) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    if (parts.first != name) continue;
    std::istringstream text(parts.second);
    for (double v; text >> v;) values.push_back(v);
  }
  return values;
}

void Append(const Tensor& t, std::vector<double>* values) {
  DispatchType(t.dtype(), List<float, double, int64_t>{}, [&]<class T>() {
    for (const T v : t.flat<T>()) values->push_back(static_cast<double>(v));
  });
}

void ExpectGolden(const std::string& name, const std::vector<double>& values,
                  double tolerance = 2e-5) {
  const std::vector<double> golden = Golden(name);
  ASSERT_FALSE(golden.empty()) << name;
  ASSERT_EQ(values.size(), golden.size()) << name;
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], golden[i], tolerance * (1 + std::abs(golden[i])))
        << name << ", value " << i;
  }
}

// Runs the graph's initializers in a new session.
Session Start(const Graph& g, const Operation& init) {
  EXPECT_TRUE(g.status().ok()) << g.status();
  absl::StatusOr<Session> session = Session::Create(g);
  EXPECT_TRUE(session.ok()) << session.status();
  if (init.valid()) {
    EXPECT_TRUE(session->Run(init).ok());
  }
  return *std::move(session);
}

Tensors RunOk(Session& session, const Feeds& feeds, const Outputs& fetches,
              const std::vector<Operation>& targets = {}) {
  absl::StatusOr<Tensors> out = session.Run(feeds, fetches, targets);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *std::move(out) : Tensors(fetches.size(), Tensor(DT_FLOAT, Shape({0})));
}

// ---- losses

const Tensor& Weights() {
  static const auto* const w = new Tensor(Tensor::Of<float>({4, 1}, {1, 0, 0.5f, 2}));
  return *w;
}

TEST(LossValues, MatchTensorFlow) {
  using losses::LossOptions, losses::Reduction;
  Graph g;
  const Output x = Const(g, Pattern({4, 3}, 1)), y = Const(g, Pattern({4, 3}, 2)) + 0.5;
  const Output positive = Abs(x) + 0.25, w = Const(g, Weights()), w1 = Squeeze(w, {-1});
  const Output classes = Const<int64_t>(g, {2, 0, 1, 1}), one_hot = OneHot(classes, 3);
  const LossOptions o = {.weights = w};
  const auto reduced = [&](Reduction reduction) {
    return losses::MeanSquaredError(y, x, {.weights = w, .reduction = reduction});
  };
  const std::vector<std::tuple<std::string, Output, Output>> rows = {
      {"absolute_difference", x, losses::AbsoluteDifference(y, x, o)},
      {"cosine_distance", x, losses::CosineDistance(y, x, 1, o)},
      {"hinge_loss", x, losses::HingeLoss(Cast(y > 0.5, DT_FLOAT), x, o)},
      {"huber_loss", x, losses::HuberLoss(y, x, 0.4, o)},
      {"log_loss", positive, losses::LogLoss(y, positive, 1e-7, o)},
      {"mean_pairwise_squared_error", x, losses::MeanPairwiseSquaredError(y, x, o)},
      {"mean_squared_error", x, losses::MeanSquaredError(y, x, o)},
      {"mean", x, reduced(Reduction::kMean)},
      {"sum", x, reduced(Reduction::kSum)},
      {"batch", x, reduced(Reduction::kSumOverBatchSize)},
      {"sigmoid", x, losses::SigmoidCrossEntropy(y, x, o, 0.1)},
      {"softmax", x, losses::SoftmaxCrossEntropy(one_hot, x, {.weights = w1}, 0.1)},
      {"sparse_softmax", x, losses::SparseSoftmaxCrossEntropy(classes, x, o)},
  };
  Outputs fetches;
  for (const auto& [name, at, loss] : rows) {
    fetches.push_back(loss);
    fetches.push_back(Gradients({loss}, {at})[0].dense());
  }
  Session session = Start(g, {});
  const Tensors out = RunOk(session, {}, fetches);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<double> values;
    Append(out[2 * i], &values);
    Append(out[2 * i + 1], &values);
    ExpectGolden("loss " + std::get<0>(rows[i]), values);
  }
}

// ---- metrics

class MetricValues : public testing::TestWithParam<bool> {};

TEST_P(MetricValues, MatchTensorFlowOverSeveralBatches) {
  using metrics::Curve, metrics::Metric, metrics::Summation;
  Graph g({.use_resource = GetParam()});
  const Output x = Placeholder(g, DT_FLOAT, {-1, 3}), y = Placeholder(g, DT_FLOAT, {-1, 3});
  const Output px = x + 0.5, by = y > 0.1, bx = x > 0, fixed = EnsureShape(x, {4, 3});
  const Output cx = ArgMax(x, 1), cy = ArgMax(y, 1), w = Const(g, Weights()), w1 = Squeeze(w, {-1});
  const std::vector<float> limits = {0.2f, 0.5f, 0.8f};
  const metrics::MetricOptions o = {.weights = w}, o1 = {.weights = w1};
  const std::vector<std::pair<std::string, Metric>> rows = {
      {"mean", metrics::Mean(x, o)},
      {"mean_tensor", metrics::MeanTensor(fixed, o)},
      {"accuracy", metrics::Accuracy(cy, cx, o)},
      {"mean_absolute_error", metrics::MeanAbsoluteError(y, x, o)},
      {"mean_squared_error", metrics::MeanSquaredError(y, x)},
      {"root_mean_squared_error", metrics::RootMeanSquaredError(y, x, o)},
      {"mean_relative_error", metrics::MeanRelativeError(y, x, Abs(y))},
      {"mean_cosine_distance", metrics::MeanCosineDistance(y, x, 1)},
      {"percentage_below", metrics::PercentageBelow(x, 0.1)},
      {"true_positives", metrics::TruePositives(by, bx)},
      {"false_positives", metrics::FalsePositives(by, bx)},
      {"true_negatives", metrics::TrueNegatives(by, bx)},
      {"false_negatives", metrics::FalseNegatives(by, bx)},
      {"precision", metrics::Precision(by, bx, o)},
      {"recall", metrics::Recall(by, bx, o)},
      {"true_positives_at", metrics::TruePositivesAtThresholds(by, px, limits)},
      {"precision_at", metrics::PrecisionAtThresholds(by, px, limits, o)},
      {"recall_at", metrics::RecallAtThresholds(by, px, limits)},
      {"auc", metrics::Auc(by, px, o)},
      {"auc_pr", metrics::Auc(by, px, {}, {.num_thresholds = 20, .curve = Curve::kPr})},
      {"auc_careful", metrics::Auc(by, px, {},
                                   {.num_thresholds = 20,
                                    .curve = Curve::kPr,
                                    .summation_method = Summation::kCarefulInterpolation})},
      {"auc_minoring",
       metrics::Auc(by, px, {}, {.num_thresholds = 20, .summation_method = Summation::kMinoring})},
      {"auc_majoring",
       metrics::Auc(by, px, {},
                    {.thresholds = {0.3, 0.6}, .summation_method = Summation::kMajoring})},
      {"sensitivity", metrics::SensitivityAtSpecificity(by, px, 0.6)},
      {"specificity", metrics::SpecificityAtSensitivity(by, px, 0.6, {}, 20)},
      {"mean_iou", metrics::MeanIou(cy, cx, 3, o1)},
      {"mean_per_class_accuracy", metrics::MeanPerClassAccuracy(cy, cx, 3, o1)},
      {"recall_at_k", metrics::RecallAtK(cy, x, 2)},
      {"precision_at_k", metrics::PrecisionAtK(cy, x, 2, o1)},
      {"average_precision", metrics::AveragePrecisionAtK(Stack({cy, cy * 2 - 1}, 1), x, 3, o1)},
      {"recall_at_k_of_class", metrics::RecallAtK(cy, x, 2, {}, {.class_id = 1})},
  };
  Outputs updates, values;
  for (const auto& [name, metric] : rows) {
    updates.push_back(metric.update_op);
    values.push_back(metric.value);
  }
  Session session = Start(g, LocalVariablesInitializer(g));
  std::vector<std::vector<double>> seen(rows.size());
  for (int batch = 0; batch < 4; ++batch) {
    const Feeds feeds = {{x, Pattern({4, 3}, batch)}, {y, Pattern({4, 3}, batch + 5)}};
    const Tensors out = batch < 3 ? RunOk(session, feeds, updates) : RunOk(session, {}, values);
    for (size_t i = 0; i < rows.size(); ++i) Append(out[i], &seen[i]);
  }
  for (size_t i = 0; i < rows.size(); ++i) ExpectGolden("metric " + rows[i].first, seen[i]);
}

INSTANTIATE_TEST_SUITE_P(BothKinds, MetricValues, testing::Bool());

// ---- layers

// Assigns a different pattern to every variable.
Initializer Patterns() {
  return Initializer([seed = std::make_shared<int>(0)](const InitializerArgs& args) {
    return Const(args.graph, Pattern(args.shape, ++*seed, args.dtype));
  });
}

struct LayerRow {
  const char* name;
  Shape input;
  Output (*build)(Output x, const Initializer& i);
};

std::vector<LayerRow> LayerRows() {
  using namespace layers;  // NOLINT
  const Shape image({2, 6, 6, 3}), rows({4, 5}), line({2, 7, 3});
  return {
      {"dense", rows,
       [](Output x, const Initializer& i) {
         return Dense(x, 3, {.activation = Relu, .kernel_initializer = i, .bias_initializer = i});
       }},
      {"dense_of_rank_3", Shape({2, 3, 5}),
       [](Output x, const Initializer& i) {
         return Dense(x, 4, {.activation = Tanh, .kernel_initializer = i});
       }},
      {"conv1d", line,
       [](Output x, const Initializer& i) {
         return layers::Conv1D(
             x, 2, 3,
             {.strides = 2, .padding = "same", .kernel_initializer = i, .bias_initializer = i});
       }},
      {"conv2d", image,
       [](Output x, const Initializer& i) {
         return layers::Conv2D(x, 2, {3, 2},
                               {.strides = {2, 1}, .kernel_initializer = i, .bias_initializer = i});
       }},
      {"dilated_same", image,
       [](Output x, const Initializer& i) {
         return layers::Conv2D(x, 2, 3,
                               {.padding = "same", .dilation_rate = 2, .kernel_initializer = i});
       }},
      {"dilated_valid", image,
       [](Output x, const Initializer& i) {
         return layers::Conv2D(x, 2, 2, {.dilation_rate = {2, 3}, .kernel_initializer = i});
       }},
      {"conv3d", Shape({1, 3, 4, 3, 2}),
       [](Output x, const Initializer& i) {
         return layers::Conv3D(x, 2, 2, {.kernel_initializer = i});
       }},
      {"transposed_same", Shape({2, 3, 3, 2}),
       [](Output x, const Initializer& i) {
         return layers::Conv2DTranspose(x, 3, 3,
                                        {.strides = 2, .padding = "same", .kernel_initializer = i});
       }},
      {"transposed_valid", Shape({2, 3, 3, 2}),
       [](Output x, const Initializer& i) {
         return layers::Conv2DTranspose(x, 3, 2, {.strides = 3, .kernel_initializer = i});
       }},
      {"separable", image,
       [](Output x, const Initializer& i) {
         return SeparableConv2D(x, 4, 3,
                                {.depth_multiplier = 2,
                                 .depthwise_initializer = i,
                                 .pointwise_initializer = i,
                                 .bias_initializer = i});
       }},
      {"separable_dilated", image,
       [](Output x, const Initializer& i) {
         return SeparableConv2D(x, 2, 3,
                                {.padding = "same",
                                 .dilation_rate = 2,
                                 .depthwise_initializer = i,
                                 .pointwise_initializer = i});
       }},
      {"batch_normalization", rows,
       [](Output x, const Initializer& i) {
         return layers::BatchNormalization(
             x, {.beta_initializer = i, .gamma_initializer = i, .training = true});
       }},
      {"batch_normalization_fused", image,
       [](Output x, const Initializer& i) {
         return layers::BatchNormalization(
             x, {.beta_initializer = i, .gamma_initializer = i, .training = true});
       }},
      {"batch_normalization_moving", image,
       [](Output x, const Initializer& i) {
         return layers::BatchNormalization(
             x, {.beta_initializer = i, .gamma_initializer = i, .moving_mean_initializer = i});
       }},
      {"batch_normalization_axis", Shape({2, 3, 4}),
       [](Output x, const Initializer& i) {
         return layers::BatchNormalization(
             x, {.axis = 1, .beta_initializer = i, .gamma_initializer = i, .training = true});
       }},
      {"max_pooling2d", image,
       [](Output x, const Initializer&) {
         return MaxPooling2D(x, {2, 3}, 2, {.padding = "same"});
       }},
      {"average_pooling2d", image,
       [](Output x, const Initializer&) {
         return AveragePooling2D(x, 3, {1, 2});
       }},
      {"max_pooling1d", line, [](Output x, const Initializer&) { return MaxPooling1D(x, 3, 2); }},
      {"average_pooling1d", line,
       [](Output x, const Initializer&) { return AveragePooling1D(x, 2, 2, {.padding = "same"}); }},
      {"flatten", Shape({2, 3, 4}),
       [](Output x, const Initializer&) { return layers::Flatten(x); }},
  };
}

class LayerValues : public testing::TestWithParam<std::tuple<LayerRow, bool>> {};

TEST_P(LayerValues, OutputsAndGradientsMatchTensorFlow) {
  const auto& [row, use_resource] = GetParam();
  Graph g({.use_resource = use_resource});
  const Output x = Const(g, Pattern(row.input, 4));
  const Output y = row.build(x, Patterns());
  ASSERT_TRUE(g.status().ok()) << g.status();
  Outputs xs = {x}, fetches = {y};
  for (const Variable& v : TrainableVariables(g)) xs.push_back(v.handle());
  for (const Grad& grad : Gradients({ReduceSum(Square(y))}, xs)) fetches.push_back(grad.dense());
  Session session = Start(g, GlobalVariablesInitializer(g));
  std::vector<double> values;
  for (const Tensor& t : RunOk(session, {}, fetches)) Append(t, &values);
  ExpectGolden(std::string("layer ") + row.name, values, 1e-4);
}

// In double, so that finite differences are accurate. (This selects the decomposed batch
// normalization.)
TEST_P(LayerValues, GradientMatchesFiniteDifferences) {
  const auto& [row, use_resource] = GetParam();
  Graph g({.use_resource = use_resource});
  const Output x = Placeholder(g, DT_DOUBLE, row.input);
  const Output loss = ReduceSum(Square(row.build(x, Patterns())));
  const Output grad = Gradients({loss}, {x})[0].dense();
  Session session = Start(g, GlobalVariablesInitializer(g));
  Tensor at = Pattern(row.input, 4, DT_DOUBLE);
  // Ties of a maximum are separated by more than the step of the finite differences.
  for (int64_t i = 0; i < at.num_elements(); ++i) at.data<double>()[i] += 1e-3 * (i % 97);
  const Tensor analytic = RunOk(session, {{x, at}}, {grad})[0];
  ASSERT_EQ(analytic.shape(), row.input);
  constexpr double kStep = 1e-5;
  for (int64_t i = 0; i < at.num_elements(); i += 1 + at.num_elements() / 40) {
    double sides[2];
    for (int side = 0; side < 2; ++side) {
      Tensor moved = Tensor(DT_DOUBLE, row.input);
      std::copy_n(at.data<double>(), at.num_elements(), moved.data<double>());
      moved.data<double>()[i] += side == 0 ? -kStep : kStep;
      sides[side] = RunOk(session, {{x, moved}}, {loss})[0].scalar<double>();
    }
    const double numeric = (sides[1] - sides[0]) / (2 * kStep);
    EXPECT_NEAR(analytic.data<double>()[i], numeric, 1e-5 * (1 + std::abs(numeric)))
        << row.name << ", element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, LayerValues,
                         testing::Combine(testing::ValuesIn(LayerRows()), testing::Bool()),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param).name,
                                               std::get<1>(info.param) ? "_res" : "_ref");
                         });

// ---- training a network

class Training : public testing::TestWithParam<bool> {};

TEST_P(Training, OfASmallNetworkMatchesTensorFlow) {
  Graph g({.use_resource = GetParam()});
  const Output images = Placeholder(g, DT_FLOAT, {8, 6, 6, 1});
  const Output labels = Placeholder(g, DT_INT64, {8});
  const Output is_training = Placeholder(g, DT_BOOL, Shape());
  const Initializer i = Patterns();
  const layers::BatchNormalizationOptions norm = {.momentum = 0.8, .training = is_training};
  Output x = layers::Conv2D(
      images, 4, 3, {.kernel_initializer = i, .kernel_regularizer = layers::L2Regularizer(0.01)});
  x = Relu(layers::BatchNormalization(x, norm));
  x = layers::Flatten(layers::MaxPooling2D(x, 2, 2));
  x = layers::BatchNormalization(layers::Dense(x, 6, {.kernel_initializer = i}), norm);
  const Output logits = layers::Dense(Tanh(x), 3, {.kernel_initializer = i});
  losses::SparseSoftmaxCrossEntropy(labels, logits);
  const Output total = losses::GetTotalLoss(g);
  Operation train;
  {
    const ControlDependencies after(g, g.collection_as<Operation>(collections::kUpdateOps));
    train = GradientDescent(0.2).Minimize(total);
  }
  Outputs moving;
  for (const Variable& v : GlobalVariables(g, ".*moving")) moving.push_back(v.value());
  ASSERT_EQ(moving.size(), 4u);
  Session session = Start(g, GlobalVariablesInitializer(g));
  std::vector<double> values;
  const auto append = [&](const Feeds& feeds, const Outputs& fetches,
                          const std::vector<Operation>& targets = {}) {
    for (const Tensor& t : RunOk(session, feeds, fetches, targets)) Append(t, &values);
  };
  for (int step = 0; step < 6; ++step) {
    Tensor classes(DT_INT64, Shape({8}));
    for (int64_t n = 0; n < 8; ++n) classes.data<int64_t>()[n] = n * (step + 2) % 3;
    append({{images, Pattern({8, 6, 6, 1}, step)},
            {labels, classes},
            {is_training, Tensor::Scalar(true)}},
           {total}, {train});
  }
  append({}, moving);
  append({{images, Pattern({8, 6, 6, 1}, 9)}, {is_training, Tensor::Scalar(false)}}, {logits});
  append({}, moving);
  ExpectGolden("training", values, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(BothKinds, Training, testing::Bool());

}  // namespace
}  // namespace weir
