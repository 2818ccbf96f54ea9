#include "weir/serving/model_manager.h"

#include <deque>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "weir/core/tensor/mutex.h"
#include "weir/serving/loaded_version.h"
#include "weir/serving/model_versions.h"
#include "weir/serving/shown_name.h"

// One thread owns the state of the models (ModelVersions), and loads. After each change it
// publishes a copy, which shares what is loaded. A request takes the present copy and looks its
// version up there, so it never waits for a load; and as it holds a version from then on, the
// version lives until the request ends, whatever the thread does. The thread publishes a new
// version and the absence of the old one in one copy: at no time is there none.
namespace weir::serving {
namespace {

using Models = std::map<std::string, ModelVersions>;
using std::chrono::milliseconds;

constexpr milliseconds kShortPoll = std::chrono::seconds(1);  // while something is to be loaded
// A reload waits as long for a directory that is being written.
constexpr std::chrono::seconds kMaxSettle(30);

absl::Status LabelNotAvailable(const ModelVersions& model, int64_t version) {
  return FailedPrecondition("Request to assign label to version ", version, " of model ",
                            model.config().name,
                            ", which is not currently available for inference");
}

bool IsAvailable(const ModelVersions& model, int64_t version) {
  const auto found = model.versions().find(version);
  return found != model.versions().end() && found->second.loaded != nullptr;
}

absl::Status CheckLabels(const ModelVersions& model) {
  for (const auto& [label, version] : model.config().labels) {
    if (!IsAvailable(model, version)) return LabelNotAvailable(model, version);
  }
  return absl::OkStatus();
}

// Why a model has no version yet.
std::string WhyNotLoaded(const ModelVersions& model) {
  const absl::Status failure = model.Failure();
  if (!failure.ok()) return failure.ToString();
  for (const auto& [number, version] : model.versions()) {
    if (!version.error.ok()) return version.error.ToString();
  }
  return absl::StrCat(model.versions().empty() ? "No versions of servable " : "Versions of ",
                      model.config().name,
                      model.versions().empty() ? " found" : " are not complete",
                      " under base path ", model.config().base_path);
}

std::vector<int64_t> Available(const ModelVersions& model) {
  std::vector<int64_t> available;
  for (const auto& [number, version] : model.versions()) {
    if (version.loaded != nullptr) available.push_back(number);
  }
  return available;
}

}  // namespace

struct ModelManager::Impl {
  struct Request {  // to reload
    const std::vector<ModelConfig>& configs;
    bool is_done = false;
    absl::Status status = {};
  };

  explicit Impl(const ModelManagerOptions& options) : options(options) {}
  ~Impl();

  void Start(const std::vector<ModelConfig>& configs);
  std::shared_ptr<const Models> Published() const {
    const MutexLock lock(mutex);
    return published;
  }
  absl::StatusOr<int64_t> VersionOf(const Models& all, const ModelSpec& spec) const;

  // The functions of the thread.
  void Loop();
  void Tick();
  void LoadWanted(ModelVersions& model);
  void Publish();
  void ReportChanges(const Models& before, const Models& after) const;
  bool Wait(milliseconds limit);
  bool IsStopped() const;
  void HandleRequests();
  absl::Status Reload(const std::vector<ModelConfig>& configs);
  absl::Status LoadNow(ModelVersions& model);
  milliseconds Settle() const { return options.poll > milliseconds(0) ? options.poll : kShortPoll; }
  milliseconds UntilNextTick() const;

  const ModelManagerOptions options;
  Models models;  // of the thread
  std::shared_ptr<VersionPool> pool;

  mutable Mutex mutex;
  CondVar wake;     // the thread
  CondVar changed;  // who waits for the thread
  std::shared_ptr<const Models> published ABSL_GUARDED_BY(mutex);
  std::deque<Request*> requests ABSL_GUARDED_BY(mutex);
  bool is_woken ABSL_GUARDED_BY(mutex) = false;
  bool is_stopped ABSL_GUARDED_BY(mutex) = false;
  std::thread thread;
};

void ModelManager::Impl::Start(const std::vector<ModelConfig>& configs) {
  for (const ModelConfig& config : configs) models.emplace(config.name, ModelVersions(config));
  pool = VersionPool::Create([this] {
    const MutexLock lock(mutex);
    is_woken = true;
    wake.NotifyAll();
  });
  {
    const MutexLock lock(mutex);
    published = std::make_shared<const Models>(models);
  }
  thread = std::thread([this] { Loop(); });
}

ModelManager::Impl::~Impl() {
  {
    const MutexLock lock(mutex);
    is_stopped = true;
    wake.NotifyAll();
  }
  thread.join();
  models.clear();
  {
    const MutexLock lock(mutex);
    published.reset();
  }
  pool->Stop();
}

bool ModelManager::Impl::IsStopped() const {
  const MutexLock lock(mutex);
  return is_stopped;
}

// Returns false if the manager is being destroyed.
bool ModelManager::Impl::Wait(milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  const MutexLock lock(mutex);
  while (!is_stopped && !is_woken && requests.empty() && wake.WaitUntil(mutex, deadline)) {
  }
  is_woken = false;
  return !is_stopped;
}

milliseconds ModelManager::Impl::UntilNextTick() const {
  const bool is_pending =
      absl::c_any_of(models, [](const auto& model) { return model.second.IsPending(); });
  if (is_pending) return std::min(Settle(), kShortPoll);
  return options.poll > milliseconds(0) ? options.poll : std::chrono::hours(1);
}

void ModelManager::Impl::Loop() {
  do {
    Tick();
    HandleRequests();
  } while (Wait(UntilNextTick()));
  HandleRequests();
}

void ModelManager::Impl::Tick() {
  for (auto& [name, model] : models) {
    if (IsStopped()) return;
    model.Sweep();
    const bool looks = options.poll > milliseconds(0) || !model.HasAvailable();
    if (looks) model.Look(Settle());
    LoadWanted(model);
  }
  Publish();
}

void ModelManager::Impl::LoadWanted(ModelVersions& model) {
  for (;;) {
    const int64_t version = model.NextToLoad(Clock::now());
    if (version < 0 || IsStopped()) break;
    model.BeginLoad(version);
    Publish();
    model.Load(version, options, pool);
    model.Unload();
    Publish();
  }
  model.Unload();
}

void ModelManager::Impl::Publish() {
  std::shared_ptr<const Models> before, after = std::make_shared<const Models>(models);
  {
    const MutexLock lock(mutex);
    before = std::exchange(published, after);
    changed.NotifyAll();
  }
  if (options.on_change) ReportChanges(*before, *after);
}

void ModelManager::Impl::ReportChanges(const Models& before, const Models& after) const {
  for (const auto& [name, model] : after) {
    const auto old = before.find(name);
    for (const auto& [number, version] : model.versions()) {
      const Version* was = nullptr;
      if (old != before.end() && old->second.versions().count(number) > 0)
        was = &old->second.versions().at(number);
      if (was == nullptr || was->state != version.state || was->error != version.error)
        options.on_change(name, {number, version.state, version.error});
    }
  }
  for (const auto& [name, model] : before) {
    if (after.count(name) > 0) continue;
    for (const auto& [number, version] : model.versions()) {
      if (version.state != VersionState::kEnd)
        options.on_change(name, {number, VersionState::kEnd, absl::OkStatus()});
    }
  }
}

void ModelManager::Impl::HandleRequests() {
  for (;;) {
    Request* request = nullptr;
    bool is_last = false;
    {
      const MutexLock lock(mutex);
      if (requests.empty()) return;
      request = requests.front();
      requests.pop_front();
      is_last = is_stopped;
    }
    absl::Status status =
        is_last ? absl::CancelledError("the server shuts down") : Reload(request->configs);
    const MutexLock lock(mutex);
    request->status = std::move(status);
    request->is_done = true;
    changed.NotifyAll();
  }
}

// Loads what is new beside what is served, and then replaces all models at once.
absl::Status ModelManager::Impl::Reload(const std::vector<ModelConfig>& configs) {
  Models next;
  for (const ModelConfig& config : configs) {
    const auto old = models.find(config.name);
    const bool is_known = old != models.end() && old->second.config().base_path == config.base_path;
    ModelVersions model = is_known ? old->second : ModelVersions(config);
    const bool is_same = is_known && model.config().versions == config.versions;
    model.set_config(config);
    if (!is_same) WEIR_RETURN_IF_ERROR(LoadNow(model));
    if (!options.allow_labels_of_unavailable_versions) WEIR_RETURN_IF_ERROR(CheckLabels(model));
    next.emplace(config.name, std::move(model));
  }
  models.swap(next);
  for (auto& [name, model] : models) model.Unload();
  Publish();
  return absl::OkStatus();
}

absl::Status ModelManager::Impl::LoadNow(ModelVersions& model) {
  const Clock::time_point deadline = Clock::now() + kMaxSettle;
  for (;;) {
    model.Look(Settle());
    for (int64_t version; (version = model.NextToLoad(Clock::now())) >= 0;) {
      model.Load(version, options, pool);
      WEIR_RETURN_IF_ERROR(model.Failure());
    }
    if (model.HasAvailable() && !model.IsPending()) return absl::OkStatus();
    if (!model.IsPending()) {
      return NotFound("No versions of servable ", model.config().name, " found under base path ",
                      model.config().base_path);
    }
    if (Clock::now() > deadline) return absl::DeadlineExceededError(WhyNotLoaded(model));
    std::this_thread::sleep_for(std::min(Settle(), milliseconds(100)));
    if (IsStopped()) return absl::CancelledError("the server shuts down");
  }
}

absl::StatusOr<std::unique_ptr<ModelManager>> ModelManager::Create(
    const std::vector<ModelConfig>& models, const ModelManagerOptions& options) {
  WEIR_RETURN_IF_ERROR(CheckModelConfigs(models));
  auto impl = std::make_unique<Impl>(options);
  impl->Start(models);
  return std::unique_ptr<ModelManager>(new ModelManager(std::move(impl)));
}

ModelManager::ModelManager(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ModelManager::~ModelManager() = default;

namespace {

// Whether waiting longer for a model is of no use.
bool IsDecided(const ModelVersions& model) {
  if (model.IsPending() && !model.HasAvailable()) return false;
  if (model.IsPending() && !CheckLabels(model).ok()) return false;
  return model.HasAvailable() || !model.Failure().ok();
}

}  // namespace

absl::Status ModelManager::WaitUntilLoaded(milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  const MutexLock lock(impl_->mutex);
  const auto is_decided = [&](const auto& model) { return IsDecided(model.second); };
  while (!absl::c_all_of(*impl_->published, is_decided)) {
    if (impl_->changed.WaitUntil(impl_->mutex, deadline) || Clock::now() < deadline) continue;
    std::vector<std::string> reasons;
    for (const auto& [name, model] : *impl_->published) {
      if (!IsDecided(model)) reasons.push_back(WhyNotLoaded(model));
    }
    return absl::DeadlineExceededError(
        absl::StrCat("models are not loaded: ", absl::StrJoin(reasons, "; ")));
  }
  for (const auto& [name, model] : *impl_->published) {
    if (!model.HasAvailable()) return model.Failure();
    if (!impl_->options.allow_labels_of_unavailable_versions)
      WEIR_RETURN_IF_ERROR(CheckLabels(model));
  }
  return absl::OkStatus();
}

// Returns the version that a request names by number or label; -1 for the largest.
absl::StatusOr<int64_t> ModelManager::Impl::VersionOf(const Models& all,
                                                      const ModelSpec& spec) const {
  if (spec.name.empty()) return InvalidArgument("ModelSpec has no name specified.");
  if (spec.label.empty()) return spec.version.value_or(-1);
  if (spec.version) return InvalidArgument("ModelSpec has both a version and a version label.");
  const auto model = all.find(spec.name);
  if (model != all.end()) {
    const std::map<std::string, int64_t>& labels = model->second.config().labels;
    const auto label = labels.find(spec.label);
    if (label != labels.end()) return label->second;
  }
  return InvalidArgument("Unrecognized servable version label: ", ShownName(spec.label));
}

absl::StatusOr<std::shared_ptr<const Servable>> ModelManager::Find(const ModelSpec& spec) const {
  const std::shared_ptr<const Models> all = impl_->Published();
  WEIR_ASSIGN_OR_RETURN(const int64_t wanted, impl_->VersionOf(*all, spec));
  const bool is_latest = wanted < 0 && !spec.version;
  const auto model = all->find(spec.name);
  if (model != all->end()) {
    for (const auto& [number, version] : model->second.versions()) {
      if (version.loaded != nullptr && (is_latest || number == wanted))
        return std::shared_ptr<const Servable>(version.loaded, &version.loaded->servable());
    }
  }
  const std::string name = ShownName(spec.name);
  const std::string request = is_latest ? absl::StrCat("Latest(", name, ")")
                                        : absl::StrCat("Specific(", name, ", ", wanted, ")");
  // Existing clients compare the text for an unknown model.
  if (model == all->end()) return NotFound("Servable not found for request: ", request);
  return NotFound("Servable not found for request: ", request, ". Available versions: {",
                  absl::StrJoin(Available(model->second), ", "), "}");
}

absl::StatusOr<NamedTensors> ModelManager::Run(const Servable& servable,
                                               const std::string& signature,
                                               const NamedTensors& inputs,
                                               const std::vector<std::string>& outputs,
                                               const RunOptions& options, Priority priority) {
  const LoadedVersion* const version = impl_->pool->Find(servable);
  return version != nullptr ? version->Run(signature, inputs, outputs, options, priority)
                            : servable.Run(signature, inputs, outputs, options);
}

absl::StatusOr<std::vector<VersionStatus>> ModelManager::Status(const ModelSpec& spec) const {
  const std::shared_ptr<const Models> all = impl_->Published();
  WEIR_ASSIGN_OR_RETURN(const int64_t wanted, impl_->VersionOf(*all, spec));
  const bool has_version = spec.version || !spec.label.empty();
  const auto model = all->find(spec.name);
  std::vector<VersionStatus> states;
  if (model != all->end()) {
    for (const auto& [number, version] : model->second.versions()) {
      if (!has_version || number == wanted)
        states.push_back({number, version.state, version.error});
    }
  }
  if (!states.empty()) return states;
  const std::string name = ShownName(spec.name);
  return has_version ? NotFound("Could not find version ", wanted, " of model ", name)
                     : NotFound("Could not find any versions of model ", name);
}

std::vector<std::string> ModelManager::models() const {
  std::vector<std::string> names;
  for (const auto& [name, model] : *impl_->Published()) names.push_back(name);
  return names;
}

absl::Status ModelManager::Reload(const std::vector<ModelConfig>& models) {
  WEIR_RETURN_IF_ERROR(CheckModelConfigs(models));
  Impl::Request request{models};
  const MutexLock lock(impl_->mutex);
  impl_->requests.push_back(&request);
  impl_->wake.NotifyAll();
  while (!request.is_done) impl_->changed.Wait(impl_->mutex);
  return request.status;
}

}  // namespace weir::serving
