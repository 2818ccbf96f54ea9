#include "tests/docs/serving_program.inc"

#include <cstdio>

// Trains the model of docs/serving.md on the server that its argument names.
int main(int argc, char** argv) {
  const absl::StatusOr<float> slope = TrainOnServer(argc > 1 ? argv[1] : "");
  if (!slope.ok()) {
    std::fprintf(stderr, "%s\n", slope.status().ToString().c_str());
    return 1;
  }
  std::printf("slope %.3f\n", *slope);
  return 0;
}
