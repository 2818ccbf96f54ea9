#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/tensor/tensor.h"
#include "weir/tests/evaluate.h"

// Encodes and decodes image files, including malformed ones. image_test has TensorFlow's results.
namespace weir {
namespace {

std::string Encode(const char* op, const Tensor& image, const Attrs& attrs = {}) {
  const absl::StatusOr<Tensors> out = RunFed(op, {image}, attrs);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[0].data<std::string>()[0] : "";
}

Tensor Ramp(const Shape& shape, DataType type) {
  Tensor t(type, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.SetIntAt(i, i * 3 % 251);
  return t;
}

TEST(ImageFiles, PngIsLossless) {
  for (const DataType type : {DT_UINT8, DT_UINT16}) {
    for (const int64_t channels : {1, 2, 3, 4}) {
      for (const int64_t level : {-1, 0, 9}) {
        const Tensor image = Ramp({5, 7, channels}, type);
        const std::string file = Encode("EncodePng", image, {{"compression", level}});
        const absl::StatusOr<Tensors> back =
            RunFed("DecodePng", {Tensor::Scalar(file)}, {{"dtype", type}});
        ASSERT_TRUE(back.ok()) << back.status();
        EXPECT_TRUE(IdenticalTensors((*back)[0], image));
      }
    }
  }
  const absl::StatusOr<Tensors> batch = RunFed("EncodePng", {Ramp({2, 3, 4, 5, 1}, DT_UINT8)});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ((*batch)[0].shape(), Shape({2, 3}));
}

TEST(ImageFiles, JpegIsNearlyLossless) {
  Tensor image(DT_UINT8, Shape({16, 24, 3}));
  for (int64_t i = 0; i < image.num_elements(); ++i)
    image.SetIntAt(i, 40 + i / 72 * 8 + i % 3 * 20);
  for (const bool progressive : {false, true}) {
    for (const bool downsampling : {false, true}) {
      const std::string file = Encode("EncodeJpeg", image,
                                      {{"quality", 100},
                                       {"progressive", progressive},
                                       {"chroma_downsampling", downsampling},
                                       {"optimize_size", true},
                                       {"xmp_metadata", "about it"}});
      EXPECT_NE(file.find(std::string("http://ns.adobe.com/xap/1.0/\0about it", 37)),
                std::string::npos);
      const absl::StatusOr<Tensors> back = RunFed("DecodeJpeg", {Tensor::Scalar(file)});
      ASSERT_TRUE(back.ok()) << back.status();
      ASSERT_EQ((*back)[0].shape(), image.shape());
      for (int64_t i = 0; i < image.num_elements(); ++i) {
        EXPECT_NEAR((*back)[0].IntAt(i), image.IntAt(i), 4);
      }
    }
  }
  const absl::StatusOr<Tensors> rough =
      RunFed("EncodeJpegVariableQuality", {image, Tensor::Scalar<int32_t>(5)});
  ASSERT_TRUE(rough.ok()) << rough.status();
  EXPECT_LT((*rough)[0].data<std::string>()[0].size(), Encode("EncodeJpeg", image).size());
}

// Runs every decoding op on every prefix of a file and on files with modified bytes: each must
// succeed or return INVALID_ARGUMENT.
void ExpectNoCrash(const std::string& file) {
  const auto run = [](const std::string& contents) {
    for (const char* op : {"DecodeJpeg", "DecodePng", "DecodeGif", "DecodeBmp", "DecodeImage"}) {
      const absl::StatusOr<Tensors> out = RunFed(op, {Tensor::Scalar(contents)});
      if (out.ok()) continue;
      EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument) << op << out.status();
    }
    RunFed("ExtractJpegShape", {Tensor::Scalar(contents)}).status().IgnoreError();
    RunFed("DecodeJpeg", {Tensor::Scalar(contents)}, {{"try_recover_truncated", true}})
        .status()
        .IgnoreError();
  };
  for (size_t n = 0; n < file.size(); n += 1 + file.size() / 40) run(file.substr(0, n));
  uint32_t seed = 17;
  for (int i = 0; i < 60; ++i) {
    std::string changed = file;
    for (int k = 0; k < 3; ++k) {
      seed = seed * 1664525u + 1013904223u;
      changed[seed / 7 % file.size()] = static_cast<char>(seed >> 24);
    }
    run(changed);
  }
}

TEST(ImageFiles, ATruncatedJpegCanBeRecovered) {
  const std::string whole = Encode("EncodeJpeg", Ramp({64, 64, 1}, DT_UINT8));
  const Tensor file = Tensor::Scalar(whole.substr(0, whole.size() * 2 / 3));
  EXPECT_EQ(RunFed("DecodeJpeg", {file}).status().code(), absl::StatusCode::kInvalidArgument);
  const absl::StatusOr<Tensors> full = RunFed("DecodeJpeg", {Tensor::Scalar(whole)});
  const absl::StatusOr<Tensors> recovered =
      RunFed("DecodeJpeg", {file}, {{"try_recover_truncated", true}});
  const absl::StatusOr<Tensors> part =
      RunFed("DecodeJpeg", {file}, {{"acceptable_fraction", 0.1f}});
  ASSERT_TRUE(full.ok() && recovered.ok() && part.ok()) << recovered.status() << part.status();
  for (int64_t i = 0; i < 64 * 8; ++i) {
    EXPECT_EQ((*recovered)[0].IntAt(i), (*full)[0].IntAt(i));
    EXPECT_EQ((*part)[0].IntAt(i), (*full)[0].IntAt(i));
  }
  EXPECT_EQ((*part)[0].IntAt(64 * 64 - 1), 0);
}

// A frame of 3 x 2 pixels in four colors. A clear code precedes each code, so that all have three
// bits.
std::string Gif() {
  std::string file("GIF89a\3\0\2\0\x91\0\0\0\0\0\xff\0\0\0\xff\0\0\0\xff,\0\0\0\0\3\0\2\0\0\2", 36);
  uint64_t bits = 0;
  int count = 0;
  for (const uint64_t color : {0, 1, 2, 3, 0, 1}) {
    bits |= (4 | color << 3) << count;
    count += 6;
  }
  bits |= uint64_t{5} << count;
  file += '\5';
  for (int i = 0; i < 5; ++i) file += static_cast<char>(bits >> (8 * i));
  return file + std::string("\0;", 2);
}

std::string Bmp() {
  std::string file("BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\2\0\0\0\1\0\x18\0", 30);
  return file + std::string(24 + 16, '\1');
}

TEST(ImageFiles, MalformedFilesAreInvalidArguments) {
  const Tensor image = Ramp({9, 7, 3}, DT_UINT8);
  for (const std::string& file :
       {Encode("EncodeJpeg", image), Encode("EncodeJpeg", image, {{"progressive", true}}),
        Encode("EncodePng", image), Gif(), Bmp()}) {
    EXPECT_TRUE(RunFed("DecodeImage", {Tensor::Scalar(file)}).ok());
    ExpectNoCrash(file);
  }
}

TEST(ImageFiles, RejectsHugeSizesInHeaders) {
  std::string png = Encode("EncodePng", Ramp({2, 2, 1}, DT_UINT8));
  std::string gif("GIF89a\xff\xff\xff\xff\x80\0\0\0\0\0\xff\xff\xff", 19);
  for (int i = 0; i < 9; ++i)
    gif += std::string(",\0\0\0\0\xff\xff\xff\xff\0\x02\x02\x4c\x01\0", 15);
  for (const std::string& file : {gif + ";", std::string("BM") + std::string(60, '\x7f')}) {
    const absl::StatusOr<Tensors> out = RunFed("DecodeImage", {Tensor::Scalar(file)});
    EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument) << out.status();
  }
}

}  // namespace
}  // namespace weir
