#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/linalg/matmul.h"
#include "weir/kernels/nn/rnn.h"

// Gated recurrent units. Source: Cho et al., "Learning phrase representations using RNN
// encoder-decoder for statistical machine translation", 2014.
//
//   [r u] = sigmoid([x h'] w_ru + b_ru)     c = tanh([x  r h'] w_c + b_c)     h = u h' + (1 - u) c
// and the gradients, where a bar marks the argument of sigmoid or tanh:
//   dc_bar = (1 - u)(1 - c^2) dh            du_bar = u (1 - u)(h' - c) dh
//   [dx_2 d(rh')] = dc_bar w_c^T            dr_bar = r (1 - r) h' d(rh')
//   [dx_1 dh'_1] = [dr_bar du_bar] w_ru^T   dx = dx_1 + dx_2     dh' = dh'_1 + r d(rh') + u dh
namespace weir {

namespace {

// The validated inputs that both ops begin with.
struct GruArguments {
  int64_t batch = 0, input = 0, width = 0;
  const float *x = nullptr, *h_prev = nullptr, *w_ru = nullptr, *w_c = nullptr, *b_ru = nullptr,
              *b_c = nullptr;
  int64_t joined() const { return input + width; }
  int64_t plane() const { return batch * width; }
};

absl::StatusOr<GruArguments> ReadArguments(const KernelContext& c) {
  GruArguments a;
  const Tensor &x = c.input(0), &h_prev = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckRank(x, 2, "x"));
  WEIR_RETURN_IF_ERROR(CheckRank(h_prev, 2, "h_prev"));
  a.batch = x.dim(0);
  a.input = x.dim(1);
  a.width = h_prev.dim(1);
  const int64_t n = a.width;
  const struct {
    const char* name;
    Shape shape;
    const float** data;
  } rest[] = {{"h_prev", Shape({a.batch, n}), &a.h_prev},
              {"w_ru", Shape({a.joined(), 2 * n}), &a.w_ru},
              {"w_c", Shape({a.joined(), n}), &a.w_c},
              {"b_ru", Shape({2 * n}), &a.b_ru},
              {"b_c", Shape({n}), &a.b_c}};
  a.x = x.data<float>();
  for (int k = 0; k < 5; ++k) {
    WEIR_RETURN_IF_ERROR(CheckShape(c.input(1 + k), rest[k].shape, rest[k].name));
    *rest[k].data = c.input_data<float>(1 + k);
  }
  return a;
}

absl::Status MatMul(KernelContext& c, const MatMulArgs& args, const float* a, const float* b,
                    float* out) {
  return RunMatMul(c.pool(), DT_FLOAT, args, a, b, out);
}

// Calls fn(row, column, position) for every element of the cell's matrices.
template <class F>
void ForEachElement(KernelContext& c, const GruArguments& a, double cost, const F& fn) {
  c.pool().ParallelFor(a.batch, cost * a.width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t j = 0; j < a.width; ++j) fn(row, j, row * a.width + j);
    }
  });
}

absl::Status RunCell(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const GruArguments a, ReadArguments(c));
  float* out[4];
  for (int k = 0; k < 4; ++k) {
    WEIR_ASSIGN_OR_RETURN(Tensor * t, c.AllocateOutput(k, Shape({a.batch, a.width})));
    out[k] = t->data<float>();
  }
  float *const r = out[0], *const u = out[1], *const candidate = out[2], *const h = out[3];
  WEIR_ASSIGN_OR_RETURN(Tensor joined, c.AllocateTemp(DT_FLOAT, Shape({a.batch, a.joined()})));
  WEIR_ASSIGN_OR_RETURN(Tensor gates, c.AllocateTemp(DT_FLOAT, Shape({a.batch, 2 * a.width})));
  float* const xh = joined.data<float>();
  const float* const ru = gates.data<float>();
  JoinColumns(a.batch, a.x, a.input, a.h_prev, a.width, xh);
  WEIR_RETURN_IF_ERROR(MatMul(c, {.m = a.batch, .n = 2 * a.width, .k = a.joined()}, xh, a.w_ru,
                              gates.data<float>()));
  ForEachElement(c, a, 30, [&](int64_t row, int64_t j, int64_t at) {
    r[at] = Sigmoid(ru[row * 2 * a.width + j] + a.b_ru[j]);
    u[at] = Sigmoid(ru[row * 2 * a.width + a.width + j] + a.b_ru[a.width + j]);
    xh[row * a.joined() + a.input + j] = a.h_prev[at] * r[at];
  });
  WEIR_RETURN_IF_ERROR(
      MatMul(c, {.m = a.batch, .n = a.width, .k = a.joined()}, xh, a.w_c, candidate));
  ForEachElement(c, a, 20, [&](int64_t, int64_t j, int64_t at) {
    candidate[at] = std::tanh(candidate[at] + a.b_c[j]);
    h[at] = u[at] * (a.h_prev[at] - candidate[at]) + candidate[at];
  });
  return absl::OkStatus();
}

absl::Status RunCellGrad(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const GruArguments a, ReadArguments(c));
  const Shape state({a.batch, a.width});
  const char* const names[] = {"r", "u", "c", "d_h"};
  const float* in[4];
  for (int k = 0; k < 4; ++k) {
    WEIR_RETURN_IF_ERROR(CheckShape(c.input(6 + k), state, names[k]));
    in[k] = c.input_data<float>(6 + k);
  }
  const float *const r = in[0], *const u = in[1], *const candidate = in[2], *const d_h = in[3];
  const Shape shapes[] = {Shape({a.batch, a.input}), state, state, Shape({a.batch, 2 * a.width})};
  float* out[4];
  for (int k = 0; k < 4; ++k) {
    WEIR_ASSIGN_OR_RETURN(Tensor * t, c.AllocateOutput(k, shapes[k]));
    out[k] = t->data<float>();
  }
  float *const d_x = out[0], *const d_h_prev = out[1], *const d_c_bar = out[2],
               *const d_ru = out[3];
  ForEachElement(c, a, 3, [&](int64_t, int64_t, int64_t at) {
    d_c_bar[at] = d_h[at] * (1 - u[at]) * (1 - candidate[at] * candidate[at]);
  });
  const Shape joined({a.batch, a.joined()});
  WEIR_ASSIGN_OR_RETURN(Tensor from_c, c.AllocateTemp(DT_FLOAT, joined));
  WEIR_ASSIGN_OR_RETURN(Tensor from_ru, c.AllocateTemp(DT_FLOAT, joined));
  float *const xh_2 = from_c.data<float>(), *const xh_1 = from_ru.data<float>();
  WEIR_RETURN_IF_ERROR(MatMul(c, {.m = a.batch, .n = a.joined(), .k = a.width, .transpose_b = true},
                              d_c_bar, a.w_c, xh_2));
  ForEachElement(c, a, 5, [&](int64_t row, int64_t j, int64_t at) {
    const float d_hr = xh_2[row * a.joined() + a.input + j];
    d_ru[row * 2 * a.width + j] = d_hr * a.h_prev[at] * r[at] * (1 - r[at]);
    d_ru[row * 2 * a.width + a.width + j] =
        d_h[at] * (a.h_prev[at] - candidate[at]) * u[at] * (1 - u[at]);
  });
  WEIR_RETURN_IF_ERROR(
      MatMul(c, {.m = a.batch, .n = a.joined(), .k = 2 * a.width, .transpose_b = true}, d_ru,
             a.w_ru, xh_1));
  for (int64_t row = 0; row < a.batch; ++row) {
    for (int64_t j = 0; j < a.input; ++j) {
      const int64_t at = row * a.joined() + j;
      d_x[row * a.input + j] = xh_1[at] + xh_2[at];
    }
  }
  ForEachElement(c, a, 3, [&](int64_t row, int64_t j, int64_t at) {
    const int64_t right = row * a.joined() + a.input + j;
    d_h_prev[at] = xh_1[right] + xh_2[right] * r[at] + d_h[at] * u[at];
  });
  return absl::OkStatus();
}

}  // namespace

void AddGruCpu(KernelRegistry* r) {
  r->Add("GRUBlockCell", kCpu, DT_FLOAT, RunCell);
  r->Add("GRUBlockCellGrad", kCpu, DT_FLOAT, RunCellGrad);
}

}  // namespace weir
