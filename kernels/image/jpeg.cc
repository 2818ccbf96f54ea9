#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// The library's header requires <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

#include "weir/core/tensor/cancellation.h"
#include "weir/kernels/image/image_codec.h"

// JPEG files by libjpeg-turbo.
namespace weir {

namespace {

// libjpeg reports errors by calling a function that must not return, so the error handler longjmps
// back to the caller of the library. longjmp skips destructors. Therefore the library is called
// only inside Try, by functions that own nothing with a destructor; such objects are owned by an
// enclosing object.
struct Errors {
  jpeg_error_mgr manager;  // first: libjpeg's pointer to it is converted to Errors*
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";

  jpeg_error_mgr* Init() {
    jpeg_std_error(&manager);
    manager.error_exit = [](j_common_ptr info) {
      auto* errors = reinterpret_cast<Errors*>(info->err);
      info->err->format_message(info, errors->message);
      std::longjmp(errors->jump, 1);
    };
    manager.output_message = [](j_common_ptr) {};
    manager.emit_message = [](j_common_ptr, int) {};
    return &manager;
  }

  template <class F>
  bool Try(const F& f) {
    if (setjmp(jump) != 0) return false;
    f();
    return true;
  }
};

class Decoder {
 public:
  Decoder(absl::string_view file, bool recover) : file_(file), recover_(recover) {
    std::memset(&info_, 0, sizeof(info_));
    info_.err = errors_.Init();
  }
  ~Decoder() { jpeg_destroy_decompress(&info_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  jpeg_decompress_struct& info() { return info_; }

  absl::Status ReadHeader() {
    bool complete = false;
    const bool ok = errors_.Try([&] {
      jpeg_create_decompress(&info_);
      info_.client_data = this;
      SetSource();
      SetProgress();
      complete = jpeg_read_header(&info_, TRUE) == JPEG_HEADER_OK;
    });
    if (ok && complete) return absl::OkStatus();
    return Invalid(ok ? "the header is truncated" : errors_.message);
  }

  // Calls f, which must not own anything with a destructor.
  template <class F>
  absl::Status Try(const F& f) {
    return errors_.Try(f) ? absl::OkStatus() : Invalid(errors_.message);
  }

  absl::Status Invalid(absl::string_view why) const {
    return InvalidArgument("Invalid JPEG data or crop window, data size ", file_.size(), ": ", why);
  }

 private:
  void SetSource() {
    source_.init_source = [](j_decompress_ptr) {};
    source_.term_source = [](j_decompress_ptr) {};
    source_.resync_to_restart = jpeg_resync_to_restart;
    source_.fill_input_buffer = [](j_decompress_ptr info) { return Of(info)->AtEnd(); };
    source_.skip_input_data = [](j_decompress_ptr info, long count) {
      jpeg_source_mgr& source = Of(info)->source_;
      if (count <= 0) return;
      const size_t skipped = std::min(static_cast<size_t>(count), source.bytes_in_buffer);
      source.next_input_byte += skipped;
      source.bytes_in_buffer -= skipped;
      if (skipped < static_cast<size_t>(count)) Of(info)->AtEnd();
    };
    source_.next_input_byte = reinterpret_cast<const JOCTET*>(file_.data());
    source_.bytes_in_buffer = file_.size();
    info_.src = &source_;
  }

  // Inserts an end-of-image marker into a truncated file, once.
  boolean AtEnd() {
    static constexpr JOCTET kEnd[] = {0xff, JPEG_EOI};
    if (!recover_) return FALSE;
    if (source_.next_input_byte == kEnd + 2) ERREXIT(&info_, JERR_FILE_READ);
    source_.next_input_byte = kEnd;
    source_.bytes_in_buffer = 2;
    return TRUE;
  }

  // A progressive file may have any number of scans over the whole image, so a small file could
  // take hours. No encoder writes hundreds.
  void SetProgress() {
    constexpr int kMostScans = 500;
    progress_.progress_monitor = [](j_common_ptr info) {
      auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
      if (decompress->input_scan_number > kMostScans) ERREXIT(info, JERR_BAD_PROGRESSION);
    };
    info_.progress = &progress_;
  }

  static Decoder* Of(j_decompress_ptr info) { return static_cast<Decoder*>(info->client_data); }

  const absl::string_view file_;
  const bool recover_;
  Errors errors_;
  jpeg_decompress_struct info_;
  jpeg_source_mgr source_ = {};
  jpeg_progress_mgr progress_ = {};
};

// Converts one row of CMYK to RGB. Adobe's files store inverted colors.
void CmykToRgb(const JSAMPLE* from, int64_t pixels, bool inverted, uint8_t* to) {
  for (int64_t i = 0; i < pixels; ++i, from += 4) {
    const int k = inverted ? from[3] : 255 - from[3];
    for (int c = 0; c < 3; ++c) {
      *to++ = static_cast<uint8_t>(k * (inverted ? from[c] : 255 - from[c]) / 255);
    }
  }
}

// Validates the options against the header and configures the decoder.
absl::Status Configure(const JpegDecodeOptions& o, Decoder* decoder) {
  jpeg_decompress_struct& info = decoder->info();
  const int channels = o.channels != 0 ? o.channels : std::min(info.num_components, 3);
  if (channels == 1) {
    info.out_color_space = JCS_GRAYSCALE;
  } else if (channels == 3) {
    const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
    info.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  } else {
    return decoder->Invalid(absl::StrCat(channels, " channels"));
  }
  info.do_fancy_upsampling = o.fancy_upscaling ? TRUE : FALSE;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(o.ratio);
  info.dct_method = o.accurate_dct ? JDCT_ISLOW : JDCT_IFAST;
  WEIR_RETURN_IF_ERROR(decoder->Try([&] { jpeg_calc_output_dimensions(&info); }));
  const int64_t height = info.output_height, width = info.output_width;
  if (height <= 0 || width <= 0 || height * width * info.num_components >= kMostPixels) {
    return decoder->Invalid(absl::StrCat("an image of ", width, " x ", height));
  }
  if (o.crop && !(o.crop_width > 0 && o.crop_height > 0 && o.crop_x >= 0 && o.crop_y >= 0 &&
                  o.crop_y + o.crop_height <= height && o.crop_x + o.crop_width <= width)) {
    return decoder->Invalid(absl::StrCat("no window ", o.crop_width, " x ", o.crop_height, " at (",
                                         o.crop_x, ", ", o.crop_y, ") in an image of ", width,
                                         " x ", height));
  }
  return absl::OkStatus();
}

// Starts decoding at the first requested row. Rows of a crop begin at a block's boundary and end at
// the requested pixel.
absl::Status Start(const JpegDecodeOptions& o, Decoder* decoder) {
  jpeg_decompress_struct& info = decoder->info();
  bool started = false;
  WEIR_RETURN_IF_ERROR(decoder->Try([&] { started = jpeg_start_decompress(&info); }));
  JDIMENSION skipped = 0;
  if (started && o.crop) {
    WEIR_RETURN_IF_ERROR(decoder->Try([&] {
      JDIMENSION x = static_cast<JDIMENSION>(o.crop_x), w = static_cast<JDIMENSION>(o.crop_width);
      jpeg_crop_scanline(&info, &x, &w);
      skipped = jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(o.crop_y));
    }));
  }
  if (started && skipped == (o.crop ? o.crop_y : 0)) return absl::OkStatus();
  return decoder->Invalid("the data is truncated");
}

}  // namespace

absl::Status DecodeJpeg(absl::string_view file, const JpegDecodeOptions& o,
                        AllocatePixels<uint8_t> allocate) {
  Decoder decoder(file, o.recover_truncated);
  jpeg_decompress_struct& info = decoder.info();
  WEIR_RETURN_IF_ERROR(decoder.ReadHeader());
  WEIR_RETURN_IF_ERROR(Configure(o, &decoder));
  WEIR_RETURN_IF_ERROR(Start(o, &decoder));
  constexpr int64_t kRows = 4;  // at a time; the library decodes one or two
  const bool cmyk = info.out_color_space == JCS_CMYK;
  const int64_t channels = cmyk ? 3 : info.output_components;
  const int64_t height = o.crop ? o.crop_height : info.output_height,
                width = o.crop ? o.crop_width : info.output_width, row = width * channels;
  WEIR_ASSIGN_OR_RETURN(uint8_t* const pixels, allocate({1, height, width, channels}));
  // Rows are decoded into the result, unless they are converted or lack columns at their beginning.
  const bool direct = !cmyk && info.output_width == width;
  std::vector<JSAMPLE> line(direct ? 0 : int64_t{info.output_width} * info.output_components);
  int64_t y = 0;
  while (y < height) {
    ThrowIfCancelled();
    JSAMPLE* rows[kRows] = {line.data()};
    const auto most = static_cast<JDIMENSION>(direct ? std::min<int64_t>(kRows, height - y) : 1);
    for (JDIMENSION i = 0; direct && i < most; ++i) rows[i] = pixels + (y + i) * row;
    JDIMENSION read = 0;
    WEIR_RETURN_IF_ERROR(decoder.Try([&] { read = jpeg_read_scanlines(&info, rows, most); }));
    if (read == 0) break;
    const JSAMPLE* from = line.data() + (info.output_width - width) * info.output_components;
    if (cmyk) {
      CmykToRgb(from, width, info.saw_Adobe_marker, pixels + y * row);
    } else if (!direct) {
      std::memcpy(pixels + y * row, from, row);
    }
    y += read;
  }
  const float there = static_cast<float>(y) / static_cast<float>(height);
  if (there < std::min(1.0f, o.acceptable_fraction)) {
    return decoder.Invalid(absl::StrCat("the data end at line ", y, " of ", height));
  }
  std::memset(pixels + y * row, 0, (height - y) * row);
  return absl::OkStatus();
}

absl::StatusOr<DecodedSize> ReadJpegSize(absl::string_view file) {
  Decoder decoder(file, false);
  jpeg_decompress_struct& info = decoder.info();
  WEIR_RETURN_IF_ERROR(decoder.ReadHeader());
  WEIR_RETURN_IF_ERROR(decoder.Try([&] { jpeg_calc_output_dimensions(&info); }));
  return DecodedSize{1, info.output_height, info.output_width, info.output_components};
}

namespace {

class Encoder {
 public:
  Encoder() {
    std::memset(&info_, 0, sizeof(info_));
    info_.err = errors_.Init();
  }
  ~Encoder() {
    // The current output buffer: the library reallocates it, and updates the pointer only at the
    // end.
    if (has_begun_) info_.dest->term_destination(&info_);
    jpeg_destroy_compress(&info_);
    std::free(data_);
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  absl::StatusOr<std::string> Run(const uint8_t* pixels, const DecodedSize& size,
                                  const JpegEncodeOptions& o, absl::string_view packet) {
    const bool ok = errors_.Try([&] {
      jpeg_create_compress(&info_);
      jpeg_mem_dest(&info_, &data_, &data_size_);
      Configure(size, o);
      jpeg_start_compress(&info_, TRUE);
      has_begun_ = true;
      if (!packet.empty()) {
        jpeg_write_marker(&info_, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(packet.data()),
                          static_cast<unsigned>(packet.size()));
      }
      while (info_.next_scanline < info_.image_height) {
        ThrowIfCancelled();
        auto* row = const_cast<JSAMPLE*>(pixels + info_.next_scanline * size.width * size.channels);
        jpeg_write_scanlines(&info_, &row, 1);
      }
      jpeg_finish_compress(&info_);
    });
    if (!ok) return Internal("JPEG encoding failed: ", errors_.message);
    return std::string(reinterpret_cast<const char*>(data_), data_size_);
  }

 private:
  void Configure(const DecodedSize& size, const JpegEncodeOptions& o) {
    info_.image_width = static_cast<JDIMENSION>(size.width);
    info_.image_height = static_cast<JDIMENSION>(size.height);
    info_.input_components = static_cast<int>(size.channels);
    info_.in_color_space = size.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info_);
    info_.optimize_coding = o.optimize_size ? TRUE : FALSE;
    info_.density_unit = static_cast<UINT8>(o.density_unit);
    info_.X_density = static_cast<UINT16>(o.x_density);
    info_.Y_density = static_cast<UINT16>(o.y_density);
    jpeg_set_quality(&info_, o.quality, TRUE);
    if (o.progressive) jpeg_simple_progression(&info_);
    for (int i = 0; !o.chroma_downsampling && i < info_.num_components; ++i) {
      info_.comp_info[i].h_samp_factor = 1;
      info_.comp_info[i].v_samp_factor = 1;
    }
  }

  Errors errors_;
  bool has_begun_ = false;
  jpeg_compress_struct info_;
  unsigned char* data_ = nullptr;
  unsigned long data_size_ = 0;
};

}  // namespace

absl::StatusOr<std::string> EncodeJpeg(const uint8_t* pixels, const DecodedSize& size,
                                       const JpegEncodeOptions& o) {
  if (size.width <= 0 || size.height <= 0 || size.width * size.height >= kMostPixels) {
    return Internal("JPEG encoding failed: invalid image size: ", size.width, " x ", size.height);
  }
  std::string packet;
  if (!o.xmp_metadata.empty()) {
    packet = "http://ns.adobe.com/xap/1.0/";
    packet.push_back('\0');
    packet += o.xmp_metadata;
  }
  Encoder encoder;
  return encoder.Run(pixels, size, o, packet);
}

}  // namespace weir
