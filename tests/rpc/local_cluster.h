#ifndef WEIR_TESTS_RPC_LOCAL_CLUSTER_H_
#define WEIR_TESTS_RPC_LOCAL_CLUSTER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weir/rpc/client.h"
#include "weir/rpc/cluster_server.h"
#include "weir/rpc/lib/listener.h"

namespace weir::rpc {

// A cluster on loopback: servers of this process, each of which is a task.
class LocalCluster {
 public:
  LocalCluster(int num_ps, int num_workers) {
    EnableGrpcTargets();
    cluster_ = *ClusterSpec::Parse(
        absl::StrCat("ps|", Addresses(num_ps), ",worker|", Addresses(num_workers)));
    for (const auto& [job, tasks] : cluster_.jobs()) {
      for (const auto& [index, address] : tasks) Start({job, index});
    }
  }

  void Start(const TaskName& task) {
    auto server = StartTask(cluster_, task);
    ASSERT_TRUE(server.ok()) << server.status();
    servers_[{task.job, task.index}] = *std::move(server);
  }
  // As if the process ended: what it has is lost.
  void Stop(const TaskName& task) { servers_.erase({task.job, task.index}); }

  const std::string& target(int worker) const { return servers_.at({"worker", worker})->target(); }
  const ClusterSpec& spec() const { return cluster_; }

 private:
  // Free ports, which stay so until the servers start.
  static std::string Addresses(int count) {
    std::string addresses;
    for (int i = 0; i < count; ++i) {
      const int port = (*Listener::Bind("127.0.0.1", 0))->port();
      absl::StrAppend(&addresses, i == 0 ? "" : ";", "127.0.0.1:", port);
    }
    return addresses;
  }

  ClusterSpec cluster_;
  std::map<std::pair<std::string, int>, std::unique_ptr<Server>> servers_;
};

}  // namespace weir::rpc

#endif  // WEIR_TESTS_RPC_LOCAL_CLUSTER_H_
