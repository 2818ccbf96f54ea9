#ifndef WEIR_EXAMPLES_DIGITS_REPORT_H_
#define WEIR_EXAMPLES_DIGITS_REPORT_H_

#include <vector>

#include "weir/examples/digits/dataset.h"

// What the digits example shows on the terminal.
namespace weir::digits {

// A line that is rewritten in place while training, or, when standard output is not a terminal, a
// plain line now and then:
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

// How often each digit was read as which.
void PrintConfusion(const Tensor& labels, const Tensor& predictions);
// Draws the first few digits that were misread, side by side.
void PrintMisread(const Examples& examples, const Tensor& predictions);

}  // namespace weir::digits

#endif  // WEIR_EXAMPLES_DIGITS_REPORT_H_
