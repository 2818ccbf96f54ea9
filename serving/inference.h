#ifndef WEIR_SERVING_INFERENCE_H_
#define WEIR_SERVING_INFERENCE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/serving/model_manager.h"

// What clients ask of models, without a network: the calls of TensorFlow Serving's
// PredictionService. gRPC and REST (rpc/) only translate to and from these.
namespace weir::serving {

// Which model answered.
struct Answered {
  std::string model;
  int64_t version = 0;
  std::string signature;
};

struct Prediction {
  Answered by;
  NamedTensors outputs;
};
// Calls a signature. Errors are those of ModelManager::Find and Run. `priority` is that of the call
// in batches, here and below.
absl::StatusOr<Prediction> Predict(ModelManager& models, const ModelSpec& spec,
                                   const NamedTensors& inputs,
                                   const std::vector<std::string>& outputs = {},
                                   const RunOptions& options = {},
                                   Priority priority = Priority::kHigh);

// tf.Examples in serialized form, and one whose features all of them share, if any.
struct Examples {
  std::vector<std::string> examples;
  std::string context;  // a serialized Example; "": none
};

struct Class {
  std::string label;
  float score = 0;
};
struct Classification {
  Answered by;
  std::vector<std::vector<Class>> classes;  // one list for each example
};
// Calls a signature of method "tensorflow/serving/classify": a string tensor of examples "inputs"
// to "classes" (strings) and "scores" (floats), one of which may be absent.
//
//   INVALID_ARGUMENT   no examples ("Input is empty"), another method, outputs of wrong shapes
absl::StatusOr<Classification> Classify(ModelManager& models, const ModelSpec& spec,
                                        const Examples& examples, const RunOptions& options = {},
                                        Priority priority = Priority::kHigh);
// The same, of a version that ModelManager::Find has returned: several calls of one request get the
// same version, although others replace it meanwhile. `signature` may be "".
absl::StatusOr<Classification> Classify(ModelManager& models,
                                        std::shared_ptr<const Servable> servable,
                                        const std::string& signature, const Examples& examples,
                                        const RunOptions& options = {},
                                        Priority priority = Priority::kHigh);

struct Regression {
  Answered by;
  std::vector<float> values;  // one for each example
};
// Calls a signature of method "tensorflow/serving/regress", whose output is "outputs".
absl::StatusOr<Regression> Regress(ModelManager& models, const ModelSpec& spec,
                                   const Examples& examples, const RunOptions& options = {},
                                   Priority priority = Priority::kHigh);
// See the second Classify.
absl::StatusOr<Regression> Regress(ModelManager& models, std::shared_ptr<const Servable> servable,
                                   const std::string& signature, const Examples& examples,
                                   const RunOptions& options = {},
                                   Priority priority = Priority::kHigh);

}  // namespace weir::serving

#endif  // WEIR_SERVING_INFERENCE_H_
