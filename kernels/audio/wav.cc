#include "weir/kernels/audio/wav.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "weir/core/tensor/status.h"

// A file is a list of chunks, each with a name of four letters and a size. The first, RIFF, holds
// the others: "fmt " says how samples are stored, "data" has them.
namespace weir {

namespace {

constexpr float kScale = 32768;  // of the samples

// Reads a file from front to back.
class Reader {
 public:
  explicit Reader(absl::string_view file) : rest_(file) {}

  bool done() const { return rest_.empty(); }
  absl::StatusOr<absl::string_view> Bytes(size_t n) {
    if (n > rest_.size()) return InvalidArgument("Data too short when trying to read string");
    const absl::string_view bytes = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return bytes;
  }
  template <class T>
  absl::StatusOr<T> Number() {
    WEIR_ASSIGN_OR_RETURN(const absl::string_view bytes, Bytes(sizeof(T)));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));  // little-endian, like the host
    return value;
  }
  absl::Status Expect(absl::string_view text) {
    WEIR_ASSIGN_OR_RETURN(const absl::string_view found, Bytes(text.size()));
    if (found == text) return absl::OkStatus();
    return InvalidArgument("Header mismatch: Expected ", text, " but found ", found);
  }
  // Skips up to n bytes. TensorFlow accepts a last chunk that is cut off, unless it has samples.
  void Skip(size_t n) { rest_.remove_prefix(std::min(n, rest_.size())); }

 private:
  absl::string_view rest_;
};

// Skips the chunks of broadcasters and padding up to the format chunk.
absl::Status FindFormat(Reader& file) {
  constexpr absl::string_view kSkipped[] = {"JUNK", "bext", "iXML", "qlty",
                                            "mext", "levl", "link", "axml"};
  while (true) {
    WEIR_ASSIGN_OR_RETURN(const absl::string_view name, file.Bytes(4));
    if (name == "fmt ") return absl::OkStatus();
    if (std::find(std::begin(kSkipped), std::end(kSkipped), name) == std::end(kSkipped)) {
      return InvalidArgument("Unexpected field ", name);
    }
    WEIR_ASSIGN_OR_RETURN(const uint32_t size, file.Number<uint32_t>());
    WEIR_RETURN_IF_ERROR(file.Bytes(size).status());
  }
}

absl::Status ReadFormat(Reader& file, WavFile* wav) {
  WEIR_ASSIGN_OR_RETURN(const uint32_t size, file.Number<uint32_t>());
  if (size != 16 && size != 18) {
    return InvalidArgument("Bad format chunk size for WAV: Expected 16 or 18, but got", size);
  }
  WEIR_ASSIGN_OR_RETURN(const uint16_t format, file.Number<uint16_t>());
  if (format != 1) {
    return InvalidArgument("Bad audio format for WAV: Expected 1 (PCM), but got", format);
  }
  WEIR_ASSIGN_OR_RETURN(const uint16_t channels, file.Number<uint16_t>());
  if (channels < 1) {
    return InvalidArgument("Bad number of channels for WAV: Expected at least 1, but got ",
                           channels);
  }
  WEIR_ASSIGN_OR_RETURN(wav->sample_rate, file.Number<uint32_t>());
  WEIR_ASSIGN_OR_RETURN(const uint32_t bytes_per_second, file.Number<uint32_t>());
  WEIR_ASSIGN_OR_RETURN(const uint16_t bytes_per_frame, file.Number<uint16_t>());
  WEIR_ASSIGN_OR_RETURN(const uint16_t bits, file.Number<uint16_t>());
  if (bits != 16) return InvalidArgument("Can only read 16-bit WAV files, but received ", bits);
  const uint32_t frame = 2u * channels;
  if (bytes_per_frame != frame) {
    return InvalidArgument("Bad bytes per sample in WAV header: Expected ", frame, " but got ",
                           bytes_per_frame);
  }
  if (bytes_per_second != frame * wav->sample_rate) {
    return InvalidArgument("Bad bytes per second in WAV header: Expected ",
                           frame * wav->sample_rate, " but got ", bytes_per_second,
                           " (sample_rate=", wav->sample_rate, ", bytes_per_sample=", frame, ")");
  }
  wav->channels = channels;
  file.Skip(size - 16);
  return absl::OkStatus();
}

void AppendNumber(uint32_t v, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(v >> (8 * i)));
}

}  // namespace

float WavFile::Sample(int64_t frame, int64_t channel) const {
  int16_t value;
  std::memcpy(&value, samples.data() + 2 * (frame * channels + channel), sizeof(value));
  return static_cast<float>(value) / kScale;
}

absl::StatusOr<WavFile> ReadWav(absl::string_view file) {
  Reader reader(file);
  WavFile wav;
  WEIR_RETURN_IF_ERROR(reader.Expect("RIFF"));
  WEIR_RETURN_IF_ERROR(reader.Number<uint32_t>().status());  // the size of the file
  WEIR_RETURN_IF_ERROR(reader.Expect("WAVE"));
  WEIR_RETURN_IF_ERROR(FindFormat(reader));
  WEIR_RETURN_IF_ERROR(ReadFormat(reader, &wav));
  bool has_data = false;
  while (!reader.done()) {
    WEIR_ASSIGN_OR_RETURN(const absl::string_view name, reader.Bytes(4));
    WEIR_ASSIGN_OR_RETURN(const uint32_t size, reader.Number<uint32_t>());
    constexpr uint32_t kMost = std::numeric_limits<int32_t>::max();
    if (size > kMost) {
      return InvalidArgument("WAV data chunk '", name, "' is too large: ", size,
                             " bytes, but the limit is ", kMost);
    }
    if (name != "data") {
      reader.Skip(size);
      continue;
    }
    if (has_data) return InvalidArgument("More than one data chunk found in WAV");
    has_data = true;
    wav.frames = size / (2 * wav.channels);
    WEIR_ASSIGN_OR_RETURN(wav.samples, reader.Bytes(2 * wav.frames * wav.channels));
  }
  if (!has_data) return InvalidArgument("No data chunk found in WAV");
  return wav;
}

absl::StatusOr<std::string> WriteWav(const float* samples, int64_t sample_rate, int64_t channels,
                                     int64_t frames) {
  constexpr int64_t kHeader = 44, kMost = std::numeric_limits<uint32_t>::max();
  if (sample_rate < 1 || sample_rate > kMost) {
    return InvalidArgument("sample_rate must be in (0, 2^32), got: ", sample_rate);
  }
  if (channels < 1 || channels > 65535) {
    return InvalidArgument("num_channels must be in (0, 2^16), got: ", channels);
  }
  if (frames > (kMost - kHeader) / (2 * channels)) {
    return InvalidArgument("Provided channels and frames cannot be encoded as a WAV: ", channels,
                           " channels and ", frames, " frames");
  }
  const auto bytes = static_cast<uint32_t>(2 * channels * frames);
  std::string wav;
  wav.reserve(kHeader + bytes);
  wav += "RIFF";
  AppendNumber(kHeader - 8 + bytes, 4, &wav);
  wav += "WAVEfmt ";
  AppendNumber(16, 4, &wav);
  AppendNumber(1, 2, &wav);
  AppendNumber(static_cast<uint32_t>(channels), 2, &wav);
  AppendNumber(static_cast<uint32_t>(sample_rate), 4, &wav);
  AppendNumber(static_cast<uint32_t>(2 * channels * sample_rate), 4, &wav);
  AppendNumber(static_cast<uint32_t>(2 * channels), 2, &wav);
  AppendNumber(16, 2, &wav);
  wav += "data";
  AppendNumber(bytes, 4, &wav);
  for (int64_t i = 0; i < channels * frames; ++i) {
    const float v = std::isnan(samples[i])
                        ? 0
                        : std::clamp(std::round(samples[i] * kScale), -kScale, kScale - 1);
    AppendNumber(static_cast<uint32_t>(static_cast<int32_t>(v)), 2, &wav);
  }
  return wav;
}

}  // namespace weir
