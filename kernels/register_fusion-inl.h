// The stages of pipelines (kernels/register_fusion.h) for functors. A textual header without a guard, included
// inside each of Highway's target namespaces as elementwise_loops-inl.h is, which includes it.

constexpr size_t kPipelineVectors = 8;  // as many as calls hand on in registers

template <class T, class = std::make_index_sequence<kPipelineVectors>>
struct Stages;
template <class T, size_t... k>
struct Stages<T, std::index_sequence<k...>> {
  // Vectors of a size that the compiler knows.
#if HWY_HAVE_SCALABLE
  using D = hn::FixedTag<T, 16 / sizeof(T)>;
#else
  using D = hn::ScalableTag<T>;
#endif
  using M = VectorMath<D>;
  template <size_t>
  using V = hn::Vec<D>;
  using Fn = void (*)(const FusedStage* step, int64_t i, V<k>... v);
  static constexpr size_t kLanes = hn::MaxLanes(D());

  static HWY_INLINE void CallNext(const FusedStage* step, int64_t i, V<k>... v) {
    return reinterpret_cast<Fn>(step[1].stage)(step + 1, i, v...);
  }
  static HWY_INLINE const T* Elements(const FusedStage* step, int64_t i) {
    return static_cast<const T*>(step->other) + i;
  }
  static HWY_INLINE T* Place(const FusedStage* step, int64_t i) {
    return const_cast<T*>(Elements(step, i));
  }

  template <class F>
  static void Unary(const FusedStage* step, int64_t i, V<k>... v) {
    return CallNext(step, i, F::template Apply<M>(v)...);
  }
  template <class F, bool kFirst>
  static void WithNumber(const FusedStage* step, int64_t i, V<k>... v) {
    const hn::Vec<D> number = hn::Set(D(), *Elements(step, 0));
    return CallNext(step, i,
                  (kFirst ? F::template Apply<M>(number, v) : F::template Apply<M>(v, number))...);
  }
  template <class F, bool kFirst>
  static void WithElements(const FusedStage* step, int64_t i, V<k>... v) {
    const T* const y = Elements(step, i);
    return CallNext(step, i,
                  (kFirst ? F::template Apply<M>(hn::LoadU(D(), y + k * kLanes), v)
                          : F::template Apply<M>(v, hn::LoadU(D(), y + k * kLanes)))...);
  }

  static void Load(const FusedStage* step, int64_t i, V<k>...) {
    const T* const x = Elements(step, i);
    return CallNext(step, i, hn::LoadU(D(), x + k * kLanes)...);
  }
  static void Store(const FusedStage* step, int64_t i, V<k>... v) {
    T* const to = Place(step, i);
    (hn::StoreU(v, D(), to + k * kLanes), ...);
  }
  static void Keep(const FusedStage* step, int64_t i, V<k>... v) {
    Store(step, i, v...);
    return CallNext(step, i, v...);
  }
  static void Stream(const FusedStage* step, int64_t i, V<k>... v) {
    T* const to = Place(step, i);
    (hn::Stream(v, D(), to + k * kLanes), ...);
  }

  static void Run(const FusedStage* pipeline, int64_t n) {
    const Fn first = reinterpret_cast<Fn>(pipeline->stage);
    const auto none = hn::Zero(D());
    for (int64_t i = 0; i < n; i += static_cast<int64_t>(kPipelineVectors * kLanes))
      first(pipeline, i, (static_cast<void>(k), none)...);
  }

  template <class F>
  static constexpr StageFn Erased(F* function) {
    return reinterpret_cast<StageFn>(function);
  }
  static PipelineEnds Ends() {
    return {.load = Erased(Load),
            .keep = Erased(Keep),
            .store = Erased(Store),
            .stream = Erased(Stream),
            .width = static_cast<int64_t>(kPipelineVectors * kLanes),
            .run = Run};
  }
  template <class F>
  static void AddUnary(LoopRegistry* t) {
    t->FindUnary(F::kOp, DataTypeOf<T>::value)->stage = Erased(Unary<F>);
  }
  template <class F>
  static void AddBinary(LoopRegistry* t) {
    t->FindBinary(F::kOp, DataTypeOf<T>::value)->stages = {
        .number_first = Erased(WithNumber<F, true>),
        .number_second = Erased(WithNumber<F, false>),
        .elements_first = Erased(WithElements<F, true>),
        .elements_second = Erased(WithElements<F, false>)};
  }
};

// Stages of entries that are there already: of ops that take few instructions.
template <class... Fs>
void AddUnaryStages(LoopRegistry* t) {
  (Stages<float>::AddUnary<Fs>(t), ...);
  (Stages<double>::AddUnary<Fs>(t), ...);
}
template <class... Fs>
void AddBinaryStages(LoopRegistry* t) {
  (Stages<float>::AddBinary<Fs>(t), ...);
  (Stages<double>::AddBinary<Fs>(t), ...);
}
