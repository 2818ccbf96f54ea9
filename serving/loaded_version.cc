#include "weir/serving/loaded_version.h"

#include <utility>

#include "weir/serving/warm_up.h"

namespace weir::serving {

LoadedVersion::LoadedVersion(std::shared_ptr<const Servable> servable,
                             const std::optional<BatchingOptions>& batching)
    : servable_(std::move(servable)) {
  if (!batching) return;
  for (const auto& [name, signature] : servable_->signatures()) {
    if (Batcher::CheckSignature(signature).ok())
      batchers_[name] = std::make_unique<Batcher>(*servable_, name, *batching);
  }
}

absl::StatusOr<NamedTensors> LoadedVersion::Run(const std::string& signature,
                                                const NamedTensors& inputs,
                                                const std::vector<std::string>& outputs,
                                                const RunOptions& options,
                                                Priority priority) const {
  Batcher* const batcher = FindBatcher(signature);
  return batcher != nullptr ? batcher->Run(inputs, outputs, options, priority)
                            : servable_->Run(signature, inputs, outputs, options);
}

absl::Status LoadedVersion::WarmUpBatches(const std::string& directory) const {
  if (batchers_.empty()) return absl::OkStatus();
  return WarmUp(directory, [this](const std::string& signature, const NamedTensors& inputs,
                                  const std::vector<std::string>& outputs) {
    Batcher* const batcher = FindBatcher(signature);
    return batcher != nullptr ? batcher->WarmUp(inputs, outputs) : absl::OkStatus();
  });
}

Batcher* LoadedVersion::FindBatcher(const std::string& signature) const {
  const auto batcher = batchers_.find(signature.empty() ? "serving_default" : signature);
  return batcher != batchers_.end() ? batcher->second.get() : nullptr;
}

VersionPool::VersionPool(std::function<void()> on_freed) : on_freed_(std::move(on_freed)) {}

std::shared_ptr<VersionPool> VersionPool::Create(std::function<void()> on_freed) {
  std::shared_ptr<VersionPool> pool(new VersionPool(std::move(on_freed)));
  pool->thread_ = std::thread([pool = pool.get()] { pool->Loop(); });
  return pool;
}

std::shared_ptr<const LoadedVersion> VersionPool::Share(
    const std::shared_ptr<VersionPool>& pool, std::unique_ptr<const LoadedVersion> version) {
  {
    const WriterLock lock(pool->versions_mutex_);
    pool->versions_[&version->servable()] = version.get();
  }
  return std::shared_ptr<const LoadedVersion>(version.release(), [pool](const LoadedVersion* v) {
    pool->Release(std::unique_ptr<const LoadedVersion>(v));
  });
}

const LoadedVersion* VersionPool::Find(const Servable& servable) const {
  const ReaderLock lock(versions_mutex_);
  const auto found = versions_.find(&servable);
  return found != versions_.end() ? found->second : nullptr;
}

void VersionPool::Release(std::unique_ptr<const LoadedVersion> version) {
  {
    const WriterLock lock(versions_mutex_);
    versions_.erase(&version->servable());
  }
  const MutexLock lock(mutex_);
  if (is_stopped_) return;  // destroys the version
  released_.push_back(std::move(version));
  changed_.NotifyAll();
}

void VersionPool::Loop() {
  for (;;) {
    std::vector<std::unique_ptr<const LoadedVersion>> versions;
    bool is_last = false;
    {
      const MutexLock lock(mutex_);
      while (released_.empty() && !is_stopped_) changed_.Wait(mutex_);
      versions.swap(released_);
      is_last = is_stopped_;
    }
    versions.clear();
    if (is_last) return;
    on_freed_();
  }
}

void VersionPool::Stop() {
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

}  // namespace weir::serving
