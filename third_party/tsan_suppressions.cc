// Debian's Abseil is not instrumented: ThreadSanitizer does not see that the last owner of a
// status, which deletes it, comes after all others. Linked into tests, and unused without the
// sanitizer.
extern "C" const char* __tsan_default_suppressions() {
  return "race:absl::*::Status::UnrefNonInlined\n";
}
