// npz, safetensors and GGUF in `weir ckpt`: what is written is read back, damage is found as far as
// the format allows, and no file crashes the reader.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "weir/core/io/coding.h"
#include "weir/core/io/npy.h"
#include "weir/tests/tools/ckpt/ckpt_testing.h"

namespace weir::tools {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WeirCkptFormats : public WeirCkpt {
 protected:
  // Writes a checkpoint of plain types that all formats have.
  std::string WritePlain(const std::string& name) const {
    Tensor matrix(DT_FLOAT, {4, 64});
    for (int i = 0; i < 256; ++i) matrix.data<float>()[i] = 0.37f * static_cast<float>(i % 83 - 40);
    const auto writer = BundleWriter::Create(At(name));
    for (const auto& [tensor_name, value] : std::vector<std::pair<std::string, Tensor>>{
             {"a/b", Tensor::Vector<bfloat16>({bfloat16(1.5f), bfloat16(-2.f)})},
             {"a/half", Tensor::Vector<half>({half(0.5f)})},
             {"a/w", matrix},
             {"empty", Tensor(DT_FLOAT, Shape({0, 3}))},
             {"n", Tensor::Vector<int32_t>({1, -2, 3})},
             {"step", Tensor::Scalar<int64_t>(7)}})
      EXPECT_TRUE((*writer)->Add(tensor_name, value).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
    return At(name);
  }
  static void WriteBytes(const std::string& path, const std::string& bytes) {
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  }
  // Returns the exit status of `verify`, after which all other readers must survive too.
  static int Verify(const std::string& path) {
    Weir({"ckpt", "ls", path});
    return Weir({"ckpt", "verify", path}).status;
  }
};

using WeirCkptGguf = WeirCkptFormats;
using WeirCkptSafetensors = WeirCkptFormats;
using WeirCkptNpz = WeirCkptFormats;

TEST_F(WeirCkptFormats, RoundTripsKeepEveryBit) {
  const std::string plain = WritePlain("plain");
  for (const std::string file : {"f.npz", "f.safetensors", "f.gguf"}) {
    MustDo({"ckpt", "convert", plain, At(file)});
    EXPECT_EQ(Weir({"ckpt", "diff", plain, At(file)}).status, kOk) << file;
    EXPECT_EQ(Weir({"ckpt", "verify", At(file)}).status, kOk) << file;
    MustDo({"ckpt", "convert", At(file), At(file + ".v2"), "--format", "v2"});
    EXPECT_EQ(*ReadFile(DataOf(At(file + ".v2"))), *ReadFile(DataOf(plain))) << file;
  }
  const std::vector<std::string> names = *Files().List(folder_);
  for (const std::string& name : names) EXPECT_EQ(name.find("weir-"), std::string::npos) << name;
}

TEST_F(WeirCkptFormats, LackingTypesAreRefused) {
  for (const auto& [file, type] :
       {std::pair{"f.npz", "string"}, {"f.safetensors", "string"}, {"f.gguf", "string"}}) {
    EXPECT_THAT(Error({"ckpt", "convert", model_, At(file)}),
                AllOf(HasSubstr("'words'"), HasSubstr(type), HasSubstr("--drop")));
    MustDo({"ckpt", "convert", model_, At(file), "--drop", "words"});
  }
  const auto writer = BundleWriter::Create(At("u"));
  ASSERT_TRUE((*writer)->Add("u", Tensor::Vector<uint32_t>({4000000000})).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_THAT(Error({"ckpt", "convert", At("u"), At("u.gguf")}), HasSubstr("--convert-types"));
  MustDo({"ckpt", "convert", At("u"), At("u.gguf"), "--convert-types"});
  EXPECT_THAT(Weir({"ckpt", "show", At("u.gguf"), "u"}).out, HasSubstr("int64[1]\n[4000000000]"));
}

// Truncated files are always damaged, and no damage crashes. A format with checksums notices every
// changed byte of the elements.
TEST_F(WeirCkptFormats, DamageIsFound) {
  const std::string plain = WritePlain("plain");
  std::mt19937 random(7);
  for (const std::string file : {"f.npz", "f.safetensors", "f.gguf"}) {
    MustDo({"ckpt", "convert", plain, At(file)});
    const std::string bytes = *ReadFile(At(file));
    for (size_t i = 0; i < 50; ++i) {
      WriteBytes(At(file), bytes.substr(0, bytes.size() * i / 50));
      EXPECT_EQ(Verify(At(file)), kFailure) << file << " of " << bytes.size() * i / 50 << " bytes";
    }
    int found = 0;
    for (int i = 0; i < 500; ++i) {
      std::string damaged = bytes;
      damaged[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
      WriteBytes(At(file), damaged);
      found += Verify(At(file)) == kFailure ? 1 : 0;
    }
    EXPECT_GT(found, 0) << file;
  }
}

TEST_F(WeirCkptFormats, AnElementOfAnArchiveIsNeverChangedUnnoticed) {
  MustDo({"ckpt", "convert", WritePlain("plain"), At("f.npz")});
  const std::string bytes = *ReadFile(At("f.npz"));
  const Tensor matrix = Read(At("plain"), "a/w");
  const size_t start =
      bytes.find(std::string(static_cast<const char*>(matrix.raw()), matrix.num_bytes()));
  ASSERT_NE(start, std::string::npos);
  for (size_t at = start; at < start + matrix.num_bytes(); at += 31) {
    std::string damaged = bytes;
    damaged[at] ^= 1;
    WriteBytes(At("f.npz"), damaged);
    EXPECT_EQ(Verify(At("f.npz")), kFailure) << at;
  }
}

TEST_F(WeirCkptNpz, ASizeThatTheArchiveHasNoRoomForIsDataLoss) {
  MustDo({"ckpt", "convert", WritePlain("plain"), At("f.npz")});
  std::string bytes = *ReadFile(At("f.npz"));
  const size_t entry = bytes.find("PK\1\2");
  ASSERT_NE(entry, std::string::npos);
  constexpr size_t kSizeOffset = 24;
  bytes.replace(entry + kSizeOffset, 4, std::string("\0\0\0\x70", 4));
  WriteBytes(At("f.npz"), bytes);
  EXPECT_THAT(Error({"ckpt", "ls", At("f.npz")}),
              AllOf(HasSubstr("DATA_LOSS"), HasSubstr("the archive has only")));
}

TEST_F(WeirCkptFormats, VerifySaysThatThereAreNoChecksums) {
  const std::string plain = WritePlain("plain");
  MustDo({"ckpt", "convert", plain, At("f.safetensors")});
  EXPECT_THAT(Weir({"ckpt", "verify", At("f.safetensors")}).out, HasSubstr("without checksums"));
  MustDo({"ckpt", "convert", plain, At("f.npz")});
  EXPECT_THAT(Weir({"ckpt", "verify", At("f.npz")}).out, HasSubstr("bytes are sound"));
}

TEST_F(WeirCkptSafetensors, MalformedHeadersAreDataLoss) {
  const auto error = [&](const std::string& header, const std::string& data) {
    std::string bytes;
    PutFixed64(&bytes, header.size());
    WriteBytes(At("f.safetensors"), bytes + header + data);
    return Error({"ckpt", "ls", At("f.safetensors")});
  };
  const std::string f = R"({"dtype":"F32","shape":[1],"data_offsets":)";
  EXPECT_THAT(error("[]", ""), HasSubstr("not a JSON object"));
  EXPECT_THAT(error("{\"a\":" + f + "[0,4]},\"a\":" + f + "[0,4]}}", "1234"),
              HasSubstr("two tensors of one name"));
  EXPECT_THAT(error("{\"a\":" + f + "[0,4]}}", "12345"), HasSubstr("5 bytes follow"));
  EXPECT_THAT(error("{\"a\":" + f + "[4,8]}}", "12345678"), HasSubstr("gap at byte 0"));
  EXPECT_THAT(error("{\"a\":" + f + "[0,4]},\"b\":" + f + "[0,4]}}", "1234"), HasSubstr("overlap"));
  EXPECT_THAT(error("{\"a\":" + f + "[0,3]}}", "123"), HasSubstr("has bytes 0 to 3"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", "1"),
              AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr("F4")));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "1234"),
              HasSubstr("lacks dtype, shape"));
  EXPECT_THAT(
      error(R"({"a":{"dtype":"U8","shape":[9000000000,9000000000],"data_offsets":[0,4]}})", "1234"),
      HasSubstr("DATA_LOSS"));
}

TEST_F(WeirCkptSafetensors, MetadataAreKept) {
  std::string header = R"({"__metadata__":{"format":"pt"},"a":{"dtype":"U8","shape":[1],)"
                       R"("data_offsets":[0,1]}})";
  std::string bytes;
  PutFixed64(&bytes, header.size());
  WriteBytes(At("f.safetensors"), bytes + header + "x");
  MustDo({"ckpt", "rename", At("f.safetensors"), At("g.safetensors"), "a=b"});
  const json metadata =
      json::parse(Weir({"ckpt", "ls", At("g.safetensors"), "--metadata", "--json"}).out);
  EXPECT_EQ(metadata["format"]["value"], "pt");
}

// ---- GGUF

void PutText(std::string* out, const std::string& text) {
  PutFixed64(out, text.size());
  *out += text;
}

// A file with one tensor "t" of a row, and the metadata general.name.
std::string OneTensor(uint32_t type, uint64_t elements, const std::string& data) {
  std::string out = "GGUF";
  PutFixed32(&out, 3);
  PutFixed64(&out, 1);
  PutFixed64(&out, 1);
  PutText(&out, "general.name");
  PutFixed32(&out, 8);
  PutText(&out, "tiny");
  PutText(&out, "t");
  PutFixed32(&out, 1);
  PutFixed64(&out, elements);
  PutFixed32(&out, type);
  PutFixed64(&out, 0);
  out.resize((out.size() + 31) / 32 * 32);
  return out + data;
}

constexpr char kOne[] = "\x00\x3c";  // 1 as a half
const std::string& One() {
  static const auto* const one = new std::string(kOne, 2);
  return *one;
}

TEST_F(WeirCkptGguf, QuantizedBlocksAreDecoded) {
  const auto decoded = [&](uint32_t type, uint64_t elements, const std::string& block) {
    WriteBytes(At("t.gguf"), OneTensor(type, elements, block));
    MustDo({"ckpt", "convert", At("t.gguf"), At("t"), "--force"});
    return Read(At("t"), "t");
  };
  // Q8_0: the scale times signed bytes.
  const Tensor q8 = decoded(8, 32, One() + std::string(31, '\xff') + "\x05");
  EXPECT_EQ(q8.data<float>()[0], -1);
  EXPECT_EQ(q8.data<float>()[31], 5);
  // Q4_0: low halves first, less 8.
  const Tensor q4 = decoded(2, 32, One() + std::string(16, '\x0f'));
  EXPECT_EQ(q4.data<float>()[0], 7);
  EXPECT_EQ(q4.data<float>()[16], -8);
  // Q4_K: sub-block 0 has scale 3 and offset 1, sub-block 5 has scale 2 | 1 << 4 and offset 4.
  std::string scales(12, '\0');
  scales[0] = 3;
  scales[4] = 1;
  scales[1] |= 1 << 6;
  scales[9] = 0x42;
  const Tensor q4k = decoded(12, 256, One() + One() + scales + std::string(128, '\x52'));
  EXPECT_EQ(q4k.data<float>()[0], 3 * 2 - 1);
  EXPECT_EQ(q4k.data<float>()[160], 18 * 5 - 4);
  EXPECT_EQ(q4k.data<float>()[255], 0);
  // Q6_K: lower four bits 0x3 and 0x4, upper two bits 0, 1, 2, 3 by groups of 32; scales 1 and -1.
  std::string signs(16, '\1');
  signs[3] = '\xff';
  const Tensor q6k =
      decoded(14, 256, std::string(128, '\x43') + std::string(64, '\xe4') + signs + One());
  EXPECT_EQ(q6k.data<float>()[0], 3 - 32);
  EXPECT_EQ(q6k.data<float>()[32], (3 | 1 << 4) - 32);
  EXPECT_EQ(q6k.data<float>()[48], -((3 | 1 << 4) - 32));
  EXPECT_EQ(q6k.data<float>()[64], (4 | 2 << 4) - 32);
  EXPECT_EQ(q6k.data<float>()[96], (4 | 3 << 4) - 32);
}

TEST_F(WeirCkptGguf, QuantizingIsNear) {
  const std::string plain = WritePlain("plain");
  MustDo({"ckpt", "convert", plain, At("q.gguf"), "--quantize"});
  const json diff = json::parse(Weir({"ckpt", "diff", plain, At("q.gguf"), "--json"}).out);
  ASSERT_EQ(diff["tensors"].size(), 1u) << "only the matrix is quantized";
  EXPECT_EQ(diff["tensors"][0]["name"], "a/w");
  // Half of a step, and the rounding of the scale to a half.
  EXPECT_LT(diff["tensors"][0]["max_absolute"], 15.6 / 127 * 0.6);
  EXPECT_THAT(Error({"ckpt", "convert", plain, At("q.npz"), "--quantize"}), HasSubstr("gguf"));
}

TEST_F(WeirCkptGguf, WhatHasNoScaleIsNotQuantized) {
  const auto writer = BundleWriter::Create(At("large"));
  ASSERT_TRUE((*writer)->Add("t", Tensor::Of<float>({1, 32}, std::vector<float>(32, 1e7f))).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_THAT(Error({"ckpt", "convert", At("large"), At("q.gguf"), "--quantize"}),
              HasSubstr("cannot be quantized"));
}

TEST_F(WeirCkptGguf, OtherTypesAreNamed) {
  WriteBytes(At("t.gguf"), OneTensor(10, 256, std::string(84, '\0')));
  EXPECT_THAT(Error({"ckpt", "ls", At("t.gguf")}),
              AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr("'t' has the type Q2_K")));
  WriteBytes(At("t.gguf"), OneTensor(99, 256, std::string(84, '\0')));
  EXPECT_THAT(Error({"ckpt", "ls", At("t.gguf")}), HasSubstr("type 99"));
}

TEST_F(WeirCkptGguf, MetadataAreShownAndKept) {
  std::string file = "GGUF";
  PutFixed32(&file, 2);
  PutFixed64(&file, 0);
  PutFixed64(&file, 2);
  PutText(&file, "list");
  PutFixed32(&file, 9);
  PutFixed32(&file, 5);
  PutFixed64(&file, 2);
  PutFixed32(&file, static_cast<uint32_t>(-3));
  PutFixed32(&file, 4);
  PutText(&file, "x");
  PutFixed32(&file, 6);
  PutFixed32(&file, 0x3e800000);
  WriteBytes(At("m.gguf"), file);
  const json metadata = json::parse(Weir({"ckpt", "ls", At("m.gguf"), "--metadata", "--json"}).out);
  EXPECT_EQ(metadata["list"]["type"], "array of int32");
  EXPECT_EQ(metadata["list"]["value"], json({-3, 4}));
  EXPECT_EQ(metadata["x"]["value"], 0.25);

  WriteBytes(At("t.gguf"), OneTensor(0, 1, One() + One()));
  MustDo({"ckpt", "rename", At("t.gguf"), At("u.gguf"), "t=u"});
  const json kept = json::parse(Weir({"ckpt", "ls", At("u.gguf"), "--metadata", "--json"}).out);
  EXPECT_EQ(kept["general.name"]["value"], "tiny");
}

TEST_F(WeirCkptGguf, LimitsAreChecked) {
  const auto writer = BundleWriter::Create(At("long"));
  ASSERT_TRUE((*writer)->Add(std::string(64, 'n'), Tensor::Scalar(1.f)).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_THAT(Error({"ckpt", "convert", At("long"), At("long.gguf")}), HasSubstr("63 bytes"));
  // A count of tensors, a length and a shape that the file has no room for.
  std::string file = OneTensor(0, 1, "1234");
  for (const size_t at : {size_t{8}, size_t{16}, size_t{24}, file.find("t\1") + 5}) {
    std::string damaged = file;
    damaged.replace(at, 8, std::string(7, '\xff') + "\x7f");
    WriteBytes(At("t.gguf"), damaged);
    EXPECT_THAT(Error({"ckpt", "ls", At("t.gguf")}), HasSubstr("DATA_LOSS")) << at;
  }
}

}  // namespace
}  // namespace weir::tools
