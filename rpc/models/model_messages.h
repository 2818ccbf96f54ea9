#ifndef WEIR_RPC_MODELS_MODEL_MESSAGES_H_
#define WEIR_RPC_MODELS_MODEL_MESSAGES_H_

#include <map>
#include <string>

#include "weir/rpc/lib/call.h"
#include "weir/serving/inference.h"

namespace weir::proto {
class SignatureDef;
class TensorProto;
}  // namespace weir::proto

namespace weir::proto::serving {
class ClassificationResult;
class Input;
class ModelSpec;
class RegressionResult;
}  // namespace weir::proto::serving

// Conversions between the messages of TensorFlow Serving's API and serving/.
namespace weir::rpc {

serving::ModelSpec SpecFromProto(const proto::serving::ModelSpec& spec);
void SpecToProto(const serving::ModelSpec& from, proto::serving::ModelSpec* spec);
void AnswererToProto(const serving::Answered& by, proto::serving::ModelSpec* spec);

serving::Priority PriorityOf(const Call& call);

// Converts the inputs of a request and removes them from it. The total that repeated values may
// add is limited: beyond it, RESOURCE_EXHAUSTED. Errors name the input.
absl::Status TakeInput(const std::string& name, proto::TensorProto* value, int64_t* budget,
                       serving::NamedTensors* inputs);
// The budget of a request for TakeInput, in bytes.
inline constexpr int64_t kInputExpansionBudget = int64_t{256} << 20;

// Returns INVALID_ARGUMENT ("Input is empty") without examples.
absl::StatusOr<serving::Examples> ExamplesFromProto(const proto::serving::Input& input);
void ExamplesToProto(const serving::Examples& from, proto::serving::Input* input);
void ClassificationToProto(const serving::Classification& from,
                           proto::serving::ClassificationResult* to);
void RegressionToProto(const serving::Regression& from, proto::serving::RegressionResult* to);
void SignatureToProto(const serving::SignatureInfo& from, proto::SignatureDef* to);

}  // namespace weir::rpc

#endif  // WEIR_RPC_MODELS_MODEL_MESSAGES_H_
