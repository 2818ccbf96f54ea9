#include "weir/tests/gpu/host_gpu.h"

#include <utility>
#include <vector>

#include "weir/kernels/gpu/gpu_kernels.h"
#include "weir/kernels/gpu/launch.h"
#include "weir/kernels/lib/backend.h"
#include "weir/tests/gpu/test_gpu.h"

namespace weir {

// The target of the kernels' ForEach (kernels/gpu/launch.h).
void RunOnHostStream(void* stream, std::function<void()> work) {
  auto& gpu = *static_cast<HostGpu*>(stream);
  gpu.late_stream().Enqueue([&gpu, work = std::move(work)] {
    gpu.memory().Open();
    work();
    gpu.memory().Close();
  });
}

Kernel HostGpu::Wrap(const KernelInit&, Kernel kernel) {
  if (kernel.is_constant() || kernel.is_async()) return kernel;
  return Kernel([this, run = kernel.run()](KernelContext& c) -> absl::Status {
    CountRun(c.node());
    return run(c);
  });
}

namespace {

Device& Cpu() {
  static Device* const cpu = NewCpuDevice().release();
  return *cpu;
}

// Runs a CPU kernel on copies of inputs in GPU memory, and copies its outputs there.
absl::Status RunOnCopies(const Kernel& kernel, KernelContext& c) {
  const int inputs = c.num_inputs(), outputs = c.num_outputs();
  std::vector<Tensor> slots(static_cast<size_t>(inputs + outputs));
  std::vector<uint8_t> dead(slots.size(), 0);
  std::vector<int32_t> positions(slots.size());
  for (int i = 0; i < inputs + outputs; ++i) positions[i] = i;
  for (int i = 0; i < inputs; ++i) {
    slots[i] = c.input(i);
    if (slots[i].host_accessible()) continue;
    slots[i] = Tensor(c.input(i).dtype(), c.input(i).shape());
    c.device().CopyToHost(c.input(i), slots[i], [](absl::Status) {});
  }
  WEIR_RETURN_IF_ERROR(c.device().Synchronize());
  KernelContext host(c.node(), Cpu(), c.step(),
                     {.slots = slots.data(),
                      .dead = dead.data(),
                      .inputs = positions.data(),
                      .outputs = positions.data() + inputs,
                      .num_inputs = inputs,
                      .num_outputs = outputs});
  WEIR_RETURN_IF_ERROR(kernel.run()(host));
  for (int i = 0; i < outputs; ++i) {
    const Tensor& made = slots[inputs + i];
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(i, made.shape()));
    c.device().CopyFromHost(made, *out, [](absl::Status) {});
  }
  return absl::OkStatus();
}

KernelFactory OnCopies(KernelFactory make) {
  return [make](const KernelInit& init) -> absl::StatusOr<Kernel> {
    WEIR_ASSIGN_OR_RETURN(Kernel kernel,
                          make(KernelInit{init.node, Cpu(), init.resources, init.input_shapes}));
    return Kernel([kernel](KernelContext& c) { return RunOnCopies(kernel, c); });
  };
}

void AddLibraryKernels(KernelRegistry* r) {
  for (const char* op :
       {"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Conv2D", "Conv2DBackpropInput",
        "Conv2DBackpropFilter", "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
        "DepthwiseConv2dNativeBackpropFilter"}) {
    for (const KernelDef* cpu : BuiltinKernels().KernelsOf(op)) {
      if (cpu->place == kCpu)
        r->Add(op, kGpu, cpu->constraints, OnCopies(cpu->make)).HostArgs(cpu->host_args);
    }
  }
}

constexpr size_t kMemory = size_t{128} << 20;

class HostGpuBackend final : public Backend {
 public:
  HostGpuBackend() : Backend("GPU") {}

  void AddKernels(KernelRegistry* kernels) const override {
    AddLoopKernels(kernels);
    AddLibraryKernels(kernels);
  }

  absl::StatusOr<std::vector<std::unique_ptr<Device>>> CreateDevices(
      const DeviceName& task) const override {
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(std::make_unique<HostGpu>(LateDeviceOptions{.memory = kMemory}, task));
    return devices;
  }
};

}  // namespace

std::shared_ptr<const BackendRegistry> TestGpuBackends() {
  static const auto* const backends = [] {
    auto registry = std::make_shared<BackendRegistry>();
    registry->Add(std::make_unique<HostGpuBackend>()).IgnoreError();  // there is no other
    return new std::shared_ptr<const BackendRegistry>(std::move(registry));
  }();
  return *backends;
}

std::unique_ptr<Device> NewTestGpu(std::chrono::microseconds delay, std::string*) {
  return std::make_unique<HostGpu>(LateDeviceOptions{.delay = delay, .memory = kMemory});
}

}  // namespace weir
