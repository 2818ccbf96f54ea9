// The stages of pipelines (kernels/math/register_fusion.h) as templates over functors. A textual
// header without a guard: elementwise_loops-inl.h includes it inside each of Highway's target
// namespaces.

constexpr size_t kPipelineVectors = 8;  // as many as a call passes in registers

template <class T, class = std::make_index_sequence<kPipelineVectors>>
struct Stages;
template <class T, size_t... k>
struct Stages<T, std::index_sequence<k...>> {
  // Vectors of a size that is known at compile time.
#if HWY_HAVE_SCALABLE
  using D = hn::FixedTag<T, 16 / sizeof(T)>;
#else
  using D = hn::ScalableTag<T>;
#endif
  using M = VectorMath<D>;
  template <size_t>
  using V = hn::Vec<D>;
  using Fn = void (*)(const FusedStage* stage, int64_t i, V<k>... v);
  static constexpr size_t kLanes = hn::MaxLanes(D());

  static HWY_INLINE void CallNext(const FusedStage* stage, int64_t i, V<k>... v) {
    return reinterpret_cast<Fn>(stage[1].fn)(stage + 1, i, v...);
  }
  static HWY_INLINE const T* Elements(const FusedStage* stage, int64_t i) {
    return static_cast<const T*>(stage->operand) + i;
  }
  static HWY_INLINE T* Place(const FusedStage* stage, int64_t i) {
    return const_cast<T*>(Elements(stage, i));
  }

  template <class F>
  static void Unary(const FusedStage* stage, int64_t i, V<k>... v) {
    return CallNext(stage, i, F::template Apply<M>(v)...);
  }
  template <class F, bool kFirst>
  static void WithScalar(const FusedStage* stage, int64_t i, V<k>... v) {
    const hn::Vec<D> scalar = hn::Set(D(), *Elements(stage, 0));
    return CallNext(
        stage, i, (kFirst ? F::template Apply<M>(scalar, v) : F::template Apply<M>(v, scalar))...);
  }
  template <class F, bool kFirst>
  static void WithElements(const FusedStage* stage, int64_t i, V<k>... v) {
    const T* const y = Elements(stage, i);
    return CallNext(stage, i,
                    (kFirst ? F::template Apply<M>(hn::LoadU(D(), y + k * kLanes), v)
                            : F::template Apply<M>(v, hn::LoadU(D(), y + k * kLanes)))...);
  }

  static void Load(const FusedStage* stage, int64_t i, V<k>...) {
    const T* const x = Elements(stage, i);
    return CallNext(stage, i, hn::LoadU(D(), x + k * kLanes)...);
  }
  static void Store(const FusedStage* stage, int64_t i, V<k>... v) {
    T* const to = Place(stage, i);
    (hn::StoreU(v, D(), to + k * kLanes), ...);
  }
  static void StoreAndPass(const FusedStage* stage, int64_t i, V<k>... v) {
    Store(stage, i, v...);
    return CallNext(stage, i, v...);
  }
  static void StoreNonTemporal(const FusedStage* stage, int64_t i, V<k>... v) {
    T* const to = Place(stage, i);
    (hn::Stream(v, D(), to + k * kLanes), ...);
  }

  static void Run(const FusedStage* pipeline, int64_t n) {
    const Fn first = reinterpret_cast<Fn>(pipeline->fn);
    const auto unused = hn::Zero(D());
    for (int64_t i = 0; i < n; i += static_cast<int64_t>(kPipelineVectors * kLanes))
      first(pipeline, i, (static_cast<void>(k), unused)...);
  }

  template <class F>
  static constexpr StageFn Erased(F* function) {
    return reinterpret_cast<StageFn>(function);
  }
  static PipelineBackend Backend() {
    return {.load = Erased(Load),
            .store_and_pass = Erased(StoreAndPass),
            .store = Erased(Store),
            .store_non_temporal = Erased(StoreNonTemporal),
            .width = static_cast<int64_t>(kPipelineVectors * kLanes),
            .run = Run};
  }
  template <class F>
  static StageFn UnaryStage() {
    return Erased(Unary<F>);
  }
  template <class F>
  static BinaryStages StagesOf() {
    return {.scalar_first = Erased(WithScalar<F, true>),
            .scalar_second = Erased(WithScalar<F, false>),
            .tensor_first = Erased(WithElements<F, true>),
            .tensor_second = Erased(WithElements<F, false>)};
  }
};
