#include "weir/capi/eager/program.h"

#include "weir/core/io/function_library.h"
#include "weir/proto/function.pb.h"

namespace weir::capi {

absl::StatusOr<std::shared_ptr<Program>> Program::Make(const SessionOptions& options) {
  std::shared_ptr<Program> program(new Program);
  TF_Graph& graph = *program->graph_;
  const MutexLock lock(graph.mutex);
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(*graph.graph, options));
  program->session_ = Register(&graph, std::make_unique<Session>(std::move(session)));
  program->ops_ = &graph.graph->ops();
  program->kernels_ = options.kernels;
  program->allow_soft_placement_ = options.allow_soft_placement;
  return program;
}

Program::~Program() {
  if (session_ != nullptr) TF_DeleteSession(session_, nullptr);
  TF_DeleteGraph(graph_);
}

std::vector<std::string> Program::DeviceNames() const {
  std::vector<std::string> names;
  for (const Device* device : session_->session->devices()) names.push_back(device->text());
  return names;
}

const OpSpec* Program::FindFunction(absl::string_view name) const {
  const MutexLock lock(graph_->mutex);
  const auto& library = graph_->graph->functions();
  if (library == nullptr) return nullptr;
  const absl::StatusOr<const OpSpec*> op = library->FindOp(name);
  return op.ok() ? *op : nullptr;
}

absl::Status Program::AddFunction(const TF_Function* function) {
  TF_Status status;
  TF_GraphCopyFunction(graph_, function, nullptr, &status);
  return status.status;
}

absl::Status Program::CopyFunctions(const Program& from,
                                    const std::function<bool(const std::string&)>& is_wanted) {
  proto::FunctionDefLibrary wanted;
  {
    const MutexLock lock(from.graph_->mutex);
    const auto& library = from.graph_->graph->functions();
    if (library == nullptr) return absl::OkStatus();
    for (const std::string& name : library->Names()) {
      if (is_wanted(name)) *wanted.add_function() = *library->FindDef(name);
    }
  }
  return graph_->Change([&](Graph& graph) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(auto library, FunctionLibrary::Extend(graph.functions(), wanted));
    graph.set_functions(std::move(library));
    return absl::OkStatus();
  });
}

}  // namespace weir::capi
