#include <memory>

#include "tensorflow/c/kernels.h"
#include "weir/capi/kernel_objects.h"
#include "weir/proto/kernel_def.pb.h"

// The registration of kernels, and how a session creates and runs them.

struct TF_KernelBuilder {
  weir::capi::PluginKernel kernel;
};

struct TF_AsyncOpKernelDoneCallback {
  TF_OpKernelContext context;
  weir::Kernel::Done done;
};

namespace weir::capi {

absl::StatusOr<Kernel> MakeKernel(const PluginKernel& kernel, const KernelInit& init) {
  const auto instance = std::make_shared<KernelInstance>(kernel);
  for (int i = 0; i < init.node.num_inputs(); ++i) {
    const Output& input = init.node.input(i);
    instance->inputs.push_back(input.index == 0 ? input.node->name() : input.name());
  }
  if (kernel.create != nullptr) {
    TF_OpKernelConstruction construction{init, absl::OkStatus()};
    instance->state = kernel.create(&construction);
    WEIR_RETURN_IF_ERROR(construction.error);
  }
  if (kernel.compute != nullptr) {
    return Kernel([instance](KernelContext& c) -> absl::Status {
      TF_OpKernelContext context(c, instance);
      instance->kernel.compute(instance->state, &context);
      return context.Finish();
    });
  }
  return Kernel([instance](KernelContext& c, Kernel::Done done) {
    auto* const callback = new TF_AsyncOpKernelDoneCallback{{c, instance}, std::move(done)};
    instance->kernel.compute_async(instance->state, &callback->context, callback);
  });
}

namespace {

TF_KernelBuilder* NewBuilder(absl::string_view function, const char* op_name,
                             const char* device_name, PluginKernel kernel) {
  if (!HaveAll(function, {op_name, device_name})) return nullptr;
  kernel.op = op_name;
  kernel.device = device_name;
  return new TF_KernelBuilder{std::move(kernel)};
}

// Replaces what a kernel is for by what a serialized KernelDef says.
absl::Status Describe(absl::string_view bytes, PluginKernel* kernel) {
  proto::KernelDef def;
  if (!def.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return InvalidArgument("Error parsing serialized KernelDef.");
  kernel->op = def.op();
  kernel->device = def.device_type();
  kernel->label = def.label();
  kernel->priority = def.priority();
  kernel->host_args.assign(def.host_memory_arg().begin(), def.host_memory_arg().end());
  kernel->constraints.clear();
  for (const auto& constraint : def.constraint()) {
    DataTypes types;
    for (const int type : constraint.allowed_values().list().type()) {
      WEIR_ASSIGN_OR_RETURN(types.emplace_back(), TypeOf(static_cast<TF_DataType>(type)));
    }
    kernel->constraints.emplace_back(constraint.name(), std::move(types));
  }
  return absl::OkStatus();
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::LogMisuse;
using weir::capi::SetStatus;

TF_KernelBuilder* TF_NewKernelBuilder(const char* op_name, const char* device_name,
                                      void* (*create_func)(TF_OpKernelConstruction*),
                                      void (*compute_func)(void*, TF_OpKernelContext*),
                                      void (*delete_func)(void*)) {
  if (!HaveAll("TF_NewKernelBuilder", {reinterpret_cast<const void*>(compute_func)}))
    return nullptr;
  return weir::capi::NewBuilder(
      "TF_NewKernelBuilder", op_name, device_name,
      {.create = create_func, .compute = compute_func, .destroy = delete_func});
}

TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op_name, const char* device_name, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_async_func)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback* done),
    void (*delete_func)(void*)) {
  if (!HaveAll("TF_NewAsyncKernelBuilder", {reinterpret_cast<const void*>(compute_async_func)}))
    return nullptr;
  return weir::capi::NewBuilder(
      "TF_NewAsyncKernelBuilder", op_name, device_name,
      {.create = create_func, .compute_async = compute_async_func, .destroy = delete_func});
}

void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback* done) {
  if (!HaveAll("TF_RunAsyncOpKernelDoneCallback", {done})) return;
  const std::unique_ptr<TF_AsyncOpKernelDoneCallback> owned(done);
  done->done(done->context.Finish());
}

void TF_DeleteKernelBuilder(TF_KernelBuilder* builder) { delete builder; }

void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder* kernel_builder, const char* attr_name,
                                     TF_DataType type, TF_Status* status) {
  if (!HaveAll("TF_KernelBuilder_TypeConstraint", {kernel_builder, attr_name}, status)) return;
  const auto dtype = weir::capi::TypeOf(type);
  if (!dtype.ok() || weir::IsRef(*dtype))
    return SetStatus(status, weir::Unimplemented("Unexpected type ", static_cast<int64_t>(type)));
  kernel_builder->kernel.constraints.push_back({attr_name, {*dtype}});
  SetStatus(status, absl::OkStatus());
}

void TF_KernelBuilder_HostMemory(TF_KernelBuilder* kernel_builder, const char* arg_name) {
  if (HaveAll("TF_KernelBuilder_HostMemory", {kernel_builder, arg_name}))
    kernel_builder->kernel.host_args.emplace_back(arg_name);
}

void TF_KernelBuilder_Priority(TF_KernelBuilder* kernel_builder, int32_t priority_number) {
  if (HaveAll("TF_KernelBuilder_Priority", {kernel_builder}))
    kernel_builder->kernel.priority = priority_number;
}

void TF_KernelBuilder_Label(TF_KernelBuilder* kernel_builder, const char* label) {
  if (HaveAll("TF_KernelBuilder_Label", {kernel_builder, label}))
    kernel_builder->kernel.label = label;
}

void TF_RegisterKernelBuilder(const char* kernel_name, TF_KernelBuilder* builder,
                              TF_Status* status) {
  TF_RegisterKernelBuilderWithKernelDef(nullptr, kernel_name, builder, status);
}

void TF_RegisterKernelBuilderWithKernelDef(const char* serialized_kernel_def, const char* name,
                                           TF_KernelBuilder* builder, TF_Status* status) {
  static_cast<void>(name);
  const std::unique_ptr<TF_KernelBuilder> owned(builder);
  if (!HaveAll("TF_RegisterKernelBuilder", {builder}, status)) return;
  if (serialized_kernel_def != nullptr) {
    const absl::Status described = weir::capi::Describe(serialized_kernel_def, &builder->kernel);
    if (!described.ok()) return SetStatus(status, described);
  }
  SetStatus(status, weir::capi::Plugins::Instance().AddKernel(std::move(builder->kernel)));
}
