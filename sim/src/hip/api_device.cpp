// Devices, their properties, peers and contexts.
#include <fmt/format.h>

#include "hip/graph.h"
#include "hip/properties.h"

using namespace crest_sim::hip;

namespace {

constexpr int kVersion = 60443484;

template <class Body>
hipError_t with_device(int ordinal, Body&& body) {
  return call([&](Machine& m) {
    DeviceState* d = m.device(ordinal);
    return d ? body(m, *d) : hipErrorInvalidDevice;
  });
}

/// Contexts are devices: handle n + 1 is the primary context of device n.
hipCtx_t context_of(int device) { return reinterpret_cast<hipCtx_t>(static_cast<intptr_t>(device) + 1); }
int device_of(Machine& m, hipCtx_t context) {
  int device = static_cast<int>(reinterpret_cast<intptr_t>(context)) - 1;
  return context && m.device(device) && context_of(device) == context ? device : -1;
}

std::string pci_id(int device) { return fmt::format("0000:{:02x}:00.0", device + 1); }

void copy_text(char* to, int length, const std::string& text) {
  size_t n = std::min(text.size(), static_cast<size_t>(length) - 1);
  std::memcpy(to, text.data(), n);
  to[n] = 0;
}

hipError_t reset(Machine& m, DeviceState& d) {
  std::unique_lock lock(m.mutex);
  m.wait_all(lock, d.ordinal);
  for (const auto& s : d.streams) {
    if (s->capture) s->capture->invalid = true;
    s->capture = nullptr;
    s->error = hipSuccess;
    s->last = nullptr;
    if (!s->is_null) s->closing = true;
  }
  std::erase_if(d.streams, [](const auto& s) { return !s->is_null && !s->running; });
  m.streams.remove_if([&](const Stream& s) { return s.device == d.ordinal; });
  m.events.remove_if([&](const Event& e) { return e.device == d.ordinal; });
  m.functions.remove_if([&](const Function& f) { return f.module->device == d.ordinal; });
  m.modules.remove_if([&](const LoadedModule& x) { return x.device == d.ordinal; });
  std::vector<uint64_t> owned;
  for (const auto& [base, buffer] : m.buffers)
    if (buffer.device == d.ordinal && !buffer.permanent) owned.push_back(base);
  for (uint64_t base : owned) static_cast<void>(release(m, reinterpret_cast<void*>(base)));
  d.visible = uint64_t(1) << d.ordinal;
  m.changed.notify_all();
  lock.unlock();
  forget_registered(d.ordinal);
  return hipSuccess;
}

}  // namespace

extern "C" {

hipError_t hipInit(unsigned flags) {
  return call([&](Machine&) { return flags ? hipErrorInvalidValue : hipSuccess; });
}
hipError_t hipDriverGetVersion(int* version) {
  return call([&](Machine&) {
    if (!version) return hipErrorInvalidValue;
    *version = kVersion;
    return hipSuccess;
  });
}
hipError_t hipRuntimeGetVersion(int* version) { return hipDriverGetVersion(version); }

hipError_t hipGetDeviceCount(int* count) {
  if (count) *count = 0;
  return call([&](Machine& m) {
    if (!count) return hipErrorInvalidValue;
    *count = static_cast<int>(m.devices.size());
    return hipSuccess;
  });
}
hipError_t hipGetDevice(int* device) {
  return call([&](Machine&) {
    if (!device) return hipErrorInvalidValue;
    *device = this_thread().device;
    return hipSuccess;
  });
}
hipError_t hipSetDevice(int device) {
  return with_device(device, [&](Machine&, DeviceState&) {
    this_thread().device = device;
    return hipSuccess;
  });
}
hipError_t hipDeviceGet(hipDevice_t* device, int ordinal) {
  return with_device(ordinal, [&](Machine&, DeviceState&) {
    if (!device) return hipErrorInvalidValue;
    *device = ordinal;
    return hipSuccess;
  });
}
hipError_t hipDeviceGetName(char* name, int length, hipDevice_t device) {
  return with_device(device, [&](Machine&, DeviceState& d) {
    if (!name || length <= 0) return hipErrorInvalidValue;
    copy_text(name, length, properties_of(d).name);
    return hipSuccess;
  });
}
hipError_t hipDeviceGetUuid(hipUUID* uuid, hipDevice_t device) {
  return with_device(device, [&](Machine&, DeviceState& d) {
    if (!uuid) return hipErrorInvalidValue;
    *uuid = properties_of(d).uuid;
    return hipSuccess;
  });
}
hipError_t hipDeviceComputeCapability(int* major, int* minor, hipDevice_t device) {
  return with_device(device, [&](Machine&, DeviceState& d) {
    if (!major || !minor) return hipErrorInvalidValue;
    *major = facts(d.target().arch).major;
    *minor = facts(d.target().arch).minor;
    return hipSuccess;
  });
}
hipError_t hipDeviceTotalMem(size_t* bytes, hipDevice_t device) {
  return with_device(device, [&](Machine&, DeviceState& d) {
    if (!bytes) return hipErrorInvalidValue;
    *bytes = d.capacity;
    return hipSuccess;
  });
}
hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t which, int device) {
  return with_device(device, [&](Machine&, DeviceState& d) {
    if (!value) return hipErrorInvalidValue;
    if (attribute_of(d, which, *value)) return hipSuccess;
    explain_once(fmt::format("hipDeviceGetAttribute: attribute {} is not supported", static_cast<int>(which)));
    return hipErrorNotSupported;
  });
}
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* properties, int device) {
  return with_device(device, [&](Machine&, DeviceState& d) {
    if (!properties) return hipErrorInvalidValue;
    *properties = properties_of(d);
    return hipSuccess;
  });
}
hipError_t hipGetDevicePropertiesR0000(hipDeviceProp_tR0000* out, int device) {
  return with_device(device, [&](Machine&, DeviceState& d) {
    if (!out) return hipErrorInvalidValue;
    const hipDeviceProp_tR0600 p = properties_of(d);
    hipDeviceProp_tR0000 o{};
    std::memcpy(o.name, p.name, sizeof o.name);
    std::memcpy(o.gcnArchName, p.gcnArchName, sizeof o.gcnArchName);
    std::memcpy(o.maxThreadsDim, p.maxThreadsDim, sizeof o.maxThreadsDim);
    std::memcpy(o.maxGridSize, p.maxGridSize, sizeof o.maxGridSize);
#define CREST_SIM_SAME(field) o.field = p.field;
    CREST_SIM_SAME(totalGlobalMem)
    CREST_SIM_SAME(sharedMemPerBlock)
    CREST_SIM_SAME(regsPerBlock)
    CREST_SIM_SAME(warpSize)
    CREST_SIM_SAME(maxThreadsPerBlock)
    CREST_SIM_SAME(clockRate)
    CREST_SIM_SAME(memoryClockRate)
    CREST_SIM_SAME(memoryBusWidth)
    CREST_SIM_SAME(totalConstMem)
    CREST_SIM_SAME(major)
    CREST_SIM_SAME(minor)
    CREST_SIM_SAME(multiProcessorCount)
    CREST_SIM_SAME(l2CacheSize)
    CREST_SIM_SAME(maxThreadsPerMultiProcessor)
    CREST_SIM_SAME(clockInstructionRate)
    CREST_SIM_SAME(arch)
    CREST_SIM_SAME(concurrentKernels)
    CREST_SIM_SAME(pciBusID)
    CREST_SIM_SAME(maxSharedMemoryPerMultiProcessor)
    CREST_SIM_SAME(canMapHostMemory)
    CREST_SIM_SAME(integrated)
    CREST_SIM_SAME(cooperativeLaunch)
    CREST_SIM_SAME(memPitch)
    CREST_SIM_SAME(textureAlignment)
    CREST_SIM_SAME(texturePitchAlignment)
    CREST_SIM_SAME(isLargeBar)
    CREST_SIM_SAME(managedMemory)
    CREST_SIM_SAME(directManagedMemAccessFromHost)
    CREST_SIM_SAME(concurrentManagedAccess)
#undef CREST_SIM_SAME
    o.gcnArch = p.major * 100 + p.minor * 10;
    *out = o;
    return hipSuccess;
  });
}
/// The name that programs built before HIP 6 import.
hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000* properties, int device) {
  return hipGetDevicePropertiesR0000(properties, device);
}

hipError_t hipDeviceGetPCIBusId(char* text, int length, int device) {
  return with_device(device, [&](Machine&, DeviceState&) {
    if (!text || length <= 0) return hipErrorInvalidValue;
    copy_text(text, length, pci_id(device));
    return hipSuccess;
  });
}
hipError_t hipDeviceGetByPCIBusId(int* device, const char* text) {
  return call([&](Machine& m) {
    if (!device || !text) return hipErrorInvalidValue;
    for (const auto& d : m.devices)
      if (pci_id(d->ordinal) == text) return *device = d->ordinal, hipSuccess;
    return hipErrorInvalidValue;
  });
}

hipError_t hipDeviceSynchronize() {
  return call([&](Machine& m) {
    std::unique_lock lock(m.mutex);
    if (hipError_t e = forbid_while_capturing(m)) return e;
    return m.wait_all(lock, m.current().ordinal);
  });
}
hipError_t hipDeviceReset() {
  return call([&](Machine& m) { return reset(m, m.current()); });
}
hipError_t hipSetDeviceFlags(unsigned flags) {
  return call([&](Machine& m) {
    if (flags & ~0x1fu) return hipErrorInvalidValue;
    m.current().flags = flags;
    return hipSuccess;
  });
}
hipError_t hipGetDeviceFlags(unsigned* flags) {
  return call([&](Machine& m) {
    if (!flags) return hipErrorInvalidValue;
    *flags = m.current().flags;
    return hipSuccess;
  });
}
hipError_t hipDeviceGetLimit(size_t* value, hipLimit_t limit) {
  return call([&](Machine& m) {
    if (!value) return hipErrorInvalidValue;
    if (limit > hipLimitMallocHeapSize) return hipErrorUnsupportedLimit;
    auto& limits = m.current().limits;
    auto it = limits.find(limit);
    *value = it != limits.end() ? it->second : limit == hipLimitStackSize ? 1024 : 8 << 20;
    return hipSuccess;
  });
}
hipError_t hipDeviceSetLimit(hipLimit_t limit, size_t value) {
  return call([&](Machine& m) {
    if (limit > hipLimitMallocHeapSize) return hipErrorUnsupportedLimit;
    if (limit == hipLimitStackSize && value > 131056) return hipErrorInvalidValue;
    std::lock_guard lock(m.mutex);
    m.current().limits[limit] = value;
    return hipSuccess;
  });
}
hipError_t hipDeviceGetCacheConfig(hipFuncCache_t* config) {
  return call([&](Machine&) { return config ? (*config = hipFuncCachePreferNone, hipSuccess) : hipErrorInvalidValue; });
}
hipError_t hipDeviceSetCacheConfig(hipFuncCache_t) {
  return call([](Machine&) { return hipSuccess; });
}
hipError_t hipDeviceGetSharedMemConfig(hipSharedMemConfig* config) {
  return call(
      [&](Machine&) { return config ? (*config = hipSharedMemBankSizeFourByte, hipSuccess) : hipErrorInvalidValue; });
}
hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig) {
  return call([](Machine&) { return hipSuccess; });
}
hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call([&](Machine&) {
    if (least) *least = 1;
    if (greatest) *greatest = -1;
    return hipSuccess;
  });
}

hipError_t hipDeviceCanAccessPeer(int* can, int device, int peer) {
  return call([&](Machine& m) {
    if (!can) return hipErrorInvalidValue;
    if (!m.device(device) || !m.device(peer)) return hipErrorInvalidDevice;
    *can = device != peer;
    return hipSuccess;
  });
}
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  return with_device(peer, [&](Machine& m, DeviceState&) {
    std::lock_guard lock(m.mutex);
    DeviceState& d = m.current();
    if (flags) return hipErrorInvalidValue;
    if (peer == d.ordinal) return hipErrorInvalidDevice;
    if (d.visible >> peer & 1) return hipErrorPeerAccessAlreadyEnabled;
    d.visible |= uint64_t(1) << peer;
    return hipSuccess;
  });
}
hipError_t hipDeviceDisablePeerAccess(int peer) {
  return with_device(peer, [&](Machine& m, DeviceState&) {
    std::lock_guard lock(m.mutex);
    DeviceState& d = m.current();
    if (peer == d.ordinal || !(d.visible >> peer & 1)) return hipErrorPeerAccessNotEnabled;
    d.visible &= ~(uint64_t(1) << peer);
    return hipSuccess;
  });
}
hipError_t hipDeviceGetP2PAttribute(int* value, hipDeviceP2PAttr which, int device, int peer) {
  return call([&](Machine& m) {
    if (!value || which > hipDevP2PAttrHipArrayAccessSupported) return hipErrorInvalidValue;
    if (!m.device(device) || !m.device(peer) || device == peer) return hipErrorInvalidDevice;
    *value = which == hipDevP2PAttrAccessSupported || which == hipDevP2PAttrNativeAtomicSupported;
    return hipSuccess;
  });
}

hipError_t hipDevicePrimaryCtxRetain(hipCtx_t* context, hipDevice_t device) {
  return with_device(device, [&](Machine&, DeviceState&) {
    if (!context) return hipErrorInvalidValue;
    *context = context_of(device);
    return hipSuccess;
  });
}
hipError_t hipDevicePrimaryCtxRelease(hipDevice_t device) {
  return with_device(device, [](Machine&, DeviceState&) { return hipSuccess; });
}
hipError_t hipDevicePrimaryCtxReset(hipDevice_t device) {
  return with_device(device, [](Machine& m, DeviceState& d) { return reset(m, d); });
}
hipError_t hipDevicePrimaryCtxGetState(hipDevice_t device, unsigned* flags, int* active) {
  return with_device(device, [&](Machine&, DeviceState& d) {
    if (flags) *flags = d.flags;
    if (active) *active = this_thread().device == device;
    return hipSuccess;
  });
}
hipError_t hipDevicePrimaryCtxSetFlags(hipDevice_t device, unsigned flags) {
  return with_device(device, [&](Machine&, DeviceState& d) {
    if (flags & ~0x1fu) return hipErrorInvalidValue;
    d.flags = flags;
    return hipSuccess;
  });
}
hipError_t hipCtxCreate(hipCtx_t* context, unsigned, hipDevice_t device) {
  return with_device(device, [&](Machine&, DeviceState&) {
    if (!context) return hipErrorInvalidValue;
    ThreadState& t = this_thread();
    t.contexts.push_back(t.device);
    t.device = device;
    *context = context_of(device);
    return hipSuccess;
  });
}
hipError_t hipCtxDestroy(hipCtx_t context) {
  return call([&](Machine& m) {
    if (device_of(m, context) < 0) return hipErrorInvalidContext;
    ThreadState& t = this_thread();
    if (!t.contexts.empty() && context_of(t.device) == context) {
      t.device = t.contexts.back();
      t.contexts.pop_back();
    }
    return hipSuccess;
  });
}
hipError_t hipCtxGetCurrent(hipCtx_t* context) {
  return call([&](Machine&) {
    if (!context) return hipErrorInvalidValue;
    *context = context_of(this_thread().device);
    return hipSuccess;
  });
}
hipError_t hipCtxSetCurrent(hipCtx_t context) {
  return call([&](Machine& m) {
    int device = context ? device_of(m, context) : 0;
    if (device < 0) return hipErrorInvalidContext;
    this_thread().device = device;
    return hipSuccess;
  });
}
hipError_t hipCtxPushCurrent(hipCtx_t context) {
  return call([&](Machine& m) {
    int device = device_of(m, context);
    if (device < 0) return hipErrorInvalidContext;
    this_thread().contexts.push_back(this_thread().device);
    this_thread().device = device;
    return hipSuccess;
  });
}
hipError_t hipCtxPopCurrent(hipCtx_t* context) {
  return call([&](Machine&) {
    ThreadState& t = this_thread();
    if (t.contexts.empty()) return hipErrorInvalidContext;
    if (context) *context = context_of(t.device);
    t.device = t.contexts.back();
    t.contexts.pop_back();
    return hipSuccess;
  });
}
hipError_t hipCtxGetDevice(hipDevice_t* device) { return hipGetDevice(device); }
hipError_t hipCtxSynchronize() { return hipDeviceSynchronize(); }
}
