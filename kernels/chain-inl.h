// The links of chains (kernels/chain.h) for functors. A textual header without a guard, included
// inside each of Highway's target namespaces as spans-inl.h is, which includes it.

constexpr size_t kChainVectors = 8;  // as many as calls hand on in registers

template <class T, class = std::make_index_sequence<kChainVectors>>
struct Links;
template <class T, size_t... k>
struct Links<T, std::index_sequence<k...>> {
  // Vectors of a size that the compiler knows.
#if HWY_HAVE_SCALABLE
  using D = hn::FixedTag<T, 16 / sizeof(T)>;
#else
  using D = hn::ScalableTag<T>;
#endif
  using M = VectorMath<D>;
  template <size_t>
  using V = hn::Vec<D>;
  using Fn = void (*)(const ChainStep* step, int64_t i, V<k>... v);
  static constexpr size_t kLanes = hn::MaxLanes(D());

  static HWY_INLINE void HandOn(const ChainStep* step, int64_t i, V<k>... v) {
    return reinterpret_cast<Fn>(step[1].link)(step + 1, i, v...);
  }
  static HWY_INLINE const T* Elements(const ChainStep* step, int64_t i) {
    return static_cast<const T*>(step->other) + i;
  }
  static HWY_INLINE T* Place(const ChainStep* step, int64_t i) {
    return const_cast<T*>(Elements(step, i));
  }

  template <class F>
  static void Unary(const ChainStep* step, int64_t i, V<k>... v) {
    return HandOn(step, i, F::template Apply<M>(v)...);
  }
  template <class F, bool kFirst>
  static void WithNumber(const ChainStep* step, int64_t i, V<k>... v) {
    const hn::Vec<D> number = hn::Set(D(), *Elements(step, 0));
    return HandOn(step, i,
                  (kFirst ? F::template Apply<M>(number, v) : F::template Apply<M>(v, number))...);
  }
  template <class F, bool kFirst>
  static void WithElements(const ChainStep* step, int64_t i, V<k>... v) {
    const T* const y = Elements(step, i);
    return HandOn(step, i,
                  (kFirst ? F::template Apply<M>(hn::LoadU(D(), y + k * kLanes), v)
                          : F::template Apply<M>(v, hn::LoadU(D(), y + k * kLanes)))...);
  }

  static void Load(const ChainStep* step, int64_t i, V<k>...) {
    const T* const x = Elements(step, i);
    return HandOn(step, i, hn::LoadU(D(), x + k * kLanes)...);
  }
  static void Store(const ChainStep* step, int64_t i, V<k>... v) {
    T* const to = Place(step, i);
    (hn::StoreU(v, D(), to + k * kLanes), ...);
  }
  static void Keep(const ChainStep* step, int64_t i, V<k>... v) {
    Store(step, i, v...);
    return HandOn(step, i, v...);
  }
  static void Stream(const ChainStep* step, int64_t i, V<k>... v) {
    T* const to = Place(step, i);
    (hn::Stream(v, D(), to + k * kLanes), ...);
  }

  static void Run(const ChainStep* chain, int64_t n) {
    const Fn first = reinterpret_cast<Fn>(chain->link);
    const auto none = hn::Zero(D());
    for (int64_t i = 0; i < n; i += static_cast<int64_t>(kChainVectors * kLanes))
      first(chain, i, (static_cast<void>(k), none)...);
  }

  template <class F>
  static constexpr Link Erased(F* function) {
    return reinterpret_cast<Link>(function);
  }
  static ChainEnds Ends() {
    return {.load = Erased(Load),
            .keep = Erased(Keep),
            .store = Erased(Store),
            .stream = Erased(Stream),
            .width = static_cast<int64_t>(kChainVectors * kLanes),
            .run = Run};
  }
  template <class F>
  static void AddUnary(SpanTable* t) {
    t->FindUnary(F::kOp, DataTypeOf<T>::value)->link = Erased(Unary<F>);
  }
  template <class F>
  static void AddBinary(SpanTable* t) {
    t->FindBinary(F::kOp, DataTypeOf<T>::value)->links = {
        .number_first = Erased(WithNumber<F, true>),
        .number_second = Erased(WithNumber<F, false>),
        .elements_first = Erased(WithElements<F, true>),
        .elements_second = Erased(WithElements<F, false>)};
  }
};

// Links of entries that are there already: of ops that take few instructions.
template <class... Fs>
void AddUnaryLinks(SpanTable* t) {
  (Links<float>::AddUnary<Fs>(t), ...);
  (Links<double>::AddUnary<Fs>(t), ...);
}
template <class... Fs>
void AddBinaryLinks(SpanTable* t) {
  (Links<float>::AddBinary<Fs>(t), ...);
  (Links<double>::AddBinary<Fs>(t), ...);
}
