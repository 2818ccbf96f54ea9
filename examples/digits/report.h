#ifndef WEIR_EXAMPLES_DIGITS_REPORT_H_
#define WEIR_EXAMPLES_DIGITS_REPORT_H_

#include <vector>

#include "weir/examples/digits/dataset.h"

// The terminal output of the digits example.
namespace digits {

// A progress line that is updated in place during training. If standard output is not a terminal,
// prints a plain line periodically:
//   step 1380/1380  loss 0.0031  accuracy 99.4%  310 steps/s  ETA 0 s
class Progress {
 public:
  Progress(int64_t first_step, int64_t last_step);
  void Show(int64_t step, float loss, float accuracy);
  void Finish();

 private:
  const int64_t first_, last_;
  const bool terminal_;
  const double start_;
  double shown_ = 0;
};

// Prints the confusion matrix.
void PrintConfusion(const weir::Tensor& labels, const weir::Tensor& predictions);
// Draws the first few misclassified digits side by side.
void PrintMisclassified(const Examples& examples, const weir::Tensor& predictions);

}  // namespace digits

#endif  // WEIR_EXAMPLES_DIGITS_REPORT_H_
