#ifndef WEIR_TOOLS_DATA_PICTURE_H_
#define WEIR_TOOLS_DATA_PICTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "weir/core/tensor/status.h"

// Image files in features, as characters.
namespace weir::tools {

// Pixels in rows, red, green and blue.
struct Picture {
  int height = 0, width = 0;
  std::vector<uint8_t> pixels;
};

// Decodes an image file (the first frame of an animation), on white where it is transparent.
// INVALID_ARGUMENT for a malformed one, RESOURCE_EXHAUSTED for more than 64 million pixels.
absl::StatusOr<Picture> DecodePicture(absl::string_view file);
// Returns the picture with the averages of its pixels, no larger than the width and the height, in
// its proportions. A picture that fits is unchanged.
Picture Shrink(const Picture& picture, int max_width, int max_height);

enum class PictureColors {
  kNone,  // ten shades, of ASCII characters
  k256,   // of the terminal's palette
  kTrue   // 24 bits
};
// Draws a picture, one column for each pixel: with colors two rows of pixels in each line, as upper
// half blocks; without, one line for the average of two rows. Every line has its line end.
std::string DrawPicture(const Picture& picture, PictureColors colors);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_DATA_PICTURE_H_
