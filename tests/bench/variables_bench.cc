// Makes many variables and initialises them: 10,000 of 1 KiB each by get_variable with constant
// initializers, global_variables_initializer, one run. Prints JSON lines as graph_bench does.

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "weir/session/weir.h"

namespace weir {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double PeakMegabytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // Linux gives kilobytes
}

void Emit(const char* metric, double value, const char* unit) {
  std::printf(
      "{\"workload\": \"variables\", \"peer\": \"weir\", \"metric\": \"%s\", \"value\": %.6g, "
      "\"unit\": \"%s\"}\n",
      metric, value, unit);
}

absl::Status Run(int64_t count, bool reference) {
  const double before_mb = PeakMegabytes(), start = Now();
  Graph g({.use_resource = !reference});
  for (int64_t i = 0; i < count; ++i)
    GetVariable(g, absl::StrCat("v", i), {256}, Constant(static_cast<double>(i)));
  const Operation init = GlobalVariablesInitializer(g);
  WEIR_RETURN_IF_ERROR(g.status());
  const double built = Now();
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g));
  WEIR_RETURN_IF_ERROR(session.Run(Feeds{}, Outputs{}, {init}).status());
  const double initialised = Now();
  // The last one has the value that it was given.
  WEIR_ASSIGN_OR_RETURN(const Tensors last, session.Run(Feeds{}, {GlobalVariables(g).back()}));
  Emit("build", built - start, "s");
  Emit("init", initialised - built, "s");
  Emit("memory", PeakMegabytes() - before_mb, "MiB");
  Emit("check", last[0].data<float>()[255], "");
  return absl::OkStatus();
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  int64_t count = 10000;
  bool reference = false;
  CLI::App app("Makes and initialises variables.\nExample: variables_bench --count 10000");
  app.add_option("--count", count);
  app.add_flag("--reference", reference,
               "TensorFlow 1's reference variables; default: resource variables");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = weir::Run(count, reference);
  if (!status.ok()) std::fprintf(stderr, "variables_bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
