#ifndef WEIR_CAPI_EAGER_CONTEXT_H_
#define WEIR_CAPI_EAGER_CONTEXT_H_

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/c/eager/c_api_experimental.h"
#include "weir/capi/eager/executor.h"
#include "weir/capi/eager/program.h"
#include "weir/capi/eager/recorder.h"

struct TFE_ContextOptions {
  TF_SessionOptions session{weir::capi::DefaultOptions()};
  bool is_async = false, use_tfrt = false;
  TFE_ContextDevicePlacementPolicy policy = TFE_DEVICE_PLACEMENT_SILENT;
};

struct TFE_Executor {
  std::shared_ptr<weir::capi::EagerExecutor> executor;
};

// A context. The program, and the functions that clients see, change under a lock that is held
// while an op is prepared; ops that are prepared are found under another. Steps hold none.
struct TFE_Context {
  static absl::StatusOr<std::unique_ptr<TFE_Context>> Make(const TFE_ContextOptions& options);
  ~TFE_Context();

  const weir::OpRegistry& ops() const { return *ops_; }
  // Returns the op or the function; NOT_FOUND, in TensorFlow's words, if there is neither.
  absl::StatusOr<const weir::OpSpec*> FindOp(absl::string_view name);
  // Returns the prepared op of a signature, and prepares it for the first time.
  absl::StatusOr<std::shared_ptr<const weir::capi::Callable>> Find(
      const weir::capi::Signature& signature);
  // Waits for the executors, and forgets them and the prepared ops.
  void Forget();

  // Add and remove functions; see functions.cc.
  absl::Status AddFunction(TF_Function* function);
  absl::Status RemoveFunction(const std::string& name);
  bool HasFunction(const std::string& name);

  // INVALID_ARGUMENT, in TensorFlow's words, if there is no device of this name.
  absl::Status CheckDevice(absl::string_view name);
  TF_DeviceList* ListDevices(TF_Status* status);

  // The executor of the calling thread, and all of them.
  std::shared_ptr<weir::capi::EagerExecutor> ThreadExecutor();
  void SetThreadExecutor(const std::shared_ptr<weir::capi::EagerExecutor>& executor);
  std::vector<std::shared_ptr<weir::capi::EagerExecutor>> AllExecutors();

  // The policy of the calling thread.
  TFE_ContextDevicePlacementPolicy ThreadPolicy();
  void SetThreadPolicy(TFE_ContextDevicePlacementPolicy policy);

  // Shared with executions, which may outlive the context.
  const std::shared_ptr<weir::capi::Recorder> recorder = std::make_shared<weir::capi::Recorder>();
  std::atomic<int> open_steps{0};  // of the client
  std::atomic<int64_t> num_anonymous_variables{0};

 private:
  TFE_Context() = default;
  absl::Status ReplaceProgram() ABSL_EXCLUSIVE_LOCKS_REQUIRED(program_mutex_);

  weir::SessionOptions options_;  // with the resources that all programs share
  TFE_ContextDevicePlacementPolicy policy_ = TFE_DEVICE_PLACEMENT_SILENT;
  std::shared_ptr<weir::capi::EagerExecutor> default_executor_;
  const weir::OpRegistry* ops_ = nullptr;

  weir::Mutex program_mutex_;
  std::shared_ptr<weir::capi::Program> program_ ABSL_GUARDED_BY(program_mutex_);
  // Programs that have been replaced: iterators may still call their functions.
  std::vector<std::shared_ptr<weir::capi::Program>> old_programs_ ABSL_GUARDED_BY(program_mutex_);
  // The functions that clients see, and how often each was added.
  std::map<std::string, int, std::less<>> functions_ ABSL_GUARDED_BY(program_mutex_);

  weir::Mutex mutex_;
  absl::flat_hash_map<weir::capi::Signature, std::shared_ptr<const weir::capi::Callable>> callables_
      ABSL_GUARDED_BY(mutex_);

  weir::Mutex threads_mutex_;
  std::atomic<bool> has_thread_executors_{false};
  std::map<std::thread::id, std::weak_ptr<weir::capi::EagerExecutor>> thread_executors_
      ABSL_GUARDED_BY(threads_mutex_);
  std::map<std::thread::id, TFE_ContextDevicePlacementPolicy> thread_policies_
      ABSL_GUARDED_BY(threads_mutex_);
};

#endif  // WEIR_CAPI_EAGER_CONTEXT_H_
