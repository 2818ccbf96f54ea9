#ifndef WEIR_SERVING_SERVABLE_H_
#define WEIR_SERVING_SERVABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/session/model/saved_model.h"

// Models that an operator loads and clients call by name: one version of a model.
namespace weir::serving {

// The arguments or results of a signature, by name.
using NamedTensors = std::map<std::string, Tensor>;

// How a version of a model is loaded.
struct ServableOptions {
  SessionOptions session = {};
  std::vector<std::string> tags = {"serve"};  // of the meta graph in a SavedModel
  // Runs the requests in assets.extra/tf_serving_warmup_requests before the version is available.
  bool warm_up = true;
};

// An argument or a result of a signature.
struct TensorInfo {
  std::string tensor;  // "x:0"; the name of the operation, for the signature of an init op
  DataType dtype;      // invalid for an operation
  // What the graph and the signature say; dimensions may be unknown, and so may the rank.
  Shape shape;
};

// What a signature takes and returns.
struct SignatureInfo {
  std::string method_name;  // "tensorflow/serving/predict"
  std::map<std::string, TensorInfo> inputs, outputs;
  std::map<std::string, Tensor> defaults = {};  // of inputs that a call may omit
};

// One version of a model, loaded and ready. Immutable; thread-safe. Whoever holds it can go on
// calling it after the version has been unloaded.
class Servable {
 public:
  // Loads a SavedModel directory (of TensorFlow 1 or 2), or a directory with one frozen graph
  // (`*.pb`), whose only signature, "serving_default", takes its placeholders and returns the
  // outputs of nodes that no node uses. Errors are those of LoadSavedModel, and NOT_FOUND if the
  // values of the variables are missing; a warm-up request that fails is the error of the load.
  static absl::StatusOr<std::shared_ptr<const Servable>> Load(const std::string& name,
                                                              int64_t version,
                                                              const std::string& directory,
                                                              const ServableOptions& options = {});
  ~Servable();

  const std::string& name() const;
  int64_t version() const;
  const std::map<std::string, SignatureInfo>& signatures() const;
  // The bytes of the model's variables and constants.
  int64_t memory_bytes() const;

  // Calls a signature ("" is "serving_default"). `outputs` selects results; empty means all.
  // Prepared steps are cached by signature and outputs.
  //
  // clang-format off
  //   INVALID_ARGUMENT     an input that is missing or that the signature does not have (both lists are
  //                        in the message), a wrong dtype or shape, an output that is unknown or
  //                        given twice
  //   FAILED_PRECONDITION  no such signature (names those that exist)
  //   UNIMPLEMENTED        the signature has a sparse or composite tensor, or a handle
  //   DEADLINE_EXCEEDED, CANCELLED, RESOURCE_EXHAUSTED and what ops return: as Session::Run
  // clang-format on
  absl::StatusOr<NamedTensors> Run(const std::string& signature, const NamedTensors& inputs,
                                   const std::vector<std::string>& outputs = {},
                                   const RunOptions& options = {}) const;

 private:
  struct Impl;
  explicit Servable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::serving

#endif  // WEIR_SERVING_SERVABLE_H_
