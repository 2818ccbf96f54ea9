#include <cmath>

#include "weir/kernels/gpu/gpu_loops.h"
#include "weir/kernels/gpu/launch.h"

// Batch normalization, one image element per thread. 16-bit floats are computed in float.
namespace weir::gpu {

namespace {

template <class T>
struct Images {
  BatchNormArgs a;
  WEIR_HD int64_t Channel(int64_t i) const { return i / a.inner % a.channels; }
  WEIR_HD float X(int64_t i) const { return static_cast<float>(static_cast<const T*>(a.x)[i]); }
  WEIR_HD float Dy(int64_t i) const { return static_cast<float>(static_cast<const T*>(a.dy)[i]); }
  WEIR_HD float Inverse(int64_t c) const { return 1 / std::sqrt(a.variance[c] + a.epsilon); }
};

template <class T>
struct SquareBody : Images<T> {
  WEIR_HD void operator()(int64_t i) const {
    const float rest = this->X(i) - this->a.mean[this->Channel(i)];
    this->a.temp[i] = rest * rest;
  }
};

template <class T>
struct ProductBody : Images<T> {
  WEIR_HD void operator()(int64_t i) const {
    this->a.temp[i] = this->Dy(i) * (this->X(i) - this->a.mean[this->Channel(i)]);
  }
};

template <class T>
struct NormalizeBody : Images<T> {
  WEIR_HD void operator()(int64_t i) const {
    const int64_t c = this->Channel(i);
    const float factor = this->a.scale[c] * this->Inverse(c);
    static_cast<T*>(this->a.out)[i] =
        static_cast<T>((this->X(i) - this->a.mean[c]) * factor + this->a.offset[c]);
  }
};

template <class T>
struct GradientBody : Images<T> {
  WEIR_HD void operator()(int64_t i) const {
    const int64_t c = this->Channel(i);
    const float inverse = this->Inverse(c);
    float d = this->Dy(i);
    if (this->a.is_training) {
      const float n = static_cast<float>(this->a.outer * this->a.inner);
      d -= this->a.sum[c] / n;
      d -= (this->X(i) - this->a.mean[c]) * inverse * inverse * (this->a.product[c] / n);
    }
    static_cast<T*>(this->a.out)[i] = static_cast<T>(this->a.scale[c] * inverse * d);
  }
};

struct ScaleGradientBody : Images<float> {
  float* dscale;
  WEIR_HD void operator()(int64_t c) const { dscale[c] = a.product[c] * Inverse(c); }
};

struct RunningBody {
  float factor, times;
  const float* old;
  const float* now;
  float* out;
  WEIR_HD void operator()(int64_t i) const {
    const float value = now[i] * times;
    out[i] = factor == 1 ? value : (1 - factor) * old[i] + factor * value;
  }
};

template <template <class> class Body>
void RunOn(void* stream, const BatchNormArgs& args) {
  DispatchType(args.type, List<half, bfloat16, float>(), [&]<class T>() {
    ForEach(stream, args.outer * args.channels * args.inner, Body<T>{{args}});
  });
}

}  // namespace

void BatchNormSquares(void* stream, const BatchNormArgs& args) { RunOn<SquareBody>(stream, args); }
void BatchNormProducts(void* stream, const BatchNormArgs& args) {
  RunOn<ProductBody>(stream, args);
}
void BatchNormalize(void* stream, const BatchNormArgs& args) { RunOn<NormalizeBody>(stream, args); }
void BatchNormGradient(void* stream, const BatchNormArgs& args) {
  RunOn<GradientBody>(stream, args);
}
void BatchNormScaleGradient(void* stream, const BatchNormArgs& args, float* dscale) {
  ForEach(stream, args.channels, ScaleGradientBody{{args}, dscale});
}
void BatchNormRunning(void* stream, int64_t n, float factor, float times, const float* old,
                      const float* now, float* out) {
  ForEach(stream, n, RunningBody{factor, times, old, now, out});
}

}  // namespace weir::gpu
