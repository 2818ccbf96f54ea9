#ifndef WEIR_OPS_NN_GRADIENTS_H_
#define WEIR_OPS_NN_GRADIENTS_H_

#include "weir/core/gradient.h"

// The gradient functions of ops/nn*.cc.
namespace weir {

Grads ReluGradient(GradContext& c);      // Relu and Relu6
Grads ReluGradGradient(GradContext& c);  // ReluGrad and Relu6Grad
Grads EluGradient(GradContext& c);       // Elu and Selu
Grads EluGradGradient(GradContext& c);   // EluGrad and SeluGrad
Grads LeakyReluGradient(GradContext& c);
Grads LeakyReluGradGradient(GradContext& c);
Grads SoftplusGradient(GradContext& c);
Grads SoftplusGradGradient(GradContext& c);
Grads SoftsignGradient(GradContext& c);

Grads BiasAddGradient(GradContext& c);
Grads BiasAddV1Gradient(GradContext& c);
Grads BiasAddGradGradient(GradContext& c);
Grads L2LossGradient(GradContext& c);
Grads SoftmaxGradient(GradContext& c);
Grads LogSoftmaxGradient(GradContext& c);
Grads SoftmaxCrossEntropyGradient(GradContext& c);
Grads SparseSoftmaxCrossEntropyGradient(GradContext& c);
Grads LrnGradient(GradContext& c);
Grads FusedBatchNormGradient(GradContext& c);      // V1, V2 and V3
Grads FusedBatchNormGradGradient(GradContext& c);  // the gradients of their Grad ops

Grads ConvGradient(GradContext& c);                // Conv2D, DepthwiseConv2dNative, Conv3D
Grads ConvBackpropInputGradient(GradContext& c);   // and their BackpropInput ops
Grads ConvBackpropFilterGradient(GradContext& c);  // and BackpropFilter ops

Grads MaxPoolGradient(GradContext& c);      // and V2
Grads MaxPoolGradGradient(GradContext& c);  // MaxPoolGrad and V2
Grads MaxPoolGradGradGradient(GradContext& c);
Grads MaxPoolWithArgmaxGradient(GradContext& c);
Grads AvgPoolGradient(GradContext& c);
Grads AvgPoolGradGradient(GradContext& c);

}  // namespace weir

#endif  // WEIR_OPS_NN_GRADIENTS_H_
