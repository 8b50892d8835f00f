#include "hip/operation.h"

#include <fmt/format.h>

#include <algorithm>

#include "hip/graph.h"

namespace crest_sim::hip {
namespace {

hipError_t code_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kGlobalAddress:
      return hipErrorIllegalAddress;
    case FaultKind::kDeadlock:
      return hipErrorLaunchTimeOut;
    case FaultKind::kLaunch:
      return hipErrorInvalidConfiguration;
    default:
      return hipErrorLaunchFailure;
  }
}

hipError_t launch(Machine& machine, const KernelOperation& k) {
  DeviceState& d = *machine.devices[static_cast<size_t>(k.function->module->device)];
  LaunchConfig config = k.config;
  config.threads = machine.options.threads;
  config.strict_matrix = machine.options.strict_matrix;
  config.max_wave_instructions = machine.options.max_wave_instructions;
  if (machine.profile) config.observers.push_back(machine.profile.get());
  {
    std::lock_guard lock(machine.mutex);
    config.visible_devices = d.visible;
  }
  std::unique_lock<std::mutex> alone;
  if (machine.checker) {
    alone = std::unique_lock(machine.checked_launch);
    config.observers.push_back(machine.checker.get());
  }
  LaunchResult result = d.sim->launch(*k.function->module->code, k.function->kernel->name, config, k.arguments);
  bool found = false;
  if (machine.checker)
    for (const CheckReport& report : machine.checker->take_reports()) {
      explain(fmt::format("device {} ({}): {}", d.ordinal, d.target().name, report.to_string()));
      found = true;
    }
  if (result.ok) return found ? hipErrorLaunchFailure : hipSuccess;
  explain(fmt::format("device {} ({}): {}", d.ordinal, d.target().name, result.fault.to_string()));
  return code_of(result.fault.kind);
}

void copy(Machine& machine, const CopyOperation& c) {
  for (size_t z = 0; z < c.depth; ++z)
    for (size_t y = 0; y < c.height; ++y) {
      uint8_t* row = c.to + z * c.to_slice + y * c.to_pitch;
      std::memmove(row, c.from + z * c.from_slice + y * c.from_pitch, c.width);
      machine.note_written(row, c.width);
    }
}

void fill(Machine& machine, const FillOperation& f) {
  for (size_t y = 0; y < f.height; ++y) {
    uint8_t* row = f.to + y * f.pitch;
    machine.note_written(row, f.width * f.element_bytes);
    if (f.element_bytes == 1) {
      std::memset(row, static_cast<int>(f.value), f.width);
      continue;
    }
    for (size_t x = 0; x < f.width; ++x) std::memcpy(row + x * f.element_bytes, &f.value, f.element_bytes);
  }
}

/// Bytes from the first to the last one of `height` rows in `depth` slices; ~0 if that overflows.
uint64_t extent(uint64_t width, uint64_t height, uint64_t depth, uint64_t pitch, uint64_t slice) {
  unsigned __int128 bytes = width;
  bytes += static_cast<unsigned __int128>(height - 1) * pitch + static_cast<unsigned __int128>(depth - 1) * slice;
  return bytes > ~uint64_t(0) ? ~uint64_t(0) : static_cast<uint64_t>(bytes);
}

enum class Side { kDevice, kAny };

/// A range that starts in, or must be, memory the machine knows has to lie inside one allocation.
hipError_t check_range(Machine& machine, const void* pointer, uint64_t bytes, Side side, const char* what) {
  if (bytes == 0) return hipSuccess;
  if (!pointer) return hipErrorInvalidValue;
  uint64_t at = reinterpret_cast<uint64_t>(pointer);
  auto table = machine.memory->table();
  if (table->find(at, bytes)) return hipSuccess;
  uint64_t arena = machine.memory->arena_base();
  bool inside = (at >= arena && at < arena + machine.memory->arena_bytes()) || table->find(at, 1);
  if (side == Side::kAny && !inside) return hipSuccess;
  explain(fmt::format("{} of {} bytes at {:#x}: {}", what, bytes, at,
                      inside ? table->describe(at) : "not memory of a device or pinned host memory"));
  return side == Side::kDevice && !inside ? hipErrorInvalidDevicePointer : hipErrorInvalidValue;
}

hipError_t check_copy(Machine& machine, const CopyOperation& c) {
  if (c.width == 0 || c.height == 0 || c.depth == 0) return hipSuccess;
  if (c.kind < 0 || (c.kind > hipMemcpyDefault && c.kind != hipMemcpyDeviceToDeviceNoCU))
    return hipErrorInvalidMemcpyDirection;
  if (c.height > 1 && (c.to_pitch < c.width || c.from_pitch < c.width)) return hipErrorInvalidPitchValue;
  bool to_device =
      c.kind == hipMemcpyHostToDevice || c.kind == hipMemcpyDeviceToDevice || c.kind == hipMemcpyDeviceToDeviceNoCU;
  bool from_device =
      c.kind == hipMemcpyDeviceToHost || c.kind == hipMemcpyDeviceToDevice || c.kind == hipMemcpyDeviceToDeviceNoCU;
  uint64_t to = extent(c.width, c.height, c.depth, c.to_pitch, c.to_slice);
  uint64_t from = extent(c.width, c.height, c.depth, c.from_pitch, c.from_slice);
  if (hipError_t e = check_range(machine, c.to, to, to_device ? Side::kDevice : Side::kAny, "copy to")) return e;
  return check_range(machine, c.from, from, from_device ? Side::kDevice : Side::kAny, "copy from");
}

hipError_t check_fill(Machine& machine, const FillOperation& f) {
  if (f.width == 0 || f.height == 0) return hipSuccess;
  if (f.element_bytes != 1 && f.element_bytes != 2 && f.element_bytes != 4) return hipErrorInvalidValue;
  if (f.width > ~uint64_t(0) / f.element_bytes) return hipErrorInvalidValue;
  uint64_t row = f.width * f.element_bytes;
  if (f.height > 1 && f.pitch < row) return hipErrorInvalidPitchValue;
  return check_range(machine, f.to, extent(row, f.height, 1, f.pitch, 0), Side::kDevice, "memset");
}

hipError_t check_kernel(Machine& machine, const KernelOperation& k) {
  const Kernel& kernel = *k.function->kernel;
  DeviceState& d = *machine.devices[static_cast<size_t>(k.function->module->device)];
  std::string refusal = d.sim->refusal(kernel, k.config, k.arguments.size());
  if (refusal.empty()) return hipSuccess;
  explain(fmt::format("device {} ({}): kernel {} not launched: {}", d.ordinal, d.target().name, kernel.name, refusal));
  return hipErrorInvalidConfiguration;
}

}  // namespace

hipError_t execute(Machine& machine, const Operation& operation) {
  if (auto* k = std::get_if<KernelOperation>(&operation)) return launch(machine, *k);
  if (auto* c = std::get_if<CopyOperation>(&operation)) {
    // Memory may have been freed since the call was checked.
    if (hipError_t e = check_copy(machine, *c)) return e;
    copy(machine, *c);
  } else if (auto* f = std::get_if<FillOperation>(&operation)) {
    if (hipError_t e = check_fill(machine, *f)) return e;
    fill(machine, *f);
  } else if (auto* h = std::get_if<HostOperation>(&operation)) {
    if (!machine.exiting) h->function();
  } else if (auto* r = std::get_if<FreeOperation>(&operation)) {
    std::lock_guard lock(machine.mutex);
    return release(machine, r->pointer);
  } else if (auto* g = std::get_if<ChildOperation>(&operation)) {
    return run_graph(machine, *g->graph);
  } else if (auto* e = std::get_if<EventOperation>(&operation)) {
    return run_event(machine, *e);
  }
  return hipSuccess;
}

hipError_t check(Machine& machine, const Operation& operation) {
  if (auto* k = std::get_if<KernelOperation>(&operation)) return check_kernel(machine, *k);
  if (auto* c = std::get_if<CopyOperation>(&operation)) return check_copy(machine, *c);
  if (auto* f = std::get_if<FillOperation>(&operation)) return check_fill(machine, *f);
  return hipSuccess;
}

hipError_t enqueue(Machine& machine, std::unique_lock<std::mutex>& lock, const std::shared_ptr<Stream>& stream,
                   Operation operation, Mark* mark) {
  static_cast<void>(lock);
  if (mark) *mark = nullptr;
  if (!stream) return hipErrorInvalidHandle;
  if (auto* k = std::get_if<KernelOperation>(&operation); k && k->function->module->device != stream->device) {
    explain(fmt::format("kernel {} was loaded on device {} but its stream is on device {}", k->function->kernel->name,
                        k->function->module->device, stream->device));
    return hipErrorInvalidHandle;
  }
  if (hipError_t e = check(machine, operation)) return e;
  if (stream->capture) return capture_operation(machine, *stream, std::move(operation));
  if (stream->is_null && machine_is_capturing(machine, stream->device)) return hipErrorStreamCaptureImplicit;
  bool cleanup = std::holds_alternative<FreeOperation>(operation);
  Mark task =
      machine.submit(stream, [&machine, op = std::move(operation)] { return execute(machine, op); }, {}, cleanup);
  if (mark) *mark = task;
  return hipSuccess;
}

hipError_t perform(Machine& machine, const std::shared_ptr<Stream>& stream, Operation operation) {
  std::unique_lock lock(machine.mutex);
  if (stream && stream->capture) {
    invalidate_capture(machine, *stream->capture);
    return hipErrorStreamCaptureUnsupported;
  }
  Mark mark;
  if (hipError_t e = enqueue(machine, lock, stream, std::move(operation), &mark)) return e;
  return machine.wait(lock, mark);
}

hipError_t pack_arguments(const Kernel& kernel, void** parameters, void** extra, std::vector<uint8_t>& out) {
  out.clear();
  if (extra) {
    if (parameters) return hipErrorInvalidValue;
    const void* pointer = nullptr;
    const size_t* bytes = nullptr;
    for (int i = 0; extra[i] != HIP_LAUNCH_PARAM_END; i += 2) {
      if (i > 2) return hipErrorInvalidValue;
      if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_POINTER)
        pointer = extra[i + 1];
      else if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_SIZE)
        bytes = static_cast<const size_t*>(extra[i + 1]);
      else
        return hipErrorInvalidValue;
    }
    if (!bytes || (!pointer && *bytes)) return hipErrorInvalidValue;
    if (*bytes > 65536) return hipErrorInvalidValue;
    if (*bytes) out.assign(static_cast<const uint8_t*>(pointer), static_cast<const uint8_t*>(pointer) + *bytes);
    return hipSuccess;
  }
  out.resize(kernel.explicit_bytes());
  size_t index = 0;
  for (const KernelArgument& a : kernel.arguments) {
    if (a.hidden()) continue;
    if (!parameters || !parameters[index]) {
      explain(fmt::format("kernel {}: argument {} ({}) is missing", kernel.name, index, a.name));
      return hipErrorInvalidValue;
    }
    if (a.offset + size_t(a.size) > out.size()) return hipErrorInvalidImage;
    std::memcpy(out.data() + a.offset, parameters[index++], a.size);
  }
  if (index == 0 && !out.empty()) {
    explain(fmt::format("kernel {}: its metadata lists no arguments; pass them as one buffer (extra)", kernel.name));
    return hipErrorInvalidValue;
  }
  return hipSuccess;
}

hipError_t make_launch(Machine& machine, const std::shared_ptr<Function>& function, dim3 grid, dim3 block,
                       size_t shared_bytes, void** parameters, void** extra, KernelOperation& out) {
  if (!function) return hipErrorInvalidHandle;
  if (shared_bytes > 0xffffffff) return hipErrorInvalidValue;
  out.function = function;
  out.config.grid = {grid.x, grid.y, grid.z};
  out.config.block = {block.x, block.y, block.z};
  out.config.dynamic_lds_bytes = static_cast<uint32_t>(shared_bytes);
  // The launch itself is checked first: a kernel whose arguments were never given may still have a wrong grid.
  if (hipError_t e = pack_arguments(*function->kernel, parameters, extra, out.arguments)) return e;
  return check_kernel(machine, out);
}

hipError_t release(Machine& machine, void* pointer) {
  if (!pointer) return hipSuccess;
  uint64_t base = reinterpret_cast<uint64_t>(pointer);
  auto it = machine.buffers.find(base);
  if (it == machine.buffers.end()) {
    explain(fmt::format("free of {:#x}: {}", base, machine.memory->table()->describe(base)));
    return hipErrorInvalidValue;
  }
  if (it->second.device >= 0) {
    DeviceState& d = *machine.devices[static_cast<size_t>(it->second.device)];
    if (it->second.type != hipMemoryTypeHost && !it->second.attached) d.used -= std::min(d.used, it->second.bytes);
  }
  machine.buffers.erase(it);
  return machine.memory->free(base) ? hipSuccess : hipErrorInvalidValue;
}

bool is_known_memory(Machine& machine, const void* pointer) {
  return machine.memory->table()->find(reinterpret_cast<uint64_t>(pointer), 1) != nullptr;
}

}  // namespace crest_sim::hip
