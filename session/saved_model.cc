#include <algorithm>

#include "absl/strings/str_join.h"
#include "weir/core/file.h"
#include "weir/core/text_proto.h"
#include "weir/proto/saved_model.pb.h"
#include "weir/session/meta_graph.h"
#include "weir/session/saver.h"

namespace weir {
namespace {

constexpr char kInitOp[] = "__saved_model_init_op";

absl::Status ReadSavedModel(const std::string& directory, proto::SavedModel* model) {
  const std::string binary = JoinPath(directory, "saved_model.pb"),
                    text = JoinPath(directory, "saved_model.pbtxt");
  const bool is_text = !Files().Exists(binary) && Files().Exists(text);
  if (!is_text && !Files().Exists(binary)) {
    return NotFound("Could not find SavedModel .pb or .pbtxt at supplied export directory path: ",
                    directory);
  }
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(is_text ? text : binary));
  if (is_text) {
    const absl::Status parsed = ParseTextProto(bytes, text, model);
    return parsed.ok() ? parsed : DataLoss(parsed.message());
  }
  return model->ParseFromString(bytes) ? absl::OkStatus()
                                       : DataLoss(binary, ": not a SavedModel, or damaged");
}

std::vector<std::string> TagsOf(const proto::MetaGraphDef& def) {
  std::vector<std::string> tags(def.meta_info_def().tags().begin(),
                                def.meta_info_def().tags().end());
  std::sort(tags.begin(), tags.end());
  return tags;
}

absl::StatusOr<const proto::MetaGraphDef*> Choose(const proto::SavedModel& model,
                                                  std::vector<std::string> tags,
                                                  const std::string& directory) {
  if (tags.empty() && model.meta_graphs_size() == 1) return &model.meta_graphs(0);
  std::sort(tags.begin(), tags.end());
  std::vector<std::string> available;
  for (const proto::MetaGraphDef& def : model.meta_graphs()) {
    if (TagsOf(def) == tags) return &def;
    available.push_back(absl::StrCat("{ ", absl::StrJoin(TagsOf(def), ", "), " }"));
  }
  return NotFound("Could not find meta graph def matching supplied tags: { ",
                  absl::StrJoin(tags, ", "), " } in ", directory,
                  ", which has: ", absl::StrJoin(available, ", "));
}

// The op that makes tables and the like ready, if the model has one.
Operation InitOp(const LoadedModel& model) {
  const auto signature = model.meta.signatures.find(kInitOp);
  if (signature != model.meta.signatures.end() && !signature->second.outputs.empty()) {
    const absl::StatusOr<Output> output =
        model.graph->FindOutput(signature->second.outputs.begin()->second);
    if (output.ok()) return Operation(output->node);
    return Operation(model.graph->FindNode(signature->second.outputs.begin()->second));
  }
  for (const char* key : {"saved_model_main_op", "legacy_init_op"}) {
    const std::vector<Operation> ops = model.graph->collection_as<Operation>(key);
    if (!ops.empty()) return ops[0];
    const std::vector<Output> outputs = model.graph->collection_as<Output>(key);
    if (!outputs.empty()) return Operation(outputs[0].node);
  }
  return Operation();
}

absl::Status RunInitOp(const std::string& directory, const LoadedModel& model) {
  const Operation init = InitOp(model);
  if (!init) return absl::OkStatus();
  Feeds feeds;
  for (const auto& [tensor, file] : model.meta.assets) {
    WEIR_ASSIGN_OR_RETURN(const Output output, model.graph->FindOutput(tensor));
    feeds.emplace_back(output, Tensor::Scalar(JoinPath(JoinPath(directory, "assets"), file)));
  }
  return model.session->Run(feeds, {}, {init}).status();
}

}  // namespace

absl::StatusOr<LoadedModel> LoadSavedModel(const std::string& directory,
                                           const std::vector<std::string>& tags,
                                           SessionOptions options) {
  proto::SavedModel saved;
  WEIR_RETURN_IF_ERROR(ReadSavedModel(directory, &saved));
  WEIR_ASSIGN_OR_RETURN(const proto::MetaGraphDef* def, Choose(saved, tags, directory));
  LoadedModel model;
  model.graph = std::make_unique<Graph>();
  WEIR_ASSIGN_OR_RETURN(model.meta, ImportMetaGraph(*model.graph, *def));
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(*model.graph, std::move(options)));
  model.session = std::make_unique<Session>(std::move(session));
  const std::string variables = JoinPath(directory, "variables/variables");
  // A model without variables has no such file.
  if (model.meta.saver && CheckpointExists(variables)) {
    WEIR_RETURN_IF_ERROR(RestoreVariables(*model.session, *model.meta.saver, variables));
  }
  WEIR_RETURN_IF_ERROR(RunInitOp(directory, model));
  return model;
}

}  // namespace weir
