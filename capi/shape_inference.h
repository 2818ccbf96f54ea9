#ifndef WEIR_CAPI_SHAPE_INFERENCE_H_
#define WEIR_CAPI_SHAPE_INFERENCE_H_

#include "tensorflow/c/ops.h"
#include "weir/core/graph/op.h"

namespace weir::capi {

// Returns the shape function that calls that of a plug-in.
ShapeFn ShapeFnOf(void (*function)(TF_ShapeInferenceContext*, TF_Status*));

}  // namespace weir::capi

#endif  // WEIR_CAPI_SHAPE_INFERENCE_H_
