#include "weir/kernels/image/bilinear_rows.h"

#include <algorithm>
#include <type_traits>

#include "weir/kernels/image/image.h"
#include "weir/kernels/image/image_rows.h"
#include "weir/kernels/lib/non_temporal.h"

namespace weir {

namespace {

// Pixels from here on are interpolated in registers.
constexpr int64_t kManyChannels = 8;
// Pixels are converted one by one if a row has this many for each that is used.
constexpr int64_t kFewPixels = 8;

}  // namespace

template <class T>
BilinearRows<T>::BilinearRows(const Lerp& columns, int64_t channels, const T* end, bool stream)
    : image_columns_(columns),
      channels_(channels),
      end_(end),
      stream_(stream),
      wide_(channels >= kManyChannels),
      first_(*std::min_element(columns.low.begin(), columns.low.end())),
      span_(*std::max_element(columns.high.begin(), columns.high.end()) - first_ + 1),
      sparse_(!std::is_same_v<T, float> && span_ / kFewPixels > columns.size()) {
  columns_.fraction = columns.fraction;
  for (int64_t x = 0; x < columns.size(); ++x) {
    columns_.low.push_back(static_cast<int32_t>(sparse_ ? 2 * x : columns.low[x] - first_));
    columns_.high.push_back(static_cast<int32_t>(sparse_ ? 2 * x + 1 : columns.high[x] - first_));
  }
  const int64_t pixels = sparse_ ? 2 * columns.size() : span_;
  const size_t read = static_cast<size_t>(pixels * channels + kRowPadding);
  if (!wide_) read_.resize(read);
  if (wide_ && std::is_same_v<T, float>) return;
  for (Made& made : made_) {
    made.values.resize(wide_ ? read : columns.size() * channels + kRowPadding);
  }
}

template <class T>
BilinearRows<T>::~BilinearRows() {
  if (stream_) non_temporal::Fence();
}

// Returns the used pixels of a row as floats, with padding if channels are few.
template <class T>
const float* BilinearRows<T>::Read(const T* row, float* buffer) const {
  const T* const from = row + first_ * channels_;
  if constexpr (std::is_same_v<T, float>) {
    if (wide_ || end_ - from >= span_ * channels_ + kRowPadding) return from;
  }
  if (!sparse_) {
    image_rows::Widen(DataTypeOf<T>::value, from, span_ * channels_, buffer);
    return buffer;
  }
  float* to = buffer;
  for (int64_t x = 0; x < columns_.size(); ++x) {
    for (const int64_t pixel : {image_columns_.low[x], image_columns_.high[x]}) {
      image_rows::Widen(DataTypeOf<T>::value, row + pixel * channels_, channels_, to);
      to += channels_;
    }
  }
  return buffer;
}

// Returns what is made of a row, and keeps what was made of the other one.
template <class T>
const float* BilinearRows<T>::Find(const T* row, const T* other) {
  if (wide_ && std::is_same_v<T, float>) return Read(row, nullptr);
  for (const Made& made : made_) {
    if (made.row == row) return made.values.data();
  }
  Made& made = made_[0].row == other ? made_[1] : made_[0];
  made.row = row;
  if (wide_) {
    Read(row, made.values.data());
  } else {
    image_rows::LerpColumns(columns_, channels_, Read(row, read_.data()), made.values.data());
  }
  return made.values.data();
}

template <class T>
void BilinearRows<T>::Interpolate(const T* top, const T* bottom, float fraction, float* out) {
  const float* const upper = Find(top, bottom);
  const float* const lower = Find(bottom, top);
  if (wide_) {
    const bool stream =
        stream_ && non_temporal::IsAligned(out, static_cast<size_t>(channels_) * sizeof(float));
    image_rows::LerpPixels(columns_, channels_, upper, lower, fraction, stream, out);
  } else {
    image_rows::LerpRows(upper, lower, fraction, columns_.size() * channels_, out);
  }
}

template class BilinearRows<int8_t>;
template class BilinearRows<uint8_t>;
template class BilinearRows<int16_t>;
template class BilinearRows<uint16_t>;
template class BilinearRows<int32_t>;
template class BilinearRows<int64_t>;
template class BilinearRows<half>;
template class BilinearRows<bfloat16>;
template class BilinearRows<float>;
template class BilinearRows<double>;

}  // namespace weir
