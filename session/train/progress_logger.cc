#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "weir/session/train/step_timer.h"

namespace weir {

namespace {

// Accepts a floating-point or integer scalar.
absl::StatusOr<double> AsDouble(const Tensor& value, const std::string& name) {
  if (value.num_elements() == 1) {
    switch (value.dtype()) {
      case DT_FLOAT:
        return value.data<float>()[0];
      case DT_DOUBLE:
        return value.data<double>()[0];
      case DT_HALF:
        return static_cast<double>(value.data<half>()[0]);
      case DT_BFLOAT16:
        return static_cast<double>(value.data<bfloat16>()[0]);
      default:
        if (IsInteger(value.dtype())) return static_cast<double>(value.IntAt(0));
    }
  }
  return InvalidArgument("ProgressLogger: '", name, "' is ", value.Description(),
                         ", not a numeric scalar");
}

class ProgressLoggerHook final : public SessionHook {
 public:
  explicit ProgressLoggerHook(ProgressLoggerOptions options)
      : options_(std::move(options)),
        in_place_(!options_.print && isatty(STDOUT_FILENO) != 0),
        period_(options_.period.value_or(Period{.seconds = in_place_ ? 0.1 : 1.0})),
        timer_(period_) {
    for (const LoggedValue& v : options_.values) fetches_.push_back(v.value);
  }
  ~ProgressLoggerHook() override { EndLine(); }

  absl::Status Begin(Graph& graph) override {
    WEIR_RETURN_IF_ERROR(CheckPeriod(period_, "ProgressLogger"));
    return RequireGlobalStep(graph, "ProgressLogger");
  }

  absl::Status AfterCreateSession(HookContext& context) override {
    WEIR_ASSIGN_OR_RETURN(first_step_, context.GlobalStep());
    start_ = SteadyNow();
    return absl::OkStatus();
  }

  absl::Status BeforeRun(HookContext& context, HookRequest* request) override {
    WEIR_ASSIGN_OR_RETURN(const int64_t step, context.GlobalStep());
    due_ = timer_.Due(step + 1) || step + 1 == options_.last_step;
    if (due_) request->fetches = fetches_;
    return absl::OkStatus();
  }

  absl::Status AfterRun(HookContext& context, absl::Span<const Tensor> values) override {
    if (!due_) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(const int64_t step, context.GlobalStep());
    timer_.Restart(step);
    WEIR_ASSIGN_OR_RETURN(const std::string line, Line(step, values));
    if (options_.print) {
      options_.print(line);
    } else {
      std::printf("%s%s%s", in_place_ ? "\r\x1b[K" : "", line.c_str(), in_place_ ? "" : "\n");
      std::fflush(stdout);
      line_open_ = in_place_;
    }
    return absl::OkStatus();
  }

  absl::Status End(HookContext&) override {
    EndLine();
    return absl::OkStatus();
  }

 private:
  void EndLine() {
    if (line_open_) std::printf("\n");
    line_open_ = false;
  }

  absl::StatusOr<std::string> Line(int64_t step, absl::Span<const Tensor> values) const {
    const double rate =
        static_cast<double>(step - first_step_) / std::max(SteadyNow() - start_, 1e-9);
    std::string line = absl::StrCat("step ", step);
    if (options_.last_step > 0) absl::StrAppend(&line, "/", options_.last_step);
    for (size_t i = 0; i < values.size(); ++i) {
      const LoggedValue& shown = options_.values[i];
      WEIR_ASSIGN_OR_RETURN(const double value, AsDouble(values[i], shown.name));
      absl::StrAppend(&line, "  ", shown.name, " ",
                      shown.format ? shown.format(value) : absl::StrFormat("%.4f", value));
    }
    absl::StrAppendFormat(&line, "  %.0f steps/s", rate);
    if (options_.last_step > 0) {
      const double left = static_cast<double>(std::max<int64_t>(options_.last_step - step, 0));
      absl::StrAppendFormat(&line, "  ETA %.0f s", left / std::max(rate, 1e-9));
    }
    return line;
  }

  const ProgressLoggerOptions options_;
  const bool in_place_;
  const Period period_;
  StepTimer timer_;
  Outputs fetches_;
  int64_t first_step_ = 0;
  double start_ = 0;
  bool due_ = false, line_open_ = false;
};

}  // namespace

std::shared_ptr<SessionHook> ProgressLogger(ProgressLoggerOptions options) {
  return std::make_shared<ProgressLoggerHook>(std::move(options));
}

}  // namespace weir
