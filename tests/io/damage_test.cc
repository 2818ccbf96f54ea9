#include <algorithm>
#include <functional>

#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/coding.h"
#include "weir/core/io/crc32c.h"
#include "weir/core/io/file.h"
#include "weir/tests/io/test_files.h"

// Checkpoints with every byte changed and truncated at every length: a read returns an error or the
// correct value.
namespace weir {
namespace {

using ::testing::HasSubstr;
using testing::MemoryFileSystem;
using testing::PatternStrings;
using testing::PatternTensor;
using testing::ReadBytes;

constexpr char kGolden[] = "tests/io/golden/";

// Returns the size of the single data block of an SSTable. After its trailer comes the metaindex
// block, eight bytes 00000000 01000000; the index block ends with the same eight bytes, 61 bytes
// before the end of the file.
size_t FirstBlockSize(const std::string& table) {
  const size_t metaindex = table.rfind(std::string("\0\0\0\0\1\0\0\0", 8), table.size() - 62);
  EXPECT_NE(metaindex, std::string::npos);
  return metaindex - 5;
}

void FixChecksum(std::string* table, size_t block) {
  std::string crc;
  PutFixed32(&crc, MaskCrc32c(ExtendCrc32c(0, table->data(), block + 1)));
  table->replace(block + 1, 4, crc);
}

// A small checkpoint with all kinds of entries, in memory.
class Damage : public ::testing::Test {
 protected:
  Damage() : scope_(&files_) {
    whole_ = PatternTensor(DT_FLOAT, Shape({4, 2}), 3);
    const auto writer = BundleWriter::Create("/m");
    EXPECT_TRUE((*writer)->Add("floats", PatternTensor(DT_FLOAT, Shape({3, 2}), 1)).ok());
    EXPECT_TRUE((*writer)->Add("none", PatternTensor(DT_FLOAT, Shape({0}), 1)).ok());
    EXPECT_TRUE(
        (*writer)
            ->AddSlice("parts", whole_.shape(), *TensorSlice::Parse("0,1:-"), whole_.Slice(0, 1))
            .ok());
    EXPECT_TRUE(
        (*writer)
            ->AddSlice("parts", whole_.shape(), *TensorSlice::Parse("1,3:-"), whole_.Slice(1, 4))
            .ok());
    EXPECT_TRUE((*writer)->Add("strings", PatternStrings(Shape({3}), 1)).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
    for (const auto& tensor : Names())
      truth_.push_back(*(*CheckpointReader::Open("/m"))->Read(tensor));
  }

  // Otherwise protobuf prints a line for each of thousands of malformed messages.
  static void SetUpTestSuite() { google::protobuf::SetLogHandler(nullptr); }

  static std::vector<std::string> Names() { return {"floats", "none", "parts", "strings"}; }

  // Reads everything; each read must return an error or the correct value. Returns the number of
  // errors.
  int ReadAll() {
    const auto reader = CheckpointReader::Open("/m");
    if (!reader.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(reader.status())) << reader.status();
      return static_cast<int>(Names().size());
    }
    (*reader)->List().IgnoreError();
    int errors = 0;
    for (size_t i = 0; i < truth_.size(); ++i) {
      const auto read = (*reader)->Read(Names()[i]);
      if (read.ok()) {
        EXPECT_TRUE(IdenticalTensors(*read, truth_[i])) << Names()[i];
      } else {
        EXPECT_TRUE(absl::IsDataLoss(read.status())) << read.status();
        ++errors;
      }
    }
    return errors;
  }

  // Calls check(bit) with one bit of the index flipped.
  void ForEachChangedBitOfTheIndex(const std::function<void(size_t bit)>& check) {
    std::string* const index = files_.Contents("/m.index");
    const std::string sound = *index;
    for (size_t i = 0; i < sound.size() * 8; ++i) {
      *index = sound;
      (*index)[i / 8] ^= static_cast<char>(1 << i % 8);
      check(i);
    }
  }

  MemoryFileSystem files_;
  ScopedFileSystem scope_;
  Tensor whole_;
  Tensors truth_;
};

TEST_F(Damage, EveryChangedByteOfTheDataIsReported) {
  std::string* data = files_.Contents("/m.data-00000-of-00001");
  const std::string sound = *data;
  for (size_t i = 0; i < sound.size(); ++i) {
    for (const int bit : {0, 3, 7}) {
      (*data)[i] = static_cast<char>(sound[i] ^ (1 << bit));
      EXPECT_EQ(ReadAll(), 1) << i;
      const auto report = VerifyBundle("/m");
      ASSERT_EQ(report->problems.size(), 1u) << i;
      EXPECT_LE(report->problems[0].offset, i);
      EXPECT_GT(report->problems[0].offset + report->problems[0].size, i);
      EXPECT_FALSE(report->problems[0].name.empty());
    }
    (*data)[i] = sound[i];
  }
}

TEST_F(Damage, EveryChangedBitOfTheIndexIsFound) {
  ForEachChangedBitOfTheIndex([&](size_t bit) {
    ReadAll();
    EXPECT_FALSE(VerifyBundle("/m")->problems.empty()) << "bit " << bit;
  });
}

// The tensors that a salvage reports as intact are correct. So are the doubtful ones whose name,
// type and shape are known.
class Salvage : public Damage {
 protected:
  // Returns the names reported as intact.
  std::vector<std::string> Check() {
    const auto salvaged = SalvagedBundle::Open("/m");
    if (!salvaged.ok()) {
      ADD_FAILURE() << salvaged.status();
      return {};
    }
    const std::vector<std::string> all = Names(), certain = (*salvaged)->names();
    for (const std::string& name : certain) {
      const auto at = std::find(all.begin(), all.end(), name);
      const auto read = (*salvaged)->Read(name);
      EXPECT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE(at != all.end() && IdenticalTensors(*read, truth_[at - all.begin()])) << name;
    }
    for (const CheckpointTensor& tensor : (*salvaged)->doubtful()) {
      const auto read = (*salvaged)->Read(tensor.name);
      EXPECT_TRUE(read.ok()) << read.status();
      const auto at = std::find(all.begin(), all.end(), tensor.name);
      if (at == all.end()) continue;
      const Tensor& truth = truth_[at - all.begin()];
      if (tensor.dtype != truth.dtype() || tensor.shape != truth.shape()) continue;
      EXPECT_TRUE(IdenticalTensors(*read, truth)) << tensor.name;
      ++doubted_;
    }
    lost_ = (*salvaged)->report().lost;
    return certain;
  }

  std::vector<CheckpointTensor> lost_;
  int doubted_ = 0;
};

TEST_F(Salvage, RecoversAnIntactBundle) {
  EXPECT_EQ(Check(), Names());
  EXPECT_TRUE(lost_.empty());
}

TEST_F(Salvage, LosesTheTensorOfAChangedByte) {
  std::string* data = files_.Contents("/m.data-00000-of-00001");
  for (size_t i = 0; i < data->size(); ++i) {
    (*data)[i] ^= 4;
    std::vector<std::string> names = Check();
    ASSERT_EQ(lost_.size(), 1u) << i;
    names.push_back(lost_[0].name);
    EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(Names())) << i;
    (*data)[i] ^= 4;
  }
}

TEST_F(Salvage, RecoversMostOfADamagedIndex) {
  const std::string sound = *files_.Contents("/m.index");
  ForEachChangedBitOfTheIndex([&](size_t) { Check(); });
  EXPECT_GT(doubted_, static_cast<int>(FirstBlockSize(sound)) * 8);
}

TEST_F(Salvage, LosesAllWithTheData) {
  ASSERT_TRUE(files_.Remove("/m.data-00000-of-00001").ok());
  EXPECT_TRUE(Check().empty());
  EXPECT_EQ(lost_.size(), Names().size());
}

// An adversarial rather than a damaged file: the checksum of the block is correct. A read returns a
// tensor of the requested shape or an error; nothing crashes, hangs, or allocates more memory than
// the files justify.
TEST_F(Damage, ChangedEntriesWithValidChecksumsAreHarmless) {
  std::string* index = files_.Contents("/m.index");
  const std::string sound = *index;
  const size_t block = FirstBlockSize(sound);
  for (size_t i = 0; i < block; ++i) {
    for (const int change : {0x01, 0x04, 0x10, 0x40, 0x80, 0x7f, 0xff}) {
      *index = sound;
      (*index)[i] ^= static_cast<char>(change);
      FixChecksum(index, block);
      if (const auto salvaged = SalvagedBundle::Open("/m"); salvaged.ok()) {
        for (const std::string& name : (*salvaged)->names())
          (*salvaged)->Read(name).status().IgnoreError();
      }
      const auto reader = CheckpointReader::Open("/m");
      if (!reader.ok()) continue;
      (*reader)->List().IgnoreError();
      for (const std::string& name : Names()) {
        const auto found = (*reader)->Find(name);
        const auto read = (*reader)->Read(name);
        EXPECT_TRUE(!found.ok() || !read.ok() || read->shape() == found->shape);
      }
    }
  }
}

TEST_F(Damage, ChangedV1EntriesWithValidChecksumsAreHarmless) {
  ASSERT_TRUE(files_.Create("/v1").ok());
  const std::string sound = [] {
    ScopedFileSystem real(nullptr);
    return ReadBytes(absl::StrCat(kGolden, "v1"));
  }();
  std::string* bytes = files_.Contents("/v1");
  const size_t block = FirstBlockSize(sound);
  for (size_t i = 0; i < block; ++i) {
    for (const int change : {0x01, 0x10, 0x80, 0x7f}) {
      *bytes = sound;
      (*bytes)[i] ^= static_cast<char>(change);
      FixChecksum(bytes, block);
      const auto reader = CheckpointReader::Open("/v1");
      if (!reader.ok()) continue;
      const auto list = (*reader)->List();
      for (const CheckpointTensor& t : *list) (*reader)->Read(t.name).IgnoreError();
    }
  }
}

TEST_F(Damage, EveryTruncationIsFound) {
  for (const char* path : {"/m.index", "/m.data-00000-of-00001"}) {
    std::string* bytes = files_.Contents(path);
    const std::string sound = *bytes;
    for (size_t size = 0; size < sound.size(); ++size) {
      *bytes = sound.substr(0, size);
      EXPECT_GT(ReadAll(), 0) << path << " " << size;
      EXPECT_FALSE(VerifyBundle("/m")->problems.empty()) << path << " " << size;
    }
    *bytes = sound + "x";
    EXPECT_FALSE(VerifyBundle("/m")->problems.empty()) << path;
    *bytes = sound;
  }
  EXPECT_EQ(ReadAll(), 0);
  EXPECT_TRUE(VerifyBundle("/m")->problems.empty());
}

TEST_F(Damage, TheMessageHasFileTensorOffsetAndBothChecksums) {
  (*files_.Contents("/m.data-00000-of-00001"))[30] ^= 1;
  const absl::Status status = (*CheckpointReader::Open("/m"))->Read("parts").status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  for (const char* word :
       {"/m.data-00000-of-00001", "parts, slice 0,1:-", "offset 24",
        "Checksum does not match: stored ", "calculated on the restored bytes "}) {
    EXPECT_THAT(status.message(), HasSubstr(word));
  }
}

TEST_F(Damage, IntactTensorsAreReadableInADamagedFile) {
  (*files_.Contents("/m.data-00000-of-00001"))[0] ^= 1;
  EXPECT_TRUE(absl::IsDataLoss((*CheckpointReader::Open("/m"))->Read("floats").status()));
  EXPECT_TRUE((*CheckpointReader::Open("/m"))->Read("strings").ok());
}

TEST_F(Damage, EveryChangedByteOfAV1FileGivesAnErrorOrTheCorrectValue) {
  ASSERT_TRUE(files_.Create("/v1").ok());
  const std::string sound = [] {
    ScopedFileSystem real(nullptr);
    return ReadBytes(absl::StrCat(kGolden, "v1"));
  }();
  std::string* bytes = files_.Contents("/v1");
  *bytes = sound;
  Tensors truth;
  std::vector<std::string> names;
  {
    const auto reader = CheckpointReader::Open("/v1");
    ASSERT_TRUE(reader.ok());
    const auto list = (*reader)->List();
    for (const CheckpointTensor& t : *list) {
      names.push_back(t.name);
      truth.push_back(*(*reader)->Read(t.name));
    }
  }
  for (size_t i = 0; i < 2 * sound.size(); ++i) {
    *bytes = sound;
    if (i < sound.size()) {
      (*bytes)[i] ^= static_cast<char>(1 << i % 8);
    } else {
      bytes->resize(i - sound.size());
    }
    const auto reader = CheckpointReader::Open("/v1");
    if (!reader.ok()) continue;
    for (size_t k = 0; k < names.size(); ++k) {
      const auto read = (*reader)->Read(names[k]);
      EXPECT_TRUE(!read.ok() || IdenticalTensors(*read, truth[k])) << i << " " << names[k];
    }
  }
}

}  // namespace
}  // namespace weir
