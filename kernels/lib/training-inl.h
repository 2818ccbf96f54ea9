// The update rules. A textual header without a guard: training.h includes it for scalar types, and
// training_cpu.cc once more inside each of Highway's target namespaces, because functions over
// vectors must be compiled for their target.
//
// Requires UpdateScalars, std::sqrt, std::exp and WEIR_HD.

// The proximal step of L1 and L2 regularization with rate `rate`: shrinks toward zero by rate * l1,
// then scales.
template <class M>
WEIR_HD typename M::V Proximal(typename M::V x, typename M::V rate, typename M::V l1,
                               typename M::V l2, bool has_l1) {
  using V = typename M::V;
  const V zero = M::Set(0), scale = M::Set(1) + l2 * rate;
  if (!has_l1) return x / scale;
  return M::WithSign(M::Max(M::Abs(x) - rate * l1, zero) / scale, x);
}

template <class M>
struct GradientDescent {
  using V = typename M::V;
  static constexpr int kSlots = 0;
  V alpha;
  WEIR_HD explicit GradientDescent(const UpdateScalars& s) : alpha(M::Set(s.at[0])) {}
  WEIR_HD void operator()(V g, V& var, V*) const { var = var - alpha * g; }
};

template <class M>
struct ProximalGradientDescent {
  using V = typename M::V;
  static constexpr int kSlots = 0;
  V alpha, l1, l2;
  bool has_l1;
  WEIR_HD explicit ProximalGradientDescent(const UpdateScalars& s)
      : alpha(M::Set(s.at[0])), l1(M::Set(s.at[1])), l2(M::Set(s.at[2])), has_l1(s.at[1] > 0) {}
  WEIR_HD void operator()(V g, V& var, V*) const {
    var = Proximal<M>(var - alpha * g, alpha, l1, l2, has_l1);
  }
};

template <class M>
struct Adadelta {
  using V = typename M::V;
  static constexpr int kSlots = 2;  // accum, accum_update
  V lr, rho, rest, epsilon;
  WEIR_HD explicit Adadelta(const UpdateScalars& s)
      : lr(M::Set(s.at[0])),
        rho(M::Set(s.at[1])),
        rest(M::Set(1 - s.at[1])),
        epsilon(M::Set(s.at[2])) {}
  WEIR_HD void operator()(V g, V& var, V* slot) const {
    slot[0] = slot[0] * rho + g * g * rest;
    const V update = M::Sqrt(slot[1] + epsilon) / M::Sqrt(slot[0] + epsilon) * g;
    slot[1] = slot[1] * rho + update * update * rest;
    var = var - lr * update;
  }
};

template <class M>
struct Adagrad {
  using V = typename M::V;
  static constexpr int kSlots = 1;
  V lr;
  bool update_slots;
  WEIR_HD explicit Adagrad(const UpdateScalars& s)
      : lr(M::Set(s.at[0])), update_slots(s.update_slots) {}
  WEIR_HD void operator()(V g, V& var, V* slot) const {
    if (update_slots) slot[0] = slot[0] + g * g;
    var = var - lr * g / M::Sqrt(slot[0]);
  }
};

template <class M>
struct AdagradV2 {
  using V = typename M::V;
  static constexpr int kSlots = 1;
  V lr, epsilon;
  bool update_slots;
  WEIR_HD explicit AdagradV2(const UpdateScalars& s)
      : lr(M::Set(s.at[0])), epsilon(M::Set(s.at[1])), update_slots(s.update_slots) {}
  WEIR_HD void operator()(V g, V& var, V* slot) const {
    if (update_slots) slot[0] = slot[0] + g * g;
    var = var - lr * g / (M::Sqrt(slot[0]) + epsilon);
  }
};

template <class M>
struct AdagradDA {
  using V = typename M::V;
  static constexpr int kSlots = 2;  // sum of gradients, sum of their squares
  V lr, l1_step, l2_step;
  bool has_l1;
  WEIR_HD explicit AdagradDA(const UpdateScalars& s)
      : lr(M::Set(s.at[0])),
        l1_step(M::Set(s.at[1] * static_cast<double>(s.global_step))),
        l2_step(M::Set(s.at[2] * static_cast<double>(s.global_step) * s.at[0])),
        has_l1(s.at[1] > 0) {}
  WEIR_HD void operator()(V g, V& var, V* slot) const {
    slot[0] = slot[0] + g;
    slot[1] = slot[1] + g * g;
    const V zero = M::Set(0);
    const V sum = has_l1 ? M::WithSign(M::Max(M::Abs(slot[0]) - l1_step, zero), slot[0]) : slot[0];
    var = zero - lr * sum / (l2_step + M::Sqrt(slot[1]));
  }
};

template <class M>
struct ProximalAdagrad {
  using V = typename M::V;
  static constexpr int kSlots = 1;
  V lr, l1, l2;
  bool has_l1;
  WEIR_HD explicit ProximalAdagrad(const UpdateScalars& s)
      : lr(M::Set(s.at[0])), l1(M::Set(s.at[1])), l2(M::Set(s.at[2])), has_l1(s.at[1] > 0) {}
  WEIR_HD void operator()(V g, V& var, V* slot) const {
    slot[0] = slot[0] + g * g;
    const V rate = lr / M::Sqrt(slot[0]);
    var = Proximal<M>(var - g * rate, rate, l1, l2, has_l1);
  }
};

// accum^-lr_power is a square root for the usual power of -0.5.
template <class M, bool kSqrt, bool kShrinkage>
struct FtrlRule {
  using V = typename M::V;
  static constexpr int kSlots = 2;  // accum, linear
  V lr, l1, l2, shrinkage, power;
  bool multiply;
  WEIR_HD explicit FtrlRule(const UpdateScalars& s)
      : lr(M::Set(s.at[0])),
        l1(M::Set(s.flag ? s.at[1] * s.at[0] : s.at[1])),
        l2(M::Set(2 * (s.flag ? s.at[2] * s.at[0] : s.at[2]))),
        shrinkage(M::Set(kShrinkage ? 2 * s.at[3] : 0)),
        power(M::Set(-s.at[kShrinkage ? 4 : 3])),
        multiply(s.flag) {}
  WEIR_HD V Root(V x) const {
    if constexpr (kSqrt) {
      return M::Sqrt(x);
    } else {
      return M::Pow(x, power);
    }
  }
  WEIR_HD void operator()(V g, V& var, V* slot) const {
    const V shrunk = kShrinkage ? g + shrinkage * var : g;
    const V accum = slot[0] + g * g;
    const V root = Root(accum), growth = root - Root(slot[0]);
    slot[1] = slot[1] + (multiply ? shrunk * lr - growth * var : shrunk - growth / lr * var);
    const V quadratic = (multiply ? root : root / lr) + l2;
    const V clipped = M::Max(M::Min(slot[1], l1), M::Set(0) - l1);
    var = (clipped - slot[1]) / quadratic;
    slot[0] = accum;
  }
};
template <class M>
using Ftrl = FtrlRule<M, true, false>;
template <class M>
using FtrlV2 = FtrlRule<M, true, true>;
template <class M>
using FtrlPower = FtrlRule<M, false, false>;
template <class M>
using FtrlV2Power = FtrlRule<M, false, true>;

template <class M>
struct Momentum {
  using V = typename M::V;
  static constexpr int kSlots = 1;
  V lr, momentum;
  bool nesterov;
  WEIR_HD explicit Momentum(const UpdateScalars& s)
      : lr(M::Set(s.at[0])), momentum(M::Set(s.at[1])), nesterov(s.flag) {}
  WEIR_HD void operator()(V g, V& var, V* slot) const {
    slot[0] = slot[0] * momentum + g;
    var = var - (nesterov ? g * lr + slot[0] * momentum * lr : slot[0] * lr);
  }
};

template <class M>
struct KerasMomentum {
  using V = typename M::V;
  static constexpr int kSlots = 1;
  V lr, momentum;
  bool nesterov;
  WEIR_HD explicit KerasMomentum(const UpdateScalars& s)
      : lr(M::Set(s.at[0])), momentum(M::Set(s.at[1])), nesterov(s.flag) {}
  WEIR_HD void operator()(V g, V& var, V* slot) const {
    slot[0] = slot[0] * momentum - g * lr;
    var = var + (nesterov ? slot[0] * momentum - g * lr : slot[0]);
  }
};

// at: beta1_power, beta2_power, lr, beta1, beta2, epsilon. kSlots 3: AMSGrad's maximum of v is
// last.
template <class M, int kNumSlots>
struct AdamRule {
  using V = typename M::V;
  static constexpr int kSlots = kNumSlots;
  V alpha, beta1, rest1, rest2, epsilon;
  bool nesterov;
  WEIR_HD explicit AdamRule(const UpdateScalars& s)
      : alpha(M::Set(s.at[2] * std::sqrt(1 - s.at[1]) / (1 - s.at[0]))),
        beta1(M::Set(s.at[3])),
        rest1(M::Set(1 - s.at[3])),
        rest2(M::Set(1 - s.at[4])),
        epsilon(M::Set(s.at[5])),
        nesterov(s.flag) {}
  WEIR_HD void operator()(V g, V& var, V* slot) const {
    slot[0] = slot[0] + (g - slot[0]) * rest1;
    slot[1] = slot[1] + (g * g - slot[1]) * rest2;
    const V m = nesterov ? slot[0] * beta1 + g * rest1 : slot[0];
    if constexpr (kSlots == 3) slot[2] = M::Max(slot[2], slot[1]);
    var = var - m * alpha / (M::Sqrt(slot[kSlots - 1]) + epsilon);
  }
};
template <class M>
using Adam = AdamRule<M, 2>;
template <class M>
using AdamWithAmsgrad = AdamRule<M, 3>;

// at: beta1_power, lr, beta1, beta2, epsilon.
template <class M>
struct AdaMax {
  using V = typename M::V;
  static constexpr int kSlots = 2;
  V alpha, rest1, beta2, epsilon;
  WEIR_HD explicit AdaMax(const UpdateScalars& s)
      : alpha(M::Set(s.at[1] / (1 - s.at[0]))),
        rest1(M::Set(1 - s.at[2])),
        beta2(M::Set(s.at[3])),
        epsilon(M::Set(s.at[4])) {}
  WEIR_HD void operator()(V g, V& var, V* slot) const {
    slot[0] = slot[0] + (g - slot[0]) * rest1;
    slot[1] = M::Max(beta2 * slot[1], M::Abs(g));
    var = var - alpha * slot[0] / (slot[1] + epsilon);
  }
};

// at: lr, rho, momentum, epsilon. Slots: (mg,) ms, mom.
template <class M, bool kCentered>
struct RmsRule {
  using V = typename M::V;
  static constexpr int kSlots = kCentered ? 3 : 2;
  V lr, rest, momentum, epsilon;
  WEIR_HD explicit RmsRule(const UpdateScalars& s)
      : lr(M::Set(s.at[0])),
        rest(M::Set(1 - s.at[1])),
        momentum(M::Set(s.at[2])),
        epsilon(M::Set(s.at[3])) {}
  WEIR_HD void operator()(V g, V& var, V* slot) const {
    V& ms = slot[kSlots - 2];
    V& mom = slot[kSlots - 1];
    ms = ms + (g * g - ms) * rest;
    V variance = ms;
    if constexpr (kCentered) {
      slot[0] = slot[0] + (g - slot[0]) * rest;
      variance = ms - slot[0] * slot[0];
    }
    mom = mom * momentum + g * lr / M::Sqrt(variance + epsilon);
    var = var - mom;
  }
};
template <class M>
using RMSProp = RmsRule<M, false>;
template <class M>
using CenteredRMSProp = RmsRule<M, true>;

// at: lr, alpha, sign_decay, beta.
template <class M>
struct AddSign {
  using V = typename M::V;
  static constexpr int kSlots = 1;
  V lr, alpha, sign_decay, beta, rest;
  WEIR_HD explicit AddSign(const UpdateScalars& s)
      : lr(M::Set(s.at[0])),
        alpha(M::Set(s.at[1])),
        sign_decay(M::Set(s.at[2])),
        beta(M::Set(s.at[3])),
        rest(M::Set(1 - s.at[3])) {}
  WEIR_HD void operator()(V g, V& var, V* slot) const {
    slot[0] = slot[0] * beta + g * rest;
    const V agreement = M::WithSign(M::WithSign(sign_decay, g), slot[0]);
    var = var - lr * (alpha + agreement) * g;
  }
};

// at: lr, logbase, sign_decay, beta. The factor exp(logbase * sign_decay * agreement) has three
// possible values.
template <class M>
struct PowerSign {
  using V = typename M::V;
  static constexpr int kSlots = 1;
  V lr, agreeing, disagreeing, beta, rest;
  WEIR_HD explicit PowerSign(const UpdateScalars& s)
      : lr(M::Set(s.at[0])),
        agreeing(M::Set(std::exp(s.at[1] * s.at[2]))),
        disagreeing(M::Set(std::exp(-s.at[1] * s.at[2]))),
        beta(M::Set(s.at[3])),
        rest(M::Set(1 - s.at[3])) {}
  WEIR_HD void operator()(V g, V& var, V* slot) const {
    slot[0] = slot[0] * beta + g * rest;
    const V one = M::Set(1);
    const V agrees = M::WithSign(M::WithSign(one, g), slot[0]);
    const V scale = M::BySign(agrees, agreeing, disagreeing, one + agrees);
    var = var - lr * scale * g;
  }
};

// Calls visit.template operator()<Rule>(name) for each rule, with its name in UpdateRules().
template <class Visit>
void ForEachRule(Visit visit) {
  visit.template operator()<GradientDescent>("GradientDescent");
  visit.template operator()<ProximalGradientDescent>("ProximalGradientDescent");
  visit.template operator()<Adadelta>("Adadelta");
  visit.template operator()<Adagrad>("Adagrad");
  visit.template operator()<AdagradV2>("AdagradV2");
  visit.template operator()<AdagradDA>("AdagradDA");
  visit.template operator()<ProximalAdagrad>("ProximalAdagrad");
  visit.template operator()<Ftrl>("Ftrl");
  visit.template operator()<FtrlV2>("FtrlV2");
  visit.template operator()<Momentum>("Momentum");
  visit.template operator()<KerasMomentum>("KerasMomentum");
  visit.template operator()<Adam>("Adam");
  visit.template operator()<AdamWithAmsgrad>("AdamWithAmsgrad");
  visit.template operator()<AdaMax>("AdaMax");
  visit.template operator()<RMSProp>("RMSProp");
  visit.template operator()<CenteredRMSProp>("CenteredRMSProp");
  visit.template operator()<AddSign>("AddSign");
  visit.template operator()<PowerSign>("PowerSign");
}
