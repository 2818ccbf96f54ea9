#ifndef WEIR_TESTS_TOOLS_CKPT_CKPT_TESTING_H_
#define WEIR_TESTS_TOOLS_CKPT_CKPT_TESTING_H_

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"
#include "weir/tests/tools/lib/tools_testing.h"

namespace weir::tools {

// Writes the checkpoint of a model: floats, integers, strings, and a variable in two parts.
class WeirCkpt : public testing::Test {
 protected:
  WeirCkpt() : folder_(TestFolder()), model_(Write("model", 1)) {}

  std::string Write(const std::string& name, float factor) {
    const std::string prefix = folder_ + "/" + name;
    Tensor rows(DT_FLOAT, {4, 2});
    for (int i = 0; i < 8; ++i) rows.data<float>()[i] = factor * static_cast<float>(i);
    const auto writer = BundleWriter::Create(prefix);
    const std::pair<const char*, Tensor> tensors[] = {
        {"hidden/b", Tensor::Vector<float>({factor, 2, 3.14159f})},
        {"hidden/b/Adam", Tensor::Vector<float>({0, 0, factor})}};
    for (const auto& [tensor_name, value] : tensors)
      EXPECT_TRUE((*writer)->Add(tensor_name, value).ok());
    for (const auto& [text, from, to] : {std::tuple{"0,1:-", 0, 1}, {"1,3:-", 1, 4}}) {
      EXPECT_TRUE(
          (*writer)
              ->AddSlice("hidden/w", rows.shape(), *TensorSlice::Parse(text), rows.Slice(from, to))
              .ok());
    }
    EXPECT_TRUE((*writer)->Add("step", Tensor::Scalar<int64_t>(500)).ok());
    EXPECT_TRUE((*writer)->Add("words", Tensor::Vector<std::string>({"a", "\xff"})).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
    return prefix;
  }
  std::string At(const std::string& name) const { return folder_ + "/" + name; }
  static std::vector<std::string> NamesIn(const std::string& prefix) {
    std::vector<std::string> names;
    const auto reader = CheckpointReader::Open(prefix);
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return names;
    const std::vector<CheckpointTensor> tensors = *(*reader)->List();
    for (const CheckpointTensor& tensor : tensors) names.push_back(tensor.name);
    return names;
  }
  static Tensor Read(const std::string& prefix, const std::string& name) {
    const auto tensor = (*CheckpointReader::Open(prefix))->Read(name);
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    return tensor.ok() ? *tensor : Tensor();
  }
  void ExpectSame(const std::string& prefix) {
    ASSERT_EQ(NamesIn(prefix), NamesIn(model_));
    for (const std::string& name : NamesIn(model_))
      EXPECT_TRUE(IdenticalTensors(Read(prefix, name), Read(model_, name))) << name;
  }
  static void MustDo(const std::vector<std::string>& args) {
    const CommandResult result = Weir(args);
    EXPECT_EQ(result.status, kOk) << result.err << result.out;
  }
  static std::string Error(const std::vector<std::string>& args) {
    const CommandResult result = Weir(args);
    EXPECT_EQ(result.status, kFailure);
    return result.err;
  }
  // Flips a bit of a file.
  static void Damage(const std::string& file, size_t at) {
    std::string bytes = *ReadFile(file);
    ASSERT_LT(at, bytes.size());
    bytes[at] ^= 1;
    ASSERT_TRUE(WriteFileAtomically(file, bytes).ok());
  }
  std::string DataOf(const std::string& prefix) const { return prefix + ".data-00000-of-00001"; }

  const std::string folder_, model_;
};

}  // namespace weir::tools

#endif  // WEIR_TESTS_TOOLS_CKPT_CKPT_TESTING_H_
