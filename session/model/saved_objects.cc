#include "weir/session/model/saved_objects.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/session/model/object_names.h"

// A SavedModel of TensorFlow 2 describes its state twice. The graph, which sessions run, has
// handles; the tree of objects has numbers, and the traced functions list what they have captured
// by these numbers. Nothing in the file relates the two, but three things follow from how it is
// written:
// - a constant's object names its node;
// - where the graph calls a function, the last inputs of the call are what the function has
//   captured, in the order of the function's list. Initializers of tables and signatures are called
//   in the graph;
// - the function that restores the checkpoint takes the handles of all variables. In its body, each
//   is assigned the tensor of one key, and a key is the path of an object.
namespace weir {
namespace {

// Finds the objects that the keys of a checkpoint name by their paths from object 0.
class ObjectPaths {
 public:
  explicit ObjectPaths(const proto::SavedObjectGraph& objects) {
    for (int i = 0; i < objects.nodes_size(); ++i) {
      for (const auto& child : objects.nodes(i).children())
        children_.try_emplace({i, EscapedObjectName(child.local_name())}, child.node_id());
    }
  }
  // Returns the object of "encoder/w/.ATTRIBUTES/VARIABLE_VALUE"; -1 for a key without one, such as
  // that of an optimizer's slot.
  int Find(absl::string_view key) const {
    int object = 0;
    for (const absl::string_view name : absl::StrSplit(key, '/')) {
      if (name == kObjectAttributes) return object;
      const auto child = children_.find({object, std::string(name)});
      if (child == children_.end()) return -1;
      object = child->second;
    }
    return -1;
  }

 private:
  absl::flat_hash_map<std::pair<int, std::string>, int> children_;
};

// Returns "x" for "x:0", and for "x:output:0" in the body of a function.
absl::string_view NodeOf(absl::string_view tensor) { return tensor.substr(0, tensor.find(':')); }

const std::string& CalledFunction(const proto::NodeDef& node) {
  static const std::string* const none = new std::string;
  const auto f = node.attr().find("f");
  return f == node.attr().end() ? *none : f->second.func().name();
}

// What the function that restores the model assigns: from each of its arguments, by number, the key
// of a tensor in the checkpoint.
class RestoredKeys {
 public:
  explicit RestoredKeys(const proto::FunctionDef& function) {
    for (int i = 0; i < function.signature().input_arg_size(); ++i)
      arguments_[function.signature().input_arg(i).name()] = i;
    for (const proto::NodeDef& node : function.node_def()) nodes_[node.name()] = &node;
    for (const proto::NodeDef& node : function.node_def()) {
      const auto argument =
          node.input_size() > 1 ? arguments_.find(node.input(0)) : arguments_.end();
      if (argument == arguments_.end()) continue;
      const absl::string_view key = KeyOf(node.input(1));
      if (!key.empty()) keys_[argument->second] = key;
    }
  }
  // Views of this object's values.
  const std::map<int, absl::string_view>& keys() const { return keys_; }

 private:
  const proto::NodeDef* Find(absl::string_view tensor) const {
    const auto found = nodes_.find(NodeOf(tensor));
    return found == nodes_.end() ? nullptr : found->second;
  }

  // Returns the key that is read for a tensor of the body. "": it is not read, or not directly.
  absl::string_view KeyOf(absl::string_view tensor) {
    const proto::NodeDef* node = Find(tensor);
    if (node != nullptr && node->op() == "Identity" && node->input_size() > 0) {
      tensor = node->input(0);
      node = Find(tensor);
    }
    if (node == nullptr || node->op() != "RestoreV2" || node->input_size() < 2) return "";
    const proto::NodeDef* const names = Find(node->input(1));
    if (names == nullptr) return "";
    const Tensor& keys = ValueOf(*names);
    int64_t output = 0;  // "RestoreV2:tensors:3"
    if (!keys.initialized() || keys.dtype() != DT_STRING ||
        !absl::SimpleAtoi(tensor.substr(tensor.rfind(':') + 1), &output) || output < 0 ||
        output >= keys.num_elements())
      return "";
    return keys.data<std::string>()[output];
  }

  // Returns the value of a constant, which is parsed once; an uninitialized tensor for another
  // node.
  const Tensor& ValueOf(const proto::NodeDef& node) {
    const auto [found, added] = values_.try_emplace(&node);
    const auto value = node.attr().find("value");
    if (!added || value == node.attr().end()) return found->second;
    absl::StatusOr<Tensor> tensor = TensorFromProto(value->second.tensor());
    if (tensor.ok()) found->second = *std::move(tensor);
    return found->second;
  }

  std::map<std::string, int, std::less<>> arguments_;
  std::map<std::string, const proto::NodeDef*, std::less<>> nodes_;
  std::map<const proto::NodeDef*, Tensor> values_;
  std::map<int, absl::string_view> keys_;
};

class TensorFinder {
 public:
  explicit TensorFinder(const proto::MetaGraphDef& def)
      : def_(def), objects_(def.object_graph_def()), tensors_(objects_.nodes_size()) {
    for (const proto::NodeDef& node : def.graph_def().node()) nodes_[node.name()] = &node;
  }

  std::vector<std::string> Find() {
    for (int i = 0; i < objects_.nodes_size(); ++i) {
      const proto::SavedObject& object = objects_.nodes(i);
      if (object.has_constant()) tensors_[i] = TensorName(object.constant().operation());
    }
    for (const proto::NodeDef& node : def_.graph_def().node()) AddCall(node);
    AddRestored();
    return std::move(tensors_);
  }

 private:
  static std::string TensorName(const std::string& input) {
    return absl::StrContains(input, ':') ? input : absl::StrCat(input, ":0");
  }

  static std::vector<std::string> DataInputs(const proto::NodeDef& node) {
    std::vector<std::string> inputs;
    for (const std::string& input : node.input()) {
      if (!absl::StartsWith(input, "^")) inputs.push_back(input);
    }
    return inputs;
  }

  void Add(int object, const std::string& input) {
    if (object < 0 || object >= objects_.nodes_size() || !tensors_[object].empty()) return;
    tensors_[object] = TensorName(input);
    if (!objects_.nodes(object).has_asset()) return;
    // The path is read from a variable, after the assignment of a value that is fed.
    const auto read = nodes_.find(NodeOf(input));
    if (read != nodes_.end() && read->second->op() == "ReadVariableOp" &&
        read->second->input_size() > 0)
      tensors_[object] = TensorName(read->second->input(0));
  }

  void AddCall(const proto::NodeDef& node) {
    const auto function = objects_.concrete_functions().find(CalledFunction(node));
    if (function == objects_.concrete_functions().end()) return;
    const auto& bound = function->second.bound_inputs();
    const std::vector<std::string> inputs = DataInputs(node);
    const int first = static_cast<int>(inputs.size()) - bound.size();
    for (int k = 0; first >= 0 && k < bound.size(); ++k) Add(bound[k], inputs[first + k]);
  }

  void AddRestored() {
    const auto call = nodes_.find(def_.saver_def().restore_op_name());
    if (call == nodes_.end()) return;
    const std::string& name = CalledFunction(*call->second);
    const auto& functions = def_.graph_def().library().function();
    const auto function = std::find_if(functions.begin(), functions.end(),
                                       [&](const auto& f) { return f.signature().name() == name; });
    if (function == functions.end()) return;
    const std::vector<std::string> inputs = DataInputs(*call->second);
    const ObjectPaths paths(objects_);
    const RestoredKeys restored(*function);
    for (const auto& [argument, key] : restored.keys()) {
      if (argument < static_cast<int>(inputs.size())) Add(paths.Find(key), inputs[argument]);
    }
  }

  const proto::MetaGraphDef& def_;
  const proto::SavedObjectGraph& objects_;
  std::map<std::string, const proto::NodeDef*, std::less<>> nodes_;
  std::vector<std::string> tensors_;
};

}  // namespace

std::vector<std::string> ObjectTensors(const proto::MetaGraphDef& def) {
  return TensorFinder(def).Find();
}

std::vector<std::string> TrainableObjects(const proto::MetaGraphDef& def,
                                          const std::vector<std::string>& tensors) {
  std::vector<std::string> names;
  for (int i = 0; i < def.object_graph_def().nodes_size(); ++i) {
    const proto::SavedObject& object = def.object_graph_def().nodes(i);
    if (object.variable().trainable() && !tensors[i].empty())
      names.emplace_back(NodeOf(tensors[i]));
  }
  return names;
}

}  // namespace weir
