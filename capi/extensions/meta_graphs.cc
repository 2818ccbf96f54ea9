#include "weir/c_api.h"
#include "weir/capi/extensions/options.h"
#include "weir/capi/extensions/saver_object.h"
#include "weir/core/tensor/version.h"
#include "weir/session/model/meta_graph.h"

// The version, and meta graphs.

namespace weir::capi {

namespace {

absl::StatusOr<std::string> Import(Graph& graph, absl::string_view bytes, const char* options) {
  ImportMetaGraphOptions import{.unknown = UnknownParts::kKeepQuietly};
  OptionReader reader(options);
  reader.Read("import_scope", &import.import_scope);
  reader.Read("clear_devices", &import.clear_devices);
  WEIR_RETURN_IF_ERROR(reader.Finish());
  WEIR_ASSIGN_OR_RETURN(const MetaGraph meta, ImportMetaGraph(graph, bytes, import));
  return meta.saver ? meta.saver->ToBytes() : "";
}

absl::StatusOr<std::string> Export(TF_Graph* graph, weir_saver* saver, const char* options) {
  MetaGraphOptions meta;
  OptionReader reader(options);
  reader.Read("tags", &meta.tags);
  reader.Read("clear_devices", &meta.clear_devices);
  reader.Read("export_scope", &meta.export_scope);
  WEIR_RETURN_IF_ERROR(reader.Finish());
  if (saver != nullptr) {
    const MutexLock lock(saver->mutex);
    meta.saver = saver->saver.def();
  }
  const MutexLock lock(graph->mutex);
  std::string bytes = SerializeMetaGraph(*graph->graph, meta);
  if (bytes.empty()) return InvalidArgument("the graph is too large to be serialized (2 GiB)");
  return bytes;
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::SetStatus;

const char* weir_version() { return WEIR_VERSION; }

void weir_graph_set_seed(TF_Graph* graph, int64_t seed) {
  if (!HaveAll("weir_graph_set_seed", {graph})) return;
  const weir::MutexLock lock(graph->mutex);
  graph->graph->set_seed(seed);
}

void weir_graph_import_meta_graph(TF_Graph* graph, const TF_Buffer* meta_graph_def,
                                  const char* options, TF_Buffer* saver_def, TF_Status* status) {
  if (!HaveAll("weir_graph_import_meta_graph", {graph, meta_graph_def}, status)) return;
  SetStatus(status, graph->Change([&](weir::Graph& changed) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(
        const std::string def,
        weir::capi::Import(changed, weir::capi::BytesOf(meta_graph_def), options));
    if (saver_def != nullptr) weir::capi::SetBuffer(def, saver_def);
    return absl::OkStatus();
  }));
}

void weir_graph_export_meta_graph(TF_Graph* graph, weir_saver* saver, const char* options,
                                  TF_Buffer* meta_graph_def, TF_Status* status) {
  if (!HaveAll("weir_graph_export_meta_graph", {graph, meta_graph_def}, status)) return;
  const auto bytes = weir::capi::Export(graph, saver, options);
  SetStatus(status, bytes.status());
  if (bytes.ok()) weir::capi::SetBuffer(*bytes, meta_graph_def);
}
