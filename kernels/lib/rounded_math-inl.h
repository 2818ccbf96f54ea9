// The operations of M, which is ScalarMath or VectorMath for floats, for 16-bit floats of type N
// that were widened to float: each result is rounded to N. A textual header without an include
// guard, included by scalar_math.h and, for each of Highway's targets, by elementwise_loops-inl.h.

template <class M, class N>
struct RoundedMath : M {
  using V = typename M::V;
  using Narrow = N;

  WEIR_HD static V Num(double c) { return Rounded(M::Num(c)); }
  WEIR_HD static V Add(V a, V b) { return Rounded(M::Add(a, b)); }
  WEIR_HD static V Sub(V a, V b) { return Rounded(M::Sub(a, b)); }
  WEIR_HD static V Mul(V a, V b) { return Rounded(M::Mul(a, b)); }
  WEIR_HD static V Div(V a, V b) { return Rounded(M::Div(a, b)); }
  WEIR_HD static V Exp(V x) { return Rounded(M::Exp(x)); }
  WEIR_HD static V Expm1(V x) { return Sub(Exp(x), Num(1)); }
  WEIR_HD static V Log(V x) { return Rounded(M::Log(x)); }
  WEIR_HD static V Log1p(V x) { return Rounded(M::Log1p(x)); }

 private:
  WEIR_HD static V Rounded(V x) { return M::template RoundTo<N>(x); }
};
