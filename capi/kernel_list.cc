#include "weir/capi/objects.h"
#include "weir/capi/plugins.h"
#include "weir/kernels/lib/backend.h"
#include "weir/proto/kernel_def.pb.h"

// Lists of the registered kernels.

namespace weir::capi {

namespace {

void Constrain(const std::string& attr, const DataTypes& types, proto::KernelDef* def) {
  auto* const constraint = def->add_constraint();
  constraint->set_name(attr);
  for (const DataType type : types)
    constraint->mutable_allowed_values()->mutable_list()->add_type(
        static_cast<proto::DataType>(type));
}

// Adds a built-in kernel.
void Add(const OpSpec& op, const KernelDef& kernel, proto::KernelList* list) {
  proto::KernelDef* const def = list->add_kernel();
  def->set_op(op.name());
  def->set_device_type(std::string(kernel.place.name()));
  for (const auto& [attr, type] : kernel.constraints) {
    const std::string either = op.FindAttr("T") != nullptr ? "T" : "dtype";
    Constrain(attr.empty() ? either : attr, {type}, def);
  }
  for (const std::string& arg : kernel.host_args) {
    if (arg != kAllArgs) {
      def->add_host_memory_arg(arg);
      continue;
    }
    for (const ArgSpec& input : op.inputs()) def->add_host_memory_arg(input.name);
    for (const ArgSpec& output : op.outputs()) def->add_host_memory_arg(output.name);
  }
}

void Add(const PluginKernel& kernel, proto::KernelList* list) {
  proto::KernelDef* const def = list->add_kernel();
  def->set_op(kernel.op);
  def->set_device_type(kernel.device);
  def->set_label(kernel.label);
  def->set_priority(kernel.priority);
  for (const auto& [attr, types] : kernel.constraints) Constrain(attr, types, def);
  for (const std::string& arg : kernel.host_args) def->add_host_memory_arg(arg);
}

// Adds the built-in kernels of an op.
void AddBuiltin(const OpSpec& op, proto::KernelList* list) {
  for (const KernelDef* kernel : BuiltinBackends().kernels().KernelsOf(op.name()))
    Add(op, *kernel, list);
}

TF_Buffer* BufferOf(const proto::KernelList& list) {
  const std::string bytes = list.SerializeAsString();
  return TF_NewBufferFromString(bytes.data(), bytes.size());
}

}  // namespace

}  // namespace weir::capi

using weir::capi::Plugins;

TF_Buffer* TF_GetAllRegisteredKernels(TF_Status* status) {
  if (!weir::capi::HaveAll("TF_GetAllRegisteredKernels", {}, status)) return nullptr;
  weir::proto::KernelList list;
  for (const weir::OpSpec* op : weir::BuiltinOps().All()) weir::capi::AddBuiltin(*op, &list);
  for (const auto* kernel : Plugins::Instance().KernelsOf("")) weir::capi::Add(*kernel, &list);
  weir::capi::SetStatus(status, absl::OkStatus());
  return weir::capi::BufferOf(list);
}

TF_Buffer* TF_GetRegisteredKernelsForOp(const char* name, TF_Status* status) {
  if (!weir::capi::HaveAll("TF_GetRegisteredKernelsForOp", {name}, status)) return nullptr;
  weir::proto::KernelList list;
  if (const weir::OpSpec* const op = weir::BuiltinOps().Find(name))
    weir::capi::AddBuiltin(*op, &list);
  if (*name != '\0') {
    for (const auto* kernel : Plugins::Instance().KernelsOf(name)) weir::capi::Add(*kernel, &list);
  }
  weir::capi::SetStatus(status, absl::OkStatus());
  return weir::capi::BufferOf(list);
}
