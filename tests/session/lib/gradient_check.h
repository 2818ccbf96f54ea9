#ifndef WEIR_TESTS_SESSION_LIB_GRADIENT_CHECK_H_
#define WEIR_TESTS_SESSION_LIB_GRADIENT_CHECK_H_

#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "weir/ops/framework/gradients.h"
#include "weir/session/session.h"

namespace weir {

// Compares gradients that a session computes with central differences.
class GradientCheckTest : public ::testing::Test {
 protected:
  using Program = std::function<Output(const Outputs& xs)>;
  struct CheckOptions {
    bool static_shapes = true;
    // 2: also checks the gradients of a weighted sum of the gradients.
    int order = 1;
  };

  // Checks the gradients of the sum of the program's result, for double tensors of these shapes.
  // Adds nodes to g_.
  void Check(const std::vector<Shape>& shapes, const Program& program, const CheckOptions& options);
  void Check(const std::vector<Shape>& shapes, const Program& program) {
    Check(shapes, program, CheckOptions());
  }

  Graph g_;

 private:
  void Compare(const Outputs& xs, const Feeds& feeds, const Output& y, const Outputs& grads);

  double next_ = 0.3;
};

}  // namespace weir

#endif  // WEIR_TESTS_SESSION_LIB_GRADIENT_CHECK_H_
