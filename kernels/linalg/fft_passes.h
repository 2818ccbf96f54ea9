#ifndef WEIR_KERNELS_LINALG_FFT_PASSES_H_
#define WEIR_KERNELS_LINALG_FFT_PASSES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::fft {

// The complex transform of one length n as a sequence of passes, one per factor of n, with their
// twiddle factors. Intended for lengths whose prime factors are small: a pass of radix r takes
// r operations per number.
template <class T>
struct Passes {
  explicit Passes(int64_t n);

  struct Pass {
    int64_t radix;
    int64_t stride;  // the product of the radices of the passes before
    // Offsets into `factors`: radix - 1 twiddle factors for each butterfly with the same stride;
    // and the roots of unity of order `radix`, which only radices without code of their own use.
    size_t twiddles, roots;
  };
  int64_t n;
  int64_t largest_radix = 1;
  std::vector<Pass> passes;
  std::vector<T> factors;  // real and imaginary parts alternate
};

enum class Kind { kComplex, kFromReal, kToReal };

// The transforms of rows in the lanes of vectors. n is the number of values in a row of the real or
// only side. The passes transform n / 2 complex numbers for a real transform of even length, and n
// otherwise.
template <class T>
struct RowTransform {
  Kind kind;
  int64_t n;
  const Passes<T>* passes;
  const T* halves;  // exp(-2 pi i k / n) for k <= n / 4; for real transforms of even length
};

// Numbers in memory, of which consecutive lines (rows, or elements of columns) are `pitch` values
// of T apart. Complex numbers are stored as pairs. `From` may conjugate them; `To` multiplies real
// and imaginary parts, so that it can scale and conjugate.
template <class T>
struct From {
  const T* at;
  int64_t pitch;
  bool conjugate = false;
};
template <class T>
struct To {
  T* at;
  int64_t pitch;
  T re_scale = 1, im_scale = 1;
};

// The vectorized parts of transforms, for the instruction set of this processor. A block is up to
// `lanes` transforms, one in each lane. `count` is their number. `scratch` is aligned to vectors
// and has BlockScratch() values. Blocks take below a few milliseconds, and do not look at
// cancellation.
template <class T>
struct BlockFunctions {
  BlockFunctions();

  int64_t lanes;
  // Transforms rows. `from` and `to` do not overlap.
  void (*rows)(const RowTransform<T>&, From<T>, To<T>, int64_t count, T* scratch);
  // Transforms columns of complex numbers; they may be transformed in place.
  void (*columns)(const Passes<T>&, From<T>, To<T>, int64_t count, T* scratch);

  // The two halves of a split transform (fft.cc). The first transforms columns and stores them as
  // rows of an array in the split format: `lanes` real parts alternate with as many imaginary ones,
  // and rows are padded with zeros. The second multiplies columns of such an array by twiddle
  // factors in the same format and transforms them.
  void (*columns_to_split)(const Passes<T>&, From<T>, To<T>, int64_t count, T* scratch);
  void (*split_to_columns)(const Passes<T>&, From<T>, const T* twiddles, To<T>, int64_t count,
                           T* scratch);

  // Converts numbers 1 to h - 1 of a line in place, between the transform of h complex numbers and
  // that of 2h real ones (see Untangle in fft_passes.cc).
  void (*untangle)(T* line, int64_t h, const T* halves);
  // Multiplies n complex numbers by others.
  void (*multiply)(From<T>, const T* factors, To<T>, int64_t n);
};

// The number of values in the scratch memory of a block.
template <class T>
int64_t BlockScratch(const Passes<T>& passes, int64_t lanes) {
  return 2 * lanes * (2 * (2 * passes.n + 1) + passes.largest_radix);
}

}  // namespace weir::fft

#endif  // WEIR_KERNELS_LINALG_FFT_PASSES_H_
