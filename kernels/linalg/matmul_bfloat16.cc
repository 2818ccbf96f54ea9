#include "weir/kernels/linalg/matmul_bfloat16.h"

#include <algorithm>
#include <list>

#include "weir/core/tensor/tensor.h"
#include "weir/kernels/linalg/dnnl_status.h"

namespace weir {

namespace {

// The generated code of one product. Thread-local, so that lookups need no lock.
struct CachedPrimitive {
  Bfloat16Product product;
  dnnl_memory_desc_t a, b, c, scratchpad;
  DnnlPrimitive primitive;
};
constexpr size_t kMaxCached = 16;

bool Describe(int64_t rows, int64_t columns, bool transposed, int64_t stride,
              dnnl_memory_desc_t* desc) {
  const dnnl_dims_t dims = {rows, columns};
  const dnnl_dims_t strides = {transposed ? 1 : stride, transposed ? stride : 1};
  return dnnl::memory_desc_init_by_strides(desc, 2, dims, dnnl_bf16, strides) == dnnl_success;
}

absl::Status Make(const Bfloat16Product& p, CachedPrimitive* code) {
  constexpr char kWhat[] = "create a bfloat16 matrix multiplication";
  code->product = p;
  dnnl_matmul_desc_t desc;
  if (!Describe(p.m, p.k, p.transpose_a, p.lda, &code->a) ||
      !Describe(p.k, p.n, p.transpose_b, p.ldb, &code->b) ||
      !Describe(p.m, p.n, false, p.ldc, &code->c)) {
    return DnnlStatus(dnnl_invalid_arguments, kWhat);
  }
  dnnl_status_t status = dnnl::matmul_desc_init(&desc, &code->a, &code->b, nullptr, &code->c);
  if (status != dnnl_success) return DnnlStatus(status, kWhat);
  const DnnlAttributes attributes = MakeDnnlAttributes(/*add=*/false);
  if (attributes == nullptr) return DnnlStatus(dnnl_out_of_memory, kWhat);
  dnnl_primitive_desc_t raw = nullptr;
  status = dnnl::primitive_desc_create(&raw, &desc, attributes.get(), DnnlEngine(), nullptr);
  if (status != dnnl_success) return DnnlStatus(status, kWhat);
  const DnnlPrimitiveDesc made(raw);
  code->scratchpad = *dnnl::primitive_desc_query_md(raw, dnnl_query_scratchpad_md, 0);
  dnnl_primitive_t primitive = nullptr;
  status = dnnl::primitive_create(&primitive, raw);
  code->primitive.reset(primitive);
  return DnnlStatus(status, kWhat);
}

// Returns this thread's code for the product, from a list with the most recently used first.
absl::StatusOr<const CachedPrimitive*> Find(const Bfloat16Product& product) {
  thread_local std::list<CachedPrimitive> cache;
  const auto found = std::find_if(cache.begin(), cache.end(), [&](const CachedPrimitive& code) {
    return code.product == product;
  });
  if (found != cache.end()) {
    cache.splice(cache.begin(), cache, found);
    return &cache.front();
  }
  CachedPrimitive code;
  WEIR_RETURN_IF_ERROR(Make(product, &code));
  if (cache.size() == kMaxCached) cache.pop_back();
  cache.push_front(std::move(code));
  return &cache.front();
}

}  // namespace

// Without AMX, Intel's processors multiply bfloat16 pairs at half the rate of floats: two threads
// reached 171 GFLOP/s with them and 305 with widened floats (a Xeon whose AMX the host hides).
// AMD's processors multiply pairs at twice the rate.
bool HasBfloat16Products() {
  static const bool has = [] {
    if (DnnlEngine() == nullptr) return false;
    const auto isa = dnnl::get_effective_cpu_isa();
    const auto includes = [isa](auto other) { return (isa & other) == other; };
#if defined(__x86_64__)
    if (__builtin_cpu_is("intel") && !includes(dnnl_cpu_isa_avx512_core_amx)) return false;
#endif
    return includes(dnnl_cpu_isa_avx512_core_bf16);
  }();
  return has;
}

absl::Status MultiplyBfloat16(const Bfloat16Product& product, const bfloat16* a, const bfloat16* b,
                              bfloat16* c) {
  // First, since it limits oneDNN to one thread.
  const dnnl_stream_t stream = DnnlThreadStream();
  if (stream == nullptr) return DnnlStatus(dnnl_out_of_memory, "make a stream");
  WEIR_ASSIGN_OR_RETURN(const CachedPrimitive* const code, Find(product));
  const size_t bytes = dnnl::memory_desc_get_size(&code->scratchpad);
  Tensor scratch;
  if (bytes > 0) {
    WEIR_ASSIGN_OR_RETURN(
        scratch, Tensor::Allocate(HostAllocator(), DT_UINT8, Shape({static_cast<int64_t>(bytes)})));
  }
  WEIR_ASSIGN_OR_RETURN(const DnnlMemory left, DnnlWrap(code->a, a));
  WEIR_ASSIGN_OR_RETURN(const DnnlMemory right, DnnlWrap(code->b, b));
  WEIR_ASSIGN_OR_RETURN(const DnnlMemory result, DnnlWrap(code->c, c));
  WEIR_ASSIGN_OR_RETURN(const DnnlMemory room,
                        DnnlWrap(code->scratchpad, bytes > 0 ? scratch.raw() : nullptr));
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, left.get()},
                                       {DNNL_ARG_WEIGHTS, right.get()},
                                       {DNNL_ARG_DST, result.get()},
                                       {DNNL_ARG_SCRATCHPAD, room.get()}};
  return DnnlStatus(dnnl::primitive_execute(code->primitive.get(), stream, 4, arguments),
                    "multiply bfloat16 matrices");
}

}  // namespace weir
