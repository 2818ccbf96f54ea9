#include "tensorflow/c/ops.h"
#include "weir/capi/objects.h"
#include "weir/capi/plugins.h"
#include "weir/capi/shape_inference.h"

// Ops of programs and plug-ins.

struct TF_OpDefinitionBuilder {
  weir::OpSpec op;
  bool is_commutative = false, is_aggregate = false, is_stateful = false;
  bool allows_uninitialized_input = false;
};

using weir::capi::HaveAll;

TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name) {
  if (!HaveAll("TF_NewOpDefinitionBuilder", {op_name})) return nullptr;
  return new TF_OpDefinitionBuilder{weir::OpSpec(op_name)};
}

void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder* builder) { delete builder; }

void TF_RegisterOpDefinition(TF_OpDefinitionBuilder* builder, TF_Status* status) {
  const std::unique_ptr<TF_OpDefinitionBuilder> owned(builder);
  if (!HaveAll("TF_RegisterOpDefinition", {builder}, status)) return;
  weir::OpSpec& op = builder->op;
  if (builder->is_commutative) op.Commutative();
  if (builder->is_aggregate) op.Aggregate();
  if (builder->is_stateful) op.Stateful();
  if (builder->allows_uninitialized_input) op.AllowsUninitializedInput();
  weir::capi::SetStatus(status, weir::capi::Plugins::Instance().AddOp(std::move(op)));
}

void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* builder, const char* attr_spec) {
  if (HaveAll("TF_OpDefinitionBuilderAddAttr", {builder, attr_spec})) builder->op.Attr(attr_spec);
}

void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* builder, const char* input_spec) {
  if (HaveAll("TF_OpDefinitionBuilderAddInput", {builder, input_spec})) builder->op.In(input_spec);
}

void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* builder, const char* output_spec) {
  if (HaveAll("TF_OpDefinitionBuilderAddOutput", {builder, output_spec}))
    builder->op.Out(output_spec);
}

void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder* builder, bool is_commutative) {
  if (HaveAll("TF_OpDefinitionBuilderSetIsCommutative", {builder}))
    builder->is_commutative = is_commutative;
}

void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder* builder, bool is_aggregate) {
  if (HaveAll("TF_OpDefinitionBuilderSetIsAggregate", {builder}))
    builder->is_aggregate = is_aggregate;
}

void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder* builder, bool is_stateful) {
  if (HaveAll("TF_OpDefinitionBuilderSetIsStateful", {builder})) builder->is_stateful = is_stateful;
}

void TF_OpDefinitionBuilderSetAllowsUninitializedInput(TF_OpDefinitionBuilder* builder,
                                                       bool allows_uninitialized_input) {
  if (HaveAll("TF_OpDefinitionBuilderSetAllowsUninitializedInput", {builder}))
    builder->allows_uninitialized_input = allows_uninitialized_input;
}

void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder* builder, int version,
                                      const char* explanation) {
  if (HaveAll("TF_OpDefinitionBuilderDeprecated", {builder, explanation}))
    builder->op.Deprecated(version, explanation);
}

void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder* builder,
    void (*shape_inference_func)(TF_ShapeInferenceContext* ctx, TF_Status* status)) {
  if (HaveAll("TF_OpDefinitionBuilderSetShapeInferenceFunction",
              {builder, reinterpret_cast<const void*>(shape_inference_func)}))
    builder->op.InferShape(weir::capi::ShapeFnOf(shape_inference_func));
}
