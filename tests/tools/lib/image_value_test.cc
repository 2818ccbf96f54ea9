#include "weir/tools/lib/image_value.h"

#include "gmock/gmock.h"
#include "weir/core/io/coding.h"

// tests/tools/run/feeds_test.py compares decoded and resized images with TensorFlow's.
namespace weir::tools {
namespace {

using testing::HasSubstr;

// A BMP file of 2 by 1 pixels: red, and (10, 20, 30).
std::string TwoPixels() {
  std::string bmp = "BM";
  for (const uint32_t n : {62, 0, 54, 40, 2, 1, 1 | 24 << 16, 0, 0, 0, 0, 0, 0})
    PutFixed32(&bmp, n);
  return bmp + std::string("\0\0\xff\x1e\x14\x0a\0\0", 8);
}

std::string Decoded(DataType dtype, const Shape& shape, const PixelRange& pixels = {}) {
  const auto t = DecodeImageFor(TwoPixels(), dtype, shape, pixels);
  return t.ok() ? t->Description() + " " + t->Reshaped({t->num_elements()}).ToString()
                : std::string(t.status().message());
}

TEST(DecodeImageFor, TheTensorsShapeDecides) {
  constexpr const char* kBytes = "[255   0   0  10  20  30]";
  const auto expected = [&](const char* shape) {
    return absl::StrCat("uint8", shape, " ", kBytes);
  };
  EXPECT_EQ(Decoded(DT_UINT8, Shape::UnknownRank()), expected("[1,2,3]"));
  EXPECT_EQ(Decoded(DT_UINT8, {-1, -1, -1}), expected("[1,2,3]"));
  EXPECT_EQ(Decoded(DT_UINT8, {-1, -1, -1, 3}), expected("[1,1,2,3]"));
  EXPECT_EQ(Decoded(DT_UINT8, {-1, 3, -1, 2}), "uint8[1,3,1,2] [255  10   0  20   0  30]");
  EXPECT_EQ(Decoded(DT_UINT8, {3, 1, 2}), "uint8[3,1,2] [255  10   0  20   0  30]");
  EXPECT_EQ(Decoded(DT_UINT8, {-1, -1}), "uint8[1,2] [76 18]");
  EXPECT_EQ(Decoded(DT_UINT8, {2, 2}), "uint8[2,2] [76 18 76 18]");
  EXPECT_EQ(Decoded(DT_UINT8, {-1, 1, 2}), "uint8[1,1,2] [76 18]");
  EXPECT_EQ(Decoded(DT_UINT8, {1, 2, 1}), "uint8[1,2,1] [76 18]");
  EXPECT_EQ(Decoded(DT_UINT8, {1, 2, 4}), "uint8[1,2,4] [255   0   0 255  10  20  30 255]");
  EXPECT_EQ(Decoded(DT_UINT8, {2, 2, 3}),
            "uint8[2,2,3] [255   0   0  10  20  30 255   0   0  10  20  30]");
}

TEST(DecodeImageFor, FloatsAreInTheRangeOfPixels) {
  EXPECT_EQ(Decoded(DT_FLOAT, {1, 1, 3}).substr(0, 12), "float[1,1,3]");
  const auto unit = DecodeImageFor(TwoPixels(), DT_DOUBLE, {-1, -1, 3}, {});
  ASSERT_TRUE(unit.ok()) << unit.status();
  EXPECT_EQ(unit->data<double>()[0], 1);
  EXPECT_EQ(unit->data<double>()[3], static_cast<double>(10 * (1.0f / 255)));
  EXPECT_EQ(Decoded(DT_HALF, {1, 2, 3}, {-1, 1}).substr(0, 11), "half[1,2,3]");
  const auto centered = DecodeImageFor(TwoPixels(), DT_FLOAT, {-1, -1, 3}, {-1, 1});
  ASSERT_TRUE(centered.ok()) << centered.status();
  EXPECT_EQ(centered->data<float>()[0], 1);
  EXPECT_EQ(centered->data<float>()[1], -1);
}

TEST(DecodeImageFor, RefusesOtherShapesAndTypes) {
  EXPECT_THAT(Decoded(DT_FLOAT, {-1, 784, 2, 5, 5}), HasSubstr("[?,784,2,5,5]"));
  EXPECT_THAT(Decoded(DT_FLOAT, {-1, 784}), HasSubstr("[?,784]"));
  EXPECT_THAT(Decoded(DT_FLOAT, {1, 784}), HasSubstr("[1,784]"));
  EXPECT_THAT(Decoded(DT_FLOAT, {784}), HasSubstr("[height,width,channels]"));
  EXPECT_THAT(Decoded(DT_FLOAT, {5, 4, 7}), HasSubstr("1, 3 or 4 channels"));
  EXPECT_THAT(Decoded(DT_FLOAT, {-1, 5, 4, 7}), HasSubstr("1, 3 or 4 channels"));
  EXPECT_THAT(Decoded(DT_FLOAT, {0, 4, 3}), HasSubstr("resized to 0 by 4"));
  EXPECT_THAT(Decoded(DT_FLOAT, {int64_t{1} << 40, 4, 3}), HasSubstr("cannot be resized"));
  EXPECT_THAT(Decoded(DT_BOOL, {1, 2, 3}), HasSubstr("type bool"));
  EXPECT_THAT(Decoded(DT_INT8, {1, 2, 3}), HasSubstr("255"));
  EXPECT_FALSE(DecodeImageFor(TwoPixels().substr(0, 40), DT_UINT8, {1, 2, 3}, {}).ok());
}

TEST(IsImage, LooksAtTheFirstBytes) {
  EXPECT_TRUE(IsImage(TwoPixels()));
  EXPECT_TRUE(IsImage("\x89PNG\r\n\x1a\n"));
  EXPECT_FALSE(IsImage("BMW,Audi\n1,2\n"));
  EXPECT_TRUE(IsImage(std::string("BM\x3a\0\0\0\0\0\0\0\x36", 11) + std::string(47, '\0')));
  EXPECT_FALSE(IsImage(""));
}

}  // namespace
}  // namespace weir::tools
