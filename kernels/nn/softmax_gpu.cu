#include <cmath>
#include <limits>

#include "weir/kernels/gpu/gpu_loops.h"
#include "weir/kernels/gpu/launch.h"
#include "weir/kernels/lib/scalar_math.h"

// The elementwise parts of softmax and its losses; the maxima and sums of rows between them are
// reductions (see softmax_gpu.cc).
namespace weir::gpu {

namespace {

template <class T>
struct RowsOf {
  using C = Wide<T>;
  SoftmaxArgs a;
  WEIR_HD C shifted(int64_t i) const {
    return static_cast<C>(static_cast<const T*>(a.logits)[i]) -
           static_cast<C>(static_cast<const T*>(a.max)[i / a.n]);
  }
  WEIR_HD C sum(int64_t row) const { return static_cast<const C*>(a.sums)[row]; }
  WEIR_HD C probability(int64_t i) const { return static_cast<const C*>(a.exps)[i] / sum(i / a.n); }
};

template <class T>
struct ExpBody : RowsOf<T> {
  using C = Wide<T>;
  WEIR_HD void operator()(int64_t i) const {
    static_cast<C*>(this->a.exps)[i] = std::exp(this->shifted(i));
  }
};

template <class T>
struct NormalizeBody : RowsOf<T> {
  WEIR_HD void operator()(int64_t i) const {
    static_cast<T*>(this->a.out)[i] = static_cast<T>(this->probability(i));
  }
};

template <class T>
struct LogBody : RowsOf<T> {
  WEIR_HD void operator()(int64_t i) const {
    static_cast<T*>(this->a.out)[i] =
        static_cast<T>(this->shifted(i) - std::log(this->sum(i / this->a.n)));
  }
};

// The loss of rows whose labels are class indices: element i of the gradient, and, for the first
// class of a row, the row's loss.
template <class T, class Label>
struct SparseBody : RowsOf<T> {
  using C = Wide<T>;
  WEIR_HD void operator()(int64_t i) const {
    const int64_t n = this->a.n, row = i / n, c = i % n;
    const int64_t label = static_cast<int64_t>(static_cast<const Label*>(this->a.labels)[row]);
    const bool good = label >= 0 && label < n;
    const C nan = std::numeric_limits<C>::quiet_NaN();
    const C gradient = this->probability(i) - (c == label ? C(1) : C(0));
    static_cast<T*>(this->a.out)[i] = static_cast<T>(good ? gradient : nan);
    if (c != 0) return;
    const C loss = good ? std::log(this->sum(row)) - this->shifted(row * n + label) : nan;
    static_cast<T*>(this->a.loss)[row] = static_cast<T>(loss);
  }
};

// The loss of rows whose labels are a probability per class.
template <class T>
struct DenseBody : RowsOf<T> {
  using C = Wide<T>;
  WEIR_HD void operator()(int64_t i) const {
    const C label = static_cast<C>(static_cast<const T*>(this->a.labels)[i]);
    static_cast<T*>(this->a.out)[i] = static_cast<T>(this->probability(i) - label);
    static_cast<C*>(this->a.loss)[i] =
        label * (std::log(this->sum(i / this->a.n)) - this->shifted(i));
  }
};

template <template <class> class Body>
void RunOn(void* stream, const SoftmaxArgs& args) {
  DispatchType(args.type, Floats(),
               [&]<class T>() { ForEach(stream, args.rows * args.n, Body<T>{{args}}); });
}

}  // namespace

void SoftmaxExps(void* stream, const SoftmaxArgs& args) { RunOn<ExpBody>(stream, args); }
void SoftmaxNormalize(void* stream, const SoftmaxArgs& args) { RunOn<NormalizeBody>(stream, args); }
void SoftmaxLogs(void* stream, const SoftmaxArgs& args) { RunOn<LogBody>(stream, args); }
void CrossEntropyTerms(void* stream, const SoftmaxArgs& args) { RunOn<DenseBody>(stream, args); }

void SparseCrossEntropy(void* stream, const SoftmaxArgs& args) {
  DispatchType(args.type, Floats(), [&]<class T>() {
    DispatchType(args.label_type, List<int32_t, int64_t>(), [&]<class Label>() {
      ForEach(stream, args.rows * args.n, SparseBody<T, Label>{{args}});
    });
  });
}

}  // namespace weir::gpu
