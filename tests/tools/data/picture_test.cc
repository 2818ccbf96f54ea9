#include "weir/tools/data/picture.h"

#include "gtest/gtest.h"
#include "weir/kernels/image/image_codec.h"

namespace weir::tools {
namespace {

// Red, green, blue and white above four black pixels.
Picture Colors() {
  Picture picture{.height = 2, .width = 4};
  picture.pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255};
  picture.pixels.resize(24, 0);
  return picture;
}

TEST(Picture, HalfBlocksHaveTwoColors) {
  Picture two = Colors();
  two.width = 1;
  two.pixels = {255, 0, 0, 1, 2, 3};
  EXPECT_EQ(DrawPicture(two, PictureColors::kTrue), "\x1b[38;2;255;0;0m\x1b[48;2;1;2;3m▀\x1b[0m\n");
  EXPECT_EQ(DrawPicture(two, PictureColors::k256), "\x1b[38;5;196m\x1b[48;5;16m▀\x1b[0m\n");
}

TEST(Picture, AnOddLastRowHasNoColorBelow) {
  Picture one{.height = 1, .width = 2, .pixels = {128, 128, 128, 128, 128, 128}};
  EXPECT_EQ(DrawPicture(one, PictureColors::k256), "\x1b[38;5;244m▀▀\x1b[0m\n");
}

TEST(Picture, WithoutColorsThereAreShades) {
  EXPECT_EQ(DrawPicture(Colors(), PictureColors::kNone), ".: =\n");
  EXPECT_EQ(DrawPicture({.height = 1, .width = 2, .pixels = {255, 255, 255, 0, 0, 0}},
                        PictureColors::kNone),
            "@\n");
}

TEST(Picture, ShrinksToAveragesInItsProportions) {
  Picture large{.height = 4, .width = 8};
  large.pixels.assign(4 * 8 * 3, 0);
  for (size_t i = 0; i < large.pixels.size(); i += 6) large.pixels[i] = 200;  // every second pixel
  const Picture small = Shrink(large, 4, 100);
  EXPECT_EQ(small.height, 2);
  EXPECT_EQ(small.width, 4);
  for (size_t i = 0; i < small.pixels.size(); ++i) EXPECT_EQ(small.pixels[i], i % 3 == 0 ? 100 : 0);
  EXPECT_EQ(Shrink(large, 100, 100).pixels, large.pixels);
  EXPECT_EQ(Shrink(large, 1, 1).pixels.size(), 3);
}

TEST(Picture, DecodesWhatItsFirstBytesSay) {
  const std::vector<uint8_t> rgba = {255, 0, 0, 255, 255, 0, 0, 0};
  const auto png = EncodePng(rgba.data(), {1, 1, 2, 4}, 8, -1);
  ASSERT_TRUE(png.ok());
  EXPECT_STREQ(ImageFormatName(LikelyImageFormat(*png)), "PNG");
  const auto picture = DecodePicture(*png);
  ASSERT_TRUE(picture.ok()) << picture.status();
  EXPECT_EQ(picture->pixels, (std::vector<uint8_t>{255, 0, 0, 255, 255, 255}));  // on white
  const std::vector<uint8_t> gray(16 * 16, 77);
  const auto jpeg = EncodeJpeg(gray.data(), {1, 16, 16, 1}, {});
  EXPECT_STREQ(ImageFormatName(LikelyImageFormat(*jpeg)), "JPEG");
  EXPECT_EQ(DecodePicture(*jpeg)->pixels[0], 77);
  const absl::string_view text = "BMW is a car, and these letters are no picture";
  EXPECT_EQ(LikelyImageFormat(text), ImageFormat::kUnknown);
  EXPECT_EQ(ImageFormatOf(text), ImageFormat::kBmp) << "as in TensorFlow";
  EXPECT_TRUE(absl::IsInvalidArgument(DecodePicture(png->substr(0, 40)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodePicture("text").status()));
}

}  // namespace
}  // namespace weir::tools
