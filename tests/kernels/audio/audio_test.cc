#include "weir/ops/audio/audio.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/answers.h"
#include "weir/tests/kernels/lib/recorded.h"

namespace weir {
namespace {

using recorded::Raw;

TEST(Audio, MatchesTensorFlow) {
  ExpectAnswers("tests/kernels/golden/audio_answers.txt", 30, 2e-5);
}

// A file of one channel with `rate` and these samples, whose chunks and sizes the tests change.
std::string Wav(const std::string& samples) {
  const auto size = static_cast<char>(samples.size());
  return Raw("RIFF\x40\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data") +
         std::string{size, 0, 0, 0} + samples;
}

Tensor File(std::string contents) { return Tensor::Scalar(std::move(contents)); }

TEST(Audio, DecodeWavNamesWhatIsWrongWithAFile) {
  const std::string good = Wav("abcd");
  const auto with = [&](size_t at, const std::string& bytes) {
    std::string file = good;
    file.replace(at, bytes.size(), bytes);
    return File(file);
  };
  recorded::ExpectRejections({
      {"DecodeWav", {File("")}, {}, "Data too short"},
      {"DecodeWav", {File(good.substr(0, 30))}, {}, "Data too short"},
      {"DecodeWav", {with(0, "RIFX")}, {}, "Header mismatch: Expected RIFF but found RIFX"},
      {"DecodeWav", {with(12, "LIST")}, {}, "Unexpected field LIST"},
      {"DecodeWav", {with(16, "\x11")}, {}, "Bad format chunk size for WAV"},
      {"DecodeWav", {with(20, "\3")}, {}, "Bad audio format for WAV"},
      {"DecodeWav", {with(22, Raw("\0"))}, {}, "Bad number of channels for WAV"},
      {"DecodeWav", {with(34, "\x08")}, {}, "Can only read 16-bit WAV files, but received 8"},
      {"DecodeWav", {with(32, "\4")}, {}, "Bad bytes per sample in WAV header"},
      {"DecodeWav", {with(28, "\1")}, {}, "Bad bytes per second in WAV header"},
      {"DecodeWav", {with(40, "\x30")}, {}, "Data too short"},
      {"DecodeWav", {with(43, "\x80")}, {}, "is too large"},
      {"DecodeWav", {File(good.substr(0, 36))}, {}, "No data chunk found in WAV"},
      {"DecodeWav", {File(good + good.substr(36))}, {}, "More than one data chunk"},
      {"DecodeWav", {Tensor::Vector<std::string>({good})}, {}, "contents must be scalar"},
  });
}

TEST(Audio, RejectsShapesAndAttributes) {
  const Tensor matrix = Tensor::Zeros(DT_FLOAT, Shape({40, 1}));
  const Tensor vector = Tensor::Zeros(DT_FLOAT, Shape({40}));
  const Tensor spectrogram = Tensor::Zeros(DT_FLOAT, Shape({1, 1, 65}));
  const Tensor rate = Tensor::Scalar<int32_t>(8000);
  const Attrs windows = {{"window_size", 16}, {"stride", 8}};
  recorded::ExpectRejections({
      {"EncodeWav", {vector, rate}, {}, "audio must be 2-dimensional"},
      {"EncodeWav", {matrix, Tensor::Vector<int32_t>({8000})}, {}, "should be a scalar tensor"},
      {"EncodeWav", {matrix, Tensor::Scalar<int32_t>(0)}, {}, "sample_rate must be in (0, 2^32)"},
      {"EncodeWav", {Tensor::Zeros(DT_FLOAT, Shape({4, 0})), rate}, {}, "num_channels must be in"},
      {"AudioSpectrogram", {vector}, windows, "input must be 2-dimensional"},
      {"Mfcc", {matrix, rate}, {}, "spectrogram must be 3-dimensional"},
      {"Mfcc", {spectrogram, Tensor::Scalar<int32_t>(0)}, {}, "Mfcc initialization failed"},
      {"Mfcc", {spectrogram, rate}, {{"dct_coefficient_count", 41}}, "Mfcc initialization failed"},
      {"Mfcc", {spectrogram, rate}, {{"lower_frequency_limit", 5000.f}}, "Mfcc initialization"},
      {"AudioMicrofrontend", {Tensor::Zeros(DT_INT16, Shape({4, 4}))}, {}, "audio is not a vector"},
  });
  const auto front_end = [](const Attrs& attrs) {
    return RunFed("AudioMicrofrontend", {Tensor::Zeros(DT_INT16, Shape({800}))}, attrs).status();
  };
  EXPECT_EQ(front_end({{"upper_band_limit", 9000.f}}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(front_end({{"window_step", 40}}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(front_end({{"smoothing_bits", 40}}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(front_end({{"sample_rate", 2}}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(front_end({{"out_scale", 0}}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Audio, BuildersInferShapesAndDecodeWhatTheyEncode) {
  Graph g;
  Tensor tone(DT_FLOAT, Shape({400, 2}));
  for (int64_t i = 0; i < 800; ++i) tone.data<float>()[i] = std::sin(0.1f * static_cast<float>(i));
  const Output rate = Const<int32_t>(g, 16000);
  const DecodedWav decoded = DecodeWav(EncodeWav(Const(g, tone), rate), 2, 400);
  const Output spectrogram = AudioSpectrogram(decoded.audio, 100, 50, true);
  const Output coefficients = Mfcc(spectrogram, decoded.sample_rate);
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_EQ(spectrogram.shape(), Shape({2, 7, 65}));
  EXPECT_EQ(coefficients.shape(), Shape({2, 7, 13}));
  const auto out = Evaluate(g, {decoded.audio, coefficients, decoded.sample_rate});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int64_t i = 0; i < 800; ++i)
    ASSERT_NEAR((*out)[0].data<float>()[i], tone.data<float>()[i], 1.0 / 32768);
  EXPECT_EQ((*out)[1].shape(), Shape({2, 7, 13}));
  EXPECT_EQ((*out)[2].scalar<int32_t>(), 16000);
}

}  // namespace
}  // namespace weir
