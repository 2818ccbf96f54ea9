// A program in a separate project, with a custom op. Snake(x) = x + sin(x)^2 (Ziyin, Hartwig, Ueda:
// Neural networks fail to learn periodic functions and how to fix it, 2020) has a record and a
// kernel here. A small net with this op learns a wave, is saved, and is restored by a second
// session. Build it with CMakeLists.txt, or without CMake:
//
//     g++ -std=c++20 -O2 snake.cc $(pkg-config --cflags --libs weir) -o snake

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "weir/weir.h"

namespace {

// What a graph must know: the signature, the shape of the output, and the gradient, which is made
// of ops that are there: 1 + sin(2 x).
void AddSnakeOp(weir::OpRegistry* ops) {
  ops->Add(weir::OpSpec("Snake")
               .In("x: float")
               .Out("y: float")
               .Elementwise()
               .InferShape(weir::SameShape)
               .Gradient([](weir::GradContext& c) -> weir::Grads {
                 return {c.dy() * (1.f + weir::Sin(2.f * c.x()))};
               })
               .Doc("x + sin(x)^2, element by element."));
}

// The session needs the function of the op. Its kernel splits the elements over the threads, as the
// estimated nanoseconds for each element suggest; fused kernels call the function with tiles that
// are in the L1 cache.
void Snake(const void* x, void* y, int64_t n, double) {
  const float* const in = static_cast<const float*>(x);
  float* const out = static_cast<float*>(y);
  for (int64_t i = 0; i < n; ++i) {
    const float sine = std::sin(in[i]);
    out[i] = in[i] + sine * sine;
  }
}

absl::Status Learn(const std::filesystem::path& folder) {
  weir::OpRegistry ops(&weir::BuiltinOps());
  AddSnakeOp(&ops);
  weir::KernelRegistry kernels(&weir::BuiltinKernels());
  kernels.AddElementwise("Snake", {.type = weir::DT_FLOAT, .unary = Snake, .cost_ns = 5});

  weir::Graph g(ops);
  g.set_seed(7);
  const weir::Output x = weir::Placeholder(g, weir::DT_FLOAT, {-1, 1}, "x");
  const weir::Output y = weir::Placeholder(g, weir::DT_FLOAT, {-1, 1}, "y");
  const weir::Output waves =
      weir::layers::Dense(x, 16, {.kernel_initializer = weir::RandomUniformInitializer(-3, 3)});
  const weir::Output hidden = weir::AddOp("Snake", {waves});
  const weir::Output wave = weir::layers::Dense(hidden, 1);
  const weir::Output loss = weir::ReduceMean(weir::SquaredDifference(wave, y));
  const weir::Operation train = weir::Adam(0.01).Minimize(loss);
  const weir::Operation init = weir::GlobalVariablesInitializer(g);
  WEIR_ASSIGN_OR_RETURN(weir::Saver saver, weir::Saver::Create(g));

  // A wave of length 2 on [-3, 3].
  constexpr int kPoints = 240;
  weir::Tensor xs(weir::DT_FLOAT, {kPoints, 1}), ys(weir::DT_FLOAT, {kPoints, 1});
  for (int i = 0; i < kPoints; ++i) {
    xs.data<float>()[i] = -3 + 6 * static_cast<float>(i) / (kPoints - 1);
    ys.data<float>()[i] = std::sin(3.14159f * xs.data<float>()[i]);
  }
  WEIR_ASSIGN_OR_RETURN(weir::Session session, weir::Session::Create(g, {.kernels = &kernels}));
  WEIR_RETURN_IF_ERROR(session.Run(init));
  for (int step = 0; step <= 2000; ++step) {
    WEIR_ASSIGN_OR_RETURN(const weir::Tensors out,
                          session.Run({{x, xs}, {y, ys}}, {loss}, {train}));
    if (step % 400 == 0) std::printf("step %4d  loss %.5f\n", step, out[0].scalar<float>());
  }

  WEIR_ASSIGN_OR_RETURN(const std::string saved, saver.Save(session, folder / "snake"));
  WEIR_ASSIGN_OR_RETURN(weir::Session second, weir::Session::Create(g, {.kernels = &kernels}));
  WEIR_RETURN_IF_ERROR(saver.Restore(second, saved));
  const weir::Tensor point = weir::Tensor::Of<float>({1, 1}, {0.5f});
  WEIR_ASSIGN_OR_RETURN(const weir::Tensors out, second.Run({{x, point}}, {wave}));
  std::printf("restored from %s: %.2f at 0.5, where the wave is 1\n", saved.c_str(),
              out[0].data<float>()[0]);
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Learn(argc > 1 ? argv[1] : ".");
  if (!status.ok()) std::fprintf(stderr, "snake: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
