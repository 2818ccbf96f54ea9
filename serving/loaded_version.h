#ifndef WEIR_SERVING_LOADED_VERSION_H_
#define WEIR_SERVING_LOADED_VERSION_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/core/tensor/mutex.h"
#include "weir/serving/batching.h"
#include "weir/serving/servable.h"

// Versions in memory, which a manager and the requests that use them share.
namespace weir::serving {

// A servable with the batchers of its signatures.
class LoadedVersion {
 public:
  // Batches the signatures that can be batched, if there are options.
  LoadedVersion(std::shared_ptr<const Servable> servable,
                const std::optional<BatchingOptions>& batching);

  const Servable& servable() const { return *servable_; }
  // Calls a signature, in a batch if it has a batcher. Thread-safe.
  absl::StatusOr<NamedTensors> Run(const std::string& signature, const NamedTensors& inputs,
                                   const std::vector<std::string>& outputs,
                                   const RunOptions& options, Priority priority) const;
  // Compiles the steps of the allowed batch sizes, for the warm-up requests in the version's
  // directory. Returns the first error, as WarmUp of warm_up.h.
  absl::Status WarmUpBatches(const std::string& directory) const;

 private:
  Batcher* FindBatcher(const std::string& signature) const;

  const std::shared_ptr<const Servable> servable_;
  std::map<std::string, std::unique_ptr<Batcher>> batchers_;  // by signature; use servable_
};

// Owns the versions of a manager on behalf of the requests that hold them. The last one to let go
// of a version may be a request; freeing gigabytes takes longer than a request should. So versions
// are destroyed on a thread of the pool. Thread-safe.
class VersionPool {
 public:
  // `on_freed` is called on the thread of the pool after a version has been destroyed.
  static std::shared_ptr<VersionPool> Create(std::function<void()> on_freed);
  // Stop has been called.
  ~VersionPool() = default;

  // Shares the version.
  static std::shared_ptr<const LoadedVersion> Share(const std::shared_ptr<VersionPool>& pool,
                                                    std::unique_ptr<const LoadedVersion> version);
  // Returns the version with this servable, which the caller holds; null if it is none of the
  // pool's.
  const LoadedVersion* Find(const Servable& servable) const;
  // Destroys the versions that nobody holds, and ends the thread. A version that is still held is
  // destroyed by whoever lets go of it.
  void Stop();

 private:
  explicit VersionPool(std::function<void()> on_freed);
  void Release(std::unique_ptr<const LoadedVersion> version);
  void Loop();

  const std::function<void()> on_freed_;
  mutable SharedMutex versions_mutex_;
  absl::flat_hash_map<const Servable*, const LoadedVersion*> versions_
      ABSL_GUARDED_BY(versions_mutex_);
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::unique_ptr<const LoadedVersion>> released_ ABSL_GUARDED_BY(mutex_);
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace weir::serving

#endif  // WEIR_SERVING_LOADED_VERSION_H_
