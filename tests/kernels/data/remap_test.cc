#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weir/core/io/bundle.h"
#include "weir/tests/evaluate.h"

namespace weir {
namespace {

std::string WriteText(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

std::vector<int64_t> Ids(const Tensor& t) {
  return std::vector<int64_t>(t.flat<int64_t>().begin(), t.flat<int64_t>().end());
}

TEST(Remap, VocabulariesAreMatchedLineByLine) {
  const Tensor new_file =
      Tensor::Scalar(WriteText("new.txt", "knitting\neminem\n\nMISSING\r\nwine"));
  const Tensor old_file = Tensor::Scalar(WriteText("old.txt", "wine\nknitting\n\neminem\nbad\n"));
  const auto remap = [&](int offset, int count, int old_size) {
    return RunFed(
        "GenerateVocabRemapping", {new_file, old_file},
        {{"new_vocab_offset", offset}, {"num_new_vocab", count}, {"old_vocab_size", old_size}});
  };
  const absl::StatusOr<Tensors> all = remap(0, 5, -1);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(Ids((*all)[0]), (std::vector<int64_t>{1, 3, 2, -1, 0}));
  EXPECT_EQ((*all)[1].scalar<int32_t>(), 4);
  const absl::StatusOr<Tensors> part = remap(1, 2, 2);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(Ids((*part)[0]), (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(remap(3, 3, -1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(remap(0, 1, 9).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RunFed("GenerateVocabRemapping", {Tensor::Scalar("/none"), old_file},
                   {{"new_vocab_offset", 0}, {"num_new_vocab", 1}})
                .status()
                .code(),
            absl::StatusCode::kNotFound);
}

class RemapMatrix : public testing::Test {
 protected:
  RemapMatrix() {
    path_ = testing::TempDir() + "/matrix";
    Tensor value(DT_FLOAT, Shape({5, 3}));
    for (int64_t i = 0; i < 15; ++i) value.data<float>()[i] = static_cast<float>(i);
    const absl::StatusOr<std::unique_ptr<BundleWriter>> writer = BundleWriter::Create(path_);
    EXPECT_TRUE((*writer)->Add("w", value).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
  }
  absl::StatusOr<Tensors> Load(std::vector<int64_t> rows, std::vector<int64_t> columns,
                               std::vector<float> values, int num_cols, int in_memory = -1) {
    return RunFed("LoadAndRemapMatrix",
                  {Tensor::Scalar(path_), Tensor::Scalar("w"),
                   Tensor::Vector<int64_t>(absl::MakeConstSpan(rows)),
                   Tensor::Vector<int64_t>(absl::MakeConstSpan(columns)),
                   Tensor::Vector<float>(absl::MakeConstSpan(values))},
                  {{"num_rows", static_cast<int64_t>(rows.size())},
                   {"num_cols", num_cols},
                   {"max_rows_in_memory", in_memory}});
  }
  std::string path_;
};

TEST_F(RemapMatrix, MovesRowsAndColumnsAndFillsMissingOnes) {
  for (const int in_memory : {-1, 1, 2}) {
    const absl::StatusOr<Tensors> out =
        Load({4, -1, 1}, {2, -1, 0, -1}, {90, 91, 92, 93, 94, 95, 96, 97}, 4, in_memory);
    ASSERT_TRUE(out.ok()) << out.status();
    const float want[] = {14, 90, 12, 91, 92, 93, 94, 95, 5, 96, 3, 97};
    for (int i = 0; i < 12; ++i) EXPECT_EQ((*out)[0].data<float>()[i], want[i]) << i;
  }
  const absl::StatusOr<Tensors> rows = Load({3, 0}, {}, {}, 3);
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ((*rows)[0].data<float>()[i],
              i < 3 ? static_cast<float>(9 + i) : static_cast<float>(i - 3));
}

TEST_F(RemapMatrix, RejectsMissingValues) {
  EXPECT_EQ(Load({0, -1}, {}, {1, 2}, 3).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Load({0}, {}, {1}, 3).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Load({0, 0}, {}, {}, 3).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Load({0}, {}, {}, 4).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Load({9}, {}, {}, 3).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Load({0}, {1, 2}, {}, 3).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir
