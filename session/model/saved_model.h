#ifndef WEIR_SESSION_MODEL_SAVED_MODEL_H_
#define WEIR_SESSION_MODEL_SAVED_MODEL_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/io/memory_folder.h"
#include "weir/core/tensor/api.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/model/saved_function.h"

namespace weir::proto {
class SavedModel;
}

// SavedModel directories: a model that can be served without the program that built it, as
// tf.saved_model of TensorFlow 1 writes and loads it:
//
//   saved_model.pb       a meta graph, with the model's signatures
//   variables/variables  a checkpoint
//   assets/              files that the graph reads during initialization, such as vocabularies
namespace WEIR_API weir {

// A loaded model with its variables' values, ready to run. Movable.
struct LoadedModel {
  std::shared_ptr<const MemoryFolder> files;  // of a model that was loaded from memory; or null
  std::unique_ptr<Graph> graph;               // at a fixed address; outlives the session
  MetaGraph meta;                             // signatures, tags and assets
  std::vector<SavedFunction> functions;       // of a model of TensorFlow 2; see CallSavedFunction
  std::vector<std::string> trainable;         // the same: the nodes of the variables to train
  std::unique_ptr<Session> session;           // ready to run
};
// Returns true for a directory with saved_model.pb or saved_model.pbtxt.
bool HoldsSavedModel(const std::string& directory);
// Returns the SavedModel directory that a path denotes: itself, the newest of the numbered versions
// in a directory that holds those, or the directory of a saved_model.pb. Returns any other path
// unchanged.
std::string FindSavedModel(const std::string& path);
// Loads the SavedModel directory that a path denotes (FindSavedModel): the one meta graph with
// exactly these tags (no tags: the only one in the directory), its variables, its init op. Returns
// NOT_FOUND if the directory is no SavedModel, or has no meta graph with these tags (the message
// lists the tags it has); INVALID_ARGUMENT if an asset's name, or a link, leads out of assets/ or
// out of the directory. `unknown` is that of ImportOptions. The graph has the ops of `ops`, which
// outlives it.
absl::StatusOr<LoadedModel> LoadSavedModel(const std::string& path,
                                           const std::vector<std::string>& tags,
                                           SessionOptions options = {},
                                           UnknownParts unknown = UnknownParts::kKeep,
                                           const OpRegistry& ops = BuiltinOps());

// Loads a SavedModel from memory: `files` has the contents of its files by their paths in its
// directory, such as "saved_model.pb", "variables/variables.index" and "assets/words.txt". No file
// is opened, and the values of the variables are copied once. The bytes must outlive the model:
// steps may read assets.
absl::StatusOr<LoadedModel> LoadSavedModel(const std::map<std::string, absl::string_view>& files,
                                           const std::vector<std::string>& tags,
                                           SessionOptions options = {});

// Reads what LoadSavedModel imports, without importing it: the meta graph with these tags. Same
// errors, except those for assets.
absl::Status ReadSavedModel(const std::string& path, const std::vector<std::string>& tags,
                            proto::MetaGraphDef* meta);
// Moves the meta graph with exactly these tags (no tags: the only one) from the model to `meta`.
// Returns NOT_FOUND, with `source` and the tags that it has, if there is none.
absl::Status ChooseMetaGraph(proto::SavedModel& model, std::vector<std::string> tags,
                             const std::string& source, proto::MetaGraphDef* meta);

// The signature whose output is the op that runs when the model is loaded, under the same name.
inline constexpr char kInitSignature[] = "__saved_model_init_op";
// True for a signature that is an instruction for a loader, and is not called.
bool IsLoaderSignature(absl::string_view name);

// Returns the path of the asset with this file name, which `tensor` names, of the model in a
// directory. INVALID_ARGUMENT if LoadSavedModel rejects it: a model from elsewhere could otherwise
// have a vocabulary that is a file of this machine, whose contents its results would show.
absl::StatusOr<std::string> AssetFile(const std::string& directory, const std::string& tensor,
                                      const std::string& name);
// Returns the asset files of such a directory that tensors name while the init op runs, by tensor;
// or the error for one of them.
absl::StatusOr<std::map<std::string, std::string>> AssetFiles(const std::string& directory,
                                                              const MetaGraph& meta);
// Returns the paths of these files as feeds of the graph that holds the model, for ops that
// initialize tables.
absl::StatusOr<Feeds> AssetFeeds(const std::string& directory, const Graph& graph,
                                 const MetaGraph& meta);

// Returns the signature of a function from tensors to tensors, as TensorFlow Serving's Predict
// calls it.
Signature PredictSignature(const std::map<std::string, Output>& inputs,
                           const std::map<std::string, Output>& outputs);

// What a SavedModel contains, and how it is loaded.
struct SavedModelOptions {
  std::vector<std::string> tags = {"serve"};  // by which LoadSavedModel finds the meta graph
  // Run when the model is loaded, after the variables have their values: initializes tables, for
  // example.
  Operation init_op = {};
  // The nodes that save and restore the variables, as Saver::def() names them. By default new nodes
  // are added to the graph, for all global variables, or for all variables if the graph has no such
  // collection. A program that writes a model repeatedly should create a Saver once.
  std::optional<SaverDef> saver = {};
  // The asset files, by the tensor that names each when the model is loaded, such as a
  // vocabulary's; they are copied. Constants in the collection "asset_filepaths" that are not
  // listed here are added with the files that they name. (To write a LoadedModel again: its
  // AssetFiles.)
  std::map<std::string, std::string> assets = {};
  bool clear_devices = false;
  // Also writes the objects of TensorFlow 2, so that tf.saved_model.load returns variables to train
  // (`model.variables`, `model.trainable_variables`, and `model.net.w` for the variable "net/w"),
  // the signatures as functions that gradients pass (`model.signatures["f"](x=...)`), and each
  // signature whose name and inputs Python can name as a method, which takes the inputs in the
  // order of their names (`model.f(x)`). Tables and assets are objects too. The graph that is
  // written then holds only what these need: the variables, the tables with what initializes them,
  // and calls of the functions. Reference variables become resource variables. The checkpoint has
  // the names of TensorFlow 2, "net/w/.ATTRIBUTES/VARIABLE_VALUE", for the variables in the graph's
  // collections and those that the signatures use; `saver` is not used. Of the init op, or of the
  // graph's table initializers if there is none, what initializes tables is kept.
  bool objects = false;
  // For objects: the nodes of variables to train that are in no collection, such as those of a
  // LoadedModel.
  std::vector<std::string> trainable = {};
  // Writes saved_model.pbtxt instead of saved_model.pb.
  bool as_text = false;
  Durability durability = Durability::kSynced;
};
// Writes a SavedModel: the graph, its collections and the signatures, the current values of the
// session's variables, and copies of the assets. The directory appears with all its contents, or
// not at all.
//
//   WEIR_RETURN_IF_ERROR(WriteSavedModel(
//       session, g, "export/1", {{"serving_default", PredictSignature({{"x", x}}, {{"y", y}})}}));
//
// clang-format off
//   ALREADY_EXISTS       the directory exists and is not empty, or is a file
//   INVALID_ARGUMENT     the graph is not the session's, or exceeds 2 GiB; an asset is not a constant string;
//                        the saver uses format V1
//   FAILED_PRECONDITION  a variable has no value, or the signatures depend on a variable that is not saved (name)
//   UNIMPLEMENTED        with objects: the signatures use a reference in another way than to read a variable (name)
//   NOT_FOUND            a tensor of a signature is not in the graph; an asset's file does not exist
// clang-format on
absl::Status WriteSavedModel(Session& session, Graph& graph, const std::string& directory,
                             const std::map<std::string, Signature>& signatures,
                             const SavedModelOptions& options = {});

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_SAVED_MODEL_H_
