#ifndef WEIR_RPC_RUN_METADATA_H_
#define WEIR_RPC_RUN_METADATA_H_

#include <string>
#include <vector>

#include "weir/session/session.h"

namespace weir::proto {
class RunMetadata;
class RunOptions;
}  // namespace weir::proto

namespace weir::rpc {

// What a client may ask of a run besides its values: its options, and a report of it.
class RunReport {
 public:
  // Call before the run: notes the time.
  explicit RunReport(const proto::RunOptions& options);

  // Options for the run. Valid while this lives.
  RunOptions options(Cancellation& cancellation);
  // Times of nodes by device, if they were asked for; of these devices at least.
  void WriteStatistics(const std::vector<Device*>& devices, proto::RunMetadata* metadata) const;
  bool wants_graph() const { return wants_graph_; }

 private:
  const std::chrono::milliseconds timeout_;
  const bool wants_trace_, wants_graph_;
  // To be added to times of the steady clock for times of the day.
  const int64_t epoch_ns_;
  std::vector<NodeTrace> trace_;
};

// The part of the graph that these fetches and targets need, with the devices that nodes run on, as
// the only partition. Nobody may change the graph meanwhile.
void WritePartition(const Graph& graph, const Outputs& feeds, const Outputs& fetches,
                    const std::vector<Operation>& targets, const std::string& device,
                    proto::RunMetadata* metadata);

}  // namespace weir::rpc

#endif  // WEIR_RPC_RUN_METADATA_H_
