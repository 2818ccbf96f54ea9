#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "weir/kernels/image/image.h"
#include "weir/kernels/lib/accumulate.h"
#include "weir/ops/lib/window.h"

// Grayscale dilation: out = max over the window of in + filter, per channel. Its gradients flow to
// the (first) maximum.
namespace weir {

namespace {

template <class T>
T Lowest() {
  if constexpr (std::is_arithmetic_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return T(std::is_same_v<T, half> ? -65504.0f : -3.3895314e38f);
  }
}

// Windows over rows and columns.
struct Dilation {
  std::vector<int64_t> strides, rates;
  std::string padding;

  static absl::StatusOr<Dilation> Read(const KernelInit& init) {
    Dilation d;
    d.strides = init.attr<std::vector<int64_t>>("strides");
    d.rates = init.attr<std::vector<int64_t>>("rates");
    d.padding = init.attr<std::string>("padding");
    for (const auto* list : {&d.strides, &d.rates}) {
      const char* name = list == &d.strides ? "Stride" : "Rate";
      if (list->size() != 4) {
        return InvalidArgument(name, " field must specify 4 dimensions, but has ", list->size());
      }
      if ((*list)[0] != 1 || (*list)[3] != 1) {
        return Unimplemented(name, " is only supported across spatial dimensions.");
      }
    }
    return d;
  }
};

struct Sizes {
  Window rows, columns;
  int64_t batch = 0, depth = 0;
  Shape output() const { return Shape({batch, rows.output, columns.output, depth}); }
};

absl::StatusOr<Sizes> Measure(const KernelContext& c, const Dilation& d) {
  const Tensor &in = c.input(0), &filter = c.input(1);
  if (in.rank() != 4) {
    return InvalidArgument("input must be 4-dimensional, but has shape ", in.shape().ToString());
  }
  if (filter.rank() != 3) {
    return InvalidArgument("filter must be 3-dimensional: ", filter.shape().ToString());
  }
  if (in.dim(3) != filter.dim(2)) {
    return InvalidArgument("input and filter must have the same depth: ", in.dim(3), " vs ",
                           filter.dim(2));
  }
  Sizes s;
  s.batch = in.dim(0);
  s.depth = in.dim(3);
  for (int i = 0; i < 2; ++i) {
    Window& w = i == 0 ? s.rows : s.columns;
    w.input = in.dim(1 + i);
    w.size = filter.dim(i);
    w.stride = d.strides[1 + i];
    w.dilation = d.rates[1 + i];
    WEIR_RETURN_IF_ERROR(Slide(d.padding, &w));
  }
  return s;
}

// The maximum of one window of one channel, and its position: an element of the input and one of
// the filter (-1 if the window is all padding).
template <class T>
struct Maximum {
  T value = Lowest<T>();
  int64_t in = -1, filter = -1;
};

template <class T>
Maximum<T> FindMaximum(const Sizes& s, const T* in, const T* filter, int64_t b, int64_t y,
                       int64_t x, int64_t c) {
  Maximum<T> best;
  for (int64_t i = 0; i < s.rows.size; ++i) {
    const int64_t row = y * s.rows.stride - s.rows.pad_before + i * s.rows.dilation;
    if (row < 0 || row >= s.rows.input) continue;
    for (int64_t j = 0; j < s.columns.size; ++j) {
      const int64_t column = x * s.columns.stride - s.columns.pad_before + j * s.columns.dilation;
      if (column < 0 || column >= s.columns.input) continue;
      const int64_t in_at = ((b * s.rows.input + row) * s.columns.input + column) * s.depth + c;
      const int64_t filter_at = (i * s.columns.size + j) * s.depth + c;
      const T sum = Add(in[in_at], filter[filter_at]);
      if (best.in < 0 || sum > best.value) best = {sum, in_at, filter_at};
    }
  }
  return best;
}

// Calls fn(output element, its maximum) for all output elements, in parallel if `pool` is given.
template <class T, class F>
void ForEachMaximum(const Sizes& s, const Tensor& in, const Tensor& filter, ThreadPool* pool,
                    const F& fn) {
  const auto rows = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t at = row * s.columns.output * s.depth;
      for (int64_t x = 0; x < s.columns.output; ++x) {
        for (int64_t c = 0; c < s.depth; ++c, ++at) {
          fn(at, FindMaximum(s, in.data<T>(), filter.data<T>(), row / s.rows.output,
                             row % s.rows.output, x, c));
        }
      }
    }
  };
  const int64_t count = s.batch * s.rows.output;
  if (pool == nullptr) return rows(0, count);
  pool->ParallelFor(count,
                    2.0 * static_cast<double>(s.columns.output * s.depth) *
                        static_cast<double>(s.rows.size * s.columns.size),
                    rows);
}

template <class T>
absl::Status Dilate(KernelContext& c, const Dilation& d) {
  WEIR_ASSIGN_OR_RETURN(const Sizes s, Measure(c, d));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, s.output()));
  if (out->num_elements() == 0) return absl::OkStatus();
  T* const to = out->data<T>();
  ForEachMaximum<T>(s, c.input(0), c.input(1), &c.pool(),
                    [to](int64_t at, const Maximum<T>& m) { to[at] = m.value; });
  return absl::OkStatus();
}

// Computes the gradient with respect to the input or to the filter.
template <class T, bool to_filter>
absl::Status Backprop(KernelContext& c, const Dilation& d) {
  WEIR_ASSIGN_OR_RETURN(const Sizes s, Measure(c, d));
  const Tensor& grads = c.input(2);
  if (grads.rank() != 4) {
    return InvalidArgument("out_backprop must be 4-dimensional, but has shape ",
                           grads.shape().ToString());
  }
  if (grads.shape() != s.output()) {
    return InvalidArgument("out_backprop has incompatible size: ", grads.shape().ToString(),
                           ", expected ", s.output().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, c.input(to_filter ? 1 : 0).shape()));
  std::fill_n(out->data<T>(), out->num_elements(), T(0));
  if (grads.num_elements() == 0) return absl::OkStatus();
  ForEachMaximum<T>(s, c.input(0), c.input(1), nullptr, [&](int64_t at, const Maximum<T>& m) {
    if (m.in < 0) return;
    T& to = out->data<T>()[to_filter ? m.filter : m.in];
    to = Add(to, grads.data<T>()[at]);
  });
  return absl::OkStatus();
}

KernelFactory WithDilation(absl::Status (*run)(KernelContext&, const Dilation&)) {
  return [run](const KernelInit& init) -> absl::StatusOr<Kernel> {
    WEIR_ASSIGN_OR_RETURN(const Dilation d, Dilation::Read(init));
    return Kernel([run, d](KernelContext& c) { return run(c, d); });
  };
}

template <class... Ts>
void AddForTypes(KernelRegistry* r, List<Ts...>) {
  (r->Add("Dilation2D", kCpu, DataTypeOf<Ts>::value, WithDilation(Dilate<Ts>)), ...);
  (r->Add("Dilation2DBackpropInput", kCpu, DataTypeOf<Ts>::value,
          WithDilation(Backprop<Ts, false>)),
   ...);
  (r->Add("Dilation2DBackpropFilter", kCpu, DataTypeOf<Ts>::value,
          WithDilation(Backprop<Ts, true>)),
   ...);
}

}  // namespace

void AddDilationCpu(KernelRegistry* r) { AddForTypes(r, RealNumbers{}); }

}  // namespace weir
