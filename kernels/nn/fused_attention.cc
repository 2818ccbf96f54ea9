#include <algorithm>
#include <vector>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/linalg/dnnl_status.h"
#include "weir/kernels/linalg/gemm.h"
#include "weir/kernels/math/fused_elementwise.h"
#include "weir/kernels/nn/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/fused_attention.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Attention as one op (Vaswani et al. 2017, section 3.2.1; session/passes/fuse_attention.cc fuses
// it from products, transposes and a softmax):
//
//   y = softmax(query key' * scale + mask) value
//
// for each head of each batch entry. The scores, length squared, are the largest values of a
// transformer: small ops write and read them five times, from memory if they exceed the caches.
// Here a block of queries at a time multiplies all keys, so that its scores stay in the L2 cache
// through softmax and the second product (the outer loop of Dao et al. 2022, algorithm 1). Whole
// rows of scores fit, so that softmax needs no running maximum: results are those of the small ops
// but for the rounding of scale and mask, which are one multiply-add.
//
// Keys and values are packed into panels (gemm.h) once per head, directly from memory in which the
// heads alternate: query, key, value and y may be [batch, length, heads, size], as a dense layer
// writes and reads them, and nothing is transposed.
//
// Each row of y is computed by itself, in an order that depends only on the sizes, so that threads
// may divide heads and blocks in any way.
HWY_BEFORE_NAMESPACE();
namespace weir::attention {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// x = x * scale + mask, for n elements; null: no mask.
void ScaleAndMask(float* x, float scale, const float* mask, int64_t n) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  int64_t i = 0;
  if (mask == nullptr) {
    for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), factor), d, x + i);
    for (; i < n; ++i) x[i] *= scale;
    return;
  }
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), factor, hn::LoadU(d, mask + i)), d, x + i);
  for (; i < n; ++i) {
    const hn::CappedTag<float, 1> one;
    const auto y = hn::MulAdd(hn::Set(one, x[i]), hn::Set(one, scale), hn::Set(one, mask[i]));
    x[i] = hn::GetLane(y);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace weir::attention
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace attention {

HWY_EXPORT(ScaleAndMask);

namespace {

// A tensor [batch, heads, length, size], or, if `transposed`, [batch, length, heads, size], and its
// strides in elements. The first extents may be missing.
struct Operand {
  int64_t batch = 1, heads = 1, length = 0, size = 0;
  int64_t batch_stride = 0, head_stride = 0, row = 0;

  int64_t At(int64_t head) const {
    return head / heads * batch_stride + head % heads * head_stride;
  }
  bool HasHeadsOf(const Operand& other) const {
    return batch == other.batch && heads == other.heads;
  }
};

absl::StatusOr<Operand> OperandOf(absl::string_view name, const Shape& shape, bool transposed) {
  if (shape.rank() > 4 || shape.rank() < (transposed ? 4 : 2)) {
    return InvalidArgument(name, " must have ", transposed ? "4" : "2 to 4",
                           " dimensions, but has shape ", shape.ToString());
  }
  Operand x;
  x.size = shape.dim(-1);
  x.length = shape.dim(transposed ? -3 : -2);
  if (shape.rank() > 2) x.heads = shape.dim(transposed ? -2 : -3);
  if (shape.rank() > 3) x.batch = shape.dim(0);
  x.batch_stride = x.heads * x.length * x.size;
  x.head_stride = transposed ? x.size : x.length * x.size;
  x.row = transposed ? x.heads * x.size : x.size;
  return x;
}

// The mask of each row of scores; null without one. Strides are 0 where it is broadcast.
struct Mask {
  const float* data = nullptr;
  int64_t heads = 1, batch_stride = 0, head_stride = 0, row = 0;

  const float* Row(int64_t head, int64_t i) const {
    if (data == nullptr) return nullptr;
    return data + head / heads * batch_stride + head % heads * head_stride + i * row;
  }
};

absl::StatusOr<Mask> MaskOf(const Tensor& mask, const Operand& q, int64_t keys) {
  const int64_t extents[] = {q.batch, q.heads, q.length, keys};
  const int missing = 4 - mask.rank();
  Mask result = {.data = mask.data<float>(), .heads = q.heads};
  int64_t* const strides[] = {&result.batch_stride, &result.head_stride, &result.row};
  bool fits = missing >= 0 && missing < 4 && mask.dim(-1) == keys;
  int64_t size = keys;
  for (int i = 2; fits && i >= missing; --i) {
    const int64_t extent = mask.dim(i - missing);
    fits = extent == extents[i] || extent == 1;
    if (extent != 1) *strides[i] = size;
    size *= extent;
  }
  if (fits) return result;
  return InvalidArgument("a mask of shape ", mask.shape().ToString(),
                         " cannot be added to scores of shape ",
                         Shape({extents[0], extents[1], extents[2], extents[3]}).ToString());
}

// The scores of a block of queries, in elements: a third of an L2 cache of 1 MB, which also holds
// the panels of a head. A block has at most kMostRows queries and, unless there are fewer, at least
// kFewestRows, which each panel then serves.
constexpr int64_t kBlockElements = 48 << 10, kMostRows = 128, kFewestRows = 24;
// Fewer queries do not pay for packing keys and values.
constexpr int64_t kFewRows = 5;

struct Attention {
  Operand q, k, v, y;
  Mask mask;
  float scale = 1;
  const float *query = nullptr, *key = nullptr, *value = nullptr;
  float* result = nullptr;
  int64_t blocks = 1;

  bool packs() const { return q.length >= kFewRows; }
  int64_t most_rows() const { return (q.length + blocks - 1) / blocks; }
  double cost() const {
    const double scores = static_cast<double>(most_rows() * k.length);
    return scores * (0.5 + 0.0115 * static_cast<double>(q.size + v.size));
  }

  gemm::Matrix Keys(int64_t head) const { return {key + k.At(head), 1, k.row}; }
  gemm::Matrix Values(int64_t head) const { return {value + v.At(head), v.row, 1}; }

  // Memory for one thread: packed keys and values, scores, and what products need.
  struct Scratch {
    Tensor memory;
    float *keys, *values, *scores, *product;
    int64_t head = -1;  // whose keys and values are packed
  };
  absl::StatusOr<Scratch> MakeScratch() const {
    const int64_t rows = most_rows(), width = gemm::PanelColumns();
    const int64_t keys = packs() ? gemm::Panels(k.length) * width * q.size : 0;
    const int64_t values = packs() ? gemm::Panels(v.size) * width * k.length : 0;
    const int64_t scores = (rows * k.length + width - 1) / width * width;
    const int64_t product = std::max(gemm::ScratchFloats({query, q.row, 1}, rows, q.size),
                                     gemm::ScratchFloats({query, k.length, 1}, rows, k.length));
    Scratch s;
    WEIR_ASSIGN_OR_RETURN(s.memory, Tensor::Allocate(HostAllocator(), DT_FLOAT,
                                                     Shape({keys + values + scores + product})));
    s.keys = s.memory.data<float>();
    s.values = s.keys + keys;
    s.scores = s.values + values;
    s.product = s.scores + scores;
    return s;
  }

  void Pack(int64_t head, Scratch* s) const {
    if (!packs() || s->head == head) return;
    gemm::Pack(Keys(head), q.size, 0, k.length, s->keys);
    gemm::Pack(Values(head), k.length, 0, v.size, s->values);
    s->head = head;
  }

  // Queries [first, first + rows) of a head.
  void RunBlock(int64_t head, int64_t first, int64_t rows, const Scratch& s) const {
    const gemm::Matrix queries = {query + q.At(head) + first * q.row, q.row, 1};
    const gemm::Matrix weights = {s.scores, k.length, 1};
    float* const to = result + y.At(head) + first * y.row;
    if (packs()) {
      gemm::Multiply(queries, rows, q.size, s.keys, k.length, false, s.scores, k.length, s.product);
    } else {
      gemm::MultiplyFewRows(queries, rows, q.size, Keys(head), k.length, false, s.scores, k.length);
    }
    if (scale != 1 || mask.data != nullptr) {
      for (int64_t i = 0; i < rows; ++i) {
        HWY_DYNAMIC_DISPATCH(ScaleAndMask)
        (s.scores + i * k.length, scale, mask.Row(head, first + i), k.length);
      }
    }
    softmax::Softmax(s.scores, s.scores, rows, k.length);
    if (packs()) {
      gemm::Multiply(weights, rows, k.length, s.values, v.size, false, to, y.row, s.product);
    } else {
      gemm::MultiplyFewRows(weights, rows, k.length, Values(head), v.size, false, to, y.row);
    }
  }

  absl::Status Run(ThreadPool& pool) const {
    FirstError failure;
    pool.ParallelFor(q.batch * q.heads * blocks, cost(), [&](int64_t begin, int64_t end) {
      absl::StatusOr<Scratch> scratch = MakeScratch();
      if (!scratch.ok()) return failure.Note(scratch.status());
      for (int64_t i = begin; i < end; ++i) {
        const int64_t head = i / blocks, block = i % blocks;
        const int64_t first = q.length * block / blocks;
        Pack(head, &*scratch);
        RunBlock(head, first, q.length * (block + 1) / blocks - first, *scratch);
      }
    });
    return failure.status();
  }
};

// The attributes: which tensors are [batch, length, heads, size].
struct FusedAttention {
  bool transpose_query, transpose_key, transpose_value, transpose_output;
  float scale;

  absl::Status operator()(KernelContext& c) const {
    Attention a = {.scale = scale};
    WEIR_ASSIGN_OR_RETURN(a.q, OperandOf("query", c.input(0).shape(), transpose_query));
    WEIR_ASSIGN_OR_RETURN(a.k, OperandOf("key", c.input(1).shape(), transpose_key));
    WEIR_ASSIGN_OR_RETURN(a.v, OperandOf("value", c.input(2).shape(), transpose_value));
    if (!a.k.HasHeadsOf(a.q) || !a.v.HasHeadsOf(a.q) || a.k.size != a.q.size ||
        a.v.length != a.k.length || a.q.size == 0) {
      return InvalidArgument("query, key and value of shapes ", c.input(0).shape().ToString(), ", ",
                             c.input(1).shape().ToString(), " and ", c.input(2).shape().ToString(),
                             " do not match");
    }
    if (c.num_inputs() > 3) {
      WEIR_ASSIGN_OR_RETURN(a.mask, MaskOf(c.input(3), a.q, a.k.length));
    }
    const Shape shape = OutputShape(c.input(0).rank(), a);
    WEIR_ASSIGN_OR_RETURN(Tensor* const y, c.AllocateOutput(0, shape));
    WEIR_ASSIGN_OR_RETURN(a.y, OperandOf("y", shape, transpose_output));
    if (y->num_elements() == 0) return absl::OkStatus();
    a.result = y->data<float>();
    if (a.k.length == 0) {
      std::fill_n(a.result, y->num_elements(), 0.f);
      return absl::OkStatus();
    }
    a.query = c.input_data<float>(0);
    a.key = c.input_data<float>(1);
    a.value = c.input_data<float>(2);
    const int64_t rows = std::clamp(kBlockElements / a.k.length, kFewestRows, kMostRows);
    a.blocks = (a.q.length + rows - 1) / rows;
    return a.Run(c.pool());
  }

  Shape OutputShape(int rank, const Attention& a) const {
    if (transpose_output) return Shape({a.q.batch, a.q.length, a.q.heads, a.v.size});
    const int64_t extents[] = {a.q.batch, a.q.heads, a.q.length, a.v.size};
    return Shape(absl::MakeSpan(extents).subspan(4 - rank));
  }
};

absl::StatusOr<Kernel> Make(const KernelInit& init) {
  if (init.attr<int64_t>("num_masks") > 1)
    return InvalidArgument("num_masks must be 0 or 1, but is ", init.attr<int64_t>("num_masks"));
  return Kernel(FusedAttention{init.attr<bool>("transpose_query"), init.attr<bool>("transpose_key"),
                               init.attr<bool>("transpose_value"),
                               init.attr<bool>("transpose_output"), init.attr<float>("scale")});
}

// Two products of the scores' size; unknown extents count as 64.
double Cost(const KernelInit& init) {
  const Shape &query = init.input_shapes[0], &key = init.input_shapes[1];
  if (query.rank() < 2 || key.rank() < 2) return 10000;
  double products = 0.03;
  for (const int64_t extent : query.dims())
    products *= static_cast<double>(extent < 0 ? 64 : extent);
  const int64_t keys = key.dim(init.attr<bool>("transpose_key") ? -3 : -2);
  return 300 + 2 * products * static_cast<double>(keys < 0 ? 64 : keys);
}

}  // namespace
}  // namespace attention

void AddFusedAttentionKernels(KernelRegistry* r) {
  r->Add("_FusedAttention", kCpu, DT_FLOAT, attention::Make).Cost(attention::Cost);
}

}  // namespace weir
#endif  // HWY_ONCE
