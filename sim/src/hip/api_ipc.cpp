// Memory handles between processes. The handle names the exporting process and the descriptor of the shared memory; the
// other process opens it through /proc, which the system allows to the same user only.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hip/graph.h"

using namespace crest_sim::hip;

namespace {

struct Handle {
  char magic[8];
  int32_t process;
  int32_t descriptor;
  uint64_t device, inode;  ///< of the shared memory: a descriptor number may be used again
  uint64_t bytes;          ///< from the first shared page to the end of the allocation
  uint64_t offset;         ///< of the pointer in them
};
static_assert(sizeof(Handle) <= HIP_IPC_HANDLE_SIZE);
constexpr char kMagic[8] = {'c', 'r', 's', 't', 'i', 'p', 'c', '1'};

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

}  // namespace

extern "C" {

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t* out, void* pointer) {
  return call([&](Machine& m) {
    if (!out || !pointer) return hipErrorInvalidValue;
    std::unique_lock lock(m.mutex);
    uint64_t at = reinterpret_cast<uint64_t>(pointer);
    auto it = m.buffers.upper_bound(at);
    if (it == m.buffers.begin()) return hipErrorInvalidValue;
    --it;
    if (at - it->first >= it->second.bytes || it->second.type != hipMemoryTypeDevice || it->second.attached)
      return hipErrorInvalidValue;
    uint64_t base = it->first, in_page = base % 4096, bytes = in_page + it->second.bytes;
    for (const auto& d : m.devices) m.wait_all(lock, d->ordinal);
    auto descriptor = m.memory->share(base);
    struct stat info{};
    if (!descriptor || fstat(*descriptor, &info) != 0) {
      explain(descriptor ? "hipIpcGetMemHandle: fstat failed" : descriptor.error());
      return hipErrorOperatingSystem;
    }
    Handle h{};
    std::memcpy(h.magic, kMagic, sizeof kMagic);
    h.process = getpid();
    h.descriptor = *descriptor;
    h.device = info.st_dev;
    h.inode = info.st_ino;
    h.bytes = bytes;
    h.offset = in_page + (at - base);
    *out = {};
    std::memcpy(out->reserved, &h, sizeof h);
    return hipSuccess;
  });
}

hipError_t hipIpcOpenMemHandle(void** pointer, hipIpcMemHandle_t handle, unsigned flags) {
  return call([&](Machine& m) {
    if (!pointer || flags & ~unsigned(hipIpcMemLazyEnablePeerAccess)) return hipErrorInvalidValue;
    Handle h;
    std::memcpy(&h, handle.reserved, sizeof h);
    if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0) return hipErrorInvalidValue;
    if (h.process == getpid()) return hipErrorInvalidContext;
    Descriptor shared(open(fmt::format("/proc/{}/fd/{}", h.process, h.descriptor).c_str(), O_RDWR | O_CLOEXEC));
    struct stat info{};
    if (shared.get() < 0 || fstat(shared.get(), &info) != 0 || info.st_dev != h.device || info.st_ino != h.inode ||
        h.bytes == 0 || h.offset >= h.bytes || static_cast<uint64_t>(info.st_size) < h.bytes) {
      explain(fmt::format("hipIpcOpenMemHandle: process {} no longer shares this memory", h.process));
      return hipErrorMapFailed;
    }
    std::lock_guard lock(m.mutex);
    int device = m.current().ordinal;
    auto base = m.memory->attach(shared.get(), h.bytes, fmt::format("(of process {})", h.process), device);
    if (!base) {
      explain(base.error());
      return hipErrorMapFailed;
    }
    m.buffers[*base] = {h.bytes, device, hipMemoryTypeDevice, 0, true, false};
    *pointer = reinterpret_cast<void*>(*base + h.offset);
    return hipSuccess;
  });
}

hipError_t hipIpcCloseMemHandle(void* pointer) {
  return call([&](Machine& m) {
    std::unique_lock lock(m.mutex);
    uint64_t at = reinterpret_cast<uint64_t>(pointer);
    auto it = m.buffers.upper_bound(at);
    if (it == m.buffers.begin()) return hipErrorInvalidValue;
    --it;
    if (!it->second.attached || at - it->first >= it->second.bytes) return hipErrorInvalidValue;
    uint64_t base = it->first;
    for (const auto& d : m.devices) m.wait_all(lock, d->ordinal);
    m.buffers.erase(base);
    return m.memory->free(base) ? hipSuccess : hipErrorInvalidValue;
  });
}
}
