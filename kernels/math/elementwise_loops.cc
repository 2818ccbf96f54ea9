#include "weir/kernels/math/elementwise_loops.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <set>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "weir/kernels/lib/broadcast.h"
#include "weir/kernels/lib/narrow_floats.h"
#include "weir/kernels/lib/non_temporal.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/math/families.h"

// A whole tensor is one call of its loop if it is small, otherwise several calls on several
// threads. The same applies to a binary op whose arguments have equal shapes. Otherwise the result
// is computed in tiles of kTile elements, and broadcast operands are expanded into a tile buffer on
// the stack. So loops need not handle broadcasting, the buffers stay in the L1 cache, and only one
// loop per function and type is compiled.
namespace weir {

namespace {

constexpr int64_t kTile = 512;
constexpr int64_t kSmall = 4096;
constexpr size_t kMaxElement = 16;

// 16-bit floats: widened to float tile by tile, computed, and rounded back.
template <class T>
void UnaryThroughFloat(const UnaryLoop& self, const void* x, void* y, int64_t n, double p) {
  alignas(64) float buffer[kTile];
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t m = std::min(kTile, n - i);
    Widen(static_cast<const T*>(x) + i, buffer, m);
    if (self.out_size != sizeof(T)) {
      self.wide(self, buffer, static_cast<char*>(y) + i * self.out_size, m, p);
    } else {
      self.wide(self, buffer, buffer, m, p);
      Narrow(buffer, static_cast<T*>(y) + i, m);
    }
  }
}

template <class T>
void BinaryThroughFloat(const BinaryLoop& self, const void* x, const void* y, void* z, int64_t n,
                        double p) {
  alignas(64) float a[kTile];
  alignas(64) float b[kTile];
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t m = std::min(kTile, n - i);
    Widen(static_cast<const T*>(x) + i, a, m);
    Widen(static_cast<const T*>(y) + i, b, m);
    if (self.out_size != sizeof(T)) {
      self.wide(self, a, b, static_cast<char*>(z) + i * self.out_size, m, p);
    } else {
      self.wide(self, a, b, a, m, p);
      Narrow(a, static_cast<T*>(z) + i, m);
    }
  }
}

struct UnaryKernel {
  const UnaryLoop* loop;
  double p;
  absl::Status operator()(KernelContext& c) const { return RunUnary(c, *loop, p); }
};
const char* At(const Tensor& t, int64_t i, size_t size) {
  return static_cast<const char*>(t.raw()) + i * size;
}

// Calls run(i, n, to), for results [i, i + n), on the pool's threads until all `size` results at
// `out` are computed.
template <class Span, class F>
void ForEachPiece(ThreadPool& pool, int64_t size, const Span& loop, void* out, F&& run) {
  char* const results = static_cast<char*>(out);
  const bool streams = non_temporal::Pays(static_cast<size_t>(size) * loop.out_size);
  pool.ParallelFor(
      size, loop.cost,
      [&](int64_t begin, int64_t end) {
        if (streams) {
          non_temporal::WriteTiles(begin, end, loop.out_size, results, run);
        } else {
          run(begin, end - begin, results + begin * loop.out_size);
        }
      },
      /*align=*/64);
}

void RunEqualShapes(ThreadPool& pool, const BinaryLoop& loop, double p, const Tensor& x,
                    const Tensor& y, Tensor* z) {
  const int64_t n = z->num_elements();
  if (n <= kSmall) {
    if (n > 0) loop.run(loop, x.raw(), y.raw(), z->raw(), n, p);
    return;
  }
  ForEachPiece(pool, n, loop, z->raw(), [&](int64_t begin, int64_t m, void* to) {
    loop.run(loop, At(x, begin, loop.in_size), At(y, begin, loop.in_size), to, m, p);
  });
}

void RunTiles(ThreadPool& pool, const BinaryLoop& loop, double p, const Broadcast& broadcast,
              const Tensor& x, const Tensor& y, Tensor* z) {
  const int64_t n = z->num_elements();
  char* const out = static_cast<char*>(z->raw());
  const bool numbers[] = {broadcast.kind(0) == Broadcast::Kind::kConstant,
                          broadcast.kind(1) == Broadcast::Kind::kConstant};
  const BinaryLoop::Fn form = loop.ScalarVariantFor(numbers[0], numbers[1]);
  if (form != nullptr && broadcast.kind(numbers[0] ? 1 : 0) == Broadcast::Kind::kDense) {
    const auto from = [&](const Tensor& t, bool is_scalar, int64_t i) {
      return is_scalar ? t.raw() : At(t, i, loop.in_size);
    };
    ForEachPiece(pool, n, loop, out, [&](int64_t i, int64_t m, void* to) {
      form(loop, from(x, numbers[0], i), from(y, numbers[1], i), to, m, p);
    });
    return;
  }
  const bool streams = non_temporal::Pays(z->num_bytes());
  const auto tiles = [&](int64_t begin, int64_t end) {
    alignas(64) char buffers[2][kTile * kMaxElement];
    const Tensor* const args[] = {&x, &y};
    for (int k = 0; k < 2; ++k) {
      if (broadcast.kind(k) != Broadcast::Kind::kConstant) continue;
      FillElements(buffers[k], args[k]->raw(), loop.in_size, std::min(kTile, end - begin));
    }
    const auto tile = [&](int64_t i, int64_t m, void* to) {
      const void* at[2];
      for (int k = 0; k < 2; ++k) {
        at[k] = broadcast.kind(k) == Broadcast::Kind::kConstant
                    ? buffers[k]
                    : broadcast.Tile(k, args[k]->raw(), loop.in_size, i, m, buffers[k]);
      }
      loop.run(loop, at[0], at[1], to, m, p);
    };
    if (streams) return non_temporal::WriteTiles(begin, end, loop.out_size, out, tile, kTile);
    for (int64_t i = begin; i < end; i += kTile)
      tile(i, std::min(kTile, end - i), out + i * loop.out_size);
  };
  if (n <= kSmall) {
    tiles(0, n);
  } else {
    pool.ParallelFor(n, loop.cost + 0.1, tiles, kTile);
  }
}

// A broadcast layout computed when the kernel is created, for the shapes that the plan expects.
struct BroadcastLayout {
  Shape x, y, z;
  Broadcast broadcast;
  // For results of one tile: a strided argument is copied in units of unit[k] bytes (elements that
  // stay contiguous), each from its entry in sources[k], counted in units.
  size_t unit[2] = {0, 0};
  std::vector<int32_t> sources[2];
};

void ComputeTileSources(int k, size_t size, int64_t elements, BroadcastLayout* layout) {
  const Broadcast& broadcast = layout->broadcast;
  const int last = broadcast.rank() - 1;
  int64_t together = 1;  // elements per unit
  while (broadcast.stride(k, last) == 1 && broadcast.dim(last) % (2 * together) == 0 &&
         2 * together * size <= kMaxElement) {
    together *= 2;
  }
  std::vector<int32_t> all(elements), places(layout->z.num_elements());
  std::iota(all.begin(), all.end(), 0);
  broadcast.Gather(k, all.data(), sizeof(int32_t), 0, layout->z.num_elements(), places.data());
  for (size_t i = 0; i < places.size(); i += together) {
    layout->sources[k].push_back(places[i] / static_cast<int32_t>(together));
  }
  layout->unit[k] = together * size;
}

std::shared_ptr<const BroadcastLayout> MakeBroadcastLayout(size_t size, const Shape& x,
                                                           const Shape& y) {
  const absl::StatusOr<Shape> z = BroadcastShapes(x, y);
  if (!z.ok() || z->num_elements() == 0) return nullptr;
  const Shape* const arguments[] = {&x, &y};
  auto layout =
      std::make_shared<BroadcastLayout>(BroadcastLayout{x, y, *z, Broadcast(*z, arguments)});
  for (int k = 0; z->num_elements() <= kTile && k < 2; ++k) {
    if (layout->broadcast.kind(k) != Broadcast::Kind::kStrided) continue;
    ComputeTileSources(k, size, arguments[k]->num_elements(), layout.get());
  }
  return layout;
}

// Kernels of equal shapes share a layout: few of a graph's many nodes differ in shapes, so the
// layouts stay in the L1 cache. Layouts that no kernel references are removed whenever the map has
// doubled in size.
class BroadcastLayoutCache {
 public:
  std::shared_ptr<const BroadcastLayout> Get(size_t size, const Shape& x, const Shape& y) {
    const std::string key = absl::StrCat(size, x.ToString(), y.ToString());
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto it = layouts_.find(key); it != layouts_.end()) {
      if (auto layout = it->second.lock()) return layout;
    }
    auto layout = MakeBroadcastLayout(size, x, y);
    if (layout == nullptr) return nullptr;
    if (layouts_.size() >= sweep_at_) {
      absl::erase_if(layouts_, [](const auto& entry) { return entry.second.expired(); });
      sweep_at_ = std::max<size_t>(64, 2 * layouts_.size());
    }
    layouts_[key] = layout;
    return layout;
  }

 private:
  std::mutex mutex_;
  absl::flat_hash_map<std::string, std::weak_ptr<const BroadcastLayout>> layouts_;
  size_t sweep_at_ = 64;
};

// Returns null if there is nothing to precompute: equal shapes, unknown shapes, or no broadcasting.
std::shared_ptr<const BroadcastLayout> FindBroadcastLayout(const BinaryLoop& loop,
                                                           absl::Span<const Shape> shapes) {
  if (!loop.broadcasts || shapes.size() != 2 || shapes[0] == shapes[1]) return nullptr;
  if (!shapes[0].IsFullyDefined() || !shapes[1].IsFullyDefined()) return nullptr;
  static auto* const layouts = new BroadcastLayoutCache;
  return layouts->Get(loop.in_size, shapes[0], shapes[1]);
}

// Writes `n` copies of an element, 16 bytes at a time. Writes up to 15 bytes past the end.
void Repeat(const char* element, size_t size, int64_t n, char* to) {
  alignas(16) char pattern[16];
  DispatchSize(size, [&]<class U>() {
    for (size_t i = 0; i < sizeof pattern; i += sizeof(U))
      std::memcpy(pattern + i, element, sizeof(U));
  });
  const int64_t bytes = n * static_cast<int64_t>(size);
  for (int64_t i = 0; i < bytes; i += sizeof pattern) std::memcpy(to + i, pattern, sizeof pattern);
}

// Computes a result of one tile. Source indices are looked up, not computed.
void RunTile(const BinaryLoop& loop, double p, const BroadcastLayout& layout, const Tensor& x,
             const Tensor& y, Tensor* z) {
  alignas(64) char buffers[2][kTile * kMaxElement];
  const int64_t n = z->num_elements();
  const void* at[] = {x.raw(), y.raw()};
  for (int k = 0; k < 2; ++k) {
    if (layout.broadcast.kind(k) == Broadcast::Kind::kDense) continue;
    const char* const from = static_cast<const char*>(at[k]);
    char* const to = buffers[k];
    if (layout.broadcast.kind(k) == Broadcast::Kind::kConstant) {
      Repeat(from, loop.in_size, n, to);
    } else {
      DispatchSize(layout.unit[k], [&]<class U>() {
        const int32_t* const sources = layout.sources[k].data();
        const int64_t units = static_cast<int64_t>(layout.sources[k].size());
        for (int64_t i = 0; i < units; ++i)
          std::memcpy(to + i * sizeof(U), from + sources[i] * sizeof(U), sizeof(U));
      });
    }
    at[k] = to;
  }
  loop.run(loop, at[0], at[1], z->raw(), n, p);
}

absl::Status RunBroadcast(KernelContext& c, const BinaryLoop& loop, double p,
                          const BroadcastLayout& layout) {
  const Tensor &x = c.input(0), &y = c.input(1);
  if (loop.check != nullptr) WEIR_RETURN_IF_ERROR(loop.check(x, y));
  Tensor* out = c.PlannedOutput(0, layout.z);
  if (out == nullptr) {
    WEIR_ASSIGN_OR_RETURN(out, c.AllocateOutput(0, layout.z));
  }
  if (out->num_elements() <= kTile) {
    RunTile(loop, p, layout, x, y, out);
  } else {
    RunTiles(c.pool(), loop, p, layout.broadcast, x, y, out);
  }
  return absl::OkStatus();
}

struct BinaryKernel {
  const BinaryLoop* loop;
  double p;
  std::shared_ptr<const BroadcastLayout> layout;
  absl::Status operator()(KernelContext& c) const {
    if (layout != nullptr && c.input(0).shape() == layout->x && c.input(1).shape() == layout->y) {
      return RunBroadcast(c, *loop, p, *layout);
    }
    return RunBinary(c, *loop, p);
  }
};

// Returns the type constraints of the op's registration: T, and the output type where that is an
// attribute (ComplexAbs). An op without the attribute T has a single type, bool. Looks up no other
// op: that would create the family of an op that no graph uses.
TypeConstraints ConstraintsFor(const std::string& op, DataType type, size_t out_size) {
  if (type != DT_BOOL && ElementSize(type) == out_size) return {{"T", type}};
  const OpSpec* const spec = BuiltinOps().Find(op);
  if (spec != nullptr && spec->FindAttr("T") == nullptr) return {};
  const AttrSpec* const out = spec == nullptr ? nullptr : spec->FindAttr("Tout");
  if (out == nullptr) return {{"T", type}};
  for (const DataType t : out->allowed_types) {
    if (ElementSize(t) == out_size) return {{"T", type}, {"Tout", t}};
  }
  return {{"T", type}};
}

double ParamOf(const char* param, const Node& node) {
  return param == nullptr ? 0 : node.attr_or<float>(param, 0);
}

}  // namespace

absl::Status RunUnary(KernelContext& c, const UnaryLoop& loop, double p) {
  const Tensor& x = c.input(0);
  const int64_t n = x.num_elements();
  Tensor* out = c.PlannedOutput(0, x.shape());
  if (out == nullptr) {
    WEIR_ASSIGN_OR_RETURN(out, c.AllocateOutput(0, x.shape()));
  }
  void* const y = out->raw();
  if (n <= kSmall) {
    if (n > 0) loop.run(loop, x.raw(), y, n, p);
    return absl::OkStatus();
  }
  ForEachPiece(c.pool(), n, loop, y, [&](int64_t begin, int64_t m, void* to) {
    loop.run(loop, At(x, begin, loop.in_size), to, m, p);
  });
  return absl::OkStatus();
}

absl::Status RunBinary(ThreadPool& pool, const BinaryLoop& loop, double p, const Tensor& x,
                       const Tensor& y, Tensor* z) {
  if (loop.check != nullptr && z->num_elements() > 0) WEIR_RETURN_IF_ERROR(loop.check(x, y));
  if (x.num_elements() == y.num_elements() && z->num_elements() == x.num_elements()) {
    RunEqualShapes(pool, loop, p, x, y, z);
  } else if (z->num_elements() > 0) {
    const Shape* const shapes[] = {&x.shape(), &y.shape()};
    RunTiles(pool, loop, p, Broadcast(z->shape(), shapes), x, y, z);
  }
  return absl::OkStatus();
}

absl::Status RunBinary(KernelContext& c, const BinaryLoop& loop, double p) {
  const Tensor &x = c.input(0), &y = c.input(1);
  // Two scalars: the overhead exceeds the single operation.
  if (x.rank() == 0 && y.rank() == 0 && loop.check == nullptr) {
    if (Tensor* const out = c.PlannedOutput(0, x.shape()); out != nullptr) {
      loop.run(loop, x.raw(), y.raw(), out->raw(), 1, p);
      return absl::OkStatus();
    }
  }
  if (x.shape() == y.shape()) {
    if (loop.check != nullptr && x.num_elements() > 0) WEIR_RETURN_IF_ERROR(loop.check(x, y));
    Tensor* out = c.PlannedOutput(0, x.shape());
    if (out == nullptr) {
      WEIR_ASSIGN_OR_RETURN(out, c.AllocateOutput(0, x.shape()));
    }
    RunEqualShapes(c.pool(), loop, p, x, y, out);
    return absl::OkStatus();
  }
  if (!loop.broadcasts) {
    return InvalidArgument("Inputs must have the same shape, but are ", x.shape().ToString(),
                           " and ", y.shape().ToString());
  }
  // Fast path for a scalar and a tensor.
  if (y.rank() == 0 || x.rank() == 0) {
    WEIR_ASSIGN_OR_RETURN(Tensor* const out,
                          c.AllocateOutput(0, y.rank() == 0 ? x.shape() : y.shape()));
    return RunBinary(c.pool(), loop, p, x, y, out);
  }
  WEIR_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(x.shape(), y.shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  return RunBinary(c.pool(), loop, p, x, y, out);
}

UnaryLoop& LoopRegistry::AddUnary(const char* op, DataType in, DataType out, UnaryLoop::Fn run,
                                  double cost) {
  unary_.push_back(std::make_unique<Entry<UnaryLoop>>(Entry<UnaryLoop>{op, in, {}}));
  UnaryLoop& loop = unary_.back()->loop;
  loop.run = run;
  loop.in_size = static_cast<uint8_t>(ElementSize(in));
  loop.out_size = static_cast<uint8_t>(ElementSize(out));
  loop.cost = static_cast<float>(cost);
  unary_index_[{op, in}] = &loop;
  return loop;
}

BinaryLoop& LoopRegistry::AddBinary(const char* op, DataType in, DataType out, BinaryLoop::Fn run,
                                    double cost) {
  binary_.push_back(std::make_unique<Entry<BinaryLoop>>(Entry<BinaryLoop>{op, in, {}}));
  BinaryLoop& loop = binary_.back()->loop;
  loop.run = run;
  loop.in_size = static_cast<uint8_t>(ElementSize(in));
  loop.out_size = static_cast<uint8_t>(ElementSize(out));
  loop.cost = static_cast<float>(cost);
  binary_index_[{op, in}] = &loop;
  return loop;
}

void LoopRegistry::WidenUnary(const char* op, DataType type, UnaryLoop::Fn wide) {
  const UnaryLoop* entry = FindUnary(op, DT_FLOAT);
  const DataType out = entry->out_size == sizeof(float) ? type : DT_BOOL;
  UnaryLoop::Fn run = nullptr;
  DispatchType(type, NarrowFloats(), [&]<class T>() { run = UnaryThroughFloat<T>; });
  UnaryLoop& loop = AddUnary(op, type, out, run, entry->cost + 1);
  loop.wide = wide != nullptr ? wide : entry->run;
  loop.param = entry->param;
}

void LoopRegistry::WidenBinary(const char* op, DataType type, BinaryLoop::Fn wide) {
  const BinaryLoop* entry = FindBinary(op, DT_FLOAT);
  const DataType out = entry->out_size == sizeof(float) ? type : DT_BOOL;
  BinaryLoop::Fn run = nullptr;
  DispatchType(type, NarrowFloats(), [&]<class T>() { run = BinaryThroughFloat<T>; });
  BinaryLoop& loop = AddBinary(op, type, out, run, entry->cost + 1);
  loop.wide = wide != nullptr ? wide : entry->run;
  loop.broadcasts = entry->broadcasts;
  loop.param = entry->param;
}

UnaryLoop* LoopRegistry::FindUnary(absl::string_view op, DataType type) const {
  const auto it = unary_index_.find({std::string(op), type});
  return it == unary_index_.end() ? nullptr : it->second;
}

BinaryLoop* LoopRegistry::FindBinary(absl::string_view op, DataType type) const {
  const auto it = binary_index_.find({std::string(op), type});
  return it == binary_index_.end() ? nullptr : it->second;
}

void LoopRegistry::AddKernels(KernelRegistry* r) const {
  for (const auto& entry : unary_) {
    const UnaryLoop* loop = &entry->loop;
    KernelDef& def = r->Add(entry->op, kCpu, ConstraintsFor(entry->op, entry->in, loop->out_size),
                            [loop](const KernelInit& init) -> absl::StatusOr<Kernel> {
                              return Kernel(UnaryKernel{loop, ParamOf(loop->param, init.node)});
                            });
    if (loop->in_size == loop->out_size) def.InPlace({0});
  }
  for (const auto& entry : binary_) {
    const BinaryLoop* loop = &entry->loop;
    if (loop->own_kernel) continue;
    KernelDef& def =
        r->Add(entry->op, kCpu, ConstraintsFor(entry->op, entry->in, loop->out_size),
               [loop](const KernelInit& init) -> absl::StatusOr<Kernel> {
                 return Kernel(BinaryKernel{loop, ParamOf(loop->param, init.node),
                                            FindBroadcastLayout(*loop, init.input_shapes)});
               });
    if (loop->in_size == loop->out_size) def.InPlace({0, 1});
  }
}

std::vector<std::string> LoopRegistry::Ops() const {
  std::set<std::string> ops;
  for (const auto& entry : unary_) ops.insert(entry->op);
  for (const auto& entry : binary_) ops.insert(entry->op);
  return {ops.begin(), ops.end()};
}

// ---- families

namespace {

enum LoopFamily { kActivation, kArithmetic, kTranscendental, kCompare, kSpecial };
constexpr Families<LoopRegistry>::Add kLoopFamilies[] = {AddActivationLoops,     AddArithmeticLoops,
                                                         AddTranscendentalLoops, AddCompareLoops,
                                                         AddSpecialLoops,        AddMaskLoops};

}  // namespace

absl::Span<const Families<LoopRegistry>::Add> LoopFamilies() { return kLoopFamilies; }

LoopRegistries::LoopRegistries() : tables_(LoopFamilies(), LoopFamilyIndex()) {}

const UnaryLoop* LoopRegistries::FindUnary(absl::string_view op, DataType type) const {
  const UnaryLoop* loop = nullptr;
  tables_.ForEachWith(
      op, [&](const LoopRegistry& t) { return (loop = t.FindUnary(op, type)) != nullptr; });
  return loop;
}

const BinaryLoop* LoopRegistries::FindBinary(absl::string_view op, DataType type) const {
  const BinaryLoop* loop = nullptr;
  tables_.ForEachWith(
      op, [&](const LoopRegistry& t) { return (loop = t.FindBinary(op, type)) != nullptr; });
  return loop;
}

const LoopRegistries& ElementwiseLoops() {
  static const auto* const tables = new LoopRegistries;
  return *tables;
}

void AddActivationKernels(KernelRegistry* r) { ElementwiseLoops().AddKernels(kActivation, r); }
void AddArithmeticKernels(KernelRegistry* r) { ElementwiseLoops().AddKernels(kArithmetic, r); }
void AddTranscendentalKernels(KernelRegistry* r) {
  ElementwiseLoops().AddKernels(kTranscendental, r);
}
void AddCompareKernels(KernelRegistry* r) { ElementwiseLoops().AddKernels(kCompare, r); }
void AddSpecialKernels(KernelRegistry* r) { ElementwiseLoops().AddKernels(kSpecial, r); }

}  // namespace weir
