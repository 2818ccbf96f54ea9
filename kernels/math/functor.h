#ifndef WEIR_KERNELS_MATH_FUNCTOR_H_
#define WEIR_KERNELS_MATH_FUNCTOR_H_

#include <cstdint>

#include "weir/core/tensor/dtype.h"

// What the functors of elementwise ops state about their ops (kernels/math/elementwise.h describes
// functors). The loops and kernels of all devices follow from it. nvcc reads this header too.
namespace weir {

// The integers that an op's second input may be. Others are errors (INVALID_ARGUMENT).
enum class IntegerDomain { kAll, kNonzero, kNonnegative };

// The base of all functors: what holds unless a functor states otherwise.
struct Functor {
  // Nanoseconds per float, if the op is not memory-bound.
  static constexpr double kCost = 0.2;
  // The op's float attribute, which is the last argument of Apply; null if there is none.
  static constexpr const char* kParam = nullptr;
  // Apply accepts vectors of floats and doubles, not only single elements.
  static constexpr bool kVectorized = true;
  // 16-bit floats are rounded after each operation of Apply, like TensorFlow's, and not once.
  static constexpr bool kRoundsSteps = false;
  // A stage of register fusion (kernels/math/register_fusion.h): for ops that take few
  // instructions, and for longer ones that models put between such ops (GELU).
  static constexpr bool kStage = false;
  // A binary op has a loop of its own for a scalar input, instead of expanding the scalar.
  static constexpr bool kScalarLoops = false;
  // The inputs of a binary op are broadcast. Otherwise they must have equal shapes.
  static constexpr bool kBroadcasts = true;
  static constexpr IntegerDomain kSecondInput = IntegerDomain::kAll;
  // The types with GPU kernels, as far as Types contains them.
  using GpuTypes = Floats;
};

// The op that computes the gradient of another from dy and one of its inputs or outputs.
struct GradientFunctor : Functor {
  static constexpr bool kBroadcasts = false;
};

// A list of functors, for code that is instantiated for each of them.
template <class... Fs>
struct Functors {};

// Type lists of functors, besides those of core/tensor/dtype.h.
using FloatsAndComplexes = JoinLists<Floats, Complexes>;
using SignedNumbers = JoinLists<Floats, SignedIntegers, Complexes>;
using FloatsAndInt64 = JoinLists<Floats, List<int64_t>>;

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_FUNCTOR_H_
