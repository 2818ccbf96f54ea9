#ifndef WEIR_RPC_MODELS_LOGGED_CALLS_H_
#define WEIR_RPC_MODELS_LOGGED_CALLS_H_

#include "weir/rpc/models/request_log.h"
#include "weir/serving/inference.h"

// Calls that did not arrive as messages, in the log of requests: each function adds the messages
// that the same call over gRPC has. `spec` is the model that the client asked for.
namespace weir::rpc {

void LogPredict(const serving::ModelSpec& spec, const serving::NamedTensors& inputs,
                const serving::Prediction& prediction, RequestLog* log);
void LogClassify(const serving::ModelSpec& spec, const serving::Examples& examples,
                 const serving::Classification& classification, RequestLog* log);
void LogRegress(const serving::ModelSpec& spec, const serving::Examples& examples,
                const serving::Regression& regression, RequestLog* log);

}  // namespace weir::rpc

#endif  // WEIR_RPC_MODELS_LOGGED_CALLS_H_
