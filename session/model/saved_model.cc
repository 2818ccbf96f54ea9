#include "weir/session/model/saved_model.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weir/core/io/file.h"
#include "weir/core/io/proto_file.h"
#include "weir/core/io/text_proto.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/collections.h"
#include "weir/proto/saved_model.pb.h"
#include "weir/session/model/ancestors.h"
#include "weir/session/model/constant_node.h"
#include "weir/session/model/object_export.h"
#include "weir/session/model/saved_objects.h"
#include "weir/session/model/saver.h"
#include "weir/session/plan/variable_use.h"

namespace weir {
namespace {

constexpr char kBinaryFile[] = "saved_model.pb";
constexpr char kTextFile[] = "saved_model.pbtxt";
constexpr char kVariables[] = "variables/variables";
constexpr char kAssets[] = "assets";
constexpr char kMainOp[] = "saved_model_main_op";

absl::Status ReadFileOf(const std::string& directory, proto::SavedModel* model) {
  if (!HoldsSavedModel(directory)) {
    return NotFound("Could not find SavedModel .pb or .pbtxt at supplied export directory path: ",
                    directory);
  }
  const std::string binary = JoinPath(directory, kBinaryFile);
  const std::string path = Files().Exists(binary) ? binary : JoinPath(directory, kTextFile);
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadProtoFile(path));
  const absl::Status parsed = ParseProto(bytes, path, model);
  return parsed.ok() ? parsed : DataLoss(parsed.message());
}

std::vector<std::string> TagsOf(const proto::MetaGraphDef& def) {
  std::vector<std::string> tags(def.meta_info_def().tags().begin(),
                                def.meta_info_def().tags().end());
  std::sort(tags.begin(), tags.end());
  return tags;
}

// The op that initializes tables and similar resources, if a model with these signatures has one.
Operation InitOp(const Graph& graph, const std::map<std::string, Signature>& signatures) {
  const auto signature = signatures.find(kInitSignature);
  if (signature != signatures.end() && !signature->second.outputs.empty()) {
    const absl::StatusOr<Output> output =
        graph.FindOutput(signature->second.outputs.begin()->second);
    if (output.ok()) return Operation(output->node);
    return Operation(graph.FindNode(signature->second.outputs.begin()->second));
  }
  for (const char* key : {kMainOp, "legacy_init_op"}) {
    const std::vector<Operation> ops = graph.collection_as<Operation>(key);
    if (!ops.empty()) return ops[0];
    const std::vector<Output> outputs = graph.collection_as<Output>(key);
    if (!outputs.empty()) return Operation(outputs[0].node);
  }
  return Operation();
}

// Returns whether the name is that of a file in a directory or below it, and does not lead out.
bool IsNameInside(const std::string& name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  return !name.empty() && name.find('\0') == std::string::npos &&
         absl::c_none_of(parts,
                         [](absl::string_view part) { return part.empty() || part == ".."; });
}

absl::Status RunInitOp(const std::string& directory, const LoadedModel& model) {
  const Operation init = InitOp(*model.graph, model.meta.signatures);
  if (!init.valid()) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const Feeds feeds, AssetFeeds(directory, *model.graph, model.meta));
  return model.session->Run(feeds, {}, {init}).status();
}

// ---- writing

// Returns a file name in assets/ that no other asset has: "vocabulary.txt", "vocabulary.txt_1".
std::string AssetName(absl::string_view path, const std::map<std::string, std::string>& taken) {
  const std::string base(BaseName(path));
  std::string name = base;
  const auto is_taken = [&] {
    return absl::c_any_of(taken, [&](const auto& asset) { return asset.second == name; });
  };
  for (int i = 1; is_taken(); ++i) name = absl::StrCat(base, "_", i);
  return name;
}

absl::Status CopyFile(const std::string& from, const std::string& to, Durability durability) {
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(from));
  return WriteFileAtomically(to, bytes, durability);
}

// Maps tensors to files: those of the options, and those that constants of the collection name.
absl::StatusOr<std::map<std::string, std::string>> AssetsOf(const Graph& graph,
                                                            const SavedModelOptions& options) {
  std::map<std::string, std::string> assets = options.assets;
  for (const Output& output : graph.collection_as<Output>(collections::kAssetFilepaths)) {
    if (assets.count(output.name()) > 0) continue;
    const AttrValue* value =
        output.node->op_name() == "Const" ? output.node->FindAttr("value") : nullptr;
    const Tensor* path = value != nullptr ? value->get_if<Tensor>() : nullptr;
    if (path == nullptr || path->dtype() != DT_STRING || path->num_elements() != 1)
      return InvalidArgument(output.name(), ", in collection '", collections::kAssetFilepaths,
                             "', is not a constant string with one file path");
    assets[output.name()] = *path->data<std::string>();
  }
  return assets;
}

// Copies the files; returns a map from tensor to name in assets/.
absl::StatusOr<std::map<std::string, std::string>> CopyAssets(
    const std::map<std::string, std::string>& files, const std::string& directory,
    Durability durability) {
  std::map<std::string, std::string> assets;
  if (!files.empty()) WEIR_RETURN_IF_ERROR(Files().MakeDirectory(directory));
  for (const auto& [tensor, file] : files) {
    const std::string name = AssetName(file, assets);
    WEIR_RETURN_IF_ERROR(CopyFile(file, JoinPath(directory, name), durability));
    assets[tensor] = name;
  }
  return assets;
}

// Checks that the outputs of the signatures depend only on variables that get a value when the
// model is loaded: from the checkpoint, or from the init op.
absl::Status CheckAllAreSaved(const Graph& graph,
                              const std::map<std::string, Signature>& signatures,
                              const std::optional<SaverDef>& saver, const Operation& init_op) {
  std::vector<const Node*> results, given;
  for (const auto& [key, signature] : signatures) {
    for (const auto& [result, tensor] : signature.outputs) {
      const absl::StatusOr<Output> output = graph.FindOutput(tensor);
      if (output.ok()) results.push_back(output->node);
    }
  }
  const Node* const restore = saver ? graph.FindNode(saver->restore_op_name) : nullptr;
  if (restore != nullptr) given.push_back(restore);
  if (init_op.valid()) given.push_back(init_op.node);
  const absl::flat_hash_set<const Node*> have = Ancestors(given);
  for (const Node* variable : Ancestors(results)) {
    if (!IsVariable(*variable) || have.contains(variable)) continue;
    return FailedPrecondition(
        "the signatures depend on variable ", variable->Label(),
        ", which the saver does not save and the init op does not initialize");
  }
  return absl::OkStatus();
}

// Returns the nodes that save the variables: those of the options, or new ones if there is anything
// to save.
absl::StatusOr<std::optional<SaverDef>> SaverFor(Session& session, Graph& graph,
                                                 const SavedModelOptions& options) {
  if (options.saver) {
    if (options.saver->version >= 2) return options.saver;
    return InvalidArgument("a SavedModel requires checkpoint format V2, but the saver writes V1");
  }
  std::optional<SaverDef> made;
  const absl::Status added = session.Extend([&]() -> absl::Status {
    if (!GlobalVariables(graph).empty()) {
      WEIR_ASSIGN_OR_RETURN(const Saver saver,
                            Saver::Create(graph, {.durability = options.durability}));
      made = saver.def();
    } else if (absl::c_any_of(graph.nodes(), [](const auto& n) { return IsVariable(*n); })) {
      WEIR_ASSIGN_OR_RETURN(made, AddSaverOfNodes(graph));
    }
    return absl::OkStatus();
  });
  if (!added.ok()) return added;
  return made;
}

// Makes the placeholders that name assets, as TensorFlow 2 writes them, constants: without the
// objects of TensorFlow 2, its loader rejects an init op that depends on a placeholder. A loader
// feeds either.
void MakeAssetsConstants(proto::MetaGraphDef* def) {
  std::map<std::string, std::string> files;  // by node
  for (const proto::AssetFileDef& asset : def->asset_file_def()) {
    const std::string& tensor = asset.tensor_info().name();
    files[tensor.substr(0, tensor.find(':'))] = asset.filename();
  }
  for (proto::NodeDef& node : *def->mutable_graph_def()->mutable_node()) {
    const auto file = files.find(node.name());
    if (file != files.end() && node.op() == "Placeholder")
      ReplaceByConst(Tensor::Scalar(file->second), &node);
  }
}

// Writes the checkpoint, and the meta graph with the graph's own nodes.
absl::Status ExportWholeGraph(Session& session, Graph& graph,
                              const std::map<std::string, Signature>& signatures,
                              const SavedModelOptions& options,
                              const std::map<std::string, std::string>& assets,
                              const std::string& checkpoint, proto::MetaGraphDef* def) {
  WEIR_ASSIGN_OR_RETURN(const std::optional<SaverDef> saver, SaverFor(session, graph, options));
  WEIR_RETURN_IF_ERROR(CheckAllAreSaved(graph, signatures, saver, options.init_op));
  if (saver) {
    WEIR_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(checkpoint)));
    WEIR_RETURN_IF_ERROR(
        Saver::FromDef(*saver)
            .Save(session, checkpoint, {.write_state = false, .write_meta_graph = false})
            .status());
  }
  MetaGraphOptions meta{.saver = saver,
                        .signatures = signatures,
                        .tags = options.tags,
                        .assets = assets,
                        .clear_devices = options.clear_devices};
  if (options.init_op.valid())
    meta.signatures[kInitSignature].outputs[kInitSignature] = options.init_op.name();
  ExportMetaGraph(graph, meta, def);
  MakeAssetsConstants(def);
  if (options.init_op.valid()) {  // as a signature since TensorFlow 1.13; earlier in a collection
    auto* const ops = (*def->mutable_collection_def())[kMainOp].mutable_node_list();
    ops->clear_value();
    ops->add_value(options.init_op.name());
  }
  return absl::OkStatus();
}

// Writes the contents of the empty directory.
absl::Status WriteInto(Session& session, Graph& graph, const std::string& directory,
                       const std::map<std::string, Signature>& signatures,
                       const SavedModelOptions& options) {
  const std::string variables = JoinPath(directory, kVariables);
  WEIR_ASSIGN_OR_RETURN(const auto files, AssetsOf(graph, options));
  WEIR_ASSIGN_OR_RETURN(const auto assets,
                        CopyAssets(files, JoinPath(directory, kAssets), options.durability));
  proto::SavedModel model;
  model.set_saved_model_schema_version(1);
  proto::MetaGraphDef* const def = model.add_meta_graphs();
  if (options.objects) {
    const Operation init = options.init_op.valid() ? options.init_op : InitOp(graph, signatures);
    WEIR_RETURN_IF_ERROR(ExportObjects(session,
                                       {.signatures = signatures,
                                        .init_op = init,
                                        .trainable = options.trainable,
                                        .assets = assets,
                                        .tags = options.tags,
                                        .clear_devices = options.clear_devices,
                                        .durability = options.durability},
                                       variables, def));
  } else {
    WEIR_RETURN_IF_ERROR(
        ExportWholeGraph(session, graph, signatures, options, assets, variables, def));
  }
  std::string bytes;
  if (options.as_text) {
    bytes = PrintTextProto(model);
  } else if (!model.SerializeToString(&bytes)) {
    return InvalidArgument(directory, ": the graph is too large to be serialized (2 GiB)");
  }
  return WriteFileAtomically(JoinPath(directory, options.as_text ? kTextFile : kBinaryFile), bytes,
                             options.durability);
}

// Removes the directory with its contents; files that cannot be removed stay.
void RemoveTree(const std::string& path) {
  if (!Files().IsDirectory(path)) return Files().Remove(path).IgnoreError();
  const absl::StatusOr<std::vector<std::string>> names = Files().List(path);
  if (names.ok()) {
    for (const std::string& name : *names) RemoveTree(JoinPath(path, name));
  }
  Files().RemoveDirectory(path).IgnoreError();
}

}  // namespace

bool HoldsSavedModel(const std::string& directory) {
  return Files().Exists(JoinPath(directory, kBinaryFile)) ||
         Files().Exists(JoinPath(directory, kTextFile));
}

std::string FindSavedModel(const std::string& path) {
  const absl::string_view name = BaseName(path);
  if ((name == kBinaryFile || name == kTextFile) && !Files().IsDirectory(path))
    return DirectoryOf(path);
  if (HoldsSavedModel(path) || !Files().IsDirectory(path)) return path;
  int64_t newest = -1;
  std::string found = path;
  const absl::StatusOr<std::vector<std::string>> names = Files().List(path);
  if (!names.ok()) return path;
  for (const std::string& version : *names) {
    int64_t number = 0;
    const std::string directory = JoinPath(path, version);
    if (!absl::SimpleAtoi(version, &number) || number <= newest || !HoldsSavedModel(directory))
      continue;
    newest = number;
    found = directory;
  }
  return found;
}

absl::Status ChooseMetaGraph(proto::SavedModel& model, std::vector<std::string> tags,
                             const std::string& source, proto::MetaGraphDef* meta) {
  std::sort(tags.begin(), tags.end());
  std::vector<std::string> available;
  for (proto::MetaGraphDef& def : *model.mutable_meta_graphs()) {
    if ((tags.empty() && model.meta_graphs_size() == 1) || TagsOf(def) == tags) {
      meta->Swap(&def);
      return absl::OkStatus();
    }
    available.push_back(absl::StrCat("{ ", absl::StrJoin(TagsOf(def), ", "), " }"));
  }
  return NotFound("Could not find meta graph def matching supplied tags: { ",
                  absl::StrJoin(tags, ", "), " } in ", source,
                  ", which has: ", absl::StrJoin(available, ", "));
}

absl::Status ReadSavedModel(const std::string& path, const std::vector<std::string>& tags,
                            proto::MetaGraphDef* meta) {
  const std::string directory = FindSavedModel(path);
  proto::SavedModel saved;
  WEIR_RETURN_IF_ERROR(ReadFileOf(directory, &saved));
  return ChooseMetaGraph(saved, tags, directory, meta);
}

absl::StatusOr<LoadedModel> LoadSavedModel(const std::string& path,
                                           const std::vector<std::string>& tags,
                                           SessionOptions options, UnknownParts unknown,
                                           const OpRegistry& ops) {
  const std::string directory = FindSavedModel(path);
  proto::MetaGraphDef def;
  WEIR_RETURN_IF_ERROR(ReadSavedModel(directory, tags, &def));
  LoadedModel model;
  model.graph = std::make_unique<Graph>(ops);
  WEIR_ASSIGN_OR_RETURN(model.meta, ImportMetaGraph(*model.graph, def, {.unknown = unknown}));
  const std::vector<std::string> tensors = ObjectTensors(def);
  model.functions = SavedFunctionsOf(def, tensors);
  model.trainable = TrainableObjects(def, tensors);
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(*model.graph, std::move(options)));
  model.session = std::make_unique<Session>(std::move(session));
  const std::string variables = JoinPath(directory, kVariables);
  // A model without variables has no such file.
  if (model.meta.saver && CheckpointExists(variables)) {
    WEIR_RETURN_IF_ERROR(RestoreVariables(*model.session, *model.meta.saver, variables));
  }
  WEIR_RETURN_IF_ERROR(RunInitOp(directory, model));
  return model;
}

absl::StatusOr<LoadedModel> LoadSavedModel(const std::map<std::string, absl::string_view>& files,
                                           const std::vector<std::string>& tags,
                                           SessionOptions options) {
  auto folder = std::make_shared<const MemoryFolder>(files);
  WEIR_ASSIGN_OR_RETURN(LoadedModel model,
                        LoadSavedModel(folder->path(), tags, std::move(options)));
  model.files = std::move(folder);
  return model;
}

bool IsLoaderSignature(absl::string_view name) { return absl::StartsWith(name, "__saved_model_"); }

absl::StatusOr<std::string> AssetFile(const std::string& directory, const std::string& tensor,
                                      const std::string& name) {
  namespace fs = std::filesystem;
  if (!IsNameInside(name)) {
    return InvalidArgument("asset '", absl::CHexEscape(name), "' of tensor ", tensor, " in ",
                           directory, ": expected the name of a file in ", kAssets, "/");
  }
  std::string path = JoinPath(JoinPath(directory, kAssets), name);
  std::error_code error;
  const fs::path root = fs::canonical(directory, error), file = fs::canonical(path, error);
  if (error) return path;  // not there, or not in the system's files: opening it says so
  if (std::mismatch(root.begin(), root.end(), file.begin(), file.end()).first == root.end())
    return path;
  return InvalidArgument("asset '", name, "' of tensor ", tensor, " in ", directory,
                         " is a link to ", file.string(),
                         "; expected a file in the model's directory");
}

absl::StatusOr<std::map<std::string, std::string>> AssetFiles(const std::string& directory,
                                                              const MetaGraph& meta) {
  std::map<std::string, std::string> files;
  const std::string model = FindSavedModel(directory);
  for (const auto& [tensor, name] : meta.assets) {
    WEIR_ASSIGN_OR_RETURN(files[tensor], AssetFile(model, tensor, name));
  }
  return files;
}

absl::StatusOr<Feeds> AssetFeeds(const std::string& directory, const Graph& graph,
                                 const MetaGraph& meta) {
  WEIR_ASSIGN_OR_RETURN(const auto files, AssetFiles(directory, meta));
  Feeds feeds;
  for (const auto& [tensor, file] : files) {
    WEIR_ASSIGN_OR_RETURN(const Output output, graph.FindOutput(tensor));
    feeds.emplace_back(output, Tensor::Scalar(file));
  }
  return feeds;
}

Signature PredictSignature(const std::map<std::string, Output>& inputs,
                           const std::map<std::string, Output>& outputs) {
  Signature signature{.method_name = "tensorflow/serving/predict"};
  for (const auto& [argument, tensor] : inputs) signature.inputs[argument] = tensor.name();
  for (const auto& [result, tensor] : outputs) signature.outputs[result] = tensor.name();
  return signature;
}

absl::Status WriteSavedModel(Session& session, Graph& graph, const std::string& directory,
                             const std::map<std::string, Signature>& signatures,
                             const SavedModelOptions& options) {
  WEIR_RETURN_IF_ERROR(graph.status());
  if (&session.graph() != &graph)
    return InvalidArgument("the graph to save is not the session's graph");
  if (options.init_op.valid() && &options.init_op.node->graph() != &graph)
    return InvalidArgument("init op ", options.init_op.name(), " belongs to another graph");
  for (const auto& [key, signature] : signatures) {
    for (const auto* tensors : {&signature.inputs, &signature.outputs}) {
      for (const auto& [argument, tensor] : *tensors) {
        const absl::Status found = graph.FindOutput(tensor).status();
        const bool is_operation = graph.FindNode(tensor) != nullptr;  // the signature of an init op
        if (!found.ok() && !is_operation)
          return Annotate(found, absl::StrCat("Signature '", key, "', '", argument, "'"));
      }
    }
  }
  std::string path = directory;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (Files().Exists(path) && !Files().IsDirectory(path))
    return AlreadyExists("Export directory ", path, " is a file");
  if (Files().Exists(path)) {
    WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> there, Files().List(path));
    if (!there.empty())
      return AlreadyExists("Export directory ", path,
                           " already exists, and isn't empty. Please choose a different export "
                           "directory, or delete all the contents of the specified directory");
  }
  const std::string parent = DirectoryOf(path), aside = TemporaryName(path);
  WEIR_RETURN_IF_ERROR(MakeDirectories(aside));
  absl::Status status = WriteInto(session, graph, aside, signatures, options);
  const bool synced = options.durability == Durability::kSynced;
  if (status.ok() && synced) status = Files().SyncDirectory(aside);
  if (status.ok()) status = Files().Rename(aside, path);
  if (!status.ok()) {
    RemoveTree(aside);
    return status;
  }
  return synced ? Files().SyncDirectory(parent) : absl::OkStatus();
}

}  // namespace weir
