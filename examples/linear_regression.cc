// Fits a line to noisy points by gradient descent: the smallest complete program.

#include <cstdio>
#include <random>

#include "weir/weir.h"

absl::Status Fit() {
  weir::Graph g;
  const weir::Output x = weir::Placeholder(g, weir::DT_FLOAT, {-1}, "x");
  const weir::Output y = weir::Placeholder(g, weir::DT_FLOAT, {-1}, "y");
  const weir::Variable slope = weir::GetVariable(g, "slope", {}, weir::Zeros());
  const weir::Variable intercept = weir::GetVariable(g, "intercept", {}, weir::Zeros());
  const weir::Output loss = weir::ReduceMean(weir::SquaredDifference(slope * x + intercept, y));
  const weir::Operation train = weir::GradientDescent(0.1).Minimize(loss);
  const weir::Operation init = weir::GlobalVariablesInitializer(g);

  // 200 points around y = 3 x - 1.
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  weir::Tensor xs(weir::DT_FLOAT, {200}), ys(weir::DT_FLOAT, {200});
  for (int i = 0; i < 200; ++i) {
    xs.data<float>()[i] = normal(random);
    ys.data<float>()[i] = 3 * xs.data<float>()[i] - 1 + 0.1f * normal(random);
  }

  WEIR_ASSIGN_OR_RETURN(weir::Session session, weir::Session::Create(g));
  WEIR_RETURN_IF_ERROR(session.Run(init));
  const weir::Feeds points = {{x, xs}, {y, ys}};
  for (int step = 0; step <= 100; ++step) {
    WEIR_ASSIGN_OR_RETURN(const weir::Tensors out, session.Run(points, {loss}, {train}));
    if (step % 20 == 0) std::printf("step %3d  loss %.5f\n", step, out[0].scalar<float>());
  }
  WEIR_ASSIGN_OR_RETURN(const weir::Tensors line, session.Run({slope.value(), intercept.value()}));
  std::printf("y = %.3f x + %.3f   (the points are sampled around y = 3 x - 1)\n",
              line[0].scalar<float>(), line[1].scalar<float>());
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Fit();
  if (!status.ok()) std::fprintf(stderr, "linear_regression: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
