#ifndef WEIR_SESSION_PASSES_PASSES_H_
#define WEIR_SESSION_PASSES_PASSES_H_

#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/session/passes/lowering.h"
#include "weir/session/plan/pass_report.h"
#include "weir/session/plan/plan_environment.h"
#include "weir/session/plan/plan_graph.h"

// The passes that compile a graph into a plan, in one table. Running, timing, listing (`weir
// passes`), disabling (SessionOptions::disable), dumping, verifying and searching all read this
// table; nothing else registers a pass.
namespace weir {

enum class Phase : uint8_t {
  kPrepare,   // once for each set of feeds, fetches and targets
  kOptimize,  // once for each set of feed shapes
  // The same, and for the subplans that the passes before have cut out. These passes may leave the
  // nodes in any order without cycles: lowering chooses one.
  kFuse,
  // The same, from the graph to instructions (lowering.h). These passes change no edges.
  kLower,
};
absl::string_view PhaseName(Phase phase);

struct PassContext {
  const PlanEnvironment& env;
  // By feed; unknown shapes are allowed. For a resource handle, the shape of its variable. Empty in
  // Phase::kPrepare.
  absl::Span<const Shape> feed_shapes = {};
  const PlanRequest* request = nullptr;  // in Phase::kPrepare
  Lowering* lowering = nullptr;          // in Phase::kLower
};

// One pass: a function from plan graph to plan graph, which lies in `session/passes/<name>.cc`.
// Most are named after their functions.
struct Pass {
  absl::string_view name;
  Phase phase;
  absl::StatusOr<PlanChanges> (*run)(PlanGraph& plan, const PassContext& context);
  absl::string_view doc;
  // Required passes cannot be disabled.
  bool required = false;
  absl::string_view group = "";  // a name that disables several passes
  // True if the pass runs in a session with these options that does not disable it; null: always.
  bool (*by_default)(const SessionOptions& options) = nullptr;
};
// All passes, in the order in which they run.
absl::Span<const Pass> Passes();

// An optimization that is not a pass but a part of one, or of kernels.
struct PassSwitch {
  absl::string_view name;
  absl::string_view part_of;
  absl::string_view doc;
};
absl::Span<const PassSwitch> PassSwitches();

// The names that SessionOptions::disable accepts: of passes that are not required, of switches and
// of groups.
std::set<std::string> OptimizationNames();
// Replaces groups by their passes and deprecated names by the current ones. An unknown name is
// INVALID_ARGUMENT naming the closest ones.
absl::StatusOr<std::set<std::string>> ResolveOptimizations(const std::set<std::string>& names);

// Runs the passes of these phases, and reports each to SessionOptions::on_pass.
absl::Status RunPasses(Phase first, Phase last, PlanGraph& plan, const PassContext& context);

// ---- the passes

absl::Status Prune(PlanGraph& plan, const PassContext& context);
// What Prune does, for code that needs no plan to run.
absl::StatusOr<PlanGraph> PruneGraph(const PlanRequest& request, const Graph& graph);
absl::Status FindLoops(PlanGraph& plan);
absl::Status Place(PlanGraph& plan, const PlanEnvironment& env);
absl::Status OrderInitializers(PlanGraph& plan);
absl::Status OrderReads(PlanGraph& plan, const PlanEnvironment& env);
absl::Status InsertReads(PlanGraph& plan);
absl::Status InsertCopies(PlanGraph& plan, const PlanEnvironment& env);
void AnalyzeDeadness(PlanGraph& plan);
absl::Status CheckUnknownOps(const PlanGraph& plan);
absl::Status CheckRaces(const PlanGraph& plan);
void HoistConstants(PlanGraph& plan);
void StructureLoops(PlanGraph& plan);
absl::Status InlineFunctions(PlanGraph& plan, const PlanEnvironment& env);
absl::Status CheckInlinedOps(const PlanGraph& plan);
absl::Status Specialize(PlanGraph& plan, const PassContext& context);
void PruneControlEdges(PlanGraph& plan, const PassContext& context);
void RemoveNoOps(PlanGraph& plan);
void SimplifyAlgebra(PlanGraph& plan);
absl::Status ReduceStrength(PlanGraph& plan, const PlanEnvironment& env);
void EliminateCommonSubexpressions(PlanGraph& plan);
void EliminateDeadNodes(PlanGraph& plan, const PlanEnvironment& env);
absl::Status CacheStepInvariants(PlanGraph& plan, const PlanEnvironment& env);
absl::Status TileBatch(PlanGraph& plan, const PlanEnvironment& env);
absl::Status FuseScalarLoops(PlanGraph& plan, const PlanEnvironment& env);
absl::Status SinkTiles(PlanGraph& plan, const PlanEnvironment& env);
absl::Status SinkSlices(PlanGraph& plan, const PlanEnvironment& env);
void FuseEpilogues(PlanGraph& plan, const PlanEnvironment& env);
void FuseSeparableConvs(PlanGraph& plan, const PlanEnvironment& env);
absl::Status FuseLayerNorm(PlanGraph& plan, const PlanEnvironment& env);
absl::Status FuseSoftmax(PlanGraph& plan, const PlanEnvironment& env);
void FuseAttention(PlanGraph& plan, const PlanEnvironment& env);
void FuseElementwise(PlanGraph& plan, const PlanEnvironment& env);
absl::Status FuseUpdates(PlanGraph& plan, const PlanEnvironment& env);
absl::Status DeferMatMuls(PlanGraph& plan, const PlanEnvironment& env);
absl::Status MakeKernels(PlanGraph& plan, const PlanEnvironment& env);
// INVALID_ARGUMENT if an input of a loop depends on an output of the same loop.
absl::Status OrderNodes(PlanGraph& plan, const PlanEnvironment& env, Lowering& lowering);
void AssignSlots(PlanGraph& plan, const PlanEnvironment& env, Lowering& lowering);
void MakeTasks(PlanGraph& plan, const PlanEnvironment& env, Lowering& lowering);
void PlanMemory(PlanGraph& plan, const PlanEnvironment& env, Lowering& lowering);
void ReleaseValues(PlanGraph& plan, const PlanEnvironment& env, Lowering& lowering);
// Moves the kernels out of the graph.
absl::Status EmitInstructions(PlanGraph& plan, const PlanEnvironment& env, Lowering& lowering);

}  // namespace weir

#endif  // WEIR_SESSION_PASSES_PASSES_H_
