#ifndef WEIR_C_API_H_
#define WEIR_C_API_H_

#include <stdint.h>

#include "tensorflow/c/c_api.h"

// Weir's own C API: what TensorFlow's C API lacks, on its objects. It is C11 and C++, and its ABI
// is stable: functions are only added.
//
// A small program that trains:
//
//   TF_Operation* w = weir_new_variable(graph, "w", TF_FLOAT, dims, 2, "glorot_uniform", NULL, s);
//   TF_Output w_value, loss;
//   weir_variable_value(graph, w, &w_value, s);
//   ... TF_NewOperation(graph, "MatMul", "product"), until `loss` ...
//   weir_optimizer* adam = weir_new_optimizer(graph, "Adam", "learning_rate=1e-3 clip_norm=1", s);
//   TF_Operation* train = weir_optimizer_minimize(adam, &loss, NULL, NULL, 0, s);
//   TF_Operation* init = weir_variables_initializer(graph, "variables", s);
//   ... TF_SessionRun of `init` once, and of `train` in each step ...
//
// What all functions share:
//
// * A variable is the operation that holds its storage (a VarHandleOp or a VariableV2), and belongs
//   to its graph. Functions that take one know the variables that this API made and those of an
//   imported meta graph; NOT_FOUND for another operation.
// * Options and hyperparameters are a text of pairs, `key=value`, separated by white space; null
// and
//   "" are none. A value with white space is in double quotes, in which \" and \\ stand for " and
//   \. A list is separated by commas. A truth value is "true" or "false". INVALID_ARGUMENT for a
//   key that the function does not have, with those that it has.
// * A list of strings is written to a buffer as its strings one after another, each with a zero
// byte
//   at its end. A buffer that is written loses what it held before; the caller deletes it.
// * An error is set in the status, and the function returns null, or -1 for a number. Nothing is
//   written then. A null argument where the text does not allow it is INVALID_ARGUMENT. Without a
//   status, or where a function has none, a line on stderr says what is wrong. Only pointers that
//   do not point to such an object are not detected.
// * Functions may be called by several threads at once, also with the same objects. A function that
//   adds nodes to a graph waits until no step of its sessions is being prepared.
#ifdef __cplusplus
extern "C" {
#endif

// Returns the version of Weir, "1.2.3". TF_Version is that of TensorFlow's API.
TF_CAPI_EXPORT extern const char* weir_version(void);

// ---- meta graphs

// A saver; see below.
typedef struct weir_saver weir_saver;

// Adds the nodes and collections of a serialized MetaGraphDef (the .meta file beside a checkpoint)
// to a graph. Writes its serialized SaverDef, for weir_new_saver_from_def, to `saver_def`, unless
// that is null; no bytes if it has none. Ops that this library does not know become nodes that
// cannot run.
//   import_scope   the name scope of the nodes, made unique unless it ends in '/'
//   clear_devices  true: without the devices that nodes request
// INVALID_ARGUMENT for bytes that are no MetaGraphDef, and for a name that exists.
TF_CAPI_EXPORT extern void weir_graph_import_meta_graph(TF_Graph* graph,
                                                        const TF_Buffer* meta_graph_def,
                                                        const char* options, TF_Buffer* saver_def,
                                                        TF_Status* status);
// Writes a graph with its collections as a serialized MetaGraphDef. `saver` says how its variables
// are saved and restored, or is null.
//   tags           a list, such as "serve"
//   clear_devices  true: without the devices that nodes request
//   export_scope   only the nodes of this name scope, with the scope stripped from their names
// INVALID_ARGUMENT if the graph is too large to be serialized (2 GiB).
TF_CAPI_EXPORT extern void weir_graph_export_meta_graph(TF_Graph* graph, weir_saver* saver,
                                                        const char* options,
                                                        TF_Buffer* meta_graph_def,
                                                        TF_Status* status);
// Sets the seed from which random initializers that are added later take theirs, so that they have
// the same values in every run. Without it, they differ.
TF_CAPI_EXPORT extern void weir_graph_set_seed(TF_Graph* graph, int64_t seed);

// ---- collections: named lists of a graph, with what builders and meta graphs put into them.
// "variables", "trainable_variables", "local_variables", "train_op" and "global_step" are some that
// this API reads or adds to; any string is a key.

// Writes the list of the keys, sorted.
TF_CAPI_EXPORT extern void weir_graph_collections(TF_Graph* graph, TF_Buffer* keys,
                                                  TF_Status* status);
// Writes the list of the names of a collection's items: of tensors and variables "w:0", of
// operations "train", strings themselves, numbers as text; "" for other objects. Empty for an
// unknown key.
TF_CAPI_EXPORT extern void weir_collection_names(TF_Graph* graph, const char* key, TF_Buffer* names,
                                                 TF_Status* status);
// Returns the number of items in a collection, and writes at most `max_items` of them: a tensor;
// the value of a variable; an operation, with index -1; {NULL, -1} for anything else. `items` may
// be null if max_items is 0.
TF_CAPI_EXPORT extern int weir_collection_items(TF_Graph* graph, const char* key, TF_Output* items,
                                                int max_items, TF_Status* status);
// Add a tensor, an operation, or a variable at the end of a collection.
TF_CAPI_EXPORT extern void weir_collection_add_tensor(TF_Graph* graph, const char* key,
                                                      const TF_Output* tensor, TF_Status* status);
TF_CAPI_EXPORT extern void weir_collection_add_operation(TF_Graph* graph, const char* key,
                                                         TF_Operation* oper, TF_Status* status);
TF_CAPI_EXPORT extern void weir_collection_add_variable(TF_Graph* graph, const char* key,
                                                        TF_Operation* variable, TF_Status* status);
// Removes all items of a collection.
TF_CAPI_EXPORT extern void weir_collection_clear(TF_Graph* graph, const char* key,
                                                 TF_Status* status);

// ---- variables

// Add a variable, whose name no other has, and return it.
//   trainable     false: optimizers do not update it. Default: true
//   collections   a list. Default: "variables". A trainable one is also in "trainable_variables".
//   use_resource  false: a reference variable, as in TensorFlow 1. Default: true
// The initial value is made by an initializer for a shape that is fully known:
//   zeros, ones, identity                         identity may have `gain`
//   constant                                      `value`
//   random_uniform                                `minval`, `maxval`
//   random_normal, truncated_normal               `mean`, `stddev`
//   glorot_uniform, glorot_normal, he_uniform, he_normal, lecun_uniform, lecun_normal
//   orthogonal                                    `gain`
// Its arguments follow its name as pairs, "random_normal stddev=0.1 seed=7"; all random ones may
// have `seed`. Or it is that of a tensor, which is copied; or of an output of the graph.
// ALREADY_EXISTS if there is such a variable.
TF_CAPI_EXPORT extern TF_Operation* weir_new_variable(TF_Graph* graph, const char* name,
                                                      TF_DataType dtype, const int64_t* dims,
                                                      int num_dims, const char* initializer,
                                                      const char* options, TF_Status* status);
TF_CAPI_EXPORT extern TF_Operation* weir_new_variable_from_tensor(TF_Graph* graph, const char* name,
                                                                  const TF_Tensor* initial_value,
                                                                  const char* options,
                                                                  TF_Status* status);
TF_CAPI_EXPORT extern TF_Operation* weir_new_variable_from_output(TF_Graph* graph, const char* name,
                                                                  const TF_Output* initial_value,
                                                                  const char* options,
                                                                  TF_Status* status);
// Returns the number of variables in a collection, and writes at most `max_variables` of them.
TF_CAPI_EXPORT extern int weir_variables(TF_Graph* graph, const char* collection,
                                         TF_Operation** variables, int max_variables,
                                         TF_Status* status);
// Writes the value of a variable, an input for other operations and something to fetch. A step
// reads it before it writes the variable, unless the reading node has a control input that says
// otherwise.
TF_CAPI_EXPORT extern void weir_variable_value(TF_Graph* graph, TF_Operation* variable,
                                               TF_Output* value, TF_Status* status);
// Add a node that assigns a value, adds it, or subtracts it, and write its result, the value of the
// variable after that. INVALID_ARGUMENT for another type or shape than the variable's.
TF_CAPI_EXPORT extern void weir_variable_assign(TF_Graph* graph, TF_Operation* variable,
                                                const TF_Output* value, TF_Output* result,
                                                TF_Status* status);
TF_CAPI_EXPORT extern void weir_variable_assign_add(TF_Graph* graph, TF_Operation* variable,
                                                    const TF_Output* delta, TF_Output* result,
                                                    TF_Status* status);
TF_CAPI_EXPORT extern void weir_variable_assign_sub(TF_Graph* graph, TF_Operation* variable,
                                                    const TF_Output* delta, TF_Output* result,
                                                    TF_Status* status);
// Returns the operation that assigns the initial value of one variable.
TF_CAPI_EXPORT extern TF_Operation* weir_variable_initializer(TF_Graph* graph,
                                                              TF_Operation* variable,
                                                              TF_Status* status);
// Adds an operation that initializes the variables of a collection, those that others depend on
// first: "variables" for all that are saved, "local_variables" for the others.
TF_CAPI_EXPORT extern TF_Operation* weir_variables_initializer(TF_Graph* graph,
                                                               const char* collection,
                                                               TF_Status* status);
// Adds an operation that fills the lookup tables of the graph.
TF_CAPI_EXPORT extern TF_Operation* weir_tables_initializer(TF_Graph* graph, TF_Status* status);
// Writes the list of the names of the global and local variables that have no value in the session.
// The first call, and the first one after new variables, adds nodes to the graph.
TF_CAPI_EXPORT extern void weir_uninitialized_variables(TF_Session* session, TF_Buffer* names,
                                                        TF_Status* status);
// Returns the variable that counts training steps, the int64 scalar "global_step"; adds it if the
// graph has none.
TF_CAPI_EXPORT extern TF_Operation* weir_global_step(TF_Graph* graph, TF_Status* status);

// ---- optimizers

// What turns gradients into updates. It keeps the slots that it has added to its graph, such as
// Adam's moments, and shares them between its calls. The graph outlives it, except that it may be
// deleted after the graph.
typedef struct weir_optimizer weir_optimizer;

// Returns an optimizer of TensorFlow 1 by name; its nodes and slots have TensorFlow's names. A
// hyperparameter is a number, or the name of a scalar tensor of the graph, such as a schedule.
// Those without a default are needed.
//   GradientDescent          learning_rate
//   Momentum                 learning_rate, momentum, use_nesterov=false
//   Adagrad                  learning_rate, initial_accumulator_value=0.1
//   Adadelta                 learning_rate=0.001, rho=0.95, epsilon=1e-8
//   RMSProp                  learning_rate, decay=0.9, momentum=0, epsilon=1e-10, centered=false
//   Adam                     learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8
//   AdamW                    weight_decay, and those of Adam
//   Ftrl                     learning_rate, learning_rate_power=-0.5,
//   initial_accumulator_value=0.1,
//                            l1_regularization_strength=0, l2_regularization_strength=0,
//                            l2_shrinkage_regularization_strength=0, beta=0
//   ProximalGradientDescent  learning_rate, l1_regularization_strength=0,
//                            l2_regularization_strength=0
//   ProximalAdagrad          those, and initial_accumulator_value=0.1
// All of them also have
//   name         of the name scope and the slots. Default: the optimizer's name
//   use_locking  true: updates of one reference variable exclude each other. Default: false
//   clip_norm    scales all gradients by the same factor so that their global norm is at most this
// NOT_FOUND for another name or tensor. The caller deletes the optimizer.
TF_CAPI_EXPORT extern weir_optimizer* weir_new_optimizer(TF_Graph* graph, const char* optimizer,
                                                         const char* hyperparameters,
                                                         TF_Status* status);
TF_CAPI_EXPORT extern void weir_delete_optimizer(weir_optimizer* optimizer);
// Adds the operation that does one training step: computes the gradients of a loss, and updates
// the variables (null and 0: all trainable ones). Increments the variable `global_step` after that,
// unless it is null. INVALID_ARGUMENT if the loss depends on none of the variables.
TF_CAPI_EXPORT extern TF_Operation* weir_optimizer_minimize(weir_optimizer* optimizer,
                                                            const TF_Output* loss,
                                                            TF_Operation* global_step,
                                                            TF_Operation* const* variables,
                                                            int num_variables, TF_Status* status);
// Same, with the gradient of each variable, from TF_AddGradients or elsewhere; {NULL, -1} for none.
TF_CAPI_EXPORT extern TF_Operation* weir_optimizer_apply_gradients(
    weir_optimizer* optimizer, const TF_Output* gradients, TF_Operation* const* variables,
    int num_variables, TF_Operation* global_step, TF_Status* status);
// Returns a slot of a variable by name, a variable too. NOT_FOUND if it has no such slot (yet).
TF_CAPI_EXPORT extern TF_Operation* weir_optimizer_slot(weir_optimizer* optimizer,
                                                        TF_Operation* variable, const char* slot,
                                                        TF_Status* status);
// Writes the list of the names of the slots that the optimizer has made.
TF_CAPI_EXPORT extern void weir_optimizer_slot_names(weir_optimizer* optimizer, TF_Buffer* names,
                                                     TF_Status* status);

// ---- savers: checkpoints of variables, written by one and kept up to a number. Calls with one
// saver run one after another.

// Adds the nodes that save and restore variables (null and 0: all of the collection "variables"),
// and returns a saver, which the caller deletes.
//   max_to_keep=5                        checkpoints; 0: all
//   keep_checkpoint_every_n_hours=10000  in addition, one of each such period
//   keep_best=0, better=higher           in addition, the best by `metric` (or better=lower)
//   sharded=false                        true: a file for each device
//   reshape=false                        true: restores other shapes of the same size
//   pad_step_number=false                true: "model-00000007"
//   save_relative_paths=false            true: the folder can be moved
//   write_version=2                      1: the format before TensorFlow 1.0
//   synced=true                          false: does not wait for the disk
//   name=save                            the name scope of the nodes
// INVALID_ARGUMENT if there is nothing to save.
TF_CAPI_EXPORT extern weir_saver* weir_new_saver(TF_Graph* graph, TF_Operation* const* variables,
                                                 int num_variables, const char* options,
                                                 TF_Status* status);
// Returns a saver for the nodes that a serialized SaverDef names, of an imported meta graph.
TF_CAPI_EXPORT extern weir_saver* weir_new_saver_from_def(const TF_Buffer* saver_def,
                                                          TF_Status* status);
// Waits for a checkpoint that is being written; its error is lost.
TF_CAPI_EXPORT extern void weir_delete_saver(weir_saver* saver);
// Writes the serialized SaverDef.
TF_CAPI_EXPORT extern void weir_saver_def(weir_saver* saver, TF_Buffer* saver_def,
                                          TF_Status* status);
// Writes a checkpoint of the session's variables to `path`, with "-" and the step unless that is
// negative, and writes its path to `saved_path`, unless that is null. Then removes the oldest
// checkpoint if there are too many.
//   mode=sync                  async: returns once the values are taken, and writes meanwhile;
//                              async_or_skip: same, but does nothing, and writes an empty path,
//                              while a checkpoint is being written
//   metric                     a number: how good the model is
//   latest_filename=checkpoint the file that names the newest checkpoint
//   write_state=true           false: does not write that file, and removes no checkpoint
//   write_meta_graph=true      false: does not write the .meta file
//   exact_resume=false         true: also what a run needs to go on with the same bits
// FAILED_PRECONDITION for a variable without a value; NOT_FOUND if the folder does not exist; after
// mode=async the error of the checkpoint before.
TF_CAPI_EXPORT extern void weir_saver_save(weir_saver* saver, TF_Session* session, const char* path,
                                           int64_t global_step, const char* options,
                                           TF_Buffer* saved_path, TF_Status* status);
// Waits until no checkpoint is being written, and sets the error of the last one, once.
TF_CAPI_EXPORT extern void weir_saver_wait(weir_saver* saver, TF_Status* status);
// Sets all variables to the values of a checkpoint, or none after an error. INVALID_ARGUMENT for
// another type or shape; NOT_FOUND for a checkpoint or a key that does not exist; DATA_LOSS.
TF_CAPI_EXPORT extern void weir_saver_restore(weir_saver* saver, TF_Session* session,
                                              const char* path, TF_Status* status);
// Restores the newest checkpoint of a folder, and writes its path to `path`, unless that is null.
// The saver then keeps and removes the folder's checkpoints. `skip_damaged`, 1 or 0: goes on to an
// older one if the newest is damaged. NOT_FOUND if there is none.
TF_CAPI_EXPORT extern void weir_saver_restore_latest(weir_saver* saver, TF_Session* session,
                                                     const char* folder, int skip_damaged,
                                                     TF_Buffer* path, TF_Status* status);
// Writes the list of the checkpoints that the saver has written and not removed, oldest first.
TF_CAPI_EXPORT extern void weir_saver_checkpoints(weir_saver* saver, TF_Buffer* paths,
                                                  TF_Status* status);

// ---- checkpoints as files

// Writes the path of the newest checkpoint of a folder. NOT_FOUND if there is none.
TF_CAPI_EXPORT extern void weir_latest_checkpoint(const char* folder, TF_Buffer* path,
                                                  TF_Status* status);
// Reads every byte of a checkpoint, and writes a report as JSON:
//   {"checkpoint": "m-7", "sound": false, "tensors": 4, "index_bytes": 300, "data_bytes": 8000,
//    "problems": [{"file": "m-7.data-00000-of-00001", "offset": 128, "size": 4, "tensor": "w",
//                  "message": "..."}]}
// Returns 1 if it is sound, 0 if it is damaged, -1 if nothing can be read. `report` may be null.
TF_CAPI_EXPORT extern int weir_checkpoint_verify(const char* path, TF_Buffer* report,
                                                 TF_Status* status);
// Writes the tensors of a checkpoint as JSON: [{"name": "w", "dtype": "float", "shape": [2, 3]}].
TF_CAPI_EXPORT extern void weir_checkpoint_tensors(const char* path, TF_Buffer* tensors,
                                                   TF_Status* status);
// Returns one tensor of a checkpoint, which the caller deletes.
TF_CAPI_EXPORT extern TF_Tensor* weir_checkpoint_read(const char* path, const char* name,
                                                      TF_Status* status);

// ---- models

// Writes a SavedModel, with the session's present values of the variables, to a folder that does
// not exist or is empty. `signatures` are pairs for the tensors of each:
// "serving_default/inputs/x=x:0 serving_default/outputs/y=logits:0".
//   tags=serve           a list
//   clear_devices=false  true: without the devices that nodes request
//   init_op              an operation that runs when the model is loaded, such as one for tables
//   objects=false        true: also for tf.saved_model.load of TensorFlow 2, with variables to
//   train as_text=false        true: saved_model.pbtxt synced=true          false: does not wait
//   for the disk
// ALREADY_EXISTS for another folder; FAILED_PRECONDITION for a variable without a value.
TF_CAPI_EXPORT extern void weir_export_saved_model(TF_Session* session, const char* folder,
                                                   const char* signatures, const char* options,
                                                   TF_Status* status);
// Writes a serialized GraphDef that computes outputs of the session's graph from constants, with
// the present values of the variables.
//   targets              a list of operations to keep too, such as the initializer of a table
//   clear_devices=false  true: without the devices that nodes request
// FAILED_PRECONDITION for a variable without a value, or an output that needs one to be written.
TF_CAPI_EXPORT extern void weir_freeze(TF_Session* session, const TF_Output* outputs,
                                       int num_outputs, const char* options, TF_Buffer* graph_def,
                                       TF_Status* status);

// ---- tensors

// A deallocator for TF_NewTensor, whose argument is an int32_t that it sets to 1. It is for
// languages that the threads of a session cannot call: they look at the number, and free the memory
// then.
TF_CAPI_EXPORT extern void weir_set_released(void* data, size_t length, void* released);

// ---- profiles

// Runs a step as TF_SessionRun does, and writes when each node ran, on which thread and device, as
// JSON for chrome://tracing and ui.perfetto.dev. The first run of a step also compiles it, before
// the trace begins.
TF_CAPI_EXPORT extern void weir_session_run_traced(TF_Session* session, const TF_Output* inputs,
                                                   TF_Tensor* const* input_values, int num_inputs,
                                                   const TF_Output* outputs,
                                                   TF_Tensor** output_values, int num_outputs,
                                                   const TF_Operation* const* targets,
                                                   int num_targets, TF_Buffer* chrome_trace,
                                                   TF_Status* status);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // WEIR_C_API_H_
