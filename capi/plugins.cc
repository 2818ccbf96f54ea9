#include "weir/capi/plugins.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "weir/capi/objects.h"
#include "weir/core/io/graph_io.h"
#include "weir/kernels/lib/backend.h"
#include "weir/proto/op_def.pb.h"

namespace weir::capi {

namespace {

constexpr absl::string_view kLabelAttr = "_kernel";

// An op's name is [>[A-Z]...]: parts of letters, digits and '_' that begin with a capital letter.
bool IsOpName(absl::string_view name) {
  bool begins = true;
  for (const char c : name) {
    if (begins ? !absl::ascii_isupper(c) : !absl::ascii_isalnum(c) && c != '_' && c != '>')
      return false;
    begins = c == '>';
  }
  return !begins;
}

// Returns whether two ops have the same arguments and attributes.
bool AreSame(const OpSpec& a, const OpSpec& b) {
  const auto bytes = [](const OpSpec& op) {
    proto::OpDef def;
    OpToProto(op, &def);
    return def.SerializeAsString();
  };
  return bytes(a) == bytes(b);
}

}  // namespace

bool PluginKernel::IsFor(const Node& node) const {
  if (node.attr_or<std::string>(kLabelAttr, "") != label) return false;
  return std::all_of(constraints.begin(), constraints.end(), [&](const auto& constraint) {
    const AttrValue* const value = node.FindAttr(constraint.first);
    const DataType* const type = value == nullptr ? nullptr : value->get_if<DataType>();
    const DataTypes& allowed = constraint.second;
    return type != nullptr && std::find(allowed.begin(), allowed.end(), *type) != allowed.end();
  });
}

Plugins& Plugins::Instance() {
  static auto* const instance = new Plugins;
  return *instance;
}

Plugins::Plugins() : ops_(&BuiltinOps()), kernels_(&BuiltinBackends().kernels()) {}

absl::Status Plugins::AddOp(OpSpec op) {
  if (!IsOpName(op.name()))
    return InvalidArgument("'", op.name(), "' is no name of an op: it is not in CamelCase");
  WEIR_RETURN_IF_ERROR(Annotate(op.Resolve(), absl::StrCat("op '", op.name(), "'")));
  // TensorFlow, loaded after this library into the global scope, registers ops of its own here, and
  // ends the process if it cannot.
  const OpSpec* const built_in = BuiltinOps().Find(op.name());
  if (built_in != nullptr && AreSame(op, *built_in)) return absl::OkStatus();
  const MutexLock lock(mutex_);
  if (ops_.Find(op.name()) != nullptr)
    return AlreadyExists("Op with name ", op.name(), " is already registered");
  const OpRegistry& below = op_layers_.empty() ? BuiltinOps() : *op_layers_.back();
  const std::string name = op.name();
  auto layer = std::make_unique<OpRegistry>(&below);
  layer->Add(std::move(op));
  ops_.Rebase(layer.get());
  op_list_.push_back(layer->Find(name));
  op_layers_.push_back(std::move(layer));
  return absl::OkStatus();
}

absl::Status Plugins::AddKernel(PluginKernel kernel) {
  const bool is_for_cpu = kernel.device == kCpu.name();
  if (is_for_cpu && BuiltinOps().Find(kernel.op) != nullptr) {
    LogMisuse("TF_RegisterKernelBuilder",
              absl::StrCat("op ", kernel.op, " is built in, and keeps its own kernel"));
    return absl::OkStatus();
  }
  const std::string op = kernel.op;
  const MutexLock lock(mutex_);
  auto& kernels = by_op_[op];
  const bool is_first = std::none_of(kernels.begin(), kernels.end(),
                                     [](const auto& k) { return k->device == kCpu.name(); });
  kernels.push_back(std::make_unique<const PluginKernel>(std::move(kernel)));
  if (!is_for_cpu || !is_first) return absl::OkStatus();
  // One record for all of the op: which of them a node gets depends on their priorities.
  const KernelRegistry& below =
      kernel_layers_.empty() ? BuiltinBackends().kernels() : *kernel_layers_.back();
  auto layer = std::make_unique<KernelRegistry>(&below);
  layer->Add(op, kCpu, [this, op](const KernelInit& init) { return Make(op, init); });
  kernels_.Rebase(layer.get());
  kernel_layers_.push_back(std::move(layer));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> Plugins::Make(const std::string& op, const KernelInit& init) const {
  const PluginKernel* best = nullptr;
  bool is_ambiguous = false;
  for (const PluginKernel* kernel : KernelsOf(op)) {
    if (kernel->device != kCpu.name() || !kernel->IsFor(init.node)) continue;
    if (best != nullptr && kernel->priority < best->priority) continue;
    is_ambiguous = best != nullptr && kernel->priority == best->priority;
    best = kernel;
  }
  if (best == nullptr) return kernels_.NoKernel(init.node, kCpu);
  if (is_ambiguous) {
    return InvalidArgument(
        "Multiple OpKernel registrations match NodeDef at the same priority: ", "op '", op,
        "' of node '", init.node.name(), "', priority ", best->priority);
  }
  return MakeKernel(*best, init);
}

std::vector<const OpSpec*> Plugins::OpsFrom(size_t first) const {
  const MutexLock lock(mutex_);
  return {op_list_.begin() + std::min(first, op_list_.size()), op_list_.end()};
}

std::vector<const PluginKernel*> Plugins::KernelsOf(absl::string_view op) const {
  const MutexLock lock(mutex_);
  std::vector<const PluginKernel*> found;
  for (const auto& [name, kernels] : by_op_) {
    if (!op.empty() && name != op) continue;
    for (const auto& kernel : kernels) found.push_back(kernel.get());
  }
  return found;
}

}  // namespace weir::capi
