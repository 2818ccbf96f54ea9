#include "weir/session/passes/tiled_subplan.h"
#include "weir/core/tensor/mutex.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/compile.h"
#include "weir/session/plan/internal_nodes.h"

#include <atomic>
#include <cstring>

namespace weir {

namespace {

// Slices run in parallel, so each runs on a single thread.
PlanEnvironment WithOneThread(const PlanEnvironment& env) {
  return {env.graph,   env.graph_mutex, env.kernels,
          env.devices, env.resources,   ThreadPool::ForTiles(),
          env.options, env.placement,   env.functions};
}

}  // namespace

const KernelDef& TiledSubplan::Def() {
  static const KernelDef* const def = [] {
    auto* const kernel = new KernelDef;
    kernel->op = "_TiledSubplan";
    return kernel;
  }();
  return *def;
}

TiledSubplan::TiledSubplan(std::unique_ptr<const Plan> plan, const PlanEnvironment& env,
                           Layout layout)
    : layout_(std::move(layout)),
      graph_(InternalOps()),
      executor_(std::move(plan), ThreadPool::ForTiles(), env.resources) {}

absl::StatusOr<std::shared_ptr<TiledSubplan>> TiledSubplan::Make(
    PlanGraph slice, absl::Span<const Shape> feed_shapes, const PlanEnvironment& env, Layout layout,
    const SubplanSignature& signature) {
  const PlanEnvironment single_threaded = WithOneThread(env);
  WEIR_RETURN_IF_ERROR(Specialize(slice, {single_threaded, feed_shapes}));
  for (size_t k = 0; k < layout.results.size(); ++k) {
    Shape expected = layout.results[k];
    expected.set_dim(0, layout.rows);
    const PlanValue& v = slice.fetches[k];
    const Shape& actual = slice.nodes[v.node].shapes[v.output];
    if (actual != expected) {
      return absl::InternalError(absl::StrCat("A slice of ", layout.rows, " rows has shape ",
                                              actual.ToString(), " instead of ",
                                              expected.ToString()));
    }
  }
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<const Plan> plan,
                        CompileSubplan(std::move(slice), feed_shapes, single_threaded));
  std::shared_ptr<TiledSubplan> step(new TiledSubplan(std::move(plan), env, std::move(layout)));
  WEIR_ASSIGN_OR_RETURN(step->node_, MakeSubplanNode(signature, step->graph_));
  return step;
}

absl::Status TiledSubplan::Run(KernelContext& c) {
  std::vector<Tensor*> results;
  for (size_t k = 0; k < layout_.results.size(); ++k) {
    WEIR_ASSIGN_OR_RETURN(Tensor* const result,
                          c.AllocateOutput(static_cast<int>(k), layout_.results[k]));
    results.push_back(result);
  }
  StepInfo step = c.step();
  step.pool = &ThreadPool::ForTiles();
  std::atomic<bool> failed{false};
  Mutex mutex;
  absl::Status status;
  const auto run = [&](int slice) {
    if (failed.load(std::memory_order_relaxed)) return;
    const absl::Status s = RunSlice(c, step, slice, results);
    if (s.ok()) return;
    const MutexLock lock(mutex);
    if (!failed.exchange(true)) status = s;
  };
  const auto slices = static_cast<int>(layout_.results[0].dim(0) / layout_.rows);
  c.pool().ForEach(slices, run);
  return status;
}

absl::Status TiledSubplan::RunSlice(const KernelContext& c, const StepInfo& step, int64_t slice,
                                    absl::Span<Tensor* const> results) {
  const int64_t begin = slice * layout_.rows, end = begin + layout_.rows;
  Tensors args, slice_results;
  for (size_t k = 0; k < layout_.sliced.size(); ++k) {
    const Tensor& whole = c.input(static_cast<int>(k));
    args.push_back(layout_.sliced[k] ? whole.Slice(begin, end) : whole);
  }
  WEIR_RETURN_IF_ERROR(executor_.RunWithin(step, args, &slice_results));
  for (size_t k = 0; k < results.size(); ++k) {
    Tensor rows = results[k]->Slice(begin, end);
    if (slice_results[k].shape() != rows.shape()) {
      return absl::InternalError(absl::StrCat("A slice has shape ",
                                              slice_results[k].shape().ToString(), " instead of ",
                                              rows.shape().ToString()));
    }
    std::memcpy(rows.raw(), slice_results[k].raw(), rows.num_bytes());
  }
  return absl::OkStatus();
}

}  // namespace weir
