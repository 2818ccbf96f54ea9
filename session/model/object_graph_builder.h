#ifndef WEIR_SESSION_MODEL_OBJECT_GRAPH_BUILDER_H_
#define WEIR_SESSION_MODEL_OBJECT_GRAPH_BUILDER_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/tensor/dtype.h"
#include "weir/core/tensor/shape.h"

namespace weir::proto {
class SavedConcreteFunction;
class SavedObject;
class SavedObjectGraph;
class TrackableObjectGraph;
}  // namespace weir::proto

// The tree of objects that tf.saved_model.load of TensorFlow 2 builds from a SavedModel, and that
// it finds again in the checkpoint.
namespace weir {

// The type of an argument or a result of a function.
struct TensorType {
  std::string name;
  DataType dtype = DT_INVALID;
  Shape shape = Shape::UnknownRank();
};

// Builds the two messages of a tree, which list the same objects with the same children. Objects
// are numbered from 0, the root, in the order in which they are added.
class ObjectGraphBuilder {
 public:
  // The messages of the model and of its checkpoint, which are empty and outlive the builder. Adds
  // the root.
  ObjectGraphBuilder(proto::SavedObjectGraph* saved, proto::TrackableObjectGraph* tracked);

  // The attribute of an object that holds another one.
  void SetChild(int object, const std::string& name, int child);
  // Returns the attribute of that name; -1: there is none.
  int Child(int object, const std::string& name) const;

  // Each adds an object. "_generic_user_object" has attributes, "signature_map" holds signatures,
  // and "trackable_list_wrapper" is a list, whose elements are its attributes "0", "1", ...
  int AddUserObject(const std::string& identifier);
  // A variable, whose value the checkpoint has under `key`.
  int AddVariable(const TensorType& type, bool trainable, const std::string& key);
  // A resource that is no variable, such as a table: its handle is what the function returns that
  // is its attribute `_create_resource`, and `_initialize` is called when the model is loaded.
  int AddResource();
  // Declares that the checkpoint has the contents of a table, a resource, under `key` and suffixes.
  // `save` and `restore`: the objects of the functions that AddSaveFunction and AddConcreteFunction
  // declare.
  void SetTableContents(int table, int save, int restore, const std::string& key);
  // The asset at this position of the model's list.
  int AddAsset(int index);

  // Declares a function of the library: its inputs, its results by name, and the objects that its
  // last arguments are. A signature is called by keywords, another function by position.
  enum class CalledBy { kPosition, kKeyword };
  void AddConcreteFunction(const std::string& name, const std::vector<TensorType>& inputs,
                           const std::vector<TensorType>& results, const std::vector<int>& captures,
                           CalledBy called_by);
  // Declares a function that takes a key, a string, and returns for each tensor that is saved under
  // it: the tensor's own key, its slice, and the tensor.
  void AddSaveFunction(const std::string& name, const std::vector<TensorType>& inputs,
                       const std::vector<TensorType>& tensors, const std::vector<int>& captures);
  // Add the object of such a function: one that a program calls as a method, and one that the
  // loader calls, such as a signature.
  int AddFunction(const std::string& name, const std::vector<TensorType>& inputs);
  int AddBareFunction(const std::string& name, const std::vector<TensorType>& inputs,
                      CalledBy called_by);

 private:
  // Adds an object, and returns its number.
  int Add(proto::SavedObject** object);
  // Declares a function, all but its results.
  proto::SavedConcreteFunction& Declare(const std::string& name,
                                        const std::vector<TensorType>& inputs,
                                        const std::vector<int>& captures, CalledBy called_by);

  proto::SavedObjectGraph& saved_;
  proto::TrackableObjectGraph& tracked_;
  std::map<std::pair<int, std::string>, int> children_;
};

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_OBJECT_GRAPH_BUILDER_H_
