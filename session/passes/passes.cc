#include "weir/session/passes/passes.h"

#include <algorithm>
#include <chrono>
#include <type_traits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "weir/core/graph/closest_names.h"
#include "weir/session/plan/verify_plan.h"

namespace weir {

namespace {

// Gives the functions of passes one form. Most of them need only a part of the context, and many
// cannot fail.
template <auto kPass>
absl::StatusOr<PlanChanges> Run(PlanGraph& plan, const PassContext& context) {
  plan.changes = {};
  const auto call = [&]() -> decltype(auto) {
    if constexpr (std::is_invocable_v<decltype(kPass), PlanGraph&, const PassContext&>) {
      return kPass(plan, context);
    } else if constexpr (std::is_invocable_v<decltype(kPass), PlanGraph&, const PlanEnvironment&>) {
      return kPass(plan, context.env);
    } else if constexpr (std::is_invocable_v<decltype(kPass), PlanGraph&, const PlanEnvironment&,
                                             Lowering&>) {
      return kPass(plan, context.env, *context.lowering);
    } else {
      return kPass(plan);
    }
  };
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
  } else {
    WEIR_RETURN_IF_ERROR(call());
  }
  return std::exchange(plan.changes, {});
}

bool ForbidsRaces(const SessionOptions& options) { return options.forbid_races; }

constexpr absl::string_view kFusion = "fusion";

// clang-format off
constexpr Pass kPasses[] = {
    {"prune", Phase::kPrepare, Run<Prune>,
     "Keeps the nodes that fetches and targets need.", true},
    {"find_loops", Phase::kPrepare, Run<FindLoops>,
     "Assigns each node to its v1 while loop.", true},
    {"place", Phase::kPrepare, Run<Place>,
     "Chooses a device and a kernel for each node; colocates.", true},
    {"order_initializers", Phase::kPrepare, Run<OrderInitializers>,
     "Orders initializers after those of the variables that they read.", true},
    {"order_reads", Phase::kPrepare, Run<OrderReads>,
     "Gives users of a shared read the value of the writes that they run after.", true},
    {"insert_reads", Phase::kPrepare, Run<InsertReads>,
     "Reads references where ops take values.", true},
    {"insert_copies", Phase::kPrepare, Run<InsertCopies>,
     "Copies tensors that cross devices.", true},
    {"analyze_deadness", Phase::kPrepare, Run<AnalyzeDeadness>,
     "Finds the nodes that may be in a branch not taken.", true},
    {"check_unknown_ops", Phase::kPrepare, Run<CheckUnknownOps>,
     "Rejects steps that are certain to run an unknown op.", true},
    {"check_races", Phase::kPrepare, Run<CheckRaces>,
     "Rejects unordered accesses of a variable (SessionOptions::forbid_races).", true, "",
     ForbidsRaces},
    {"hoist_constants", Phase::kPrepare, Run<HoistConstants>,
     "Hoists constants out of branches.", true},

    {"structure_loops", Phase::kOptimize, Run<StructureLoops>,
     "Turns v1 while loops into structured loops."},
    {"inline_functions", Phase::kOptimize, Run<InlineFunctions>,
     "Inlines called functions; functional while loops become structured loops."},
    {"check_inlined_ops", Phase::kOptimize, Run<CheckInlinedOps>,
     "Rejects inlined functions that are certain to run an unknown op.", true},
    {"specialize", Phase::kOptimize, Run<Specialize>,
     "Infers shapes and folds constants.", true},
    {"prune_control_edges", Phase::kOptimize, Run<PruneControlEdges>,
     "Removes control edges that order no effects."},
    {"remove_no_ops", Phase::kOptimize, Run<RemoveNoOps>,
     "Bypasses nodes that forward their input."},
    {"simplify_algebra", Phase::kOptimize, Run<SimplifyAlgebra>,
     "Removes neutral operands, double negations and inverse transposes."},
    {"reduce_strength", Phase::kOptimize, Run<ReduceStrength>,
     "Turns powers with constant exponents into products, roots and reciprocals."},
    {"eliminate_common_subexpressions", Phase::kOptimize, Run<EliminateCommonSubexpressions>,
     "Computes equal values once."},
    {"eliminate_dead_nodes", Phase::kOptimize, Run<EliminateDeadNodes>,
     "Removes nodes that nothing uses.", true},
    {"cache_step_invariants", Phase::kOptimize, Run<CacheStepInvariants>,
     "Computes values that depend only on weights once, not in each step."},
    {"tile_batch", Phase::kOptimize, Run<TileBatch>,
     "Runs layers on one slice of the batch after the other, in the caches."},

    {"fuse_scalar_loops", Phase::kFuse, Run<FuseScalarLoops>,
     "Fuses structured loops over scalars into one node.", false, kFusion},
    {"sink_tiles", Phase::kFuse, Run<SinkTiles>,
     "Moves elementwise ops before the Tile or broadcast of their input.", false, kFusion},
    {"sink_slices", Phase::kFuse, Run<SinkSlices>,
     "Slices the factor of a matrix product instead of the product.", false, kFusion},
    {"fuse_epilogues", Phase::kFuse, Run<FuseEpilogues>,
     "Fuses biases, batch norms and activations into GEMM and convolution.", false, kFusion},
    {"fuse_separable_convs", Phase::kFuse, Run<FuseSeparableConvs>,
     "Fuses depthwise separable convolutions.", false, kFusion},
    {"fuse_layer_norm", Phase::kFuse, Run<FuseLayerNorm>,
     "Fuses layer norms that are decomposed into small ops.", false, kFusion},
    {"fuse_softmax", Phase::kFuse, Run<FuseSoftmax>,
     "Fuses softmaxes that are decomposed into small ops.", false, kFusion},
    {"fuse_attention", Phase::kFuse, Run<FuseAttention>,
     "Fuses the products, transposes and softmax of attention.", false, kFusion},
    {"fuse_elementwise", Phase::kFuse, Run<FuseElementwise>,
     "Fuses elementwise neighbors, and the reduction after them.", false, kFusion},
    {"fuse_updates", Phase::kFuse, Run<FuseUpdates>,
     "Writes fused elementwise results into their variables in place.", false, kFusion},
    {"defer_matmuls", Phase::kFuse, Run<DeferMatMuls>,
     "Multiplies the products that a loop accumulates in large batches.", false, kFusion},

    {"make_kernels", Phase::kLower, Run<MakeKernels>,
     "Creates the kernels of the nodes that are left.", true},
    {"order_nodes", Phase::kLower, Run<OrderNodes>,
     "Chooses one order; writers come after readers where possible.", true},
    {"assign_slots", Phase::kLower, Run<AssignSlots>,
     "Numbers the values, those of a loop next to each other.", true},
    {"make_tasks", Phase::kLower, Run<MakeTasks>,
     "Partitions the order into tasks that may run in parallel.", true},
    {"plan_memory", Phase::kLower, Run<PlanMemory>,
     "Assigns values to offsets in one arena for each step."},
    {"release_values", Phase::kLower, Run<ReleaseValues>,
     "Releases values outside the arena after their last use.", true},
    {"emit_instructions", Phase::kLower, Run<EmitInstructions>,
     "Emits the instructions that the executor runs.", true},
};

constexpr PassSwitch kSwitches[] = {
    {"constant_folding", "specialize", "Evaluates nodes whose inputs are known."},
    {"reduce_waits", "eliminate_dead_nodes", "Does not compute nodes whose outputs nothing uses and that others only wait for."},
    {"partition_tasks", "make_tasks", "Runs independent heavy nodes in parallel."},
    {"in_place", "plan_memory", "Writes results over inputs that nothing uses any more."},
    {"fast_algorithms", "kernels", "Winograd's algorithm for convolutions, which rounds differently."},
};
// clang-format on

// The names before release 0.2; accepted for one release.
constexpr std::pair<absl::string_view, absl::string_view> kDeprecated[] = {
    {"arithmetic_identities", "simplify_algebra"},
    {"batch_slices", "tile_batch"},
    {"common_subexpressions", "eliminate_common_subexpressions"},
    {"inlined_functions", "inline_functions"},
    {"lasting_values", "cache_step_invariants"},
    {"memory_plan", "plan_memory"},
    {"needless_waits", "prune_control_edges"},
    {"no_ops", "remove_no_ops"},
    {"parallel_tasks", "partition_tasks"},
    {"raised_loops", "structure_loops"},
    {"unused_values", "reduce_waits"},
};

}  // namespace

absl::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kPrepare:
      return "prepare";
    case Phase::kOptimize:
      return "optimize";
    case Phase::kFuse:
      return "fuse";
    case Phase::kLower:
      return "lower";
  }
  return "";
}

absl::Span<const Pass> Passes() { return kPasses; }
absl::Span<const PassSwitch> PassSwitches() { return kSwitches; }

std::set<std::string> OptimizationNames() {
  std::set<std::string> names;
  for (const Pass& pass : kPasses) {
    if (pass.required) continue;
    names.emplace(pass.name);
    if (!pass.group.empty()) names.emplace(pass.group);
  }
  for (const PassSwitch& one : kSwitches) names.emplace(one.name);
  return names;
}

absl::StatusOr<std::set<std::string>> ResolveOptimizations(const std::set<std::string>& names) {
  const std::set<std::string> known = OptimizationNames();
  std::set<std::string> resolved;
  for (std::string name : names) {
    for (const auto& [old, current] : kDeprecated) {
      if (name == old) name = std::string(current);
    }
    if (!known.contains(name)) {
      const std::vector<std::string> close =
          ClosestNames(name, std::vector<std::string>(known.begin(), known.end()));
      return InvalidArgument(
          "unknown optimization '", name, "'; ",
          close.empty() ? absl::StrCat("valid names: ", absl::StrJoin(known, ", "))
                        : absl::StrCat("did you mean '", absl::StrJoin(close, "' or '"), "'?"));
    }
    bool is_group = false;
    for (const Pass& pass : kPasses) {
      if (pass.group != name) continue;
      resolved.emplace(pass.name);
      is_group = true;
    }
    if (!is_group) resolved.insert(std::move(name));
  }
  return resolved;
}

absl::Status RunPasses(Phase first, Phase last, PlanGraph& plan, const PassContext& context) {
  using Clock = std::chrono::steady_clock;
  const SessionOptions& options = context.env.options;
  for (const Pass& pass : kPasses) {
    if (pass.phase < first || pass.phase > last) continue;
    if (!pass.required && !context.env.enabled(pass.name)) continue;
    if (pass.by_default != nullptr && !pass.by_default(options)) continue;
    const int num_nodes = kVerifiesPlans ? plan.NumNodes() : 0;
    const bool is_observed = options.on_pass && !context.env.is_subplan;
    const Clock::time_point start = is_observed ? Clock::now() : Clock::time_point();
    WEIR_ASSIGN_OR_RETURN(const PlanChanges changes, pass.run(plan, context));
    if constexpr (kVerifiesPlans) {
      WEIR_RETURN_IF_ERROR(VerifyPlan(plan, pass.name, pass.phase < Phase::kFuse));
      if (plan.NumNodes() != num_nodes + changes.difference()) {
        return Internal("pass ", pass.name, " reports a difference of ", changes.difference(),
                        " nodes, but the plan had ", num_nodes, " and has ", plan.NumNodes());
      }
    }
    if (!is_observed) continue;
    const int64_t ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    options.on_pass(
        {pass.name, PhaseName(pass.phase), pass.doc, ns, changes, plan.NumNodes(), plan});
  }
  return absl::OkStatus();
}

}  // namespace weir
