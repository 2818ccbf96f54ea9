#include "weir/capi/eager/context.h"

// Functions of contexts. The library of a graph only grows, so a function that is removed is hidden
// from clients, and its definition stays. Another one of its name then needs a new program.

using weir::MutexLock;
using weir::capi::HaveAll;
using weir::capi::SetStatus;

absl::Status TFE_Context::AddFunction(TF_Function* function) {
  const std::string name = TF_FunctionName(function);
  const MutexLock lock(program_mutex_);
  absl::Status added = program_->AddFunction(function);
  if (!added.ok() && !functions_.contains(name) && program_->FindFunction(name) != nullptr) {
    WEIR_RETURN_IF_ERROR(ReplaceProgram());
    added = program_->AddFunction(function);
  }
  WEIR_RETURN_IF_ERROR(added);
  ++functions_[name];
  return absl::OkStatus();
}

absl::Status TFE_Context::ReplaceProgram() {
  WEIR_ASSIGN_OR_RETURN(auto program, weir::capi::Program::Make(options_));
  WEIR_RETURN_IF_ERROR(program->CopyFunctions(*program_, [&](const std::string& name) {
    program_mutex_.AssertHeld();
    return functions_.contains(name);
  }));
  old_programs_.push_back(std::exchange(program_, std::move(program)));
  const MutexLock lock(mutex_);
  callables_.clear();
  return absl::OkStatus();
}

absl::Status TFE_Context::RemoveFunction(const std::string& name) {
  const MutexLock lock(program_mutex_);
  const auto it = functions_.find(name);
  if (it == functions_.end())
    return weir::InvalidArgument("Tried to remove non-existent function '", name, "'.");
  if (--it->second == 0) functions_.erase(it);
  return absl::OkStatus();
}

bool TFE_Context::HasFunction(const std::string& name) {
  const MutexLock lock(program_mutex_);
  return functions_.contains(name);
}

void TFE_ContextAddFunctionDef(TFE_Context* ctx, const char* serialized_function_def, size_t size,
                               TF_Status* status) {
  if (!HaveAll("TFE_ContextAddFunctionDef", {ctx, serialized_function_def}, status)) return;
  TF_Function* const function = TF_FunctionImportFunctionDef(serialized_function_def, size, status);
  if (function == nullptr)
    return SetStatus(status, weir::InvalidArgument("Invalid FunctionDef proto"));
  SetStatus(status, ctx->AddFunction(function));
  TF_DeleteFunction(function);
}

void TFE_ContextAddFunction(TFE_Context* ctx, TF_Function* function, TF_Status* status) {
  if (HaveAll("TFE_ContextAddFunction", {ctx, function}, status))
    SetStatus(status, ctx->AddFunction(function));
}

void TFE_ContextRemoveFunction(TFE_Context* ctx, const char* name, TF_Status* status) {
  if (HaveAll("TFE_ContextRemoveFunction", {ctx, name}, status))
    SetStatus(status, ctx->RemoveFunction(name));
}

unsigned char TFE_ContextHasFunction(TFE_Context* ctx, const char* name) {
  return HaveAll("TFE_ContextHasFunction", {ctx, name}) && ctx->HasFunction(name) ? 1 : 0;
}
