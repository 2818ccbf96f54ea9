#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Channels are pooled in groups of vectors, in vectors, and one by one: each must be as it is
// alone.
namespace weir {
namespace {

using Sizes = std::vector<int64_t>;

template <class T>
Tensor Wave(const Shape& shape, double phase) {
  Tensor t(DataTypeOf<T>::value, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i)
    t.data<T>()[i] = static_cast<T>(std::sin(0.7 * static_cast<double>(i) + phase));
  return t;
}

// Channel c of an image.
template <class T>
Tensor Channel(const Tensor& image, int64_t c) {
  Shape shape = image.shape();
  const int64_t channels = shape.dim(3);
  shape.set_dim(3, 1);
  Tensor one(image.dtype(), shape);
  for (int64_t i = 0; i < one.num_elements(); ++i)
    one.data<T>()[i] = image.data<T>()[i * channels + c];
  return one;
}

template <class T>
void ExpectEachChannelAsAlone(const std::string& op, const Tensors& inputs, int64_t channels) {
  SCOPED_TRACE(testing::Message() << op << ", " << channels << " channels");
  const Attrs attrs = {{"ksize", Sizes{1, 3, 2, 1}},
                       {"strides", Sizes{1, 2, 1, 1}},
                       {"padding", std::string("SAME")}};
  const auto all = RunFed(op, inputs, attrs);
  ASSERT_TRUE(all.ok()) << all.status();
  for (int64_t c = 0; c < channels; ++c) {
    Tensors alone;
    for (const Tensor& t : inputs) {
      if (t.rank() == 4) {
        alone.push_back(Channel<T>(t, c));
      } else {  // the shape of the image
        alone.push_back(Tensor::Vector<int32_t>({2, 7, 6, 1}));
      }
    }
    const auto one = RunFed(op, alone, attrs);
    ASSERT_TRUE(one.ok()) << one.status();
    const Tensor got = Channel<T>((*all)[0], c);
    ASSERT_EQ(got.shape(), (*one)[0].shape());
    ASSERT_EQ(std::memcmp(got.raw(), (*one)[0].raw(), got.num_bytes()), 0) << "channel " << c;
  }
}

template <class T>
void ExpectPools() {
  for (const int64_t channels : {1, 3, 5, 13, 31, 32, 45, 127}) {
    const Tensor x = Wave<T>(Shape({2, 7, 6, channels}), 0),
                 pooled = Wave<T>(Shape({2, 4, 6, channels}), 1),
                 dy = Wave<T>(Shape({2, 4, 6, channels}), 2);
    const Tensor shape = Tensor::Vector<int32_t>({2, 7, 6, static_cast<int32_t>(channels)});
    ExpectEachChannelAsAlone<T>("MaxPool", {x}, channels);
    ExpectEachChannelAsAlone<T>("AvgPool", {x}, channels);
    ExpectEachChannelAsAlone<T>("AvgPoolGrad", {shape, dy}, channels);
    ExpectEachChannelAsAlone<T>("MaxPoolGrad", {x, pooled, dy}, channels);
    ExpectEachChannelAsAlone<T>("MaxPoolGradGrad", {x, pooled, x}, channels);
  }
}

TEST(PoolChannels, AreIndependent) {
  ExpectPools<float>();
  ExpectPools<double>();
}

}  // namespace
}  // namespace weir
