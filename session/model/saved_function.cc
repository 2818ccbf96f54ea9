#include "weir/session/model/saved_function.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/lib/array.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/session/model/saved_objects.h"
#include "weir/session/model/scoped_names.h"

namespace weir {
namespace {

using Value = SavedFunction::Value;

// A malformed model of a few megabytes can list terabytes: by long names with much below them, or
// by objects that repeat a function of many arguments.
constexpr int64_t kMaxListBytes = int64_t{1} << 28;
constexpr size_t kMaxResultName = 1000;  // letters; a function with longer ones numbers its results

Shape ShapeOrUnknown(const proto::TensorShapeProto& proto) {
  absl::StatusOr<Shape> shape = ShapeFromProto(proto);
  return shape.ok() ? *std::move(shape) : Shape::UnknownRank();
}

// Returns "a/b", or the other if one is empty.
std::string Joined(const std::string& scope, absl::string_view name) {
  return scope.empty() ? std::string(name) : absl::StrCat(scope, "/", name);
}

// Appends the tensors in a nest of results, in TensorFlow's order: dictionaries by key. The nest
// has the depth that the parser of protocol buffers allows.
void AddResults(const proto::StructuredValue& nest, const std::string& name,
                std::vector<Value>* results) {
  if (name.size() > kMaxResultName) return;
  const auto add_all = [&](const auto& values) {
    for (int i = 0; i < values.size(); ++i)
      AddResults(values[i],
                 name.empty() ? absl::StrCat("output_", i) : Joined(name, absl::StrCat(i)),
                 results);
  };
  if (nest.has_list_value()) return add_all(nest.list_value().values());
  if (nest.has_tuple_value()) return add_all(nest.tuple_value().values());
  if (nest.has_dict_value()) {
    const auto& fields = nest.dict_value().fields();
    std::map<std::string, const proto::StructuredValue*> sorted;
    for (const auto& [key, value] : fields) sorted[key] = &value;
    for (const auto& [key, value] : sorted) AddResults(*value, Joined(name, key), results);
    return;
  }
  if (nest.has_named_tuple_value()) {
    for (const auto& pair : nest.named_tuple_value().values())
      AddResults(pair.value(), Joined(name, pair.key()), results);
    return;
  }
  if (nest.has_none_value()) return;
  Value& result = results->emplace_back();
  result.name = name.empty() ? "output_0" : name;
  if (nest.has_tensor_spec_value()) result.shape = ShapeOrUnknown(nest.tensor_spec_value().shape());
}

// Returns the results by the names that the model gives them, or where these do not account for
// all, such as those of a ragged tensor, by number.
std::vector<Value> ResultsOf(const proto::OpDef& signature, const proto::StructuredValue& nest) {
  std::vector<Value> results;
  AddResults(nest, "", &results);
  if (static_cast<int>(results.size()) != signature.output_arg_size()) {
    results.assign(signature.output_arg_size(), Value());
    for (size_t i = 0; i < results.size(); ++i) results[i].name = absl::StrCat("output_", i);
  }
  for (size_t i = 0; i < results.size(); ++i)
    results[i].dtype = static_cast<DataType>(signature.output_arg(static_cast<int>(i)).type());
  return results;
}

// Returns the first `count` arguments.
std::vector<Value> InputsOf(const proto::FunctionDef& function, int count) {
  std::vector<Value> inputs;
  absl::flat_hash_set<std::string> names;
  for (int i = 0; i < count; ++i) {
    const auto& argument = function.signature().input_arg(i);
    Value& input = inputs.emplace_back();
    input = {.name = argument.name(), .dtype = static_cast<DataType>(argument.type())};
    const auto attrs = function.arg_attr().find(i);
    const google::protobuf::Map<std::string, proto::AttrValue> none;
    const auto& attr = attrs == function.arg_attr().end() ? none : attrs->second.attr();
    // The parts of one argument of Python may have its name.
    if (const auto name = attr.find("_user_specified_name");
        name != attr.end() && !names.contains(name->second.s()))
      input.name = name->second.s();
    input.name =
        UnusedName(input.name, [&](const std::string& taken) { return names.contains(taken); });
    names.insert(input.name);
    if (const auto shapes = attr.find("_output_shapes");
        shapes != attr.end() && shapes->second.list().shape_size() == 1)
      input.shape = ShapeOrUnknown(shapes->second.list().shape(0));
  }
  return inputs;
}

// Returns the number, truth value or text as a scalar of the type, if it is one of these and fits.
std::optional<Tensor> ScalarOf(const proto::StructuredValue& value, DataType dtype) {
  if (value.has_string_value() && dtype == DT_STRING) return Tensor::Scalar(value.string_value());
  if (value.has_bool_value() && dtype == DT_BOOL) return Tensor::Scalar(value.bool_value());
  if (!value.has_float64_value() && !value.has_int64_value()) return std::nullopt;
  const bool is_whole = value.has_int64_value();
  const double number = is_whole ? static_cast<double>(value.int64_value()) : value.float64_value();
  if (dtype == DT_FLOAT) return Tensor::Scalar(static_cast<float>(number));
  if (dtype == DT_DOUBLE) return Tensor::Scalar(number);
  if (dtype == DT_INT64 && is_whole) return Tensor::Scalar<int64_t>(value.int64_value());
  const bool fits = is_whole && std::in_range<int32_t>(value.int64_value());
  if (dtype == DT_INT32 && fits) return Tensor::Scalar(static_cast<int32_t>(value.int64_value()));
  return std::nullopt;
}

using Defaults = std::map<absl::string_view, const proto::StructuredValue*>;

// Returns the defaults that the Python function declares, those of its last arguments, by argument.
Defaults DefaultsOf(const proto::FunctionSpec& spec) {
  const proto::ListValue* names = nullptr;
  const proto::TupleValue* values = nullptr;
  for (const auto& field : spec.fullargspec().named_tuple_value().values()) {
    if (field.key() == "args") names = &field.value().list_value();
    if (field.key() == "defaults") values = &field.value().tuple_value();
  }
  Defaults defaults;
  if (names == nullptr || values == nullptr) return defaults;
  const int first = names->values_size() - values->values_size();
  for (int i = std::max(first, 0); i < names->values_size(); ++i)
    defaults[names->values(i).string_value()] = &values->values(i - first);
  return defaults;
}

size_t BytesOf(const std::vector<Value>& values) {
  size_t bytes = 0;
  for (const Value& value : values) {
    bytes += sizeof(value) + value.name.size();
    if (value.default_value && value.default_value->dtype() == DT_STRING)
      bytes += value.default_value->data<std::string>()->size();
  }
  return bytes;
}

class FunctionLister {
 public:
  FunctionLister(const proto::MetaGraphDef& def, const std::vector<std::string>& tensors)
      : objects_(def.object_graph_def()), tensors_(tensors) {
    for (const proto::FunctionDef& function : def.graph_def().library().function())
      library_[function.signature().name()] = &function;
  }

  // Visits the objects breadth first, so that each gets its shortest name.
  std::vector<SavedFunction> List() {
    std::vector<bool> seen(objects_.nodes_size());
    std::deque<std::pair<int, std::string>> next;
    if (objects_.nodes_size() > 0) next.emplace_back(0, "");
    while (!next.empty()) {
      const auto [id, name] = std::move(next.front());
      next.pop_front();
      const proto::SavedObject& object = objects_.nodes(id);
      if (seen[id] || object.has_resource()) continue;
      seen[id] = true;
      const Defaults defaults = DefaultsOf(object.function().function_spec());
      for (const std::string& function : object.function().concrete_functions())
        Add(name, function, defaults);
      if (object.has_bare_concrete_function())
        Add(name, object.bare_concrete_function().concrete_function_name(),
            DefaultsOf(object.bare_concrete_function().function_spec()));
      if (!object.has_user_object() || object.user_object().identifier() == "signature_map")
        continue;
      for (const auto& child : object.children()) {
        if (child.node_id() < 0 || child.node_id() >= objects_.nodes_size()) continue;
        std::string path =
            name.empty() ? child.local_name() : absl::StrCat(name, ".", child.local_name());
        if (!Take(path.size())) return std::move(functions_);
        next.emplace_back(child.node_id(), std::move(path));
      }
    }
    return std::move(functions_);
  }

 private:
  // Returns false if the list would have too many bytes.
  bool Take(size_t bytes) {
    left_ = std::max<int64_t>(left_ - static_cast<int64_t>(bytes), -1);
    return left_ >= 0;
  }

  void Add(const std::string& name, const std::string& function, const Defaults& defaults) {
    const auto def = library_.find(function);
    const auto saved = objects_.concrete_functions().find(function);
    if (left_ < 0 || def == library_.end() || saved == objects_.concrete_functions().end()) return;
    const auto& bound = saved->second.bound_inputs();
    const int num_inputs = def->second->signature().input_arg_size() - bound.size();
    if (num_inputs < 0) return;
    SavedFunction out;
    out.name = name;
    out.function = function;
    out.inputs = InputsOf(*def->second, num_inputs);
    for (Value& input : out.inputs) {
      if (const auto found = defaults.find(input.name); found != defaults.end())
        input.default_value = ScalarOf(*found->second, input.dtype);
    }
    out.results = ResultsOf(def->second->signature(), saved->second.output_signature());
    if (!Take(name.size() + function.size() + BytesOf(out.inputs) + BytesOf(out.results))) return;
    for (const int id : bound) {
      const bool is_there = id >= 0 && id < static_cast<int>(tensors_.size());
      out.captures.push_back(is_there ? tensors_[id] : "");
      if (!Take(sizeof(std::string) + out.captures.back().size())) return;
    }
    functions_.push_back(std::move(out));
  }

  const proto::SavedObjectGraph& objects_;
  const std::vector<std::string>& tensors_;
  std::map<std::string, const proto::FunctionDef*, std::less<>> library_;
  std::vector<SavedFunction> functions_;
  int64_t left_ = kMaxListBytes;  // -1 once the list is full
};

absl::Status WrongType(const SavedFunction& function, const ArgSpec& argument, DataType dtype) {
  return InvalidArgument("function '", function.function, "' has an argument '", argument.name,
                         "' of type ", DataTypeName(argument.type), "; expected ",
                         DataTypeName(dtype));
}

// Returns the tensors that the function has captured.
// Checks everything before a node is added: an error of a builder would stay with the graph.
absl::StatusOr<Outputs> FindCaptures(const Graph& graph, const SavedFunction& function) {
  if (graph.functions() == nullptr)
    return InvalidArgument("the graph has no function '", function.function, "'");
  WEIR_ASSIGN_OR_RETURN(const OpSpec* const op, graph.functions()->FindOp(function.function));
  if (op->inputs().size() != function.inputs.size() + function.captures.size() ||
      op->outputs().size() != function.results.size()) {
    return InvalidArgument("function '", function.function, "' has ", op->inputs().size(),
                           " arguments and ", op->outputs().size(), " results; expected ",
                           function.inputs.size() + function.captures.size(), " and ",
                           function.results.size());
  }
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const DataType dtype = function.inputs[i].dtype;
    if (dtype == DT_INVALID || dtype != op->inputs()[i].type)
      return WrongType(function, op->inputs()[i], dtype);
  }
  Outputs captures;
  for (size_t i = 0; i < function.captures.size(); ++i) {
    const ArgSpec& argument = op->inputs()[function.inputs.size() + i];
    if (function.captures[i].empty()) {
      return Unimplemented("function '", function.name, "' has captured an object, its argument '",
                           argument.name, "', for which the model's graph has no tensor");
    }
    WEIR_ASSIGN_OR_RETURN(captures.emplace_back(), graph.FindOutput(function.captures[i]));
    const DataType dtype = captures.back().dtype();
    if (argument.type == DT_INVALID || (dtype != argument.type && dtype != DT_RESOURCE))
      return WrongType(function, argument, dtype);
  }
  return captures;
}

std::string NodeName(const SavedFunction& function, absl::string_view argument) {
  return AsNodeName(absl::StrCat("call/", function.name, "/", argument));
}

}  // namespace

std::vector<SavedFunction> SavedFunctionsOf(const proto::MetaGraphDef& def) {
  return SavedFunctionsOf(def, ObjectTensors(def));
}

std::vector<SavedFunction> SavedFunctionsOf(const proto::MetaGraphDef& def,
                                            const std::vector<std::string>& tensors) {
  return FunctionLister(def, tensors).List();
}

absl::StatusOr<Signature> CallSavedFunction(Graph& graph, const SavedFunction& function) {
  WEIR_ASSIGN_OR_RETURN(const Outputs captures, FindCaptures(graph, function));
  WEIR_ASSIGN_OR_RETURN(const OpSpec* const op, graph.functions()->FindOp(function.function));
  Signature signature{.method_name = "tensorflow/serving/predict"};
  Outputs args;
  for (const Value& input : function.inputs) {
    args.push_back(Placeholder(graph, input.dtype, input.shape, NodeName(function, input.name)));
    signature.inputs[input.name] = args.back().name();
    if (input.default_value) signature.defaults[input.name] = *input.default_value;
  }
  for (size_t i = 0; i < captures.size(); ++i) {
    const DataType wanted = op->inputs()[function.inputs.size() + i].type;
    // The path of an asset, which the graph holds in a variable.
    const bool is_read = captures[i].dtype() == DT_RESOURCE && wanted != DT_RESOURCE;
    args.push_back(is_read ? AddOp("ReadVariableOp", {captures[i]}, {{"dtype", AttrValue(wanted)}})
                           : captures[i]);
  }
  const Outputs results =
      Call(graph, FunctionRef{function.function}, args, NodeName(function, "result"));
  WEIR_RETURN_IF_ERROR(graph.status());
  for (size_t i = 0; i < results.size(); ++i)
    signature.outputs[function.results[i].name] = results[i].name();
  return signature;
}

}  // namespace weir
