#include "weir/rpc/cluster_partial_run.h"

#include <algorithm>

namespace weir::rpc {

namespace {

// The place of a name that has not been used.
absl::StatusOr<int> FindUnused(const std::vector<std::string>& names, const std::vector<bool>& used,
                               const std::string& name, absl::string_view kind,
                               absl::string_view done) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    return InvalidArgument("The ", kind, " ", name, " was not specified in partial_run_setup.");
  }
  const auto i = found - names.begin();
  if (used[i]) return InvalidArgument("The ", kind, " ", name, " has already been ", done, ".");
  return static_cast<int>(i);
}

bool AllTrue(const std::vector<bool>& flags) {
  return std::all_of(flags.begin(), flags.end(), [](bool flag) { return flag; });
}

}  // namespace

absl::StatusOr<std::vector<int>> ClusterPartialRun::CheckPiece(
    const std::vector<std::pair<std::string, Tensor>>& feeds,
    const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
    std::vector<int>* fed) {
  for (const std::string& target : targets) {
    if (std::find(names_.targets.begin(), names_.targets.end(), target) == names_.targets.end())
      return InvalidArgument("The target ", target, " was not specified in partial_run_setup.");
  }
  std::vector<bool> will_be_fed = fed_;
  for (const auto& [name, value] : feeds) {
    WEIR_ASSIGN_OR_RETURN(fed->emplace_back(),
                          FindUnused(names_.feeds, will_be_fed, name, "feed", "fed"));
    WEIR_RETURN_IF_ERROR(CheckFeed(step_->request.feeds[fed->back()], value));
    will_be_fed[fed->back()] = true;
  }
  Outputs missing;
  for (size_t i = 0; i < will_be_fed.size(); ++i) {
    if (!will_be_fed[i]) missing.push_back(step_->request.feeds[i]);
  }
  std::vector<int> wanted;
  std::vector<bool> will_be_fetched = fetched_;
  for (const std::string& name : fetches) {
    WEIR_ASSIGN_OR_RETURN(wanted.emplace_back(),
                          FindUnused(names_.fetches, will_be_fetched, name, "fetch", "fetched"));
    will_be_fetched[wanted.back()] = true;
    const Output& fetch = step_->request.fetches[wanted.back()];
    if (!steps_.CanCompute(fetch, step_->request.feeds, missing)) {
      return InvalidArgument("Fetch ", name,
                             " can't be computed from the feeds that have been fed so far.");
    }
  }
  return wanted;
}

absl::StatusOr<Tensors> ClusterPartialRun::RunPiece(
    const std::vector<std::pair<std::string, Tensor>>& feeds, const std::vector<int>& fed,
    const std::vector<int>& fetches) {
  for (size_t i = 0; i < fed.size(); ++i) {
    WEIR_RETURN_IF_ERROR(run_.Feed(fed[i], feeds[i].second));
    fed_[fed[i]] = true;
  }
  if (!started_) run_.Start();
  started_ = true;
  WEIR_ASSIGN_OR_RETURN(Tensors values, run_.Fetch(fetches));
  for (const int fetch : fetches) fetched_[fetch] = true;
  return values;
}

absl::StatusOr<Tensors> ClusterPartialRun::Run(std::vector<std::pair<std::string, Tensor>> feeds,
                                               const std::vector<std::string>& fetches,
                                               const std::vector<std::string>& targets,
                                               Cancellation* cancellation) {
  const MutexLock lock(mutex_);
  if (over_) return InvalidArgument("The partial run is over.");
  std::vector<int> fed;
  WEIR_ASSIGN_OR_RETURN(const std::vector<int> wanted, CheckPiece(feeds, fetches, targets, &fed));
  const LinkedCancellation linked(cancellation, run_.cancellation());
  absl::StatusOr<Tensors> values = RunPiece(feeds, fed, wanted);
  over_ = !values.ok() || (AllTrue(fed_) && AllTrue(fetched_));
  if (values.ok() && over_) WEIR_RETURN_IF_ERROR(run_.Finish());
  return values;
}

bool ClusterPartialRun::is_over() const {
  const MutexLock lock(mutex_);
  return over_;
}

}  // namespace weir::rpc
