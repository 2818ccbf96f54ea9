#include "tests/docs/serving_program.inc"

#include "gtest/gtest.h"
#include "weir/rpc/server.h"

namespace weir {
namespace {

TEST(Serving, ProgramOfTheDocumentTrainsOnAServer) {
  const auto server = rpc::Server::Start({});
  ASSERT_TRUE(server.ok()) << server.status();
  const absl::StatusOr<float> slope = TrainOnServer((*server)->target());
  ASSERT_TRUE(slope.ok()) << slope.status();
  EXPECT_NEAR(*slope, 3, 1e-3);
}

}  // namespace
}  // namespace weir
