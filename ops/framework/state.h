#ifndef WEIR_OPS_FRAMEWORK_STATE_H_
#define WEIR_OPS_FRAMEWORK_STATE_H_

#include <string>

#include "weir/core/graph/gradient.h"
#include "weir/core/tensor/api.h"

// The ops that implement variables, one builder each. Programs use Variable
// (ops/framework/variable.h), which is built on these.
//
// A variable is an op without inputs: VarHandleOp, whose output is a resource handle, or
// VariableV2, whose output is a reference. The same (container, shared name or node name) in one
// session denotes the same state. Ops that write a ref variable forward the reference, so that a
// consumer of their output runs after the write. Ops that write a resource have no output.
namespace WEIR_API weir {

// Which state a node denotes: its `container` ("": the default one), its `shared_name` ("": that of
// the node), and the `name` of the node.
struct VariableOpOptions {
  std::string container = {};
  std::string shared_name = {};
  std::string name = {};
};
// Return the handle of a resource variable, and a reference to a ref variable. Most programs use
// MakeVariable, which also initializes it.
Output VarHandleOp(Graph& graph, DataType dtype, const Shape& shape,
                   const VariableOpOptions& options = {});
Output VariableV2(Graph& graph, DataType dtype, const Shape& shape,
                  const VariableOpOptions& options = {});

// Returns a snapshot of the value. FAILED_PRECONDITION at run time if the variable is
// uninitialized.
Output ReadVariableOp(Output resource, DataType dtype, absl::string_view name = {});
Output VarIsInitializedOp(Output resource, absl::string_view name = {});
// Returns the shape of the value as an integer vector.
Output VariableShape(Output resource, DataType out_type = DT_INT32, absl::string_view name = {});
// Does the same, but as a constant if the shape is known at graph construction.
Output StaticVariableShape(Output resource, DataType out_type = DT_INT32);
Operation AssignVariableOp(Output resource, Output value, bool validate_shape = false,
                           absl::string_view name = {});
Operation AssignAddVariableOp(Output resource, Output value, absl::string_view name = {});
Operation AssignSubVariableOp(Output resource, Output value, absl::string_view name = {});
// Destroys the variable's value and frees its memory.
Operation DestroyResourceOp(Output resource, bool ignore_lookup_error = true,
                            absl::string_view name = {});

// Gathers the rows `indices` of the value without reading all of it. ResourceGatherNd addresses
// elements by index vectors.
Output ResourceGather(Output resource, Output indices, DataType dtype, int64_t batch_dims = 0,
                      absl::string_view name = {});
Output ResourceGatherNd(Output resource, Output indices, DataType dtype,
                        absl::string_view name = {});

// `op` is one of Add, Sub, Mul, Div, Min, Max, Update: "ResourceScatter<op>" and "Scatter<op>". Row
// indices[i] is combined with updates[i]; updates may be a scalar. If an index is out of range, the
// step fails with INVALID_ARGUMENT and nothing is written.
Operation ResourceScatter(absl::string_view op, Output resource, Output indices, Output updates,
                          absl::string_view name = {});
Output Scatter(absl::string_view op, Output ref, Output indices, Output updates, bool use_locking,
               absl::string_view name = {});

// Returns whether a ref variable has a value, a bool scalar.
Output IsVariableInitializedOp(Output ref, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_STATE_H_
