// Error codes: names, texts, and the last one of each thread.
#include "hip/machine.h"

namespace {

struct ErrorText {
  hipError_t code;
  const char* name;
  const char* text;
};

#define CREST_SIM_ERROR(name, text) {name, #name, text}
constexpr ErrorText kErrors[] = {
    CREST_SIM_ERROR(hipSuccess, "no error"),
    CREST_SIM_ERROR(hipErrorInvalidValue, "invalid argument"),
    CREST_SIM_ERROR(hipErrorOutOfMemory, "out of memory"),
    CREST_SIM_ERROR(hipErrorNotInitialized, "initialization error"),
    CREST_SIM_ERROR(hipErrorDeinitialized, "driver shutting down"),
    CREST_SIM_ERROR(hipErrorInvalidConfiguration, "invalid configuration argument"),
    CREST_SIM_ERROR(hipErrorInvalidPitchValue, "invalid pitch argument"),
    CREST_SIM_ERROR(hipErrorInvalidSymbol, "invalid device symbol"),
    CREST_SIM_ERROR(hipErrorInvalidDevicePointer, "invalid device pointer"),
    CREST_SIM_ERROR(hipErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    CREST_SIM_ERROR(hipErrorInsufficientDriver, "driver version is insufficient for runtime version"),
    CREST_SIM_ERROR(hipErrorMissingConfiguration, "__global__ function call is not configured"),
    CREST_SIM_ERROR(hipErrorPriorLaunchFailure, "unspecified launch failure in prior launch"),
    CREST_SIM_ERROR(hipErrorInvalidDeviceFunction, "invalid device function"),
    CREST_SIM_ERROR(hipErrorNoDevice, "no ROCm-capable device is detected"),
    CREST_SIM_ERROR(hipErrorInvalidDevice, "invalid device ordinal"),
    CREST_SIM_ERROR(hipErrorInvalidImage, "device kernel image is invalid"),
    CREST_SIM_ERROR(hipErrorInvalidContext, "invalid device context"),
    CREST_SIM_ERROR(hipErrorContextAlreadyCurrent, "context is already current context"),
    CREST_SIM_ERROR(hipErrorMapFailed, "mapping of buffer object failed"),
    CREST_SIM_ERROR(hipErrorUnmapFailed, "unmapping of buffer object failed"),
    CREST_SIM_ERROR(hipErrorNoBinaryForGpu, "no kernel image is available for execution on the device"),
    CREST_SIM_ERROR(hipErrorNotMapped, "resource not mapped"),
    CREST_SIM_ERROR(hipErrorUnsupportedLimit, "limit is not supported on this architecture"),
    CREST_SIM_ERROR(hipErrorContextAlreadyInUse, "exclusive-thread device already in use by a different thread"),
    CREST_SIM_ERROR(hipErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    CREST_SIM_ERROR(hipErrorInvalidKernelFile, "invalid kernel file"),
    CREST_SIM_ERROR(hipErrorInvalidSource, "device kernel image is invalid"),
    CREST_SIM_ERROR(hipErrorFileNotFound, "file not found"),
    CREST_SIM_ERROR(hipErrorSharedObjectSymbolNotFound, "shared object symbol not found"),
    CREST_SIM_ERROR(hipErrorSharedObjectInitFailed, "shared object initialization failed"),
    CREST_SIM_ERROR(hipErrorOperatingSystem, "OS call failed or operation not supported on this OS"),
    CREST_SIM_ERROR(hipErrorInvalidHandle, "invalid resource handle"),
    CREST_SIM_ERROR(hipErrorIllegalState, "the operation cannot be performed in the present state"),
    CREST_SIM_ERROR(hipErrorNotFound, "named symbol not found"),
    CREST_SIM_ERROR(hipErrorNotReady, "device not ready"),
    CREST_SIM_ERROR(hipErrorIllegalAddress, "an illegal memory access was encountered"),
    CREST_SIM_ERROR(hipErrorLaunchOutOfResources, "too many resources requested for launch"),
    CREST_SIM_ERROR(hipErrorLaunchTimeOut, "the launch timed out and was terminated"),
    CREST_SIM_ERROR(hipErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    CREST_SIM_ERROR(hipErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    CREST_SIM_ERROR(hipErrorSetOnActiveProcess, "cannot set while device is active in this process"),
    CREST_SIM_ERROR(hipErrorContextIsDestroyed, "context is destroyed"),
    CREST_SIM_ERROR(hipErrorAssert, "device-side assert triggered"),
    CREST_SIM_ERROR(hipErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    CREST_SIM_ERROR(hipErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    CREST_SIM_ERROR(hipErrorLaunchFailure, "unspecified launch failure"),
    CREST_SIM_ERROR(hipErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    CREST_SIM_ERROR(hipErrorNotSupported, "operation not supported"),
    CREST_SIM_ERROR(hipErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    CREST_SIM_ERROR(hipErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    CREST_SIM_ERROR(hipErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences"),
    CREST_SIM_ERROR(hipErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    CREST_SIM_ERROR(hipErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    CREST_SIM_ERROR(hipErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    CREST_SIM_ERROR(hipErrorStreamCaptureImplicit,
                    "operation would make the legacy stream depend on a capturing "
                    "blocking stream"),
    CREST_SIM_ERROR(hipErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    CREST_SIM_ERROR(hipErrorStreamCaptureWrongThread,
                    "attempt to terminate a thread-local capture sequence from another thread"),
    CREST_SIM_ERROR(hipErrorGraphExecUpdateFailure,
                    "the graph update was not performed because it included changes which violated constraints "
                    "specific to instantiated graph update"),
    CREST_SIM_ERROR(hipErrorUnknown, "unknown error"),
    CREST_SIM_ERROR(hipErrorRuntimeMemory, "runtime memory call returned error"),
    CREST_SIM_ERROR(hipErrorRuntimeOther, "runtime call other than memory returned error"),
};
#undef CREST_SIM_ERROR

const ErrorText* find(hipError_t code) {
  for (const ErrorText& e : kErrors)
    if (e.code == code) return &e;
  return nullptr;
}

}  // namespace

using crest_sim::hip::this_thread;

extern "C" {

hipError_t hipGetLastError() {
  hipError_t e = this_thread().last_error;
  this_thread().last_error = hipSuccess;
  return e;
}
hipError_t hipExtGetLastError() { return hipGetLastError(); }
hipError_t hipPeekAtLastError() { return this_thread().last_error; }

const char* hipGetErrorName(hipError_t error) {
  const ErrorText* e = find(error);
  return e ? e->name : "hipErrorUnknown";
}
const char* hipGetErrorString(hipError_t error) {
  const ErrorText* e = find(error);
  return e ? e->text : "unrecognized error code";
}
hipError_t hipDrvGetErrorName(hipError_t error, const char** name) {
  const ErrorText* e = find(error);
  if (!name || !e) return hipErrorInvalidValue;
  *name = e->name;
  return hipSuccess;
}
hipError_t hipDrvGetErrorString(hipError_t error, const char** text) {
  const ErrorText* e = find(error);
  if (!text || !e) return hipErrorInvalidValue;
  *text = e->text;
  return hipSuccess;
}
}
