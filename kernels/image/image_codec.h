#ifndef WEIR_KERNELS_IMAGE_IMAGE_CODEC_H_
#define WEIR_KERNELS_IMAGE_IMAGE_CODEC_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "weir/core/tensor/status.h"

// Codecs for image files in memory. Files are untrusted: malformed ones are INVALID_ARGUMENT, and
// nothing larger than kMostPixels values is allocated.
namespace weir {

inline constexpr int64_t kMostPixels = int64_t{1} << 29;

struct DecodedSize {
  int64_t frames = 1, height = 0, width = 0, channels = 0;
};
// Allocates memory for an image of the decoded size: consecutive frames, rows without padding.
template <class T>
using AllocatePixels = absl::FunctionRef<absl::StatusOr<T*>(const DecodedSize&)>;

enum class ImageFormat { kJpeg, kPng, kGif, kBmp, kWebp, kUnknown };
// Returns the format of an image file, which its first bytes tell, as in TensorFlow.
ImageFormat ImageFormatOf(absl::string_view file);
// Returns the same for bytes that need not be an image. The two letters of a BMP file may begin any
// text, so the header after them counts as well.
ImageFormat LikelyImageFormat(absl::string_view bytes);
// "JPEG", "PNG", "GIF", "BMP", "WebP"; "" for an unknown format.
const char* ImageFormatName(ImageFormat format);

// ---- JPEG (jpeg.cc)

struct JpegDecodeOptions {
  int channels = 0;  // 1 or 3; 0: as in the file (3 for CMYK)
  int ratio = 1;     // downscaling by 1, 2, 4 or 8
  bool fancy_upscaling = true;
  bool recover_truncated = false;  // accepts a truncated file
  float acceptable_fraction = 1;  // fraction of the rows that must be present; the others are black
  bool accurate_dct = false;
  bool crop = false;  // decode only this window
  int64_t crop_y = 0, crop_x = 0, crop_height = 0, crop_width = 0;
};
absl::Status DecodeJpeg(absl::string_view file, const JpegDecodeOptions& options,
                        AllocatePixels<uint8_t> allocate);
// Reads only the size, with the channels of the file.
absl::StatusOr<DecodedSize> ReadJpegSize(absl::string_view file);

struct JpegEncodeOptions {
  int quality = 95;
  bool progressive = false, optimize_size = false, chroma_downsampling = true;
  int density_unit = 1;  // 1 for inches, 2 for cm
  int x_density = 300, y_density = 300;
  std::string xmp_metadata;
};
// Gray (1 channel) or RGB (3).
absl::StatusOr<std::string> EncodeJpeg(const uint8_t* pixels, const DecodedSize& size,
                                       const JpegEncodeOptions& options);

// ---- PNG (png.cc)

// `channels` is 1, 3 or 4, or 0 for those of the file. 8-bit values are scaled up to 16 bits if
// requested; 16-bit values are truncated to 8 bits.
absl::Status DecodePng(absl::string_view file, int channels, AllocatePixels<uint8_t> allocate);
absl::Status DecodePng(absl::string_view file, int channels, AllocatePixels<uint16_t> allocate);
// `bits` per value (8 or 16); 1 to 4 channels; compression 0 to 9, -1 for zlib's default.
absl::StatusOr<std::string> EncodePng(const void* pixels, const DecodedSize& size, int bits,
                                      int compression);

// ---- GIF (gif.cc) and BMP (bmp.cc)

// Decodes to RGB. Each frame is drawn over the previous one; all have the size of the largest. With
// `first_frame_only` the other frames only count for the size.
absl::Status DecodeGif(absl::string_view file, bool first_frame_only,
                       AllocatePixels<uint8_t> allocate);
absl::Status DecodeBmp(absl::string_view file, int channels, AllocatePixels<uint8_t> allocate);

// ---- WebP (webp.cc)

// `channels` is that of the file, 3 or 4, or 0. Animations have 4; frames are drawn over each
// other.
absl::Status DecodeWebp(absl::string_view file, int channels, bool first_frame_only,
                        AllocatePixels<uint8_t> allocate);

}  // namespace weir

#endif  // WEIR_KERNELS_IMAGE_IMAGE_CODEC_H_
