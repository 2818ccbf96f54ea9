#ifndef WEIR_EXAMPLES_CLUSTER_TRAINING_H_
#define WEIR_EXAMPLES_CLUSTER_TRAINING_H_

#include <cstdint>
#include <string>

#include "weir/rpc/cluster_server.h"

// The tasks of the cluster example: parameter servers with the variables, and workers that train.
namespace cluster {

struct TrainingOptions {
  std::string data;          // gzipped CSV file of images and labels
  std::string directory;     // for checkpoints; empty: none
  int64_t save_every = 0;    // updates between two checkpoints; 0: one every ten minutes
  int64_t steps = 0;         // updates of the variables, by all workers together
  int64_t batch = 0;         // images per gradient
  int64_t report_every = 0;  // steps of a worker between two of its lines
  float learning_rate = 0;
  bool sync = false;  // an update applies the mean of all workers' gradients
};

// Serves variables until the process is ended.
absl::Status RunParameterServer(const weir::rpc::ClusterSpec& cluster, int task);

// Trains with the other workers until the variables have been updated as often as the options say,
// and prints the loss from time to time. Worker 0 initializes or restores the variables, saves
// checkpoints, and prints the accuracy on the test images at the end.
absl::Status RunWorker(const weir::rpc::ClusterSpec& cluster, int task,
                       const TrainingOptions& options);

}  // namespace cluster

#endif  // WEIR_EXAMPLES_CLUSTER_TRAINING_H_
