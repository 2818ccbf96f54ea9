#ifndef WEIR_TESTS_SERVING_LIB_WRITTEN_MODELS_H_
#define WEIR_TESTS_SERVING_LIB_WRITTEN_MODELS_H_

#include <string>
#include <vector>

#include "weir/serving/servable.h"

// Models that tests of serving write and load.
namespace weir::testing {

// Writes a SavedModel that multiplies by `factor`, a variable. Its signatures:
//   serving_default  x [?] -> y [?]
//   classify         examples with the float "x" -> classes "small" and "large", scores x * factor
//                    and 1
//   scores           the same without classes
//   regress          the same examples -> x * factor
//   one_row          the same -> the first row only
// `size` is the number of elements of another variable, which makes the model large.
void WriteMultiplier(const std::string& directory, float factor, int64_t size = 1);

// A serialized Example with the float x.
std::string ExampleOf(float x);

// Calls serving_default with x = 1, and returns the factor; -1 for an error, which fails the test.
float FactorOf(const serving::Servable& servable);

}  // namespace weir::testing

#endif  // WEIR_TESTS_SERVING_LIB_WRITTEN_MODELS_H_
