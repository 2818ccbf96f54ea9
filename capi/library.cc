#include <dlfcn.h>

#include <map>
#include <tuple>

#include "absl/strings/match.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"
#include "weir/capi/objects.h"
#include "weir/capi/plugins.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/op_def.pb.h"

// Libraries of plug-ins.

struct TF_Library {
  const std::string op_list;  // serialized
};

namespace weir::capi {

namespace {

// One function of each source that plug-ins call: a program that is linked statically, and loads
// plug-ins, has these sources though it calls none of them itself.
[[gnu::used]] constexpr std::tuple kCalledByPlugins{
    &TF_NewOpDefinitionBuilder,       &TF_NewShapeHandle, &TF_NewKernelBuilder,
    &TF_OpKernelConstruction_GetName, &TF_GetInput,       &TF_GetStepId};

// Returns the loader's error, with what to do about a library made for TensorFlow's own library.
absl::Status LoadError(absl::string_view why) {
  const bool needs_tensorflow = absl::StrContains(why, "libtensorflow_framework") ||
                                absl::StrContains(why, "libtensorflow_cc") ||
                                absl::StrContains(why, "N10tensorflow") ||
                                absl::StrContains(why, "N3tsl");
  if (!needs_tensorflow) return absl::NotFoundError(why);
  return NotFound(why, ". This library needs TensorFlow's own library, as all with ops in C++ do, ",
                  "and cannot be loaded: Weir loads ops and kernels that are registered by the ",
                  "functions of tensorflow/c/ops.h and tensorflow/c/kernels.h");
}

// Loads a library and returns the serialized OpList of what it registers.
absl::StatusOr<std::string> Load(const char* filename) {
  static Mutex mutex;  // one at a time: what is registered meanwhile is the library's
  static auto* const loaded = new std::map<void*, std::string>;
  const MutexLock lock(mutex);
  const size_t num_before = Plugins::Instance().OpsFrom(0).size();
  void* const handle = dlopen(filename, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return LoadError(why == nullptr ? "unknown error of dlopen" : why);
  }
  const auto [it, is_new] = loaded->try_emplace(handle);
  if (!is_new) return it->second;
  const auto initialize = reinterpret_cast<void (*)()>(dlsym(handle, "TF_InitKernel"));
  if (initialize != nullptr) initialize();
  proto::OpList list;
  for (const OpSpec* op : Plugins::Instance().OpsFrom(num_before)) OpToProto(*op, list.add_op());
  it->second = list.SerializeAsString();
  return it->second;
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;

TF_Library* TF_LoadLibrary(const char* library_filename, TF_Status* status) {
  if (!HaveAll("TF_LoadLibrary", {library_filename}, status)) return nullptr;
  absl::StatusOr<std::string> op_list = weir::capi::Load(library_filename);
  weir::capi::SetStatus(status, op_list.status());
  return op_list.ok() ? new TF_Library{*std::move(op_list)} : nullptr;
}

TF_Buffer TF_GetOpList(TF_Library* lib_handle) {
  if (!HaveAll("TF_GetOpList", {lib_handle})) return {nullptr, 0, nullptr};
  return {lib_handle->op_list.data(), lib_handle->op_list.size(), nullptr};
}

// Keeps the library loaded: its code may be in use.
void TF_DeleteLibraryHandle(TF_Library* lib_handle) { delete lib_handle; }
