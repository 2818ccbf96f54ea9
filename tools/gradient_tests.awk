# The source of GradientTestsText() (gradient_tests.h), from the sources of tests:
#     awk -f gradient_tests.awk SOURCE...
# A statement ends with the line that ends with a period.
BEGIN {
  print "#include \"weir/tools/ops/gradient_tests.h\""
  print "absl::string_view weir::tools::GradientTestsText() { return R\"text("
}
sub(/^\/\/ Gradients checked to order /, "") { open = 1; text = "" }
open {
  sub(/^\/\/ /, "")
  text = text " " $0
}
open && /\.$/ {
  gsub(/ by |[,:.]/, " ", text)
  print FILENAME text
  open = 0
}
END { print ")text\"; }" }
