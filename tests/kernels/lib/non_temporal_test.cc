#include "weir/kernels/lib/non_temporal.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"

// Results so large that they are written with non-temporal stores, on processors where that pays.
// They must equal the results of two halves, which are not.
namespace weir {
namespace {

TEST(NonTemporal, CopyWritesExactlyItsBytes) {
  std::vector<char> from(700);
  std::iota(from.begin(), from.end(), 1);
  alignas(64) char to[1024];
  for (const size_t shift : {0, 1, 64, 100}) {
    for (const size_t bytes : {0, 1, 63, 64, 65, 128, 700}) {
      std::memset(to, 0, sizeof to);
      non_temporal::Copy(from.data(), to + shift, bytes);
      non_temporal::Fence();
      EXPECT_EQ(std::memcmp(to + shift, from.data(), bytes), 0) << shift << " " << bytes;
      for (size_t i = 0; i < sizeof to; ++i) {
        if (i < shift || i >= shift + bytes) {
          EXPECT_EQ(to[i], 0) << shift << " " << bytes << " " << i;
        }
      }
    }
  }
}

TEST(NonTemporal, TilesCoverExactlyThePiece) {
  std::vector<int> to(5000, -1);
  non_temporal::WriteTiles(3, 4321, sizeof(int), reinterpret_cast<char*>(to.data()),
                           [](int64_t i, int64_t n, void* buffer) {
                             std::iota(static_cast<int*>(buffer), static_cast<int*>(buffer) + n, i);
                           });
  for (int i = 0; i < 5000; ++i) EXPECT_EQ(to[i], i >= 3 && i < 4321 ? i : -1);
}

// Two halves of a matrix, each a little smaller than the threshold for non-temporal stores. The
// last tile is partial.
constexpr int64_t kRows = 4100, kColumns = 2048;

class LargeResults : public testing::Test {
 protected:
  static Tensor Values(int64_t rows, int64_t columns, float phase) {
    Tensor t(DT_FLOAT, Shape({rows, columns}));
    for (int64_t i = 0; i < t.num_elements(); ++i)
      t.data<float>()[i] = std::sin(phase + 0.001f * static_cast<float>(i % 100003));
    return t;
  }
  static Tensor Half(const Tensor& t, int64_t half) {
    if (t.dim(0) == 1) return t;
    const int64_t rows = t.dim(0) / 2;
    Tensor out(DT_FLOAT, Shape({rows, t.dim(1)}));
    std::memcpy(out.raw(), t.data<float>() + half * rows * t.dim(1), out.num_bytes());
    return out;
  }

  // Computes f of placeholders for the tensors, as a whole and in halves, and compares them bit for
  // bit.
  template <class F>
  void ExpectSameByHalves(const Tensors& values, F f) {
    Graph g;
    Outputs in;
    for (const Tensor& t : values)
      in.push_back(Placeholder(g, DT_FLOAT, Shape({t.dim(0) == 1 ? 1 : -1, t.dim(1)})));
    const Output y = f(in);
    Session session = *Session::Create(g);
    const auto run = [&](auto&& part) {
      Feeds feeds;
      for (size_t i = 0; i < values.size(); ++i) feeds.emplace_back(in[i], part(values[i]));
      auto out = session.Run(feeds, {y});
      EXPECT_TRUE(out.ok()) << out.status();
      return out.ok() ? out->at(0) : Tensor();
    };
    const Tensor whole = run([](const Tensor& t) { return t; });
    for (int64_t half = 0; half < 2; ++half) {
      const Tensor part = run([half](const Tensor& t) { return Half(t, half); });
      ASSERT_EQ(part.num_bytes() * 2, whole.num_bytes());
      EXPECT_EQ(
          std::memcmp(part.raw(), static_cast<const char*>(whole.raw()) + half * part.num_bytes(),
                      part.num_bytes()),
          0)
          << "half " << half;
    }
  }

  const Tensor x_ = Values(kRows, kColumns, 0), y_ = Values(kRows, kColumns, 1),
               row_ = Values(1, kColumns, 2);
};

TEST_F(LargeResults, Unary) {
  ExpectSameByHalves({x_}, [](const Outputs& in) { return Exp(in[0]); });
}

TEST_F(LargeResults, Binary) {
  ExpectSameByHalves({x_, y_}, [](const Outputs& in) { return in[0] * in[1]; });
}

TEST_F(LargeResults, BinaryWithARow) {
  ExpectSameByHalves({x_, row_}, [](const Outputs& in) { return in[0] - in[1]; });
}

TEST_F(LargeResults, Pipeline) {
  ExpectSameByHalves({x_, y_, row_},
                     [](const Outputs& in) { return Tanh(in[0] * 1.5f + in[1]) * in[2] - in[0]; });
}

// A register-fused pipeline from the argument to the result.
TEST_F(LargeResults, PipelineOfCheapOps) {
  ExpectSameByHalves({x_}, [](const Outputs& in) {
    return Minimum(Sqrt(Square(Maximum(in[0] * 1.1f + 0.5f, 0.f)) + in[0] + 2.f) * 0.9f, 6.f) -
           in[0];
  });
}

TEST_F(LargeResults, PipelineWithTwoResults) {
  ExpectSameByHalves({x_, y_}, [](const Outputs& in) {
    const Output sum = Square(in[0]) + in[1];
    return Concat({Sqrt(Abs(sum)) * 2.f, sum + 1.f}, 1);
  });
}

TEST_F(LargeResults, Softmax) {
  const Tensor logits = Values(2 * kRows, kColumns / 2, 0);
  ExpectSameByHalves({logits}, [](const Outputs& in) { return Softmax(in[0]); });
}

TEST_F(LargeResults, LayerNorm) {
  ExpectSameByHalves({x_, row_}, [](const Outputs& in) {
    const MomentsResult m = Moments(in[0], {-1}, /*keep_dims=*/true);
    return (in[0] - m.mean) * Rsqrt(m.variance + 1e-5f) * in[1];
  });
}

}  // namespace
}  // namespace weir
