#include "weir/kernels/math/fused_elementwise.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/kernels/lib/non_temporal.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/variable_access.h"
#include "weir/kernels/math/tile_program.h"

// _FusedElementwise: a sequence of elementwise ops, computed tile by tile
// (kernels/math/tile_program.h).
//
// _FusedUpdate: the same, with results that are new values of variables. A variable that the
// program reads is an argument that is overwritten in place. So Adam's moments, decomposed into
// small ops, are updated in place, like those of ResourceApplyAdam: new tensors would double the
// memory traffic of a step. The same holds for a weight that other ops of the step have read, if
// all of them are done: then only the variable and the step reference its value, the latter for
// this node.
namespace weir {

namespace {

// A tile's results may alias the same elements of an argument.
void RunTiles(ThreadPool& pool, const TileProgram& program, const TileLayout& layout,
              absl::FunctionRef<const void*(int)> argument, absl::Span<char* const> results,
              bool streams) {
  const int64_t n = layout.result.num_elements();
  const size_t size = program.element_size();
  // Large tiles are for tensors with several of them per thread.
  const bool large = layout.is_single_pipeline && n >= 4 * TileProgram::kPipelineTile &&
                     (!streams || non_temporal::IsAligned(results[0], 0));
  const int64_t tile = large ? TileProgram::kPipelineTile : program.TileSize(layout, streams);
  const auto run = [&](int64_t begin, int64_t end) {
    TileRunner runner(program, layout, argument, std::min(tile, end - begin), streams);
    char* to[kMaxFusedResults];
    for (int64_t i = begin; i < end; i += tile) {
      for (size_t k = 0; k < results.size(); ++k)
        to[k] = results[k] + static_cast<size_t>(i) * size;
      runner.Run(i, std::min(tile, end - i), {to, results.size()});
    }
    runner.Finish();
    if (streams) non_temporal::Fence();
  };
  if (n <= tile) {
    run(0, n);
  } else {
    pool.ParallelFor(n, program.cost(), run, tile);
  }
}

struct FusedElementwise {
  std::shared_ptr<const TileProgram> program;
  std::shared_ptr<const TileLayout> planned;

  absl::Status operator()(KernelContext& c) const {
    std::shared_ptr<const TileLayout> made;
    WEIR_ASSIGN_OR_RETURN(const TileLayout* const layout,
                          program->LayoutFor(c, planned.get(), &made));
    const int num_results = program->num_results();
    char* results[kMaxFusedResults];
    for (int k = 0; k < num_results; ++k) {
      Tensor* out = c.PlannedOutput(k, layout->result);
      if (out == nullptr) {
        WEIR_ASSIGN_OR_RETURN(out, c.AllocateOutput(k, layout->result));
      }
      results[k] = static_cast<char*>(out->raw());
    }
    const int64_t n = layout->result.num_elements();
    if (n == 0) return absl::OkStatus();
    const bool streams =
        non_temporal::Pays(static_cast<size_t>(n * num_results) * program->element_size());
    RunTiles(
        c.pool(), *program, *layout, [&](int k) { return c.input(k).raw(); },
        {results, static_cast<size_t>(num_results)}, streams);
    return absl::OkStatus();
  }
};

struct FusedUpdate {
  std::shared_ptr<const TileProgram> program;
  std::shared_ptr<const TileLayout> planned;
  DataType type;
  std::vector<bool> reads;  // whether the program reads the variable, by variable

  absl::Status operator()(KernelContext& c) const {
    const int num_variables = static_cast<int>(reads.size());
    WEIR_ASSIGN_OR_RETURN(const LockedVariables variables,
                          LockedVariables::Lock(c, num_variables, type));
    // Validates everything before it changes anything.
    std::vector<Shape> shapes;
    for (int i = 0; i < num_variables; ++i) {
      if (!reads[i]) continue;
      WEIR_RETURN_IF_ERROR(variables.CheckInitialized(c, i));
      shapes.push_back(variables[i].value().shape());
    }
    for (int k = num_variables; k < c.num_inputs(); ++k) shapes.push_back(c.input(k).shape());
    std::shared_ptr<const TileLayout> made;
    WEIR_ASSIGN_OR_RETURN(const TileLayout* const layout,
                          program->LayoutFor(shapes, planned.get(), &made));
    for (int i = 0; i < num_variables; ++i) {
      const bool is_ref = c.node().input_type(i) != DT_RESOURCE;
      WEIR_RETURN_IF_ERROR(
          CheckAssignable(variables[i], layout->result, is_ref, /*validate_shape=*/true));
    }
    const void* arguments[kMaxFusedArguments];
    char* results[kMaxFusedResults];
    std::vector<Tensor> values(reads.size());  // newly allocated values
    int argument = 0;
    for (int i = 0; i < num_variables; ++i) {
      const Tensor& now = variables[i].value();
      if (reads[i]) arguments[argument++] = now.raw();
      const bool in_place = now.shape() == layout->result &&
                            (reads[i] ? now.OwnsBufferAlone() : IsReadHereLast(c, now));
      if (!in_place) {
        WEIR_ASSIGN_OR_RETURN(values[i],
                              Tensor::Allocate(c.device().allocator(), type, layout->result));
      }
      Tensor result = in_place ? now : values[i];
      results[i] = static_cast<char*>(result.raw());
    }
    for (int k = num_variables; k < c.num_inputs(); ++k) arguments[argument++] = c.input(k).raw();
    if (layout->result.num_elements() > 0) {
      RunTiles(
          c.pool(), *program, *layout, [&](int k) { return arguments[k]; }, {results, reads.size()},
          /*streams=*/false);
    }
    for (int i = 0; i < num_variables; ++i) {
      if (values[i].initialized()) variables[i].Set(std::move(values[i]));
    }
    return absl::OkStatus();
  }

 private:
  // Returns whether only the variable and one argument, whose last use this is, reference the
  // value, and no view of a part of it. Requires the variable's lock.
  bool IsReadHereLast(const KernelContext& c, const Tensor& value) const {
    if (!value.buffer() || value.buffer()->holders() != 2) return false;
    for (int k = static_cast<int>(reads.size()); k < c.num_inputs(); ++k) {
      const Tensor& arg = c.input(k);
      if (arg.raw() == value.raw() && arg.shape() == value.shape() && c.is_last_use(k)) return true;
    }
    return false;
  }
};

// Returns the program of a node's ops with `num_arguments` arguments.
absl::StatusOr<std::shared_ptr<const TileProgram>> ReadProgram(const KernelInit& init,
                                                               int num_arguments) {
  const auto ops = init.attr<std::vector<std::string>>("fused_ops");
  const auto operands = init.attr<std::vector<int64_t>>("operands"),
             others_of = init.attr<std::vector<int64_t>>("others_of");
  const auto params = init.attr<std::vector<float>>("params");
  return TileProgram::Create(
      {init.attr<DataType>("T"), num_arguments, ops, operands, params, others_of, init.kernels});
}

absl::StatusOr<Kernel> MakeFused(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const TileProgram> program,
                        ReadProgram(init, init.node.num_inputs()));
  if (program->num_results() != init.node.num_outputs()) {
    return InvalidArgument("others_of has ", program->num_results() - 1, " entries, but there are ",
                           init.node.num_outputs() - 1, " other outputs");
  }
  return Kernel(FusedElementwise{program, program->MakeLayout(init.input_shapes)});
}

absl::StatusOr<Kernel> MakeUpdate(const KernelInit& init) {
  const auto reads = init.attr<std::vector<bool>>("reads");
  const int num_variables = static_cast<int>(reads.size());
  const int num_args = init.node.num_inputs() - num_variables;
  const auto num_reads = static_cast<int>(std::count(reads.begin(), reads.end(), true));
  if (num_variables != init.attr<int64_t>("num_handles") + init.attr<int64_t>("num_refs")) {
    return InvalidArgument("reads has ", num_variables, " entries, but num_handles + num_refs is ",
                           init.attr<int64_t>("num_handles") + init.attr<int64_t>("num_refs"));
  }
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const TileProgram> program,
                        ReadProgram(init, num_reads + num_args));
  if (program->num_results() != num_variables) {
    return InvalidArgument("others_of has ", program->num_results() - 1, " entries, but there are ",
                           num_variables, " variables");
  }
  std::vector<Shape> shapes(num_reads, init.attr<Shape>("shape"));
  for (int k = num_variables; k < init.node.num_inputs(); ++k)
    shapes.push_back(k < static_cast<int>(init.input_shapes.size()) ? init.input_shapes[k]
                                                                    : Shape::UnknownRank());
  return Kernel(FusedUpdate{program, program->MakeLayout(shapes), init.attr<DataType>("T"), reads});
}

}  // namespace

std::optional<FusableOp> FindFusableOp(absl::string_view op, size_t num_arguments, DataType type) {
  if (num_arguments == 1) {
    const UnaryLoop* const loop = FusableUnary(op, type);
    if (loop == nullptr) return std::nullopt;
    return FusableOp{true, loop->param, loop->cost};
  }
  if (num_arguments != 2) return std::nullopt;
  const BinaryLoop* const loop = FusableBinary(op, type);
  if (loop == nullptr) return std::nullopt;
  return FusableOp{loop->broadcasts, loop->param, loop->cost};
}

void AddFusedElementwiseKernels(KernelRegistry* r) {
  std::vector<int> arguments(kMaxFusedArguments);
  for (int k = 0; k < kMaxFusedArguments; ++k) arguments[k] = k;
  r->Add("_FusedElementwise", kCpu, MakeFused).InPlace(arguments);
  for (int k = 0; k < kMaxFusedResults; ++k) arguments.push_back(kMaxFusedArguments + k);
  r->Add("_FusedUpdate", kCpu, MakeUpdate)
      .InPlace(arguments)
      .Writes(absl::MakeSpan(arguments).subspan(0, kMaxFusedResults));
}

}  // namespace weir
