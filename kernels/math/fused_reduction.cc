#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "weir/kernels/lib/pieces.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/math/fused_elementwise.h"
#include "weir/kernels/math/reduce.h"
#include "weir/kernels/math/tile_program.h"

// _FusedReduction: elementwise ops followed by the sum, mean, maximum or similar of their result,
// which is never in memory as a whole. A mean of squared differences reads its arguments and writes
// nothing; as two nodes it writes a tensor of their size and reads it back. An epilogue of
// elementwise ops may follow the reduction, such as the root of that mean plus a small number. The
// epilogue is applied in place, one block of results at a time.
//
// Tiles of the elementwise result (kernels/math/tile_program.h) are accumulated as by Reducer
// (kernels/math/reduce.h). As there, kept (K) and reduced (R) dimensions alternate, and the
// innermost one is a run:
//
//   ... K R   parts of runs, each counted from the run's beginning and consisting of a few tiles,
//             go into one accumulator per run. Several short runs form one part.
//   ... R K   tiles are segments of runs, or several short runs, and a few rows of them are
//             buffered. They go into one accumulator per element of the segment: accumulators are
//             loaded and stored once for all of the rows.
//
// The outermost kept dimension, if it is the first, does not affect how its results are computed:
// the reduced elements of each index are split into pieces by the amount of work
// (kernels/lib/pieces.h), each with its own accumulators, which are merged in order. Threads take
// ranges of that dimension if it is long, otherwise pieces. So results do not depend on the number
// of threads, nor a row's sum on the row's position. Sums of floats are computed in float within a
// part and in double across parts, so they differ from those of the separate nodes by rounding,
// mostly with less error. Integers, maxima and minima do not differ. Without preceding ops the
// reduction is bit-identical to the single node's.
namespace weir {

namespace {

// Elements of a run that are accumulated at once.
constexpr int64_t kPart = 1024, kLargestElement = 16;
// The maximum number of accumulators of a piece, and of a block of results.
constexpr int64_t kMostShared = 1 << 16, kBlock = 512;
// With this many ranges of results, any number of threads is busy.
constexpr int64_t kManyRanges = 64;
// Buffered rows, if rows are kept runs that are not short.
constexpr int64_t kTileRows = 4;

// A reduction's alternating kept and reduced dimensions, with at least one reduced.
struct Dims {
  explicit Dims(const ReductionLayout& plan) : extents(plan.dims.begin(), plan.dims.end()) {
    first_is_reduced = plan.first_is_reduced;
    if (extents.empty()) {
      extents = {1};
      first_is_reduced = true;
    } else if (extents.size() == 1 && !first_is_reduced) {
      extents.insert(extents.begin(), 1);
      first_is_reduced = true;
    }
  }
  size_t size() const { return extents.size(); }
  bool is_reduced(size_t i) const { return first_is_reduced == (i % 2 == 0); }
  bool run_is_reduced() const { return is_reduced(size() - 1); }

  absl::InlinedVector<int64_t, 8> extents;
  bool first_is_reduced = false;
};

// Maps a position in the outer dimensions to its accumulator.
class AccumulatorIndex {
 public:
  // For the first `count` dimensions; the last kept one has a stride of `width` accumulators.
  AccumulatorIndex(const Dims& dims, size_t count, int64_t width) {
    for (size_t i = count; i-- > 0;) {
      extents_.push_back(dims.extents[i]);
      strides_.push_back(dims.is_reduced(i) ? 0 : width);
      if (!dims.is_reduced(i)) width *= dims.extents[i];
    }
  }
  int64_t AccumulatorOf(int64_t position) const {
    int64_t accumulator = 0;
    for (size_t i = 0; i + 1 < extents_.size(); ++i) {
      accumulator += position % extents_[i] * strides_[i];
      position /= extents_[i];
    }
    return extents_.empty() ? 0 : accumulator + position * strides_.back();
  }

 private:
  absl::InlinedVector<int64_t, 8> extents_, strides_;  // innermost first
};

// The layouts for inputs of particular shapes.
struct FusedReductionLayout {
  std::vector<Shape> inputs;
  std::shared_ptr<const TileLayout> arguments;  // null: one argument is reduced directly
  ReductionLayout plan;
  // Of the results and the epilogue's arguments; null: no epilogue.
  std::shared_ptr<const TileLayout> epilogue;
};

struct FusedReduction {
  std::shared_ptr<const TileProgram> program;  // null: the argument itself is reduced
  // Takes the results and the epilogue's arguments; or null.
  std::shared_ptr<const TileProgram> epilogue;
  const Reducer* reducer = nullptr;
  Tensor axes;
  bool keep_dims = false;
  std::shared_ptr<const FusedReductionLayout> planned;  // for known shapes; or null

  // INVALID_ARGUMENT if the shapes do not match.
  absl::StatusOr<FusedReductionLayout> LayoutFor(absl::Span<const Shape> inputs) const;
  absl::Status operator()(KernelContext& c) const;

 private:
  int num_arguments() const { return program == nullptr ? 1 : program->num_arguments(); }
  bool MatchesPlannedShapes(const KernelContext& c) const {
    for (int k = 0; planned != nullptr && k < c.num_inputs(); ++k) {
      if (c.input(k).shape() != planned->inputs[k]) return false;
    }
    return planned != nullptr;
  }

  // The epilogue of the reduction.
  struct ResultEpilogue {
    const KernelContext& c;
    const TileProgram* program;  // null: no epilogue
    const TileLayout* layout;
    int first_argument;
    char* y;

    // Computes results [begin, begin + n).
    void Run(int64_t begin, int64_t n) const;
  };

  // One run of the kernel.
  struct Invocation {
    const KernelContext& c;
    const TileProgram& program;
    const TileLayout& layout;
    const Reducer& r;
    const ResultEpilogue& epilogue;
    Dims dims;
    int64_t tile, run, count, results;

    // The extent of the leading kept dimension (1 if there is none), and of the reduced one that
    // follows.
    int64_t outermost() const { return dims.first_is_reduced ? 1 : dims.extents[0]; }
    int64_t reduced() const { return dims.extents[dims.first_is_reduced ? 0 : 1]; }
    // Returns the number of pieces per index of that kept dimension.
    int64_t NumPieces() const;
    // A unit is a run of `run` elements if runs are kept, otherwise an element.
    int64_t num_units() const {
      const int64_t n = layout.result.num_elements();
      return dims.run_is_reduced() ? n : n / run;
    }
    void Accumulate(int64_t begin, int64_t end, int64_t first, char* acc) const;
    void AccumulateRuns(TileRunner& tiles, int64_t begin, int64_t end, int64_t first,
                        char* acc) const;
    void AccumulateRows(TileRunner& tiles, int64_t begin, int64_t end, int64_t first,
                        char* acc) const;
    // Converts accumulators to results [begin, begin + n).
    void Finish(const char* acc, int64_t begin, int64_t n) const;
    void AccumulatePieces(int64_t k, int64_t pieces, char* acc, char* next) const;
    int64_t BeginOf(int64_t p, int64_t pieces) const;
    void ReduceKept(ThreadPool& pool, int64_t pieces) const;
    void ReducePieces(ThreadPool& pool, int64_t pieces) const;
  };
};

absl::StatusOr<FusedReductionLayout> FusedReduction::LayoutFor(
    absl::Span<const Shape> inputs) const {
  FusedReductionLayout made{.inputs = {inputs.begin(), inputs.end()}};
  const int arguments = num_arguments();
  const auto mismatch = [] {
    return InvalidArgument("the argument shapes of the fused ops do not match");
  };
  if (program != nullptr) {
    made.arguments = program->MakeLayout(inputs.subspan(0, arguments));
    if (made.arguments == nullptr) return mismatch();
  }
  WEIR_ASSIGN_OR_RETURN(
      made.plan, MakeReductionLayout(program == nullptr ? inputs[0] : made.arguments->result, axes,
                                     keep_dims));
  if (epilogue == nullptr) return made;
  std::vector<Shape> epilogue_inputs = {made.plan.out};
  epilogue_inputs.insert(epilogue_inputs.end(), inputs.begin() + arguments, inputs.end());
  made.epilogue = epilogue->MakeLayout(epilogue_inputs);
  if (made.epilogue == nullptr || made.epilogue->result != made.plan.out) return mismatch();
  return made;
}

void FusedReduction::ResultEpilogue::Run(int64_t begin, int64_t n) const {
  if (program == nullptr) return;
  const int64_t tile = std::min(program->TileSize(*layout), n);
  const auto argument = [&](int k) -> const void* {
    return k == 0 ? y : c.input(first_argument + k - 1).raw();
  };
  TileRunner tiles(*program, *layout, argument, tile);
  for (int64_t i = 0; i < n; i += tile) {
    char* const to = y + static_cast<size_t>(begin + i) * program->element_size();
    tiles.Run(begin + i, std::min(tile, n - i), {to});
  }
}

// Accumulates units [begin, end). `acc` points to accumulator `first`.
void FusedReduction::Invocation::Accumulate(int64_t begin, int64_t end, int64_t first,
                                            char* acc) const {
  if (begin == end) return;
  const int64_t elements = (end - begin) * (dims.run_is_reduced() ? 1 : run);
  TileRunner tiles(
      program, layout, [this](int k) { return c.input(k).raw(); }, std::min(tile, elements));
  if (dims.run_is_reduced()) {
    AccumulateRuns(tiles, begin, end, first, acc);
  } else {
    AccumulateRows(tiles, begin, end, first, acc);
  }
}

void FusedReduction::Invocation::AccumulateRuns(TileRunner& tiles, int64_t begin, int64_t end,
                                                int64_t first, char* acc) const {
  alignas(64) char values[kPart * kLargestElement];
  const AccumulatorIndex outer(dims, dims.size() - 1, 1);
  for (int64_t i = begin; i < end;) {
    // Up to the end of the run or the part, or several whole runs.
    const int64_t left = run - i % run;
    const int64_t n = left < run || run > kPart ? std::min({left, kPart, end - i})
                                                : std::min(kPart / run * run, end - i);
    for (int64_t k = 0; k < n; k += tile)
      tiles.Run(i + k, std::min(tile, n - k), {values + static_cast<size_t>(k) * r.in_size});
    for (int64_t k = 0; k < n; k += run) {
      r.row(values + static_cast<size_t>(k) * r.in_size, std::min(run, n - k),
            acc + (outer.AccumulatorOf((i + k) / run) - first) * r.acc_size);
    }
    i += n;
  }
}

void FusedReduction::Invocation::AccumulateRows(TileRunner& tiles, int64_t begin, int64_t end,
                                                int64_t first, char* acc) const {
  alignas(64) char values[TileProgram::kMaxTileBytes];
  const AccumulatorIndex outer(dims, dims.size() - 2, run);
  const int64_t inner = dims.extents[dims.size() - 2];
  // A few rows of a segment of the run; adjacent whole runs go through the program together.
  const int64_t width = std::min(run, tile), together = std::max<int64_t>(1, tile / run);
  const auto room = static_cast<int64_t>(sizeof values / r.in_size);
  const int64_t most_rows = std::clamp<int64_t>(room / width, 1, std::max(kTileRows, together));
  for (int64_t unit = begin; unit < end;) {
    const int64_t rows = std::min({most_rows, end - unit, inner - unit % inner});
    char* const to = acc + (outer.AccumulatorOf(unit / inner) - first) * r.acc_size;
    for (int64_t from = 0; from < run; from += width) {
      const int64_t n = std::min(width, run - from);
      for (int64_t k = 0; k < rows; k += together) {
        const int64_t elements = std::min(together, rows - k) * n;
        tiles.Run((unit + k) * run + from, elements,
                  {values + static_cast<size_t>(k * n) * r.in_size});
      }
      r.columns(values, rows, n, n, to + from * r.acc_size);
    }
    unit += rows;
  }
}

void FusedReduction::Invocation::Finish(const char* acc, int64_t begin, int64_t n) const {
  r.finish(acc, n, count, epilogue.y + static_cast<size_t>(begin) * r.out_size);
  epilogue.Run(begin, n);
}

// Does not split if the accumulators exceed the cache or the sums are short: a second copy does not
// pay off.
int64_t FusedReduction::Invocation::NumPieces() const {
  constexpr int64_t kShortestSum = 8;
  const int64_t width = results / outermost();
  if (count == 0 || width > kMostShared) return 1;
  const double ns = (program.cost() + r.cost) * static_cast<double>(count) * width;
  const bool is_run = dims.run_is_reduced() && num_units() == run * outermost();
  const int64_t length = is_run ? run / kPart : width > 1 ? reduced() / kShortestSum : reduced();
  return NumPiecesForWork(ns, std::clamp<int64_t>(length, 1, kMaxPieces));
}

// Returns the begin of piece p of `pieces` among the units of one index of the outermost kept
// dimension: an index of the next dimension, or a part of a run if there is no other.
int64_t FusedReduction::Invocation::BeginOf(int64_t p, int64_t pieces) const {
  const int64_t units = num_units() / outermost();
  const bool is_run = dims.run_is_reduced() && units == run;
  const int64_t length = is_run ? (run + kPart - 1) / kPart : reduced();
  return std::min(units, length * p / pieces * (is_run ? kPart : units / length));
}

// Accumulates one index of the outermost kept dimension, one piece after another.
void FusedReduction::Invocation::AccumulatePieces(int64_t k, int64_t pieces, char* acc,
                                                  char* next) const {
  const int64_t units = num_units() / outermost(), width = results / outermost();
  for (int64_t p = 0; p < pieces; ++p) {
    char* const to = p == 0 ? acc : next;
    r.init(to, width);
    Accumulate(k * units + BeginOf(p, pieces), k * units + BeginOf(p + 1, pieces), k * width, to);
    if (p > 0) r.merge(next, width, acc);
  }
}

// Parallel over results: threads take ranges of the outermost dimension.
void FusedReduction::Invocation::ReduceKept(ThreadPool& pool, int64_t pieces) const {
  const int64_t width = results / outermost(), units = num_units() / outermost();
  const double cost = (program.cost() + r.cost) * static_cast<double>(count) * width;
  pool.ParallelFor(outermost(), cost, [&](int64_t begin, int64_t end) {
    const int64_t block = pieces > 1 ? 1 : std::clamp<int64_t>(kBlock / width, 1, end - begin);
    alignas(16) absl::InlinedVector<char, 512> acc((block + (pieces > 1)) * width * r.acc_size);
    for (int64_t k = begin; k < end; k += block) {
      const int64_t n = std::min(block, end - k);
      if (pieces > 1) {
        AccumulatePieces(k, pieces, acc.data(), acc.data() + width * r.acc_size);
      } else {
        r.init(acc.data(), n * width);
        Accumulate(k * units, (k + n) * units, k * width, acc.data());
      }
      Finish(acc.data(), k * width, n * width);
    }
  });
}

// Parallel over pieces.
void FusedReduction::Invocation::ReducePieces(ThreadPool& pool, int64_t pieces) const {
  const int64_t width = results / outermost(), units = num_units() / outermost();
  const size_t bytes = width * r.acc_size;
  std::vector<char> acc(pieces * bytes);
  for (int64_t k = 0; k < outermost(); ++k) {
    r.init(acc.data(), pieces * width);
    pool.ForEach(static_cast<int>(pieces), [&](int p) {
      Accumulate(k * units + BeginOf(p, pieces), k * units + BeginOf(p + 1, pieces), k * width,
                 acc.data() + p * bytes);
    });
    for (int64_t p = 1; p < pieces; ++p) r.merge(acc.data() + p * bytes, width, acc.data());
    Finish(acc.data(), k * width, width);
  }
}

absl::Status FusedReduction::operator()(KernelContext& c) const {
  FusedReductionLayout made;
  const FusedReductionLayout* layout_of_inputs = planned.get();
  if (!MatchesPlannedShapes(c)) {
    std::vector<Shape> inputs;
    for (int k = 0; k < c.num_inputs(); ++k) inputs.push_back(c.input(k).shape());
    WEIR_ASSIGN_OR_RETURN(made, LayoutFor(inputs));
    layout_of_inputs = &made;
  }
  const ReductionLayout& plan = layout_of_inputs->plan;
  Tensor* out = c.PlannedOutput(0, plan.out);
  if (out == nullptr) {
    WEIR_ASSIGN_OR_RETURN(out, c.AllocateOutput(0, plan.out));
  }
  const int64_t results = out->num_elements();
  if (results == 0) return absl::OkStatus();
  const ResultEpilogue result_epilogue{c, epilogue.get(), layout_of_inputs->epilogue.get(),
                                       num_arguments(), static_cast<char*>(out->raw())};
  if (program == nullptr) {
    Reduce(c.pool(), *reducer, plan, c.input(0).raw(), out->raw());
    if (epilogue == nullptr) return absl::OkStatus();
    c.pool().ParallelFor(results, epilogue->cost(),
                         [&](int64_t from, int64_t to) { result_epilogue.Run(from, to - from); });
    return absl::OkStatus();
  }
  const TileLayout* const layout = layout_of_inputs->arguments.get();
  const Dims dims(plan);
  const Invocation call{c,
                        *program,
                        *layout,
                        *reducer,
                        result_epilogue,
                        dims,
                        program->TileSize(*layout),
                        dims.extents.back(),
                        plan.count,
                        results};
  const int64_t pieces = call.NumPieces();
  constexpr int64_t kManyResults = 16;
  if (pieces == 1 || call.outermost() >= kManyResults || c.pool().num_threads() == 1) {
    call.ReduceKept(c.pool(), pieces);
  } else {
    call.ReducePieces(c.pool(), pieces);
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeFused(const KernelInit& init) {
  const auto ops = init.attr<std::vector<std::string>>("fused_ops");
  const auto operands = init.attr<std::vector<int64_t>>("operands"),
             end_operands = init.attr<std::vector<int64_t>>("end_operands");
  const auto params = init.attr<std::vector<float>>("params"),
             end_params = init.attr<std::vector<float>>("end_params");
  const auto num_end_arguments = init.attr<int64_t>("num_end_args");
  const int64_t num_arguments = init.node.num_inputs() - num_end_arguments;
  const size_t before = params.size(), after = end_params.size();
  if (ops.size() != before + 1 + after || (before == 0 && num_arguments != 1) ||
      (before == 0 && !operands.empty()) ||
      (after == 0 && (num_end_arguments != 0 || !end_operands.empty()))) {
    return InvalidArgument("fused_ops has ", ops.size(), " ops, params ", before,
                           " entries and end_params ", after, ", for ", num_arguments, " args and ",
                           num_end_arguments,
                           " end_args: fused_ops must consist of elementwise ops, one reduction, "
                           "and elementwise ops; either list may be empty and then has no "
                           "arguments, except that the reduction itself takes one");
  }
  const DataType type = init.attr<DataType>("T");
  const Reducer* const reducer = FindReducer(ops[before], type);
  if (reducer == nullptr) {
    return Unimplemented("fusing the reduction ", ops[before], " of type ", DataTypeName(type),
                         " is not supported");
  }
  FusedReduction kernel{
      .reducer = reducer,
      .axes = Tensor::Vector<int64_t>(init.attr<std::vector<int64_t>>("axes")),
      .keep_dims = init.attr<bool>("keep_dims"),
  };
  const absl::Span<const std::string> all(ops);
  if (before > 0) {
    WEIR_ASSIGN_OR_RETURN(kernel.program, TileProgram::Create({type,
                                                               static_cast<int>(num_arguments),
                                                               all.subspan(0, before),
                                                               operands,
                                                               params,
                                                               {},
                                                               init.kernels}));
  }
  if (after > 0) {
    WEIR_ASSIGN_OR_RETURN(kernel.epilogue,
                          TileProgram::Create({type,
                                               static_cast<int>(1 + num_end_arguments),
                                               all.subspan(before + 1),
                                               end_operands,
                                               end_params,
                                               {},
                                               init.kernels}));
  }
  const auto is_known = [](const Shape& shape) { return shape.IsFullyDefined(); };
  if (!init.input_shapes.empty() && absl::c_all_of(init.input_shapes, is_known)) {
    absl::StatusOr<FusedReductionLayout> planned = kernel.LayoutFor(init.input_shapes);
    if (planned.ok())
      kernel.planned = std::make_shared<const FusedReductionLayout>(*std::move(planned));
  }
  return Kernel(std::move(kernel));
}

}  // namespace

bool IsFusableReduction(absl::string_view op, DataType type, const Shape& shape,
                        const Tensor& axes) {
  if (FindReducer(op, type) == nullptr) return false;
  const absl::StatusOr<ReductionLayout> plan =
      MakeReductionLayout(shape, axes, /*keep_dims=*/false);
  if (!plan.ok() || plan->count < 2) return false;
  return plan->out.num_elements() <= kMostShared ||
         (!plan->first_is_reduced && plan->dims[0] >= kManyRanges);
}

void AddFusedReductionKernels(KernelRegistry* r) { r->Add("_FusedReduction", kCpu, MakeFused); }

}  // namespace weir
