#include "weir/kernels/gpu/gpu_loops.h"
#include "weir/kernels/gpu/launch.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/lib/training.h"

// Update rules (kernels/lib/training-inl.h), one element of the variable per thread. The scalars
// may have been computed on the device, so each thread reads them there.
namespace weir::gpu {

namespace {

template <template <class> class Rule, class T>
struct UpdateBody {
  using C = Wide<T>;
  using R = Rule<UpdateMath<C>>;
  UpdateArgs a;

  WEIR_HD UpdateScalars Scalars() const {
    UpdateScalars s = a.given;
    for (int k = 0; k < 7; ++k) {
      if (a.scalars[k] == nullptr) continue;
      s.at[k] = static_cast<double>(static_cast<C>(*static_cast<const T*>(a.scalars[k])));
    }
    if (a.global_step != nullptr) s.global_step = *a.global_step;
    return s;
  }

  WEIR_HD void operator()(int64_t i) const {
    const R rule(Scalars());
    T* const var = static_cast<T*>(a.var);
    C x = static_cast<C>(var[i]);
    C slots[3] = {};
    for (int k = 0; k < R::kSlots; ++k)
      slots[k] = static_cast<C>(static_cast<const T*>(a.slots[k])[i]);
    rule(static_cast<C>(static_cast<const T*>(a.grad)[i]), x, slots);
    var[i] = static_cast<T>(x);
    for (int k = 0; k < R::kSlots; ++k) static_cast<T*>(a.slots[k])[i] = static_cast<T>(slots[k]);
  }
};

template <template <class> class Rule>
bool Run(void* stream, DataType type, const UpdateArgs& args, int64_t n) {
  return DispatchType(type, Floats(),
                      [&]<class T>() { ForEach(stream, n, UpdateBody<Rule, T>{args}); });
}

}  // namespace

bool Update(void* stream, absl::string_view rule, bool power, DataType type, const UpdateArgs& args,
            int64_t n) {
  if (power) {
    return rule == "FtrlV2" ? Run<functor::FtrlV2Power>(stream, type, args, n)
                            : Run<functor::FtrlPower>(stream, type, args, n);
  }
  bool known = false;
  functor::ForEachRule([&]<template <class> class Rule>(absl::string_view name) {
    if (name == rule) known = Run<Rule>(stream, type, args, n);
  });
  return known;
}

}  // namespace weir::gpu
