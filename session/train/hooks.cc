#include "weir/session/train/hooks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/framework/variables.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/train/step_timer.h"

namespace weir {

namespace {

class CheckpointSaverHook final : public SessionHook {
 public:
  explicit CheckpointSaverHook(CheckpointSaverOptions options)
      : options_(std::move(options)), timer_(options_.period) {}

  absl::Status Begin(Graph& graph) override {
    WEIR_RETURN_IF_ERROR(CheckPeriod(options_.period, "CheckpointSaver"));
    return RequireGlobalStep(graph, "CheckpointSaver");
  }

  absl::Status AfterCreateSession(HookContext& context) override {
    WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<Saver> saver, SaverOf(context));
    WEIR_RETURN_IF_ERROR(MakeDirectories(options_.directory));
    if (!graph_written_) WEIR_RETURN_IF_ERROR(WriteGraph(context, saver->def()));
    graph_written_ = true;
    WEIR_ASSIGN_OR_RETURN(const int64_t step, context.GlobalStep());
    return Save(context, step, options_.mode);
  }

  absl::Status AfterRun(HookContext& context, absl::Span<const Tensor>) override {
    WEIR_ASSIGN_OR_RETURN(const int64_t step, context.GlobalStep());
    return timer_.Due(step) ? Save(context, step, options_.mode) : absl::OkStatus();
  }

  absl::Status End(HookContext& context) override {
    WEIR_ASSIGN_OR_RETURN(const int64_t step, context.GlobalStep());
    WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<Saver> saver, SaverOf(context));
    // A checkpoint that could not be written is no reason not to write the last one.
    absl::Status status = saver->Wait();
    if (!status.ok() || saved_step_ != step) status.Update(Save(context, step, SaveMode::kSync));
    return status;
  }

 private:
  absl::StatusOr<std::shared_ptr<Saver>> SaverOf(HookContext& context) const {
    if (options_.saver != nullptr) return options_.saver;
    if (context.scaffold().saver != nullptr) return context.scaffold().saver;
    return FailedPrecondition("CheckpointSaver: no saver, since the graph has no variables");
  }

  absl::Status WriteGraph(HookContext& context, const SaverDef& saver) const {
    const Graph& graph = context.session().graph();
    WEIR_RETURN_IF_ERROR(
        WriteFileAtomically(JoinPath(options_.directory, "graph.pbtxt"), GraphToText(graph)));
    WEIR_ASSIGN_OR_RETURN(EventWriter* const events, context.Events(options_.directory));
    WEIR_RETURN_IF_ERROR(events->AddGraph(SerializeGraph(graph)));
    proto::MetaGraphDef meta;
    ExportMetaGraph(graph, {.saver = saver}, &meta);
    return events->AddMetaGraph(meta.SerializeAsString());
  }

  absl::Status Save(HookContext& context, int64_t step, SaveMode mode) {
    WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<Saver> saver, SaverOf(context));
    timer_.Restart(step);
    if (mode == SaveMode::kAsyncOrSkip && saver->is_saving()) return absl::OkStatus();
    SaveOptions save{.global_step = step, .mode = mode, .exact_resume = options_.exact_resume};
    if (options_.metric) {
      WEIR_ASSIGN_OR_RETURN(save.metric, options_.metric(context.session()));
    }
    const std::string path = JoinPath(options_.directory, options_.basename);
    WEIR_RETURN_IF_ERROR(saver->Save(context.session(), path, save).status());
    saved_step_ = step;
    return absl::OkStatus();
  }

  const CheckpointSaverOptions options_;
  StepTimer timer_;
  std::optional<int64_t> saved_step_;
  bool graph_written_ = false;
};

class SummarySaverHook final : public SessionHook {
 public:
  explicit SummarySaverHook(SummarySaverOptions options)
      : options_(std::move(options)), timer_(options_.period) {}

  absl::Status Begin(Graph& graph) override {
    WEIR_RETURN_IF_ERROR(CheckPeriod(options_.period, "SummarySaver"));
    return RequireGlobalStep(graph, "SummarySaver");
  }

  absl::Status BeforeRun(HookContext& context, HookRequest* request) override {
    const Output op =
        options_.summary_op.valid() ? options_.summary_op : context.scaffold().summary_op;
    if (!op.valid()) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(const int64_t step, context.GlobalStep());
    if (timer_.Due(step + 1)) request->fetches = {op};
    return absl::OkStatus();
  }

  absl::Status AfterRun(HookContext& context, absl::Span<const Tensor> values) override {
    if (values.empty()) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(const int64_t step, context.GlobalStep());
    timer_.Restart(step);
    if (values[0].dtype() != DT_STRING || values[0].num_elements() != 1)
      return InvalidArgument("SummarySaver: the summary must be a string scalar, not ",
                             values[0].Description());
    WEIR_ASSIGN_OR_RETURN(EventWriter* const events, context.Events(options_.directory));
    return events->AddSummary(values[0].scalar<std::string>(), step);
  }

  absl::Status End(HookContext& context) override {
    WEIR_ASSIGN_OR_RETURN(EventWriter* const events, context.Events(options_.directory));
    return events->Flush();
  }

 private:
  const SummarySaverOptions options_;
  StepTimer timer_;
};

class StepCounterHook final : public SessionHook {
 public:
  explicit StepCounterHook(StepCounterOptions options)
      : options_(std::move(options)), timer_(options_.period) {}

  absl::Status Begin(Graph& graph) override {
    WEIR_RETURN_IF_ERROR(CheckPeriod(options_.period, "StepCounter"));
    WEIR_RETURN_IF_ERROR(RequireGlobalStep(graph, "StepCounter"));
    tag_ = GetGlobalStep(graph).op_name() + "/sec";
    return absl::OkStatus();
  }

  absl::Status AfterRun(HookContext& context, absl::Span<const Tensor>) override {
    WEIR_ASSIGN_OR_RETURN(const int64_t step, context.GlobalStep());
    if (!timer_.Due(step)) return absl::OkStatus();
    const std::optional<StepTimer::Elapsed> elapsed = timer_.Restart(step);
    if (!elapsed) return absl::OkStatus();
    const double rate = static_cast<double>(elapsed->steps) / std::max(elapsed->seconds, 1e-9);
    const std::string line = absl::StrFormat("%s: %g", tag_, rate);
    options_.print ? options_.print(line) : void(std::fprintf(stderr, "%s\n", line.c_str()));
    if (options_.directory.empty()) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(EventWriter* const events, context.Events(options_.directory));
    return events->AddScalar(tag_, static_cast<float>(rate), step);
  }

 private:
  const StepCounterOptions options_;
  StepTimer timer_;
  std::string tag_;
};

class StopAtStepHook final : public SessionHook {
 public:
  explicit StopAtStepHook(const StopAtStepOptions& options)
      : num_steps_(options.num_steps), last_step_(options.last_step) {}

  absl::Status Begin(Graph& graph) override {
    if (!num_steps_ && !last_step_)
      return InvalidArgument("StopAtStep: One of num_steps or last_step must be specified.");
    if (num_steps_ && last_step_)
      return InvalidArgument("StopAtStep: Only one of num_steps or last_step can be specified.");
    return RequireGlobalStep(graph, "StopAtStep");
  }

  absl::Status AfterCreateSession(HookContext& context) override {
    WEIR_ASSIGN_OR_RETURN(const int64_t step, context.GlobalStep());
    if (!last_step_) last_step_ = step + *num_steps_;
    if (step >= *last_step_) context.RequestStop();
    return absl::OkStatus();
  }

  absl::Status AfterRun(HookContext& context, absl::Span<const Tensor>) override {
    WEIR_ASSIGN_OR_RETURN(const int64_t step, context.GlobalStep());
    if (step >= *last_step_) context.RequestStop();
    return absl::OkStatus();
  }

 private:
  const std::optional<int64_t> num_steps_;
  std::optional<int64_t> last_step_;
};

bool HasNan(const Tensor& t) {
  const auto any = [](const auto& values) {
    return std::any_of(values.begin(), values.end(),
                       [](auto v) { return std::isnan(static_cast<double>(v)); });
  };
  switch (t.dtype()) {
    case DT_FLOAT:
      return any(t.flat<float>());
    case DT_DOUBLE:
      return any(t.flat<double>());
    case DT_HALF:
      return any(t.flat<half>());
    case DT_BFLOAT16:
      return any(t.flat<bfloat16>());
    default:
      return false;
  }
}

class NanGuardHook final : public SessionHook {
 public:
  NanGuardHook(Output loss, bool fail) : loss_(loss), fail_(fail) {}

  absl::Status Begin(Graph&) override {
    if (loss_.valid() && IsFloating(loss_.dtype())) return absl::OkStatus();
    return InvalidArgument("NanGuard: the tensor ", loss_.valid() ? loss_.name() : "(invalid)",
                           " is not of a floating-point type");
  }
  absl::Status BeforeRun(HookContext&, HookRequest* request) override {
    request->fetches = {loss_};
    return absl::OkStatus();
  }
  absl::Status AfterRun(HookContext& context, absl::Span<const Tensor> values) override {
    if (!HasNan(values[0])) return absl::OkStatus();
    if (fail_) {
      return InvalidArgument("NaN loss during training: Model diverged with loss = NaN. (",
                             loss_.name(), ")");
    }
    std::fprintf(stderr, "weir: Model diverged with loss = NaN. (%s)\n", loss_.name().c_str());
    context.RequestStop();
    return absl::OkStatus();
  }

 private:
  const Output loss_;
  const bool fail_;
};

}  // namespace

std::shared_ptr<SessionHook> CheckpointSaver(CheckpointSaverOptions options) {
  return std::make_shared<CheckpointSaverHook>(std::move(options));
}
std::shared_ptr<SessionHook> SummarySaver(SummarySaverOptions options) {
  return std::make_shared<SummarySaverHook>(std::move(options));
}
std::shared_ptr<SessionHook> StepCounter(StepCounterOptions options) {
  return std::make_shared<StepCounterHook>(std::move(options));
}
std::shared_ptr<SessionHook> StopAtStep(StopAtStepOptions options) {
  return std::make_shared<StopAtStepHook>(options);
}
std::shared_ptr<SessionHook> NanGuard(Output loss, bool fail) {
  return std::make_shared<NanGuardHook>(loss, fail);
}

absl::Status FinalOps::End(HookContext& context) {
  WEIR_ASSIGN_OR_RETURN(values_, context.session().Run(feeds_, fetches_));
  return absl::OkStatus();
}

}  // namespace weir
