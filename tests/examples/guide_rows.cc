// Runs the rows of guide_rows.h, prints each, and fails if one of them fails.
//   guide_rows FOLDER

#include "guide_rows.h"

#include <cstdio>

namespace guide {

std::string& Folder() {
  static std::string folder;
  return folder;
}

bool Fails(const absl::Status& status, absl::StatusCode code,
           std::initializer_list<const char*> words) {
  bool right = status.code() == code;
  const std::string message(status.message());
  for (const char* word : words) right = right && message.find(word) != std::string::npos;
  if (!right) std::fprintf(stderr, "  the error is: %s\n", status.ToString().c_str());
  return right;
}

bool Fails(weir::Graph& g, absl::StatusCode code, std::initializer_list<const char*> words) {
  return Fails(g.TakeStatus(), code, words);
}

absl::StatusOr<weir::Session> Started(weir::Graph& g) {
  const weir::Operation init = weir::GlobalVariablesInitializer(g),
                        local = weir::LocalVariablesInitializer(g);
  WEIR_ASSIGN_OR_RETURN(weir::Session session, weir::Session::Create(g));
  WEIR_RETURN_IF_ERROR(session.Run({}, {}, {init, local}).status());
  return session;
}

std::vector<float> Values(weir::Session& session, const weir::Output& x) {
  const absl::StatusOr<weir::Tensors> out = session.Run({x});
  if (!out.ok()) {
    std::fprintf(stderr, "  the step fails: %s\n", out.status().ToString().c_str());
    return {};
  }
  const weir::Tensor& t = (*out)[0];
  std::vector<float> values;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    switch (t.dtype()) {
      case weir::DT_FLOAT:
        values.push_back(t.data<float>()[i]);
        break;
      case weir::DT_DOUBLE:
        values.push_back(static_cast<float>(t.data<double>()[i]));
        break;
      case weir::DT_INT32:
        values.push_back(static_cast<float>(t.data<int32_t>()[i]));
        break;
      case weir::DT_INT64:
        values.push_back(static_cast<float>(t.data<int64_t>()[i]));
        break;
      case weir::DT_BOOL:
        values.push_back(t.data<bool>()[i]);
        break;
      default:
        return {};
    }
  }
  return values;
}

std::vector<float> Values(weir::Graph& g, const weir::Output& x) {
  absl::StatusOr<weir::Session> session = Started(g);
  if (session.ok()) return Values(*session, x);
  std::fprintf(stderr, "  no session: %s\n", session.status().ToString().c_str());
  return {};
}

namespace {

int Run() {
  const std::pair<const char*, Rows> parts[] = {
      {"Creating", CreationRows()},           {"Sharing", SharingRows()},
      {"Collections", CollectionRows()},      {"Devices", DeviceRows()},
      {"Initializing", InitializationRows()}, {"Using", UseRows()},
      {"Training", TrainingRows()},           {"Saving", SavingRows()}};
  int rows = 0, whole = 0;
  for (const auto& [title, part] : parts) {
    std::printf("%s\n", title);
    for (const Row& row : part) {
      bool holds = true;
      for (const bool use_resource : {true, false}) {
        weir::Graph g({.use_resource = use_resource});
        const bool right = row.holds(g);
        if (!g.status().ok()) {
          std::fprintf(stderr, "  the graph has: %s\n", g.status().ToString().c_str());
        }
        holds = holds && right && g.status().ok();
      }
      ++rows;
      whole += holds;
      std::printf("  %s %s\n", holds ? "yes" : "NO ", row.text);
      std::fflush(stdout);
    }
  }
  std::printf("%d of %d rows hold\n", whole, rows);
  return rows - whole;
}

}  // namespace
}  // namespace guide

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  guide::Folder() = argv[1];
  return guide::Run() == 0 ? 0 : 1;
}
