#include "weir/tools/data/picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "weir/kernels/image/image_codec.h"

namespace weir::tools {

namespace {

constexpr int64_t kMostPixelsDrawn = int64_t{1} << 26;
constexpr int kColors = 3;
using Color = std::array<int, kColors>;

// What the decoders call for memory: keeps the pixels and their size.
struct Decoded {
  DecodedSize size;
  std::vector<uint8_t> values;

  absl::StatusOr<uint8_t*> Allocate(const DecodedSize& wanted) {
    if (wanted.height * wanted.width > kMostPixelsDrawn) {
      return absl::ResourceExhaustedError(
          absl::StrCat("an image of ", wanted.width, "x", wanted.height, " pixels is not drawn"));
    }
    size = wanted;
    values.resize(
        static_cast<size_t>(wanted.frames * wanted.height * wanted.width * wanted.channels));
    return values.data();
  }
};

absl::Status Decode(absl::string_view file, AllocatePixels<uint8_t> allocate) {
  JpegDecodeOptions jpeg;
  jpeg.channels = kColors;
  switch (LikelyImageFormat(file)) {
    case ImageFormat::kJpeg:
      return DecodeJpeg(file, jpeg, allocate);
    case ImageFormat::kPng:
      return DecodePng(file, kColors + 1, allocate);
    case ImageFormat::kGif:
      return DecodeGif(file, /*first_frame_only=*/true, allocate);
    case ImageFormat::kBmp:
      return DecodeBmp(file, /*channels=*/0, allocate);
    case ImageFormat::kWebp:
      return DecodeWebp(file, /*channels=*/0, /*first_frame_only=*/true, allocate);
    case ImageFormat::kUnknown:
      break;
  }
  return InvalidArgument("not an image");
}

// The color of a decoded pixel: gray, RGB, or RGB with alpha on white.
void AppendColor(const uint8_t* pixel, int64_t channels, std::vector<uint8_t>* out) {
  constexpr int kWhite = 255;
  for (int c = 0; c < kColors; ++c) {
    const int value = pixel[channels < kColors ? 0 : c];
    const int alpha = channels == kColors + 1 ? pixel[kColors] : kWhite;
    out->push_back(static_cast<uint8_t>((value * alpha + kWhite * (kWhite - alpha)) / kWhite));
  }
}

Color At(const Picture& picture, int y, int x) {
  const uint8_t* pixel = &picture.pixels[static_cast<size_t>((y * picture.width + x) * kColors)];
  return {pixel[0], pixel[1], pixel[2]};
}

int Brightness(const Color& color) {  // ITU-R BT.601
  return (299 * color[0] + 587 * color[1] + 114 * color[2]) / 1000;
}

// The nearest color among 16 to 255 of a terminal's palette: a cube of 6 levels for each of red,
// green and blue (0, 95, 135, ..., 255), and 24 grays (8, 18, ..., 238).
int PaletteIndex(const Color& color) {
  static constexpr std::array<int, 6> kLevels = {0, 95, 135, 175, 215, 255};
  const auto distance = [&](const Color& other) {
    int sum = 0;
    for (int c = 0; c < kColors; ++c) sum += (color[c] - other[c]) * (color[c] - other[c]);
    return sum;
  };
  Color levels, cube;
  for (int c = 0; c < kColors; ++c) {
    const auto nearest = std::min_element(kLevels.begin(), kLevels.end(), [&](int a, int b) {
      return std::abs(a - color[c]) < std::abs(b - color[c]);
    });
    levels[c] = static_cast<int>(nearest - kLevels.begin());
    cube[c] = *nearest;
  }
  constexpr int kFirstGray = 232, kGrays = 24, kDarkest = 8, kGrayStep = 10;
  const int average = (color[0] + color[1] + color[2]) / kColors;
  const int gray = std::clamp((average - kDarkest + kGrayStep / 2) / kGrayStep, 0, kGrays - 1);
  const int value = kDarkest + kGrayStep * gray;
  if (distance({value, value, value}) < distance(cube)) return kFirstGray + gray;
  return 16 + 36 * levels[0] + 6 * levels[1] + levels[2];
}

// The escape code that sets the color of what is drawn (38) or what is behind it (48).
std::string ColorCode(int ground, const Color& color, PictureColors colors) {
  if (colors == PictureColors::k256)
    return absl::StrCat("\x1b[", ground, ";5;", PaletteIndex(color), "m");
  return absl::StrCat("\x1b[", ground, ";2;", color[0], ";", color[1], ";", color[2], "m");
}

std::string DrawInColor(const Picture& picture, PictureColors colors) {
  std::string out;
  for (int y = 0; y < picture.height; y += 2) {
    std::string before;
    for (int x = 0; x < picture.width; ++x) {
      std::string code = ColorCode(38, At(picture, y, x), colors);
      if (y + 1 < picture.height) code += ColorCode(48, At(picture, y + 1, x), colors);
      if (code != before) out += code;
      before = code;
      out += "▀";
    }
    out += "\x1b[0m\n";
  }
  return out;
}

std::string DrawShades(const Picture& picture) {
  static constexpr absl::string_view kShades = " .:-=+*#%@";  // most terminals are dark
  std::string out;
  for (int y = 0; y < picture.height; y += 2) {
    std::string line;
    for (int x = 0; x < picture.width; ++x) {
      const int below = std::min(y + 1, picture.height - 1);
      const int bright = (Brightness(At(picture, y, x)) + Brightness(At(picture, below, x))) / 2;
      line.push_back(kShades[static_cast<size_t>(bright) * kShades.size() / 256]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace

absl::StatusOr<Picture> DecodePicture(absl::string_view file) {
  Decoded decoded;
  WEIR_RETURN_IF_ERROR(
      Decode(file, [&decoded](const DecodedSize& size) { return decoded.Allocate(size); }));
  const DecodedSize& size = decoded.size;
  Picture picture{.height = static_cast<int>(size.height), .width = static_cast<int>(size.width)};
  picture.pixels.reserve(static_cast<size_t>(size.height * size.width * kColors));
  const size_t count = static_cast<size_t>(size.height * size.width);
  for (size_t i = 0; i < count; ++i)
    AppendColor(&decoded.values[i * static_cast<size_t>(size.channels)], size.channels,
                &picture.pixels);
  return picture;
}

Picture Shrink(const Picture& from, int max_width, int max_height) {
  const double scale = std::min({1.0, static_cast<double>(max_width) / from.width,
                                 static_cast<double>(max_height) / from.height});
  Picture to{.height = std::max(1, static_cast<int>(std::lround(from.height * scale))),
             .width = std::max(1, static_cast<int>(std::lround(from.width * scale)))};
  // Pixel i stands for [i, i + 1) * from / to, of which there is at least one.
  const auto begin = [](int i, int all, int parts) {
    return static_cast<int>(int64_t{i} * all / parts);
  };
  for (int y = 0; y < to.height; ++y) {
    const int top = begin(y, from.height, to.height), bottom = begin(y + 1, from.height, to.height);
    for (int x = 0; x < to.width; ++x) {
      const int left = begin(x, from.width, to.width), right = begin(x + 1, from.width, to.width);
      std::array<int64_t, kColors> sums = {};
      for (int v = top; v < bottom; ++v) {
        for (int u = left; u < right; ++u) {
          const Color color = At(from, v, u);
          for (int c = 0; c < kColors; ++c) sums[c] += color[c];
        }
      }
      const int64_t count = int64_t{bottom - top} * (right - left);
      for (const int64_t sum : sums) to.pixels.push_back(static_cast<uint8_t>(sum / count));
    }
  }
  return to;
}

std::string DrawPicture(const Picture& picture, PictureColors colors) {
  return colors == PictureColors::kNone ? DrawShades(picture) : DrawInColor(picture, colors);
}

}  // namespace weir::tools
