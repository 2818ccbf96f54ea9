#include "weir/rpc/cluster/reachable_functions.h"

#include <set>
#include <string>
#include <vector>

#include "weir/proto/graph.pb.h"

namespace weir::rpc {

namespace {

class Finder {
 public:
  explicit Finder(const FunctionLibrary& library) : library_(library) {}

  std::set<std::string> Run(const proto::GraphDef& def) {
    for (const proto::NodeDef& node : def.node()) Add(node);
    while (!queue_.empty()) {
      const std::string name = std::move(queue_.back());
      queue_.pop_back();
      for (const proto::NodeDef& node : library_.FindDef(name)->node_def()) Add(node);
      if (const std::string gradient = library_.GradientOf(name); !gradient.empty()) Add(gradient);
    }
    return std::move(found_);
  }

 private:
  void Add(const std::string& name) {
    if (library_.FindDef(name) != nullptr && found_.insert(name).second) queue_.push_back(name);
  }
  // Functions may be arguments of functions.
  void Add(const proto::NameAttrList& function) {
    Add(function.name());
    for (const auto& [name, value] : function.attr()) Add(value);
  }
  void Add(const proto::AttrValue& value) {
    if (value.has_func()) Add(value.func());
    for (const proto::NameAttrList& function : value.list().func()) Add(function);
  }
  void Add(const proto::NodeDef& node) {
    Add(node.op());
    for (const auto& [name, value] : node.attr()) Add(value);
  }

  const FunctionLibrary& library_;
  std::set<std::string> found_;
  std::vector<std::string> queue_;
};

}  // namespace

void AddReachableFunctions(const FunctionLibrary& library, proto::GraphDef* def) {
  for (const std::string& name : Finder(library).Run(*def)) {
    *def->mutable_library()->add_function() = *library.FindDef(name);
    const std::string gradient = library.GradientOf(name);
    if (gradient.empty()) continue;
    proto::GradientDef* const entry = def->mutable_library()->add_gradient();
    entry->set_function_name(name);
    entry->set_gradient_func(gradient);
  }
}

}  // namespace weir::rpc
