// A recurrent network that generates text character by character: an LSTM that a loop of the graph
// runs over pieces of a text, and gradients through that loop.
#include <fstream>
#include <iterator>
#include <random>

#include "weir/weir.h"

constexpr int kBatch = 32, kSteps = 40, kUnits = 128;

absl::Status Learn(const std::string& path, int steps) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (text.size() < 10 * kSteps)
    return weir::NotFound(
        path, ": file not found, or too short; run this program from the project's folder");
  std::vector<int32_t> id_of(256, -1);
  std::string characters;
  for (const unsigned char c : text) {
    if (id_of[c] >= 0) continue;
    id_of[c] = static_cast<int32_t>(characters.size());
    characters += static_cast<char>(c);
  }
  const int size = static_cast<int>(characters.size());

  weir::Graph g;
  const weir::RnnCell cell = weir::BasicLstmCell(kUnits);
  const weir::Variable weights = weir::GetVariable(g, "weights", {kUnits, size}),
                       bias = weir::GetVariable(g, "bias", {size}, weir::Zeros());
  const auto logits_of = [&](const weir::Output& shown) {
    return weir::BiasAdd(weir::MatMul(weir::Reshape(shown, {-1, kUnits}), weights.value()),
                         bias.value());
  };
  // Training: predict the next character from each character.
  const weir::Output seen = weir::Placeholder(g, weir::DT_INT32, {kBatch, kSteps}),
                     next = weir::Placeholder(g, weir::DT_INT32, {kBatch, kSteps});
  const weir::Output zero = weir::Zeros(g, {kBatch, kUnits});
  const weir::RnnStep run = weir::DynamicRnn(cell, weir::OneHot(seen, size), {zero, zero});
  const weir::Output loss = weir::ReduceMean(
      weir::SparseSoftmaxCrossEntropy(logits_of(run.output), weir::Reshape(next, {-1})));
  const weir::Operation train = weir::Adam(0.005).Minimize(loss);
  // Generation: one step of the same cell, sampled from the predicted distribution.
  const weir::Output last = weir::Placeholder(g, weir::DT_INT32, {1}),
                     c = weir::Placeholder(g, weir::DT_FLOAT, {1, kUnits}),
                     h = weir::Placeholder(g, weir::DT_FLOAT, {1, kUnits});
  weir::RnnStep one;
  {
    const weir::VariableScope shared(g, "rnn", weir::Reuse::kReuse);
    one = cell(weir::OneHot(last, size), {c, h});
  }
  const weir::Output drawn = weir::Multinomial(logits_of(one.output), 1, {.seed = 1});
  const weir::Operation init = weir::GlobalVariablesInitializer(g);
  WEIR_ASSIGN_OR_RETURN(weir::Session session, weir::Session::Create(g));
  WEIR_RETURN_IF_ERROR(session.Run(init));

  std::mt19937 random(1);
  weir::Tensor x(weir::DT_INT32, {kBatch, kSteps}), y(weir::DT_INT32, {kBatch, kSteps});
  for (int step = 0; step <= steps; ++step) {
    for (int row = 0; row < kBatch; ++row) {
      const size_t at = random() % (text.size() - kSteps - 1);
      for (int i = 0; i < kSteps; ++i) {
        x.data<int32_t>()[row * kSteps + i] = id_of[static_cast<unsigned char>(text[at + i])];
        y.data<int32_t>()[row * kSteps + i] = id_of[static_cast<unsigned char>(text[at + i + 1])];
      }
    }
    WEIR_ASSIGN_OR_RETURN(const weir::Tensors l,
                          session.Run({{seen, x}, {next, y}}, {loss}, {train}));
    if (step % 100 == 0) std::printf("step %4d  loss %.4f\n", step, l[0].scalar<float>());
  }
  weir::Tensors state = {weir::Tensor::Vector<int32_t>({id_of['\n']}),
                         weir::Tensor::Zeros(weir::DT_FLOAT, {1, kUnits}),
                         weir::Tensor::Zeros(weir::DT_FLOAT, {1, kUnits})};
  for (int i = 0; i < 400; ++i) {
    WEIR_ASSIGN_OR_RETURN(const weir::Tensors out,
                          session.Run({{last, state[0]}, {c, state[1]}, {h, state[2]}},
                                      {drawn, one.state[0], one.state[1]}));
    const int32_t id = static_cast<int32_t>(out[0].IntAt(0));
    std::putchar(characters[id]);
    state = {weir::Tensor::Vector<int32_t>({id}), out[1], out[2]};
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
