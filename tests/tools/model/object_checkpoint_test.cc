// Checkpoints of TensorFlow 2's objects, in the tools (tests/session/golden).

#include "gmock/gmock.h"
#include "weir/tests/tools/lib/tools_testing.h"

namespace weir::tools {
namespace {

using ::testing::HasSubstr;

constexpr char kCheckpoint[] = "tests/session/golden/object_checkpoint";

TEST(ObjectCheckpoint, IsListedWithFullNames) {
  EXPECT_THAT(
      Weir({"ckpt", "ls", kCheckpoint}).out,
      HasSubstr("model/kernel/.ATTRIBUTES/VARIABLE_VALUE   float   [2]        8         net/w\n"));
  EXPECT_THAT(Weir({"ckpt", "ls", kCheckpoint, "--json"}).out,
              HasSubstr("\"full_name\": \"net/w\""));
}

TEST(ObjectCheckpoint, IsRestoredIntoAGraphByFullNames) {
  Graph g;
  const Variable w = MakeVariable(g, Initializer{0.f, 0.f}, {.name = "net/w"});
  Identity(w.value(), "y");
  ASSERT_TRUE(g.status().ok()) << g.status();
  const std::string path = TestFolder() + "/g.pb";
  ASSERT_TRUE(WriteFileAtomically(path, SerializeGraph(g)).ok());
  const CommandResult run = Weir({"run", path, "--checkpoint", kCheckpoint, "--fetch", "y"});
  EXPECT_EQ(run.out, "y float[2]\n[1. 2.]\n");
  EXPECT_EQ(run.err,
            "weir: the checkpoint is one of objects; 1 variables are read by their full names in "
            "it, net/w from model/kernel/.ATTRIBUTES/VARIABLE_VALUE\n");
}

}  // namespace
}  // namespace weir::tools
