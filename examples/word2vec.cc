// Word vectors by skip-gram with negative sampling: which words of a text stand in the same places?
// The gradient of a look-up is a few rows, so a step costs the same whatever the size of the
// vocabulary.
#include <cstdio>
#include <fstream>
#include <map>
#include <random>

#include "weir/session/weir.h"

using namespace weir;

constexpr int64_t kSize = 48, kBatch = 1024, kNegatives = 64;

absl::Status Learn(const std::string& path) {
  std::map<std::string, int> ids;
  std::vector<std::string> words;
  std::vector<int> text;
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    std::erase_if(word, [](unsigned char c) { return !std::isalpha(c); });
    if (ids.emplace(word, words.size()).second) words.push_back(word);
    text.push_back(ids[word]);
  }
  if (text.size() < 100) return NotFound(path, ": no such text; run from the project's folder");

  Graph g;
  const Output centre = Placeholder(g, DT_INT32, {kBatch}),
               context = Placeholder(g, DT_INT32, {kBatch});
  const Output negative = Placeholder(g, DT_INT32, {kNegatives});
  const Shape table = {static_cast<int64_t>(words.size()), kSize};
  const Variable in = GetVariable(g, "in", table, RandomUniformInitializer(-0.5f, 0.5f));
  const Variable out = GetVariable(g, "out", table, RandomUniformInitializer(-0.5f, 0.5f));
  const Output v = in.SparseRead(centre);
  const Output near = ReduceSum(v * out.SparseRead(context), {1});
  const Output far = MatMul(v, out.SparseRead(negative), {.transpose_b = true});
  const Output loss =
      ReduceMean(Softplus(-near)) + ReduceMean(ReduceSum(Softplus(far), {1})) * 0.1f;
  const Operation train = Adagrad(0.5).Minimize(loss), init = GlobalVariablesInitializer(g);
  const Output unit = L2Normalize(in.value(), {1}), word = Placeholder(g, DT_INT32, {});
  const Output nearest = TopK(ReduceSum(unit * Gather(unit, word), {1}), 6).indices;

  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g));
  WEIR_RETURN_IF_ERROR(session.Run(init));
  std::mt19937 random(1);
  Tensor c(DT_INT32, {kBatch}), o(DT_INT32, {kBatch}), n(DT_INT32, {kNegatives});
  for (int step = 0; step <= 3000; ++step) {
    for (int i = 0; i < kBatch; ++i) {  // a word, and one of the three before or after it
      const size_t at = 3 + random() % (text.size() - 6), away = 1 + random() % 3;
      c.data<int32_t>()[i] = text[at],
      o.data<int32_t>()[i] = text[i % 2 == 0 ? at + away : at - away];
    }
    for (int32_t& id : n.flat<int32_t>()) id = text[random() % text.size()];
    WEIR_ASSIGN_OR_RETURN(const Tensors l,
                          session.Run({{centre, c}, {context, o}, {negative, n}}, {loss}, {train}));
    if (step % 500 == 0) std::printf("step %4d  loss %.4f\n", step, l[0].scalar<float>());
  }
  for (const char* w : {"God", "son", "Egypt", "he", "years"}) {
    WEIR_ASSIGN_OR_RETURN(const Tensors top,
                          session.Run({{word, Tensor::Scalar(ids[w])}}, {nearest}));
    for (int k = 0; k < 6; ++k)
      std::printf("%s%s", words[top[0].data<int32_t>()[k]].c_str(),
                  k == 0   ? ": "
                  : k == 5 ? "\n"
                           : " ");
  }
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  const absl::Status status = Learn(argc > 1 ? argv[1] : "examples/data/text/genesis.txt");
  std::fprintf(stderr, "%s", status.ok() ? "" : ("word2vec: " + status.ToString() + "\n").c_str());
  return status.ok() ? 0 : 1;
}
