#ifndef TENSORFLOW_C_OPS_H_
#define TENSORFLOW_C_OPS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

// Ops of a program or of a plug-in (TF_LoadLibrary): their signatures and shape functions. Their
// kernels are registered by kernels.h.
//
//   TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("Halve");
//   TF_OpDefinitionBuilderAddInput(op, "x: T");
//   TF_OpDefinitionBuilderAddOutput(op, "y: T");
//   TF_OpDefinitionBuilderAddAttr(op, "T: {float, double}");
//   TF_OpDefinitionBuilderSetShapeInferenceFunction(op, &SameShape);
//   TF_RegisterOpDefinition(op, status);
//
// A registered op stays, for all graphs of the process, also those made before. Registration is
// thread-safe. A builder is used by one thread, and so is what a shape function gets.

#ifdef __cplusplus
extern "C" {
#endif

// An op under construction; a shape, and one of its dimensions; and what a shape function knows of
// an operation.
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeHandle TF_ShapeHandle;
typedef struct TF_DimensionHandle TF_DimensionHandle;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;

// ---- registration

// Begins an op. TF_RegisterOpDefinition deletes it, or else TF_DeleteOpDefinitionBuilder.
TF_CAPI_EXPORT extern TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name);
// Registers the op and deletes the builder.
//   INVALID_ARGUMENT  the name is not in CamelCase; a mistake in an argument or attribute
//   ALREADY_EXISTS    there is an op of this name
TF_CAPI_EXPORT extern void TF_RegisterOpDefinition(TF_OpDefinitionBuilder* builder,
                                                   TF_Status* status);
TF_CAPI_EXPORT extern void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder* builder);

// Adds an attribute: "name: type" or "name: type = default". The type is string, int, float, bool,
// type, shape, tensor or func; numbertype, realnumbertype or quantizedtype; a set, {int32, float}
// or {'a', 'b'}; or list(type). ">= 2" after it is the least value of an int, or length of a list.
// Defaults are written as in a text proto, lists as [a, b].
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* builder,
                                                         const char* attr_spec);
// Add an argument: "name: type", where the type is float, int32, ..., or an attribute that is a
// type; "name: N * type" for N tensors of one type; "name: Ts", an attribute that is a list of
// types; each may be Ref(...).
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* builder,
                                                          const char* input_spec);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* builder,
                                                           const char* output_spec);

// Set properties, which are false at first: the inputs may be swapped; the op sums any number of
// inputs; it has state or side effects, so that it runs once for each operation and is never
// folded; it accepts a variable without a value.
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder* builder,
                                                                  bool is_commutative);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder* builder,
                                                                bool is_aggregate);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder* builder,
                                                               bool is_stateful);
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetAllowsUninitializedInput(
    TF_OpDefinitionBuilder* builder, bool allows_uninitialized_input);
// Disallows the op in graphs of producer version `version` or later, with an explanation.
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder* builder,
                                                            int version, const char* explanation);
// Sets the shape function. It is called when an operation is built, and again when more is known of
// its inputs, and sets what it knows of the outputs; an error in its status fails the operation.
// Without one, nothing is known of the outputs.
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder* builder,
    void (*shape_inference_func)(TF_ShapeInferenceContext* ctx, TF_Status* status));

// ---- shapes

// Handles of a shape of unknown rank, and of an unknown dimension, which the functions below set.
TF_CAPI_EXPORT extern TF_ShapeHandle* TF_NewShapeHandle(void);
TF_CAPI_EXPORT extern void TF_DeleteShapeHandle(TF_ShapeHandle* handle);
TF_CAPI_EXPORT extern TF_DimensionHandle* TF_NewDimensionHandle(void);
TF_CAPI_EXPORT extern void TF_DeleteDimensionHandle(TF_DimensionHandle* handle);
// Return new handles: of the shape [], and of [size].
TF_CAPI_EXPORT extern TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext* ctx);
TF_CAPI_EXPORT extern TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(
    TF_ShapeInferenceContext* ctx, size_t size);

// ---- what a shape function reads and sets

// The operation's inputs, and its outputs. INVALID_ARGUMENT for an index that is out of range.
TF_CAPI_EXPORT extern int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* ctx);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext* ctx, int i,
                                                            TF_ShapeHandle* handle,
                                                            TF_Status* status);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext* ctx, int i,
                                                             TF_ShapeHandle* handle,
                                                             TF_Status* status);
// Leaves all outputs unknown.
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext* ctx,
                                                                   TF_Status* status);
// Returns an attribute that is a type; INVALID_ARGUMENT if it is not, NOT_FOUND if there is none.
TF_CAPI_EXPORT extern void TF_ShapeInferenceContext_GetAttrType(TF_ShapeInferenceContext* ctx,
                                                                const char* attr_name,
                                                                TF_DataType* val,
                                                                TF_Status* status);

// Return the rank, -1 if it is unknown, and whether it is known.
TF_CAPI_EXPORT extern int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext* ctx,
                                                           TF_ShapeHandle* handle);
TF_CAPI_EXPORT extern int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext* ctx,
                                                            TF_ShapeHandle* handle);
// Set `result` to the shape if it has this rank, at least or at most this rank; otherwise
// INVALID_ARGUMENT. A shape of unknown rank has it: WithRank returns unknown dimensions, the others
// the shape.
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext* ctx,
                                                            TF_ShapeHandle* handle, int64_t rank,
                                                            TF_ShapeHandle* result,
                                                            TF_Status* status);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextWithRankAtLeast(TF_ShapeInferenceContext* ctx,
                                                                   TF_ShapeHandle* handle,
                                                                   int64_t rank,
                                                                   TF_ShapeHandle* result,
                                                                   TF_Status* status);
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextWithRankAtMost(TF_ShapeInferenceContext* ctx,
                                                                  TF_ShapeHandle* handle,
                                                                  int64_t rank,
                                                                  TF_ShapeHandle* result,
                                                                  TF_Status* status);
// Sets `result` to dimension i; a negative one counts from the end. Unknown if there is none.
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext* ctx,
                                                       TF_ShapeHandle* shape_handle, int64_t i,
                                                       TF_DimensionHandle* result);
// Return whether a dimension is known, and its extent, -1 if it is not.
TF_CAPI_EXPORT extern int TF_DimensionHandleValueKnown(TF_DimensionHandle* dim_handle);
TF_CAPI_EXPORT extern int64_t TF_DimensionHandleValue(TF_DimensionHandle* dim_handle);
// Sets `result` to the dimensions [start, end); negative positions count from the end, and an `end`
// beyond the rank is the rank. INVALID_ARGUMENT if start > end, or if a position is out of range.
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext* ctx,
                                                            TF_ShapeHandle* shape_handle,
                                                            int64_t start, int64_t end,
                                                            TF_ShapeHandle* result,
                                                            TF_Status* status);
// Sets `result` to the dimensions of the first and then those of the second shape.
TF_CAPI_EXPORT extern void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext* ctx,
                                                                     TF_ShapeHandle* first,
                                                                     TF_ShapeHandle* second,
                                                                     TF_ShapeHandle* result,
                                                                     TF_Status* status);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TENSORFLOW_C_OPS_H_
