#ifndef WEIR_TOOLS_PROFILE_REPORT_H_
#define WEIR_TOOLS_PROFILE_REPORT_H_

#include <string>

#include "weir/tools/cli.h"
#include "weir/tools/step_profile.h"

namespace weir::tools {

// A profile for people: a summary, the `top` nodes that take most, the ops, the copies, and what
// the threads waited for.
void PrintProfile(const StepProfile& profile, int top, Console& console);

// All of it as JSON; times are in microseconds, rates a second.
std::string ProfileJson(const StepProfile& profile);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_PROFILE_REPORT_H_
