// Creates and initializes many variables: 10,000 of 1 KiB each by get_variable with constant
// initializers, global_variables_initializer, one run. Prints JSON lines as graph_bench does.

#include <cstdio>

#include "absl/flags/flag.h"
#include "weir/session/weir.h"
#include "weir/tests/bench/timing.h"

ABSL_FLAG(int64_t, count, 10000, "number of variables");
ABSL_FLAG(bool, reference, false, "use TensorFlow 1's ref variables instead of resource variables");

namespace weir::bench {
namespace {

constexpr char kWorkload[] = "variables";

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
  const double initialized = Now();
  // Checks that the last variable has its initial value.
  WEIR_ASSIGN_OR_RETURN(const Tensors last, session.Run(Feeds{}, {GlobalVariables(g).back()}));
  Emit({kWorkload, "build", built - start, "s"});
  Emit({kWorkload, "init", initialized - built, "s"});
  Emit({kWorkload, "memory", PeakMegabytes() - before_mb, "MiB"});
  Emit({kWorkload, "check", last[0].data<float>()[255], ""});
  return absl::OkStatus();
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  weir::bench::ParseFlags(
      argc, argv, "Makes and initializes variables.\nExample: variables_bench --count=10000");
  return weir::bench::ExitCode(
      weir::bench::Run(absl::GetFlag(FLAGS_count), absl::GetFlag(FLAGS_reference)));
}
