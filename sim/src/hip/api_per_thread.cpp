// The _spt calls: programs built with a default stream per thread import these instead of the plain ones.
#include <dlfcn.h>

#include "hip/machine.h"

namespace {

hipStream_t own(hipStream_t stream) { return stream ? stream : hipStreamPerThread; }

/// The library's own exports, whatever else is loaded.
void* exported(const char* name) {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&hipInit), &info) || !info.dli_fname) return nullptr;
  void* self = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_NOW);
  void* found = self ? dlsym(self, name) : nullptr;
  if (self) dlclose(self);
  return found;
}

}  // namespace

extern "C" {

hipError_t hipMemcpy_spt(void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  return hipMemcpyWithStream(to, from, bytes, kind, hipStreamPerThread);
}
hipError_t hipMemcpyAsync_spt(void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, kind, own(stream));
}
hipError_t hipMemset_spt(void* to, int value, size_t bytes) {
  hipError_t e = hipMemsetAsync(to, value, bytes, hipStreamPerThread);
  return e ? e : hipStreamSynchronize(hipStreamPerThread);
}
hipError_t hipMemsetAsync_spt(void* to, int value, size_t bytes, hipStream_t stream) {
  return hipMemsetAsync(to, value, bytes, own(stream));
}
hipError_t hipMemcpy2DAsync_spt(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                size_t height, hipMemcpyKind kind, hipStream_t stream) {
  return hipMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, own(stream));
}
hipError_t hipStreamSynchronize_spt(hipStream_t stream) { return hipStreamSynchronize(own(stream)); }
hipError_t hipStreamQuery_spt(hipStream_t stream) { return hipStreamQuery(own(stream)); }
hipError_t hipStreamGetFlags_spt(hipStream_t stream, unsigned* flags) { return hipStreamGetFlags(own(stream), flags); }
hipError_t hipStreamGetPriority_spt(hipStream_t stream, int* priority) {
  return hipStreamGetPriority(own(stream), priority);
}
hipError_t hipStreamWaitEvent_spt(hipStream_t stream, hipEvent_t event, unsigned flags) {
  return hipStreamWaitEvent(own(stream), event, flags);
}
hipError_t hipStreamAddCallback_spt(hipStream_t stream, hipStreamCallback_t callback, void* data, unsigned flags) {
  return hipStreamAddCallback(own(stream), callback, data, flags);
}
hipError_t hipLaunchHostFunc_spt(hipStream_t stream, hipHostFn_t function, void* data) {
  return hipLaunchHostFunc(own(stream), function, data);
}
hipError_t hipEventRecord_spt(hipEvent_t event, hipStream_t stream) { return hipEventRecord(event, own(stream)); }
hipError_t hipLaunchKernel_spt(const void* function, dim3 grid, dim3 block, void** parameters, size_t shared_bytes,
                               hipStream_t stream) {
  return hipLaunchKernel(function, grid, block, parameters, shared_bytes, own(stream));
}
hipError_t hipLaunchCooperativeKernel_spt(const void* function, dim3 grid, dim3 block, void** parameters,
                                          uint32_t shared_bytes, hipStream_t stream) {
  return hipLaunchCooperativeKernel(function, grid, block, parameters, shared_bytes, own(stream));
}
hipError_t hipGraphLaunch_spt(hipGraphExec_t exec, hipStream_t stream) { return hipGraphLaunch(exec, own(stream)); }
hipError_t hipStreamBeginCapture_spt(hipStream_t stream, hipStreamCaptureMode mode) {
  return hipStreamBeginCapture(own(stream), mode);
}
hipError_t hipStreamEndCapture_spt(hipStream_t stream, hipGraph_t* graph) {
  return hipStreamEndCapture(own(stream), graph);
}
hipError_t hipStreamIsCapturing_spt(hipStream_t stream, hipStreamCaptureStatus* status) {
  return hipStreamIsCapturing(own(stream), status);
}

hipError_t hipGetProcAddress(const char* symbol, void** function, int, uint64_t, int* status) {
  return crest_sim::hip::call([&](crest_sim::hip::Machine&) {
    if (!symbol || !function) return hipErrorInvalidValue;
    *function = exported(symbol);
    if (status) *status = *function ? 0 : 1;
    return *function ? hipSuccess : hipErrorInvalidValue;
  });
}
}
