#include <algorithm>
#include <cstring>
#include <iostream>
#include <map>

#include "absl/strings/match.h"
#include "weir/core/io/file.h"
#include "weir/tests/onnx/node_case.h"

// Runs cases of onnx.backend.test from a folder of their folders, and prints what became of them:
//
//   run_node_cases FOLDER [TEXT]        those with TEXT in their names; the last lines count them
//   run_node_cases --pack FOLDER FILE   writes the small cases that pass, two of each operator
namespace weir::onnx {
namespace {

struct Count {
  int passed = 0, left_out = 0, failed = 0;
};

int RunAll(const std::string& folder, const std::string& text) {
  const auto names = Files().List(folder);
  if (!names.ok()) {
    std::cerr << names.status().message() << "\n";
    return 2;
  }
  std::map<std::string, Count> counts;
  Count all;
  for (const std::string& name : *names) {
    if (!absl::StrContains(name, text)) continue;
    const auto node_case = ReadNodeCase(JoinPath(folder, name));
    const absl::Status status = node_case.ok() ? RunNodeCase(*node_case) : node_case.status();
    Count& count = counts[node_case.ok() ? node_case->op : "?"];
    int Count::*const outcome = status.ok() ? &Count::passed
                                : status.code() == absl::StatusCode::kUnimplemented
                                    ? &Count::left_out
                                    : &Count::failed;
    ++(count.*outcome);
    ++(all.*outcome);
    std::cout << (outcome == &Count::passed     ? "PASS "
                  : outcome == &Count::left_out ? "OUT  "
                                                : "FAIL ")
              << name << (status.ok() ? "" : ": ") << status.message() << std::endl;
  }
  for (const auto& [op, count] : counts)
    std::cout << op << ": " << count.passed << " passed, " << count.left_out << " left out, "
              << count.failed << " failed\n";
  std::cout << "all: " << all.passed << " passed, " << all.left_out << " left out, " << all.failed
            << " failed\n";
  return all.failed == 0 ? 0 : 1;
}

int Pack(const std::string& folder, const std::string& file) {
  constexpr int kEach = 2;
  constexpr size_t kMaxBytes = 6000;
  const auto names = Files().List(folder);
  std::vector<NodeCase> packed;
  std::map<std::string, int> taken;
  for (const std::string& name : *names) {
    if (absl::StrContains(name, "_expanded")) continue;
    const auto node_case = ReadNodeCase(JoinPath(folder, name));
    if (!node_case.ok()) continue;
    const auto found = taken.find(node_case->op);
    if (found != taken.end() && found->second == kEach) continue;
    size_t bytes = node_case->model.size();
    for (const std::string& value : node_case->inputs) bytes += value.size();
    for (const std::string& value : node_case->outputs) bytes += value.size();
    if (bytes > kMaxBytes || !RunNodeCase(*node_case).ok()) continue;
    ++taken[node_case->op];
    packed.push_back(*node_case);
  }
  const absl::Status status = WriteNodeCases(packed, file);
  std::cout << packed.size() << " cases of " << taken.size() << " operators " << status.message()
            << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace weir::onnx

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--pack") == 0) return weir::onnx::Pack(argv[2], argv[3]);
  if (argc == 2 || argc == 3) return weir::onnx::RunAll(argv[1], argc == 3 ? argv[2] : "");
  std::cerr << "usage: run_node_cases FOLDER [TEXT] | --pack FOLDER FILE\n";
  return 2;
}
