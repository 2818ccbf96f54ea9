#include "weir/rpc/cluster/cluster_spec.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "weir/core/graph/scope.h"
#include "weir/proto/cluster.pb.h"

namespace weir::rpc {

namespace {

absl::Status Malformed(absl::string_view part, absl::string_view expected) {
  return InvalidArgument("Invalid cluster: '", part, "' is not ", expected,
                         ". Example: 'ps|host1:2222,worker|host2:2222;host3:2222'");
}

absl::Status CheckAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535)
    return Malformed(address, "an address, HOST:PORT");
  return absl::OkStatus();
}

absl::Status ParseTask(absl::string_view text, int* next, std::map<int, std::string>* tasks) {
  absl::string_view address = text;
  if (const size_t equals = text.find('='); equals != absl::string_view::npos) {
    if (!absl::SimpleAtoi(text.substr(0, equals), next) || *next < 0)
      return Malformed(text, "a task, NUMBER=HOST:PORT or HOST:PORT");
    address = text.substr(equals + 1);
  }
  WEIR_RETURN_IF_ERROR(CheckAddress(address));
  if (!tasks->emplace((*next)++, address).second)
    return Malformed(text, "a task of its own: its number is taken");
  return absl::OkStatus();
}

}  // namespace

std::string TaskName::ToString() const {
  return absl::StrCat("/job:", job, "/replica:0/task:", index);
}

absl::StatusOr<TaskName> TaskName::OfDevice(absl::string_view device) {
  WEIR_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(device));
  if (!name.job || !name.task) return InvalidArgument("Not a device of a task: ", device);
  return TaskName{*name.job, *name.task};
}

absl::StatusOr<ClusterSpec> ClusterSpec::Parse(absl::string_view text) {
  ClusterSpec spec;
  for (const absl::string_view job : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(job, '|');
    if (parts.size() != 2 || parts[0].empty()) return Malformed(job, "a job, NAME|TASKS");
    const auto [entry, is_new] = spec.jobs_.try_emplace(std::string(parts[0]));
    if (!is_new) return Malformed(job, "a job of its own: its name is taken");
    int next = 0;
    for (const absl::string_view task : absl::StrSplit(parts[1], ';'))
      WEIR_RETURN_IF_ERROR(ParseTask(task, &next, &entry->second));
  }
  return spec;
}

absl::StatusOr<ClusterSpec> ClusterSpec::Create(
    const std::map<std::string, std::vector<std::string>>& jobs) {
  ClusterSpec spec;
  for (const auto& [job, addresses] : jobs) {
    std::map<int, std::string>& tasks = spec.jobs_[job];
    for (const std::string& address : addresses) {
      WEIR_RETURN_IF_ERROR(CheckAddress(address));
      tasks.emplace(static_cast<int>(tasks.size()), address);
    }
  }
  return spec;
}

ClusterSpec ClusterSpec::FromProto(const proto::ClusterDef& def) {
  ClusterSpec spec;
  for (const proto::JobDef& job : def.job())
    spec.jobs_[job.name()].insert(job.tasks().begin(), job.tasks().end());
  return spec;
}

int ClusterSpec::NumTasks(const std::string& job) const {
  const auto tasks = jobs_.find(job);
  return tasks == jobs_.end() ? 0 : static_cast<int>(tasks->second.size());
}

std::string ClusterSpec::AddressOf(const TaskName& task) const {
  const auto job = jobs_.find(task.job);
  if (job == jobs_.end()) return "";
  const auto found = job->second.find(task.index);
  return found == job->second.end() ? "" : found->second;
}

}  // namespace weir::rpc
