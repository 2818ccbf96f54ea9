// Word vectors by skip-gram with negative sampling: which words occur in similar contexts? The
// gradient of a lookup is a few rows, so the cost of a step does not depend on the vocabulary.
#include <fstream>
#include <map>
#include <random>

#include "weir/weir.h"

absl::Status Learn(const std::string& path) {
  std::map<std::string, int> ids;
  std::vector<std::string> words;
  std::vector<int> text;
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    std::erase_if(word, [](unsigned char c) { return std::isalpha(c) == 0; });
    if (ids.emplace(word, words.size()).second) words.push_back(word);
    text.push_back(ids[word]);
  }
  if (text.size() < 100)
    return weir::NotFound(
        path, ": file not found, or too short; run this program from the project's folder");

  weir::Graph g;
  weir::Tensor c(weir::DT_INT32, {1024}), o(weir::DT_INT32, {1024}), n(weir::DT_INT32, {64});
  const weir::Output word = weir::Placeholder(g, weir::DT_INT32, {1024}),
                     near = weir::Placeholder(g, weir::DT_INT32, {1024});
  const weir::Output far = weir::Placeholder(g, weir::DT_INT32, {64});
  const weir::Shape table = {static_cast<int64_t>(words.size()), 48};
  const weir::Variable in = weir::GetVariable(g, "in", table),
                       out = weir::GetVariable(g, "out", table);
  const weir::Output v = in.SparseRead(word),
                     matches = weir::ReduceSum(v * out.SparseRead(near), {1});
  const weir::Output mismatches = weir::MatMul(v, out.SparseRead(far), {.transpose_b = true});
  const weir::Output loss = weir::ReduceMean(weir::Softplus(-matches)) +
                            6.4f * weir::ReduceMean(weir::Softplus(mismatches));
  const weir::Operation train = weir::Adagrad(0.5).Minimize(loss),
                        init = weir::GlobalVariablesInitializer(g);
  const weir::Output some =
      weir::Const(g, {ids["God"], ids["son"], ids["Egypt"], ids["he"], ids["years"]});
  const weir::Output unit = weir::L2Normalize(in, {1});
  const weir::Output nearest =
      weir::TopK(weir::MatMul(weir::Gather(unit, some), unit, {.transpose_b = true}), 6).indices;
  WEIR_ASSIGN_OR_RETURN(weir::Session session, weir::Session::Create(g));
  WEIR_RETURN_IF_ERROR(session.Run(init));
  std::mt19937 random(1);
  for (int step = 0; step <= 3000; ++step) {
    for (int i = 0; i < 1024; ++i) {  // a word, and one of the three words before or after it
      const size_t at = 3 + random() % (text.size() - 6), away = 1 + random() % 3;
      c.data<int32_t>()[i] = text[at];
      o.data<int32_t>()[i] = text[i % 2 == 0 ? at + away : at - away];
    }
    for (int32_t& id : n.flat<int32_t>()) id = text[random() % text.size()];
    const weir::Feeds feeds = {{word, c}, {near, o}, {far, n}};
    WEIR_ASSIGN_OR_RETURN(const weir::Tensors l, session.Run(feeds, {loss}, {train}));
    if (step % 500 == 0) std::printf("step %4d  loss %.4f\n", step, l[0].scalar<float>());
  }
  WEIR_ASSIGN_OR_RETURN(const weir::Tensors top, session.Run({nearest}));
  for (int i = 0; i < 30; ++i)  // each word, and its five nearest words
    std::printf("%s%c", words[top[0].data<int32_t>()[i]].c_str(), i % 6 < 5 ? ' ' : '\n');
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  const absl::Status status = Learn(argc > 1 ? argv[1] : "examples/data/text/genesis.txt");
  std::fprintf(stderr, "%s", status.ok() ? "" : ("word2vec: " + status.ToString() + "\n").c_str());
  return status.ok() ? 0 : 1;
}
