#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/match.h"
#include "weir/kernels/lib/device_primitives.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/row_update.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/lib/training.h"
#include "weir/kernels/lib/variable_access.h"
#include "weir/kernels/train/update_rows.h"
#include "weir/ops/train/training.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/train/training_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Update rules on the CPU. A rule's elements are independent, so a dense update is one vectorized
// loop over [0, n) that is split over threads. A sparse update applies the same loop to rows, in
// index order for each row of the variable, so a repeated index is two updates. Variables are
// updated in place and stay locked meanwhile.

namespace weir {
using UpdateLoop = void (*)(const UpdateScalars&, const UpdateLoopArgs&);
}  // namespace weir

HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace functor {
#include "weir/kernels/lib/training-inl.h"
}  // namespace functor

template <class D>
struct VectorMath {
  using V = hn::Vec<D>;
  using T = hn::TFromD<D>;
  static V Set(double x) { return hn::Set(D(), static_cast<T>(x)); }
  static V Sqrt(V x) { return hn::Sqrt(x); }
  static V Abs(V x) { return hn::Abs(x); }
  // A NaN in x propagates.
  static V Max(V x, V y) { return hn::IfThenElse(hn::Lt(x, y), y, x); }
  static V Min(V x, V y) { return hn::Min(x, y); }
  static V BySign(V s, V positive, V negative, V rest) {
    const V zero = hn::Zero(D());
    return hn::IfThenElse(hn::Gt(s, zero), positive,
                          hn::IfThenElse(hn::Lt(s, zero), negative, rest));
  }
  static V WithSign(V x, V s) { return BySign(s, x, hn::Neg(x), s); }
};

// Updates one vector of elements, whatever their addresses.
template <class D, class Rule, class T>
HWY_INLINE void UpdateAt(const Rule& rule, T* var, T* const* slots, const T* grad, int64_t i) {
  const D d;
  hn::Vec<D> x = hn::LoadU(d, var + i);
  hn::Vec<D> s[Rule::kSlots > 0 ? Rule::kSlots : 1];
  for (int k = 0; k < Rule::kSlots; ++k) s[k] = hn::LoadU(d, slots[k] + i);
  rule(hn::LoadU(d, grad + i), x, s);
  hn::StoreU(x, d, var + i);
  for (int k = 0; k < Rule::kSlots; ++k) hn::StoreU(s[k], d, slots[k] + i);
}

template <template <class> class Rule, class T>
void UpdateVectors(const UpdateScalars& scalars, const UpdateLoopArgs& loop) {
  using D = hn::ScalableTag<T>;
  using One = hn::CappedTag<T, 1>;
  const Rule<VectorMath<D>> rule(scalars);
  const Rule<VectorMath<One>> rest(scalars);
  T* var = static_cast<T*>(loop.var);
  T* const slots[3] = {static_cast<T*>(loop.slots[0]), static_cast<T*>(loop.slots[1]),
                       static_cast<T*>(loop.slots[2])};
  const T* grad = static_cast<const T*>(loop.grad);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = 0;
  for (; i + lanes <= loop.count; i += lanes) UpdateAt<D>(rule, var, slots, grad, i);
  for (; i < loop.count; ++i) UpdateAt<One>(rest, var, slots, grad, i);
}

// For float or double.
UpdateLoop VectorRule(absl::string_view name, bool wide) {
  UpdateLoop found = nullptr;
  functor::ForEachRule([&]<template <class> class Rule>(absl::string_view rule) {
    if (rule == name) found = wide ? UpdateVectors<Rule, double> : UpdateVectors<Rule, float>;
  });
  return found;
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

HWY_EXPORT(VectorRule);

namespace {

// For types that are computed in another one (half and bfloat16 in float), and for rules that need
// pow.
template <template <class> class Rule, class T, class C>
void UpdateScalarwise(const UpdateScalars& scalars, const UpdateLoopArgs& loop) {
  const Rule<UpdateMath<C>> rule(scalars);
  T* var = static_cast<T*>(loop.var);
  const T* grad = static_cast<const T*>(loop.grad);
  for (int64_t i = 0; i < loop.count; ++i) {
    C x = static_cast<C>(var[i]);
    C s[3] = {};
    for (int k = 0; k < rule.kSlots; ++k) s[k] = static_cast<C>(static_cast<T*>(loop.slots[k])[i]);
    rule(static_cast<C>(grad[i]), x, s);
    var[i] = T(x);
    for (int k = 0; k < rule.kSlots; ++k) static_cast<T*>(loop.slots[k])[i] = T(s[k]);
  }
}

// For half or bfloat16.
template <class T>
UpdateLoop NarrowRule(absl::string_view name) {
  UpdateLoop found = nullptr;
  functor::ForEachRule([&]<template <class> class Rule>(absl::string_view rule) {
    if (rule == name) found = UpdateScalarwise<Rule, T, float>;
  });
  return found;
}

template <class T, class C>
UpdateLoop PowerRule(bool shrinkage) {
  return shrinkage ? UpdateScalarwise<functor::FtrlV2Power, T, C>
                   : UpdateScalarwise<functor::FtrlPower, T, C>;
}

UpdateLoop FindRule(absl::string_view name, DataType type) {
  UpdateLoop rule = nullptr;
  if (DispatchType(type, NarrowFloats(), [&]<class T>() { rule = NarrowRule<T>(name); }))
    return rule;
  return HWY_DYNAMIC_DISPATCH(VectorRule)(name, type == DT_DOUBLE);
}

// For Ftrl with exponents that need pow.
UpdateLoop FindPowerRule(bool shrinkage, DataType type) {
  UpdateLoop rule = nullptr;
  DispatchType(type, Floats(), [&]<class T>() { rule = PowerRule<T, Wide<T>>(shrinkage); });
  return rule;
}

struct UpdateConfig {
  absl::string_view rule;  // name in UpdateRules()
  UpdateLoop update = nullptr;
  UpdateLoop power_update = nullptr;  // for Ftrl
  int power_scalar = -1;              // the index of Ftrl's lr_power among the scalars
  int num_variables;
  int grad, indices, global_step;  // input indices; -1 for none
  int num_inputs;
  bool is_ref, flag, update_slots;
  DataType type;
};

bool NeedsPower(const UpdateConfig& config, const UpdateScalars& s) {
  return config.power_update != nullptr && s.at[config.power_scalar] != -0.5;
}

double ScalarOf(const Tensor& t) {
  double value = 0;
  DispatchType(t.dtype(), Floats{},
               [&]<class T>() { value = static_cast<double>(static_cast<float>(*t.data<T>())); });
  return t.dtype() == DT_DOUBLE ? *t.data<double>() : value;
}

enum class Sign { kAny, kPositive, kNonNegative, kNonPositive };

// TensorFlow's constraint on a scalar: the proximal rules, and Ftrl of rows, check its sign.
Sign SignOf(const UpdateConfig& config, absl::string_view name) {
  const bool is_ftrl = absl::StartsWith(config.rule, "Ftrl");
  if (config.rule != "ProximalAdagrad" && !(is_ftrl && config.indices >= 0)) return Sign::kAny;
  if (name == "lr_power") return Sign::kNonPositive;
  return name == "lr" && !(is_ftrl && config.flag) ? Sign::kPositive : Sign::kNonNegative;
}

absl::Status CheckScalar(const UpdateConfig& config, absl::string_view name, const Tensor& t) {
  const Sign sign = SignOf(config, name);
  bool holds = t.rank() == 0;
  if (holds && sign != Sign::kAny && t.host_accessible()) {
    const double x = ScalarOf(t);
    holds = sign == Sign::kPositive ? x > 0 : sign == Sign::kNonNegative ? x >= 0 : x <= 0;
  }
  if (holds) return absl::OkStatus();
  static constexpr absl::string_view kSigns[] = {"", "positive ", "non-negative ", "non-positive "};
  const absl::string_view what = name == "l1"             ? "l1 regularization strength"
                                 : name == "l2"           ? "l2 regularization strength"
                                 : name == "l2_shrinkage" ? "l2 shrinkage regularization strength"
                                                          : name;
  return InvalidArgument(what, " is not a ", kSigns[static_cast<int>(sign)],
                         "scalar: ", t.shape().ToString());
}

// Reads the scalars that are in host memory; stores the addresses of the others in `update`.
absl::StatusOr<UpdateScalars> ReadScalars(const UpdateConfig& config, const KernelContext& c,
                                          DevicePrimitives::UpdateArgs* update) {
  UpdateScalars s;
  s.flag = config.flag;
  s.update_slots = config.update_slots;
  int n = 0;
  for (int i = config.num_variables; i < config.num_inputs; ++i) {
    if (i == config.grad || i == config.indices) continue;
    const Tensor& t = c.input(i);
    WEIR_RETURN_IF_ERROR(
        CheckScalar(config, c.node().op().inputs()[static_cast<size_t>(i)].name, t));
    if (i == config.global_step) {
      if (t.host_accessible())
        s.global_step = *t.data<int64_t>();
      else
        update->global_step = t.data<int64_t>();
    } else {
      if (t.host_accessible())
        s.at[n] = ScalarOf(t);
      else
        update->scalars[n] = t.raw();
      ++n;
    }
  }
  return s;
}

absl::Status CheckShapes(const UpdateConfig& config, const KernelContext& c,
                         const LockedVariables& locked) {
  const std::vector<ArgSpec>& args = c.node().op().inputs();
  const Shape& shape = locked[0].value().shape();
  for (int i = 1; i < config.num_variables; ++i) {
    const Shape& slot = locked[i].value().shape();
    if (slot != shape) {
      return InvalidArgument("var and ", args[static_cast<size_t>(i)].name,
                             " do not have the same shape", shape.ToString(), " ", slot.ToString());
    }
  }
  const Shape& grad = c.input(config.grad).shape();
  if (config.indices < 0) {
    if (grad == shape) return absl::OkStatus();
    return InvalidArgument("var and ", args[static_cast<size_t>(config.grad)].name,
                           " do not have the same shape", shape.ToString(), " ", grad.ToString());
  }
  const Shape& indices = c.input(config.indices).shape();
  if (shape.rank() < 1) return InvalidArgument("var must be at least 1 dimensional");
  if (indices.rank() != 1)
    return InvalidArgument("indices must be one-dimensional, got ", indices.ToString());
  if (grad.rank() != shape.rank() || grad.dim(0) != indices.dim(0) || grad.Sub(1) != shape.Sub(1)) {
    return InvalidArgument(
        "grad must be the same size as indices in the first dimension and as var in the others: ",
        "grad ", grad.ToString(), ", indices ", indices.ToString(), ", var ", shape.ToString());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> RowsOf(const Tensor& indices, int64_t num_rows) {
  std::vector<int64_t> rows(static_cast<size_t>(indices.num_elements()));
  if (indices.dtype() == DT_INT32) {
    std::copy_n(indices.data<int32_t>(), rows.size(), rows.begin());
  } else {
    std::copy_n(indices.data<int64_t>(), rows.size(), rows.begin());
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= 0 && rows[i] < num_rows) continue;
    return InvalidArgument("Index ", rows[i], " at offset ", i, " in indices is out of range [0, ",
                           num_rows, ")");
  }
  return rows;
}

absl::Status Run(const UpdateConfig& config, KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const LockedVariables locked,
                        LockedVariables::Lock(c, config.num_variables, config.type));
  for (int i = 0; i < config.num_variables; ++i)
    WEIR_RETURN_IF_ERROR(locked.CheckInitialized(c, i));
  WEIR_RETURN_IF_ERROR(CheckShapes(config, c, locked));
  DevicePrimitives::UpdateArgs on_device;
  WEIR_ASSIGN_OR_RETURN(const UpdateScalars scalars, ReadScalars(config, c, &on_device));
  const Shape shape = locked[0].value().shape();
  std::vector<int64_t> rows;
  if (config.indices >= 0) {
    WEIR_ASSIGN_OR_RETURN(rows, RowsOf(c.input(config.indices), shape.dim(0)));
  }
  UpdateLoopArgs loop{
      nullptr, {nullptr, nullptr, nullptr}, c.input(config.grad).raw(), shape.num_elements()};
  for (int i = 0; i < config.num_variables; ++i) {
    WEIR_ASSIGN_OR_RETURN(Tensor * value, locked.Writable(c, i));
    (i == 0 ? loop.var : loop.slots[i - 1]) = value->raw();
  }
  const size_t size = ElementSize(config.type);
  const bool power = NeedsPower(config, scalars);
  const UpdateLoop update = power ? config.power_update : config.update;
  if (const DevicePrimitives* const device = c.device().primitives()) {
    on_device.rule = config.rule;
    on_device.power = power;
    on_device.type = config.type;
    on_device.count = loop.count;
    on_device.var = loop.var;
    std::copy(std::begin(loop.slots), std::end(loop.slots), on_device.slots);
    on_device.grad = loop.grad;
    on_device.given = scalars;
    WEIR_RETURN_IF_ERROR(device->Update(on_device));
  } else if (config.indices >= 0) {
    const int64_t width = shape.Sub(1).num_elements();
    UpdateRows(c.pool(), rows, width, size, loop,
               [&](const UpdateLoopArgs& part) { update(scalars, part); });
  } else {
    const double cost = (power || size == 2 ? 10.0 : 0.3) * (1 + config.num_variables);
    c.pool().ParallelFor(
        loop.count, cost,
        [&](int64_t begin, int64_t end) {
          update(scalars, loop.At(begin, begin, end - begin, size));
        },
        64);
  }
  if (config.is_ref) c.SetOutput(0, c.input(0));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeUpdate(const KernelInit& init, const UpdateRule& rule) {
  UpdateConfig config{.rule = rule.name, .grad = -1, .indices = -1, .global_step = -1};
  const std::vector<ArgSpec>& args = init.node.op().inputs();
  config.num_variables = 1 + static_cast<int>(rule.slots.size());
  config.num_inputs = static_cast<int>(args.size());
  for (int i = config.num_variables; i < config.num_inputs; ++i) {
    const std::string& name = args[static_cast<size_t>(i)].name;
    if (IsGradientArg(name)) config.grad = i;
    if (name == "indices") config.indices = i;
    if (name == "global_step") config.global_step = i;
  }
  config.is_ref = init.node.num_outputs() > 0;
  config.flag =
      init.node.attr_or("use_nesterov", false) || init.node.attr_or("multiply_linear_by_lr", false);
  config.update_slots = init.node.attr_or("update_slots", true);
  config.type = init.attr<DataType>("T");
  config.update = FindRule(rule.name, config.type);
  if (config.update == nullptr) return Internal("unknown update rule ", rule.name);
  if (rule.name == "Ftrl" || rule.name == "FtrlV2") {
    config.power_update = FindPowerRule(/*shrinkage=*/rule.name == "FtrlV2", config.type);
    config.power_scalar = rule.name == "FtrlV2" ? 4 : 3;
  }
  return Kernel([config](KernelContext& c) -> absl::Status { return Run(config, c); });
}

void AddRule(KernelRegistry* r, absl::string_view op, const UpdateRule& rule) {
  std::vector<int> writes(1 + rule.slots.size());
  std::iota(writes.begin(), writes.end(), 0);
  for (const DataType type : DataTypesOf(Floats())) {
    r->Add(op, kCpu, type, [&rule](const KernelInit& init) {
       return MakeUpdate(init, rule);
     }).Writes(writes);
  }
}

}  // namespace

void AddTrainingCpu(KernelRegistry* r) {
  for (const UpdateRule& rule : UpdateRules()) {
    for (const absl::string_view kind : {"", "Resource"}) {
      if (kind.empty() && !rule.has_ref) continue;
      AddRule(r, absl::StrCat(kind, "Apply", rule.name), rule);
      if (rule.has_sparse) AddRule(r, absl::StrCat(kind, "SparseApply", rule.name), rule);
    }
  }
}

}  // namespace weir
#endif  // HWY_ONCE
