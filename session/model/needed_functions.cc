#include "weir/session/model/needed_functions.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "weir/proto/graph.pb.h"

namespace weir {
namespace {

// The names of ops whose gradient is a function of the library.
constexpr char kGradientOpType[] = "_gradient_op_type";

class FunctionFinder {
 public:
  explicit FunctionFinder(const proto::FunctionDefLibrary& library) {
    for (const proto::FunctionDef& function : library.function())
      functions_[function.signature().name()] = &function;
    for (const proto::GradientDef& gradient : library.gradient())
      gradients_[gradient.function_name()] = gradient.gradient_func();
    for (const proto::RegisteredGradient& gradient : library.registered_gradients())
      registered_[gradient.registered_op_type()].push_back(gradient.gradient_func());
  }

  void Need(absl::string_view name) {
    const auto function = functions_.find(name);
    if (function != functions_.end() && needed_.insert(function->first).second)
      queue_.push_back(function->second);
  }

  void Visit(const proto::NodeDef& node) {
    Need(node.op());
    for (const auto& [name, value] : node.attr()) {
      if (value.has_func()) Need(value.func().name());
      for (const proto::NameAttrList& function : value.list().func()) Need(function.name());
      if (name != kGradientOpType) continue;
      if (const auto found = registered_.find(value.s()); found != registered_.end())
        for (const absl::string_view gradient : found->second) Need(gradient);
    }
  }

  // Follows the functions found so far.
  void Finish() {
    while (!queue_.empty()) {
      const proto::FunctionDef* const function = queue_.back();
      queue_.pop_back();
      const auto gradient = gradients_.find(function->signature().name());
      if (gradient != gradients_.end()) Need(gradient->second);
      for (const proto::NodeDef& node : function->node_def()) Visit(node);
    }
  }

  // A copy, which outlives the library.
  absl::flat_hash_set<std::string> needed() const { return {needed_.begin(), needed_.end()}; }

 private:
  absl::flat_hash_map<absl::string_view, const proto::FunctionDef*> functions_;
  absl::flat_hash_map<absl::string_view, absl::string_view> gradients_;
  absl::flat_hash_map<absl::string_view, std::vector<absl::string_view>> registered_;
  absl::flat_hash_set<absl::string_view> needed_;
  std::vector<const proto::FunctionDef*> queue_;
};

template <class List, class Keep>
void KeepIf(List* list, const Keep& keep) {
  List kept;
  for (auto& item : *list) {
    if (keep(item)) *kept.Add() = std::move(item);
  }
  list->Swap(&kept);
}

}  // namespace

void RemoveUnneededFunctions(const std::vector<std::string>& also, proto::GraphDef* def) {
  proto::FunctionDefLibrary old;
  old.Swap(def->mutable_library());
  FunctionFinder finder(old);
  for (const std::string& name : also) finder.Need(name);
  for (const proto::NodeDef& node : def->node()) finder.Visit(node);
  finder.Finish();
  const absl::flat_hash_set<std::string> needed = finder.needed();
  KeepIf(old.mutable_function(),
         [&](const auto& function) { return needed.contains(function.signature().name()); });
  KeepIf(old.mutable_gradient(),
         [&](const auto& gradient) { return needed.contains(gradient.function_name()); });
  KeepIf(old.mutable_registered_gradients(),
         [&](const auto& gradient) { return needed.contains(gradient.gradient_func()); });
  old.Swap(def->mutable_library());
}

}  // namespace weir
