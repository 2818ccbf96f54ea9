#ifndef WEIR_KERNELS_IMAGE_CODEC_H_
#define WEIR_KERNELS_IMAGE_CODEC_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "weir/core/status.h"

// Image files in memory. Files come from anywhere: what is broken is INVALID_ARGUMENT, and nothing
// is allocated that is bigger than kMostPixels values.
namespace weir {

inline constexpr int64_t kMostPixels = int64_t{1} << 29;

struct DecodedSize {
  int64_t frames = 1, height = 0, width = 0, channels = 0;
};
// Gives the memory for an image whose size has become known: frames after each other, rows without
// gaps.
template <class T>
using AllocatePixels = absl::FunctionRef<absl::StatusOr<T*>(const DecodedSize&)>;

// ---- JPEG (jpeg.cc)

struct JpegDecodeOptions {
  int channels = 0;  // 1 or 3; 0: what the file has (3 for CMYK)
  int ratio = 1;     // shrinks by 1, 2, 4 or 8
  bool fancy_upscaling = true;
  bool recover_truncated = false;  // goes on as if the file ended where it breaks off
  float acceptable_fraction = 1;   // of the rows that must be there; the others are black
  bool accurate_dct = false;
  bool crop = false;  // to this window
  int64_t crop_y = 0, crop_x = 0, crop_height = 0, crop_width = 0;
};
absl::Status DecodeJpeg(absl::string_view file, const JpegDecodeOptions& options,
                        AllocatePixels<uint8_t> allocate);
// The size alone, with the channels of the file.
absl::StatusOr<DecodedSize> ReadJpegSize(absl::string_view file);

struct JpegEncodeOptions {
  int quality = 95;
  bool progressive = false, optimize_size = false, chroma_downsampling = true;
  int density_unit = 1;  // 1 inch, 2 cm
  int x_density = 300, y_density = 300;
  std::string xmp_metadata;
};
// Gray (1 channel) or RGB (3).
absl::StatusOr<std::string> EncodeJpeg(const uint8_t* pixels, const DecodedSize& size,
                                       const JpegEncodeOptions& options);

// ---- PNG (png.cc)

// `channels` is 1, 3 or 4, or 0 for what the file has. Values of 8 bits are spread over 16 where
// those are asked for, and values of 16 bits cut to 8.
absl::Status DecodePng(absl::string_view file, int channels, AllocatePixels<uint8_t> allocate);
absl::Status DecodePng(absl::string_view file, int channels, AllocatePixels<uint16_t> allocate);
// `bits` (8 or 16) a value; 1 to 4 channels; compression 0 to 9, -1 for zlib's default.
absl::StatusOr<std::string> EncodePng(const void* pixels, const DecodedSize& size, int bits,
                                      int compression);

// ---- GIF (gif.cc) and BMP (bmp.cc)

// RGB. A frame is drawn over the one before it; all are as big as the biggest. With
// `first_frame_only` the others only count for that.
absl::Status DecodeGif(absl::string_view file, bool first_frame_only,
                       AllocatePixels<uint8_t> allocate);
absl::Status DecodeBmp(absl::string_view file, int channels, AllocatePixels<uint8_t> allocate);

}  // namespace weir

#endif  // WEIR_KERNELS_IMAGE_CODEC_H_
