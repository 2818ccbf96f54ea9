#include "weir/tools/cli.h"

// weir-serve: weir with the command that serves.
int main(int argc, char** argv) {
  return weir::tools::RunMain(argc, argv, weir::tools::AddServeCommand);
}
