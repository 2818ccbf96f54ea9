#ifndef WEIR_TESTS_SERVING_LIB_WATCHED_MODEL_H_
#define WEIR_TESTS_SERVING_LIB_WATCHED_MODEL_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/mutex.h"
#include "weir/serving/servable.h"
#include "weir/session/weir.h"

namespace weir::serving {

// The inputs and outputs of a graph, by name.
struct TestSignature {
  std::map<std::string, Output> inputs, outputs;
};
// Writes a SavedModel whose only signature is the one that `build` returns, and loads it. If
// `directory` is not null, it is set to the model's. A failure ends the program.
std::shared_ptr<const Servable> MakeServable(const std::function<TestSignature(Graph&)>& build,
                                             const SessionOptions& session = {},
                                             std::string* directory = nullptr);

// A model that a test can hold and watch: y = 2 x and z = x + 1, of a matrix x of any size. A step
// with a row that begins with kBadRow is INVALID_ARGUMENT. Thread-safe.
class WatchedModel {
 public:
  static constexpr float kBadRow = -1000;

  WatchedModel();
  const Servable& servable() const { return *servable_; }
  std::shared_ptr<const Servable> shared() const { return servable_; }
  // Those that load the model from its directory, so that a test can watch that copy too.
  const KernelRegistry& kernels() const { return kernels_; }
  // The SavedModel's.
  const std::string& directory() const { return directory_; }

  // From now on, steps that begin wait until Release, or until they are cancelled.
  void Hold();
  void Release();
  // Waits until this many steps have begun.
  void WaitForSteps(size_t count);
  // The first element of each row of each step, in the order in which the steps began.
  std::vector<std::vector<float>> steps();
  // The steps that were cancelled while they were held.
  int num_cancelled();

 private:
  absl::Status Watch(KernelContext& c);

  KernelRegistry kernels_;
  std::string directory_;
  std::shared_ptr<const Servable> servable_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::vector<float>> steps_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  int num_cancelled_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::serving

#endif  // WEIR_TESTS_SERVING_LIB_WATCHED_MODEL_H_
