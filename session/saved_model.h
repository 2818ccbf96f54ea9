#ifndef WEIR_SESSION_SAVED_MODEL_H_
#define WEIR_SESSION_SAVED_MODEL_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/session/meta_graph.h"

// SavedModel directories: a model that whoever serves it can run without knowing how it was made,
// as tf.saved_model of TensorFlow 1 writes and loads them:
//
//   saved_model.pb       a meta graph, with the signatures it is called by
//   variables/variables  a checkpoint
//   assets/              files that the graph reads when it is made ready, such as vocabularies
namespace weir {

// A model with its variables' values, ready to run. Movable.
struct LoadedModel {
  std::unique_ptr<Graph> graph;
  MetaGraph meta;
  std::unique_ptr<Session> session;
};
// Reads a SavedModel directory: the one meta graph with exactly these tags (none given: the only
// one there is), its variables, its init op. NOT_FOUND for a directory that is none, or tags it
// does not have (the message lists them).
absl::StatusOr<LoadedModel> LoadSavedModel(const std::string& directory,
                                           const std::vector<std::string>& tags,
                                           SessionOptions options = {});

// The files of such a directory that tensors name while the init op runs, by tensor.
std::map<std::string, std::string> AssetFiles(const std::string& directory, const MetaGraph& meta);

// The signature of a function from tensors to tensors: what TensorFlow Serving's Predict calls.
Signature PredictSignature(const std::map<std::string, Output>& inputs,
                           const std::map<std::string, Output>& outputs);

struct SavedModelOptions {
  std::vector<std::string> tags = {"serve"};
  // Run by whoever loads the model once its variables have their values: fills tables, say.
  Operation init_op = {};
  // The nodes that save and restore the variables, as Saver::def() names them. By default new ones
  // are added to the graph, for all global variables, or, where the graph has no such collection,
  // for all there are: whoever writes a model again and again makes them once.
  std::optional<SaverDef> saver = {};
  // The file that a tensor names when the model is loaded, such as a vocabulary's; it is copied.
  // What is not here are the constants in the collection "asset_filepaths", with the files that
  // they name. (To write a LoadedModel again: its AssetFiles.)
  std::map<std::string, std::string> assets = {};
  bool clear_devices = false;
  // saved_model.pbtxt instead of saved_model.pb.
  bool as_text = false;
  Durability durability = Durability::kSynced;
};
// Writes a SavedModel: the graph, its collections and the signatures, the values that the session's
// variables have now, and copies of the assets. The directory appears with all that is in it, or
// not at all.
//
//   WEIR_RETURN_IF_ERROR(WriteSavedModel(
//       session, g, "export/1", {{"serving_default", PredictSignature({{"x", x}}, {{"y", y}})}}));
//
// clang-format off
//   ALREADY_EXISTS       the directory is there, and not empty, or is a file
//   INVALID_ARGUMENT     a graph that is not the session's, or has more than 2 GiB; an asset that is no constant string;
//                        a saver of the first format
//   FAILED_PRECONDITION  a variable has no value, or what the signatures give depends on one that is not saved (name)
//   NOT_FOUND            a signature's tensor, which the graph does not have; an asset's file
// clang-format on
absl::Status WriteSavedModel(Session& session, Graph& graph, const std::string& directory,
                             const std::map<std::string, Signature>& signatures,
                             const SavedModelOptions& options = {});

}  // namespace weir

#endif  // WEIR_SESSION_SAVED_MODEL_H_
