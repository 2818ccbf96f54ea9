#include <algorithm>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/op.h"
#include "weir/ops/gradients.h"
#include "weir/ops/image.h"
#include "weir/ops/math.h"
#include "weir/tests/evaluate.h"

// Image ops against TensorFlow's recorded answers, gradients against the maps they belong to, and
// files that are broken.
namespace weir {
namespace {

// ---- recorded answers

struct Answer {
  std::string op;
  int line = 0;
  Attrs attrs;
  Tensors inputs, outputs;
};

// "float32 2,3 1 2 3 4 5 6", "string 89504e47"; a scalar's shape is "-".
Tensor ParseTensor(std::istringstream& words) {
  std::string type, shape, value;
  words >> type >> shape;
  if (type == "string") return Tensor::Scalar(absl::HexStringToBytes(shape));
  std::vector<int64_t> dims;
  if (shape != "-") {
    for (const auto& d : absl::StrSplit(shape, ',')) dims.push_back(std::stoll(std::string(d)));
  }
  Tensor t(type == "float32" ? DT_FLOAT : DataTypeFromName(type), Shape(absl::MakeConstSpan(dims)));
  for (int64_t i = 0; i < t.num_elements() && words >> value; ++i) {
    if (t.dtype() == DT_FLOAT) {
      t.data<float>()[i] = std::stof(value);
    } else {
      t.SetIntAt(i, std::stoll(value));
    }
  }
  return t;
}

AttrValue ParseAttr(const AttrSpec& spec, std::istringstream& words) {
  std::vector<std::string> values;
  for (std::string word; words >> word;) values.push_back(word);
  const std::string text = values.empty() ? "" : values[0];
  if (spec.is_list) {
    std::vector<float> list;
    for (const std::string& v : values) list.push_back(std::stof(v));
    return list;
  }
  switch (spec.kind) {
    case AttrSpec::Kind::kInt:
      return static_cast<int64_t>(std::stoll(text));
    case AttrSpec::Kind::kFloat:
      return std::stof(text);
    case AttrSpec::Kind::kBool:
      return text == "true";
    case AttrSpec::Kind::kType:
      return text == "float32" ? DT_FLOAT : DataTypeFromName(text);
    default:
      return text;
  }
}

std::vector<Answer> ReadAnswers() {
  std::vector<Answer> answers;
  std::ifstream file("tests/kernels/golden/image_answers.txt");
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "op") {
      answers.emplace_back();
      words >> answers.back().op;
      answers.back().line = number;
    } else if (kind == "attr") {
      std::string name;
      words >> name;
      const AttrSpec* spec = BuiltinOps().Find(answers.back().op)->FindAttr(name);
      for (const AttrSpec& a : BuiltinOps().Find(answers.back().op)->attrs()) {
        if (&a == spec) answers.back().attrs.emplace_back(a.name, ParseAttr(a, words));
      }
    } else if (kind == "in") {
      answers.back().inputs.push_back(ParseTensor(words));
    } else if (kind == "out") {
      answers.back().outputs.push_back(ParseTensor(words));
    }
  }
  return answers;
}

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

TEST(Image, AnswersAsTensorFlow) {
  const std::vector<Answer> answers = ReadAnswers();
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

TEST(Image, AGradientOfPatchesAddsUpWhatOverlaps) {
  ExpectAdjoint({2, 6, 5, 2}, [](Output x) {
    return ExtractImagePatches(
        x, {.ksizes = {1, 3, 2, 1}, .strides = {1, 2, 1, 1}, .padding = "SAME"});
  });
}

TEST(Image, TheGradientOfAProjectionIsTheInverseProjection) {
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

// ---- what draws noise and random places

TEST(Image, GlimpsesOutsideOfTheImageAreNoiseOfItsRange) {
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

// ---- ops that only graphs of the first versions may have

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
  if (!y) return g.status();
  WEIR_ASSIGN_OR_RETURN(const Tensors out, Evaluate(g, feeds, {y}));
  return out[0];
}

TEST(Image, ARandomCropIsAWindowOfTheImage) {
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

TEST(Image, TheFirstAdjustContrastCutsOff) {
  const auto scalar = [](float v) { return Tensor::Scalar(v); };
  const Tensor image = Tensor::Of<uint8_t>({1, 2, 2, 1}, {10, 20, 30, 60});
  const absl::StatusOr<Tensor> out =
      RunOld("AdjustContrast", {image, scalar(2), scalar(0), scalar(80)}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(out->flat<float>(), testing::ElementsAre(0, 10, 30, 80));  // around a mean of 30
}

// ---- files

std::string Encode(const char* op, const Tensor& image, const Attrs& attrs = {}) {
  const absl::StatusOr<Tensors> out = RunFed(op, {image}, attrs);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[0].data<std::string>()[0] : "";
}

Tensor Ramp(const Shape& shape, DataType type) {
  Tensor t(type, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.SetIntAt(i, i * 3 % 251);
  return t;
}

TEST(ImageFiles, PngKeepsEveryValue) {
  for (const DataType type : {DT_UINT8, DT_UINT16}) {
    for (const int64_t channels : {1, 2, 3, 4}) {
      for (const int64_t level : {-1, 0, 9}) {
        const Tensor image = Ramp({5, 7, channels}, type);
        const std::string file = Encode("EncodePng", image, {{"compression", level}});
        const absl::StatusOr<Tensors> back =
            RunFed("DecodePng", {Tensor::Scalar(file)}, {{"dtype", type}});
        ASSERT_TRUE(back.ok()) << back.status();
        EXPECT_TRUE(IdenticalTensors((*back)[0], image));
      }
    }
  }
  const absl::StatusOr<Tensors> batch = RunFed("EncodePng", {Ramp({2, 3, 4, 5, 1}, DT_UINT8)});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ((*batch)[0].shape(), Shape({2, 3}));
}

TEST(ImageFiles, JpegComesBackNearly) {
  Tensor image(DT_UINT8, Shape({16, 24, 3}));
  for (int64_t i = 0; i < image.num_elements(); ++i)
    image.SetIntAt(i, 40 + i / 72 * 8 + i % 3 * 20);
  for (const bool progressive : {false, true}) {
    for (const bool downsampling : {false, true}) {
      const std::string file = Encode("EncodeJpeg", image,
                                      {{"quality", 100},
                                       {"progressive", progressive},
                                       {"chroma_downsampling", downsampling},
                                       {"optimize_size", true},
                                       {"xmp_metadata", "about it"}});
      EXPECT_NE(file.find(std::string("http://ns.adobe.com/xap/1.0/\0about it", 37)),
                std::string::npos);
      const absl::StatusOr<Tensors> back = RunFed("DecodeJpeg", {Tensor::Scalar(file)});
      ASSERT_TRUE(back.ok()) << back.status();
      ASSERT_EQ((*back)[0].shape(), image.shape());
      for (int64_t i = 0; i < image.num_elements(); ++i) {
        EXPECT_NEAR((*back)[0].IntAt(i), image.IntAt(i), 4);
      }
    }
  }
  const absl::StatusOr<Tensors> rough =
      RunFed("EncodeJpegVariableQuality", {image, Tensor::Scalar<int32_t>(5)});
  ASSERT_TRUE(rough.ok()) << rough.status();
  EXPECT_LT((*rough)[0].data<std::string>()[0].size(), Encode("EncodeJpeg", image).size());
}

// Every op that decodes, on every beginning of a file and on files with bytes changed: an answer or
// INVALID_ARGUMENT, nothing else.
void ExpectNoCrash(const std::string& file) {
  const auto run = [](const std::string& contents) {
    for (const char* op : {"DecodeJpeg", "DecodePng", "DecodeGif", "DecodeBmp", "DecodeImage"}) {
      const absl::StatusOr<Tensors> out = RunFed(op, {Tensor::Scalar(contents)});
      if (out.ok()) continue;
      EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument) << op << out.status();
    }
    RunFed("ExtractJpegShape", {Tensor::Scalar(contents)}).status().IgnoreError();
    RunFed("DecodeJpeg", {Tensor::Scalar(contents)}, {{"try_recover_truncated", true}})
        .status()
        .IgnoreError();
  };
  for (size_t n = 0; n < file.size(); n += 1 + file.size() / 40) run(file.substr(0, n));
  uint32_t seed = 17;
  for (int i = 0; i < 60; ++i) {
    std::string changed = file;
    for (int k = 0; k < 3; ++k) {
      seed = seed * 1664525u + 1013904223u;
      changed[seed / 7 % file.size()] = static_cast<char>(seed >> 24);
    }
    run(changed);
  }
}

TEST(ImageFiles, ATruncatedJpegCanBeRecovered) {
  const std::string whole = Encode("EncodeJpeg", Ramp({64, 64, 1}, DT_UINT8));
  const Tensor file = Tensor::Scalar(whole.substr(0, whole.size() * 2 / 3));
  EXPECT_EQ(RunFed("DecodeJpeg", {file}).status().code(), absl::StatusCode::kInvalidArgument);
  const absl::StatusOr<Tensors> full = RunFed("DecodeJpeg", {Tensor::Scalar(whole)});
  const absl::StatusOr<Tensors> recovered =
      RunFed("DecodeJpeg", {file}, {{"try_recover_truncated", true}});
  const absl::StatusOr<Tensors> part =
      RunFed("DecodeJpeg", {file}, {{"acceptable_fraction", 0.1f}});
  ASSERT_TRUE(full.ok() && recovered.ok() && part.ok()) << recovered.status() << part.status();
  for (int64_t i = 0; i < 64 * 8; ++i) {
    EXPECT_EQ((*recovered)[0].IntAt(i), (*full)[0].IntAt(i));
    EXPECT_EQ((*part)[0].IntAt(i), (*full)[0].IntAt(i));
  }
  EXPECT_EQ((*part)[0].IntAt(64 * 64 - 1), 0);
}

TEST(ImageFiles, BrokenOnesAreInvalidArguments) {
  std::set<std::string> kinds;
  for (const Answer& a : ReadAnswers()) {
    if (a.inputs[0].dtype() != DT_STRING || a.op == "DecodeAndCropJpeg") continue;
    const std::string& file = a.inputs[0].data<std::string>()[0];
    if (kinds.insert(file.substr(0, 2)).second) ExpectNoCrash(file);
  }
  EXPECT_EQ(kinds.size(), 4u);  // JPEG, PNG, GIF, BMP
}

TEST(ImageFiles, HugeSizesInHeadersAreRefused) {
  std::string png = Encode("EncodePng", Ramp({2, 2, 1}, DT_UINT8));
  std::string gif("GIF89a\xff\xff\xff\xff\x80\0\0\0\0\0\xff\xff\xff", 19);
  for (int i = 0; i < 9; ++i)
    gif += std::string(",\0\0\0\0\xff\xff\xff\xff\0\x02\x02\x4c\x01\0", 15);
  for (const std::string& file : {gif + ";", std::string("BM") + std::string(60, '\x7f')}) {
    const absl::StatusOr<Tensors> out = RunFed("DecodeImage", {Tensor::Scalar(file)});
    EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument) << out.status();
  }
}

// ---- arguments

TEST(Image, BadArgumentsAreRefused) {
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
