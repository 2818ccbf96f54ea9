#include "weir/kernels/nn/rnn.h"

#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/linalg/matmul.h"

// Long short-term memory. Sources: Hochreiter and Schmidhuber, "Long short-term memory", 1997; Gers
// et al., "Learning to forget", 2000 (the forget gate); Gers and Schmidhuber, "Recurrent nets that
// time and count", 2000 (peepholes).
//
// One step of a cell computes its state s and its output h from the input x and from the previous
// state s' and output h'. The columns of w and b are four blocks, one per gate:
//   [i g f o] = [x h'] w + b                       (V2: [i f g o])
//   i = sigmoid(i + p_i s')    f = sigmoid(f + forget_bias + p_f s')    g = tanh(g)
//   s = clip(i g + f s')       o = sigmoid(o + p_o s)                   h = o tanh(s)
// The peepholes p are optional. All values are kept for the backward pass. For each time step it
// first adds the gradients of s and h that come from the next step, and then computes
//   do = o (1 - o) tanh(s) dh         ds += (1 - tanh(s)^2) o dh + p_o do
//   di = i (1 - i) g ds    df = f (1 - f) s' ds    dg = (1 - g^2) i ds    ds' = f ds + p_i di + p_f
//   df [dx dh'] = [di dg df do] w^T
// The gradient of w is one matrix product over all steps; that of b sums the gates' gradients.
namespace weir {

namespace {

// The block of columns of each gate.
struct GateOrder {
  int input = 0, candidate = 1, forget = 2, output = 3;
};
constexpr GateOrder kForgetThird, kForgetSecond = {.candidate = 2, .forget = 1};

struct LstmOptions {
  float forget_bias = 0;
  float cell_clip = 0;  // no clipping if not positive
  bool peephole = false;
  bool sequence = false;  // x has a leading time dimension, and input 0 is the number of steps
  GateOrder order;
};

// The checked arguments that forward and backward ops share. `first` is the index of x.
template <class T>
struct LstmArguments {
  int first = 0;
  int64_t steps = 1, length = 1, batch = 0, input = 0, width = 0;
  const T *x = nullptr, *cs_prev = nullptr, *h_prev = nullptr, *w = nullptr, *wci = nullptr,
          *wcf = nullptr, *wco = nullptr, *b = nullptr;
  int64_t plane() const { return batch * width; }
  // The shape of a result that has a value per step.
  Shape StateShape(bool sequence) const {
    return sequence ? Shape({length, batch, width}) : Shape({batch, width});
  }
};

template <class T>
absl::StatusOr<LstmArguments<T>> ReadArguments(const KernelContext& c, const LstmOptions& o) {
  LstmArguments<T> a;
  a.first = o.sequence ? 1 : 0;
  const Tensor &x = c.input(a.first), &cs_prev = c.input(a.first + 1);
  WEIR_RETURN_IF_ERROR(CheckRank(x, o.sequence ? 3 : 2, "x"));
  WEIR_RETURN_IF_ERROR(CheckRank(cs_prev, 2, "cs_prev"));
  a.batch = x.dim(-2);
  a.input = x.dim(-1);
  a.width = cs_prev.dim(1);
  if (o.sequence) {
    a.length = x.dim(0);
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(0), 0, "seq_len_max"));
    a.steps = c.input(0).scalar<int64_t>();
    if (a.steps < 0 || a.steps > a.length) {
      return InvalidArgument("seq_len_max must be in [0, ", a.length,
                             "], where the upper bound is the number of steps of x, got ", a.steps);
    }
  }
  const Shape state({a.batch, a.width}), gate({a.width});
  WEIR_RETURN_IF_ERROR(CheckShape(cs_prev, state, "cs_prev"));
  WEIR_RETURN_IF_ERROR(CheckShape(c.input(a.first + 2), state, "h_prev"));
  WEIR_RETURN_IF_ERROR(
      CheckShape(c.input(a.first + 3), Shape({a.input + a.width, 4 * a.width}), "w"));
  const char* const peepholes[] = {"wci", "wcf", "wco"};
  for (int k = 0; k < 3; ++k) {
    const Tensor& peephole = c.input(a.first + 4 + k);
    if (!o.peephole && !o.sequence) {  // a single cell does not check unused arguments
      if (peephole.rank() == 1) continue;
      return InvalidArgument(peepholes[k], "_tensor must be rank 1 but is rank ", peephole.rank(),
                             ".");
    }
    WEIR_RETURN_IF_ERROR(CheckShape(peephole, gate, peepholes[k]));
  }
  WEIR_RETURN_IF_ERROR(CheckShape(c.input(a.first + 7), Shape({4 * a.width}), "b"));
  const T** const pointers[] = {&a.x, &a.cs_prev, &a.h_prev, &a.w, &a.wci, &a.wcf, &a.wco, &a.b};
  for (int k = 0; k < 8; ++k) *pointers[k] = c.input_data<T>(a.first + k);
  return a;
}

// The results of a step, in the order of the forward ops' outputs.
enum State { kInput, kCell, kForget, kOutput, kCandidate, kCellTanh, kHidden, kNumStates };

// Computes the states of one step from its gates before activation.
template <class T>
void Forward(ThreadPool& pool, const LstmArguments<T>& a, const LstmOptions& o, const T* gates,
             const T* cs_prev, T* const out[kNumStates]) {
  constexpr double kCost = 60;  // nanoseconds per element
  pool.ParallelFor(a.batch, kCost * a.width, [&](int64_t begin, int64_t end) {
    const auto gate = [&](int64_t row, int block, int64_t j) {
      const int64_t column = block * a.width + j;
      return static_cast<float>(gates[row * 4 * a.width + column]) +
             static_cast<float>(a.b[column]);
    };
    const auto peep = [&](const T* weights, int64_t j, float state) {
      return o.peephole ? static_cast<float>(weights[j]) * state : 0.0f;
    };
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t j = 0; j < a.width; ++j) {
        const int64_t at = row * a.width + j;
        const float before = cs_prev[at];
        const float i = Sigmoid(gate(row, o.order.input, j) + peep(a.wci, j, before));
        const float g = std::tanh(gate(row, o.order.candidate, j));
        const float f =
            Sigmoid(gate(row, o.order.forget, j) + o.forget_bias + peep(a.wcf, j, before));
        float s = i * g + f * before;
        if (o.cell_clip > 0) s = std::clamp(s, -o.cell_clip, o.cell_clip);
        const float tanh_s = std::tanh(s);
        const float out_gate = Sigmoid(gate(row, o.order.output, j) + peep(a.wco, j, s));
        out[kInput][at] = T(i);
        out[kCell][at] = T(s);
        out[kForget][at] = T(f);
        out[kOutput][at] = T(out_gate);
        out[kCandidate][at] = T(g);
        out[kCellTanh][at] = T(tanh_s);
        out[kHidden][at] = T(out_gate * tanh_s);
      }
    }
  });
}

template <class T>
absl::Status RunLstm(KernelContext& c, const LstmOptions& o) {
  WEIR_ASSIGN_OR_RETURN(const LstmArguments<T> a, ReadArguments<T>(c, o));
  if (!o.sequence && a.batch * a.width == 0) {
    return InvalidArgument("cs_prev_tensor is empty, has shape: ",
                           Shape({a.batch, a.width}).ToString());
  }
  T* out[kNumStates];
  for (int k = 0; k < kNumStates; ++k) {
    WEIR_ASSIGN_OR_RETURN(Tensor * t, c.AllocateOutput(k, a.StateShape(o.sequence)));
    out[k] = t->template data<T>();
    std::fill(out[k] + a.steps * a.plane(), out[k] + a.length * a.plane(), T(0.0f));
  }
  constexpr DataType kType = DataTypeOf<T>::value;
  const int64_t joined = a.input + a.width;
  WEIR_ASSIGN_OR_RETURN(Tensor xh, c.AllocateTemp(kType, Shape({a.batch, joined})));
  WEIR_ASSIGN_OR_RETURN(Tensor gates, c.AllocateTemp(kType, Shape({a.batch, 4 * a.width})));
  for (int64_t t = 0; t < a.steps; ++t) {
    const T* cs_prev = t == 0 ? a.cs_prev : out[kCell] + (t - 1) * a.plane();
    const T* h_prev = t == 0 ? a.h_prev : out[kHidden] + (t - 1) * a.plane();
    JoinColumns(a.batch, a.x + t * a.batch * a.input, a.input, h_prev, a.width, xh.data<T>());
    WEIR_RETURN_IF_ERROR(RunMatMul(c.pool(), kType, {.m = a.batch, .n = 4 * a.width, .k = joined},
                                   xh.raw(), a.w, gates.raw()));
    T* now[kNumStates];
    for (int k = 0; k < kNumStates; ++k) now[k] = out[k] + t * a.plane();
    Forward(c.pool(), a, o, gates.data<T>(), cs_prev, now);
  }
  return absl::OkStatus();
}

// Reads the states that a backward op takes, from input `first` on.
template <class T>
absl::Status ReadStates(const KernelContext& c, int first, int count, const Shape& shape,
                        const T** states) {
  const char* const names[] = {"i", "cs", "f", "o", "ci", "co", "h"};
  for (int k = 0; k < count; ++k) {
    WEIR_RETURN_IF_ERROR(CheckShape(c.input(first + k), shape, names[k]));
    states[k] = c.input_data<T>(first + k);
  }
  return absl::OkStatus();
}

// One backward step: from the gradients of s and h to those of the gates and of s'. The last two
// may share memory with the first two.
template <class T>
void Backward(ThreadPool& pool, const LstmArguments<T>& a, const LstmOptions& o,
              const T* const states[kNumStates], const T* cs_prev, const T* cs_grad,
              const T* h_grad, T* gates_grad, T* cs_prev_grad) {
  constexpr double kCost = 15;
  pool.ParallelFor(a.batch, kCost * a.width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* const gates = gates_grad + row * 4 * a.width;
      for (int64_t j = 0; j < a.width; ++j) {
        const int64_t at = row * a.width + j;
        const auto state = [&](State s) { return static_cast<float>(states[s][at]); };
        const float i = state(kInput), f = state(kForget), out = state(kOutput),
                    g = state(kCandidate), tanh_s = state(kCellTanh), dh = h_grad[at];
        const float d_out = out * (1 - out) * dh * tanh_s;
        float ds = (1 - tanh_s * tanh_s) * dh * out + static_cast<float>(cs_grad[at]);
        if (o.peephole) ds += d_out * static_cast<float>(a.wco[j]);
        const float dg = (1 - g * g) * ds * i;
        const float df = f * (1 - f) * ds * static_cast<float>(cs_prev[at]);
        const float di = i * (1 - i) * ds * g;
        gates[o.order.input * a.width + j] = T(di);
        gates[o.order.candidate * a.width + j] = T(dg);
        gates[o.order.forget * a.width + j] = T(df);
        gates[o.order.output * a.width + j] = T(d_out);
        float before = ds * f;
        if (o.peephole)
          before += di * static_cast<float>(a.wci[j]) + df * static_cast<float>(a.wcf[j]);
        cs_prev_grad[at] = T(before);
      }
    }
  });
}

// Sums over `rows` rows the gradients of a gate times a state: the gradient of a peephole. Without
// a state it is the gradient of a bias.
template <class T>
void SumRows(int64_t rows, const T* gates_grad, int64_t stride, const T* state, int64_t width,
             float* sums) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t j = 0; j < width; ++j) {
      const float d = gates_grad[row * stride + j];
      sums[j] += state == nullptr ? d : d * static_cast<float>(state[row * width + j]);
    }
  }
}

// Writes outputs `first` to `first` + 2: the gradients of the peepholes, from all steps' gates.
template <class T>
absl::Status WritePeepholeGradients(KernelContext& c, int first, const LstmArguments<T>& a,
                                    const LstmOptions& o, const T* gates_grad, const T* cs) {
  const int blocks[] = {o.order.input, o.order.forget, o.order.output};
  for (int k = 0; k < 3; ++k) {
    WEIR_ASSIGN_OR_RETURN(Tensor * out,
                          c.AllocateOutput(first + k, c.input(a.first + 4 + k).shape()));
    T* const result = out->template data<T>();
    std::fill_n(result, out->num_elements(), T(0.0f));
    if (!o.peephole) continue;
    std::vector<float> sums(a.width);
    for (int64_t t = 0; t < a.steps; ++t) {
      const T* const before = t == 0 ? a.cs_prev : cs + (t - 1) * a.plane();
      SumRows(a.batch, gates_grad + t * 4 * a.plane() + blocks[k] * a.width, 4 * a.width,
              k == 2 ? cs + t * a.plane() : before, a.width, sums.data());
    }
    for (int64_t j = 0; j < a.width; ++j) result[j] = T(sums[j]);
  }
  return absl::OkStatus();
}

template <class T>
absl::Status RunCellGrad(KernelContext& c, const LstmOptions& o) {
  WEIR_ASSIGN_OR_RETURN(const LstmArguments<T> a, ReadArguments<T>(c, o));
  const Shape state({a.batch, a.width});
  const T* states[kNumStates] = {};
  WEIR_RETURN_IF_ERROR(ReadStates(c, 8, kHidden, state, states));
  WEIR_RETURN_IF_ERROR(CheckShape(c.input(14), state, "cs_grad"));
  WEIR_RETURN_IF_ERROR(CheckShape(c.input(15), state, "h_grad"));
  WEIR_ASSIGN_OR_RETURN(Tensor * before, c.AllocateOutput(0, state));
  WEIR_ASSIGN_OR_RETURN(Tensor * gates, c.AllocateOutput(1, Shape({a.batch, 4 * a.width})));
  Backward(c.pool(), a, o, states, a.cs_prev, c.input_data<T>(14), c.input_data<T>(15),
           gates->template data<T>(), before->template data<T>());
  return WritePeepholeGradients(c, 2, a, o, gates->template data<T>(), states[kCell]);
}

template <class T>
void AddTo(int64_t n, const T* x, T* sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] = T(static_cast<float>(sum[i]) + static_cast<float>(x[i]));
}

// The outputs of BlockLSTMGrad that the loop over steps writes.
template <class T>
struct SequenceGradients {
  T *x, *cs_prev, *h_prev;  // the last two carry the gradients from step to step
};

// Runs all steps, the last one first. Writes the gradients of all gates to `gates_grad`.
template <class T>
absl::Status BackThroughTime(KernelContext& c, const LstmArguments<T>& a, const LstmOptions& o,
                             const T* const states[kNumStates], T* gates_grad,
                             const SequenceGradients<T>& out) {
  constexpr DataType kType = DataTypeOf<T>::value;
  const int64_t joined = a.input + a.width;
  WEIR_ASSIGN_OR_RETURN(Tensor xh_grad, c.AllocateTemp(kType, Shape({a.batch, joined})));
  const T *cs_grad = c.input_data<T>(16), *h_grad = c.input_data<T>(17);
  for (int64_t t = a.steps - 1; t >= 0; --t) {
    const int64_t at = t * a.plane();
    AddTo(a.plane(), cs_grad + at, out.cs_prev);
    AddTo(a.plane(), h_grad + at, out.h_prev);
    const T* now[kNumStates];
    for (int k = 0; k < kNumStates; ++k) now[k] = states[k] + at;
    T* const gates = gates_grad + 4 * at;
    Backward(c.pool(), a, o, now, t == 0 ? a.cs_prev : states[kCell] + at - a.plane(), out.cs_prev,
             out.h_prev, gates, out.cs_prev);
    WEIR_RETURN_IF_ERROR(RunMatMul(
        c.pool(), kType, {.m = a.batch, .n = joined, .k = 4 * a.width, .transpose_b = true}, gates,
        a.w, xh_grad.raw()));
    for (int64_t row = 0; row < a.batch; ++row) {
      const T* const both = xh_grad.data<T>() + row * joined;
      std::copy_n(both, a.input, out.x + (t * a.batch + row) * a.input);
      std::copy_n(both + a.input, a.width, out.h_prev + row * a.width);
    }
  }
  return absl::OkStatus();
}

// Computes outputs 3 and 7: the gradients of w and b.
template <class T>
absl::Status WriteWeightGradients(KernelContext& c, const LstmArguments<T>& a, const T* h,
                                  const T* gates_grad) {
  constexpr DataType kType = DataTypeOf<T>::value;
  const int64_t joined = a.input + a.width, rows = a.steps * a.batch;
  WEIR_ASSIGN_OR_RETURN(Tensor xh, c.AllocateTemp(kType, Shape({rows, joined})));
  for (int64_t t = 0; t < a.steps; ++t) {
    JoinColumns(a.batch, a.x + t * a.batch * a.input, a.input,
                t == 0 ? a.h_prev : h + (t - 1) * a.plane(), a.width,
                xh.data<T>() + t * a.batch * joined);
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * w_grad, c.AllocateOutput(3, Shape({joined, 4 * a.width})));
  WEIR_RETURN_IF_ERROR(RunMatMul(c.pool(), kType,
                                 {.m = joined, .n = 4 * a.width, .k = rows, .transpose_a = true},
                                 xh.raw(), gates_grad, w_grad->raw()));
  WEIR_ASSIGN_OR_RETURN(Tensor * b_grad, c.AllocateOutput(7, Shape({4 * a.width})));
  std::vector<float> sums(4 * a.width);
  SumRows<T>(rows, gates_grad, 4 * a.width, nullptr, 4 * a.width, sums.data());
  for (int64_t j = 0; j < 4 * a.width; ++j) b_grad->template data<T>()[j] = T(sums[j]);
  return absl::OkStatus();
}

template <class T>
absl::Status RunSequenceGrad(KernelContext& c, const LstmOptions& o) {
  WEIR_ASSIGN_OR_RETURN(const LstmArguments<T> a, ReadArguments<T>(c, o));
  const Shape all = a.StateShape(true);
  const T* states[kNumStates];
  WEIR_RETURN_IF_ERROR(ReadStates(c, 9, kNumStates, all, states));
  WEIR_RETURN_IF_ERROR(CheckShape(c.input(16), all, "cs_grad"));
  WEIR_RETURN_IF_ERROR(CheckShape(c.input(17), all, "h_grad"));
  SequenceGradients<T> out;
  T** const pointers[] = {&out.x, &out.cs_prev, &out.h_prev};
  for (int k = 0; k < 3; ++k) {
    WEIR_ASSIGN_OR_RETURN(Tensor * t, c.AllocateOutput(k, c.input(1 + k).shape()));
    *pointers[k] = t->template data<T>();
    std::fill_n(*pointers[k], t->num_elements(), T(0.0f));
  }
  WEIR_ASSIGN_OR_RETURN(
      Tensor gates, c.AllocateTemp(DataTypeOf<T>::value, Shape({a.steps, a.batch, 4 * a.width})));
  T* const gates_grad = gates.data<T>();
  WEIR_RETURN_IF_ERROR(BackThroughTime(c, a, o, states, gates_grad, out));
  WEIR_RETURN_IF_ERROR(WriteWeightGradients(c, a, states[kHidden], gates_grad));
  return WritePeepholeGradients(c, 4, a, o, gates_grad, states[kCell]);
}

using Run = absl::Status (*)(KernelContext&, const LstmOptions&);

KernelFactory Factory(Run run, bool sequence, GateOrder order) {
  return [=](const KernelInit& init) -> absl::StatusOr<Kernel> {
    LstmOptions o;
    o.forget_bias = init.node.attr_or<float>("forget_bias", 0);
    o.cell_clip = init.node.attr_or<float>("cell_clip", 0);
    o.peephole = init.attr<bool>("use_peephole");
    o.sequence = sequence;
    o.order = order;
    return Kernel([run, o](KernelContext& c) { return run(c, o); });
  };
}

template <class T>
void AddLstm(KernelRegistry* r) {
  const DataType type = DataTypeOf<T>::value;
  const auto add = [&](const char* op, Run run, bool sequence, GateOrder order) {
    KernelDef& def = r->Add(op, kCpu, type, Factory(run, sequence, order));
    if (sequence) def.HostArgs({"seq_len_max"});
  };
  add("LSTMBlockCell", RunLstm<T>, false, kForgetThird);
  add("LSTMBlockCellGrad", RunCellGrad<T>, false, kForgetThird);
  add("BlockLSTM", RunLstm<T>, true, kForgetThird);
  add("BlockLSTMV2", RunLstm<T>, true, kForgetSecond);
  add("BlockLSTMGrad", RunSequenceGrad<T>, true, kForgetThird);
  add("BlockLSTMGradV2", RunSequenceGrad<T>, true, kForgetSecond);
}

}  // namespace

void AddRnnCpu(KernelRegistry* r) {
  AddLstm<half>(r);
  AddLstm<float>(r);
  AddGruCpu(r);
}

}  // namespace weir
