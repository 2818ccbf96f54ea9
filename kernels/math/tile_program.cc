#include "weir/kernels/math/tile_program.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "weir/kernels/lib/non_temporal.h"
#include "weir/kernels/lib/strided_copy.h"

// Several elementwise ops fused into one. Run one by one, each op walks memory from end to end, so
// that ten consecutive ops on large tensors wait for memory ten times. Here all ops are computed
// for a tile of a few hundred elements at a time: intermediate values stay in buffers in the L1
// cache, and memory is read and written once. An op is a call of the loop
// (kernels/math/elementwise_loops.h) that the op's own kernel would call for the whole tensor. So
// each element's result is the same, bit for bit, and no code is generated for the combination.
// Where cheap ops follow each other, intermediate values do not even leave the registers
// (kernels/math/register_fusion.h).
//
// A buffer is free again after the last op that reads it, so a program needs two or three buffers,
// however many ops it has. Ops whose values are results write them to their destinations, which may
// be the memory of an argument of the same shape. No argument's tile is read after the last op. A
// result that would overwrite an argument that a later op reads stays in its buffer until the tile
// is done. Broadcast expands arguments of other shapes into a tile buffer.
namespace weir {

namespace {

constexpr int64_t kMaxElements = int64_t{1} << 46;

// Returns the size of a tile's buffers. If the size of the L1 cache is unknown, uses the sizes that
// were found to be good for 32 KB.
size_t TileBytes(bool non_temporal) {
  static const int64_t half = sysconf(_SC_LEVEL1_DCACHE_SIZE) / 2;
  constexpr int64_t kMin = 12 * 1024, kMinNonTemporal = 16 * 1024;
  return static_cast<size_t>(
      std::clamp<int64_t>(half, non_temporal ? kMinNonTemporal : kMin, TileProgram::kMaxTileBytes));
}

bool IsFusableType(DataType type) {
  return IsFloating(type) || type == DT_INT32 || type == DT_INT64;
}

}  // namespace

const UnaryLoop* FusableUnary(absl::string_view op, DataType type) {
  const UnaryLoop* const loop =
      IsFusableType(type) ? ElementwiseLoops().FindUnary(op, type) : nullptr;
  return loop != nullptr && loop->out_size == ElementSize(type) ? loop : nullptr;
}

const BinaryLoop* FusableBinary(absl::string_view op, DataType type) {
  const BinaryLoop* const loop =
      IsFusableType(type) ? ElementwiseLoops().FindBinary(op, type) : nullptr;
  const bool fits = loop != nullptr && loop->out_size == ElementSize(type) && !loop->own_kernel &&
                    loop->check == nullptr;
  return fits ? loop : nullptr;
}

// Adapters for user-defined elementwise loops.
struct TileProgram::UserUnaryLoop : UnaryLoop {
  explicit UserUnaryLoop(const ElementwiseLoop& loop) : function(loop.unary) {
    run = [](const UnaryLoop& self, const void* x, void* y, int64_t n, double p) {
      static_cast<const UserUnaryLoop&>(self).function(x, y, n, p);
    };
    in_size = out_size = static_cast<uint8_t>(ElementSize(loop.type));
    cost = loop.cost_ns;
  }
  decltype(ElementwiseLoop::unary) function;
};
struct TileProgram::UserBinaryLoop : BinaryLoop {
  explicit UserBinaryLoop(const ElementwiseLoop& loop) : function(loop.binary) {
    run = [](const BinaryLoop& self, const void* x, const void* y, void* z, int64_t n, double p) {
      static_cast<const UserBinaryLoop&>(self).function(x, y, z, n, p);
    };
    in_size = out_size = static_cast<uint8_t>(ElementSize(loop.type));
    cost = loop.cost_ns;
    broadcasts = false;
  }
  decltype(ElementwiseLoop::binary) function;
};

namespace {

// Which buffer the value of each op is in, and the last op that reads each argument and value.
struct TileBuffers {
  std::vector<int> of_ops, last_use;
  int count = 0;
};

// `operands` and `others_of` are those of TileOps. A value takes a buffer that no later op reads,
// or a new one. Those of results are not used again.
TileBuffers AssignTileBuffers(int num_arguments, absl::Span<const int64_t> operands,
                              absl::Span<const int64_t> others_of) {
  const int num_ops = static_cast<int>(operands.size() / 2);
  TileBuffers buffers;
  buffers.of_ops.resize(static_cast<size_t>(num_ops));
  buffers.last_use.assign(static_cast<size_t>(num_arguments + num_ops), -1);
  const auto second = [&](int i) {
    return static_cast<int>(operands[2 * i + 1] >= 0 ? operands[2 * i + 1] : operands[2 * i]);
  };
  for (int i = 0; i < num_ops; ++i)
    buffers.last_use[operands[2 * i]] = buffers.last_use[second(i)] = i;
  std::vector<int> free;
  for (int i = 0; i < num_ops; ++i) {
    const auto release = [&](int value) {
      if (value < num_arguments || buffers.last_use[value] > i) return;
      const int producer = value - num_arguments;
      if (!absl::c_linear_search(others_of, producer)) free.push_back(buffers.of_ops[producer]);
    };
    release(static_cast<int>(operands[2 * i]));
    if (second(i) != operands[2 * i]) release(second(i));
    if (free.empty()) free.push_back(buffers.count++);
    buffers.of_ops[i] = free.back();
    free.pop_back();
  }
  return buffers;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TileProgram>> TileProgram::Create(const TileOps& from) {
  auto program = std::make_shared<TileProgram>();
  const auto& [type, num_arguments, ops, operands, params, others_of, kernels] = from;
  program->num_arguments_ = num_arguments;
  program->size_ = ElementSize(type);
  program->pipeline_backend_ = FindPipelineBackend(type);
  if (ops.empty() || operands.size() != 2 * ops.size() || params.size() != ops.size() ||
      ops.size() > kMaxFusedOps || num_arguments > kMaxFusedArguments ||
      others_of.size() >= kMaxFusedResults) {
    return InvalidArgument(
        "fused_ops has ", ops.size(), " elementwise ops, operands ", operands.size(),
        " entries and params ", params.size(), ", for ", num_arguments, " arguments and ",
        others_of.size() + 1,
        " results; each op takes two operands and one parameter, and a node has at most ",
        kMaxFusedOps, " ops, ", kMaxFusedArguments, " arguments and ", kMaxFusedResults,
        " results");
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    Op op;
    op.p = params[i];
    const bool is_binary = operands[2 * i + 1] >= 0;
    const ElementwiseLoop* const user =
        kernels == nullptr ? nullptr : kernels->FindElementwise(ops[i], type, is_binary ? 2 : 1);
    if (user != nullptr && is_binary) {
      const auto loop = std::make_shared<const UserBinaryLoop>(*user);
      program->user_loops_.push_back(loop);
      op.binary = loop.get();
    } else if (user != nullptr) {
      const auto loop = std::make_shared<const UserUnaryLoop>(*user);
      program->user_loops_.push_back(loop);
      op.unary = loop.get();
    } else if (is_binary) {
      op.binary = FusableBinary(ops[i], type);
    } else {
      op.unary = FusableUnary(ops[i], type);
    }
    if (op.unary == nullptr && op.binary == nullptr) {
      return Unimplemented("fusing ", ops[i], " of ", is_binary ? "two arguments" : "one argument",
                           " of type ", DataTypeName(type), " is not supported");
    }
    const int64_t known = program->num_arguments_ + static_cast<int64_t>(i);
    if (operands[2 * i] < 0 || operands[2 * i] >= known || operands[2 * i + 1] >= known) {
      return InvalidArgument("fused op ", i, " takes values ", operands[2 * i], " and ",
                             operands[2 * i + 1], ", but only ", known, " values precede it");
    }
    op.a = static_cast<int>(operands[2 * i]);
    op.b = is_binary ? static_cast<int>(operands[2 * i + 1]) : op.a;
    program->cost_ += is_binary ? op.binary->cost : op.unary->cost;
    program->ops_.push_back(op);
  }
  program->ops_.back().result = 0;
  for (const int64_t i : others_of) {
    if (i < 0 || i >= static_cast<int64_t>(ops.size()) || program->ops_[i].result >= 0) {
      return InvalidArgument("others_of names op ", i, ", which is not one of the first ",
                             ops.size() - 1, " ops, or is repeated");
    }
    program->ops_[i].result = program->num_results_++;
  }
  program->AssignBuffers(operands, others_of);
  if (program->num_buffers_ > TileRunner::kMaxBuffers)
    return Unimplemented("the fused ops need ", program->num_buffers_,
                         " buffers at a time; the limit is ", TileRunner::kMaxBuffers);
  return std::shared_ptr<const TileProgram>(std::move(program));
}

void TileProgram::AssignBuffers(absl::Span<const int64_t> operands,
                                absl::Span<const int64_t> others_of) {
  TileBuffers buffers = AssignTileBuffers(num_arguments_, operands, others_of);
  for (size_t i = 0; i < ops_.size(); ++i) ops_[i].buffer = buffers.of_ops[i];
  last_use_ = std::move(buffers.last_use);
  num_buffers_ = buffers.count;
}

bool AreWithinFusedLimits(size_t num_arguments, absl::Span<const int64_t> operands,
                          absl::Span<const int64_t> others_of) {
  return num_arguments <= kMaxFusedArguments && operands.size() <= 2 * kMaxFusedOps &&
         others_of.size() < kMaxFusedResults &&
         AssignTileBuffers(static_cast<int>(num_arguments), operands, others_of).count <=
             TileRunner::kMaxBuffers;
}

std::shared_ptr<const TileLayout> TileProgram::MakeLayout(absl::Span<const Shape> shapes) const {
  if (shapes.empty() || static_cast<int>(shapes.size()) != num_arguments_) return nullptr;
  Shape result = shapes[0];
  for (const Shape& shape : shapes) {
    if (!shape.IsFullyDefined()) return nullptr;
    absl::StatusOr<Shape> both = BroadcastShapes(result, shape);
    if (!both.ok()) return nullptr;
    result = *std::move(both);
  }
  if (result.num_elements() > kMaxElements) return nullptr;
  for (const Op& op : ops_) {
    if (op.binary == nullptr || op.binary->broadcasts) continue;
    for (const int value : {op.a, op.b}) {
      if (value < num_arguments_ && shapes[value] != result) return nullptr;
    }
  }
  std::vector<const Shape*> pointers;
  for (const Shape& shape : shapes) pointers.push_back(&shape);
  auto layout = std::make_shared<TileLayout>(
      TileLayout{{shapes.begin(), shapes.end()}, result, Broadcast(result, pointers)});
  SelectLoops(layout.get());
  FormPipelines(layout.get());
  return layout;
}

bool TileProgram::IsScalar(const TileLayout& layout, int value) {
  return value < static_cast<int>(layout.arguments.size()) &&
         layout.broadcast.kind(value) == Broadcast::Kind::kConstant;
}

// Passes scalars as such to the ops that accept them, and expands them for other ops.
void TileProgram::SelectLoops(TileLayout* layout) const {
  layout->loops.assign(ops_.size(), nullptr);
  layout->is_expanded.resize(static_cast<size_t>(num_arguments_));
  for (int k = 0; k < num_arguments_; ++k)
    layout->is_expanded[k] = layout->broadcast.kind(k) == Broadcast::Kind::kStrided;
  for (size_t s = 0; s < ops_.size(); ++s) {
    const Op& op = ops_[s];
    const bool first = IsScalar(*layout, op.a), second = IsScalar(*layout, op.b);
    BinaryLoop::Fn& loop_fn = layout->loops[s];
    if (op.binary != nullptr) loop_fn = op.binary->ScalarVariantFor(first, second);
    if (loop_fn != nullptr) continue;
    if (op.binary != nullptr) loop_fn = op.binary->run;
    if (first) layout->is_expanded[op.a] = true;
    if (second) layout->is_expanded[op.b] = true;
  }
}

// If both operands are scalars, this is the first one, which is then expanded for the tile.
int TileProgram::FirstOperand(const TileLayout& layout, const Op& op) {
  return IsScalar(layout, op.a) && !IsScalar(layout, op.b) ? op.b : op.a;
}

TileLayout::PipelineStage TileProgram::StageFor(const TileLayout& layout, const Op& op, int value) {
  if (op.unary != nullptr) return {.fn = op.unary->stage};
  const bool is_first = op.a == value;
  const int other = is_first ? op.b : op.a;
  const BinaryStages& stages = op.binary->stages;
  if (IsScalar(layout, other))
    return {.fn = is_first ? stages.scalar_second : stages.scalar_first, .operand = other};
  return {.fn = is_first ? stages.tensor_second : stages.tensor_first, .operand = other};
}

// A pipeline continues as long as each op reads the value of the previous op exactly once.
void TileProgram::FormPipelines(TileLayout* layout) const {
  if (pipeline_backend_ == nullptr || layout->result.num_elements() < pipeline_backend_->width)
    return;
  const int num_ops = static_cast<int>(ops_.size());
  layout->stages.resize(ops_.size());
  TileLayout::PipelineStage* const stages = layout->stages.data();
  for (int begin = 0, end; begin < num_ops; begin = end) {
    stages[begin] = StageFor(*layout, ops_[begin], FirstOperand(*layout, ops_[begin]));
    for (end = begin + 1; stages[end - 1].fn != nullptr && end < num_ops; ++end) {
      const Op& op = ops_[end];
      const int last = num_arguments_ + end - 1;
      const bool first = op.a == last, second = op.binary != nullptr && op.b == last;
      if (first == second) break;
      stages[end] = StageFor(*layout, op, last);
      if (stages[end].fn == nullptr) break;
    }
    for (int s = begin; s < end; ++s) stages[s].end = end;
    layout->has_pipelines |= end > begin + 1;
  }
  const auto is_stored = [this](int op) { return last_use_[num_arguments_ + op] > op + 1; };
  layout->is_single_pipeline =
      layout->has_pipelines && layout->stages[0].end == num_ops && num_results_ == 1 &&
      std::count(layout->is_expanded.begin(), layout->is_expanded.end(), true) == 0;
  for (int s = 0; s + 1 < num_ops; ++s) layout->is_single_pipeline &= !is_stored(s);
}

absl::StatusOr<const TileLayout*> TileProgram::LayoutFor(
    const KernelContext& c, const TileLayout* planned,
    std::shared_ptr<const TileLayout>* made) const {
  bool matches = planned != nullptr;
  for (int k = 0; matches && k < c.num_inputs(); ++k)
    matches = c.input(k).shape() == planned->arguments[k];
  if (matches) return planned;
  std::vector<Shape> shapes;
  for (int k = 0; k < c.num_inputs(); ++k) shapes.push_back(c.input(k).shape());
  return LayoutFor(shapes, nullptr, made);
}

absl::StatusOr<const TileLayout*> TileProgram::LayoutFor(
    absl::Span<const Shape> shapes, const TileLayout* planned,
    std::shared_ptr<const TileLayout>* made) const {
  if (planned != nullptr && shapes == planned->arguments) return planned;
  *made = MakeLayout(shapes);
  if (*made == nullptr)
    return InvalidArgument("Incompatible or too large shapes of the fused ops' arguments");
  return made->get();
}

int64_t TileProgram::TileSize(const TileLayout& layout, bool non_temporal) const {
  size_t buffers = static_cast<size_t>(num_buffers_ + (non_temporal ? 2 * num_results_ : 0));
  buffers +=
      static_cast<size_t>(std::count(layout.is_expanded.begin(), layout.is_expanded.end(), true));
  const int64_t room =
      static_cast<int64_t>(TileBytes(non_temporal) / (std::max<size_t>(buffers, 1) * size_));
  return std::clamp<int64_t>(room / 64 * 64, TileRunner::kMinTile, kMaxTile);
}

TileRunner::TileRunner(const TileProgram& program, const TileLayout& layout,
                       absl::FunctionRef<const void*(int)> argument, int64_t most,
                       bool non_temporal)
    : program_(program),
      layout_(layout),
      non_temporal_(non_temporal),
      buffer_bytes_(static_cast<size_t>(program.TileSize(layout, non_temporal)) * program.size_) {
  int next = program.num_buffers_;
  for (int k = 0; k < program.num_arguments_; ++k) {
    arguments_[k] = argument(k);
    expanded_[k] = layout.is_expanded[k] ? Buffer(next++) : nullptr;
    if (layout.broadcast.kind(k) != Broadcast::Kind::kConstant) continue;
    values_[k] = arguments_[k];
    if (expanded_[k] == nullptr) continue;
    FillElements(expanded_[k], arguments_[k], program.size_, most);
    values_[k] = expanded_[k];
  }
  result_buffers_ = next;
  flushing_buffers_ = next + program.num_results_;
}

// Returns whether `place` is an argument's tile that a later op reads.
bool TileRunner::IsNeededAfter(int op, const char* place) const {
  for (int k = 0; k < program_.num_arguments_; ++k) {
    if (values_[k] == place && program_.last_use_[k] > op) return true;
  }
  return false;
}

// Returns the destination of an op's value: that of a result, or a buffer. With non-temporal
// stores, a result is written to its destination at once only if a pipeline ends with the op, no
// other op reads the result, and the destination is aligned to cache lines.
char* TileRunner::DestinationOf(int s, bool ends_pipeline, absl::Span<char* const> to) {
  const TileProgram::Op& op = program_.ops_[s];
  if (op.result < 0) return Buffer(op.buffer);
  char* const place = to[op.result];
  const bool is_free = !IsNeededAfter(s, place);
  if (is_free && (!non_temporal_ || (ends_pipeline && non_temporal::IsAligned(place, 0))))
    return place;
  char* const buffer = Buffer(non_temporal_ ? result_buffers_ + op.result : op.buffer);
  deferred_[num_deferred_++] = {buffer, place};
  return buffer;
}

inline void TileRunner::RunOp(int s, int64_t n, absl::Span<char* const> to) {
  const TileProgram::Op& op = program_.ops_[s];
  char* const result = DestinationOf(s, /*ends_pipeline=*/false, to);
  if (op.binary != nullptr) {
    layout_.loops[s](*op.binary, values_[op.a], values_[op.b], result, n, op.p);
  } else {
    op.unary->run(*op.unary, values_[op.a], result, n, op.p);
  }
  values_[program_.num_arguments_ + s] = result;
}

// Runs ops [begin, end) as one pipeline.
void TileRunner::RunPipeline(int begin, int end, int64_t n, absl::Span<char* const> to) {
  FusedStage pipeline[2 * kMaxFusedOps + 1];
  FusedStage* next = pipeline;
  const PipelineBackend& backend = *program_.pipeline_backend_;
  *next++ = {backend.load, values_[TileProgram::FirstOperand(layout_, program_.ops_[begin])]};
  for (int s = begin; s < end; ++s) {
    const TileLayout::PipelineStage& stage = layout_.stages[s];
    *next++ = {stage.fn, stage.operand < 0 ? nullptr : values_[stage.operand]};
    const bool is_last = s + 1 == end;
    const int result = program_.ops_[s].result, value = program_.num_arguments_ + s;
    const bool is_taken = program_.last_use_[value] > s;
    char* const place = DestinationOf(s, is_last && !is_taken, to);
    values_[value] = place;
    if (is_last) {
      const bool non_temporal = non_temporal_ && result >= 0 && place == to[result];
      *next++ = {non_temporal ? backend.store_non_temporal : backend.store, place};
    } else if (result >= 0 || program_.last_use_[value] > s + 1) {
      *next++ = {backend.store_and_pass, place};
    }
  }
  backend.run(pipeline, n);
}

// Pipelines process multiples of their width, which is a power of two. The remaining elements are a
// tile of their own.
void TileRunner::Run(int64_t begin, int64_t n, absl::Span<char* const> to) {
  const int64_t whole = layout_.has_pipelines ? n & -program_.pipeline_backend_->width : 0;
  if (whole == 0) return RunTile(begin, n, /*pipelines=*/false, to);
  RunTile(begin, whole, /*pipelines=*/true, to);
  if (whole == n) return;
  char* tail[kMaxFusedResults];
  for (size_t k = 0; k < to.size(); ++k)
    tail[k] = to[k] + static_cast<size_t>(whole) * program_.size_;
  RunTile(begin + whole, n - whole, /*pipelines=*/false, {tail, to.size()});
}

void TileRunner::RunTile(int64_t begin, int64_t n, bool pipelines, absl::Span<char* const> to) {
  for (int k = 0; k < program_.num_arguments_; ++k) {
    if (layout_.broadcast.kind(k) == Broadcast::Kind::kConstant) continue;
    values_[k] = layout_.broadcast.Tile(k, arguments_[k], program_.size_, begin, n, expanded_[k]);
  }
  num_deferred_ = 0;
  const int num_ops = static_cast<int>(program_.ops_.size());
  // Flushing happens after every other op.
  const size_t share =
      num_flushing_ == 0 ? 0 : 2 * num_flushing_ * flush_bytes_ / static_cast<size_t>(num_ops);
  for (int s = 0, end; s < num_ops; s = end) {
    end = pipelines ? layout_.stages[s].end : s + 1;
    end > s + 1 ? RunPipeline(s, end, n, to) : RunOp(s, n, to);
    if (share > 0 && s % 2 == 0) Flush(share);
  }
  const size_t bytes = static_cast<size_t>(n) * program_.size_;
  if (non_temporal_) {
    Finish();
    std::copy_n(deferred_, num_deferred_, flushing_);
    num_flushing_ = num_deferred_;
    flush_bytes_ = bytes;
    std::swap(result_buffers_, flushing_buffers_);
    return;
  }
  for (size_t k = 0; k < num_deferred_; ++k) std::memcpy(deferred_[k].to, deferred_[k].from, bytes);
}

// Writes about `bytes` more of the previous tile's results to memory, in whole cache lines.
void TileRunner::Flush(size_t bytes) {
  bytes = (bytes + non_temporal::kLine - 1) / non_temporal::kLine * non_temporal::kLine;
  while (bytes > 0 && num_flushing_ > 0) {
    const DeferredStore& last = flushing_[num_flushing_ - 1];
    const size_t some = std::min(bytes, flush_bytes_ - flushed_bytes_);
    non_temporal::Copy(last.from + flushed_bytes_, last.to + flushed_bytes_, some);
    bytes -= some;
    flushed_bytes_ += some;
    if (flushed_bytes_ < flush_bytes_) continue;
    --num_flushing_;
    flushed_bytes_ = 0;
  }
}

void TileRunner::Finish() { Flush(num_flushing_ * flush_bytes_); }

}  // namespace weir
