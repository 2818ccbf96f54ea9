#include <cstdlib>
#include <cstring>
#include <limits>

#include "weir/core/tensor/cancellation.h"
#include "weir/kernels/image/image_codec.h"

// Uncompressed BMP files: a header, then rows of BGR(A) or gray pixels, each padded to a multiple
// of four bytes, bottom row first unless the height is negative.
namespace weir {

namespace {

template <class T>
T ReadAt(absl::string_view file, size_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof(T));  // little-endian, like the host
  return value;
}

struct Header {
  int64_t pixels_at, width, height;
  int channels;
  bool top_down;
  int64_t row() const { return (channels * width + 3) / 4 * 4; }
};

absl::StatusOr<Header> ReadHeader(absl::string_view file) {
  constexpr size_t kHeader = 32;
  if (file.size() < kHeader) {
    return InvalidArgument(
        "Incomplete bmp content, requires at least 32 bytes to find the header "
        "size, width, height, and bpp, got ",
        file.size(), " bytes");
  }
  const int64_t height = ReadAt<int32_t>(file, 22);
  const Header h = {ReadAt<int32_t>(file, 10), ReadAt<int32_t>(file, 18), std::abs(height),
                    ReadAt<int16_t>(file, 28) / 8, height < 0};
  if (h.channels != 1 && h.channels != 3 && h.channels != 4) {
    return InvalidArgument("Number of channels inherent in the image must be 1, 3 or 4, was ",
                           h.channels);
  }
  if (h.width <= 0) return InvalidArgument("Width must be positive");
  if (h.height == 0) return InvalidArgument("Height must be nonzero");
  if (h.pixels_at < 0) return InvalidArgument("header size must be nonnegative");
  if (h.width * h.height >= std::numeric_limits<int32_t>::max() / 8) {
    return InvalidArgument("Total possible pixel bytes must be less than 2^30");
  }
  const int64_t expected = h.pixels_at + h.row() * h.height;
  if (expected != static_cast<int64_t>(file.size())) {
    return InvalidArgument(
        "Input size should match (header_size + row_size * abs_height) but they differ by ",
        static_cast<int64_t>(file.size()) - expected);
  }
  return h;
}

}  // namespace

absl::Status DecodeBmp(absl::string_view file, int channels, AllocatePixels<uint8_t> allocate) {
  WEIR_ASSIGN_OR_RETURN(const Header h, ReadHeader(file));
  if (channels == 0) channels = h.channels;
  WEIR_ASSIGN_OR_RETURN(uint8_t * to, allocate({1, h.height, h.width, channels}));
  for (int64_t y = 0; y < h.height; ++y) {
    ThrowIfCancelled();
    const auto* from = reinterpret_cast<const uint8_t*>(file.data()) + h.pixels_at +
                       h.row() * (h.top_down ? y : h.height - 1 - y);
    for (int64_t x = 0; x < h.width; ++x, from += h.channels, to += channels) {
      for (int c = 0; c < channels; ++c) {
        if (c == 3) {
          to[c] = h.channels == 4 ? from[3] : 255;
        } else {
          to[c] = h.channels == 1 ? from[0] : from[2 - c];
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace weir
