#include "weir/session/train/scaffold.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/data/summary.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/collections.h"

namespace weir {

namespace {

// TensorFlow groups the initializers and reports of resources (tables and the like) with those of
// variables. Weir has no such resources to list, and creates the same nodes without inputs.
constexpr char kInit[] = "init";

Operation DefaultInit(Graph& graph) {
  std::vector<Operation> ops = {GlobalVariablesInitializer(graph), NoOp(graph, kInit)};
  for (const Operation& op : graph.collection_as<Operation>("saved_model_initializers"))
    ops.push_back(op);
  return Group(graph, ops);
}

Operation DefaultLocalInit(Graph& graph) {
  const Operation variables = LocalVariablesInitializer(graph);
  const std::vector<Operation> tables =
      graph.collection_as<Operation>(collections::kTableInitializers);
  const Operation all_tables =
      tables.empty() ? NoOp(graph, "init_all_tables") : Group(graph, tables, "init_all_tables");
  return Group(graph, {variables, all_tables, NoOp(graph, kInit)});
}

Output DefaultReady(Graph& graph, const std::optional<Variables>& variables) {
  const Output missing = ReportUninitializedVariables(graph, variables);
  Output resources;
  {
    const NameScope scope(graph, "report_uninitialized_resources");
    const DeviceScope cpu(graph, "/CPU:0");
    resources = Const(graph, Tensor(DT_STRING, Shape({0})));
  }
  return Concat({missing, resources}, 0);
}

// Returns the only item of a collection, as a tensor or an op, whichever it was stored as; calls
// `make` if there is none.
template <class T, class Make>
absl::Status TakeFromCollection(Graph& graph, const char* key, T* member, const Make& make) {
  if (member->valid()) return absl::OkStatus();
  const std::vector<CollectionItem> items = graph.collection(key);
  if (items.size() > 1) {
    return FailedPrecondition("More than one item in the collection \"", key,
                              "\". Please indicate which one to use by passing it to the Scaffold");
  }
  if (items.empty()) {
    *member = make();
    if (member->valid()) graph.AddToCollection(key, *member);
    return graph.status();
  }
  const auto* output = std::get_if<Output>(&items[0]);
  const auto* op = std::get_if<Operation>(&items[0]);
  if constexpr (std::is_same_v<T, Operation>) {
    if (output != nullptr) *member = Operation(*output);
    if (op != nullptr) *member = *op;
  } else {
    if (output != nullptr) *member = *output;
    if (op != nullptr && op->node->num_outputs() > 0) *member = Output(op->node);
  }
  if (member->valid()) return absl::OkStatus();
  return FailedPrecondition("The item of the collection \"", key,
                            "\" is not a usable op or tensor");
}

absl::Status TakeSaverFromCollection(Graph& graph, std::shared_ptr<Saver>* member) {
  if (*member != nullptr) return absl::OkStatus();
  const std::vector<CollectionItem> items = graph.collection(collections::kSavers);
  if (items.size() > 1) {
    return FailedPrecondition("More than one item in collection ", collections::kSavers,
                              ". Please indicate which one to use by passing it to the Scaffold");
  }
  if (!items.empty()) {
    const auto* object = std::get_if<std::shared_ptr<CollectionObject>>(&items[0]);
    const auto* saver = object == nullptr ? nullptr : dynamic_cast<SaverItem*>(object->get());
    if (saver == nullptr) {
      return FailedPrecondition("The item of the collection \"", collections::kSavers,
                                "\" is not a saver");
    }
    *member = std::make_shared<Saver>(Saver::FromDef(saver->def));
    return absl::OkStatus();
  }
  if (GlobalVariables(graph).empty()) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(Saver saver, Saver::Create(graph, {.sharded = true}));
  graph.AddToCollection(collections::kSavers, std::shared_ptr<CollectionObject>(
                                                  std::make_shared<SaverItem>(saver.def())));
  *member = std::make_shared<Saver>(std::move(saver));
  return graph.status();
}

}  // namespace

absl::Status Scaffold::Complete(Graph& graph) {
  namespace keys = collections;
  WEIR_RETURN_IF_ERROR(graph.status());
  WEIR_RETURN_IF_ERROR(
      TakeFromCollection(graph, keys::kInitOp, &init_op, [&] { return DefaultInit(graph); }));
  WEIR_RETURN_IF_ERROR(TakeFromCollection(graph, keys::kReadyOp, &ready_op,
                                          [&] { return DefaultReady(graph, {}); }));
  WEIR_RETURN_IF_ERROR(
      TakeFromCollection(graph, keys::kReadyForLocalInitOp, &ready_for_local_init_op,
                         [&] { return DefaultReady(graph, GlobalVariables(graph)); }));
  WEIR_RETURN_IF_ERROR(TakeFromCollection(graph, keys::kLocalInitOp, &local_init_op,
                                          [&] { return DefaultLocalInit(graph); }));
  WEIR_RETURN_IF_ERROR(TakeFromCollection(graph, keys::kSummaryOp, &summary_op,
                                          [&] { return summary::MergeAll(graph); }));
  WEIR_RETURN_IF_ERROR(TakeSaverFromCollection(graph, &saver));
  graph.Finalize();
  return absl::OkStatus();
}

}  // namespace weir
