// A program of a project that builds Weir from source, with CMake or Bazel (docs/embedding.md). It
// fits a line to four points.

#include <cstdio>

#include "weir/weir.h"

namespace {

absl::Status Fit() {
  weir::Graph g;
  const weir::Output x = weir::Const(g, {0.f, 1.f, 2.f, 3.f});
  const weir::Output y = weir::Const(g, {1.f, 3.f, 5.f, 7.f});
  const weir::Variable slope = weir::GetVariable(g, "slope", {}, weir::Zeros());
  const weir::Variable intercept = weir::GetVariable(g, "intercept", {}, weir::Zeros());
  const weir::Output loss = weir::ReduceMean(weir::SquaredDifference(slope * x + intercept, y));
  const weir::Operation train = weir::GradientDescent(0.1).Minimize(loss);
  const weir::Operation init = weir::GlobalVariablesInitializer(g);

  WEIR_ASSIGN_OR_RETURN(weir::Session session, weir::Session::Create(g));
  WEIR_RETURN_IF_ERROR(session.Run(init));
  for (int step = 0; step < 200; ++step) WEIR_RETURN_IF_ERROR(session.Run(train));
  WEIR_ASSIGN_OR_RETURN(const weir::Tensors line, session.Run({slope.value(), intercept.value()}));
  std::printf("y = %.2f x + %.2f\n", line[0].scalar<float>(), line[1].scalar<float>());
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = Fit();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
