#ifndef WEIR_RPC_MODELS_STATUS_PAGE_H_
#define WEIR_RPC_MODELS_STATUS_PAGE_H_

#include <chrono>
#include <string>

#include "weir/rpc/models/call_statistics.h"
#include "weir/serving/model_manager.h"

namespace weir::rpc {

// A page for people: the models, their versions, states and memory, the rates and times of calls,
// recent errors. One HTML document without scripts and without anything to load; it is loaded again
// every five seconds.
std::string StatusPage(const serving::ModelManager& models, const CallStatistics& calls,
                       std::chrono::seconds uptime);

// "AVAILABLE"
const char* NameOf(serving::VersionState state);

}  // namespace weir::rpc

#endif  // WEIR_RPC_MODELS_STATUS_PAGE_H_
