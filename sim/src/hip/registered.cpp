#include "hip/registered.h"

#include <elf.h>
#include <fmt/format.h>

namespace crest_sim::hip {
namespace {

struct Binary {
  const void* image = nullptr;
  std::map<int, std::shared_ptr<LoadedModule>> loaded;  ///< by device
};
struct Variable {
  Binary* binary;
  std::string name;
  size_t bytes;
  void* managed = nullptr;  ///< storage of a managed variable
};
struct Managed {
  Binary* binary;
  void** pointer;
  std::string name;
};

/// Filled before main(), when the machine must not be started yet.
struct Registry {
  std::mutex mutex;
  std::map<void**, std::unique_ptr<Binary>> binaries;
  std::map<const void*, std::pair<Binary*, std::string>> functions;
  std::map<const void*, Variable> variables;
  std::vector<Managed> managed;
};
Registry& registry() {
  static auto* r = new Registry;
  return *r;
}

struct Wrapper {  ///< what the compiler passes to __hipRegisterFatBinary
  uint32_t magic, version;
  const void* binary;
  const void* unused;
};
constexpr uint32_t kWrapperMagic = 0x48495046;  // "HIPF"

template <class T>
T read(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

size_t elf_bytes(const uint8_t* p) {
  auto h = read<Elf64_Ehdr>(p);
  size_t end = std::max<size_t>(sizeof h, h.e_phoff + size_t(h.e_phnum) * h.e_phentsize);
  end = std::max<size_t>(end, h.e_shoff + size_t(h.e_shnum) * h.e_shentsize);
  if (h.e_phentsize == sizeof(Elf64_Phdr))
    for (unsigned i = 0; i < h.e_phnum; ++i) {
      auto s = read<Elf64_Phdr>(p + h.e_phoff + i * sizeof(Elf64_Phdr));
      end = std::max<size_t>(end, s.p_offset + s.p_filesz);
    }
  if (h.e_shentsize == sizeof(Elf64_Shdr))
    for (unsigned i = 0; i < h.e_shnum; ++i) {
      auto s = read<Elf64_Shdr>(p + h.e_shoff + i * sizeof(Elf64_Shdr));
      if (s.sh_type != SHT_NOBITS) end = std::max<size_t>(end, s.sh_offset + s.sh_size);
    }
  return end;
}

size_t bundle_bytes(const uint8_t* p) {
  constexpr size_t kMagic = 24, kMaxEntries = 4096;
  uint64_t count = std::min<uint64_t>(read<uint64_t>(p + kMagic), kMaxEntries);
  size_t at = kMagic + 8, end = at;
  for (uint64_t i = 0; i < count; ++i) {
    end = std::max<size_t>(end, read<uint64_t>(p + at) + read<uint64_t>(p + at + 8));
    at += 24 + read<uint64_t>(p + at + 16);
    end = std::max(end, at);
  }
  return end;
}

/// Bytes of one zstd frame (RFC 8878): version 1 of compressed bundles does not say how long it is.
size_t zstd_frame_bytes(const uint8_t* p) {
  constexpr size_t kId[4] = {0, 1, 2, 4}, kContent[4] = {0, 2, 4, 8};
  if (read<uint32_t>(p) != 0xfd2fb528) return 0;
  uint8_t d = p[4];
  bool single = d & 0x20;
  size_t at = 5 + (single ? 0 : 1) + kId[d & 3] + (single && d >> 6 == 0 ? 1 : kContent[d >> 6]);
  while (true) {
    uint32_t header = read<uint32_t>(p + at) & 0xffffff;
    bool repeated = (header >> 1 & 3) == 1;
    at += 3 + (repeated ? 1 : header >> 3);
    if (header & 1) break;
  }
  return at + (d & 4 ? 4 : 0);
}

size_t compressed_bytes(const uint8_t* p) {
  uint16_t version = read<uint16_t>(p + 4), method = read<uint16_t>(p + 6);
  if (version == 2) return read<uint32_t>(p + 8);
  if (version != 1) return read<uint64_t>(p + 8);
  if (method == 1) return 20 + zstd_frame_bytes(p + 20);
  // A zlib stream ends itself; this is the most that it can take.
  uint32_t plain = read<uint32_t>(p + 8);
  return 20 + plain + plain / 1000 + 64;
}

/// Managed variables: one copy for all devices; the module's own variable holds its address.
void give_managed(const Binary* binary, const LoadedModule& module) {
  for (const Managed& v : registry().managed) {
    if (v.binary != binary) continue;
    uint64_t slot = module.code->symbol_address(v.name);
    if (slot) std::memcpy(reinterpret_cast<void*>(slot), v.pointer, sizeof(void*));
  }
}

/// The binary's module on the current device, loaded on first use.
hipError_t module_of(Machine& machine, Binary* binary, std::shared_ptr<LoadedModule>& out) {
  int device = this_thread().device;
  std::shared_ptr<LoadedModule>& slot = binary->loaded[device];
  if (!slot) {
    size_t bytes = image_bytes(binary->image);
    if (!bytes) return hipErrorInvalidImage;
    std::span<const uint8_t> image(static_cast<const uint8_t*>(binary->image), bytes);
    if (hipError_t e = load_module(machine, device, image, slot)) return e;
    give_managed(binary, *slot);
  }
  out = slot;
  return hipSuccess;
}

}  // namespace

size_t image_bytes(const void* image) {
  auto* p = static_cast<const uint8_t*>(image);
  if (!p) return 0;
  if (std::memcmp(p, ELFMAG, 4) == 0) return elf_bytes(p);
  if (std::memcmp(p, "CCOB", 4) == 0) return compressed_bytes(p);
  if (std::strncmp(reinterpret_cast<const char*>(p), "__CLANG_OFFLOAD_BUNDLE__", 24) == 0) return bundle_bytes(p);
  return 0;
}

hipError_t load_module(Machine& machine, int device, std::span<const uint8_t> image,
                       std::shared_ptr<LoadedModule>& out) {
  auto loaded = machine.devices[static_cast<size_t>(device)]->sim->load(image);
  if (!loaded) {
    explain(fmt::format("device {}: {}", device, loaded.error()));
    bool other = loaded.error().find("no code object for") != std::string::npos ||
                 loaded.error().find("cannot run on") != std::string::npos;
    return other ? hipErrorNoBinaryForGpu : hipErrorInvalidImage;
  }
  out = std::make_shared<LoadedModule>();
  out->device = device;
  out->code = *loaded;
  return hipSuccess;
}

hipError_t find_function(Machine& machine, const std::shared_ptr<LoadedModule>& module, const std::string& name,
                         std::shared_ptr<Function>& out) {
  std::weak_ptr<Function>& known = module->functions[name];
  out = known.lock();
  if (out) return hipSuccess;
  const Kernel* kernel = module->code->object().find_kernel(name);
  if (!kernel) return hipErrorNotFound;
  out = std::make_shared<Function>();
  out->module = module;
  out->kernel = kernel;
  known = out;
  machine.functions.add(out);
  return hipSuccess;
}

hipError_t find_kernel(Machine& machine, const void* host_function, std::shared_ptr<Function>& out) {
  if (!host_function) return hipErrorInvalidDeviceFunction;
  Registry& r = registry();
  std::lock_guard own(r.mutex);
  auto it = r.functions.find(host_function);
  if (it == r.functions.end()) {
    std::lock_guard lock(machine.mutex);
    out = machine.functions.find(host_function);
    return out ? hipSuccess : hipErrorInvalidDeviceFunction;
  }
  std::shared_ptr<LoadedModule> module;
  if (hipError_t e = module_of(machine, it->second.first, module)) return e;
  std::lock_guard lock(machine.mutex);
  return find_function(machine, module, it->second.second, out) ? hipErrorInvalidDeviceFunction : hipSuccess;
}

hipError_t find_variable(Machine& machine, const void* symbol, void** pointer, size_t* bytes) {
  if (!symbol) return hipErrorInvalidSymbol;
  Registry& r = registry();
  std::lock_guard own(r.mutex);
  auto it = r.variables.find(symbol);
  if (it == r.variables.end()) return hipErrorInvalidSymbol;
  std::shared_ptr<LoadedModule> module;
  if (hipError_t e = module_of(machine, it->second.binary, module)) return e;
  uint64_t address = it->second.managed ? reinterpret_cast<uint64_t>(it->second.managed)
                                        : module->code->symbol_address(it->second.name);
  if (!address) return hipErrorInvalidSymbol;
  if (pointer) *pointer = reinterpret_cast<void*>(address);
  if (bytes) *bytes = it->second.bytes;
  return hipSuccess;
}

void forget_registered(int device) {
  Registry& r = registry();
  std::lock_guard own(r.mutex);
  for (auto& [handle, binary] : r.binaries) binary->loaded.erase(device);
}

}  // namespace crest_sim::hip

using namespace crest_sim::hip;

extern "C" {

void** __hipRegisterFatBinary(const void* data) {
  auto* wrapper = static_cast<const Wrapper*>(data);
  if (!wrapper || wrapper->magic != kWrapperMagic || wrapper->version != 1) {
    explain("a program registers a fat binary that does not begin as HIP's do");
    return nullptr;
  }
  auto binary = std::make_unique<Binary>();
  binary->image = wrapper->binary;
  auto** handle = reinterpret_cast<void**>(binary.get());
  Registry& r = registry();
  std::lock_guard own(r.mutex);
  r.binaries[handle] = std::move(binary);
  return handle;
}

void __hipUnregisterFatBinary(void** handle) {
  Registry& r = registry();
  std::lock_guard own(r.mutex);
  auto it = r.binaries.find(handle);
  if (it == r.binaries.end()) return;
  Binary* binary = it->second.get();
  std::erase_if(r.functions, [&](const auto& f) { return f.second.first == binary; });
  std::erase_if(r.variables, [&](const auto& v) { return v.second.binary == binary; });
  std::erase_if(r.managed, [&](const auto& v) { return v.binary == binary; });
  r.binaries.erase(it);
}

void __hipRegisterFunction(void** handle, const void* host_function, char*, const char* device_name, unsigned, void*,
                           void*, dim3*, dim3*, int*) {
  Registry& r = registry();
  std::lock_guard own(r.mutex);
  auto it = r.binaries.find(handle);
  if (it != r.binaries.end()) r.functions[host_function] = {it->second.get(), device_name};
}

void __hipRegisterVar(void** handle, void* variable, char*, char* device_name, int, size_t bytes, int, int) {
  Registry& r = registry();
  std::lock_guard own(r.mutex);
  auto it = r.binaries.find(handle);
  if (it != r.binaries.end()) r.variables[variable] = {it->second.get(), device_name, bytes, nullptr};
}

void __hipRegisterManagedVar(void* handle, void** pointer, void* initial, const char* name, size_t bytes, unsigned) {
  void* storage = nullptr;
  if (hipMallocManaged(&storage, bytes, hipMemAttachGlobal) != hipSuccess) {
    explain(fmt::format("managed variable {}: no memory", name));
    return;
  }
  if (initial) std::memcpy(storage, initial, bytes);
  *pointer = storage;
  {
    Machine& machine = *Machine::get();
    std::lock_guard lock(machine.mutex);
    machine.buffers[reinterpret_cast<uint64_t>(storage)].permanent = true;
  }
  Registry& r = registry();
  std::lock_guard own(r.mutex);
  auto it = r.binaries.find(static_cast<void**>(handle));
  if (it == r.binaries.end()) return;
  r.managed.push_back({it->second.get(), pointer, name});
  r.variables[pointer] = {it->second.get(), name, bytes, storage};
}

void __hipRegisterTexture(void**, const void*, char*, char* name, int, int, int) {
  explain_once(fmt::format("texture {} is not supported", name ? name : ""));
}
void __hipRegisterSurface(void**, const void*, char*, char* name, int, int) {
  explain_once(fmt::format("surface {} is not supported", name ? name : ""));
}

hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, hipStream_t stream) {
  return call([&](Machine&) {
    this_thread().configurations.push_back({grid, block, shared_bytes, stream});
    return hipSuccess;
  });
}
hipError_t hipConfigureCall(dim3 grid, dim3 block, size_t shared_bytes, hipStream_t stream) {
  return __hipPushCallConfiguration(grid, block, shared_bytes, stream);
}
hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, hipStream_t* stream) {
  return call([&](Machine&) {
    auto& stack = this_thread().configurations;
    if (stack.empty()) return hipErrorMissingConfiguration;
    *grid = stack.back().grid;
    *block = stack.back().block;
    *shared_bytes = stack.back().shared_bytes;
    *stream = stack.back().stream;
    stack.pop_back();
    return hipSuccess;
  });
}
}
