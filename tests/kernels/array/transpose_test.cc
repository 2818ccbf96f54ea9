#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/kernels/lib/graph_fixture.h"

// Transposes larger than the caches, which use another algorithm than small ones
// (kernels/lib/strided_copy.cc).
namespace weir {
namespace {

class LargeTranspose : public GraphFixture {
 protected:
  // Element i of the operand is i, and so identifies its origin.
  template <class T>
  void Expect(const Shape& shape, const std::vector<int64_t>& perm) {
    Tensor x(DataTypeOf<T>::value, shape);
    std::iota(x.flat<T>().begin(), x.flat<T>().end(), T(0));
    const Tensor y = Run(Transpose(Const(g_, x), perm));
    ASSERT_EQ(y.rank(), 3);
    const int64_t from[] = {shape.dim(1) * shape.dim(2), shape.dim(2), 1};
    const T* got = y.data<T>();
    for (int64_t i = 0; i < y.dim(0); ++i) {
      for (int64_t j = 0; j < y.dim(1); ++j) {
        for (int64_t k = 0; k < y.dim(2); ++k) {
          const int64_t want = i * from[perm[0]] + j * from[perm[1]] + k * from[perm[2]];
          ASSERT_EQ(*got++, T(want)) << shape.ToString() << " at " << i << "," << j << "," << k;
        }
      }
    }
  }
};

TEST_F(LargeTranspose, EveryElementHasTheRightSource) {
  const std::vector<std::vector<int64_t>> perms = {{0, 2, 1}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
  for (const std::vector<int64_t>& perm : perms) {
    Expect<int32_t>({3, 1020, 716}, perm);   // edges with partial tiles
    Expect<int32_t>({1, 2048, 1024}, perm);  // powers of two
    Expect<int32_t>({3, 1021, 717}, perm);   // unaligned rows
    Expect<int64_t>({2, 1022, 610}, perm);
    Expect<double>({2, 515, 1030}, perm);
  }
}

}  // namespace
}  // namespace weir
