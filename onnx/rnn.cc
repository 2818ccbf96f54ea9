#include <functional>
#include <utility>

#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/ops/containers/tensor_array.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"

// RNN, GRU and LSTM. For each direction, one product computes what the inputs of all steps
// contribute, and a loop over the steps adds what the state does. The gates lie one behind another
// in the rows of W and R: i, o, f, c of an LSTM, z, r, h of a GRU.
namespace weir::onnx {

namespace {

using Activation = std::function<Output(const Output&)>;

// Returns an activation by its ONNX name; its numbers are those of the operator of that name.
absl::StatusOr<Activation> ActivationOf(const std::string& name, std::optional<float> alpha,
                                        std::optional<float> beta) {
  const auto scale = [](const Output& x, float by) { return Multiply(x, ScalarLike(x, by)); };
  if (name == "Sigmoid") return Activation([](const Output& x) { return Sigmoid(x); });
  if (name == "Tanh") return Activation([](const Output& x) { return Tanh(x); });
  if (name == "Relu") return Activation([](const Output& x) { return Relu(x); });
  if (name == "Softsign") return Activation([](const Output& x) { return Softsign(x); });
  if (name == "Softplus") return Activation([](const Output& x) { return Softplus(x); });
  if (name == "LeakyRelu") {
    return Activation([a = alpha.value_or(0.01f)](const Output& x) { return LeakyRelu(x, a); });
  }
  if (name == "Affine") {
    return Activation([=](const Output& x) {
      return Add(scale(x, alpha.value_or(1)), ScalarLike(x, beta.value_or(0)));
    });
  }
  if (name == "ScaledTanh") {
    return Activation([=](const Output& x) {
      return scale(Tanh(scale(x, beta.value_or(1))), alpha.value_or(1));
    });
  }
  if (name == "HardSigmoid") {
    return Activation([=](const Output& x) {
      const Output line = Add(scale(x, alpha.value_or(0.2f)), ScalarLike(x, beta.value_or(0.5f)));
      return Maximum(ScalarLike(x, 0), Minimum(ScalarLike(x, 1), line));
    });
  }
  return Unimplemented("activation '", name, "' is not supported");
}

// What the attributes say of all directions.
struct RnnOptions {
  int gates = 1, activations_each = 1;
  int64_t hidden = 0;
  std::string direction;
  bool batch_first = false, linear_before_reset = false, input_forget = false;
  float clip = 0;
  std::vector<Activation> activations;  // those of the first direction, then of the second
  int directions() const { return direction == "bidirectional" ? 2 : 1; }
};

// One direction. W, R and B are transposed so that inputs are rows; missing tensors are invalid.
struct Direction {
  Output weights, recurrent, bias, recurrent_bias, peepholes, h, c;
  absl::Span<const Activation> activations;
  bool is_reversed = false;
};

absl::StatusOr<RnnOptions> OptionsOf(NodeContext& c, int gates,
                                     const std::vector<std::string>& defaults) {
  RnnOptions o{.gates = gates, .activations_each = static_cast<int>(defaults.size())};
  o.direction = c.String("direction", "forward");
  if (o.direction != "forward" && o.direction != "reverse" && o.direction != "bidirectional")
    return InvalidArgument("direction is '", o.direction,
                           "'; expected forward, reverse or bidirectional");
  if (c.shape(2).rank() != 3 || c.shape(2).dim(2) < 1)
    return Unimplemented("the shape of R must be known; it is ", c.shape(2).ToString());
  o.hidden = c.Int("hidden_size", c.shape(2).dim(2));
  if (o.hidden != c.shape(2).dim(2))
    return InvalidArgument("hidden_size is ", o.hidden, ", and R has the shape ",
                           c.shape(2).ToString());
  o.batch_first = c.Int("layout", 0) != 0;
  o.clip = c.Float("clip", 0);
  std::vector<std::string> names = c.Strings("activations");
  for (int i = 0;
       names.empty() || static_cast<int>(names.size()) < o.directions() * o.activations_each; ++i) {
    names.push_back(defaults[i % defaults.size()]);
  }
  const std::vector<float> alpha = c.Floats("activation_alpha"), beta = c.Floats("activation_beta");
  const auto at = [](const std::vector<float>& list, size_t i) {
    return i < list.size() ? std::optional<float>(list[i]) : std::nullopt;
  };
  for (size_t i = 0; i < names.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(o.activations.emplace_back(),
                          ActivationOf(names[i], at(alpha, i), at(beta, i)));
  }
  return o;
}

Output Clipped(const Output& x, float clip) {
  if (clip <= 0) return x;
  return Maximum(ScalarLike(x, -clip), Minimum(ScalarLike(x, clip), x));
}

// ---- cells: from the contribution of the input and the old state to the new state

using State = Outputs;  // h, and c of an LSTM
using Cell = State (*)(const RnnOptions& o, const Direction& d, const Output& x, const State& s);

Output Recurrent(const Direction& d, const Output& x, const Output& h) {
  const Output sum = Add(x, MatMul(h, d.recurrent));
  return d.recurrent_bias.valid() ? Add(sum, d.recurrent_bias) : sum;
}

State RnnCell(const RnnOptions& o, const Direction& d, const Output& x, const State& s) {
  return {d.activations[0](Clipped(Recurrent(d, x, s[0]), o.clip))};
}

State LstmCell(const RnnOptions& o, const Direction& d, const Output& x, const State& s) {
  const Activation &f = d.activations[0], &g = d.activations[1], &h = d.activations[2];
  const Outputs gates = Split(Recurrent(d, x, s[0]), 4, 1);
  const Outputs peepholes = d.peepholes.valid() ? Split(d.peepholes, 3, 0) : Outputs();
  if (gates.size() != 4 || (d.peepholes.valid() && peepholes.size() != 3)) return {};
  const auto gate = [&](int i, const Output& state, int peephole) {
    const Output sum =
        peepholes.empty() ? gates[i] : Add(gates[i], Multiply(peepholes[peephole], state));
    return f(Clipped(sum, o.clip));
  };
  const Output input = gate(0, s[1], 0);
  const Output forget = o.input_forget ? Subtract(ScalarLike(input, 1), input) : gate(2, s[1], 2);
  const Output cell = Add(Multiply(forget, s[1]), Multiply(input, g(Clipped(gates[3], o.clip))));
  return {Multiply(gate(1, cell, 1), h(cell)), cell};
}

State GruCell(const RnnOptions& o, const Direction& d, const Output& x, const State& s) {
  const Activation &f = d.activations[0], &g = d.activations[1];
  const Outputs from_x = Split(x, 3, 1), weights = Split(d.recurrent, 3, 1);
  const Outputs biases = d.recurrent_bias.valid() ? Split(d.recurrent_bias, 3, 0) : Outputs();
  if (from_x.size() != 3 || weights.size() != 3 || (!biases.empty() && biases.size() != 3))
    return {};
  const auto recurrent = [&](int i, const Output& h) {
    const Output product = MatMul(h, weights[i]);
    return biases.empty() ? product : Add(product, biases[i]);
  };
  const auto gate = [&](int i) { return f(Clipped(Add(from_x[i], recurrent(i, s[0])), o.clip)); };
  const Output update = gate(0), reset = gate(1);
  const Output hidden = o.linear_before_reset ? Multiply(reset, recurrent(2, s[0]))
                                              : recurrent(2, Multiply(reset, s[0]));
  const Output candidate = g(Clipped(Add(from_x[2], hidden), o.clip));
  const Output kept = Multiply(update, s[0]);
  return {Add(Multiply(Subtract(ScalarLike(update, 1), update), candidate), kept)};
}

// ---- the loop over steps

Output Reversed(const Output& x, const Output& lengths) {
  return lengths.valid() ? ReverseSequence(x, lengths, 0, 1) : Reverse(x, {0});
}

// Runs one direction over x, [steps, batch, inputs]. Returns all h, and the last state.
std::pair<Output, State> RunDirection(const RnnOptions& o, const Direction& d, Cell cell,
                                      const Output& given, const Output& lengths) {
  Graph& graph = given.graph();
  const Output x = d.is_reversed ? Reversed(given, lengths) : given;
  Output products = MatMul(Reshape(x, Stack({Const<int64_t>(graph, -1), DimOf(x, 2)})), d.weights);
  if (d.bias.valid()) products = Add(products, d.bias);
  const Output steps = DimOf(x, 0), width = Const<int64_t>(graph, o.gates * o.hidden);
  const Output by_step = Reshape(products, Stack({steps, DimOf(x, 1), width}));
  const Output count = Cast(steps, DT_INT32);
  const TensorArray inputs = TensorArray(graph, x.dtype(), count).Unstack(by_step);
  const TensorArray outputs(graph, x.dtype(), count);
  Outputs vars = {Const<int32_t>(graph, 0), outputs.flow(), d.h};
  if (d.c.valid()) vars.push_back(d.c);
  const auto goes_on = [&](const Outputs& v) { return Less(v[0], count); };
  const auto step = [&](const Outputs& v) -> Outputs {
    const State old(v.begin() + 2, v.end());
    State state = cell(o, d, WithRank(inputs.Read(v[0]), 2), old);
    if (state.size() != old.size()) return {};
    Output y = state[0];
    if (lengths.valid()) {
      const Output is_inside = ExpandDims(Less(Cast(v[0], lengths.dtype()), lengths), 1);
      for (size_t i = 0; i < state.size(); ++i) state[i] = SelectV2(is_inside, state[i], old[i]);
      y = SelectV2(is_inside, state[0], ScalarLike(y, 0));
    }
    Outputs next = {Add(v[0], Const<int32_t>(graph, 1)),
                    outputs.WithFlow(v[1]).Write(v[0], y).flow()};
    next.insert(next.end(), state.begin(), state.end());
    return next;
  };
  std::vector<Shape> invariants = {Shape(), Shape()};
  for (size_t i = 2; i < vars.size(); ++i) invariants.push_back(Shape({-1, o.hidden}));
  const Outputs last = WhileLoop(goes_on, step, vars, {.shape_invariants = invariants});
  const Output all = WithRank(outputs.WithFlow(last[1]).Stack(), 3);
  return {d.is_reversed ? Reversed(all, lengths) : all, State(last.begin() + 2, last.end())};
}

// Direction i of a tensor that has one for each; invalid if the input is not given.
Output Part(NodeContext& c, int input, int i) {
  return c.has(input) ? StridedSlice(c.in(input), {Index(i)}) : Output();
}

Output InitialState(NodeContext& c, const RnnOptions& o, int input, int i, const Output& x) {
  if (!c.has(input))
    return Fill(Stack({DimOf(x, 1), Const<int64_t>(c.graph(), o.hidden)}), ScalarLike(x, 0));
  const Output given = o.batch_first ? Transpose(c.in(input), {1, 0, 2}) : c.in(input);
  return StridedSlice(given, {Index(i)});
}

Direction DirectionOf(NodeContext& c, const RnnOptions& o, int i, const Output& x, bool is_lstm) {
  Direction d;
  d.weights = Transpose(Part(c, 1, i), {1, 0});
  d.recurrent = Transpose(Part(c, 2, i), {1, 0});
  if (c.has(3)) {
    const Outputs biases = Split(Part(c, 3, i), 2, 0);
    if (biases.size() == 2) d.bias = biases[0];
    if (biases.size() == 2) d.recurrent_bias = biases[1];
  }
  d.h = InitialState(c, o, 5, i, x);
  if (is_lstm) d.c = InitialState(c, o, 6, i, x);
  if (is_lstm) d.peepholes = Part(c, 7, i);
  d.activations = absl::MakeSpan(o.activations).subspan(i * o.activations_each);
  d.is_reversed = i == 1 || o.direction == "reverse";
  return d;
}

absl::Status ImportRecurrent(NodeContext& c, const RnnOptions& o, Cell cell, bool is_lstm) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  if (rank != 3) return InvalidArgument("the input has rank ", rank, "; expected 3");
  const Output x = o.batch_first ? Transpose(c.in(0), {1, 0, 2}) : c.in(0);
  Outputs all, h, cells;
  for (int i = 0; i < o.directions(); ++i) {
    auto [y, state] = RunDirection(o, DirectionOf(c, o, i, x, is_lstm), cell, x, c.in(4));
    if (state.empty()) return absl::OkStatus();  // the graph has the error
    all.push_back(y);
    h.push_back(state[0]);
    if (is_lstm) cells.push_back(state[1]);
  }
  // [steps, directions, batch, hidden], or [batch, steps, directions, hidden].
  const Output y = o.batch_first ? Transpose(Stack(all, 2), {1, 0, 2, 3}) : Stack(all, 1);
  const int at = o.batch_first ? 1 : 0;
  Outputs results = {y, Stack(h, at)};
  if (is_lstm) results.push_back(Stack(cells, at));
  return c.Return(results);
}

absl::Status ImportRnn(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const RnnOptions o, OptionsOf(c, 1, {"Tanh"}));
  return ImportRecurrent(c, o, RnnCell, false);
}

absl::Status ImportGru(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(RnnOptions o, OptionsOf(c, 3, {"Sigmoid", "Tanh"}));
  o.linear_before_reset = c.Int("linear_before_reset", 0) != 0;
  return ImportRecurrent(c, o, GruCell, false);
}

absl::Status ImportLstm(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(RnnOptions o, OptionsOf(c, 4, {"Sigmoid", "Tanh", "Tanh"}));
  o.input_forget = c.Int("input_forget", 0) != 0;
  return ImportRecurrent(c, o, LstmCell, true);
}

constexpr Importer kImporters[] = {
    {"GRU", 7, 3, 6, ImportGru},
    {"LSTM", 7, 3, 8, ImportLstm},
    {"RNN", 7, 3, 6, ImportRnn},
};

}  // namespace

absl::Span<const Importer> RnnImporters() { return kImporters; }

}  // namespace weir::onnx
