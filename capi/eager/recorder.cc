#include "weir/capi/eager/recorder.h"

#include <algorithm>
#include <cstdio>

#include "weir/capi/eager/handle.h"
#include "weir/proto/config.pb.h"
#include "weir/rpc/lib/run_metadata.h"

namespace weir::capi {

Recorder::Recorder() : record_(std::make_unique<proto::RunMetadata>()) {}
Recorder::~Recorder() = default;

absl::Status Recorder::Run(const std::string& op, const Step& step, absl::Span<const Tensor> feeds,
                           Tensors* fetches) {
  if (prints_.load(std::memory_order_relaxed))
    std::fprintf(stderr, "Executing op %s in device %s\n", op.c_str(), kCpuName);
  return is_enabled_.load(std::memory_order_relaxed) ? RunAndRecord(step, feeds, fetches)
                                                     : step.Run(feeds, fetches);
}

absl::Status Recorder::RunAndRecord(const Step& step, absl::Span<const Tensor> feeds,
                                    Tensors* fetches) {
  proto::RunOptions options;
  options.set_trace_level(proto::RunOptions::FULL_TRACE);
  rpc::RunReport report(options);
  Cancellation cancellation;
  const absl::Status status =
      step.Run(feeds, fetches, report.options(cancellation, std::chrono::milliseconds(0)));
  proto::RunMetadata run;
  report.WriteStatistics({}, &run);
  const MutexLock lock(mutex_);
  auto& devices = *record_->mutable_step_stats()->mutable_dev_stats();
  for (const proto::DeviceStepStats& stats : run.step_stats().dev_stats()) {
    const auto known = std::find_if(devices.begin(), devices.end(), [&](const auto& device) {
      return device.device() == stats.device();
    });
    if (known == devices.end()) {
      *devices.Add() = stats;
    } else {
      known->mutable_node_stats()->MergeFrom(stats.node_stats());
    }
  }
  return status;
}

std::string Recorder::Take() {
  const MutexLock lock(mutex_);
  const std::string bytes = record_->SerializeAsString();
  record_->Clear();
  return bytes;
}

}  // namespace weir::capi
