// Allocation, pinning, pools and what a pointer is.
#include <fmt/format.h>

#include "hip/graph.h"

using namespace crest_sim::hip;
using crest_sim::AllocationKind;

namespace {

hipError_t allocate(Machine& m, void** out, size_t bytes, hipMemoryType type, unsigned flags) {
  if (!out) return hipErrorInvalidValue;
  *out = nullptr;
  std::lock_guard lock(m.mutex);
  if (hipError_t e = forbid_while_capturing(m)) return e;
  if (bytes == 0) return hipSuccess;
  DeviceState& d = m.current();
  bool counted = type != hipMemoryTypeHost;
  if (counted && bytes > d.capacity - std::min(d.capacity, d.used)) return hipErrorOutOfMemory;
  bool own = type == hipMemoryTypeDevice;
  auto base = m.memory->allocate(bytes, own ? AllocationKind::kDevice : AllocationKind::kHost,
                                 own                            ? fmt::format("(device {})", d.ordinal)
                                 : type == hipMemoryTypeManaged ? "(managed)"
                                                                : "(pinned host)",
                                 d.ordinal);
  if (!base) {
    explain_once(base.error());
    return hipErrorOutOfMemory;
  }
  if (counted) d.used += bytes, d.peak = std::max(d.peak, d.used);
  m.buffers[*base] = {bytes, d.ordinal, type, flags, false, false};
  if (own) m.note_unwritten(*base, bytes);
  *out = reinterpret_cast<void*>(*base);
  return hipSuccess;
}

/// hipFree waits for the device, so that nothing it still runs loses its memory.
hipError_t wait_and_release(Machine& m, void* pointer, bool host) {
  std::unique_lock lock(m.mutex);
  if (hipError_t e = forbid_while_capturing(m)) return e;
  if (!pointer) return hipSuccess;
  auto it = m.buffers.find(reinterpret_cast<uint64_t>(pointer));
  if (it == m.buffers.end()) return release(m, pointer);
  if ((it->second.type == hipMemoryTypeHost) != host || it->second.attached) return hipErrorInvalidValue;
  for (const auto& d : m.devices) m.wait_all(lock, d->ordinal);
  return release(m, pointer);
}

std::map<uint64_t, Buffer>::iterator find_buffer(Machine& m, const void* pointer) {
  uint64_t at = reinterpret_cast<uint64_t>(pointer);
  auto it = m.buffers.upper_bound(at);
  if (it == m.buffers.begin()) return m.buffers.end();
  --it;
  return at - it->first < it->second.bytes ? it : m.buffers.end();
}

hipError_t describe(Machine& m, const void* pointer, hipPointerAttribute_t& out) {
  out = {};
  if (auto it = find_buffer(m, pointer); it != m.buffers.end()) {
    const Buffer& b = it->second;
    out.type = b.type;
    out.device = b.device;
    out.devicePointer = const_cast<void*>(pointer);
    if (b.type != hipMemoryTypeDevice) out.hostPointer = const_cast<void*>(pointer);
    out.isManaged = b.type == hipMemoryTypeManaged;
    out.allocationFlags = b.flags;
    return hipSuccess;
  }
  auto table = m.memory->table();
  const crest_sim::Allocation* a = table->find(reinterpret_cast<uint64_t>(pointer), 1);
  if (!a) {
    out.type = hipMemoryTypeUnregistered;
    out.device = -1;
    return hipErrorInvalidValue;
  }
  bool pinned = a->kind == AllocationKind::kHostRegistered;
  out.type = pinned ? hipMemoryTypeHost : hipMemoryTypeDevice;
  out.device = pinned ? this_thread().device : a->device;
  out.devicePointer = const_cast<void*>(pointer);
  if (pinned) out.hostPointer = const_cast<void*>(pointer);
  return hipSuccess;
}

hipError_t pointer_attribute(Machine& m, void* value, hipPointer_attribute which, const void* pointer) {
  hipPointerAttribute_t a;
  if (hipError_t e = describe(m, pointer, a)) return e;
  auto table = m.memory->table();
  const crest_sim::Allocation* range = table->find(reinterpret_cast<uint64_t>(pointer), 1);
  if (!range) return hipErrorInvalidValue;
  auto put = [&](auto x) {
    std::memcpy(value, &x, sizeof x);
    return hipSuccess;
  };
  switch (which) {
    case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(static_cast<unsigned>(a.type));
    case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put(a.devicePointer);
    case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
      return a.hostPointer ? put(a.hostPointer) : hipErrorInvalidValue;
    case HIP_POINTER_ATTRIBUTE_BUFFER_ID:
      return put(static_cast<unsigned long long>(range->id));
    case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
      return put(static_cast<bool>(a.isManaged));
    case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put(a.device);
    case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put(range->base);
    case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(static_cast<size_t>(range->bytes));
    case HIP_POINTER_ATTRIBUTE_MAPPED:
      return put(true);
    default:
      return hipErrorNotSupported;
  }
}

/// Each device has one pool, whose handle is the device's state.
DeviceState* pool_device(Machine& m, hipMemPool_t pool) {
  for (const auto& d : m.devices)
    if (reinterpret_cast<hipMemPool_t>(d.get()) == pool) return d.get();
  return nullptr;
}

constexpr size_t kPitch = 256;

}  // namespace

extern "C" {

hipError_t hipMalloc(void** pointer, size_t bytes) {
  return call([&](Machine& m) { return allocate(m, pointer, bytes, hipMemoryTypeDevice, 0); });
}
hipError_t hipExtMallocWithFlags(void** pointer, size_t bytes, unsigned flags) {
  return call([&](Machine& m) { return allocate(m, pointer, bytes, hipMemoryTypeDevice, flags); });
}
hipError_t hipMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  return call([&](Machine& m) {
    if (flags != hipMemAttachGlobal && flags != hipMemAttachHost) return hipErrorInvalidValue;
    return allocate(m, pointer, bytes, hipMemoryTypeManaged, flags);
  });
}
hipError_t hipMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return call([&](Machine& m) {
    if (!pitch || width > 0x7fffffff) return hipErrorInvalidValue;
    *pitch = (width + kPitch - 1) / kPitch * kPitch;
    if (height && *pitch > ~size_t(0) / height) return hipErrorOutOfMemory;
    return allocate(m, pointer, *pitch * height, hipMemoryTypeDevice, 0);
  });
}
hipError_t hipMalloc3D(hipPitchedPtr* pitched, hipExtent extent) {
  return call([&](Machine& m) {
    if (!pitched || extent.width > 0x7fffffff || extent.height > 0x7fffffff || extent.depth > 0x7fffffff)
      return hipErrorInvalidValue;
    size_t pitch = (extent.width + kPitch - 1) / kPitch * kPitch, rows = extent.height * extent.depth;
    if (rows && pitch > ~size_t(0) / rows) return hipErrorOutOfMemory;
    *pitched = {nullptr, pitch, extent.width, extent.height};
    return allocate(m, &pitched->ptr, pitch * rows, hipMemoryTypeDevice, 0);
  });
}
hipError_t hipFree(void* pointer) {
  return call([&](Machine& m) { return wait_and_release(m, pointer, false); });
}

hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned flags) {
  return call([&](Machine& m) { return allocate(m, pointer, bytes, hipMemoryTypeHost, flags); });
}
hipError_t hipHostAlloc(void** pointer, size_t bytes, unsigned flags) { return hipHostMalloc(pointer, bytes, flags); }
hipError_t hipMallocHost(void** pointer, size_t bytes) { return hipHostMalloc(pointer, bytes, 0); }
hipError_t hipMemAllocHost(void** pointer, size_t bytes) { return hipHostMalloc(pointer, bytes, 0); }
hipError_t hipHostFree(void* pointer) {
  return call([&](Machine& m) { return wait_and_release(m, pointer, true); });
}
hipError_t hipFreeHost(void* pointer) { return hipHostFree(pointer); }

hipError_t hipHostRegister(void* pointer, size_t bytes, unsigned) {
  return call([&](Machine& m) {
    if (!pointer || !bytes || bytes > ~reinterpret_cast<uint64_t>(pointer)) return hipErrorInvalidValue;
    auto status = m.memory->register_host(pointer, bytes, "(registered host)");
    if (status) return hipSuccess;
    explain(status.error());
    return hipErrorHostMemoryAlreadyRegistered;
  });
}
hipError_t hipHostUnregister(void* pointer) {
  return call([&](Machine& m) {
    if (!pointer) return hipErrorInvalidValue;
    std::unique_lock lock(m.mutex);
    for (const auto& d : m.devices) m.wait_all(lock, d->ordinal);
    return m.memory->unregister_host(pointer) ? hipSuccess : hipErrorHostMemoryNotRegistered;
  });
}
hipError_t hipHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned flags) {
  return call([&](Machine& m) {
    if (!device_pointer || !host_pointer || flags) return hipErrorInvalidValue;
    std::lock_guard lock(m.mutex);
    hipPointerAttribute_t a;
    if (hipError_t e = describe(m, host_pointer, a)) return e;
    if (!a.hostPointer) return hipErrorInvalidValue;
    *device_pointer = host_pointer;
    return hipSuccess;
  });
}
hipError_t hipHostGetFlags(unsigned* flags, void* pointer) {
  return call([&](Machine& m) {
    if (!flags || !pointer) return hipErrorInvalidValue;
    std::lock_guard lock(m.mutex);
    auto it = find_buffer(m, pointer);
    if (it == m.buffers.end() || it->second.type != hipMemoryTypeHost) return hipErrorInvalidValue;
    *flags = it->second.flags;
    return hipSuccess;
  });
}

hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return call([&](Machine& m) {
    if (!free_bytes || !total_bytes) return hipErrorInvalidValue;
    std::lock_guard lock(m.mutex);
    const DeviceState& d = m.current();
    *total_bytes = d.capacity;
    *free_bytes = d.capacity - std::min(d.capacity, d.used);
    return hipSuccess;
  });
}
hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, size_t* bytes, hipDeviceptr_t pointer) {
  return call([&](Machine& m) {
    auto table = m.memory->table();
    const crest_sim::Allocation* a = table->find(reinterpret_cast<uint64_t>(pointer), 1);
    if (!a) return hipErrorNotFound;
    if (base) *base = reinterpret_cast<void*>(a->base);
    if (bytes) *bytes = a->bytes;
    return hipSuccess;
  });
}
hipError_t hipMemPtrGetInfo(void* pointer, size_t* bytes) {
  return call([&](Machine& m) {
    if (!pointer || !bytes) return hipErrorInvalidValue;
    auto table = m.memory->table();
    const crest_sim::Allocation* a = table->find(reinterpret_cast<uint64_t>(pointer), 1);
    if (!a || a->base != reinterpret_cast<uint64_t>(pointer)) return hipErrorInvalidValue;
    *bytes = a->bytes;
    return hipSuccess;
  });
}
hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer) {
  return call([&](Machine& m) {
    if (!attributes || !pointer) return hipErrorInvalidValue;
    std::lock_guard lock(m.mutex);
    hipError_t e = describe(m, pointer, *attributes);
    // Since HIP 6 ordinary host memory is not an error here; its type says what it is.
    return e && attributes->type == hipMemoryTypeUnregistered ? hipSuccess : e;
  });
}
hipError_t hipPointerGetAttribute(void* value, hipPointer_attribute which, hipDeviceptr_t pointer) {
  return call([&](Machine& m) {
    if (!value || !pointer) return hipErrorInvalidValue;
    std::lock_guard lock(m.mutex);
    return pointer_attribute(m, value, which, pointer);
  });
}
hipError_t hipDrvPointerGetAttributes(unsigned count, hipPointer_attribute* which, void** values,
                                      hipDeviceptr_t pointer) {
  return call([&](Machine& m) {
    if (!count || !which || !values) return hipErrorInvalidValue;
    std::lock_guard lock(m.mutex);
    for (unsigned i = 0; i < count; ++i) {
      if (!values[i]) return hipErrorInvalidValue;
      if (hipError_t e = pointer_attribute(m, values[i], which[i], pointer)) return e;
    }
    return hipSuccess;
  });
}

/// Nothing moves: all memory is the host's. The arguments are checked all the same.
hipError_t hipMemPrefetchAsync(const void* pointer, size_t bytes, int device, hipStream_t stream) {
  return call([&](Machine& m) {
    std::unique_lock lock(m.mutex);
    if (device != -1 && !m.device(device)) return hipErrorInvalidDevice;
    if (!bytes || !m.memory->table()->find(reinterpret_cast<uint64_t>(pointer), bytes)) return hipErrorInvalidValue;
    return enqueue(m, lock, m.stream(stream), EmptyOperation{});
  });
}

hipError_t hipMallocAsync(void** pointer, size_t bytes, hipStream_t stream) {
  return call([&](Machine& m) {
    {
      std::lock_guard lock(m.mutex);
      auto s = m.stream(stream);
      if (!s) return hipErrorInvalidHandle;
      if (s->capture) {
        s->capture->invalid = true;
        return hipErrorStreamCaptureUnsupported;
      }
    }
    return allocate(m, pointer, bytes, hipMemoryTypeDevice, 0);
  });
}
hipError_t hipMallocFromPoolAsync(void** pointer, size_t bytes, hipMemPool_t pool, hipStream_t stream) {
  return call(
      [&](Machine& m) { return pool_device(m, pool) ? hipMallocAsync(pointer, bytes, stream) : hipErrorInvalidValue; });
}
hipError_t hipFreeAsync(void* pointer, hipStream_t stream) {
  return call([&](Machine& m) {
    std::unique_lock lock(m.mutex);
    if (!pointer) return hipErrorInvalidValue;
    auto it = m.buffers.find(reinterpret_cast<uint64_t>(pointer));
    if (it == m.buffers.end() || it->second.type != hipMemoryTypeDevice) return hipErrorInvalidValue;
    return enqueue(m, lock, m.stream(stream), FreeOperation{pointer});
  });
}
hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t* pool, int device) {
  return call([&](Machine& m) {
    if (!pool) return hipErrorInvalidValue;
    DeviceState* d = m.device(device);
    if (!d) return hipErrorInvalidDevice;
    *pool = reinterpret_cast<hipMemPool_t>(d);
    return hipSuccess;
  });
}
hipError_t hipDeviceGetMemPool(hipMemPool_t* pool, int device) { return hipDeviceGetDefaultMemPool(pool, device); }
hipError_t hipDeviceSetMemPool(int device, hipMemPool_t pool) {
  return call([&](Machine& m) {
    if (!m.device(device)) return hipErrorInvalidDevice;
    return pool_device(m, pool) == m.device(device) ? hipSuccess : hipErrorInvalidValue;
  });
}
/// Freed memory is never held back, so there is nothing to trim.
hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t) {
  return call([&](Machine& m) { return pool_device(m, pool) ? hipSuccess : hipErrorInvalidValue; });
}
hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr which, void* value) {
  return call([&](Machine& m) {
    DeviceState* d = pool_device(m, pool);
    if (!d || !value) return hipErrorInvalidValue;
    std::lock_guard lock(m.mutex);
    if (which == hipMemPoolAttrReleaseThreshold) return std::memcpy(&d->release_threshold, value, 8), hipSuccess;
    if (which == hipMemPoolAttrUsedMemHigh) return d->peak = d->used, hipSuccess;
    return which >= 1 && which <= 3 ? hipSuccess : hipErrorInvalidValue;
  });
}
hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr which, void* value) {
  return call([&](Machine& m) {
    DeviceState* d = pool_device(m, pool);
    if (!d || !value) return hipErrorInvalidValue;
    std::lock_guard lock(m.mutex);
    auto put = [&](auto x) { return std::memcpy(value, &x, sizeof x), hipSuccess; };
    if (which >= 1 && which <= 3) return put(int(1));
    if (which == hipMemPoolAttrReleaseThreshold) return put(d->release_threshold);
    if (which == hipMemPoolAttrReservedMemCurrent || which == hipMemPoolAttrUsedMemCurrent) return put(d->used);
    if (which == hipMemPoolAttrReservedMemHigh || which == hipMemPoolAttrUsedMemHigh) return put(d->peak);
    return hipErrorInvalidValue;
  });
}
}
