#include "weir/kernels/fused_elementwise.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "weir/kernels/registry.h"
#include "weir/kernels/streamed.h"
#include "weir/kernels/tile_program.h"

// _FusedElementwise: element-wise ops one after the other, tile by tile (kernels/tile_program.h).
namespace weir {

namespace {

struct FusedElementwise {
  std::shared_ptr<const TileProgram> program;
  std::shared_ptr<const TileLayout> planned;

  absl::Status operator()(KernelContext& c) const {
    std::shared_ptr<const TileLayout> made;
    WEIR_ASSIGN_OR_RETURN(const TileLayout* const layout,
                          program->LayoutFor(c, planned.get(), &made));
    const int num_results = program->num_results();
    char* results[kMostFusedResults];
    for (int k = 0; k < num_results; ++k) {
      Tensor* out = c.PlannedOutput(k, layout->result);
      if (out == nullptr) {
        WEIR_ASSIGN_OR_RETURN(out, c.AllocateOutput(k, layout->result));
      }
      results[k] = static_cast<char*>(out->raw());
    }
    const int64_t n = layout->result.num_elements();
    if (n == 0) return absl::OkStatus();
    const size_t size = program->element_size();
    const bool streams = streamed::Pays(static_cast<size_t>(n * num_results) * size);
    // Large tiles are for tensors that have some for each thread.
    const bool large = layout->is_one_chain && n >= 4 * TileProgram::kChainTile &&
                       (!streams || streamed::IsAligned(results[0], 0));
    const int64_t tile = large ? TileProgram::kChainTile : program->TileSize(*layout, streams);
    const auto run = [&](int64_t begin, int64_t end) {
      TileRunner runner(
          *program, *layout, [&](int k) { return c.input(k).raw(); }, std::min(tile, end - begin),
          streams);
      char* to[kMostFusedResults];
      for (int64_t i = begin; i < end; i += tile) {
        for (int k = 0; k < num_results; ++k) to[k] = results[k] + static_cast<size_t>(i) * size;
        runner.Run(i, std::min(tile, end - i), {to, static_cast<size_t>(num_results)});
      }
      runner.Finish();
      if (streams) streamed::Finish();
    };
    if (n <= tile) {
      run(0, n);
    } else {
      c.pool().ParallelFor(n, program->cost(), run, tile);
    }
    return absl::OkStatus();
  }
};

absl::StatusOr<Kernel> MakeFused(const KernelInit& init) {
  const auto ops = init.attr<std::vector<std::string>>("fused_ops");
  const auto operands = init.attr<std::vector<int64_t>>("operands"),
             others_of = init.attr<std::vector<int64_t>>("others_of");
  const auto params = init.attr<std::vector<float>>("params");
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const TileProgram> program,
                        TileProgram::Read({init.attr<DataType>("T"), init.node.num_inputs(), ops,
                                           operands, params, others_of}));
  if (program->num_results() != init.node.num_outputs()) {
    return InvalidArgument("others_of has ", program->num_results() - 1, " ops, and there are ",
                           init.node.num_outputs() - 1, " others");
  }
  return Kernel(FusedElementwise{program, program->Plan(init.input_shapes)});
}

}  // namespace

std::optional<FusableOp> FindFusableOp(absl::string_view op, size_t num_arguments, DataType type) {
  if (num_arguments == 1) {
    const UnarySpan* const span = FusableUnary(op, type);
    if (span == nullptr) return std::nullopt;
    return FusableOp{true, span->param, span->cost};
  }
  if (num_arguments != 2) return std::nullopt;
  const BinarySpan* const span = FusableBinary(op, type);
  if (span == nullptr) return std::nullopt;
  return FusableOp{span->broadcasts, span->param, span->cost};
}

void AddFusedElementwiseKernels(KernelRegistry* r) {
  std::vector<int> arguments(kMostFusedArguments);
  for (int k = 0; k < kMostFusedArguments; ++k) arguments[k] = k;
  r->Add("_FusedElementwise", kCpu, MakeFused).InPlace(arguments);
}

}  // namespace weir
