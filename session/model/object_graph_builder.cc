#include "weir/session/model/object_graph_builder.h"

#include "weir/core/io/graph_io.h"
#include "weir/proto/saved_object_graph.pb.h"
#include "weir/proto/trackable_object_graph.pb.h"

// TensorFlow calls a function by the Python signature that the file gives it (FullArgSpec, as
// Python's inspect module describes one), and checks the arguments against the structure of the
// concrete function: a tuple of the positional arguments and a dictionary of those by keyword. The
// flat list of the tensors, in which dictionaries are sorted by key, is that of the FunctionDef.
namespace weir {
namespace {

constexpr char kValueAttribute[] = "VARIABLE_VALUE";

using Values = google::protobuf::RepeatedPtrField<proto::StructuredValue>;

void SetSpec(const TensorType& type, proto::StructuredValue* value) {
  proto::TensorSpecProto& spec = *value->mutable_tensor_spec_value();
  spec.set_name(type.name);
  spec.set_dtype(static_cast<proto::DataType>(type.dtype));
  ShapeToProto(type.shape, spec.mutable_shape());
}

void AddSpecs(const std::vector<TensorType>& types, Values* values) {
  for (const TensorType& type : types) SetSpec(type, values->Add());
}

void SetSpecs(const std::vector<TensorType>& types, proto::DictValue* dictionary) {
  for (const TensorType& type : types) SetSpec(type, &(*dictionary->mutable_fields())[type.name]);
}

// Describes a Python function of these positional arguments without defaults.
void SetFunctionSpec(const std::vector<TensorType>& inputs, proto::FunctionSpec* spec) {
  proto::NamedTupleValue& arguments = *spec->mutable_fullargspec()->mutable_named_tuple_value();
  arguments.set_name("FullArgSpec");
  const auto add = [&](const char* key) {
    proto::PairValue& pair = *arguments.add_values();
    pair.set_key(key);
    return pair.mutable_value();
  };
  proto::ListValue& names = *add("args")->mutable_list_value();
  for (const TensorType& input : inputs) names.add_values()->set_string_value(input.name);
  for (const char* none : {"varargs", "varkw", "defaults"}) add(none)->mutable_none_value();
  add("kwonlyargs")->mutable_list_value();
  add("kwonlydefaults")->mutable_none_value();
  add("annotations")->mutable_dict_value();
  AddSpecs(inputs, spec->mutable_input_signature()->mutable_tuple_value()->mutable_values());
}

}  // namespace

ObjectGraphBuilder::ObjectGraphBuilder(proto::SavedObjectGraph* saved,
                                       proto::TrackableObjectGraph* tracked)
    : saved_(*saved), tracked_(*tracked) {
  AddUserObject("_generic_user_object");
}

int ObjectGraphBuilder::Add(proto::SavedObject** object) {
  *object = saved_.add_nodes();
  tracked_.add_nodes();
  return saved_.nodes_size() - 1;
}

void ObjectGraphBuilder::SetChild(int object, const std::string& name, int child) {
  children_[{object, name}] = child;
  for (auto* children : {saved_.mutable_nodes(object)->mutable_children(),
                         tracked_.mutable_nodes(object)->mutable_children()}) {
    auto* const reference = children->Add();
    reference->set_node_id(child);
    reference->set_local_name(name);
  }
}

int ObjectGraphBuilder::Child(int object, const std::string& name) const {
  const auto child = children_.find({object, name});
  return child == children_.end() ? -1 : child->second;
}

int ObjectGraphBuilder::AddUserObject(const std::string& identifier) {
  proto::SavedObject* object;
  const int number = Add(&object);
  proto::SavedUserObject& user = *object->mutable_user_object();
  user.set_identifier(identifier);
  user.mutable_version()->set_producer(1);
  user.mutable_version()->set_min_consumer(1);
  return number;
}

int ObjectGraphBuilder::AddVariable(const TensorType& type, bool trainable,
                                    const std::string& key) {
  proto::SavedObject* object;
  const int number = Add(&object);
  proto::SavedVariable& variable = *object->mutable_variable();
  variable.set_name(type.name);
  variable.set_dtype(static_cast<proto::DataType>(type.dtype));
  ShapeToProto(type.shape, variable.mutable_shape());
  variable.set_trainable(trainable);
  auto& attribute = *tracked_.mutable_nodes(number)->add_attributes();
  attribute.set_name(kValueAttribute);
  attribute.set_full_name(type.name);
  attribute.set_checkpoint_key(key);
  return number;
}

int ObjectGraphBuilder::AddResource() {
  proto::SavedObject* object;
  const int number = Add(&object);
  object->mutable_resource();
  return number;
}

int ObjectGraphBuilder::AddAsset(int index) {
  proto::SavedObject* object;
  const int number = Add(&object);
  object->mutable_asset()->set_asset_file_def_index(index);
  return number;
}

void ObjectGraphBuilder::SetTableContents(int table, int save, int restore,
                                          const std::string& key) {
  constexpr char kTable[] = "table";  // TensorFlow's name of what a table saves
  proto::SaveableObject& saveable =
      (*saved_.mutable_nodes(table)->mutable_saveable_objects())[kTable];
  saveable.set_save_function(save);
  saveable.set_restore_function(restore);
  auto& attribute = *tracked_.mutable_nodes(table)->add_attributes();
  attribute.set_name(kTable);
  attribute.set_checkpoint_key(key);
}

proto::SavedConcreteFunction& ObjectGraphBuilder::Declare(const std::string& name,
                                                          const std::vector<TensorType>& inputs,
                                                          const std::vector<int>& captures,
                                                          CalledBy called_by) {
  proto::SavedConcreteFunction& function = (*saved_.mutable_concrete_functions())[name];
  for (const int capture : captures) function.add_bound_inputs(capture);
  Values& structure =
      *function.mutable_canonicalized_input_signature()->mutable_tuple_value()->mutable_values();
  proto::TupleValue& positional = *structure.Add()->mutable_tuple_value();
  proto::DictValue& keywords = *structure.Add()->mutable_dict_value();
  if (called_by == CalledBy::kPosition) {
    AddSpecs(inputs, positional.mutable_values());
  } else {
    SetSpecs(inputs, &keywords);
  }
  return function;
}

void ObjectGraphBuilder::AddConcreteFunction(const std::string& name,
                                             const std::vector<TensorType>& inputs,
                                             const std::vector<TensorType>& results,
                                             const std::vector<int>& captures, CalledBy called_by) {
  proto::SavedConcreteFunction& function = Declare(name, inputs, captures, called_by);
  // A function without named results is one of a resource, which has a single one.
  if (results.size() == 1 && results[0].name.empty()) {
    SetSpec(results[0], function.mutable_output_signature());
  } else {
    SetSpecs(results, function.mutable_output_signature()->mutable_dict_value());
  }
}

void ObjectGraphBuilder::AddSaveFunction(const std::string& name,
                                         const std::vector<TensorType>& inputs,
                                         const std::vector<TensorType>& tensors,
                                         const std::vector<int>& captures) {
  proto::ListValue& list = *Declare(name, inputs, captures, CalledBy::kPosition)
                                .mutable_output_signature()
                                ->mutable_list_value();
  for (const TensorType& tensor : tensors) {
    auto& fields = *list.add_values()->mutable_dict_value()->mutable_fields();
    SetSpec({"", DT_STRING, Shape()}, &fields["name"]);
    SetSpec({"", DT_STRING, Shape()}, &fields["slice_spec"]);
    SetSpec(tensor, &fields["tensor"]);
  }
}

int ObjectGraphBuilder::AddFunction(const std::string& name,
                                    const std::vector<TensorType>& inputs) {
  proto::SavedObject* object;
  const int number = Add(&object);
  object->mutable_function()->add_concrete_functions(name);
  SetFunctionSpec(inputs, object->mutable_function()->mutable_function_spec());
  return number;
}

int ObjectGraphBuilder::AddBareFunction(const std::string& name,
                                        const std::vector<TensorType>& inputs, CalledBy called_by) {
  proto::SavedObject* object;
  const int number = Add(&object);
  proto::SavedBareConcreteFunction& function = *object->mutable_bare_concrete_function();
  function.set_concrete_function_name(name);
  for (const TensorType& input : inputs) function.add_argument_keywords(input.name);
  if (called_by == CalledBy::kPosition)
    function.set_allowed_positional_arguments(static_cast<int64_t>(inputs.size()));
  return number;
}

}  // namespace weir
