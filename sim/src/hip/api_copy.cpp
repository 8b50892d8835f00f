// Copies and fills. Copies that name ordinary (pageable) host memory are done when the call returns, as HIP's are.
#include "hip/graph.h"
#include "hip/registered.h"

using namespace crest_sim::hip;

namespace {

CopyOperation rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                   hipMemcpyKind kind) {
  CopyOperation c;
  c.to = static_cast<uint8_t*>(to);
  c.from = static_cast<const uint8_t*>(from);
  c.to_pitch = to_pitch;
  c.from_pitch = from_pitch;
  c.width = width;
  c.height = height;
  c.kind = kind;
  return c;
}
CopyOperation line(void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  return rows(to, bytes, from, bytes, bytes, 1, kind);
}

hipError_t now(Machine& m, Operation operation, hipStream_t stream = nullptr) {
  std::unique_lock lock(m.mutex);
  auto s = m.stream(stream);
  lock.unlock();
  return s ? perform(m, s, std::move(operation)) : hipErrorInvalidHandle;
}

hipError_t later(Machine& m, CopyOperation c, hipStream_t stream) {
  std::unique_lock lock(m.mutex);
  bool pageable = !is_known_memory(m, c.to) || !is_known_memory(m, c.from);
  Mark mark;
  if (hipError_t e = enqueue(m, lock, m.stream(stream), std::move(c), &mark)) return e;
  return pageable ? m.wait(lock, mark) : hipSuccess;
}

hipError_t fill_later(Machine& m, const FillOperation& f, hipStream_t stream) {
  std::unique_lock lock(m.mutex);
  return enqueue(m, lock, m.stream(stream), f);
}

FillOperation fill(void* to, uint32_t value, uint32_t element_bytes, size_t count) {
  return {static_cast<uint8_t*>(to), value, element_bytes, count, 1, count * element_bytes};
}

/// Array sources and destinations (textures) do not exist here.
hipError_t from_parameters(const hipMemcpy3DParms* p, CopyOperation& c) {
  if (!p) return hipErrorInvalidValue;
  if (p->srcArray || p->dstArray) {
    explain_once("hipMemcpy3D: arrays are not supported");
    return hipErrorNotSupported;
  }
  auto at = [](const hipPitchedPtr& base, const hipPos& pos) {
    return static_cast<uint8_t*>(base.ptr) + (pos.z * base.ysize + pos.y) * base.pitch + pos.x;
  };
  if (!p->srcPtr.ptr || !p->dstPtr.ptr) return hipErrorInvalidValue;
  c = rows(at(p->dstPtr, p->dstPos), p->dstPtr.pitch, at(p->srcPtr, p->srcPos), p->srcPtr.pitch, p->extent.width,
           p->extent.height, p->kind);
  c.depth = p->extent.depth;
  c.to_slice = p->dstPtr.pitch * p->dstPtr.ysize;
  c.from_slice = p->srcPtr.pitch * p->srcPtr.ysize;
  return hipSuccess;
}

/// The part of a registered variable that a symbol copy names.
hipError_t symbol_range(Machine& m, const void* symbol, size_t bytes, size_t offset, uint8_t*& out) {
  void* base = nullptr;
  size_t size = 0;
  if (hipError_t e = find_variable(m, symbol, &base, &size)) return e;
  if (offset > size || bytes > size - offset) return hipErrorInvalidValue;
  out = static_cast<uint8_t*>(base) + offset;
  return hipSuccess;
}

bool to_symbol_kind(hipMemcpyKind k) {
  return k == hipMemcpyHostToDevice || k == hipMemcpyDeviceToDevice || k == hipMemcpyDefault;
}
bool from_symbol_kind(hipMemcpyKind k) {
  return k == hipMemcpyDeviceToHost || k == hipMemcpyDeviceToDevice || k == hipMemcpyDefault;
}

}  // namespace

extern "C" {

hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  return call([&](Machine& m) { return now(m, line(to, from, bytes, kind)); });
}
hipError_t hipMemcpyWithStream(void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  return call([&](Machine& m) { return now(m, line(to, from, bytes, kind), stream); });
}
hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  return call([&](Machine& m) { return later(m, line(to, from, bytes, kind), stream); });
}
hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void* from, size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyHostToDevice);
}
hipError_t hipMemcpyDtoH(void* to, hipDeviceptr_t from, size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyDeviceToHost);
}
hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyDeviceToDevice);
}
hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void* from, size_t bytes, hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, hipMemcpyHostToDevice, stream);
}
hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, size_t bytes, hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToHost, stream);
}
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream) {
  return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToDevice, stream);
}

/// Ordered after everything that either device has been given.
hipError_t hipMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  return call([&](Machine& m) {
    if (!m.device(to_device) || !m.device(from_device)) return hipErrorInvalidDevice;
    {
      std::unique_lock lock(m.mutex);
      if (hipError_t e = forbid_while_capturing(m)) return e;
      for (int device : {to_device, from_device})
        if (hipError_t e = m.wait_all(lock, device)) return e;
    }
    return now(m, line(to, from, bytes, hipMemcpyDeviceToDevice));
  });
}
hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                              hipStream_t stream) {
  return call([&](Machine& m) {
    if (!m.device(to_device) || !m.device(from_device)) return hipErrorInvalidDevice;
    return later(m, line(to, from, bytes, hipMemcpyDeviceToDevice), stream);
  });
}

hipError_t hipMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                       hipMemcpyKind kind) {
  return call([&](Machine& m) { return now(m, rows(to, to_pitch, from, from_pitch, width, height, kind)); });
}
hipError_t hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                            hipMemcpyKind kind, hipStream_t stream) {
  return call([&](Machine& m) { return later(m, rows(to, to_pitch, from, from_pitch, width, height, kind), stream); });
}
hipError_t hipMemcpy3D(const hipMemcpy3DParms* parameters) {
  return call([&](Machine& m) {
    CopyOperation c;
    if (hipError_t e = from_parameters(parameters, c)) return e;
    return now(m, c);
  });
}
hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms* parameters, hipStream_t stream) {
  return call([&](Machine& m) {
    CopyOperation c;
    if (hipError_t e = from_parameters(parameters, c)) return e;
    return later(m, c, stream);
  });
}

hipError_t hipMemset(void* to, int value, size_t bytes) {
  return call([&](Machine& m) { return now(m, fill(to, static_cast<uint8_t>(value), 1, bytes)); });
}
hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t stream) {
  return call([&](Machine& m) { return fill_later(m, fill(to, static_cast<uint8_t>(value), 1, bytes), stream); });
}
hipError_t hipMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return call([&](Machine& m) {
    return now(m, FillOperation{static_cast<uint8_t*>(to), static_cast<uint8_t>(value), 1, width, height, pitch});
  });
}
hipError_t hipMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, hipStream_t stream) {
  return call([&](Machine& m) {
    return fill_later(m, FillOperation{static_cast<uint8_t*>(to), static_cast<uint8_t>(value), 1, width, height, pitch},
                      stream);
  });
}
hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count) {
  return call([&](Machine& m) { return now(m, fill(to, value, 1, count)); });
}
hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream) {
  return call([&](Machine& m) { return fill_later(m, fill(to, value, 1, count), stream); });
}
hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, size_t count) {
  return call([&](Machine& m) { return now(m, fill(to, value, 2, count)); });
}
hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, size_t count, hipStream_t stream) {
  return call([&](Machine& m) { return fill_later(m, fill(to, value, 2, count), stream); });
}
hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
  return call([&](Machine& m) { return now(m, fill(to, static_cast<uint32_t>(value), 4, count)); });
}
hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream) {
  return call([&](Machine& m) { return fill_later(m, fill(to, static_cast<uint32_t>(value), 4, count), stream); });
}

hipError_t hipGetSymbolAddress(void** pointer, const void* symbol) {
  return call([&](Machine& m) { return pointer ? find_variable(m, symbol, pointer, nullptr) : hipErrorInvalidValue; });
}
hipError_t hipGetSymbolSize(size_t* bytes, const void* symbol) {
  return call([&](Machine& m) { return bytes ? find_variable(m, symbol, nullptr, bytes) : hipErrorInvalidValue; });
}
hipError_t hipMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, hipMemcpyKind kind) {
  return call([&](Machine& m) {
    uint8_t* to = nullptr;
    if (!to_symbol_kind(kind)) return hipErrorInvalidMemcpyDirection;
    if (hipError_t e = symbol_range(m, symbol, bytes, offset, to)) return e;
    return now(m, line(to, from, bytes, kind));
  });
}
hipError_t hipMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset, hipMemcpyKind kind,
                                  hipStream_t stream) {
  return call([&](Machine& m) {
    uint8_t* to = nullptr;
    if (!to_symbol_kind(kind)) return hipErrorInvalidMemcpyDirection;
    if (hipError_t e = symbol_range(m, symbol, bytes, offset, to)) return e;
    return later(m, line(to, from, bytes, kind), stream);
  });
}
hipError_t hipMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, hipMemcpyKind kind) {
  return call([&](Machine& m) {
    uint8_t* from = nullptr;
    if (!from_symbol_kind(kind)) return hipErrorInvalidMemcpyDirection;
    if (hipError_t e = symbol_range(m, symbol, bytes, offset, from)) return e;
    return now(m, line(to, from, bytes, kind));
  });
}
hipError_t hipMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset, hipMemcpyKind kind,
                                    hipStream_t stream) {
  return call([&](Machine& m) {
    uint8_t* from = nullptr;
    if (!from_symbol_kind(kind)) return hipErrorInvalidMemcpyDirection;
    if (hipError_t e = symbol_range(m, symbol, bytes, offset, from)) return e;
    return later(m, line(to, from, bytes, kind), stream);
  });
}
}
