#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "weir/core/tensor/cancellation.h"
#include "weir/kernels/image/image_codec.h"

// GIF files by giflib, read record by record: giflib's whole-file reader trusts the headers and
// allocates what they claim.
namespace weir {

namespace {

struct GifFrame {
  int64_t left = 0, top = 0, width = 0, height = 0;
  int transparent = NO_TRANSPARENT_COLOR;
  std::vector<std::array<uint8_t, 3>> colors;
  std::vector<uint8_t> indices;  // color indices; missing rows are zeros
};

// The order of the rows of an interlaced frame.
std::vector<int64_t> RowOrder(int64_t height, bool interlaced) {
  constexpr int64_t kBegins[] = {0, 4, 2, 1}, kSteps[] = {8, 8, 4, 2};
  std::vector<int64_t> order;
  for (int pass = 0; pass < (interlaced ? 4 : 1); ++pass) {
    for (int64_t y = kBegins[pass]; y < height; y += interlaced ? kSteps[pass] : 1) {
      order.push_back(y);
    }
  }
  return order;
}

class Reader {
 public:
  explicit Reader(absl::string_view file) : unread_(file) {
    gif_ = DGifOpen(
        this,
        [](GifFileType* gif, GifByteType* to, int count) {
          absl::string_view& unread = static_cast<Reader*>(gif->UserData)->unread_;
          const size_t n = std::min(unread.size(), static_cast<size_t>(count));
          std::memcpy(to, unread.data(), n);
          unread.remove_prefix(n);
          return static_cast<int>(n);
        },
        &error_);
  }
  ~Reader() {
    if (gif_ != nullptr) DGifCloseFile(gif_, nullptr);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // A truncated file yields the frames that had begun.
  absl::StatusOr<std::vector<GifFrame>> Frames() {
    if (gif_ == nullptr) return Error("failed to open gif file");
    std::vector<GifFrame> frames;
    int transparent = NO_TRANSPARENT_COLOR;
    for (int64_t total = 0;;) {
      ThrowIfCancelled();
      GifRecordType type = UNDEFINED_RECORD_TYPE;
      bool ok = DGifGetRecordType(gif_, &type) == GIF_OK;
      if (ok && type == TERMINATE_RECORD_TYPE) break;
      if (ok && type == EXTENSION_RECORD_TYPE) ok = ReadExtension(&transparent);
      if (ok && type == IMAGE_DESC_RECORD_TYPE) {
        if (DGifGetImageDesc(gif_) != GIF_OK) ok = false;
        total += ok ? int64_t{gif_->Image.Width} * gif_->Image.Height : 0;
        if (total > kMostPixels)
          return InvalidArgument("the total size of the frames is too large");
        if (ok) {
          frames.emplace_back();
          frames.back().transparent = transparent;
          transparent = NO_TRANSPARENT_COLOR;
          ok = ReadFrame(&frames.back());
        }
      }
      if (!ok) {
        if (frames.empty()) return Error("failed to slurp gif file");
        break;
      }
    }
    if (frames.empty()) return InvalidArgument("gif file does not contain any image");
    return frames;
  }

 private:
  absl::Status Error(absl::string_view what) const {
    const char* why = GifErrorString(gif_ != nullptr ? gif_->Error : error_);
    return InvalidArgument(what, ": ", why != nullptr ? why : "Unknown error");
  }

  // Skips extensions, except for the graphics control extension, which gives the transparent color
  // of the next frame.
  bool ReadExtension(int* transparent) {
    int code = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif_, &code, &block) != GIF_OK) return false;
    while (block != nullptr) {
      GraphicsControlBlock control;
      if (code == GRAPHICS_EXT_FUNC_CODE &&
          DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
        *transparent = control.TransparentColor;
      }
      if (DGifGetExtensionNext(gif_, &block) != GIF_OK) return false;
    }
    return true;
  }

  bool ReadFrame(GifFrame* frame) {
    const GifImageDesc& image = gif_->Image;
    frame->left = image.Left;
    frame->top = image.Top;
    frame->width = image.Width;
    frame->height = image.Height;
    const ColorMapObject* map = image.ColorMap != nullptr ? image.ColorMap : gif_->SColorMap;
    for (int i = 0; map != nullptr && i < map->ColorCount; ++i) {
      frame->colors.push_back({map->Colors[i].Red, map->Colors[i].Green, map->Colors[i].Blue});
    }
    std::vector<uint8_t> line(frame->width);
    for (const int64_t y : RowOrder(frame->height, image.Interlace)) {
      ThrowIfCancelled();
      if (DGifGetLine(gif_, line.data(), static_cast<int>(frame->width)) != GIF_OK) return false;
      // Allocates according to the data, not the header.
      const size_t end = static_cast<size_t>((y + 1) * frame->width);
      if (frame->indices.size() < end) frame->indices.resize(end);
      std::copy(line.begin(), line.end(), frame->indices.begin() + y * frame->width);
    }
    return true;
  }

  absl::string_view unread_;
  GifFileType* gif_ = nullptr;
  int error_ = 0;
};

// Draws a frame onto `pixels`, which holds the previous frame (or black).
absl::Status Draw(const GifFrame& frame, int64_t height, int64_t width, uint8_t* pixels) {
  if (frame.colors.empty()) return InvalidArgument("missing color map for a frame");
  for (int64_t y = 0; y < std::min(frame.height, height - frame.top); ++y) {
    ThrowIfCancelled();
    for (int64_t x = 0; x < std::min(frame.width, width - frame.left); ++x) {
      const size_t at = static_cast<size_t>(y * frame.width + x);
      const int index = at < frame.indices.size() ? frame.indices[at] : 0;
      if (index == frame.transparent) continue;
      if (index >= static_cast<int>(frame.colors.size())) {
        return InvalidArgument("found color index ", index, " outside of color map range ",
                               frame.colors.size());
      }
      std::copy_n(frame.colors[index].data(), 3,
                  pixels + ((y + frame.top) * width + x + frame.left) * 3);
    }
  }
  return absl::OkStatus();
}

absl::Status Decode(absl::string_view file, bool first_frame_only,
                    AllocatePixels<uint8_t> allocate) {
  Reader reader(file);
  WEIR_ASSIGN_OR_RETURN(const std::vector<GifFrame> frames, reader.Frames());
  DecodedSize size;
  size.frames = first_frame_only ? 1 : static_cast<int64_t>(frames.size());
  size.channels = 3;
  for (const GifFrame& frame : frames) {
    size.height = std::max(size.height, frame.height);
    size.width = std::max(size.width, frame.width);
  }
  const int64_t one = size.height * size.width * 3;
  if (one <= 0 || one >= kMostPixels || size.frames >= kMostPixels / one) {
    return InvalidArgument(size.frames, " frames of ", size.width, " x ", size.height);
  }
  WEIR_ASSIGN_OR_RETURN(uint8_t* const pixels, allocate(size));
  std::memset(pixels, 0, one);
  for (int64_t i = 0; i < size.frames; ++i) {
    if (i > 0) std::memcpy(pixels + i * one, pixels + (i - 1) * one, one);
    WEIR_RETURN_IF_ERROR(Draw(frames[i], size.height, size.width, pixels + i * one));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DecodeGif(absl::string_view file, bool first_frame_only,
                       AllocatePixels<uint8_t> allocate) {
  return Annotate(Decode(file, first_frame_only, allocate),
                  absl::StrCat("Invalid GIF data (size ", file.size(), ")"));
}

}  // namespace weir
