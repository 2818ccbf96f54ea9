#ifndef WEIR_CAPI_OBJECTS_H_
#define WEIR_CAPI_OBJECTS_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/c/c_api.h"
#include "weir/core/graph/graph.h"
#include "weir/core/tensor/mutex.h"
#include "weir/session/session.h"

namespace google::protobuf {
class MessageLite;
}

// The objects behind the pointers of the C API, and what its functions share. A TF_Operation is a
// Node.
namespace weir::capi {

// Sets a status, if there is one.
void SetStatus(TF_Status* to, const absl::Status& status);
// Prints a line about a wrong argument of a function that has no status.
void LogMisuse(absl::string_view function, absl::string_view what);
// Returns whether no argument is null; logs it if one is.
bool HaveAll(absl::string_view function, std::initializer_list<const void*> args);
// Same, and sets the status to INVALID_ARGUMENT.
bool HaveAll(absl::string_view function, std::initializer_list<const void*> args,
             TF_Status* status);

// Replaces the contents of a buffer by a copy of the bytes.
void SetBuffer(absl::string_view bytes, TF_Buffer* buffer);
// Returns the bytes of a buffer, which may be null.
absl::string_view BytesOf(const TF_Buffer* buffer);
// Parses a message. Returns false for bytes that are none, or are more than protobuf reads.
bool ParseMessage(absl::string_view bytes, google::protobuf::MessageLite* message);
bool ParseMessage(const void* bytes, size_t size, google::protobuf::MessageLite* message);

// Returns the array of a caller as a span. INVALID_ARGUMENT, with what it is of, if there is none.
template <class T>
absl::StatusOr<absl::Span<T>> ArrayOf(T* array, int count, absl::string_view what) {
  if (count < 0 || (array == nullptr && count > 0))
    return InvalidArgument("no array of ", count, " ", what);
  return absl::MakeSpan(array, static_cast<size_t>(count));
}

// Converts a type of the C API. INVALID_ARGUMENT if Weir does not have it.
absl::StatusOr<DataType> TypeOf(TF_DataType type);
// Returns the shape of `num_dims` dimensions, -1 for unknown ones; of unknown rank if num_dims is
// negative. INVALID_ARGUMENT for null or invalid dimensions.
absl::StatusOr<Shape> ShapeOf(const int64_t* dims, int num_dims);

// Returns the value of a tensor: shares the elements, but copies strings.
absl::StatusOr<Tensor> ValueOf(const TF_Tensor* tensor);
// Returns a tensor that shares the elements of a value, but copies strings.
absl::StatusOr<TF_Tensor*> NewTensor(Tensor value);

inline Node* NodeOf(TF_Operation* operation) { return reinterpret_cast<Node*>(operation); }
inline const Node* NodeOf(const TF_Operation* operation) {
  return reinterpret_cast<const Node*>(operation);
}
inline TF_Operation* OperationOf(Node* node) { return reinterpret_cast<TF_Operation*>(node); }

// Converts a handle. INVALID_ARGUMENT for null and for another graph's operation, OUT_OF_RANGE if
// the operation does not have the output.
absl::StatusOr<Output> OutputOf(const TF_Output& output, const Graph& graph);
// Converts `count` handles; null is allowed if there are none.
absl::StatusOr<Outputs> OutputsOf(const TF_Output* outputs, int count, const Graph& graph);
// Same for targets.
absl::StatusOr<std::vector<Operation>> TargetsOf(const TF_Operation* const* targets, int count,
                                                 const Graph& graph);
// Returns an empty graph with the ops of plug-ins.
std::unique_ptr<Graph> NewGraph();
// Adds the operation of a description whose op is a function of the graph.
absl::StatusOr<Node*> AddCall(const TF_OperationDescription& desc, Graph& graph);

// Converts a handle; {NULL, -1} if it is invalid.
TF_Output HandleOf(const Output& output);

// Returns the op with its attributes and inputs as TensorFlow's messages have it:
// "{{node mm}} = MatMul[T=DT_FLOAT, ...](a, b)".
std::string Summary(const OpSpec& op, absl::string_view name, const AttrMap& attrs,
                    absl::Span<const Output> inputs);
// Returns an op's signature as TensorFlow's messages have it:
// "Op<name=Add; signature=x:T, y:T -> z:T; attr=T:type,allowed=[DT_FLOAT, ...]>".
std::string Summary(const OpSpec& op);

}  // namespace weir::capi

struct TSL_Status {  // TF_Status, as clients declare it
  absl::Status status;
  std::string message;  // with a zero at its end
};

struct TF_Tensor {
  weir::DataType dtype = weir::DT_INVALID;
  weir::Shape shape;
  weir::BufferPtr buffer;  // of the elements, or TF_TStrings; null: none, or those of `value`
  void* data = nullptr;
  size_t num_bytes = 0;
  weir::Tensor value;  // of another type than TF_STRING
};

// A graph, and the sessions that use it, which keep it alive.
struct TF_Graph {
  // Calls `change` while nobody else changes or reads the graph. Returns its result, or the error
  // that a builder left in the graph.
  absl::Status Change(const std::function<absl::Status(weir::Graph&)>& change);

  weir::Mutex mutex;
  // Replaced only while it is empty, by that of a SavedModel.
  std::unique_ptr<weir::Graph> graph ABSL_GUARDED_BY(mutex) = weir::capi::NewGraph();
  std::set<TF_Session*> sessions ABSL_GUARDED_BY(mutex);
  // That of the first operation with a name that no session runs.
  absl::Status name_error ABSL_GUARDED_BY(mutex);
  bool is_deleted ABSL_GUARDED_BY(mutex) = false;
  // Of the condition or the body of a loop: the graph that the loop is added to, and its inputs.
  TF_Graph* parent = nullptr;
  std::vector<TF_Output> parent_inputs;
};

struct TF_SessionOptions {
  weir::SessionOptions options;
};

struct TF_OperationDescription {
  // One argument of the op.
  struct Argument {
    std::vector<TF_Output> inputs;
    bool is_list;
  };
  TF_Graph* graph = nullptr;
  std::string op, name, device;
  std::vector<Argument> arguments;
  std::vector<TF_Operation*> controls;
  std::map<std::string, weir::AttrValue> attrs;
  std::set<std::string> colocations;  // the attribute _class
  absl::Status error;                 // the first mistake
};

#endif  // WEIR_CAPI_OBJECTS_H_
