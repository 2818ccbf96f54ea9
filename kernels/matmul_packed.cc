#include <algorithm>
#include <atomic>

#include "weir/core/allocator.h"
#include "weir/kernels/dnnl_status.h"
#include "weir/kernels/epilogue.h"
#include "weir/kernels/kept_bytes.h"
#include "weir/kernels/matmul.h"

// A product of few rows spends most of its time on bringing B into the order in which the inner
// loop takes it: with 32 rows, 1.6 times as long as the multiplications. A loop over time steps
// does this again in each iteration, for the same weight, and a step that infers in each step. Here
// the weight is packed once.
//
// What "the same" means: in a loop, the graph cannot tell. The forward loop reads the variable anew
// in each iteration, and the backward loop takes what it multiplied with from a stack. But all of
// them hand on one tensor, so the kernel sees the same memory again. Holding that tensor, it also
// knows that the values in it have not changed: whoever writes to a variable copies first what
// others hold. Memory of a step's arena, which has no such owners, is not held. A tensor that does
// not come again in the next iteration is let go there, and the last one with the next step.
//
// A weight that lasts from step to step is packed at once, so that the first step rounds as all
// others do, and let go when another one comes. Plans for other shapes have kernels of their own,
// which pack it once more: what all of them keep is bounded.
//
// Each piece is some columns of the result, computed by a primitive of its own from its own packed
// part of B. oneDNN's fast kernels want a result without gaps between its rows, so that pieces are
// computed into memory of their own, and copied or added to their place.
namespace weir {

namespace {

constexpr int64_t kMinColumns = 64;
// Of a product whose weight lasts: with fewer rows all the time goes into reading B, packed or not,
// and with more of them into multiplications.
constexpr int64_t kFewestRows = 8, kMostRows = 1024;
// Of one lasting weight.
constexpr int64_t kMostBytes = int64_t{64} << 20;

struct Piece {
  int64_t column = 0, columns = 0;
  dnnl_memory_desc_t a, b, c, scratchpad;
  DnnlPrimitive primitive;
  std::shared_ptr<float[]> packed;
};

dnnl_memory_desc_t Matrix(int64_t rows, int64_t columns, int64_t row_stride, int64_t stride) {
  const dnnl_dims_t dims = {rows, columns}, strides = {row_stride, stride};
  dnnl_memory_desc_t desc;
  dnnl_memory_desc_init_by_strides(&desc, 2, dims, dnnl_f32, strides);
  return desc;
}

// False if oneDNN has no primitive. Fills in b, scratchpad and primitive.
bool MakePrimitive(int64_t k, Piece* piece) {
  const dnnl_dims_t dims = {k, piece->columns};
  dnnl_memory_desc_t any;
  dnnl_matmul_desc_t desc;
  const DnnlAttributes attributes = MakeDnnlAttributes(/*add=*/false);
  dnnl_primitive_desc_t raw = nullptr;
  if (attributes == nullptr ||
      dnnl_memory_desc_init_by_tag(&any, 2, dims, dnnl_f32, dnnl_format_tag_any) != dnnl_success ||
      dnnl_matmul_desc_init(&desc, &piece->a, &any, nullptr, &piece->c) != dnnl_success ||
      dnnl_primitive_desc_create(&raw, &desc, attributes.get(), DnnlEngine(), nullptr) !=
          dnnl_success) {
    return false;
  }
  const DnnlPrimitiveDesc pd(raw);
  const dnnl_memory_desc_t* const b = dnnl_primitive_desc_query_md(raw, dnnl_query_weights_md, 0);
  const dnnl_memory_desc_t* const scratchpad =
      dnnl_primitive_desc_query_md(raw, dnnl_query_scratchpad_md, 0);
  dnnl_primitive_t primitive = nullptr;
  if (b == nullptr || scratchpad == nullptr ||
      dnnl_primitive_create(&primitive, raw) != dnnl_success) {
    return false;
  }
  piece->b = *b;
  piece->scratchpad = *scratchpad;
  piece->primitive.reset(primitive);
  return true;
}

std::shared_ptr<float[]> Floats(size_t bytes) {
  Allocator& allocator = HostAllocator();
  auto* const data = static_cast<float*>(allocator.Allocate(std::max<size_t>(bytes, 1)));
  return std::shared_ptr<float[]>(
      data, [&allocator, bytes](float* p) { allocator.Deallocate(p, std::max<size_t>(bytes, 1)); });
}

absl::Status Execute(dnnl_primitive_t primitive, absl::Span<const dnnl_exec_arg_t> args,
                     absl::string_view what) {
  const dnnl_stream_t stream = DnnlThreadStream();
  if (stream == nullptr) return Internal("oneDNN cannot make a stream");
  return DnnlStatus(
      dnnl_primitive_execute(primitive, stream, static_cast<int>(args.size()), args.data()), what);
}

// Copies the piece's part of B, which lies as `from` says, to where its primitives expect it.
absl::Status PackPiece(const dnnl_memory_desc_t& from, const float* b, Piece* piece) {
  piece->packed = Floats(dnnl_memory_desc_get_size(&piece->b));
  const DnnlPrimitive reorder = MakeDnnlReorder(from, piece->b);
  if (piece->packed == nullptr || reorder == nullptr) return Unimplemented("no reorder");
  WEIR_ASSIGN_OR_RETURN(const DnnlMemory plain, DnnlWrap(from, b));
  WEIR_ASSIGN_OR_RETURN(const DnnlMemory packed, DnnlWrap(piece->b, piece->packed.get()));
  return Execute(reorder.get(), {{DNNL_ARG_FROM, plain.get()}, {DNNL_ARG_TO, packed.get()}},
                 "pack a matrix");
}

// `stride`: of the rows of C.
absl::Status RunPiece(const Piece& piece, const float* a, float* c, int64_t rows, int64_t stride,
                      bool adds) {
  const bool in_place = !adds && piece.columns == stride;
  const int64_t own = in_place ? 0 : rows * piece.columns;
  const size_t scratch_bytes = (dnnl_memory_desc_get_size(&piece.scratchpad) + 63) / 64 * 64;
  const std::shared_ptr<float[]> room = Floats(scratch_bytes + own * sizeof(float));
  if (room == nullptr) return absl::ResourceExhaustedError("no memory to multiply matrices");
  float* const at = c + piece.column;
  float* const result = in_place ? at : room.get() + scratch_bytes / sizeof(float);
  WEIR_ASSIGN_OR_RETURN(const DnnlMemory left, DnnlWrap(piece.a, a));
  WEIR_ASSIGN_OR_RETURN(const DnnlMemory right, DnnlWrap(piece.b, piece.packed.get()));
  WEIR_ASSIGN_OR_RETURN(const DnnlMemory out, DnnlWrap(piece.c, result));
  WEIR_ASSIGN_OR_RETURN(const DnnlMemory scratch, DnnlWrap(piece.scratchpad, room.get()));
  WEIR_RETURN_IF_ERROR(Execute(piece.primitive.get(),
                               {{DNNL_ARG_SRC, left.get()},
                                {DNNL_ARG_WEIGHTS, right.get()},
                                {DNNL_ARG_DST, out.get()},
                                {DNNL_ARG_SCRATCHPAD, scratch.get()}},
                               "multiply matrices"));
  for (int64_t i = 0; !in_place && i < rows; ++i) {
    const float* const from = result + i * piece.columns;
    if (adds) {
      Epilogue::Add(at + i * stride, from, piece.columns);
    } else {
      std::copy(from, from + piece.columns, at + i * stride);
    }
  }
  return absl::OkStatus();
}

}  // namespace

struct PackedMatMul::Packed {
  std::vector<Piece> pieces;  // none: oneDNN does not pack this one, or enough is kept
  KeptBytes kept;
};

PackedMatMul::PackedMatMul(Weight weight) : weight_(weight) {}
PackedMatMul::~PackedMatMul() = default;

std::shared_ptr<const PackedMatMul::Packed> PackedMatMul::Pack(ThreadPool& pool,
                                                               const MatMulArgs& g,
                                                               const Tensor& b) const {
  auto packed = std::make_shared<Packed>();
  if (weight_ == Weight::kLasting) {
    packed->kept = KeptBytes(static_cast<int64_t>(b.num_bytes()));
    if (packed->kept.bytes() == 0) return packed;
  }
  const int64_t count = std::clamp<int64_t>(ProductPieces(g, pool.num_threads()), 1,
                                            std::max<int64_t>(1, g.n / kMinColumns));
  packed->pieces.resize(static_cast<size_t>(count));
  std::atomic<bool> packs = true;
  pool.ForEach(static_cast<int>(count), [&](int i) {
    DnnlThreadStream();  // one thread while primitives are made
    Piece& piece = packed->pieces[i];
    piece.column = g.n * i / count / 16 * 16;
    piece.columns = (i + 1 == count ? g.n : g.n * (i + 1) / count / 16 * 16) - piece.column;
    piece.a = Matrix(g.m, g.k, g.transpose_a ? 1 : g.k, g.transpose_a ? g.m : 1);
    piece.c = Matrix(g.m, piece.columns, piece.columns, 1);
    const dnnl_memory_desc_t plain =
        Matrix(g.k, piece.columns, g.transpose_b ? 1 : g.n, g.transpose_b ? g.k : 1);
    const float* const from = b.data<float>() + (g.transpose_b ? piece.column * g.k : piece.column);
    if (!MakePrimitive(g.k, &piece) || !PackPiece(plain, from, &piece).ok()) packs = false;
  });
  if (!packs) packed->pieces.clear();
  return packed;
}

PackedMatMul::Seen& PackedMatMul::Of(int64_t step_id) {
  for (Seen& seen : seen_) {
    if (seen.step_id == step_id) return seen;
  }
  Seen& oldest = seen_[next_++ % kMostSteps];
  oldest = Seen{};
  oldest.step_id = step_id;
  return oldest;
}

absl::StatusOr<bool> PackedMatMul::Run(ThreadPool& pool, int64_t step_id, const MatMulArgs& g,
                                       const float* a, const Tensor& b, float* c, bool adds,
                                       Finish finish) {
  if (!b.buffer() || b.buffer()->transient()) return false;
  const bool lasts = weight_ == Weight::kLasting;
  if (lasts &&
      (g.m < kFewestRows || g.m > kMostRows || static_cast<int64_t>(b.num_bytes()) > kMostBytes)) {
    return false;
  }
  if (lasts) step_id = 0;
  std::shared_ptr<const Packed> packed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (refused_) return false;
    Seen& seen = Of(step_id);
    if (!seen.Is(g, b)) {
      seen = Seen{step_id, g, b, nullptr};
      if (!lasts) return false;
    }
    packed = seen.packed;
  }
  if (packed == nullptr) {
    packed = Pack(pool, g, b);
    const std::lock_guard<std::mutex> lock(mutex_);
    Seen& seen = Of(step_id);
    refused_ = lasts && packed->pieces.empty();
    if (refused_) {
      seen = Seen{};
    } else if (seen.Is(g, b)) {
      seen.packed = packed;
    }
  }
  if (packed->pieces.empty()) return false;
  FirstError failure;
  pool.ForEach(static_cast<int>(packed->pieces.size()), [&](int i) {
    const Piece& piece = packed->pieces[i];
    failure.Note(RunPiece(piece, a, c, g.m, g.n, adds));
    finish(0, piece.column, g.m, piece.columns);
  });
  if (!failure.status().ok()) return failure.status();
  return true;
}

}  // namespace weir
