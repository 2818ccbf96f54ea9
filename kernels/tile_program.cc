#include "weir/kernels/tile_program.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "weir/kernels/non_temporal.h"
#include "weir/kernels/strided_copy.h"

// Several element-wise ops as one. Run one by one, each walks memory from end to end, and a pipeline
// of ten on large tensors waits for memory ten times. Here the whole pipeline is computed for a tile
// of a few hundred elements at a time: what lies between two steps stays in buffers in the
// first-level cache, and memory is read and written once. A step is a call of the loop
// (kernels/elementwise_loops.h) that the op's own kernel would have called for the whole tensor, so each
// element's result is the same, bit for bit, and no code is made for the combination. Where cheap
// steps follow on each other, what goes from one to the next does not even leave the registers
// (kernels/register_fusion.h).
//
// A buffer is free again after the last step that reads it, so that a pipeline needs two or three,
// however long it is. Steps whose values are results write them to where these lie, which may be
// the memory of an argument of the same shape. Nothing of an argument's tile is read after the last
// step; what an earlier one would write over an argument that is still needed stays in its buffer
// until the tile is done. Arguments of other shapes are spelled out for a tile by Broadcast.
namespace weir {

namespace {

constexpr int64_t kMostElements = int64_t{1} << 46;

// Where it is not known how large the cache is, as many as were found to be good for 32 KB.
size_t CachedBytes(bool streams) {
  static const int64_t half = sysconf(_SC_LEVEL1_DCACHE_SIZE) / 2;
  constexpr int64_t kLeast = 12 * 1024, kLeastStreamed = 16 * 1024;
  return static_cast<size_t>(
      std::clamp<int64_t>(half, streams ? kLeastStreamed : kLeast, TileProgram::kMostCached));
}

bool IsFusableType(DataType type) {
  return IsFloating(type) || type == DT_INT32 || type == DT_INT64;
}

}  // namespace

const UnaryLoop* FusableUnary(absl::string_view op, DataType type) {
  const UnaryLoop* const loop = IsFusableType(type) ? ElementwiseLoops().FindUnary(op, type) : nullptr;
  return loop != nullptr && loop->out_size == ElementSize(type) ? loop : nullptr;
}

const BinaryLoop* FusableBinary(absl::string_view op, DataType type) {
  const BinaryLoop* const loop = IsFusableType(type) ? ElementwiseLoops().FindBinary(op, type) : nullptr;
  const bool fits = loop != nullptr && loop->out_size == ElementSize(type) && !loop->own_kernel &&
                    loop->check == nullptr;
  return fits ? loop : nullptr;
}

absl::StatusOr<std::shared_ptr<const TileProgram>> TileProgram::Read(const TileOps& from) {
  auto program = std::make_shared<TileProgram>();
  const auto& [type, num_arguments, ops, operands, params, others_of] = from;
  program->num_arguments_ = num_arguments;
  program->size_ = ElementSize(type);
  program->pipeline_ends_ = FindPipelineEnds(type);
  if (ops.empty() || operands.size() != 2 * ops.size() || params.size() != ops.size() ||
      ops.size() > kMostFusedOps || num_arguments > kMostFusedArguments ||
      others_of.size() >= kMostFusedResults) {
    return InvalidArgument("fused_ops has ", ops.size(), " element-wise ops, operands ",
                           operands.size(), " entries and params ", params.size(), ", for ",
                           num_arguments, " arguments and ", others_of.size() + 1,
                           " results: there are two operands and one parameter an op, at most ",
                           kMostFusedOps, " ops, ", kMostFusedArguments, " arguments and ",
                           kMostFusedResults, " results");
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    Step step;
    step.p = params[i];
    const bool is_binary = operands[2 * i + 1] >= 0;
    if (is_binary) {
      step.binary = FusableBinary(ops[i], type);
    } else {
      step.unary = FusableUnary(ops[i], type);
    }
    if (step.unary == nullptr && step.binary == nullptr) {
      return Unimplemented("fusing ", ops[i], " of ", is_binary ? "two arguments" : "one argument",
                           " of type ", DataTypeName(type), " is not supported");
    }
    const int64_t known = program->num_arguments_ + static_cast<int64_t>(i);
    if (operands[2 * i] < 0 || operands[2 * i] >= known || operands[2 * i + 1] >= known) {
      return InvalidArgument("Step ", i, " takes values ", operands[2 * i], " and ",
                             operands[2 * i + 1], ", but there are ", known, " before it");
    }
    step.a = static_cast<int>(operands[2 * i]);
    step.b = is_binary ? static_cast<int>(operands[2 * i + 1]) : step.a;
    program->cost_ += is_binary ? step.binary->cost : step.unary->cost;
    program->steps_.push_back(step);
  }
  program->steps_.back().result = 0;
  for (const int64_t i : others_of) {
    if (i < 0 || i >= static_cast<int64_t>(ops.size()) || program->steps_[i].result >= 0) {
      return InvalidArgument("others_of has ", i, ", which is no op before the last of ",
                             ops.size(), ", or is there twice");
    }
    program->steps_[i].result = program->num_results_++;
  }
  program->AssignBuffers();
  if (program->num_buffers_ > TileRunner::kMostBuffers)
    return Unimplemented("the fused ops need ", program->num_buffers_, " values at a time");
  return std::shared_ptr<const TileProgram>(std::move(program));
}

void TileProgram::AssignBuffers() {
  last_use_.assign(num_arguments_ + steps_.size(), -1);
  for (size_t i = 0; i < steps_.size(); ++i)
    last_use_[steps_[i].a] = last_use_[steps_[i].b] = static_cast<int>(i);
  std::vector<int> free;
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    const auto release = [&](int value) {
      if (value < num_arguments_ || last_use_[value] > static_cast<int>(i)) return;
      const Step& maker = steps_[value - num_arguments_];
      if (maker.result < 0) free.push_back(maker.buffer);
    };
    release(step.a);
    if (step.b != step.a) release(step.b);
    if (free.empty()) free.push_back(num_buffers_++);
    step.buffer = free.back();
    free.pop_back();
  }
}

std::shared_ptr<const TileLayout> TileProgram::Plan(absl::Span<const Shape> shapes) const {
  if (shapes.empty() || static_cast<int>(shapes.size()) != num_arguments_) return nullptr;
  Shape result = shapes[0];
  for (const Shape& shape : shapes) {
    if (!shape.IsFullyDefined()) return nullptr;
    absl::StatusOr<Shape> both = BroadcastShapes(result, shape);
    if (!both.ok()) return nullptr;
    result = *std::move(both);
  }
  if (result.num_elements() > kMostElements) return nullptr;
  for (const Step& step : steps_) {
    if (step.binary == nullptr || step.binary->broadcasts) continue;
    for (const int value : {step.a, step.b}) {
      if (value < num_arguments_ && shapes[value] != result) return nullptr;
    }
  }
  std::vector<const Shape*> pointers;
  for (const Shape& shape : shapes) pointers.push_back(&shape);
  auto layout = std::make_shared<TileLayout>(
      TileLayout{{shapes.begin(), shapes.end()}, result, Broadcast(result, pointers)});
  ChooseCalls(layout.get());
  FindChains(layout.get());
  return layout;
}

bool TileProgram::IsNumber(const TileLayout& layout, int value) {
  return value < static_cast<int>(layout.arguments.size()) &&
         layout.broadcast.kind(value) == Broadcast::Kind::kConstant;
}

// A number is taken as such by the steps that can, and repeated for others.
void TileProgram::ChooseCalls(TileLayout* layout) const {
  layout->calls.assign(steps_.size(), nullptr);
  layout->spelled_out.resize(static_cast<size_t>(num_arguments_));
  for (int k = 0; k < num_arguments_; ++k)
    layout->spelled_out[k] = layout->broadcast.kind(k) == Broadcast::Kind::kStrided;
  for (size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const bool first = IsNumber(*layout, step.a), second = IsNumber(*layout, step.b);
    BinaryLoop::Fn& call = layout->calls[s];
    if (step.binary != nullptr) call = step.binary->FormFor(first, second);
    if (call != nullptr) continue;
    if (step.binary != nullptr) call = step.binary->run;
    if (first) layout->spelled_out[step.a] = true;
    if (second) layout->spelled_out[step.b] = true;
  }
}

// Of two numbers the first, which is then repeated for the tile.
int TileProgram::FirstOf(const TileLayout& layout, const Step& step) {
  return IsNumber(layout, step.a) && !IsNumber(layout, step.b) ? step.b : step.a;
}

TileLayout::StageUse TileProgram::StageOf(const TileLayout& layout, const Step& step, int value) {
  if (step.unary != nullptr) return {.stage = step.unary->stage};
  const bool is_first = step.a == value;
  const int other = is_first ? step.b : step.a;
  const BinaryStages& stages = step.binary->stages;
  if (IsNumber(layout, other))
    return {.stage = is_first ? stages.number_second : stages.number_first, .other = other};
  return {.stage = is_first ? stages.elements_second : stages.elements_first, .other = other};
}

// A pipeline goes on as long as a step takes the value of the one before it, once.
void TileProgram::FindChains(TileLayout* layout) const {
  if (pipeline_ends_ == nullptr || layout->result.num_elements() < pipeline_ends_->width) return;
  const int num_steps = static_cast<int>(steps_.size());
  layout->stages.resize(steps_.size());
  TileLayout::StageUse* const stages = layout->stages.data();
  for (int begin = 0, end; begin < num_steps; begin = end) {
    stages[begin] = StageOf(*layout, steps_[begin], FirstOf(*layout, steps_[begin]));
    for (end = begin + 1; stages[end - 1].stage != nullptr && end < num_steps; ++end) {
      const Step& step = steps_[end];
      const int last = num_arguments_ + end - 1;
      const bool first = step.a == last, second = step.binary != nullptr && step.b == last;
      if (first == second) break;
      stages[end] = StageOf(*layout, step, last);
      if (stages[end].stage == nullptr) break;
    }
    for (int s = begin; s < end; ++s) stages[s].end = end;
    layout->has_pipelines |= end > begin + 1;
  }
  const auto is_kept = [this](int step) { return last_use_[num_arguments_ + step] > step + 1; };
  layout->is_one_pipeline =
      layout->has_pipelines && layout->stages[0].end == num_steps && num_results_ == 1 &&
      std::count(layout->spelled_out.begin(), layout->spelled_out.end(), true) == 0;
  for (int s = 0; s + 1 < num_steps; ++s) layout->is_one_pipeline &= !is_kept(s);
}

absl::StatusOr<const TileLayout*> TileProgram::LayoutFor(
    const KernelContext& c, const TileLayout* planned,
    std::shared_ptr<const TileLayout>* made) const {
  bool as_planned = planned != nullptr;
  for (int k = 0; as_planned && k < c.num_inputs(); ++k)
    as_planned = c.input(k).shape() == planned->arguments[k];
  if (as_planned) return planned;
  std::vector<Shape> shapes;
  for (int k = 0; k < c.num_inputs(); ++k) shapes.push_back(c.input(k).shape());
  return LayoutFor(shapes, nullptr, made);
}

absl::StatusOr<const TileLayout*> TileProgram::LayoutFor(
    absl::Span<const Shape> shapes, const TileLayout* planned,
    std::shared_ptr<const TileLayout>* made) const {
  if (planned != nullptr && shapes == planned->arguments) return planned;
  *made = Plan(shapes);
  if (*made == nullptr)
    return InvalidArgument("Incompatible or too large shapes of the fused ops' arguments");
  return made->get();
}

int64_t TileProgram::TileSize(const TileLayout& layout, bool streams) const {
  size_t buffers = static_cast<size_t>(num_buffers_ + (streams ? 2 * num_results_ : 0));
  buffers +=
      static_cast<size_t>(std::count(layout.spelled_out.begin(), layout.spelled_out.end(), true));
  const int64_t room =
      static_cast<int64_t>(CachedBytes(streams) / (std::max<size_t>(buffers, 1) * size_));
  return std::clamp<int64_t>(room / 64 * 64, TileRunner::kSmallestTile, kLargestTile);
}

TileRunner::TileRunner(const TileProgram& program, const TileLayout& layout,
                       absl::FunctionRef<const void*(int)> argument, int64_t most, bool streams)
    : program_(program),
      layout_(layout),
      streams_(streams),
      buffer_bytes_(static_cast<size_t>(program.TileSize(layout, streams)) * program.size_) {
  int next = program.num_buffers_;
  for (int k = 0; k < program.num_arguments_; ++k) {
    arguments_[k] = argument(k);
    spelled_out_[k] = layout.spelled_out[k] ? Buffer(next++) : nullptr;
    if (layout.broadcast.kind(k) != Broadcast::Kind::kConstant) continue;
    values_[k] = arguments_[k];
    if (spelled_out_[k] == nullptr) continue;
    FillElements(spelled_out_[k], arguments_[k], program.size_, most);
    values_[k] = spelled_out_[k];
  }
  own_ = next;
  others_ = next + program.num_results_;
}

// Whether `place` is an argument's tile that a step after this one reads.
bool TileRunner::IsNeededAfter(int step, const char* place) const {
  for (int k = 0; k < program_.num_arguments_; ++k) {
    if (values_[k] == place && program_.last_use_[k] > step) return true;
  }
  return false;
}

// Where a step's value goes: to the place of a result, or to a buffer. What is stored non-temporally goes to its
// place at once if a pipeline `ends` with it, no other step takes it, and it is whole lines.
char* TileRunner::PlaceOf(int s, bool ends, absl::Span<char* const> to) {
  const TileProgram::Step& step = program_.steps_[s];
  if (step.result < 0) return Buffer(step.buffer);
  char* const place = to[step.result];
  const bool is_free = !IsNeededAfter(s, place);
  if (is_free && (!streams_ || (ends && non_temporal::IsAligned(place, 0)))) return place;
  char* const buffer = Buffer(streams_ ? own_ + step.result : step.buffer);
  made_[num_made_++] = {buffer, place};
  return buffer;
}

inline void TileRunner::RunStep(int s, int64_t n, absl::Span<char* const> to) {
  const TileProgram::Step& step = program_.steps_[s];
  char* const result = PlaceOf(s, /*ends=*/false, to);
  if (step.binary != nullptr) {
    layout_.calls[s](*step.binary, values_[step.a], values_[step.b], result, n, step.p);
  } else {
    step.unary->run(*step.unary, values_[step.a], result, n, step.p);
  }
  values_[program_.num_arguments_ + s] = result;
}

// Steps [begin, end), which are a pipeline.
void TileRunner::RunChain(int begin, int end, int64_t n, absl::Span<char* const> to) {
  FusedStage pipeline[2 * kMostFusedOps + 1];
  FusedStage* next = pipeline;
  const PipelineEnds& ends = *program_.pipeline_ends_;
  *next++ = {ends.load, values_[TileProgram::FirstOf(layout_, program_.steps_[begin])]};
  for (int s = begin; s < end; ++s) {
    const TileLayout::StageUse& stage = layout_.stages[s];
    *next++ = {stage.stage, stage.other < 0 ? nullptr : values_[stage.other]};
    const bool is_last = s + 1 == end;
    const int result = program_.steps_[s].result, value = program_.num_arguments_ + s;
    const bool is_taken = program_.last_use_[value] > s;
    char* const place = PlaceOf(s, is_last && !is_taken, to);
    values_[value] = place;
    if (is_last) {
      const bool streams = streams_ && result >= 0 && place == to[result];
      *next++ = {streams ? ends.stream : ends.store, place};
    } else if (result >= 0 || program_.last_use_[value] > s + 1) {
      *next++ = {ends.keep, place};
    }
  }
  ends.run(pipeline, n);
}

// Chains take whole widths, a power of two; what is left is a tile of its own.
void TileRunner::Run(int64_t begin, int64_t n, absl::Span<char* const> to) {
  const int64_t whole = layout_.has_pipelines ? n & -program_.pipeline_ends_->width : 0;
  if (whole == 0) return RunTile(begin, n, /*pipelines=*/false, to);
  RunTile(begin, whole, /*pipelines=*/true, to);
  if (whole == n) return;
  char* behind[kMostFusedResults];
  for (size_t k = 0; k < to.size(); ++k)
    behind[k] = to[k] + static_cast<size_t>(whole) * program_.size_;
  RunTile(begin + whole, n - whole, /*pipelines=*/false, {behind, to.size()});
}

void TileRunner::RunTile(int64_t begin, int64_t n, bool pipelines, absl::Span<char* const> to) {
  for (int k = 0; k < program_.num_arguments_; ++k) {
    if (layout_.broadcast.kind(k) == Broadcast::Kind::kConstant) continue;
    values_[k] =
        layout_.broadcast.Tile(k, arguments_[k], program_.size_, begin, n, spelled_out_[k]);
  }
  num_made_ = 0;
  const int num_steps = static_cast<int>(program_.steps_.size());
  // Every other step.
  const size_t share =
      num_kept_ == 0 ? 0 : 2 * num_kept_ * kept_bytes_ / static_cast<size_t>(num_steps);
  for (int s = 0, end; s < num_steps; s = end) {
    end = pipelines ? layout_.stages[s].end : s + 1;
    end > s + 1 ? RunChain(s, end, n, to) : RunStep(s, n, to);
    if (share > 0 && s % 2 == 0) Stream(share);
  }
  const size_t bytes = static_cast<size_t>(n) * program_.size_;
  if (streams_) {
    Finish();
    std::copy_n(made_, num_made_, kept_);
    num_kept_ = num_made_;
    kept_bytes_ = bytes;
    std::swap(own_, others_);
    return;
  }
  for (size_t k = 0; k < num_made_; ++k) std::memcpy(made_[k].to, made_[k].from, bytes);
}

// So many bytes more, about, of what is kept, in whole lines.
void TileRunner::Stream(size_t bytes) {
  bytes = (bytes + non_temporal::kLine - 1) / non_temporal::kLine * non_temporal::kLine;
  while (bytes > 0 && num_kept_ > 0) {
    const Kept& last = kept_[num_kept_ - 1];
    const size_t some = std::min(bytes, kept_bytes_ - streamed_);
    non_temporal::Copy(last.from + streamed_, last.to + streamed_, some);
    bytes -= some;
    streamed_ += some;
    if (streamed_ < kept_bytes_) continue;
    --num_kept_;
    streamed_ = 0;
  }
}

void TileRunner::Finish() { Stream(num_kept_ * kept_bytes_); }

}  // namespace weir
