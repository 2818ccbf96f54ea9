#ifndef WEIR_KERNELS_AUDIO_AUDIO_H_
#define WEIR_KERNELS_AUDIO_AUDIO_H_

#include "weir/core/runtime/kernel.h"

// Helpers that the kernels of audio share.
namespace weir {

// The parts of AddAudioCpu, each in its own source file.
void AddWavCpu(KernelRegistry* r);            // wav_cpu.cc
void AddMfccCpu(KernelRegistry* r);           // mfcc_cpu.cc
void AddMicrofrontendCpu(KernelRegistry* r);  // microfrontend_cpu.cc

// Reads a sample rate: an int32 scalar, otherwise INVALID_ARGUMENT.
absl::StatusOr<int32_t> ReadSampleRate(const Tensor& t);

}  // namespace weir

#endif  // WEIR_KERNELS_AUDIO_AUDIO_H_
