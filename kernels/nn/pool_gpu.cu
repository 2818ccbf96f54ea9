#include <limits>

#include "weir/kernels/gpu/gpu_loops.h"
#include "weir/kernels/gpu/launch.h"
#include "weir/kernels/lib/scalar_math.h"

// Pooling, one element of the result per thread. The forward pass visits the pixels of a window.
// The backward pass visits, for each pixel of the image, the windows that contain it, so no two
// threads accumulate into one element and the result does not depend on their order. Among equal
// maxima the first one counts.
namespace weir::gpu {

namespace {

// A pixel: image, depth, height, width, channel.
struct Pixel {
  int64_t batch, at[3], channel;
};

struct Geometry {
  PoolArgs a;

  // Returns the position of element i of a tensor with these spatial sizes, in the tensors' layout.
  WEIR_HD Pixel Locate(int64_t i, const int64_t (&size)[3]) const {
    Pixel p;
    if (!a.channels_first) {
      p.channel = i % a.channels;
      i /= a.channels;
    }
    for (int d = 2; d >= 0; --d) {
      p.at[d] = i % size[d];
      i /= size[d];
    }
    if (a.channels_first) {
      p.channel = i % a.channels;
      i /= a.channels;
    }
    p.batch = i;
    return p;
  }
  WEIR_HD int64_t Offset(const Pixel& p, const int64_t (&size)[3]) const {
    const int64_t image = a.channels_first ? p.batch * a.channels + p.channel : p.batch;
    const int64_t pixel = ((image * size[0] + p.at[0]) * size[1] + p.at[1]) * size[2] + p.at[2];
    return a.channels_first ? pixel : pixel * a.channels + p.channel;
  }

  // The part of the window at output position `at` that is inside the image.
  WEIR_HD void Clip(const int64_t (&at)[3], int64_t (&begin)[3], int64_t (&end)[3]) const {
    for (int d = 0; d < 3; ++d) {
      const int64_t start = at[d] * a.stride[d] - a.pad[d], stop = start + a.window[d];
      begin[d] = start < 0 ? 0 : start;
      end[d] = stop > a.in[d] ? a.in[d] : stop;
    }
  }
  // The windows that contain a pixel of the image: positions [begin, end) of the output.
  WEIR_HD void Windows(const int64_t (&at)[3], int64_t (&begin)[3], int64_t (&end)[3]) const {
    for (int d = 0; d < 3; ++d) {
      const int64_t padded = at[d] + a.pad[d];
      const int64_t first =
          padded - a.window[d] + 1;  // the earliest start that still covers the pixel
      begin[d] = first <= 0 ? 0 : (first + a.stride[d] - 1) / a.stride[d];
      const int64_t last = padded / a.stride[d] + 1;
      end[d] = last > a.out[d] ? a.out[d] : last;
    }
  }

  // Calls visit for every pixel of [begin, end) in the image and channel of `p`, in row-major
  // order.
  template <class F>
  WEIR_HD static void ForEachPixel(Pixel p, const int64_t (&begin)[3], const int64_t (&end)[3],
                                   const F& visit) {
    for (p.at[0] = begin[0]; p.at[0] < end[0]; ++p.at[0]) {
      for (p.at[1] = begin[1]; p.at[1] < end[1]; ++p.at[1]) {
        for (p.at[2] = begin[2]; p.at[2] < end[2]; ++p.at[2]) visit(p);
      }
    }
  }

  // Returns the offset in x of the first maximum of the window of output pixel `o`; -1 for an empty
  // window.
  template <class T>
  WEIR_HD int64_t FirstMaximum(const T* x, const Pixel& o) const {
    using C = Wide<T>;
    int64_t begin[3], end[3], best_at = -1;
    Clip(o.at, begin, end);
    C best = C(0);
    ForEachPixel(o, begin, end, [&](const Pixel& p) {
      const int64_t at = Offset(p, a.in);
      const C v = static_cast<C>(x[at]);
      if (best_at < 0 || v > best) {
        best = v;
        best_at = at;
      }
    });
    return best_at;
  }
};

template <class T>
struct MaxBody : Geometry {
  WEIR_HD void operator()(int64_t i) const {
    using C = Wide<T>;
    const T* x = static_cast<const T*>(a.a);
    const Pixel o = Locate(i, a.out);
    int64_t begin[3], end[3];
    Clip(o.at, begin, end);
    C best = std::numeric_limits<C>::lowest();
    ForEachPixel(o, begin, end, [&](const Pixel& p) {
      const C v = static_cast<C>(x[Offset(p, a.in)]);
      if (v > best) best = v;
    });
    static_cast<T*>(a.result)[i] = static_cast<T>(best);
  }
};

template <class T>
struct MaxGradBody : Geometry {
  WEIR_HD void operator()(int64_t i) const {
    using C = Wide<T>;
    const T* x = static_cast<const T*>(a.a);
    const T* dy = static_cast<const T*>(a.b);
    const Pixel p = Locate(i, a.in);
    int64_t begin[3], end[3];
    Windows(p.at, begin, end);
    C sum = C(0);
    ForEachPixel(p, begin, end, [&](const Pixel& o) {
      if (FirstMaximum(x, o) == i) sum += static_cast<C>(dy[Offset(o, a.out)]);
    });
    static_cast<T*>(a.result)[i] = static_cast<T>(sum);
  }
};

template <class T>
struct MaxGradGradBody : Geometry {
  WEIR_HD void operator()(int64_t i) const {
    const int64_t at = FirstMaximum(static_cast<const T*>(a.a), Locate(i, a.out));
    static_cast<T*>(a.result)[i] = at < 0 ? T(0.0f) : static_cast<const T*>(a.b)[at];
  }
};

template <class T>
struct AvgBody : Geometry {
  WEIR_HD void operator()(int64_t i) const {
    using C = Wide<T>;
    const T* x = static_cast<const T*>(a.a);
    const Pixel o = Locate(i, a.out);
    int64_t begin[3], end[3], count = 0;
    Clip(o.at, begin, end);
    C sum = C(0);
    ForEachPixel(o, begin, end, [&](const Pixel& p) {
      sum += static_cast<C>(x[Offset(p, a.in)]);
      ++count;
    });
    static_cast<T*>(a.result)[i] = static_cast<T>(count == 0 ? sum : sum / static_cast<C>(count));
  }
};

template <class T>
struct AvgGradBody : Geometry {
  WEIR_HD void operator()(int64_t i) const {
    using C = Wide<T>;
    const T* dy = static_cast<const T*>(a.a);
    const Pixel p = Locate(i, a.in);
    int64_t begin[3], end[3];
    Windows(p.at, begin, end);
    C sum = C(0);
    ForEachPixel(p, begin, end, [&](const Pixel& o) {
      int64_t first[3], last[3], count = 1;
      Clip(o.at, first, last);
      for (int d = 0; d < 3; ++d) count *= last[d] - first[d];
      sum += static_cast<C>(dy[Offset(o, a.out)]) / static_cast<C>(count);
    });
    static_cast<T*>(a.result)[i] = static_cast<T>(sum);
  }
};

int64_t Elements(const PoolArgs& a, const int64_t (&size)[3]) {
  return a.batch * a.channels * size[0] * size[1] * size[2];
}

template <class T>
void RunPool(void* stream, PoolOp op, const PoolArgs& a) {
  switch (op) {
    case PoolOp::kMax:
      return ForEach(stream, Elements(a, a.out), MaxBody<T>{{a}});
    case PoolOp::kMaxGrad:
      return ForEach(stream, Elements(a, a.in), MaxGradBody<T>{{a}});
    case PoolOp::kMaxGradGrad:
      return ForEach(stream, Elements(a, a.out), MaxGradGradBody<T>{{a}});
    case PoolOp::kAvg:
      return ForEach(stream, Elements(a, a.out), AvgBody<T>{{a}});
    case PoolOp::kAvgGrad:
      return ForEach(stream, Elements(a, a.in), AvgGradBody<T>{{a}});
  }
}

}  // namespace

bool Pool(void* stream, PoolOp op, DataType type, const PoolArgs& args) {
  return DispatchType(type, Floats(), [&]<class T>() { RunPool<T>(stream, op, args); });
}

}  // namespace weir::gpu
