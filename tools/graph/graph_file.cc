#include "weir/tools/graph/graph_file.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_file.h"
#include "weir/onnx/onnx_import.h"
#include "weir/proto/graph.pb.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/saved_model.pb.h"
#include "weir/session/model/saved_model.h"
#include "weir/tools/ckpt/checkpoint_path.h"
#include "weir/tools/lib/command.h"

namespace weir::tools {

namespace {

// Any message may parse as any other message, because unknown fields are kept. A graph has nodes
// with names and ops, or functions.
bool LooksLikeGraph(const proto::GraphDef& def) {
  if (def.node_size() == 0) {
    return def.library().function_size() > 0 || def.has_versions() || def.ByteSizeLong() == 0;
  }
  return std::any_of(def.node().begin(), def.node().end(), [](const proto::NodeDef& node) {
    return !node.op().empty() && !node.name().empty();
  });
}

bool LooksLikeMetaGraph(const proto::MetaGraphDef& meta) {
  return meta.has_graph_def() && LooksLikeGraph(meta.graph_def()) &&
         meta.graph_def().node_size() > 0;
}

// Returns "{ cpu, serve }".
template <class Tags>
std::string TagsText(const Tags& tags) {
  const std::set<std::string> sorted(tags.begin(), tags.end());
  return sorted.empty() ? "{}" : absl::StrCat("{ ", absl::StrJoin(sorted, ", "), " }");
}

bool HasTags(const proto::MetaGraphDef& meta, const std::vector<std::string>& tags) {
  const auto& has = meta.meta_info_def().tags();
  return std::set<std::string>(tags.begin(), tags.end()) ==
         std::set<std::string>(has.begin(), has.end());
}

// Adds the option that selects a meta graph to the error of a SavedModel that has several.
absl::Status WithTagsOption(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return NotFound(status.message(), "; select one with --tags");
}

absl::StatusOr<bool> HoldsOnnx(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, Files().Open(path));
  if (file->size() > std::numeric_limits<int>::max()) return false;
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  return onnx::LooksLikeOnnx(bytes);
}

absl::Status ConvertOnnx(const std::string& path, proto::MetaGraphDef* meta) {
  Graph graph;
  WEIR_ASSIGN_OR_RETURN(const MetaGraph model, onnx::ImportOnnxFile(graph, path));
  ExportMetaGraph(graph, {.signatures = model.signatures}, meta);
  return absl::OkStatus();
}

absl::StatusOr<GraphFileKind> ParseGraphFile(const std::string& path,
                                             const std::vector<std::string>& tags,
                                             proto::MetaGraphDef* meta) {
  const google::protobuf::LogSilencer silencer;  // a wrong guess is not an error
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, Files().Open(path));
  if (file->size() > std::numeric_limits<int>::max()) {  // larger than any message
    WEIR_RETURN_IF_ERROR(ReadGraphFile(path, meta->mutable_graph_def()));
    if (LooksLikeGraph(meta->graph_def())) return GraphFileKind::kGraph;
    return InvalidArgument(path, ": no node has a name and an op");
  }
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadProtoFile(path));
  if (bytes.empty()) return InvalidArgument(path, " is empty");
  absl::Status parsed = ParseProto(bytes, path, meta->mutable_graph_def());
  if (parsed.ok() && meta->graph_def().node_size() > 0 && LooksLikeGraph(meta->graph_def()))
    return GraphFileKind::kGraph;
  proto::SavedModel model;  // by another name, or without its folder
  if (ParseProto(bytes, path, &model).ok() && model.meta_graphs_size() > 0 &&
      LooksLikeMetaGraph(model.meta_graphs(0))) {
    WEIR_RETURN_IF_ERROR(WithTagsOption(ChooseMetaGraph(model, tags, path, meta)));
    return GraphFileKind::kMetaGraph;
  }
  if (parsed.ok() && LooksLikeGraph(meta->graph_def())) return GraphFileKind::kGraph;
  if (parsed.ok()) parsed = InvalidArgument(path, ": no node has a name and an op");
  meta->Clear();
  if (ParseProto(bytes, path, meta).ok() && LooksLikeMetaGraph(*meta))
    return GraphFileKind::kMetaGraph;
  return InvalidArgument(parsed.message(), "; it is neither a GraphDef nor a MetaGraphDef");
}

// What a folder without a SavedModel has that could be meant.
std::string Suggestion(const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> names = Files().List(folder);
  if (!names.ok()) return "";
  for (const char* const ending : {".meta", ".pb", ".pbtxt"}) {
    for (const std::string& name : *names) {
      if (absl::EndsWith(name, ending)) return "; did you mean " + JoinPath(folder, name) + "?";
    }
  }
  return "";
}

absl::Status ParseSavedModel(const std::string& path, const std::vector<std::string>& tags,
                             proto::MetaGraphDef* meta) {
  if (!HoldsSavedModel(path)) {
    return NotFound(path, " is a folder without saved_model.pb, so it is no SavedModel",
                    Suggestion(path));
  }
  return WithTagsOption(ReadSavedModel(path, tags, meta));
}

}  // namespace

absl::Status CheckTags(const std::string& path, const std::vector<std::string>& tags,
                       const proto::MetaGraphDef& meta) {
  if (tags.empty() || HasTags(meta, tags)) return absl::OkStatus();
  return NotFound(path, " has the tags ", TagsText(meta.meta_info_def().tags()),
                  ", not those of --tags: ", TagsText(tags));
}

std::string FindGraph(const std::string& path) {
  const std::string model = FindSavedModel(path);
  if (HoldsSavedModel(model)) return model;
  const absl::StatusOr<std::string> prefix = CheckpointPrefix(path);
  if (!prefix.ok() || *prefix + ".meta" == path) return path;
  if (Files().Exists(*prefix + ".meta")) {
    // A file may be a graph, or a V1 checkpoint, beside its own .meta.
    const bool is_file = *prefix == path && Files().Exists(path) && !Files().IsDirectory(path);
    return is_file && !CheckpointReader::Open(path).ok() ? path : *prefix + ".meta";
  }
  const std::string parent = DirectoryOf(DirectoryOf(*prefix));
  return BaseName(*prefix) == "variables" && HoldsSavedModel(parent) ? parent : path;
}

absl::StatusOr<GraphFileKind> ReadAnyGraph(const std::string& path,
                                           const std::vector<std::string>& tags,
                                           proto::MetaGraphDef* meta) {
  const std::string found = FindGraph(path);
  if (!Files().IsDirectory(found)) {
    WEIR_ASSIGN_OR_RETURN(const bool is_onnx, HoldsOnnx(found));
    if (is_onnx) WEIR_RETURN_IF_ERROR(ConvertOnnx(found, meta));
    if (is_onnx) return GraphFileKind::kOnnx;
    WEIR_ASSIGN_OR_RETURN(const GraphFileKind kind, ParseGraphFile(found, tags, meta));
    WEIR_RETURN_IF_ERROR(CheckTags(found, tags, *meta));
    return kind;
  }
  WEIR_RETURN_IF_ERROR(ParseSavedModel(found, tags, meta));
  return GraphFileKind::kSavedModel;
}

absl::StatusOr<GraphFileKind> GraphFileKindOf(const std::string& path,
                                              const std::vector<std::string>& tags) {
  const std::string found = FindGraph(path);
  if (Files().IsDirectory(found)) return GraphFileKind::kSavedModel;
  WEIR_ASSIGN_OR_RETURN(const bool is_onnx, HoldsOnnx(found));
  if (is_onnx) return GraphFileKind::kOnnx;
  proto::MetaGraphDef meta;
  return ParseGraphFile(found, tags, &meta);
}

void AddGraphArgument(Command& command, std::string* file, bool required) {
  Option graph =
      command.Argument("GRAPH", file,
                       "a GraphDef or MetaGraphDef (binary, text or gzip), a SavedModel's "
                       "or its versions' folder, a checkpoint with its .meta, or an ONNX model");
  if (required) graph.Required();
}

}  // namespace weir::tools
