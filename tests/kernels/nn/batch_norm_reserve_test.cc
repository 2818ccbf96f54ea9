#include <string>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// The last output of FusedBatchNormV3 on a CPU. On a GPU its size is cuDNN's.
namespace weir {
namespace {

// That TensorFlow's has no elements in four dimensions unless the type is half is visible.
TEST(FusedBatchNorm, ReservedSpaceHasTensorFlowsShapeOnCpus) {
  for (const DataType type : {DT_FLOAT, DT_BFLOAT16, DT_HALF}) {
    for (const char* format : {"NHWC", "NDHWC"}) {
      const bool deep = format == std::string("NDHWC");
      const Tensor ones = Tensor::Vector<float>({1, 1});
      const auto out =
          RunFed("FusedBatchNormV3",
                 {Tensor::Zeros(type, deep ? Shape({1, 2, 2, 2, 2}) : Shape({1, 2, 2, 2})), ones,
                  ones, ones, ones},
                 {{"data_format", format}});
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ((*out)[5].num_elements(), deep || type == DT_HALF ? 1 : 0) << format;
    }
  }
}

}  // namespace
}  // namespace weir
