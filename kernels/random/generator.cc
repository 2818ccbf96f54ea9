#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/random/distributions.h"

// Random number generators stored in variables: skips ahead without drawing.
namespace weir {

namespace {

absl::Status Skip(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t samples, ReadInt(c.input(2), "delta"));
  return GeneratorInput(c, samples).status();
}

// Returns the previous state.
absl::Status ReadAndSkip(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t samples, ReadInt(c.input(2), "delta"));
  WEIR_ASSIGN_OR_RETURN(const Philox before, GeneratorInput(c, samples));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({3})));
  const uint64_t words[] = {before.counter_low(), before.counter_high(), before.key()};
  for (int i = 0; i < 3; ++i) out->data<int64_t>()[i] = static_cast<int64_t>(words[i]);
  return absl::OkStatus();
}

}  // namespace

void AddGeneratorKernels(KernelRegistry* r) {
  r->Add("RngSkip", kCpu, Skip).HostArgs({"algorithm", "delta"}).Writes({0});
  r->Add("RngReadAndSkip", kCpu, ReadAndSkip).HostArgs({"alg", "delta"}).Writes({0});
}

}  // namespace weir
