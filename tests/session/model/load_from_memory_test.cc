// Models from memory. A filter of system calls ends the process that opens a file.

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/memory_folder.h"
#include "weir/core/tensor/allocator.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/model/saved_model.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/session/lib/saver_testing.h"

namespace weir {
namespace {

using ::testing::HasSubstr;
using testing::Init;
using testing::MakeTempDirectory;
using testing::Start;
using testing::Var;

constexpr char kModel[] = "tests/session/golden/saved_model_functions";
constexpr int kOpenedAFile = 42;

// The files of a model, and the views that loading takes.
struct FilesInMemory {
  std::map<std::string, std::string> contents;

  void Add(const std::string& folder, const std::string& name) {
    absl::StatusOr<std::string> bytes = ReadFile(JoinPath(folder, name));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    contents[name] = *std::move(bytes);
  }
  std::map<std::string, absl::string_view> views() const {
    return {contents.begin(), contents.end()};
  }
};

FilesInMemory ReadModel() {
  FilesInMemory files;
  for (const char* name : {"saved_model.pb", "variables/variables.index",
                           "variables/variables.data-00000-of-00001", "assets/animals.txt"})
    files.Add(kModel, name);
  return files;
}

// What the system says about itself may be read; other files end the process.
void OnOpen(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* const path = reinterpret_cast<const char*>(
      registers[REG_RAX] == SYS_open ? registers[REG_RDI] : registers[REG_RSI]);
  if (!absl::StartsWith(path, "/proc/") && !absl::StartsWith(path, "/sys/")) {
    std::fprintf(stderr, "opened %s\n", path);
    _exit(kOpenedAFile);
  }
  registers[REG_RAX] = -ENOENT;
}

// Returns false if the system has no such filters.
bool TrapOpen() {
#if defined(__x86_64__)
  struct sigaction action = {};
  action.sa_sigaction = OnOpen;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSYS, &action, nullptr);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
  };
  const sock_fprog program = {std::size(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
#else
  return false;
#endif
}

// Runs the test in a process that may not open files. Exits with 0 if `holds` returns true, and
// also if there are no filters.
template <class Holds>
[[noreturn]] void ExitWithoutFiles(const Holds& holds) {
  if (!TrapOpen()) _exit(0);
  _exit(holds() ? 0 : 1);
}

bool Report(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok();
}

TEST(LoadFromMemoryDeathTest, TheTrapWorks) {
  EXPECT_EXIT(ExitWithoutFiles([] { return ReadFile(JoinPath(kModel, "saved_model.pb")).ok(); }),
              ::testing::ExitedWithCode(kOpenedAFile), "opened tests/session/golden");
}

TEST(LoadFromMemoryDeathTest, ASavedModelWithATableOpensNoFile) {
  const FilesInMemory files = ReadModel();
  EXPECT_EXIT(ExitWithoutFiles([&] {
                const auto model = LoadSavedModel(files.views(), {"serve"});
                if (!Report(model.status())) return false;
                for (const SavedFunction& function : model->functions) {
                  if (function.name != "look") continue;
                  const auto look = CallSavedFunction(*model->graph, function);
                  if (!Report(look.status())) return false;
                  const auto found = model->session->Run(
                      {{look->inputs.at("words"), Tensor::Vector<std::string>({"bird"})}},
                      {look->outputs.at("output_0")}, {});
                  return Report(found.status()) && (*found)[0].flat<int64_t>()[0] == 2;
                }
                return false;
              }),
              ::testing::ExitedWithCode(0), "");
}

TEST(LoadFromMemoryDeathTest, ACheckpointAndItsMetaGraphOpenNoFile) {
  const std::string folder = MakeTempDirectory("checkpoint");
  // In a process of its own, since a child of a process with threads has none of them.
  const auto save = [&] {
    Graph g;
    Var(g, "w", {1, 2});
    Session session = Start(g);
    Init(session, g);
    return Report(Saver::Create(g)->Save(session, folder + "/m").status());
  };
  EXPECT_EXIT(_exit(save() ? 0 : 1), ::testing::ExitedWithCode(0), "");
  FilesInMemory files;
  for (const char* name : {"m.meta", "m.index", "m.data-00000-of-00001"}) files.Add(folder, name);
  EXPECT_EXIT(ExitWithoutFiles([&] {
                Graph again;
                const auto meta = ImportMetaGraph(again, files.contents.at("m.meta"));
                if (!Report(meta.status())) return false;
                Session restored = Start(again);
                const MemoryFolder memory(files.views());
                if (!Report(RestoreVariables(restored, *meta->saver, memory.Path("m"))))
                  return false;
                const std::vector<std::pair<std::string, Tensor>> feeds;
                const std::vector<std::string> fetches = {"w/Read/ReadVariableOp:0"}, targets;
                const auto w = restored.Run(feeds, fetches, targets);
                return Report(w.status()) && (*w)[0].flat<float>()[1] == 2;
              }),
              ::testing::ExitedWithCode(0), "");
}

TEST(LoadFromMemory, DamageIsAnError) {
  FilesInMemory files = ReadModel();
  files.contents["variables/variables.data-00000-of-00001"].back() ^= 1;
  EXPECT_EQ(LoadSavedModel(files.views(), {}).status().code(), absl::StatusCode::kDataLoss);
  files.contents.erase("variables/variables.data-00000-of-00001");
  EXPECT_EQ(LoadSavedModel(files.views(), {}).status().code(), absl::StatusCode::kNotFound);
  files.contents.erase("saved_model.pb");
  EXPECT_THAT(std::string(LoadSavedModel(files.views(), {}).status().message()),
              HasSubstr("Could not find SavedModel"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// Returns a number of /proc/self/status, in bytes: "VmRSS" or "VmHWM", its maximum so far.
int64_t StatusBytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (absl::StartsWith(line, name + ":")) return std::atoll(line.c_str() + name.size() + 1) << 10;
  }
  return 0;
}

// Ends the process: with success if `load` needs the memory of the weights, but not twice. The
// process must not have used and released such memory before, which it would use again.
void ExitAfter(const char* what, int64_t weights, const std::function<bool()>& load) {
  std::ofstream("/proc/self/clear_refs") << 5;  // begins a new maximum
  const int64_t before = StatusBytes("VmRSS");
  const bool is_loaded = load();
  const int64_t peak = StatusBytes("VmHWM") - before;
  std::printf("%s of %.1f MB needs %.1f MB\n", what, weights / 1e6, peak / 1e6);
  std::fflush(stdout);
  const int64_t limit = weights + weights / 8 + (16 << 20);
  _exit(is_loaded && peak >= weights / 2 && peak <= limit ? 0 : 1);
}

// What the system counts, for a SavedModel and for a checkpoint. The weights have 64 MB, or
// WEIR_MODEL_MB (docs/notes/checkpoints.md).
TEST(LoadFromMemoryDeathTest, NeedsTheMemoryOfTheWeightsOnce) {
  const char* const size = std::getenv("WEIR_MODEL_MB");
  constexpr int kVariables = 8;
  const int64_t weights = (size == nullptr ? 64 : std::atoll(size)) << 20;
  const int64_t elements = weights / kVariables / static_cast<int64_t>(sizeof(float));
  const std::string folder = MakeTempDirectory("large") + "/model";
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {}, "x");
  Outputs sums;
  for (int i = 0; i < kVariables; ++i) {
    const Output value = Fill({elements}, ConstOf(g, DT_FLOAT, static_cast<float>(i)));
    sums.push_back(ReduceSum(MakeVariable(g, value, {.name = absl::StrCat("w", i)}).value()) * x);
  }
  const Output y = AddN(sums, "y");
  Saver saver = *Saver::Create(g);
  const auto write = [&] {
    Session session = Start(g);
    Init(session, g);
    return Report(
        WriteSavedModel(session, g, folder, {{"serve", PredictSignature({{"x", x}}, {{"y", y}})}}));
  };
  EXPECT_EXIT(_exit(write() ? 0 : 1), ::testing::ExitedWithCode(0), "");
  FilesInMemory files;
  for (const char* name :
       {"saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001"})
    files.Add(folder, name);
  EXPECT_EXIT(ExitAfter("SavedModel", weights,
                        [&] { return Report(LoadSavedModel(files.views(), {}).status()); }),
              ::testing::ExitedWithCode(0), "");
  const auto restore = [&] {
    Session session = Start(g);
    const MemoryFolder memory(files.views());
    return Report(RestoreVariables(session, saver.def(), memory.Path("variables/variables")));
  };
  EXPECT_EXIT(ExitAfter("checkpoint", weights, restore), ::testing::ExitedWithCode(0), "");
}

#endif

// With memory for the weights and a quarter more, there is one copy besides the caller's bytes.
TEST(LoadFromMemory, CopiesTheWeightsOnce) {
  constexpr int64_t kElements = 8 << 20;
  const std::string folder = MakeTempDirectory("large") + "/model";
  FilesInMemory files;
  {
    Graph g;
    const Variable w = MakeVariable(g, Fill({kElements}, ConstOf(g, DT_FLOAT, 3.f)), {.name = "w"});
    const Output x = Placeholder(g, DT_FLOAT, {}, "x");
    const Output y = Multiply(w.value(), x, "y");
    Session session = Start(g);
    Init(session, g);
    ASSERT_TRUE(WriteSavedModel(session, g, folder,
                                {{"serving_default", PredictSignature({{"x", x}}, {{"y", y}})}})
                    .ok());
  }
  for (const char* name :
       {"saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001"})
    files.Add(folder, name);
  const int64_t weights = kElements * static_cast<int64_t>(sizeof(float));
  SetHostMemoryLimit(weights + weights / 4);
  const auto model = LoadSavedModel(files.views(), {});
  SetHostMemoryLimit(INT64_MAX);
  EXPECT_TRUE(model.ok()) << model.status();
}

}  // namespace
}  // namespace weir
