#include "weir/core/runtime/kernel.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <typeinfo>

#include "absl/strings/str_join.h"
#include "weir/core/graph/families.h"

namespace weir {

// TensorFlow's Hash64Combine of the parent's frame and iteration with the name
// (common_runtime/propagator_state.cc).
StepFrame StepFrame::Inner(uint64_t name_hash) const {
  const auto combine = [](uint64_t a, uint64_t b) {
    return a ^ (b + 0x9e3779b97f4a7800 + (a << 10) + (a >> 4));
  };
  return {combine(id, combine(static_cast<uint64_t>(iteration), name_hash)), 0};
}

absl::StatusOr<Tensor*> KernelContext::AllocateOutput(int i, const Shape& shape) {
  if (Tensor* planned = PlannedOutput(i, shape)) return planned;
  Tensor& slot = b_.slots[b_.outputs[i]];
  const DataType type = BaseType(node_->output_type(i));
  // Reuses the buffer if this is its only reference: the slot still holds the output of this kernel
  // from an earlier step.
  if (slot.dtype() == type && slot.shape() == shape && slot.OwnsBufferAlone()) return &slot;
  slot = Tensor();
  for (int32_t k = 0; k < b_.num_last_uses; ++k) {
    const Tensor& in = b_.slots[b_.last_uses[k]];
    if (in.dtype() != type || in.num_elements() != shape.num_elements() || !in.OwnsBufferAlone())
      continue;
    slot = in.Reshaped(shape);
    return &slot;
  }
  Allocator& allocator = IsPlain(type) && !host_output(i) ? device_->allocator() : HostAllocator();
  WEIR_ASSIGN_OR_RETURN(slot, Tensor::Allocate(allocator, type, shape));
  return &slot;
}

void KernelContext::SetOutput(int i, Tensor value) {
  Tensor& slot = b_.slots[b_.outputs[i]];
  if (!value.buffer() || !value.buffer()->transient() || b_.aliases) {
    slot = std::move(value);
    return;
  }
  absl::StatusOr<Tensor> owned = Own(value);
  if (owned.ok()) {
    slot = *std::move(owned);
  } else {  // out of memory: kernels that need the output must not run
    slot = Tensor();
    if (cancellation() != nullptr) cancellation()->Cancel(owned.status());
  }
}

absl::StatusOr<Tensor> KernelContext::AllocateTemp(DataType dtype, const Shape& shape) {
  return Tensor::Allocate(IsPlain(dtype) ? device_->allocator() : HostAllocator(), dtype, shape);
}

VariableState* KernelContext::variable_or_null(int i) const {
  const Tensor& handle = input(i);
  if (handle.dtype() != DT_RESOURCE || handle.num_elements() != 1) return nullptr;
  Resource* resource = handle.data<ResourceHandle>()->resource.get();
  if (resource == nullptr || typeid(*resource) != typeid(VariableState)) return nullptr;
  return static_cast<VariableState*>(resource);
}

absl::StatusOr<std::shared_ptr<VariableState>> KernelContext::variable(int i) const {
  if (variable_or_null(i) == nullptr) return WrongResource(i);
  return std::static_pointer_cast<VariableState>(input(i).data<ResourceHandle>()->resource);
}

absl::Status KernelContext::WrongResource(int i) const {
  const Tensor& handle = input(i);
  if (handle.dtype() != DT_RESOURCE || handle.num_elements() != 1) {
    return InvalidArgument("input ", i, " is ", handle.Description(),
                           ", not a handle to a resource");
  }
  const ResourceHandle& h = *handle.data<ResourceHandle>();
  if (h.resource == nullptr) {
    return FailedPrecondition("input ", i, " is a handle to '", h.name, "', which does not exist");
  }
  return InvalidArgument("input ", i, " is a handle to ", h.resource->Describe(),
                         ", which is of another type");
}

absl::StatusOr<Tensor> KernelContext::Own(const Tensor& value) const {
  if (!value.buffer() || !value.buffer()->transient()) return value;
  if (!IsPlain(value.dtype())) return value.DeepCopy();
  const bool on_host = value.host_accessible();
  WEIR_ASSIGN_OR_RETURN(
      Tensor copy, Tensor::Allocate(on_host ? HostAllocator() : device_->allocator(), value.dtype(),
                                    value.shape()));
  if (!on_host) {
    WEIR_RETURN_IF_ERROR(device_->CopyOnDevice(value, copy));
  } else if (value.num_bytes() > 0) {
    std::memcpy(copy.raw(), value.raw(), value.num_bytes());
  }
  return copy;
}

Kernel Kernel::Constant(Tensor value) {
  Kernel k;
  k.form_ = std::move(value);
  return k;
}

KernelFactory::KernelFactory(absl::Status (*run)(KernelContext&))
    : function([run](const KernelInit&) -> absl::StatusOr<Kernel> { return Kernel(run); }) {}

KernelDef::KernelDef() = default;
KernelDef::~KernelDef() = default;

KernelDef& KernelDef::InPlace(absl::Span<const int> inputs) {
  in_place.assign(inputs.begin(), inputs.end());
  return *this;
}

KernelDef& KernelDef::Aliases(absl::Span<const int> inputs) {
  aliases.assign(inputs.begin(), inputs.end());
  return *this;
}

KernelDef& KernelDef::AliasesEach() {
  aliases_each = true;
  return *this;
}

KernelDef& KernelDef::HostArgs(std::vector<std::string> names) {
  host_args = std::move(names);
  return *this;
}

KernelDef& KernelDef::Writes(absl::Span<const int> inputs) {
  writes.assign(inputs.begin(), inputs.end());
  return *this;
}

KernelDef& KernelDef::AcceptsDead() {
  accepts_dead = true;
  return *this;
}

KernelDef& KernelDef::Cost(double (*fn)(const KernelInit&)) {
  cost = fn;
  return *this;
}

KernelRegistry::KernelRegistry(const KernelRegistry* base) : base_(base) {}
KernelRegistry::KernelRegistry(std::unique_ptr<const Families<KernelRegistry>> families)
    : base_(nullptr), families_(std::move(families)) {}
KernelRegistry::~KernelRegistry() = default;

namespace {

// Runs the function of an elementwise op on whole tensors. FitsLoop has checked the node: how many
// inputs it has, and the types.
struct ElementwiseKernel {
  ElementwiseLoop loop;
  double param;

  absl::Status operator()(KernelContext& c) const {
    const bool is_binary = loop.binary != nullptr;
    const Tensor &x = c.input(0), &y = c.input(is_binary ? 1 : 0);
    if (x.shape() != y.shape() && x.rank() != 0 && y.rank() != 0)
      return InvalidArgument("Incompatible shapes: ", x.shape().ToString(), " vs. ",
                             y.shape().ToString());
    WEIR_ASSIGN_OR_RETURN(Tensor* const out,
                          c.AllocateOutput(0, x.rank() == 0 ? y.shape() : x.shape()));
    const int64_t count = out->num_elements(), size = static_cast<int64_t>(ElementSize(loop.type));
    c.pool().ParallelFor(count, loop.cost_ns, [&](int64_t begin, int64_t end) {
      const auto at = [&](const Tensor& t, int64_t i) {
        return static_cast<const char*>(t.raw()) + (t.num_elements() == 1 ? 0 : i * size);
      };
      // Without a scalar all elements at once; else one by one, since the scalar has a stride of 0.
      const bool has_scalar = x.num_elements() != y.num_elements();
      const int64_t most = has_scalar ? 1 : end - begin;
      for (int64_t i = begin; i < end; i += most) {
        char* const to = static_cast<char*>(out->raw()) + i * size;
        if (is_binary) {
          loop.binary(at(x, i), at(y, i), to, most, param);
        } else {
          loop.unary(at(x, i), to, most, param);
        }
      }
    });
    return absl::OkStatus();
  }
};

}  // namespace

KernelDef& KernelRegistry::AddElementwise(absl::string_view op, const ElementwiseLoop& loop) {
  const auto make = [loop](const KernelInit& init) -> absl::StatusOr<Kernel> {
    const double param = loop.attr == nullptr ? 0 : init.node.attr_or<float>(loop.attr, 0);
    return Kernel(ElementwiseKernel{loop, param});
  };
  KernelDef& def =
      Add(op, kCpu, make)
          .InPlace(loop.binary != nullptr ? std::vector<int>{0, 1} : std::vector<int>{0});
  def.elementwise = loop;
  return def;
}

const ElementwiseLoop* KernelRegistry::FindElementwise(absl::string_view op, DataType type,
                                                       size_t num_arguments) const {
  for (const KernelRegistry* layer = this; layer != nullptr; layer = layer->base()) {
    const auto found = layer->kernels_.find(op);
    if (found == layer->kernels_.end()) continue;
    for (const auto& def : found->second) {
      const std::optional<ElementwiseLoop>& loop = def->elementwise;
      if (loop && loop->type == type && num_arguments == (loop->binary != nullptr ? 2u : 1u))
        return &*loop;
    }
  }
  return nullptr;
}

KernelDef& KernelRegistry::Add(absl::string_view op, Place place, KernelFactory make) {
  return Add(op, place, TypeConstraints{}, std::move(make));
}

KernelDef& KernelRegistry::Add(absl::string_view op, Place place, DataType type,
                               KernelFactory make) {
  return Add(op, place, TypeConstraints{{"", type}}, std::move(make));
}

KernelDef& KernelRegistry::Add(absl::string_view op, Place place, TypeConstraints constraints,
                               KernelFactory make) {
  auto& defs = kernels_[std::string(op)];
  defs.push_back(std::make_unique<KernelDef>());
  KernelDef& def = *defs.back();
  def.op = std::string(op);
  def.place = place;
  def.constraints = std::move(constraints);
  def.make = std::move(make);
  return def;
}

namespace {

// Returns true if the kernel is no elementwise one, or its function is for the node's types.
bool FitsLoop(const Node& node, const KernelDef& def) {
  if (!def.elementwise) return true;
  const int num_arguments = def.elementwise->binary != nullptr ? 2 : 1;
  return node.num_inputs() == num_arguments && node.num_outputs() == 1 &&
         node.input_type(0) == def.elementwise->type && node.output_type(0) == node.input_type(0);
}

bool Satisfies(const Node& node, const TypeConstraints& constraints) {
  for (const auto& [name, type] : constraints) {
    const AttrValue* v = name.empty() ? node.FindAttr("T") : node.FindAttr(name);
    if (v == nullptr && name.empty()) v = node.FindAttr("dtype");
    const DataType* t = v == nullptr ? nullptr : v->get_if<DataType>();
    if (t == nullptr || *t != type) return false;
  }
  return true;
}

}  // namespace

const KernelDef* KernelRegistry::Find(const Node& node, Place place) const {
  const absl::string_view op =
      node.op().is_function() ? absl::string_view("PartitionedCall") : node.op_name();
  const auto it = kernels_.empty() ? kernels_.end() : kernels_.find(op);  // hashes the name once
  if (it != kernels_.end()) {
    for (const auto& def : it->second) {
      if (def->place == place && Satisfies(node, def->constraints) && FitsLoop(node, *def))
        return def.get();
    }
  }
  if (families_ != nullptr) {
    const KernelDef* found = nullptr;
    families_->ForEachWith(op, [&](const KernelRegistry& family) {
      found = family.Find(node, place);
      return found != nullptr;
    });
    if (found != nullptr) return found;
  }
  const KernelRegistry* const below = base();
  return below == nullptr ? nullptr : below->Find(node, place);
}

std::vector<const KernelDef*> KernelRegistry::KernelsOf(absl::string_view op) const {
  std::vector<const KernelDef*> out;
  if (const auto it = kernels_.find(op); it != kernels_.end()) {
    for (const auto& def : it->second) out.push_back(def.get());
  }
  const auto add = [&](const KernelRegistry& registry) {
    for (const KernelDef* def : registry.KernelsOf(op)) out.push_back(def);
    return false;
  };
  if (families_ != nullptr) families_->ForEachWith(op, add);
  if (const KernelRegistry* const below = base()) add(*below);
  return out;
}

absl::Status KernelRegistry::NoKernel(const Node& node, Place place) const {
  std::vector<std::string> types, registered;
  for (const auto& [name, value] : node.attrs()) {
    if (const DataType* t = value.get_if<DataType>())
      types.push_back(absl::StrCat(name, "=", DataTypeName(*t)));
  }
  for (const KernelDef* def : KernelsOf(node.op_name())) {
    std::vector<std::string> constraints;
    for (const auto& [name, type] : def->constraints) {
      constraints.push_back(absl::StrCat(name.empty() ? "T" : name, "=", DataTypeName(type)));
    }
    registered.push_back(
        absl::StrCat(def->place.name(), " {", absl::StrJoin(constraints, ", "), "}"));
  }
  return InvalidArgument(
      "No OpKernel was registered to support Op '", node.op_name(), "' used by node ", node.name(),
      " with these attrs: [", absl::StrJoin(types, ", "), "] on ", place.name(),
      ". Registered kernels: ", registered.empty() ? "none" : absl::StrJoin(registered, "; "));
}

std::vector<std::string> KernelRegistry::Ops(Place place) const {
  std::set<std::string> names;
  const auto add = [&](const KernelRegistry& registry) {
    for (std::string& name : registry.Ops(place)) names.insert(std::move(name));
  };
  if (families_ != nullptr) {
    for (const KernelRegistry* family : families_->All()) add(*family);
  }
  if (const KernelRegistry* const below = base()) add(*below);
  for (const auto& [op, defs] : kernels_) {
    if (std::any_of(defs.begin(), defs.end(), [&](const auto& d) { return d->place == place; }))
      names.insert(op);
  }
  return {names.begin(), names.end()};
}

}  // namespace weir
