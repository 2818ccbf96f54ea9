// A plug-in: a shared library that uses Weir's. plugin_host.cc loads it.

#include <cstdio>
#include <string>

#include "weir/weir.h"

namespace {

// Trains a line, saves it, and reads the checkpoint.
absl::StatusOr<float> Fit(const std::string& folder) {
  weir::Graph g;
  const weir::Output x = weir::Placeholder(g, weir::DT_FLOAT, {-1}, "x");
  const weir::Variable slope = weir::GetVariable(g, "slope", {}, weir::Zeros());
  const weir::Output loss = weir::ReduceMean(weir::SquaredDifference(slope * x, 3.f * x));
  const weir::Operation train = weir::GradientDescent(0.1).Minimize(loss);
  WEIR_ASSIGN_OR_RETURN(weir::Saver saver, weir::Saver::Create(g));
  WEIR_ASSIGN_OR_RETURN(weir::Session session, weir::Session::Create(g));
  WEIR_RETURN_IF_ERROR(session.Run(weir::GlobalVariablesInitializer(g)));
  const weir::Feeds points = {{x, weir::Tensor::Vector<float>({1, 2, 3})}};
  for (int i = 0; i < 50; ++i) {
    WEIR_RETURN_IF_ERROR(session.Run(points, {loss}, {train}).status());
  }
  WEIR_RETURN_IF_ERROR(saver.Save(session, folder + "/line").status());
  weir::Graph copy;
  WEIR_RETURN_IF_ERROR(weir::ImportMetaGraphFile(copy, folder + "/line.meta").status());
  WEIR_ASSIGN_OR_RETURN(const weir::Tensors out, session.Run({slope.value()}));
  return out[0].scalar<float>();
}

// An error crosses the border between the library's Abseil and the plug-in's.
bool ErrorsCross() {
  weir::Graph g;
  weir::MatMul(weir::Const(g, {1.f}), weir::Const(g, {2.f}));
  const absl::Status status = weir::Session::Create(g).status();
  return absl::IsInvalidArgument(weir::Annotate(status, "while testing"));
}

}  // namespace

// Returns 0 if all is well.
extern "C" __attribute__((visibility("default"))) int RunPlugin(const char* folder) {
  const absl::StatusOr<float> slope = Fit(folder);
  if (!slope.ok()) {
    std::printf("%s\n", std::string(slope.status().message()).c_str());
    return 1;
  }
  if (*slope < 2.99f || *slope > 3.01f) {
    std::printf("the slope is %f\n", *slope);
    return 1;
  }
  if (!ErrorsCross()) {
    std::printf("an error got lost\n");
    return 1;
  }
  return 0;
}
