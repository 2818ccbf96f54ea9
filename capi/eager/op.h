#ifndef WEIR_CAPI_EAGER_OP_H_
#define WEIR_CAPI_EAGER_OP_H_

#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "weir/capi/eager/context.h"
#include "weir/capi/eager/handle.h"

// The attributes of an op, as a view of it.
struct TFE_OpAttrs {
  const TFE_Op* op;
};

// An op with what a client has given so far.
struct TFE_Op {
  TFE_Op(TFE_Context* context, const weir::OpSpec* op) : context(context), signature(op) {}
  ~TFE_Op() { DropInputs(); }
  TFE_Op(const TFE_Op&) = delete;
  TFE_Op& operator=(const TFE_Op&) = delete;

  const std::string& name() const { return signature.op()->name(); }
  void DropInputs() {
    for (TFE_TensorHandle* input : inputs) input->Unref();
    inputs.clear();
  }

  TFE_Context* const context;
  weir::capi::Signature signature;
  absl::InlinedVector<TFE_TensorHandle*, 4> inputs;  // references
  absl::Status error;                                // the first mistake without a status
  const TFE_OpAttrs attrs{this};
};

namespace weir::capi {

// Returns the value of an op whose attributes are its value; nothing for any other op.
std::optional<Tensor> DirectValue(const TFE_Op& op);

}  // namespace weir::capi

#endif  // WEIR_CAPI_EAGER_OP_H_
