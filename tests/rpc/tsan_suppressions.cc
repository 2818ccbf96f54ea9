// Debian's gRPC and Abseil are built without the thread sanitizer. It does not see what their own
// locks and counters order, but does see what they copy with memmove, and takes that for races.
extern "C" const char* __tsan_default_suppressions();

const char* __tsan_default_suppressions() {
  return "race:absl::*GraphCycles\n"
         "race:grpc::\n"
         "race:grpc_*\n"
         "race:^grpc_core::\n";
}
