#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "weir/tools/cli.h"

int main(int argc, char** argv) {
  weir::tools::Console console{std::cout, std::cerr};
  if (isatty(STDOUT_FILENO) != 0) {
    console.color = std::getenv("NO_COLOR") == nullptr;
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
      console.width = size.ws_col;
  }
  const std::vector<std::string> args(argv + 1, argv + argc);
  const int status = weir::tools::RunWeir(args, console);
  std::cout.flush();
  return std::cout.good() ? status : weir::tools::kNo;
}
