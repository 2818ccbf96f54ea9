#ifndef WEIR_RPC_LIB_RUN_METADATA_H_
#define WEIR_RPC_LIB_RUN_METADATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "weir/session/session.h"

namespace weir::proto {
class RunMetadata;
class RunOptions;
}  // namespace weir::proto

namespace weir::rpc {

// Returns the shorter of two time limits. Zero is none.
std::chrono::milliseconds ShorterLimit(std::chrono::milliseconds a, std::chrono::milliseconds b);

// Returns the end of a step's error by which TensorFlow's clients find the failed node, "\n\t
// [[{{node NAME}}]]"; "" if no node has failed.
std::string FailedNodeMark(const absl::Status& error);

// The options that a client sets for a run, and the report that it requests.
class RunReport {
 public:
  // Construct before the run: records the time.
  explicit RunReport(const proto::RunOptions& options);

  // Returns options for the run, valid while this object lives. A time limit longer than
  // `max_limit` is shortened to it.
  RunOptions options(Cancellation& cancellation, std::chrono::milliseconds max_limit);
  // Writes the times of nodes by device, if requested, with at least an entry for each of
  // `devices`.
  void WriteStatistics(const std::vector<Device*>& devices, proto::RunMetadata* metadata) const;
  // An estimate of the memory of the statistics, in the report and twice in a response.
  uint64_t bytes() const;
  bool wants_graph() const { return wants_graph_; }

 private:
  const std::chrono::milliseconds timeout_;
  const bool wants_trace_, wants_graph_;
  // Offset from the steady clock to the system clock.
  const int64_t epoch_ns_;
  std::vector<NodeTrace> trace_;
};

// Writes the part of the graph that these fetches and targets need, with the devices of its nodes,
// as a single partition. The graph must not change meanwhile.
void WritePartition(const Graph& graph, const Outputs& feeds, const Outputs& fetches,
                    const std::vector<Operation>& targets, const std::string& device,
                    proto::RunMetadata* metadata);

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_RUN_METADATA_H_
