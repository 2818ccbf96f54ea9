#ifndef WEIR_TESTS_KERNELS_LIB_ELEMENTWISE_H_
#define WEIR_TESTS_KERNELS_LIB_ELEMENTWISE_H_

#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Tests of elementwise ops with one operand.
namespace weir {

template <class T>
Tensor RunOn(const char* op, const std::vector<T>& x) {
  const absl::StatusOr<Tensors> out = RunFed(op, {Tensor::Vector<T>(x)});
  EXPECT_TRUE(out.ok()) << op << ": " << out.status();
  return out.ok() ? (*out)[0] : Tensor::Vector<T>(x);
}

// Whole vectors and the tail are computed by the same instructions: a value in this range gives the
// same bits wherever it stands.
template <class T>
void ExpectSameBitsAnywhere(const char* op, double from, double to) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(from, to);
  std::vector<T> x(70);
  for (T& v : x) v = static_cast<T>(uniform(random));
  const Tensor all = RunOn(op, x);
  for (size_t n = 1; n < x.size(); ++n) {
    const Tensor end = RunOn(op, std::vector<T>(x.end() - n, x.end()));
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(end.data<T>()[i], all.data<T>()[x.size() - n + i]) << op << " " << n << " " << i;
    }
  }
}

}  // namespace weir

#endif  // WEIR_TESTS_KERNELS_LIB_ELEMENTWISE_H_
