#include "crest_sim/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <span>

#include "run/levels.h"
#include "run/scheduler.h"

namespace crest_sim {

struct Module::Patched {
  std::mutex mutex;
  std::map<const Kernel*, std::vector<Instruction>> code;
};

namespace {

constexpr uint32_t kMaxArgumentBytes = 1u << 20;

/// Rows that a kernel may name.
struct RegisterLimits {
  uint32_t vgprs, agprs;

  bool allow(const Operand& o) const {
    if (!o.is_vector()) return true;
    uint32_t end = o.reg + o.dwords;
    return o.reg < 256 ? end <= vgprs : end <= 256 + agprs;
  }
  bool allow(const Instruction& i) const {
    for (const Operand& o : i.dst)
      if (!allow(o)) return false;
    for (const Operand& o : i.src)
      if (!allow(o)) return false;
    return !i.second || allow(*i.second);
  }
};

bool names_agpr(const Instruction& i) {
  auto is_agpr = [](const Operand& o) { return o.is_vector() && o.reg >= 256; };
  return std::any_of(std::begin(i.dst), std::end(i.dst), is_agpr) ||
         std::any_of(std::begin(i.src), std::end(i.src), is_agpr);
}

/// CDNA's register file is unified: VGPR numbers beyond the descriptor's split name registers of the AGPR part.
/// Published kernels that use no AGPR rely on it; with AGPRs in use the two names would meet, which is not modelled.
RegisterLimits register_limits(const Kernel& kernel, std::span<const Instruction> code) {
  if (std::any_of(code.begin(), code.end(), names_agpr)) return {kernel.vgprs, kernel.agprs};
  return {std::min(256u, kernel.vgprs + kernel.agprs), kernel.agprs};
}

/// Instructions of the kernel's own function, if it cannot leave it; otherwise all.
std::pair<size_t, size_t> reachable(const CodeObject& object, const Code& code, const Kernel& kernel) {
  size_t all = code.instructions.size();
  for (const Symbol& s : object.symbols()) {
    if (!s.is_code || s.address != kernel.entry_address || s.size == 0) continue;
    int32_t first = code.index_at(s.address), last = code.index_at(s.address + s.size);
    if (first < 0) break;
    size_t end = last < 0 ? all : static_cast<size_t>(last);
    for (size_t n = static_cast<size_t>(first); n < end; ++n) {
      const Instruction& i = code.instructions[n];
      if (i.cls != InstructionClass::kBranch) continue;
      if (i.target < first || static_cast<size_t>(i.target) >= end) return {0, all};
    }
    return {static_cast<size_t>(first), end};
  }
  return {0, all};
}

LaunchResult refuse(std::string_view kernel, std::string message) {
  LaunchResult r;
  r.fault.kind = FaultKind::kLaunch;
  r.fault.kernel = kernel;
  r.fault.message = std::move(message);
  return r;
}

template <class T>
void put(std::vector<uint8_t>& out, size_t at, T value) {
  if (at + sizeof(T) <= out.size()) std::memcpy(out.data() + at, &value, sizeof(T));
}

/// Hidden arguments: what compiled code asks for beyond the explicit ones.
void fill_hidden(const Kernel& k, const LaunchConfig& c, std::vector<uint8_t>& out) {
  const uint32_t grid[3] = {c.grid.x, c.grid.y, c.grid.z}, block[3] = {c.block.x, c.block.y, c.block.z};
  int dims = c.grid.z * c.block.z > 1 ? 3 : c.grid.y * c.block.y > 1 ? 2 : 1;
  for (const KernelArgument& a : k.arguments) {
    std::string_view kind = a.value_kind;
    if (!kind.starts_with("hidden_")) continue;
    kind.remove_prefix(7);
    for (int d = 0; d < 3; ++d) {
      char axis = static_cast<char>('x' + d);
      if (kind == fmt::format("block_count_{}", axis)) put(out, a.offset, grid[d]);
      if (kind == fmt::format("group_size_{}", axis)) put(out, a.offset, static_cast<uint16_t>(block[d]));
    }
    if (kind == "grid_dims") put(out, a.offset, static_cast<uint16_t>(dims));
    if (kind == "private_base") put(out, a.offset, uint32_t(2) << 16);
    if (kind == "shared_base") put(out, a.offset, uint32_t(1) << 16);
    if (kind == "dynamic_lds_size") put(out, a.offset, c.dynamic_lds_bytes);
  }
}

/// The AQL packet that kernels with a dispatch pointer read.
std::vector<uint8_t> dispatch_packet(const LaunchConfig& c, const Kernel& k, uint64_t kernarg, uint64_t image,
                                     uint32_t lds) {
  std::vector<uint8_t> p(64);
  put(p, 4, static_cast<uint16_t>(c.block.x));
  put(p, 6, static_cast<uint16_t>(c.block.y));
  put(p, 8, static_cast<uint16_t>(c.block.z));
  put(p, 12, c.grid.x * c.block.x);
  put(p, 16, c.grid.y * c.block.y);
  put(p, 20, c.grid.z * c.block.z);
  put(p, 24, k.descriptor.private_segment_bytes);
  put(p, 28, lds);
  put(p, 32, image + k.descriptor_address);
  put(p, 40, kernarg);
  return p;
}

std::string check_launch(const Kernel& k, const LaunchConfig& c, const TargetInfo& target, size_t argument_bytes) {
  auto zero = [](const Dim3& d) { return d.x == 0 || d.y == 0 || d.z == 0; };
  if (zero(c.grid) || zero(c.block))
    return fmt::format("grid ({}, {}, {}) and block ({}, {}, {}) must not have a zero", c.grid.x, c.grid.y, c.grid.z,
                       c.block.x, c.block.y, c.block.z);
  uint64_t block = uint64_t(c.block.x) * c.block.y * c.block.z;
  uint64_t limit = k.max_flat_workgroup_size ? std::min<uint64_t>(k.max_flat_workgroup_size, 1024) : 1024;
  if (c.block.x > 1024 || c.block.y > 1024 || c.block.z > 1024 || block > limit)
    return fmt::format("block ({}, {}, {}) has {} work-items; the kernel allows {}", c.block.x, c.block.y, c.block.z,
                       block, limit);
  const uint32_t* required = k.required_workgroup_size;
  if (required[0] && (required[0] != c.block.x || required[1] != c.block.y || required[2] != c.block.z))
    return fmt::format("block ({}, {}, {}): the kernel requires ({}, {}, {})", c.block.x, c.block.y, c.block.z,
                       required[0], required[1], required[2]);
  uint64_t lds = uint64_t(k.descriptor.group_segment_bytes) + c.dynamic_lds_bytes;
  if (lds > target.lds_bytes)
    return fmt::format("{} bytes of LDS ({} static, {} dynamic); {} has {}", lds, k.descriptor.group_segment_bytes,
                       c.dynamic_lds_bytes, target.name, target.lds_bytes);
  uint32_t segment = std::max(k.kernarg_segment_size, k.descriptor.kernarg_bytes);
  if (segment > kMaxArgumentBytes || argument_bytes > kMaxArgumentBytes)
    return fmt::format("{} bytes of arguments for a kernel that declares {}; at most {} are supported", argument_bytes,
                       segment, kMaxArgumentBytes);
  if (argument_bytes < k.explicit_bytes())
    return fmt::format("{} bytes of arguments; the kernel takes {}", argument_bytes, k.explicit_bytes());
  return {};
}

}  // namespace

uint64_t Module::symbol_address(std::string_view name, uint64_t* bytes) const {
  for (const Symbol& s : object_->symbols()) {
    if (s.name != name) continue;
    if (bytes) *bytes = s.size;
    return base_ + s.address;
  }
  return 0;
}

Module::~Module() {
  if (base_) static_cast<void>(memory_->free(base_));
}

const Instruction* Module::code_for(const Kernel& kernel) const {
  const Code& code = object_->code(kernel.wave_size);
  std::lock_guard lock(patched_->mutex);
  if (auto it = patched_->code.find(&kernel); it != patched_->code.end())
    return it->second.empty() ? code.instructions.data() : it->second.data();
  std::vector<Instruction>& copy = patched_->code[&kernel];
  auto [first, end] = reachable(*object_, code, kernel);
  RegisterLimits limits = register_limits(kernel, std::span(code.instructions).subspan(first, end - first));
  for (size_t n = first; n < end; ++n) {
    const Instruction& i = code.instructions[n];
    if (i.execute == levels().unknown || limits.allow(i)) continue;
    if (copy.empty()) copy = code.instructions;
    copy[n].execute = levels().register_range;
  }
  return copy.empty() ? code.instructions.data() : copy.data();
}

Result<std::unique_ptr<Device>> Device::create(Arch arch, std::shared_ptr<Memory> memory, int ordinal) {
  if (auto s = check_llvm(); !s) return Error{s.error()};
  return std::unique_ptr<Device>(new Device(target_info(arch), std::move(memory), ordinal));
}

Result<std::shared_ptr<Module>> Device::load(std::span<const uint8_t> data) {
  auto file = extract_code_object(data, target_->arch);
  if (!file) return Error{file.error()};
  auto object = CodeObject::parse(*file);
  if (!object) return Error{object.error()};
  if ((*object)->target().arch != target_->arch)
    return Error{fmt::format("code object for {} cannot run on {}", (*object)->target().name, target_->name)};
  auto base = memory_->allocate(std::max<uint64_t>((*object)->image().size(), 4096), AllocationKind::kCode,
                                "code object", ordinal_);
  if (!base) return Error{base.error()};
  auto module = std::shared_ptr<Module>(new Module);
  module->object_ = *object;
  module->memory_ = memory_;
  module->base_ = *base;
  module->patched_ = std::make_unique<Module::Patched>();
  auto image = (*object)->image();
  std::span<uint8_t> place(reinterpret_cast<uint8_t*>(*base), image.size());
  std::copy(image.begin(), image.end(), place.begin());
  (*object)->relocate(place, *base);
  return module;
}

std::string Device::refusal(const Kernel& kernel, const LaunchConfig& config, size_t argument_bytes) const {
  return check_launch(kernel, config, *target_, argument_bytes);
}

Result<uint64_t> Device::take_kernarg(size_t bytes) {
  {
    std::lock_guard lock(kernarg_mutex_);
    std::vector<uint64_t>& idle = idle_kernargs_[bytes];
    if (!idle.empty()) {
      uint64_t base = idle.back();
      idle.pop_back();
      return base;
    }
  }
  return memory_->allocate(bytes, AllocationKind::kKernarg, "kernel arguments", ordinal_);
}

LaunchResult Device::launch(const Module& module, std::string_view name, const LaunchConfig& config,
                            std::span<const uint8_t> arguments) {
  const Kernel* kernel = module.object().find_kernel(name);
  if (!kernel) return refuse(name, "the code object has no such kernel");
  if (std::string problem = refusal(*kernel, config, arguments.size()); !problem.empty()) return refuse(name, problem);
  auto begin = std::chrono::steady_clock::now();
  std::vector<uint8_t> kernarg(
      std::max<size_t>({arguments.size(), kernel->kernarg_segment_size, kernel->descriptor.kernarg_bytes, 16}));
  std::copy(arguments.begin(), arguments.end(), kernarg.begin());
  fill_hidden(*kernel, config, kernarg);
  kernarg.resize((kernarg.size() + 63) / 64 * 64);
  LaunchContext context;
  context.object = &module.object();
  context.kernel = kernel;
  context.code = &module.object().code(kernel->wave_size);
  context.target = target_;
  context.image_base = module.image_base();
  context.grid = config.grid;
  context.block = config.block;
  context.lds_bytes = kernel->descriptor.group_segment_bytes + config.dynamic_lds_bytes;
  context.strict_matrix = config.strict_matrix;
  context.kernarg_bytes = kernarg.size();
  auto place = take_kernarg(kernarg.size() + 64);
  if (!place) return refuse(name, place.error());
  context.kernarg_base = *place;
  std::memcpy(reinterpret_cast<void*>(*place), kernarg.data(), kernarg.size());
  auto packet = dispatch_packet(config, *kernel, *place, module.image_base(), context.lds_bytes);
  std::memcpy(reinterpret_cast<void*>(*place + kernarg.size()), packet.data(), packet.size());

  uint32_t scratch = kernel->descriptor.private_segment_bytes + config.extra_scratch_bytes;
  if (kernel->descriptor.dynamic_stack() && config.extra_scratch_bytes == 0) scratch += 16384;
  for (Observer* o : config.observers) o->launch_begin(context);
  Scheduler scheduler(context, config, *kernel, module.code_for(*kernel), memory_->table(config.visible_devices),
                      scratch);
  context.scheduler = &scheduler;
  LaunchResult result = scheduler.run();
  for (Observer* o : config.observers) o->launch_end(context);
  {
    std::lock_guard lock(kernarg_mutex_);
    idle_kernargs_[kernarg.size() + 64].push_back(*place);
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace crest_sim
