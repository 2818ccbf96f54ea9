// A recurrent network that generates text character by character: an LSTM that a loop of the graph
// runs over pieces of a text, and gradients through that loop.
#include <fstream>
#include <iterator>
#include <random>

#include "weir/weir.h"
using namespace weir;

constexpr int kBatch = 32, kSteps = 40, kUnits = 128;

absl::Status Learn(const std::string& path, int steps) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (text.size() < 10 * kSteps)
    return NotFound(path,
                    ": file not found, or too short; run this program from the project's folder");
  std::vector<int32_t> id_of(256, -1);
  std::string characters;
  for (const unsigned char c : text) {
    if (id_of[c] >= 0) continue;
    id_of[c] = static_cast<int32_t>(characters.size());
    characters += static_cast<char>(c);
  }
  const int size = static_cast<int>(characters.size());

  Graph g;
  const RnnCell cell = BasicLstmCell(kUnits);
  const Variable weights = GetVariable(g, "weights", {kUnits, size}),
                 bias = GetVariable(g, "bias", {size}, Zeros());
  const auto logits_of = [&](const Output& shown) {
    return BiasAdd(MatMul(Reshape(shown, {-1, kUnits}), weights.value()), bias.value());
  };
  // Training: predict the next character from each character.
  const Output seen = Placeholder(g, DT_INT32, {kBatch, kSteps}),
               next = Placeholder(g, DT_INT32, {kBatch, kSteps});
  const Output zero = Zeros(g, {kBatch, kUnits});
  const RnnStep run = DynamicRnn(cell, OneHot(seen, size), {zero, zero});
  const Output loss =
      ReduceMean(SparseSoftmaxCrossEntropy(logits_of(run.output), Reshape(next, {-1})));
  const Operation train = Adam(0.005).Minimize(loss);
  // Generation: one step of the same cell, sampled from the predicted distribution.
  const Output last = Placeholder(g, DT_INT32, {1}), c = Placeholder(g, DT_FLOAT, {1, kUnits}),
               h = Placeholder(g, DT_FLOAT, {1, kUnits});
  RnnStep one;
  {
    const VariableScope shared(g, "rnn", Reuse::kReuse);
    one = cell(OneHot(last, size), {c, h});
  }
  const Output drawn = Multinomial(logits_of(one.output), 1, {.seed = 1});
  const Operation init = GlobalVariablesInitializer(g);
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g));
  WEIR_RETURN_IF_ERROR(session.Run(init));

  std::mt19937 random(1);
  Tensor x(DT_INT32, {kBatch, kSteps}), y(DT_INT32, {kBatch, kSteps});
  for (int step = 0; step <= steps; ++step) {
    for (int row = 0; row < kBatch; ++row) {
      const size_t at = random() % (text.size() - kSteps - 1);
      for (int i = 0; i < kSteps; ++i) {
        x.data<int32_t>()[row * kSteps + i] = id_of[static_cast<unsigned char>(text[at + i])];
        y.data<int32_t>()[row * kSteps + i] = id_of[static_cast<unsigned char>(text[at + i + 1])];
      }
    }
    WEIR_ASSIGN_OR_RETURN(const Tensors l, session.Run({{seen, x}, {next, y}}, {loss}, {train}));
    if (step % 100 == 0) std::printf("step %4d  loss %.4f\n", step, l[0].scalar<float>());
  }
  Tensors state = {Tensor::Vector<int32_t>({id_of['\n']}), Tensor::Zeros(DT_FLOAT, {1, kUnits}),
                   Tensor::Zeros(DT_FLOAT, {1, kUnits})};
  for (int i = 0; i < 400; ++i) {
    WEIR_ASSIGN_OR_RETURN(const Tensors out,
                          session.Run({{last, state[0]}, {c, state[1]}, {h, state[2]}},
                                      {drawn, one.state[0], one.state[1]}));
    const int32_t id = static_cast<int32_t>(out[0].IntAt(0));
    std::putchar(characters[id]);
    state = {Tensor::Vector<int32_t>({id}), out[1], out[2]};
  }
  std::putchar('\n');
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  const absl::Status status = Learn(argc > 1 ? argv[1] : "examples/data/text/genesis.txt",
                                    argc > 2 ? std::atoi(argv[2]) : 1000);
  std::fprintf(stderr, "%s", status.ok() ? "" : ("char_rnn: " + status.ToString() + "\n").c_str());
  return status.ok() ? 0 : 1;
}
