#include "weir/ops/nn/rnn.h"
#include "weir/ops/lib/ranked_internal.h"

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

LstmStates StatesOf(Node* node) {
  const Outputs r = AllOutputs(node, 7);
  return {r[0], r[1], r[2], r[3], r[4], r[5], r[6]};
}

Attrs LstmAttrs(const LstmBlockOptions& o) {
  return {
      {"forget_bias", o.forget_bias}, {"cell_clip", o.cell_clip}, {"use_peephole", o.use_peephole}};
}

// ---- shape functions

absl::Status CellShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape x, c.WithRank(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape state, c.WithRank(1, 2));
  c.set_all_outputs(Shape({x.dim(0), state.dim(1)}));
  return absl::OkStatus();
}

absl::Status LstmCellGradShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape x, c.WithRank(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape state, c.WithRank(1, 2));
  WEIR_ASSIGN_OR_RETURN(const int64_t gates, MulDims(state.dim(1), 4));
  c.set_output(0, Shape({x.dim(0), state.dim(1)}));
  c.set_output(1, Shape({x.dim(0), gates}));
  for (int i = 2; i < 5; ++i) c.set_output(i, c.input(i + 2));
  return absl::OkStatus();
}

absl::Status SequenceShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape x, c.WithRank(1, 3));
  WEIR_ASSIGN_OR_RETURN(const Shape b, c.WithRank(8, 1));
  const int64_t width = b.dim(0) < 0 ? Shape::kUnknown : b.dim(0) / 4;
  c.set_all_outputs(Shape({x.dim(0), x.dim(1), width}));
  return absl::OkStatus();
}

// Each gradient has the shape of the corresponding input, except that the first input (a length)
// has none.
absl::Status SequenceGradShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i + 1));
  return absl::OkStatus();
}

absl::Status GruCellGradShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape x, c.WithRank(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape state, c.WithRank(1, 2));
  WEIR_ASSIGN_OR_RETURN(const int64_t gates, MulDims(state.dim(1), 2));
  c.set_output(0, x);
  c.set_output(1, Shape({x.dim(0), state.dim(1)}));
  c.set_output(2, Shape({x.dim(0), state.dim(1)}));
  c.set_output(3, Shape({x.dim(0), gates}));
  return absl::OkStatus();
}

// ---- gradients

// Both versions use BlockLSTMGrad, as in TensorFlow.
Grads SequenceGradient(GradContext& g) {
  std::vector<Arg> args;
  for (int i = 0; i < 9; ++i) args.emplace_back(g.x(i));
  for (int i = 0; i < 7; ++i) args.emplace_back(g.y(i));
  args.emplace_back(g.dy(1));
  args.emplace_back(g.dy(6));
  Node* grad = AddNode("BlockLSTMGrad", args, {{"use_peephole", g.attr<bool>("use_peephole")}});
  Grads grads = {Grad()};
  for (const Output& y : AllOutputs(grad, 8)) grads.emplace_back(y);
  return grads;
}

constexpr char kTypes[] = "T: {half, float}";
constexpr char kCellInputs[] = "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T";
constexpr char kStates[] = "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T";
constexpr char kSequenceGrads[] =
    "x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, "
    "wco_grad: T, b_grad: T";

void AddSequences(OpRegistry* ops) {
  OpSpec sequence("BlockLSTM"), v2("BlockLSTMV2");
  sequence.In("seq_len_max: int64").In(kCellInputs).Out(kStates).Attr("forget_bias: float = 1");
  sequence.Attr("cell_clip: float = 3").Attr("use_peephole: bool = false").Attr(kTypes);
  ops->Add(sequence.InferShape(SequenceShape)
               .Gradient(SequenceGradient)
               .Doc("Computes an LSTM cell (see LSTMBlockCell) over the first seq_len_max steps of "
                    "x [time, batch, size]."));
  v2.In("seq_len_max: int64").In(kCellInputs).Out(kStates).Attr("cell_clip: float = 0");
  v2.Attr("use_peephole: bool = false").Attr(kTypes);
  ops->Add(v2.InferShape(SequenceShape)
               .Gradient(SequenceGradient)
               .Doc("Computes BlockLSTM without a forget bias, and with the columns of w and b in "
                    "the order input gate, forget gate, candidate, output gate."));
  for (const char* name : {"BlockLSTMGrad", "BlockLSTMGradV2"}) {
    OpSpec grad(name);
    grad.In("seq_len_max: int64").In(kCellInputs).In(kStates).In("cs_grad: T, h_grad: T");
    ops->Add(
        grad.Out(kSequenceGrads)
            .Attr("use_peephole: bool")
            .Attr(kTypes)
            .InferShape(Ranked("x: 3, cs_prev: 2, h_prev: 2, w: 2, wci: 1, wcf: 1, wco: 1, b: 1",
                               SequenceGradShape))
            .Doc("Computes the gradients with respect to all arguments of BlockLSTM (V2: of "
                 "BlockLSTMV2)."));
  }
}

}  // namespace

LstmStates LstmBlockCell(Output x, Output cs_prev, Output h_prev, const LstmWeights& w,
                         const LstmBlockOptions& options, absl::string_view name) {
  return StatesOf(AddNode("LSTMBlockCell", {x, cs_prev, h_prev, w.w, w.wci, w.wcf, w.wco, w.b},
                          LstmAttrs(options), name));
}

LstmStates BlockLstm(Output seq_len_max, Output x, Output cs_prev, Output h_prev,
                     const LstmWeights& w, const LstmBlockOptions& options,
                     absl::string_view name) {
  return StatesOf(AddNode("BlockLSTM",
                          {seq_len_max, x, cs_prev, h_prev, w.w, w.wci, w.wcf, w.wco, w.b},
                          LstmAttrs(options), name));
}

GruStates GruBlockCell(Output x, Output h_prev, Output w_ru, Output w_c, Output b_ru, Output b_c,
                       absl::string_view name) {
  const Outputs r =
      AllOutputs(AddNode("GRUBlockCell", {x, h_prev, w_ru, w_c, b_ru, b_c}, {}, name), 4);
  return {r[0], r[1], r[2], r[3]};
}

void AddRnnOps(OpRegistry* ops) {
  ops->Add(OpSpec("LSTMBlockCell")
               .In(kCellInputs)
               .Out(kStates)
               .Attr("forget_bias: float = 1")
               .Attr("cell_clip: float = 3")
               .Attr("use_peephole: bool = false")
               .Attr(kTypes)
               .InferShape(CellShape)
               .Doc("Computes one step of an LSTM cell: its gates i, f, o, candidate ci, state cs, "
                    "tanh of the state co and output h."));
  ops->Add(OpSpec("LSTMBlockCellGrad")
               .In(kCellInputs)
               .In("i: T, cs: T, f: T, o: T, ci: T, co: T, cs_grad: T, h_grad: T")
               .Out("cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T")
               .Attr("use_peephole: bool")
               .Attr(kTypes)
               .InferShape(LstmCellGradShape)
               .Doc("Computes the gradients with respect to LSTMBlockCell's previous state, gates "
                    "(before their activations) and peepholes."));
  AddSequences(ops);
  ops->Add(OpSpec("GRUBlockCell")
               .In("x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T")
               .Out("r: T, u: T, c: T, h: T")
               .Attr("T: {float}")
               .InferShape(CellShape)
               .Doc("Computes one step of a gated recurrent unit: reset gate r, update gate u, "
                    "candidate c, output h = u h_prev + (1 - u) c."));
  ops->Add(OpSpec("GRUBlockCellGrad")
               .In("x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T, d_h: T")
               .Out("d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T")
               .Attr("T: {float}")
               .InferShape(Ranked("w_ru: 2", GruCellGradShape))
               .Doc("Computes the gradients with respect to GRUBlockCell's input and previous "
                    "output, and its candidate and gates before their activations."));
}

}  // namespace weir
