#include "weir/kernels/linalg/dnnl_status.h"

#include <omp.h>

namespace weir {

dnnl_engine_t DnnlEngine() {
  static const dnnl_engine_t engine = [] {
    dnnl_engine_t e = nullptr;
    return dnnl::engine_create(&e, dnnl_cpu, 0) == dnnl_success ? e : nullptr;
  }();
  return engine;
}

dnnl_stream_t DnnlThreadStream() {
  using Stream = std::unique_ptr<dnnl_stream, DnnlDestroy<&dnnl::stream_destroy>>;
  thread_local const Stream stream = [] {
    omp_set_num_threads(1);
    dnnl_stream_t s = nullptr;
    const bool made =
        dnnl::stream_create(&s, DnnlEngine(), dnnl_stream_default_flags) == dnnl_success;
    return Stream(made ? s : nullptr);
  }();
  return stream.get();
}

absl::StatusOr<DnnlMemory> DnnlWrap(const dnnl_memory_desc_t& desc, const void* data) {
  dnnl_memory_t m = nullptr;
  const dnnl_status_t status =
      dnnl::memory_create(&m, &desc, DnnlEngine(), const_cast<void*>(data));
  if (status != dnnl_success) return DnnlStatus(status, "describe an operand");
  return DnnlMemory(m);
}

DnnlAttributes MakeDnnlAttributes(bool add) {
  dnnl_primitive_attr_t raw = nullptr;
  if (dnnl::primitive_attr_create(&raw) != dnnl_success) return {};
  DnnlAttributes attr(raw);
  if (dnnl::primitive_attr_set_scratchpad_mode(raw, dnnl_scratchpad_mode_user) != dnnl_success)
    return {};
  if (!add) return attr;
  dnnl_post_ops_t ops = nullptr;
  if (dnnl::post_ops_create(&ops) != dnnl_success) return {};
  const std::unique_ptr<dnnl_post_ops, DnnlDestroy<&dnnl::post_ops_destroy>> owned(ops);
  if (dnnl::post_ops_append_sum(ops, 1) != dnnl_success ||
      dnnl::primitive_attr_set_post_ops(raw, ops) != dnnl_success) {
    return {};
  }
  return attr;
}

DnnlPrimitive MakeDnnlReorder(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to) {
  dnnl_primitive_desc_t raw = nullptr;
  if (dnnl::reorder_primitive_desc_create(&raw, &from, DnnlEngine(), &to, DnnlEngine(), nullptr) !=
      dnnl_success)
    return {};
  const DnnlPrimitiveDesc pd(raw);
  dnnl_primitive_t primitive = nullptr;
  if (dnnl::primitive_create(&primitive, pd.get()) != dnnl_success) return {};
  return DnnlPrimitive(primitive);
}

}  // namespace weir
