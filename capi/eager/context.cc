#include "weir/capi/eager/context.h"

#include "weir/core/graph/scope.h"
#include "weir/kernels/lib/backend.h"

// Contexts: prepared ops, and what is kept for each thread. functions.cc has the functions.

using weir::MutexLock;
using weir::capi::Callable;
using weir::capi::EagerExecutor;
using weir::capi::Program;
using weir::capi::Signature;

absl::StatusOr<std::unique_ptr<TFE_Context>> TFE_Context::Make(const TFE_ContextOptions& options) {
  if (options.use_tfrt) return weir::Unimplemented("TFRT is not supported");
  std::unique_ptr<TFE_Context> context(new TFE_Context);
  context->options_ = options.session.options;
  context->options_.backends = std::make_shared<weir::BackendRegistry>();  // only the CPU
  context->options_.own_resources = std::make_shared<weir::ResourceMap>();
  context->policy_ = options.policy;
  const MutexLock lock(context->program_mutex_);
  WEIR_ASSIGN_OR_RETURN(context->program_, Program::Make(context->options_));
  context->ops_ = &context->program_->ops();
  WEIR_ASSIGN_OR_RETURN(context->default_executor_, EagerExecutor::Make(options.is_async, 0));
  return context;
}

// Resources with threads of their own are destroyed before the sessions whose functions they call.
TFE_Context::~TFE_Context() {
  for (const auto& executor : AllExecutors()) executor->WaitForAll().IgnoreError();
  default_executor_.reset();
  callables_.clear();
  for (const auto& variable : options_.own_resources->All<weir::VariableState>()) variable->Clear();
  options_.own_resources->Reset({});
}

absl::StatusOr<const weir::OpSpec*> TFE_Context::FindOp(absl::string_view name) {
  const weir::OpSpec* op = ops_->Find(name);
  if (op != nullptr) return op;
  const MutexLock lock(program_mutex_);
  if (functions_.contains(name)) op = program_->FindFunction(name);
  if (op != nullptr) return op;
  return weir::NotFound("'", name, "' is neither a type of a primitive operation nor a name of a ",
                        "function registered in this binary. Make sure the operation or function ",
                        "is registered in the binary running in this process.");
}

absl::StatusOr<std::shared_ptr<const Callable>> TFE_Context::Find(const Signature& signature) {
  const auto find = [&]() -> std::shared_ptr<const Callable> {
    const MutexLock lock(mutex_);
    const auto it = callables_.find(signature);
    return it == callables_.end() ? nullptr : it->second;
  };
  if (auto known = find()) return known;
  const MutexLock lock(program_mutex_);
  if (auto known = find()) return known;  // another thread has prepared it
  WEIR_ASSIGN_OR_RETURN(auto callable, Program::Prepare(program_, signature));
  const MutexLock callables_lock(mutex_);
  callables_.emplace(signature, callable);
  return callable;
}

void TFE_Context::Forget() {
  for (const auto& executor : AllExecutors()) executor->WaitForAll().IgnoreError();
  decltype(callables_) forgotten;
  {
    const MutexLock lock(mutex_);
    forgotten.swap(callables_);
  }
  const MutexLock lock(threads_mutex_);
  thread_executors_.clear();
  has_thread_executors_ = false;
}

absl::Status TFE_Context::CheckDevice(absl::string_view name) {
  if (name.empty()) return absl::OkStatus();
  const absl::StatusOr<weir::DeviceName> wanted = weir::DeviceName::Parse(name);
  const MutexLock lock(program_mutex_);
  for (const std::string& text : program_->DeviceNames()) {
    const absl::StatusOr<weir::DeviceName> device = weir::DeviceName::Parse(text);
    if (wanted.ok() && wanted->type && device.ok() && wanted->Matches(*device))
      return absl::OkStatus();
  }
  return weir::InvalidArgument(name, " unknown device.");
}

TF_DeviceList* TFE_Context::ListDevices(TF_Status* status) {
  const MutexLock lock(program_mutex_);
  return TF_SessionListDevices(program_->session(), status);
}

std::shared_ptr<EagerExecutor> TFE_Context::ThreadExecutor() {
  if (!has_thread_executors_.load(std::memory_order_acquire)) return default_executor_;
  const MutexLock lock(threads_mutex_);
  const auto it = thread_executors_.find(std::this_thread::get_id());
  const auto executor = it == thread_executors_.end() ? nullptr : it->second.lock();
  return executor == nullptr ? default_executor_ : executor;
}

void TFE_Context::SetThreadExecutor(const std::shared_ptr<EagerExecutor>& executor) {
  const MutexLock lock(threads_mutex_);
  std::erase_if(thread_executors_, [](const auto& other) { return other.second.expired(); });
  thread_executors_[std::this_thread::get_id()] = executor;
  has_thread_executors_ = true;
}

std::vector<std::shared_ptr<EagerExecutor>> TFE_Context::AllExecutors() {
  std::vector<std::shared_ptr<EagerExecutor>> all;
  if (default_executor_ != nullptr) all.push_back(default_executor_);
  const MutexLock lock(threads_mutex_);
  for (const auto& [thread, executor] : thread_executors_) {
    if (auto alive = executor.lock()) all.push_back(std::move(alive));
  }
  return all;
}

TFE_ContextDevicePlacementPolicy TFE_Context::ThreadPolicy() {
  const MutexLock lock(threads_mutex_);
  const auto it = thread_policies_.find(std::this_thread::get_id());
  return it == thread_policies_.end() ? policy_ : it->second;
}

void TFE_Context::SetThreadPolicy(TFE_ContextDevicePlacementPolicy policy) {
  const MutexLock lock(threads_mutex_);
  thread_policies_[std::this_thread::get_id()] = policy;
}
