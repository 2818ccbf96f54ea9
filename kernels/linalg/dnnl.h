#ifndef WEIR_KERNELS_LINALG_DNNL_H_
#define WEIR_KERNELS_LINALG_DNNL_H_

#include <dnnl.h>

#include <atomic>
#include <type_traits>

// The oneDNN functions that kernels use: dnnl::sgemm(...) calls dnnl_sgemm(...). The library is
// loaded on the first call. It has 38 MB and about 30,000 relocations for the dynamic linker: a
// sixth to a quarter of a program's startup time, and 2 MB, wasted on graphs that do not need it.
//
// If the library is missing, functions that return a status return dnnl_unimplemented, and others
// return 0; convolutions are then computed by our own loops.
namespace weir::dnnl {

// Loads the library. Returns false if that fails.
bool IsThere();
// Returns null if there is no such function, or no library.
void* FindFunction(const char* name);

template <class F>
class Function;

// Thread-safe.
template <class R, class... Args>
class Function<R(Args...)> {
 public:
  explicit constexpr Function(const char* name) : name_(name) {}
  R operator()(Args... args) const {
    auto* f = found_.load(std::memory_order_acquire);
    if (f == nullptr) {
      f = reinterpret_cast<R (*)(Args...)>(FindFunction(name_));
      found_.store(f, std::memory_order_release);
    }
    if (f != nullptr) return f(args...);
    if constexpr (std::is_same_v<R, dnnl_status_t>) return dnnl_unimplemented;
    return R{};
  }

 private:
  const char* const name_;
  mutable std::atomic<R (*)(Args...)> found_ = nullptr;
};

#define WEIR_DNNL_FUNCTION(name) \
  inline constinit const Function<decltype(::dnnl_##name)> name("dnnl_" #name)

WEIR_DNNL_FUNCTION(dilated_convolution_backward_data_desc_init);
WEIR_DNNL_FUNCTION(dilated_convolution_backward_weights_desc_init);
WEIR_DNNL_FUNCTION(dilated_convolution_forward_desc_init);
WEIR_DNNL_FUNCTION(engine_create);
WEIR_DNNL_FUNCTION(get_effective_cpu_isa);
WEIR_DNNL_FUNCTION(matmul_desc_init);
WEIR_DNNL_FUNCTION(memory_create);
WEIR_DNNL_FUNCTION(memory_desc_equal);
WEIR_DNNL_FUNCTION(memory_desc_get_size);
WEIR_DNNL_FUNCTION(memory_desc_init_by_strides);
WEIR_DNNL_FUNCTION(memory_desc_init_by_tag);
WEIR_DNNL_FUNCTION(memory_destroy);
WEIR_DNNL_FUNCTION(post_ops_append_sum);
WEIR_DNNL_FUNCTION(post_ops_create);
WEIR_DNNL_FUNCTION(post_ops_destroy);
WEIR_DNNL_FUNCTION(primitive_attr_create);
WEIR_DNNL_FUNCTION(primitive_attr_destroy);
WEIR_DNNL_FUNCTION(primitive_attr_set_post_ops);
WEIR_DNNL_FUNCTION(primitive_attr_set_scratchpad_mode);
WEIR_DNNL_FUNCTION(primitive_create);
WEIR_DNNL_FUNCTION(primitive_desc_create);
WEIR_DNNL_FUNCTION(primitive_desc_destroy);
WEIR_DNNL_FUNCTION(primitive_desc_query);
WEIR_DNNL_FUNCTION(primitive_desc_query_md);
WEIR_DNNL_FUNCTION(primitive_destroy);
WEIR_DNNL_FUNCTION(primitive_execute);
WEIR_DNNL_FUNCTION(reorder_primitive_desc_create);
WEIR_DNNL_FUNCTION(sgemm);
WEIR_DNNL_FUNCTION(stream_create);
WEIR_DNNL_FUNCTION(stream_destroy);

#undef WEIR_DNNL_FUNCTION

}  // namespace weir::dnnl

#endif  // WEIR_KERNELS_LINALG_DNNL_H_
