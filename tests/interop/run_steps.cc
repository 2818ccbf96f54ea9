// Runs the steps of a program that idioms_test.py wrote, in a session of this process. A folder has
// `graph.pb` and `steps`, a line each: "feed TENSOR FILE", "fetch TENSOR FILE", "target NODE", and
// "run", which runs what the lines before it name. Files are NumPy's; strings are not fetched.

#include <cstdio>
#include <fstream>
#include <sstream>

#include "weir/core/io/graph_io.h"
#include "weir/core/io/npy.h"
#include "weir/session/weir.h"

namespace weir {
namespace {

absl::Status RunSteps(const std::string& folder) {
  Graph g;
  WEIR_RETURN_IF_ERROR(ImportGraphFile(g, folder + "/graph.pb").status());
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g));
  std::ifstream steps(folder + "/steps");
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::vector<std::string> fetches, files, targets;
  for (std::string line; std::getline(steps, line);) {
    std::istringstream words(line);
    std::string what, name, file;
    words >> what >> name >> file;
    if (what == "feed") {
      WEIR_ASSIGN_OR_RETURN(Tensor value, ReadNpy(folder + "/" + file));
      feeds.emplace_back(name, std::move(value));
    } else if (what == "fetch") {
      fetches.push_back(name);
      files.push_back(folder + "/" + file);
    } else if (what == "target") {
      targets.push_back(name);
    } else {
      WEIR_ASSIGN_OR_RETURN(const Tensors out, session.Run(feeds, fetches, targets));
      for (size_t i = 0; i < out.size(); ++i) WEIR_RETURN_IF_ERROR(WriteNpy(files[i], out[i]));
      feeds.clear(), fetches.clear(), files.clear(), targets.clear();
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  const absl::Status status = weir::RunSteps(argc > 1 ? argv[1] : ".");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
