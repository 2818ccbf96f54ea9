#include <algorithm>

#include "weir/c_api.h"
#include "weir/capi/extensions/options.h"
#include "weir/capi/extensions/variable_handles.h"
#include "weir/session/session.h"

// Collections of graphs.

namespace weir::capi {

namespace {

std::string NameOf(const CollectionItem& item) {
  struct Visitor {
    std::string operator()(int64_t number) const { return absl::StrCat(number); }
    std::string operator()(float number) const { return absl::StrCat(number); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const Output& tensor) const { return tensor.name(); }
    std::string operator()(const Operation& operation) const { return operation.name(); }
    std::string operator()(const std::shared_ptr<CollectionObject>& object) const {
      return object == nullptr ? "" : object->name();
    }
  };
  return std::visit(Visitor(), static_cast<const CollectionItem::variant&>(item));
}

TF_Output ItemOf(const CollectionItem& item) {
  if (const auto* tensor = std::get_if<Output>(&item)) return HandleOf(*tensor);
  if (const auto* operation = std::get_if<Operation>(&item))
    return {operation->valid() ? OperationOf(operation->node) : nullptr, -1};
  const auto* object = std::get_if<std::shared_ptr<CollectionObject>>(&item);
  if (object == nullptr) return {nullptr, -1};
  const auto info = std::dynamic_pointer_cast<VariableInfo>(*object);
  return info == nullptr ? TF_Output{nullptr, -1} : HandleOf(Fetch(Variable(info)));
}

// Returns the items of a collection.
std::vector<CollectionItem> ItemsOf(TF_Graph* graph, const char* key) {
  const MutexLock lock(graph->mutex);
  return graph->graph->collection(key);
}

}  // namespace

}  // namespace weir::capi

using weir::CollectionItem;
using weir::MutexLock;
using weir::capi::HaveAll;
using weir::capi::NodeOf;
using weir::capi::SetStatus;

void weir_graph_collections(TF_Graph* graph, TF_Buffer* keys, TF_Status* status) {
  if (!HaveAll("weir_graph_collections", {graph, keys}, status)) return;
  const MutexLock lock(graph->mutex);
  weir::capi::SetList(graph->graph->CollectionKeys(), keys);
  SetStatus(status, absl::OkStatus());
}

void weir_collection_names(TF_Graph* graph, const char* key, TF_Buffer* names, TF_Status* status) {
  if (!HaveAll("weir_collection_names", {graph, key, names}, status)) return;
  std::vector<std::string> list;
  for (const CollectionItem& item : weir::capi::ItemsOf(graph, key))
    list.push_back(weir::capi::NameOf(item));
  weir::capi::SetList(list, names);
  SetStatus(status, absl::OkStatus());
}

int weir_collection_items(TF_Graph* graph, const char* key, TF_Output* items, int max_items,
                          TF_Status* status) {
  if (!HaveAll("weir_collection_items", {graph, key}, status)) return -1;
  const auto room = weir::capi::ArrayOf(items, max_items, "items");
  SetStatus(status, room.status());
  if (!room.ok()) return -1;
  int count = 0;
  SetStatus(status, graph->Change([&](weir::Graph& changed) {  // a value may need a new read
    for (const CollectionItem& item : changed.collection(key)) {
      if (count < max_items) items[count] = weir::capi::ItemOf(item);
      ++count;
    }
    return absl::OkStatus();
  }));
  return count;
}

void weir_collection_add_tensor(TF_Graph* graph, const char* key, const TF_Output* tensor,
                                TF_Status* status) {
  if (!HaveAll("weir_collection_add_tensor", {graph, key, tensor}, status)) return;
  const MutexLock lock(graph->mutex);
  const auto output = weir::capi::OutputOf(*tensor, *graph->graph);
  if (output.ok()) graph->graph->AddToCollection(key, *output);
  SetStatus(status, output.status());
}

void weir_collection_add_operation(TF_Graph* graph, const char* key, TF_Operation* oper,
                                   TF_Status* status) {
  if (!HaveAll("weir_collection_add_operation", {graph, key, oper}, status)) return;
  const MutexLock lock(graph->mutex);
  const bool is_own = &NodeOf(oper)->graph() == graph->graph.get();
  if (is_own) graph->graph->AddToCollection(key, weir::Operation(NodeOf(oper)));
  SetStatus(status, is_own ? absl::OkStatus()
                           : weir::InvalidArgument(NodeOf(oper)->Label(), " is of another graph"));
}

void weir_collection_add_variable(TF_Graph* graph, const char* key, TF_Operation* variable,
                                  TF_Status* status) {
  if (!HaveAll("weir_collection_add_variable", {graph, key, variable}, status)) return;
  const MutexLock lock(graph->mutex);
  const auto added = weir::capi::VariableOf(variable, *graph->graph);
  if (added.ok()) graph->graph->AddToCollection(key, *added);
  SetStatus(status, added.status());
}

void weir_collection_clear(TF_Graph* graph, const char* key, TF_Status* status) {
  if (!HaveAll("weir_collection_clear", {graph, key}, status)) return;
  const MutexLock lock(graph->mutex);
  graph->graph->ClearCollection(key);
  SetStatus(status, absl::OkStatus());
}
