#ifndef WEIR_TOOLS_RUN_PROFILE_REPORT_H_
#define WEIR_TOOLS_RUN_PROFILE_REPORT_H_

#include <string>

#include "weir/tools/lib/cli.h"
#include "weir/tools/run/step_profile.h"

namespace weir::tools {

// Prints a profile: a summary, the `top` most expensive nodes, the ops, the copies, and what the
// threads waited for.
void PrintProfile(const StepProfile& profile, int top, Console& console);

// Returns a page with the profile in pictures: bars of the nodes and ops beside their limits, and
// what the threads did in the fastest step. Lists have the `top` first entries.
std::string ProfilePage(const StepProfile& profile, int top, const std::string& title);

// Returns the whole profile as JSON. Times are in microseconds, rates are per second.
std::string ProfileJson(const StepProfile& profile);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_RUN_PROFILE_REPORT_H_
