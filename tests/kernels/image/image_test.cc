#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/op.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/image/image.h"
#include "weir/ops/lib/math.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/answers.h"

// Gradients checked to order 1 by tests: CropAndResize, ImageProjectiveTransformV3,
// ResizeBicubic, ResizeBilinear, ScaleAndTranslate.

// Image ops, compared with recorded TensorFlow results, and gradients, compared with the linear
// maps to which they belong.
namespace weir {
namespace {

// ---- recorded results

void ExpectNear(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.shape(), want.shape());
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    if (want.dtype() == DT_STRING) {
      EXPECT_EQ(got.data<std::string>()[i], want.data<std::string>()[i]);
    } else if (want.dtype() == DT_FLOAT) {
      ASSERT_NEAR(got.data<float>()[i], want.data<float>()[i], 2e-5) << "element " << i;
    } else {
      ASSERT_EQ(got.IntAt(i), want.IntAt(i)) << "element " << i;
    }
  }
}

TEST(Image, MatchesTensorFlow) {
  const std::vector<Answer> answers = ReadAnswers("tests/kernels/golden/image_answers.txt");
  EXPECT_GT(answers.size(), 90u);
  for (const Answer& a : answers) {
    SCOPED_TRACE(absl::StrCat(a.op, ", line ", a.line));
    const absl::StatusOr<Tensors> out = RunFed(a.op, a.inputs, a.attrs);
    if (!out.ok()) {
      ADD_FAILURE() << out.status();
      continue;
    }
    ASSERT_EQ(out->size(), a.outputs.size());
    for (size_t i = 0; i < a.outputs.size(); ++i) ExpectNear((*out)[i], a.outputs[i]);
  }
}

// ---- gradients of linear maps: <f(x), dy> = <x, gradient(dy)> for all x and dy

Tensor Numbers(const Shape& shape, uint32_t seed) {
  Tensor t(DT_FLOAT, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    t.data<float>()[i] = static_cast<float>(seed >> 8) / (1 << 24) - 0.5f;
  }
  return t;
}

double Dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    sum += static_cast<double>(a.data<float>()[i]) * b.data<float>()[i];
  }
  return sum;
}

void ExpectAdjoint(const Shape& shape, const std::function<Output(Output)>& build) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, shape), y = build(x);
  ASSERT_TRUE(g.status().ok()) << g.status();
  const Tensor dy = Numbers(y.shape(), 3), at = Numbers(shape, 1);
  GradientsOptions options;
  options.grad_ys = {Const(g, dy)};
  const Outputs dx = DenseGradients({y}, {x}, options);
  ASSERT_TRUE(g.status().ok()) << g.status();
  const absl::StatusOr<Tensors> out = Evaluate(g, {{x, at}}, {y, dx[0]});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_NEAR(Dot((*out)[0], dy), Dot(at, (*out)[1]), 1e-4);
}

TEST(Image, GradientsOfResizingAreItsTransposes) {
  const Shape shape({2, 4, 5, 3});
  const ResizeOptions grids[] = {{}, {.align_corners = true}, {.half_pixel_centers = true}};
  for (const ResizeOptions& grid : grids) {
    for (const Ints& size : {Ints{7, 3}, Ints{2, 9}}) {
      ExpectAdjoint(shape, [&](Output x) { return ResizeBilinear(x, size, grid); });
      ExpectAdjoint(shape, [&](Output x) { return ResizeBicubic(x, size, grid); });
      ExpectAdjoint(shape, [&](Output x) { return ResizeNearestNeighbor(x, size, grid); });
    }
  }
  ExpectAdjoint(shape, [](Output x) {
    Graph& g = x.graph();
    return AddOp("ScaleAndTranslate",
                 {x, Const(g, {5, 3}), Const(g, {1.5f, 0.5f}), Const(g, {0.25f, -0.5f})});
  });
}

TEST(Image, GradientsOfCropsReachImagesAndBoxes) {
  for (const char* method : {"bilinear", "nearest"}) {
    ExpectAdjoint({2, 5, 6, 2}, [&](Output x) {
      Graph& g = x.graph();
      const Output boxes =
          Const<float>(g, {2, 4}, {0.1f, 0.2f, 0.8f, 0.9f, -0.3f, 0.2f, 0.5f, 1.4f});
      return CropAndResize(x, boxes, Const(g, {1, 0}), {3, 4}, {.method = method});
    });
  }
}

TEST(Image, GradientOfPatchesAccumulatesOverlaps) {
  ExpectAdjoint({2, 6, 5, 2}, [](Output x) {
    return ExtractImagePatches(
        x, {.ksizes = {1, 3, 2, 1}, .strides = {1, 2, 1, 1}, .padding = "SAME"});
  });
}

TEST(Image, GradientOfProjectionIsInverseProjection) {
  Graph g;
  const Tensor image = Numbers({1, 4, 4, 1}, 5);
  const Output x = Placeholder(g, DT_FLOAT, {1, 4, 4, 1});
  const Output shift = Const<float>(g, {1, 8}, {1, 0, 1, 0, 1, 0, 0, 0});
  const Output y = AddOp("ImageProjectiveTransformV3", {x, shift, Const(g, {4, 4}), Const(g, 0.0f)},
                         {{"interpolation", "NEAREST"}});
  GradientsOptions options;
  options.grad_ys = {Const(g, image)};
  if (BuiltinOps().Find("MatrixInverse") == nullptr) GTEST_SKIP();
  const Outputs dx = DenseGradients({y}, {x}, options);
  ASSERT_TRUE(g.status().ok()) << g.status();
  const absl::StatusOr<Tensors> out = Evaluate(g, {{x, image}}, {dx[0]});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int row = 0; row < 4; ++row) {
    EXPECT_EQ((*out)[0].data<float>()[4 * row], 0);
    EXPECT_EQ((*out)[0].data<float>()[4 * row + 1], image.data<float>()[4 * row]);
  }
}

// ---- ops that draw noise and random positions

TEST(Image, GlimpsesOutsideTheImageAreNoiseInItsRange) {
  const Tensor image = Numbers({2, 3, 3, 2}, 9), offsets = Tensor::Of<float>({2, 2}, {5, 5, 9, 9});
  const float* pixels = image.data<float>();
  for (const char* noise : {"uniform", "gaussian"}) {
    const absl::StatusOr<Tensors> out =
        RunFed("ExtractGlimpse", {image, Tensor::Vector<int32_t>({2, 2}), offsets},
               {{"noise", noise}, {"uniform_noise", false}, {"normalized", false}});
    ASSERT_TRUE(out.ok()) << out.status();
    for (int64_t i = 0; i < 16; ++i) {
      const float* of = pixels + i / 8 * 18;
      EXPECT_GE((*out)[0].data<float>()[i], *std::min_element(of, of + 18));
      EXPECT_LE((*out)[0].data<float>()[i], *std::max_element(of, of + 18));
    }
  }
}

// ---- ops that are valid only in graphs of the first versions

absl::StatusOr<Tensor> RunOld(absl::string_view op, const Tensors& inputs, const Attrs& attrs) {
  Graph g;
  g.versions().producer = 1;
  NodeBuilder builder(g, op);
  std::vector<std::pair<Output, Tensor>> feeds;
  for (const Tensor& t : inputs) {
    feeds.emplace_back(Placeholder(g, t.dtype()), t);
    builder.Input(feeds.back().first);
  }
  for (const auto& [name, value] : attrs) builder.Attr(name, value);
  const Output y = builder.BuildOutput();
  if (!y.valid()) return g.status();
  WEIR_ASSIGN_OR_RETURN(const Tensors out, Evaluate(g, feeds, {y}));
  return out[0];
}

TEST(Image, RandomCropIsAWindowOfTheImage) {
  Tensor image(DT_INT32, Shape({6, 7, 2}));
  for (int64_t i = 0; i < image.num_elements(); ++i) image.SetIntAt(i, i);
  const absl::StatusOr<Tensor> out =
      RunOld("RandomCrop", {image, Tensor::Vector<int64_t>({3, 4})}, {{"seed", 3}, {"seed2", 4}});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int64_t y = 0; y < 3; ++y) {
    for (int64_t k = 0; k < 8; ++k) EXPECT_EQ(out->IntAt(y * 8 + k), out->IntAt(0) + y * 14 + k);
  }
  EXPECT_EQ(RunOld("RandomCrop", {image, Tensor::Vector<int64_t>({9, 4})}, {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Image, FirstAdjustContrastClamps) {
  const auto scalar = [](float v) { return Tensor::Scalar(v); };
  const Tensor image = Tensor::Of<uint8_t>({1, 2, 2, 1}, {10, 20, 30, 60});
  const absl::StatusOr<Tensor> out =
      RunOld("AdjustContrast", {image, scalar(2), scalar(0), scalar(80)}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(out->flat<float>(),
              testing::ElementsAre(0, 10, 30, 80));  // deviations from a mean of 30
}

// ---- arguments

TEST(Image, RejectsInvalidArguments) {
  const Tensor image = Numbers({1, 3, 3, 3}, 1), flat = Numbers({3, 3}, 2);
  const Tensor size = Tensor::Vector<int32_t>({2, 2}), none = Tensor::Vector<int32_t>({0, 2});
  const Tensor boxes = Numbers({2, 4}, 4), scores = Numbers({2}, 5), zero = Tensor::Scalar(0.0f);
  const Tensor two = Tensor::Scalar<int32_t>(2), text = Tensor::Scalar("nothing");
  const Tensor indices = Tensor::Vector<int32_t>({0, 7});
  const struct {
    const char* op;
    Tensors inputs;
    Attrs attrs;
    absl::StatusCode code;
    const char* message;
  } rows[] = {
      {"ResizeBilinear", {flat, size}, {}, absl::StatusCode::kInvalidArgument, "4-dimensional"},
      {"ResizeBicubic", {image, none}, {}, absl::StatusCode::kInvalidArgument, "must be positive"},
      {"ResizeNearestNeighbor",
       {image, size},
       {{"align_corners", true}, {"half_pixel_centers", true}},
       absl::StatusCode::kInvalidArgument,
       "align_corners must be False"},
      {"ScaleAndTranslate",
       {image, size, Numbers({2}, 6), Numbers({2}, 7)},
       {},
       absl::StatusCode::kInvalidArgument,
       "Scale must be greater than zero"},
      {"CropAndResize",
       {image, boxes, indices, size},
       {},
       absl::StatusCode::kOutOfRange,
       "box_index has values outside [0, batch_size)"},
      {"NonMaxSuppressionV3",
       {boxes, scores, two, Tensor::Scalar(1.5f), zero},
       {},
       absl::StatusCode::kInvalidArgument,
       "iou_threshold must be in [0, 1]"},
      {"NonMaxSuppressionV2",
       {boxes, flat, two, zero},
       {},
       absl::StatusCode::kInvalidArgument,
       "scores must be 1-D"},
      {"RGBToHSV", {boxes}, {}, absl::StatusCode::kFailedPrecondition, "must have 3 channels"},
      {"AdjustHue", {flat, zero}, {}, absl::StatusCode::kInvalidArgument, "at least 3-D"},
      {"DecodePng", {text}, {}, absl::StatusCode::kInvalidArgument, "Unknown image file format"},
      {"DecodeJpeg",
       {Tensor::Scalar("\xff\xd8\xff")},
       {},
       absl::StatusCode::kInvalidArgument,
       "Invalid JPEG data"},
      {"ExtractImagePatches",
       {image},
       {{"ksizes", std::vector<int64_t>{1, 2, 2, 2}},
        {"strides", std::vector<int64_t>{1, 1, 1, 1}},
        {"rates", std::vector<int64_t>{1, 1, 1, 1}},
        {"padding", "SAME"}},
       absl::StatusCode::kUnimplemented,
       "Only support ksizes across space"},
      {"FractionalMaxPool",
       {image},
       {{"pooling_ratio", std::vector<float>{1, 4, 4, 1}}},
       absl::StatusCode::kInvalidArgument,
       "Pooling ratio is higher than input dimension size"},
  };
  for (const auto& row : rows) {
    const absl::StatusOr<Tensors> out = RunFed(row.op, row.inputs, row.attrs);
    EXPECT_EQ(out.status().code(), row.code) << row.op << ": " << out.status();
    EXPECT_NE(out.status().message().find(row.message), std::string::npos) << out.status();
  }
}

}  // namespace
}  // namespace weir
