#include "weir/tests/fuzz/targets.h"

// The entry of libFuzzer. WEIR_FUZZ_TARGET is given when it is compiled.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir::fuzz::WEIR_FUZZ_TARGET(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
