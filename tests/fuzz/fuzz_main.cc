#include "weir/tests/fuzz/targets.h"

// The entry point of libFuzzer. WEIR_FUZZ_TARGET is defined on the compiler's command line.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir::fuzz::WEIR_FUZZ_TARGET(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
