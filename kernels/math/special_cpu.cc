#include <cmath>

#include "weir/kernels/math/bessel.h"
#include "weir/kernels/math/elementwise_kernels.h"
#include "weir/kernels/math/elementwise_loops.h"
#include "weir/kernels/math/special_functions.h"
#include "weir/kernels/math/special_vectors.h"

// Functions that are computed one element at a time, in double: Bessel functions, integrals, and
// gamma functions as far as special_vectors.h has none.
namespace weir {

namespace {

template <double (*kFunction)(double), class T>
void UnaryDoubleLoop(const UnaryLoop&, const void* xs, void* ys, int64_t n, double) {
  const T* x = static_cast<const T*>(xs);
  T* y = static_cast<T*>(ys);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(kFunction(x[i]));
}
template <double (*kFunction)(double, double), class T>
void BinaryDoubleLoop(const BinaryLoop&, const void* xs, const void* ys, void* zs, int64_t n,
                      double) {
  const T *x = static_cast<const T*>(xs), *y = static_cast<const T*>(ys);
  T* z = static_cast<T*>(zs);
  for (int64_t i = 0; i < n; ++i) z[i] = static_cast<T>(kFunction(x[i], y[i]));
}

template <double (*kFunction)(double)>
void AddUnary(LoopRegistry* t, const char* op, double cost) {
  t->AddUnary(op, DT_FLOAT, DT_FLOAT, UnaryDoubleLoop<kFunction, float>, cost);
  t->AddUnary(op, DT_DOUBLE, DT_DOUBLE, UnaryDoubleLoop<kFunction, double>, cost);
  internal::WidenUnary(t, op, NarrowFloats());
}
template <double (*kFunction)(double, double)>
void AddBinary(LoopRegistry* t, const char* op, double cost) {
  t->AddBinary(op, DT_FLOAT, DT_FLOAT, BinaryDoubleLoop<kFunction, float>, cost);
  t->AddBinary(op, DT_DOUBLE, DT_DOUBLE, BinaryDoubleLoop<kFunction, double>, cost);
}

// Returns the adjacent value in the number's own type.
template <class T>
void NextAfterLoop(const BinaryLoop&, const void* xs, const void* ys, void* zs, int64_t n, double) {
  const T *x = static_cast<const T*>(xs), *y = static_cast<const T*>(ys);
  T* z = static_cast<T*>(zs);
  for (int64_t i = 0; i < n; ++i) z[i] = std::nextafter(x[i], y[i]);
}

void AddBesselLoops(LoopRegistry* t) {
  AddUnary<BesselI0>(t, "BesselI0", 60);
  AddUnary<BesselI1>(t, "BesselI1", 60);
  AddUnary<BesselI0e>(t, "BesselI0e", 60);
  AddUnary<BesselI1e>(t, "BesselI1e", 60);
  AddUnary<BesselK0>(t, "BesselK0", 400);
  AddUnary<BesselK1>(t, "BesselK1", 600);
  AddUnary<BesselK0e>(t, "BesselK0e", 400);
  AddUnary<BesselK1e>(t, "BesselK1e", 600);
  AddUnary<BesselJ0>(t, "BesselJ0", 50);
  AddUnary<BesselJ1>(t, "BesselJ1", 50);
  AddUnary<BesselY0>(t, "BesselY0", 60);
  AddUnary<BesselY1>(t, "BesselY1", 60);
}

void AddGammaLoops(LoopRegistry* t) {
  AddGammaVectors(t);
  t->AddUnary("Lgamma", DT_DOUBLE, DT_DOUBLE, UnaryDoubleLoop<Lgamma, double>, 20);
  internal::WidenUnary(t, "Lgamma", NarrowFloats());
  internal::WidenUnary(t, "Digamma", NarrowFloats());
  t->AddBinary("Igamma", DT_DOUBLE, DT_DOUBLE, BinaryDoubleLoop<Igamma, double>, 300);
  t->AddBinary("Igammac", DT_DOUBLE, DT_DOUBLE, BinaryDoubleLoop<Igammac, double>, 300);
  t->AddBinary("Zeta", DT_DOUBLE, DT_DOUBLE, BinaryDoubleLoop<Zeta, double>, 500);
  internal::WidenBinary(t, "Igamma", NarrowFloats());
  internal::WidenBinary(t, "Igammac", NarrowFloats());
}

}  // namespace

void AddSpecialLoops(LoopRegistry* t) {
  AddBesselLoops(t);
  AddGammaLoops(t);
  AddUnary<Dawsn>(t, "Dawsn", 250);
  AddUnary<Expint>(t, "Expint", 100);
  AddUnary<FresnelCos>(t, "FresnelCos", 300);
  AddUnary<FresnelSin>(t, "FresnelSin", 300);
  AddUnary<Spence>(t, "Spence", 40);
  t->AddBinary("NextAfter", DT_FLOAT, DT_FLOAT, NextAfterLoop<float>, 5);
  t->AddBinary("NextAfter", DT_DOUBLE, DT_DOUBLE, NextAfterLoop<double>, 5);
  AddQuantileVectors(t);
  internal::WidenUnary(t, "Erfinv", NarrowFloats());
  internal::WidenUnary(t, "Ndtri", NarrowFloats());
  AddBinary<IgammaGradA>(t, "IgammaGradA", 500);
  AddBinary<Polygamma>(t, "Polygamma", 500);
}

}  // namespace weir
