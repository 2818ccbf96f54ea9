#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>
#include <utility>

#include "weir/core/tensor/cancellation.h"
#include "weir/kernels/image/image_codec.h"

// PNG files by libpng, which reports errors with longjmp. As with libjpeg (jpeg.cc), libpng is
// called only where no objects with destructors are live.
namespace weir {

namespace {

// The state of libpng's callbacks.
struct Transfer {
  std::jmp_buf jump;
  char message[128] = "";
  absl::string_view unread;     // of the file being read
  std::string* file = nullptr;  // the file being written
};

void OnError(png_structp png, png_const_charp message) {
  auto* transfer = static_cast<Transfer*>(png_get_error_ptr(png));
  std::strncpy(transfer->message, message, sizeof(transfer->message) - 1);
  std::longjmp(transfer->jump, 1);
}
void OnWarning(png_structp, png_const_charp) {}

template <class F>
bool Try(Transfer* transfer, const F& f) {
  if (setjmp(transfer->jump) != 0) return false;
  f();
  return true;
}

class Decoder {
 public:
  explicit Decoder(absl::string_view file) : size_(file.size()) {
    transfer_.unread = file;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &transfer_, OnError, OnWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Reads the header and sets up the conversion to rows of `channels` values of `bits` bits.
  absl::StatusOr<DecodedSize> Start(int channels, int bits) {
    if (png_ == nullptr || info_ == nullptr) return Internal("libpng is out of memory");
    DecodedSize size;
    const bool ok = Try(&transfer_, [&] {
      png_set_read_fn(png_, &transfer_, [](png_structp png, png_bytep to, png_size_t count) {
        absl::string_view& unread = static_cast<Transfer*>(png_get_io_ptr(png))->unread;
        if (unread.size() < count) png_error(png, "the data is truncated");
        std::memcpy(to, unread.data(), count);
        unread.remove_prefix(count);
      });
      png_read_info(png_, info_);
      size.height = png_get_image_height(png_, info_);
      size.width = png_get_image_width(png_, info_);
      if (size.height * size.width >= kMostPixels) png_error(png_, "the image is too large");
      size.channels = Convert(channels, bits);
      png_read_update_info(png_, info_);
    });
    if (!ok) return Invalid();
    return size;
  }

  // Reads all rows into `pixels`, `row` bytes each.
  absl::Status Finish(uint8_t* pixels, int64_t height, size_t row) {
    const bool ok = Try(&transfer_, [&] {
      if (png_get_rowbytes(png_, info_) > row) png_error(png_, "unexpected size of a row");
      for (int pass = 0; pass < passes_; ++pass) {
        for (int64_t y = 0; y < height; ++y) png_read_row(png_, pixels + y * row, nullptr);
      }
      png_read_end(png_, nullptr);
    });
    return ok ? absl::OkStatus() : Invalid();
  }

  // The file has 8 bits per value although the caller asked for 16.
  bool narrow() const { return narrow_; }

 private:
  absl::Status Invalid() const {
    return InvalidArgument("Invalid PNG data, size ", size_, ": ", transfer_.message);
  }

  // Sets the transformations from the file's pixels to the requested ones. Returns the number of
  // channels.
  int Convert(int channels, int bits) {
    const int depth = png_get_bit_depth(png_, info_), color = png_get_color_type(png_, info_);
    const bool transparent = png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    const bool has_alpha = (color & PNG_COLOR_MASK_ALPHA) != 0,
               is_gray = (color & PNG_COLOR_MASK_COLOR) == 0;
    if (channels == 0) {
      channels =
          color == PNG_COLOR_TYPE_PALETTE ? (transparent ? 4 : 3) : png_get_channels(png_, info_);
    }
    if (channels % 2 == 0) {  // with alpha
      if (!has_alpha && transparent) png_set_tRNS_to_alpha(png_);
      if (!has_alpha && !transparent) {
        png_set_add_alpha(png_, (1u << depth) - 1, PNG_FILLER_AFTER);
      }
    } else if (has_alpha || transparent) {
      png_set_strip_alpha(png_);
    }
    if (depth > 8 && bits == 8) png_set_strip_16(png_);
    narrow_ = depth <= 8 && bits == 16;
    png_set_packing(png_);
    passes_ = png_set_interlace_handling(png_);
    if (bits == 16) png_set_swap(png_);  // the file is big-endian
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (is_gray && depth < 8) png_set_expand_gray_1_2_4_to_8(png_);
    if (channels < 3 && !is_gray) png_set_rgb_to_gray(png_, 1, 0.299, 0.587);
    if (channels >= 3 && is_gray) png_set_gray_to_rgb(png_);
    return channels;
  }

  const size_t size_;
  Transfer transfer_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
  bool narrow_ = false;
};

template <class T>
absl::Status Decode(absl::string_view file, int channels, AllocatePixels<T> allocate) {
  Decoder decoder(file);
  WEIR_ASSIGN_OR_RETURN(const DecodedSize size, decoder.Start(channels, 8 * sizeof(T)));
  WEIR_ASSIGN_OR_RETURN(T* const pixels, allocate(size));
  const size_t row = size.width * size.channels * sizeof(T);
  auto* bytes = reinterpret_cast<uint8_t*>(pixels);
  WEIR_RETURN_IF_ERROR(decoder.Finish(bytes, size.height, row));
  if (!decoder.narrow()) return absl::OkStatus();
  // Each row holds bytes in its first half. The loop runs backward, so that no byte is overwritten
  // before it is read.
  for (int64_t y = 0; y < size.height; ++y) {
    ThrowIfCancelled();
    for (int64_t i = size.width * size.channels - 1; i >= 0; --i) {
      pixels[y * size.width * size.channels + i] = static_cast<T>(bytes[y * row + i] * 0x101);
    }
  }
  return absl::OkStatus();
}

class Encoder {
 public:
  Encoder() {
    transfer_.file = &file_;
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &transfer_, OnError, OnWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~Encoder() { png_destroy_write_struct(&png_, &info_); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  absl::StatusOr<std::string> Run(const uint8_t* pixels, const DecodedSize& size, int bits,
                                  int compression) {
    constexpr int kColors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                               PNG_COLOR_TYPE_RGB_ALPHA};
    if (png_ == nullptr || info_ == nullptr) return Internal("libpng is out of memory");
    const int64_t row = size.width * size.channels * (bits / 8);
    const bool ok = Try(&transfer_, [&] {
      png_set_write_fn(
          png_, &transfer_,
          [](png_structp png, png_bytep from, png_size_t count) {
            static_cast<Transfer*>(png_get_io_ptr(png))
                ->file->append(reinterpret_cast<const char*>(from), count);
          },
          [](png_structp) {});
      png_set_compression_level(png_, compression);
      png_set_compression_mem_level(png_, 9);
      png_set_IHDR(png_, info_, static_cast<png_uint_32>(size.width),
                   static_cast<png_uint_32>(size.height), bits, kColors[size.channels - 1],
                   PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
      png_write_info(png_, info_);
      if (bits > 8) png_set_swap(png_);
      for (int64_t y = 0; y < size.height; ++y) {
        ThrowIfCancelled();
        png_write_row(png_, pixels + y * row);
      }
      png_write_end(png_, nullptr);
    });
    if (!ok) return Internal("PNG encoding failed: ", transfer_.message);
    return std::move(file_);
  }

 private:
  Transfer transfer_;
  std::string file_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

absl::Status DecodePng(absl::string_view file, int channels, AllocatePixels<uint8_t> allocate) {
  return Decode<uint8_t>(file, channels, allocate);
}
absl::Status DecodePng(absl::string_view file, int channels, AllocatePixels<uint16_t> allocate) {
  return Decode<uint16_t>(file, channels, allocate);
}

absl::StatusOr<std::string> EncodePng(const void* pixels, const DecodedSize& size, int bits,
                                      int compression) {
  Encoder encoder;
  return encoder.Run(static_cast<const uint8_t*>(pixels), size, bits, compression);
}

}  // namespace weir
