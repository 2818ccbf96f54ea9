#include <limits>
#include <utility>

#include "weir/kernels/activation.h"
#include "weir/kernels/elementwise_kernels.h"
#include "weir/kernels/elementwise_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation_cpu.cc"
#include "weir/kernels/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/vector_math-inl.h"

#include "weir/kernels/activation-inl.h"
#include "weir/kernels/elementwise_loops-inl.h"

void AddActivationVectors(LoopRegistry* t) {
  AddUnaryVectors<Relu, Relu6, Elu, Selu, Softplus, Softsign>(t);
  AddBinaryVectors<ReluGrad, Relu6Grad, EluGrad, SeluGrad, SoftplusGrad, SoftsignGrad>(t);
  AddUnaryStages<Relu, Relu6>(t);
  AddBinaryStages<ReluGrad, Relu6Grad>(t);
  t->AddUnary(LeakyRelu::kOp, DT_FLOAT, DT_FLOAT, UnaryVectorLoopP<LeakyRelu, float>).param =
      "alpha";
  t->AddUnary(LeakyRelu::kOp, DT_DOUBLE, DT_DOUBLE, UnaryVectorLoopP<LeakyRelu, double>).param =
      "alpha";
  t->AddBinary(LeakyReluGrad::kOp, DT_FLOAT, DT_FLOAT, BinaryVectorLoopP<LeakyReluGrad, float>)
      .param = "alpha";
  t->AddBinary(LeakyReluGrad::kOp, DT_DOUBLE, DT_DOUBLE, BinaryVectorLoopP<LeakyReluGrad, double>)
      .param = "alpha";
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {

HWY_EXPORT(AddActivationVectors);

// Gradients require inputs of equal shapes.
template <class... Ts>
void RequireEqualShapes(LoopRegistry* t, const char* op, List<Ts...>) {
  for (const DataType type : {DataTypeOf<Ts>::value...}) {
    if (BinaryLoop* loop = t->FindBinary(op, type)) loop->broadcasts = false;
  }
}

}  // namespace

void AddActivationLoops(LoopRegistry* t) {
  using namespace functor;
  HWY_DYNAMIC_DISPATCH(AddActivationVectors)(t);
  AddUnaryOtherTypes<Relu, Relu6, Elu, Selu, Softplus, Softsign>(t);
  AddBinaryOtherTypes<ReluGrad, Relu6Grad, EluGrad, SeluGrad, SoftplusGrad, SoftsignGrad>(t);
  internal::WidenUnary<LeakyRelu>(t, Floats());
  internal::WidenBinary<LeakyReluGrad>(t, Floats());
  for (const char* op : {"ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "LeakyReluGrad",
                         "SoftplusGrad", "SoftsignGrad"}) {
    RequireEqualShapes(t, op, RealNumbers());
  }
}

}  // namespace weir
#endif  // HWY_ONCE
