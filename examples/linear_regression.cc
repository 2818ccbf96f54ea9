// Fits a line to noisy points by gradient descent: the smallest complete program.

#include <cstdio>
#include <random>

#include "weir/weir.h"

namespace weir {

absl::Status Fit() {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1}, "x");
  const Output y = Placeholder(g, DT_FLOAT, {-1}, "y");
  const Variable slope = GetVariable(g, "slope", {}, Zeros());
  const Variable intercept = GetVariable(g, "intercept", {}, Zeros());
  const Output loss = ReduceMean(SquaredDifference(slope * x + intercept, y));
  const Operation train = GradientDescent(0.1).Minimize(loss);
  const Operation init = GlobalVariablesInitializer(g);

  // 200 points around y = 3 x - 1.
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  Tensor xs(DT_FLOAT, {200}), ys(DT_FLOAT, {200});
  for (int i = 0; i < 200; ++i) {
    xs.data<float>()[i] = normal(random);
    ys.data<float>()[i] = 3 * xs.data<float>()[i] - 1 + 0.1f * normal(random);
  }

  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g));
  WEIR_RETURN_IF_ERROR(session.Run(init));
  const Feeds points = {{x, xs}, {y, ys}};
  for (int step = 0; step <= 100; ++step) {
    WEIR_ASSIGN_OR_RETURN(const Tensors out, session.Run(points, {loss}, {train}));
    if (step % 20 == 0) std::printf("step %3d  loss %.5f\n", step, out[0].scalar<float>());
  }
  WEIR_ASSIGN_OR_RETURN(const Tensors line, session.Run({slope.value(), intercept.value()}));
  std::printf("y = %.3f x + %.3f   (the points are sampled around y = 3 x - 1)\n",
              line[0].scalar<float>(), line[1].scalar<float>());
  return absl::OkStatus();
}

}  // namespace weir

int main() {
  const absl::Status status = weir::Fit();
  if (!status.ok()) std::fprintf(stderr, "linear_regression: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
