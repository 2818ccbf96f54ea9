#include "tensorflow/c/c_api_experimental.h"
#include "weir/capi/objects.h"
#include "weir/proto/config.pb.h"

// What clients call and Weir does not need: second names of functions, functions that have no
// effect here, and those that are UNIMPLEMENTED.

using weir::capi::HaveAll;
using weir::capi::SetStatus;

TF_OperationDescription* TF_NewOperationLocked(TF_Graph* graph, const char* op_type,
                                               const char* oper_name) {
  return TF_NewOperation(graph, op_type, oper_name);
}

TF_Operation* TF_FinishOperationLocked(TF_OperationDescription* desc, TF_Status* status) {
  return TF_FinishOperation(desc, status);
}

void TF_EnableXLACompilation(TF_SessionOptions* options, unsigned char enable) {
  static_cast<void>(enable);
  HaveAll("TF_EnableXLACompilation", {options});
}

void TF_ImportGraphDefOptionsSetValidateColocationConstraints(TF_ImportGraphDefOptions* opts,
                                                              unsigned char enable) {
  static_cast<void>(enable);
  HaveAll("TF_ImportGraphDefOptionsSetValidateColocationConstraints", {opts});
}

void TF_InitMain(const char* usage, int* argc, char*** argv) {
  static_cast<void>(usage);
  HaveAll("TF_InitMain", {argc, argv});
}

TF_Buffer* TF_CreateConfig(unsigned char enable_xla_compilation,
                           unsigned char gpu_memory_allow_growth, unsigned int num_cpu_devices) {
  weir::proto::ConfigProto config;
  (*config.mutable_device_count())["CPU"] = static_cast<int32_t>(num_cpu_devices);
  config.mutable_gpu_options()->set_allow_growth(gpu_memory_allow_growth != 0);
  if (enable_xla_compilation != 0) {
    config.mutable_graph_options()->mutable_optimizer_options()->set_global_jit_level(
        weir::proto::OptimizerOptions::ON_1);
  }
  TF_Buffer* const buffer = TF_NewBuffer();
  weir::capi::SetBuffer(config.SerializeAsString(), buffer);
  return buffer;
}

void TF_RegisterFilesystemPlugin(const char* plugin_filename, TF_Status* status) {
  if (!HaveAll("TF_RegisterFilesystemPlugin", {plugin_filename}, status)) return;
  SetStatus(status, weir::Unimplemented("File systems of plug-ins (", plugin_filename,
                                        "): Weir reads the files of the system"));
}

TF_Library* TF_LoadPluggableDeviceLibrary(const char* library_filename, TF_Status* status) {
  if (!HaveAll("TF_LoadPluggableDeviceLibrary", {library_filename}, status)) return nullptr;
  SetStatus(status, weir::Unimplemented("Devices of plug-ins (", library_filename,
                                        "): backends of Weir are C++ (kernels/lib/backend.h)"));
  return nullptr;
}

void TF_DeletePluggableDeviceLibraryHandle(TF_Library* lib_handle) {
  TF_DeleteLibraryHandle(lib_handle);
}
