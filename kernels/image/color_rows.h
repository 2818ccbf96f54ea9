#ifndef WEIR_KERNELS_IMAGE_COLOR_ROWS_H_
#define WEIR_KERNELS_IMAGE_COLOR_ROWS_H_

#include <cstdint>

// The inner loops of color conversions of float images, in vectors. Every operation rounds as
// written, so the results are those of the scalar formulas in color_cpu.cc. Each pixel's three
// channels are separated when they are loaded, so a vector holds one channel of many pixels, and
// the choice among the formulas for hue is a choice of lanes.
namespace weir::color_rows {

// Convert n pixels.
void RgbToHsv(const float* rgb, int64_t n, float* hsv);
void HsvToRgb(const float* hsv, int64_t n, float* rgb);

// Rotates the hue of n pixels by a part of a turn, between -1 and 1 (exclusive).
void RotateHue(const float* rgb, float turns, int64_t n, float* out);

// sums[i] += x[i] for n elements.
void AddToSums(const float* x, int64_t n, double* sums);
// out[i] = means[i] + factor * (x[i] - means[i]) for n elements.
void ScaleDifferences(const float* x, const float* means, float factor, int64_t n, float* out);

}  // namespace weir::color_rows

#endif  // WEIR_KERNELS_IMAGE_COLOR_ROWS_H_
