#include "weir/tests/serving/lib/watched_model.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "weir/core/tensor/cancellation.h"
#include "weir/tests/io/test_files.h"

namespace weir::serving {

namespace {

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "test model: %s\n", status.ToString().c_str());
  std::abort();
}

}  // namespace

std::shared_ptr<const Servable> MakeServable(const std::function<TestSignature(Graph&)>& build,
                                             const SessionOptions& options,
                                             std::string* directory_out) {
  Graph g;
  const TestSignature signature = build(g);
  const Operation init = GlobalVariablesInitializer(g);
  absl::StatusOr<Session> session = Session::Create(g, options);
  Require(session.status());
  Require(session->Run(init));
  const std::string directory = testing::MakeTempDirectory("model") + "/1";
  const std::map<std::string, Signature> signatures = {
      {"serving_default", PredictSignature(signature.inputs, signature.outputs)}};
  Require(WriteSavedModel(*session, g, directory, signatures));
  auto servable = Servable::Load("test", 1, directory, {.session = options});
  Require(servable.status());
  if (directory_out != nullptr) *directory_out = directory;
  return *servable;
}

// The kernel of CheckNumerics is the one that waits: passes do not remove the op.
WatchedModel::WatchedModel() : kernels_(&BuiltinKernels()) {
  kernels_.Add("CheckNumerics", kCpu, [this](const KernelInit&) -> absl::StatusOr<Kernel> {
    return Kernel([this](KernelContext& c) { return Watch(c); });
  });
  const auto build = [](Graph& g) -> TestSignature {
    const Output x = Placeholder(g, DT_FLOAT, {-1, -1}, "x");
    const Output watched = CheckNumerics(x, "watched");
    return {{{"x", x}}, {{"y", watched * 2.f}, {"z", watched + 1.f}}};
  };
  servable_ = MakeServable(build, {.kernels = &kernels_}, &directory_);
}

absl::Status WatchedModel::Watch(KernelContext& c) {
  const Tensor& x = c.input(0);
  std::vector<float> rows;
  for (int64_t i = 0; i < x.dim(0); ++i)
    rows.push_back(x.dim(1) == 0 ? 0 : x.data<float>()[i * x.dim(1)]);
  const MutexLock lock(mutex_);
  steps_.push_back(rows);
  changed_.NotifyAll();
  while (held_ && !c.cancellation()->cancelled())
    changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
  if (c.cancellation()->cancelled()) {
    ++num_cancelled_;
    changed_.NotifyAll();
    return c.cancellation()->status();
  }
  for (const float first : rows) {
    if (first == kBadRow) return InvalidArgument("a bad row");
  }
  c.SetOutput(0, x);
  return absl::OkStatus();
}

void WatchedModel::Hold() {
  const MutexLock lock(mutex_);
  held_ = true;
}

void WatchedModel::Release() {
  const MutexLock lock(mutex_);
  held_ = false;
  changed_.NotifyAll();
}

void WatchedModel::WaitForSteps(size_t count) {
  const MutexLock lock(mutex_);
  while (steps_.size() < count) changed_.Wait(mutex_);
}

std::vector<std::vector<float>> WatchedModel::steps() {
  const MutexLock lock(mutex_);
  return steps_;
}

int WatchedModel::num_cancelled() {
  const MutexLock lock(mutex_);
  return num_cancelled_;
}

}  // namespace weir::serving
