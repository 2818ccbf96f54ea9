#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "weir/kernels/broadcast.h"
#include "weir/kernels/fused_elementwise.h"
#include "weir/kernels/registry.h"
#include "weir/kernels/spans.h"
#include "weir/kernels/strided_copy.h"

// Several element-wise ops as one. Run one by one, each walks memory from end to end, and a chain
// of ten on large tensors waits for memory ten times. Here the whole chain is computed for a tile
// of a few hundred elements at a time: what lies between two steps stays in buffers in the
// first-level cache, and memory is read and written once. A step is a call of the span
// (kernels/spans.h) that the op's own kernel would have called for the whole tensor, so each
// element's result is the same, bit for bit, and no code is made for the combination.
//
// A buffer is free again after the last step that reads it, so that a chain needs two or three,
// however long it is. The last step writes to the result, which may be the memory of an argument of
// the same shape: nothing of that argument's tile is read after it. Arguments of other shapes are
// spelled out for a tile by Broadcast.
namespace weir {

namespace {

constexpr int kMostBuffers = 24;
constexpr int64_t kMostElements = int64_t{1} << 46;
constexpr int64_t kSmallestTile = 64;
constexpr size_t kScratch =
    kSmallestTile * 8 * static_cast<size_t>(kMostBuffers + kMostFusedArguments);
constexpr int64_t kLargestTile = 1024;
// Of all buffers, where there are few: the rest of the first-level cache is for the arguments.
constexpr size_t kCached = 12 * 1024;

struct Step {
  const UnarySpan* unary = nullptr;  // or
  const BinarySpan* binary = nullptr;
  double p = 0;
  int a = 0, b = 0;  // values: the arguments, then the results of the steps
  int buffer = 0;    // of the result, but for the last step's
};

// How the arguments lie over the result.
struct Layout {
  std::vector<Shape> arguments;
  Shape result;
  Broadcast broadcast;
};

bool IsFusableType(DataType type) {
  return IsFloating(type) || type == DT_INT32 || type == DT_INT64;
}

// Null for ops that cannot be fused.
const UnarySpan* FusableUnary(absl::string_view op, DataType type) {
  const UnarySpan* const span = IsFusableType(type) ? Spans().FindUnary(op, type) : nullptr;
  return span != nullptr && span->out_size == ElementSize(type) ? span : nullptr;
}
const BinarySpan* FusableBinary(absl::string_view op, DataType type) {
  const BinarySpan* const span = IsFusableType(type) ? Spans().FindBinary(op, type) : nullptr;
  const bool fits = span != nullptr && span->out_size == ElementSize(type) && !span->own_kernel &&
                    span->check == nullptr;
  return fits ? span : nullptr;
}

class Program {
 public:
  static absl::StatusOr<std::shared_ptr<const Program>> Read(const Node& node);

  // Null where a shape is not known, or they do not fit, or the result would be too large.
  std::shared_ptr<const Layout> Plan(absl::Span<const Shape> shapes) const;
  absl::Status Run(KernelContext& c, const Layout& layout) const;
  int num_arguments() const { return num_arguments_; }

 private:
  void AssignBuffers();
  void RunTiles(const KernelContext& c, const Layout& layout, char* out, int64_t begin, int64_t end,
                int64_t tile) const;

  int num_arguments_ = 0;
  size_t size_ = 0;  // bytes of an element
  std::vector<Step> steps_;
  int num_buffers_ = 0;
  double cost_ = 0;
};

absl::StatusOr<std::shared_ptr<const Program>> Program::Read(const Node& node) {
  auto program = std::make_shared<Program>();
  const auto ops = node.attr<std::vector<std::string>>("fused_ops");
  const auto operands = node.attr<std::vector<int64_t>>("operands");
  const auto params = node.attr<std::vector<float>>("params");
  const DataType type = node.attr<DataType>("T");
  program->num_arguments_ = node.num_inputs();
  program->size_ = ElementSize(type);
  if (ops.empty() || operands.size() != 2 * ops.size() || params.size() != ops.size() ||
      ops.size() > kMostFusedOps || node.num_inputs() > kMostFusedArguments) {
    return InvalidArgument("fused_ops has ", ops.size(), " ops, operands ", operands.size(),
                           " entries and params ", params.size(), ", for ", node.num_inputs(),
                           " arguments: there are two operands and one parameter an op, at most ",
                           kMostFusedOps, " ops and ", kMostFusedArguments, " arguments");
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
  program->AssignBuffers();
  if (program->num_buffers_ > kMostBuffers)
    return Unimplemented("the fused ops need ", program->num_buffers_, " values at a time");
  return std::shared_ptr<const Program>(std::move(program));
}

void Program::AssignBuffers() {
  std::vector<int> last_use(num_arguments_ + steps_.size(), -1);
  for (size_t i = 0; i < steps_.size(); ++i)
    last_use[steps_[i].a] = last_use[steps_[i].b] = static_cast<int>(i);
  std::vector<int> free;
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    const auto release = [&](int value) {
      if (value >= num_arguments_ && last_use[value] == static_cast<int>(i))
        free.push_back(steps_[value - num_arguments_].buffer);
    };
    release(step.a);
    if (step.b != step.a) release(step.b);
    if (free.empty()) free.push_back(num_buffers_++);
    step.buffer = free.back();
    free.pop_back();
  }
}

std::shared_ptr<const Layout> Program::Plan(absl::Span<const Shape> shapes) const {
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
  return std::make_shared<Layout>(
      Layout{{shapes.begin(), shapes.end()}, result, Broadcast(result, pointers)});
}

void Program::RunTiles(const KernelContext& c, const Layout& layout, char* out, int64_t begin,
                       int64_t end, int64_t tile) const {
  alignas(64) char scratch[kScratch];
  const size_t buffer_bytes = static_cast<size_t>(tile) * size_;
  const void* values[kMostFusedArguments + kMostFusedOps];
  char* spelled_out[kMostFusedArguments];  // null: the argument lies as the result does
  char* next = scratch + static_cast<size_t>(num_buffers_) * buffer_bytes;
  for (int k = 0; k < num_arguments_; ++k) {
    const Broadcast::Kind kind = layout.broadcast.kind(k);
    spelled_out[k] = kind == Broadcast::Kind::kDense ? nullptr : next;
    if (kind == Broadcast::Kind::kDense) continue;
    next += buffer_bytes;
    if (kind == Broadcast::Kind::kConstant) {
      FillElements(spelled_out[k], c.input(k).raw(), size_, std::min(tile, end - begin));
      values[k] = spelled_out[k];
    }
  }
  for (int64_t i = begin; i < end; i += tile) {
    const int64_t n = std::min(tile, end - i);
    for (int k = 0; k < num_arguments_; ++k) {
      if (layout.broadcast.kind(k) == Broadcast::Kind::kConstant) continue;
      values[k] = layout.broadcast.Tile(k, c.input(k).raw(), size_, i, n, spelled_out[k]);
    }
    for (size_t s = 0; s < steps_.size(); ++s) {
      const Step& step = steps_[s];
      char* const to = s + 1 == steps_.size()
                           ? out + static_cast<size_t>(i) * size_
                           : scratch + static_cast<size_t>(step.buffer) * buffer_bytes;
      if (step.binary != nullptr) {
        step.binary->run(*step.binary, values[step.a], values[step.b], to, n, step.p);
      } else {
        step.unary->run(*step.unary, values[step.a], to, n, step.p);
      }
      values[num_arguments_ + s] = to;
    }
  }
}

absl::Status Program::Run(KernelContext& c, const Layout& layout) const {
  Tensor* out = c.PlannedOutput(0, layout.result);
  if (out == nullptr) {
    WEIR_ASSIGN_OR_RETURN(out, c.AllocateOutput(0, layout.result));
  }
  const int64_t n = out->num_elements();
  if (n == 0) return absl::OkStatus();
  size_t buffers = static_cast<size_t>(num_buffers_);
  for (int k = 0; k < num_arguments_; ++k)
    buffers += layout.broadcast.kind(k) == Broadcast::Kind::kDense ? 0 : 1;
  const int64_t room = static_cast<int64_t>(kCached / (std::max<size_t>(buffers, 1) * size_));
  const int64_t tile = std::clamp<int64_t>(room / 64 * 64, kSmallestTile, kLargestTile);
  char* const to = static_cast<char*>(out->raw());
  if (n <= tile) {
    RunTiles(c, layout, to, 0, n, tile);
  } else {
    c.pool().ParallelFor(
        n, cost_, [&](int64_t begin, int64_t end) { RunTiles(c, layout, to, begin, end, tile); },
        tile);
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeFused(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const Program> program, Program::Read(init.node));
  const std::shared_ptr<const Layout> planned = program->Plan(init.input_shapes);
  return Kernel([program, planned](KernelContext& c) -> absl::Status {
    bool as_planned = planned != nullptr;
    for (int k = 0; as_planned && k < c.num_inputs(); ++k)
      as_planned = c.input(k).shape() == planned->arguments[k];
    if (as_planned) return program->Run(c, *planned);
    std::vector<Shape> shapes;
    for (int k = 0; k < c.num_inputs(); ++k) shapes.push_back(c.input(k).shape());
    const std::shared_ptr<const Layout> layout = program->Plan(shapes);
    if (layout == nullptr)
      return InvalidArgument("Incompatible or too large shapes of the fused ops' arguments");
    return program->Run(c, *layout);
  });
}

}  // namespace

std::optional<FusableOp> FindFusableOp(absl::string_view op, size_t num_arguments, DataType type) {
  if (num_arguments == 1) {
    const UnarySpan* const span = FusableUnary(op, type);
    if (span == nullptr) return std::nullopt;
    return FusableOp{true, span->param};
  }
  if (num_arguments != 2) return std::nullopt;
  const BinarySpan* const span = FusableBinary(op, type);
  if (span == nullptr) return std::nullopt;
  return FusableOp{span->broadcasts, span->param};
}

void AddFusedElementwiseKernels(KernelRegistry* r) {
  std::vector<int> arguments(kMostFusedArguments);
  for (int k = 0; k < kMostFusedArguments; ++k) arguments[k] = k;
  r->Add("_FusedElementwise", kCpu, MakeFused).InPlace(arguments);
}

}  // namespace weir
