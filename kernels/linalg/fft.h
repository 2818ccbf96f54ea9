#ifndef WEIR_KERNELS_LINALG_FFT_H_
#define WEIR_KERNELS_LINALG_FFT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "hwy/aligned_allocator.h"
#include "weir/core/runtime/thread_pool.h"
#include "weir/kernels/linalg/fft_passes.h"

namespace weir::fft {

// What a transform is for. It affects speed, not what may be transformed.
enum class Use { kRows, kColumns, kOneLine };

// The discrete Fourier transform of n complex numbers, stored as pairs of values:
//   out[k] = sum of in[j] exp(-2 pi i j k / n).
// Computed in T. Construction takes time proportional to n log n at most.
template <class T>
class ComplexTransform {
 public:
  ComplexTransform(int64_t n, Use use);

  // The passes, if so many lines are transformed several at a time, in the lanes of vectors.
  // Otherwise null, and Run transforms each.
  const Passes<T>* InLanes(int64_t lines) const;
  // Whether Run divides the transform among threads.
  bool divides() const;
  // Transforms one line. Without a pool, or below a certain length, runs on the calling thread.
  // `work` is aligned to vectors and has WorkSize() values; no two arrays overlap.
  void Run(ThreadPool* pool, From<T> in, To<T> out, T* work) const;
  int64_t WorkSize() const;
  // The number of values that this object keeps.
  int64_t size() const;

 private:
  void Split();
  void MakeChirp();
  void RunSplit(ThreadPool* pool, From<T> in, To<T> out, T* work) const;
  void RunConvolution(ThreadPool* pool, From<T> in, To<T> out, T* work) const;
  int64_t SplitScratch() const;
  int64_t pitch() const;  // of the array between the two halves

  const BlockFunctions<T> run_;
  const int64_t n_;
  std::unique_ptr<const Passes<T>> whole_;           // null if lines are never in lanes
  std::unique_ptr<const Passes<T>> first_, second_;  // the halves of a split; otherwise null
  hwy::AlignedFreeUniquePtr<T[]> twiddles_;          // between the halves
  // For lengths with a large prime factor; otherwise null and empty.
  std::unique_ptr<const ComplexTransform> convolution_;
  std::vector<T> chirp_, transformed_chirp_;
};

// Transforms lines of one length: of complex numbers, from n real numbers to the first n / 2 + 1
// frequencies (the others are their conjugates), or from those to n real numbers. Transforms to
// real numbers are inverse, with exp(+2 pi i j k / n). Immutable; several threads may use it. What
// it computes depends on the length and the number of lines, not on threads.
template <class T>
class LineTransform {
 public:
  LineTransform(int64_t n, Kind kind, Use use);

  int64_t length() const { return n_; }
  Kind kind() const { return kind_; }
  Use use() const { return use_; }
  int64_t size() const { return complex_.size() + static_cast<int64_t>(halves_.size()); }

  // Transforms rows, whose pitches are in values of T, and multiplies the results by `scale`.
  // `inverse` concerns complex numbers only. `in` and `out` do not overlap.
  void TransformRows(ThreadPool& pool, const T* in, int64_t in_pitch, T* out, int64_t out_pitch,
                     int64_t rows, bool inverse, T scale) const;
  // Transforms complex numbers along the middle dimension of arrays [outer][length][inner].
  // They may be transformed in place.
  void TransformColumns(ThreadPool& pool, const T* in, T* out, int64_t outer, int64_t inner,
                        bool inverse) const;

 private:
  bool packs() const { return kind_ != Kind::kComplex && n_ % 2 == 0; }
  double Cost() const;
  int64_t WorkSize() const;
  int64_t LineSize() const;
  void RunRow(ThreadPool* pool, From<T> in, To<T> out, T* work) const;
  void FromReal(ThreadPool* pool, From<T> in, To<T> out, T* work) const;
  void ToReal(ThreadPool* pool, From<T> in, To<T> out, T* work) const;
  // Numbers that some columns of `inner` take as lines of complex numbers.
  int64_t GatheredSize(int64_t inner) const;
  void GatherColumns(ThreadPool* pool, const T* in, T* out, int64_t inner, int64_t count,
                     bool inverse, T* work) const;

  const BlockFunctions<T> run_;
  const int64_t n_;
  const Kind kind_;
  const Use use_;
  const ComplexTransform<T> complex_;
  std::vector<T> halves_;
};

}  // namespace weir::fft

#endif  // WEIR_KERNELS_LINALG_FFT_H_
