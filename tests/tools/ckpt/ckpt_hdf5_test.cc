// HDF5 files and Keras's models in `weir ckpt`: what is written is read back, damage is found as
// far as the format allows, and no file crashes the reader.

#include <nlohmann/json.hpp>
#include <random>

#include "weir/tests/tools/ckpt/ckpt_testing.h"
#include "weir/tools/ckpt/hdf5_process.h"
#include "weir/tools/ckpt/hdf5_types.h"
#include "weir/tools/lib/zip_archive.h"

namespace weir::tools {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class WeirCkptHdf5 : public WeirCkpt {
 protected:
  // Writes a checkpoint whose names Keras would use, of every type that HDF5 files have.
  std::string WriteWeights(const std::string& name) const {
    Tensor kernel(DT_FLOAT, {40, 64});
    for (int i = 0; i < 40 * 64; ++i) kernel.data<float>()[i] = static_cast<float>(i) * 0.25f;
    const auto writer = BundleWriter::Create(At(name));
    for (const auto& [tensor_name, value] : std::vector<std::pair<std::string, Tensor>>{
             {"layers/dense/vars/0", kernel},
             {"layers/dense/vars/1", Tensor::Vector<bfloat16>({bfloat16(1.5f), bfloat16(-2.f)})},
             {"layers/other/vars/0", Tensor::Vector<half>({half(0.5f)})},
             {"layers/other/vars/1", Tensor::Vector<bool>({true, false, true})},
             {"optimizer/vars/0", Tensor::Scalar<int64_t>(7)},
             {"vars/0", Tensor(DT_DOUBLE, Shape({0, 3}))},
             {"vars/1", Tensor::Vector<std::complex<float>>({{1, -2}})},
             {"vars/2", Tensor::Vector<uint16_t>({1, 65535})}})
      EXPECT_TRUE((*writer)->Add(tensor_name, value).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
    return At(name);
  }
  // Writes a model whose weights are those of a checkpoint.
  std::string WriteModel(const std::string& name, const std::string& checkpoint) const {
    MustDo({"ckpt", "convert", checkpoint, At(name + ".weights.h5"), "--force"});
    const std::string weights = *ReadFile(At(name + ".weights.h5"));
    std::string bytes;
    const auto zip = ZipWriter::Create(&bytes);
    for (const auto& [member, content] : std::vector<std::pair<std::string, std::string>>{
             {"metadata.json", R"({"keras_version": "3.15.1"})"},
             {"config.json", R"({"class_name": "Functional"})"},
             {"model.weights.h5", weights},
             {"assets/words.txt", "a\nb\n"}}) {
      EXPECT_TRUE((*zip)
                      ->Add(member, content.size(),
                            [&](ZipWriter::Append append) { return append(content); })
                      .ok());
    }
    EXPECT_TRUE((*zip)->Close().ok());
    WriteBytes(At(name), bytes);
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

using WeirCkptKeras = WeirCkptHdf5;

TEST_F(WeirCkptHdf5, RoundTripsKeepEveryBit) {
  const std::string weights = WriteWeights("w");
  MustDo({"ckpt", "convert", weights, At("f.weights.h5")});
  EXPECT_EQ(Weir({"ckpt", "diff", weights, At("f.weights.h5")}).status, kOk);
  MustDo({"ckpt", "convert", At("f.weights.h5"), At("back")});
  EXPECT_EQ(*ReadFile(DataOf(At("back"))), *ReadFile(DataOf(weights)));
  EXPECT_THAT(Weir({"ckpt", "verify", At("f.weights.h5")}).out, HasSubstr("without checksums"));
}

TEST_F(WeirCkptHdf5, FilesAreKnownByTheirContents) {
  MustDo({"ckpt", "convert", WriteWeights("w"), At("f.h5")});
  ASSERT_TRUE(Files().Rename(At("f.h5"), At("f.npz")).ok());
  const json verified = json::parse(Weir({"ckpt", "verify", At("f.npz"), "--json"}).out);
  EXPECT_EQ(verified["format"], "h5");
  ASSERT_TRUE(Files().Rename(WriteModel("m.keras", At("w")), At("m")).ok());
  EXPECT_EQ(json::parse(Weir({"ckpt", "verify", At("m"), "--json"}).out)["format"], "keras");
}

TEST_F(WeirCkptHdf5, WhatTheFormatLacksIsRefused) {
  EXPECT_THAT(Error({"ckpt", "convert", model_, At("f.h5")}),
              AllOf(HasSubstr("'words'"), HasSubstr("string"), HasSubstr("--drop")));
  EXPECT_THAT(Error({"ckpt", "convert", model_, At("f.h5"), "--drop", "words"}),
              AllOf(HasSubstr("'hidden/b'"), HasSubstr("'hidden/b/Adam'"), HasSubstr("below")));
  EXPECT_FALSE(Files().Exists(At("f.h5")));
  MustDo({"ckpt", "convert", model_, At("f.h5"), "--drop", "words|Adam"});
  EXPECT_THAT(Error({"ckpt", "rename", At("f.h5"), At("g.h5"), "step=a//b"}),
              HasSubstr("not a path"));
}

// Every box is within the shape, and together they are the range, in order.
TEST(Hdf5, BoxesAreTheRange) {
  const std::vector<int64_t> dims = {3, 4, 5};
  for (uint64_t first = 0; first < 60; ++first) {
    for (uint64_t count = 0; first + count <= 60; ++count) {
      uint64_t next = first;
      const auto visit = [&](const hsize_t* start, const hsize_t* size, uint64_t elements) {
        EXPECT_EQ((start[0] * 4 + start[1]) * 5 + start[2], next);
        EXPECT_EQ(size[0] * size[1] * size[2], elements);
        for (int d = 0; d < 3; ++d) EXPECT_LE(start[d] + size[d], dims[d]);
        // Contiguous: below the first dimension of several, dimensions are whole.
        EXPECT_TRUE(size[0] == 1 || (size[1] == 4 && size[2] == 5));
        EXPECT_TRUE(size[1] == 1 || size[2] == 5);
        next += elements;
        return absl::OkStatus();
      };
      ASSERT_TRUE(ForEachBox(dims, first, count, visit).ok());
      EXPECT_EQ(next, first + count);
    }
  }
}

TEST_F(WeirCkptHdf5, DamageIsFound) {
  MustDo({"ckpt", "convert", WriteWeights("w"), At("f.h5")});
  const std::string bytes = *ReadFile(At("f.h5"));
  for (size_t i = 0; i < 50; ++i) {
    WriteBytes(At("f.h5"), bytes.substr(0, bytes.size() * i / 50));
    EXPECT_EQ(Verify(At("f.h5")), kFailure) << bytes.size() * i / 50 << " bytes";
  }
  for (const std::string& tail : {std::string(1, '\0'), std::string(4096, 'x'), bytes}) {
    WriteBytes(At("f.h5"), bytes + tail);
    EXPECT_EQ(Verify(At("f.h5")), kFailure) << tail.size() << " bytes follow";
  }
  std::mt19937 random(7);
  int found = 0;
  for (int i = 0; i < 500; ++i) {
    std::string damaged = bytes;
    damaged[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    WriteBytes(At("f.h5"), damaged);
    found += Verify(At("f.h5")) == kFailure ? 1 : 0;
  }
  EXPECT_GT(found, 0);
}

// The checksums of an archive find every changed byte of its members.
TEST_F(WeirCkptKeras, EveryChangedByteIsFound) {
  const std::string model = WriteModel("m.keras", WriteWeights("w"));
  EXPECT_EQ(Verify(model), kOk);
  const std::string bytes = *ReadFile(model), weights = *ReadFile(At("m.keras.weights.h5"));
  const size_t begin = bytes.find(weights), config = bytes.find("{\"class_name");
  ASSERT_NE(begin, std::string::npos);
  std::mt19937 random(8);
  const auto expect_found = [&](size_t at) {
    std::string damaged = bytes;
    damaged[at] ^= static_cast<char>(1 << random() % 8);
    WriteBytes(model, damaged);
    EXPECT_EQ(Verify(model), kFailure) << "byte " << at << " of " << bytes.size();
  };
  for (int i = 0; i < 300; ++i) expect_found(begin + random() % weights.size());
  for (int i = 0; i < 20; ++i) expect_found(config + i);
  for (size_t i = 0; i < 50; ++i) {
    WriteBytes(model, bytes.substr(0, bytes.size() * i / 50));
    EXPECT_EQ(Verify(model), kFailure) << bytes.size() * i / 50 << " bytes";
  }
  for (int i = 0; i < 200; ++i) {  // anywhere: no crash
    std::string damaged = bytes;
    damaged[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    WriteBytes(model, damaged);
    Verify(model);
  }
}

TEST_F(WeirCkptKeras, WeightsAreReplaced) {
  const std::string model = WriteModel("m.keras", WriteWeights("w"));
  MustDo({"ckpt", "cast", model, At("half.keras"), "half"});
  EXPECT_THAT(Weir({"ckpt", "ls", At("half.keras")}).out, HasSubstr("half"));
  const json metadata =
      json::parse(Weir({"ckpt", "ls", At("half.keras"), "--metadata", "--json"}).out);
  EXPECT_EQ(metadata["config.json"]["value"], R"({"class_name": "Functional"})");
  EXPECT_NE(ReadFile(At("half.keras"))->find("a\nb\n"), std::string::npos) << "assets are kept";

  MustDo({"ckpt", "convert", At("w"), At("n.keras"), "--like", model});
  EXPECT_EQ(Weir({"ckpt", "diff", At("n.keras"), At("w")}).status, kOk);
  MustDo({"ckpt", "drop", model, At("o.keras"), "^optimizer/"});
  const std::vector<std::string> names = *Files().List(folder_);
  for (const std::string& name : names) EXPECT_FALSE(IsTemporaryOrLockName(name)) << name;
}

TEST_F(WeirCkptKeras, OtherWeightsAreRefused) {
  const std::string model = WriteModel("m.keras", WriteWeights("w"));
  EXPECT_THAT(Error({"ckpt", "convert", At("w"), At("n.keras")}), HasSubstr("--like"));
  EXPECT_THAT(Error({"ckpt", "convert", At("w"), At("n.keras"), "--like", model, "--rename",
                     "dense=tense"}),
              HasSubstr("has no tensor 'layers/tense/vars/0'"));
  EXPECT_THAT(
      Error({"ckpt", "convert", At("w"), At("n.keras"), "--like", model, "--drop", "dense/vars/0"}),
      HasSubstr("needs tensor 'layers/dense/vars/0'"));
  EXPECT_THAT(Error({"ckpt", "convert", At("w"), At("n.keras"), "--like", model, "--drop",
                     "other/vars/0", "--rename", "dense/vars/1=other/vars/0"}),
              HasSubstr("needs [1]"));
  EXPECT_THAT(Error({"ckpt", "convert", At("w"), At("n"), "--like", model}), HasSubstr("keras"));
  EXPECT_FALSE(Files().Exists(At("n.keras")));
}

TEST_F(WeirCkptHdf5, MetadataAreKept) {
  const std::string model = WriteModel("m.keras", WriteWeights("w"));
  MustDo({"ckpt", "convert", model, At("f.h5")});
  MustDo({"ckpt", "rename", At("f.h5"), At("g.h5"), "^vars/0=vars/9"});
  const json metadata = json::parse(Weir({"ckpt", "ls", At("g.h5"), "--metadata", "--json"}).out);
  EXPECT_EQ(metadata["config.json"]["value"], R"({"class_name": "Functional"})");
}

TEST_F(WeirCkptHdf5, OtherFilesAreDataLoss) {
  WriteBytes(At("f.h5"), std::string(4096, 'x'));
  const auto file = *Files().Open(At("f.h5"));
  const auto process = Hdf5Process::Start({*file, 0, file->size()}, "f.h5");
  EXPECT_EQ(process.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(process.status().message()), HasSubstr("f.h5: it is not an HDF5 file"));
}

}  // namespace
}  // namespace weir::tools
