#include "weir/tools/lib/cli.h"

// The weir-serve program: weir with the serve command.
int main(int argc, char** argv) {
  return weir::tools::RunMain(argc, argv, weir::tools::AddServeCommand);
}
