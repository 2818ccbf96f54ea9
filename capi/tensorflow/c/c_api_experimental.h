#ifndef TENSORFLOW_C_C_API_EXPERIMENTAL_H_
#define TENSORFLOW_C_C_API_EXPERIMENTAL_H_

#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/eager/c_api.h"

// What clients use of the part of TensorFlow's API that TensorFlow may change.

#ifdef __cplusplus
extern "C" {
#endif

// Has no effect: Weir has no XLA. Its own compiler of steps is always on.
TF_CAPI_EXPORT extern void TF_EnableXLACompilation(TF_SessionOptions* options,
                                                   unsigned char enable);

// Has no effect: colocations are always checked when a session places its nodes.
TF_CAPI_EXPORT extern void TF_ImportGraphDefOptionsSetValidateColocationConstraints(
    TF_ImportGraphDefOptions* opts, unsigned char enable);
// Has no effect: Weir has no flags of a program's command line.
TF_CAPI_EXPORT extern void TF_InitMain(const char* usage, int* argc, char*** argv);
// Returns a serialized ConfigProto with so many CPU devices, of which Weir has one. XLA and the
// memory of GPUs are noted in it, and have no effect. The caller deletes it.
TF_CAPI_EXPORT extern TF_Buffer* TF_CreateConfig(unsigned char enable_xla_compilation,
                                                 unsigned char gpu_memory_allow_growth,
                                                 unsigned int num_cpu_devices);
// Is UNIMPLEMENTED, so that there is nothing to delete.
TF_CAPI_EXPORT extern TF_Library* TF_LoadPluggableDeviceLibrary(const char* library_filename,
                                                                TF_Status* status);
TF_CAPI_EXPORT extern void TF_DeletePluggableDeviceLibraryHandle(TF_Library* lib_handle);

// ---- checkpoints

// The tensors of a checkpoint. Thread-safe, but for its deletion.
typedef struct TF_CheckpointReader TF_CheckpointReader;

// Opens the checkpoint that was saved with this prefix, of either version. NOT_FOUND if there is
// none, DATA_LOSS if it is damaged. The caller deletes it; null is allowed.
TF_CAPI_EXPORT extern TF_CheckpointReader* TF_NewCheckpointReader(const char* filename,
                                                                  TF_Status* status);
TF_CAPI_EXPORT extern void TF_DeleteCheckpointReader(TF_CheckpointReader* reader);
// Return whether there is such a tensor, the number of tensors, and the name of one of them, in the
// order of names, which the reader owns; null if there is none.
TF_CAPI_EXPORT extern int TF_CheckpointReaderHasTensor(TF_CheckpointReader* reader,
                                                       const char* name);
TF_CAPI_EXPORT extern int TF_CheckpointReaderSize(TF_CheckpointReader* reader);
TF_CAPI_EXPORT extern const char* TF_CheckpointReaderGetVariable(TF_CheckpointReader* reader,
                                                                 int index);
// Return the type of a tensor (0 if there is none), the number of its dimensions (-1), and the
// first `num_dims` of them. NOT_FOUND if there is no such tensor.
TF_CAPI_EXPORT extern TF_DataType TF_CheckpointReaderGetVariableDataType(
    TF_CheckpointReader* reader, const char* name);
TF_CAPI_EXPORT extern int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader* reader,
                                                                const char* name);
TF_CAPI_EXPORT extern void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader* reader,
                                                               const char* name, int64_t* dims,
                                                               int num_dims, TF_Status* status);
// Returns a tensor, verified by its checksum; the caller deletes it. NOT_FOUND, DATA_LOSS.
TF_CAPI_EXPORT extern TF_Tensor* TF_CheckpointReaderGetTensor(TF_CheckpointReader* reader,
                                                              const char* name, TF_Status* status);

// ---- shapes of an op's outputs

// A shape and a type. num_dims of -1 is an unknown rank, a dimension of -1 unknown, a type of 0
// unknown.
typedef struct TF_ShapeAndType {
  int num_dims;
  int64_t* dims;
  TF_DataType dtype;
} TF_ShapeAndType;
typedef struct TF_ShapeAndTypeList {
  int num_items;
  TF_ShapeAndType* items;
} TF_ShapeAndTypeList;

// Returns a list of scalars of an unknown type; null for a number of inputs that no op has.
// Deleting null is allowed.
TF_CAPI_EXPORT extern TF_ShapeAndTypeList* TF_NewShapeAndTypeList(int num_shapes);
TF_CAPI_EXPORT extern void TF_DeleteShapeAndTypeList(TF_ShapeAndTypeList* shape_list);
// Deletes an array of lists, made by new[], and the lists.
TF_CAPI_EXPORT extern void TF_DeleteShapeAndTypeListArray(TF_ShapeAndTypeList** shape_list_array,
                                                          int num_items);
// Set the shape and the type of one item.
TF_CAPI_EXPORT extern void TF_ShapeAndTypeListSetShape(TF_ShapeAndTypeList* shape_list, int index,
                                                       const int64_t* dims, int num_dims);
TF_CAPI_EXPORT extern void TF_ShapeAndTypeListSetUnknownShape(TF_ShapeAndTypeList* shape_list,
                                                              int index);
TF_CAPI_EXPORT extern void TF_ShapeAndTypeListSetDtype(TF_ShapeAndTypeList* shape_list, int index,
                                                       TF_DataType dtype);

// Infers the shapes of an op's outputs from its attributes, the shapes of its inputs and the values
// of those inputs whose `input_tensors` are not null; that array may be null. The inputs of the op
// are not used. The caller deletes the list. The three arguments about other values may be null,
// and have no effect.
TF_CAPI_EXPORT extern void TFE_InferShapes(TFE_Op* op, TF_ShapeAndTypeList* input_shapes,
                                           TF_Tensor** input_tensors,
                                           TF_ShapeAndTypeList* input_tensor_as_shapes,
                                           TF_ShapeAndTypeList** input_resource_shapes_and_types,
                                           TF_ShapeAndTypeList** output_shapes,
                                           TF_ShapeAndTypeList*** output_resource_shapes_and_types,
                                           TF_Status* status);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TENSORFLOW_C_C_API_EXPERIMENTAL_H_
