#include <zlib.h>

#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/data/summary.h"
#include "weir/ops/lib/array.h"
#include "weir/proto/histogram.pb.h"
#include "weir/proto/summary.pb.h"
#include "weir/proto/tensor.pb.h"
#include "weir/tests/evaluate.h"

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Returns the op's Summary for fed values.
absl::StatusOr<proto::Summary> RunSummary(absl::string_view op, const std::vector<Arg>& args,
                                          Graph& g,
                                          const std::vector<std::pair<Output, Tensor>>& feeds,
                                          const Attrs& attrs = {}) {
  Output out = AddOp(op, args, attrs);
  WEIR_RETURN_IF_ERROR(g.status());
  WEIR_ASSIGN_OR_RETURN(const Tensors values, Evaluate(g, feeds, {out}));
  proto::Summary summary;
  if (!summary.ParseFromString(values[0].scalar<std::string>()))
    return Internal("no Summary came back");
  return summary;
}

absl::StatusOr<proto::Summary> RunOn(absl::string_view op, Tensor tag, Tensor value,
                                     const Attrs& attrs = {}) {
  Graph g;
  Output t = Placeholder(g, DT_STRING), v = Placeholder(g, value.dtype());
  return RunSummary(op, {t, v}, g, {{t, std::move(tag)}, {v, std::move(value)}}, attrs);
}

Tensor Floats(std::initializer_list<float> values) { return Tensor::Vector<float>(values); }

// ---- numbers

TEST(ScalarSummary, HasAValueForEachTag) {
  const auto s = RunOn("ScalarSummary", Tensor::Vector<std::string>({"a", "b"}),
                       Floats({1, std::numeric_limits<float>::quiet_NaN()}));
  ASSERT_TRUE(s.ok()) << s.status();
  ASSERT_EQ(s->value_size(), 2);
  EXPECT_EQ(s->value(0).tag(), "a");
  EXPECT_EQ(s->value(0).simple_value(), 1);
  EXPECT_EQ(s->value(1).tag(), "b");
  EXPECT_TRUE(std::isnan(s->value(1).simple_value()));
}

TEST(ScalarSummary, TagsAndValuesHaveOneShape) {
  const auto s = RunOn("ScalarSummary", Tensor::Vector<std::string>({"a", "b"}), Floats({1, 2, 3}));
  EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(s.status().message()),
              HasSubstr("tags and values are not the same shape: [2] != [3]"));
}

// TensorFlow 2.21's results for the same values.
TEST(HistogramSummary, BucketsMatchTensorFlow) {
  const auto s = RunOn("HistogramSummary", Tensor::Scalar("a"),
                       Tensor::Vector<double>({1, 2, 2, -3, 0, 0, 1e30, -1e30}));
  ASSERT_TRUE(s.ok()) << s.status();
  const proto::HistogramProto& h = s->value(0).histo();
  constexpr double kMax = std::numeric_limits<double>::max();
  EXPECT_EQ(h.min(), -1e30);
  EXPECT_EQ(h.max(), 1e30);
  EXPECT_EQ(h.num(), 8);
  EXPECT_DOUBLE_EQ(h.sum_squares(), 2e60);
  ASSERT_EQ(h.bucket_size(), 12);
  EXPECT_THAT(std::vector<double>(h.bucket().begin(), h.bucket().end()),
              ElementsAre(0, 1, 0, 1, 0, 2, 0, 1, 0, 2, 0, 1));
  EXPECT_EQ(h.bucket_limit(0), -kMax);
  EXPECT_NEAR(h.bucket_limit(3), -2.8787120958, 1e-9);
  EXPECT_EQ(h.bucket_limit(5), 1e-12);
  EXPECT_NEAR(h.bucket_limit(7), 1.0089710279, 1e-9);
  EXPECT_EQ(h.bucket_limit(11), kMax);
}

TEST(HistogramSummary, LimitsAscendAndCountsAddUp) {
  Tensor values(DT_FLOAT, Shape({1000}));
  for (int i = 0; i < 1000; ++i)
    values.data<float>()[i] = std::sin(static_cast<float>(i)) * static_cast<float>(i % 7);
  const auto s = RunOn("HistogramSummary", Tensor::Scalar("a"), values);
  ASSERT_TRUE(s.ok()) << s.status();
  const proto::HistogramProto& h = s->value(0).histo();
  double count = 0;
  for (int i = 0; i < h.bucket_size(); ++i) {
    count += h.bucket(i);
    if (i > 0) {
      EXPECT_LT(h.bucket_limit(i - 1), h.bucket_limit(i));
    }
  }
  EXPECT_EQ(count, 1000);
}

TEST(HistogramSummary, NoValuesMakeOneEmptyBucket) {
  const auto s = RunOn("HistogramSummary", Tensor::Scalar("a"), Tensor(DT_FLOAT, Shape({0})));
  ASSERT_TRUE(s.ok()) << s.status();
  const proto::HistogramProto& h = s->value(0).histo();
  EXPECT_EQ(h.min(), std::numeric_limits<double>::max());
  EXPECT_EQ(h.max(), -std::numeric_limits<double>::max());
  EXPECT_EQ(h.num(), 0);
  ASSERT_EQ(h.bucket_size(), 1);
  EXPECT_EQ(h.bucket_limit(0), std::numeric_limits<double>::max());
}

TEST(HistogramSummary, RejectsNonFiniteValues) {
  const auto nan = RunOn("HistogramSummary", Tensor::Scalar("a"), Floats({1, std::nanf("")}));
  EXPECT_EQ(nan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(nan.status().message()),
              HasSubstr("Nan in summary histogram for: HistogramSummary"));
  const auto inf = RunOn("HistogramSummary", Tensor::Scalar("a"),
                         Floats({std::numeric_limits<float>::infinity()}));
  EXPECT_THAT(std::string(inf.status().message()),
              HasSubstr("Infinity in Histogram for: HistogramSummary"));
  const auto tags = RunOn("HistogramSummary", Tensor::Vector<std::string>({"a", "b"}), Floats({1}));
  EXPECT_THAT(std::string(tags.status().message()), HasSubstr("tags must be scalar"));
}

// ---- merging

TEST(MergeSummary, ConcatenatesTheValuesInOrder) {
  Graph g;
  Output a = summary::Scalar("a", Const(g, 1.0f)), b = summary::Scalar("b", Const(g, 2.0f));
  const auto s = RunSummary("MergeSummary", {Outputs{b, a}}, g, {});
  ASSERT_TRUE(s.ok()) << s.status();
  ASSERT_EQ(s->value_size(), 2);
  EXPECT_EQ(s->value(0).tag(), "b");
  EXPECT_EQ(s->value(1).tag(), "a");
}

TEST(MergeSummary, RejectsDuplicateTags) {
  Graph g;
  Output a = summary::Scalar("a", Const(g, 1.0f));
  const auto s = RunSummary("MergeSummary", {Outputs{a, a}}, g, {});
  EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(s.status().message()),
              HasSubstr("Duplicate tag a found in summary inputs"));
}

TEST(MergeSummary, RejectsInvalidSummaries) {
  Graph g;
  const auto s = RunSummary("MergeSummary", {Outputs{Const(g, "zzz")}}, g, {});
  EXPECT_THAT(std::string(s.status().message()),
              HasSubstr("Could not parse one of the summary inputs"));
}

// ---- tensors

TEST(TensorSummary, HasTheTensorAndTheNodeName) {
  Graph g;
  const auto s = RunSummary("TensorSummary", {Const(g, {1.0f, 2.0f})}, g, {});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->value(0).node_name(), "TensorSummary");
  EXPECT_EQ(s->value(0).tensor().tensor_shape().dim(0).size(), 2);
}

TEST(TensorSummaryV2, CarriesTagTensorAndMetadata) {
  Graph g;
  const auto s =
      RunSummary("TensorSummaryV2",
                 {Const(g, "tg"), Const(g, {1.0f, 1.0f}), Const(g, "\n\x06\n\x04text")}, g, {});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->value(0).tag(), "tg");
  EXPECT_EQ(s->value(0).metadata().plugin_data().plugin_name(), "text");
  EXPECT_EQ(s->value(0).tensor().tensor_shape().dim(0).size(), 2);
}

// As in TensorFlow, whatever their number and type.
TEST(TensorSummaryV2, WritesNumbersAsContent) {
  using Complex = std::complex<float>;
  for (const Tensor& t :
       {Tensor::Scalar(3.0f), Tensor::Vector<Complex>({Complex(1, 2), Complex(3, 4)})}) {
    Graph g;
    const auto s =
        RunSummary("TensorSummaryV2", {Const(g, "tg"), Const(g, t), Const(g, "")}, g, {});
    ASSERT_TRUE(s.ok()) << s.status();
    EXPECT_EQ(s->value(0).tensor().tensor_content(),
              std::string(static_cast<const char*>(t.raw()), t.num_bytes()));
  }
}

TEST(TensorSummaryV2, RejectsInvalidMetadata) {
  Graph g;
  const auto s =
      RunSummary("TensorSummaryV2", {Const(g, "tg"), Const(g, 1.0f), Const(g, "\xff\xff")}, g, {});
  EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument);
}

// ---- images

// Undoes the filter of a PNG row: each byte is a difference from a prediction from the bytes to the
// left, above, and above left. Source: the PNG specification, chapter 9.
void Unfilter(int filter, int64_t depth, const std::string& above, std::string* row) {
  for (size_t i = 0; i < row->size(); ++i) {
    const bool first = i < static_cast<size_t>(depth);
    const int left = first ? 0 : static_cast<uint8_t>((*row)[i - depth]);
    const int up = above.empty() ? 0 : static_cast<uint8_t>(above[i]);
    const int corner = first || above.empty() ? 0 : static_cast<uint8_t>(above[i - depth]);
    const int estimate = left + up - corner;
    const int to_left = std::abs(estimate - left), to_up = std::abs(estimate - up),
              to_corner = std::abs(estimate - corner);
    const int paeth = to_left <= to_up && to_left <= to_corner ? left
                      : to_up <= to_corner                     ? up
                                                               : corner;
    const int predicted[] = {0, left, up, (left + up) / 2, paeth};
    (*row)[i] = static_cast<char>((*row)[i] + predicted[filter]);
  }
}

// Returns the pixels of an 8-bit PNG, or "" and a failure.
std::string DecodePng(const std::string& png, int64_t width, int64_t height, int64_t depth) {
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  const auto number = [&](size_t at) {
    uint32_t v = 0;
    for (size_t i = at; i < at + 4; ++i) v = v << 8 | static_cast<uint8_t>(png[i]);
    return v;
  };
  std::string data;
  for (size_t at = 8; at + 12 <= png.size();) {
    const uint32_t size = number(at);
    const std::string type = png.substr(at + 4, 4);
    const auto* bytes = reinterpret_cast<const Bytef*>(png.data() + at + 4);
    EXPECT_EQ(number(at + 8 + size), crc32(0, bytes, size + 4)) << type;
    if (type == "IHDR") {
      EXPECT_EQ(number(at + 8), width);
      EXPECT_EQ(number(at + 12), height);
      EXPECT_EQ(png[at + 17], depth == 1 ? 0 : depth == 3 ? 2 : 6);
    }
    if (type == "IDAT") data += png.substr(at + 8, size);
    at += size + 12;
  }
  std::string raw(height * (width * depth + 1), '\0');
  uLongf size = raw.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(raw.data()), &size,
                       reinterpret_cast<const Bytef*>(data.data()), data.size()),
            Z_OK);
  std::string pixels, above;
  for (int64_t y = 0; y < height; ++y) {
    const int64_t begin = y * (width * depth + 1);
    std::string row = raw.substr(begin + 1, width * depth);
    Unfilter(raw[begin], depth, above, &row);
    pixels += row;
    above = row;
  }
  return pixels;
}

std::vector<int> Bytes(const std::string& s) {
  std::vector<int> out;
  for (char ch : s) out.push_back(static_cast<uint8_t>(ch));
  return out;
}

TEST(ImageSummary, StoresBytesUnchanged) {
  Tensor image(DT_UINT8, Shape({1, 2, 2, 1}));
  for (int i = 0; i < 4; ++i) image.data<uint8_t>()[i] = static_cast<uint8_t>(50 * i);
  const auto s = RunOn("ImageSummary", Tensor::Scalar("im"), image, {{"max_images", 1}});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->value(0).tag(), "im/image");
  EXPECT_EQ(s->value(0).image().colorspace(), 1);
  EXPECT_THAT(Bytes(DecodePng(s->value(0).image().encoded_image_string(), 2, 2, 1)),
              ElementsAre(0, 50, 100, 150));
}

TEST(ImageSummary, NumbersTheImagesAndStopsAtTheMaximum) {
  const auto s = RunOn("ImageSummary", Tensor::Scalar("im"),
                       Tensor::Zeros(DT_FLOAT, Shape({5, 2, 3, 3})), {{"max_images", 2}});
  ASSERT_TRUE(s.ok()) << s.status();
  ASSERT_EQ(s->value_size(), 2);
  EXPECT_EQ(s->value(0).tag(), "im/image/0");
  EXPECT_EQ(s->value(1).tag(), "im/image/1");
  EXPECT_EQ(s->value(1).image().width(), 3);
  EXPECT_EQ(s->value(1).image().height(), 2);
}

TEST(ImageSummary, ScalesFloatsToTheLargest) {
  const auto s =
      RunOn("ImageSummary", Tensor::Scalar("im"), Tensor::Of<float>({1, 1, 3, 1}, {0, 1, 4}));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_THAT(Bytes(DecodePng(s->value(0).image().encoded_image_string(), 3, 1, 1)),
              ElementsAre(0, 63, 255));
}

TEST(ImageSummary, CentersNegativeImagesAndMarksNonFinitePixels) {
  const auto s = RunOn("ImageSummary", Tensor::Scalar("im"),
                       Tensor::Of<float>({1, 2, 2, 1}, {-1, 0.5f, std::nanf(""), 1}));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_THAT(Bytes(DecodePng(s->value(0).image().encoded_image_string(), 2, 2, 1)),
              ElementsAre(1, 191, 255, 255));
}

TEST(ImageSummary, ABlackImageStaysBlack) {
  const auto s =
      RunOn("ImageSummary", Tensor::Scalar("im"), Tensor::Zeros(DT_FLOAT, Shape({1, 1, 2, 1})));
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_THAT(Bytes(DecodePng(s->value(0).image().encoded_image_string(), 2, 1, 1)),
              ElementsAre(0, 0));
}

TEST(ImageSummary, RejectsTwoChannels) {
  const auto s =
      RunOn("ImageSummary", Tensor::Scalar("im"), Tensor::Zeros(DT_FLOAT, Shape({1, 2, 2, 2})));
  EXPECT_THAT(std::string(s.status().message()),
              HasSubstr("Tensor must be 4-D with last dim 1, 3, or 4, not [1,2,2,2]"));
}

// ---- audio

TEST(AudioSummary, WritesSixteenBitWav) {
  Graph g;
  const auto s = RunSummary(
      "AudioSummaryV2",
      {Const(g, "snd"), Const(g, Tensor::Of<float>({1, 4}, {0, 0.5f, -1, 2})), Const(g, 8000.0f)},
      g, {}, {{"max_outputs", 1}});
  ASSERT_TRUE(s.ok()) << s.status();
  const proto::Summary::Audio& audio = s->value(0).audio();
  EXPECT_EQ(s->value(0).tag(), "snd/audio");
  EXPECT_EQ(audio.sample_rate(), 8000);
  EXPECT_EQ(audio.num_channels(), 1);
  EXPECT_EQ(audio.length_frames(), 4);
  EXPECT_EQ(audio.content_type(), "audio/wav");
  const std::string& wav = audio.encoded_audio_string();
  ASSERT_EQ(wav.size(), 44u + 8u);
  EXPECT_EQ(wav.substr(0, 4) + wav.substr(8, 8), "RIFFWAVEfmt ");
  EXPECT_THAT(Bytes(wav.substr(44)), ElementsAre(0, 0, 0, 0x40, 0, 0x80, 0xff, 0x7f));
}

// Its sample rate is an attribute.
TEST(AudioSummary, OldGraphsHaveTheSameSummary) {
  Graph g;
  g.versions().producer = 14;
  const Output tag = Const(g, "snd"), sound = Const(g, Tensor::Of<float>({1, 3}, {0, 0.5f, -1}));
  const auto old = RunSummary("AudioSummary", {tag, sound}, g, {}, {{"sample_rate", 8000.0f}});
  const auto now = RunSummary("AudioSummaryV2", {tag, sound, Const(g, 8000.0f)}, g, {});
  ASSERT_TRUE(old.ok() && now.ok()) << old.status() << now.status();
  EXPECT_EQ(old->SerializeAsString(), now->SerializeAsString());
}

TEST(AudioSummary, RejectsARateOfZero) {
  Graph g;
  const auto s = RunSummary(
      "AudioSummaryV2", {Const(g, "snd"), Const(g, Tensor::Of<float>({1, 1}, {0})), Const(g, 0.0f)},
      g, {});
  EXPECT_THAT(std::string(s.status().message()), HasSubstr("sample_rate must be"));
}

}  // namespace
}  // namespace weir
