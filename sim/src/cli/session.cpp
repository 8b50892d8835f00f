#include "cli/session.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <thread>

#include "cli/files.h"
#include "crest_sim/progress.h"

namespace crest_sim::cli {
namespace {

/// Tells how far a long launch is, and ends the process on Ctrl-C (a launch itself cannot be stopped half-way).
class Watch {
 public:
  explicit Watch(uint64_t workgroups)
      : total_(workgroups), before_(finished_workgroups()), thread_([this] { watch(); }) {}
  ~Watch() {
    {
      std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void watch() {
    auto begin = std::chrono::steady_clock::now();
    bool terminal = isatty(2) != 0;
    double next = terminal ? 1 : 30;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(200), [&] { return done_; })) {
      double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (seconds < next) continue;
      next = seconds + (terminal ? 0.2 : 30);
      uint64_t finished = finished_workgroups() - before_;
      std::fputs(fmt::format("{}{} of {} workgroups, {:.0f} s{}", terminal ? "\r" : "crest-sim: ", finished, total_,
                             seconds, terminal ? "\x1b[K" : "\n")
                     .c_str(),
                 stderr);
      shown_ = terminal;
    }
  }

  uint64_t total_, before_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false, shown_ = false;
  std::thread thread_;
};

void interrupt(int) {
  constexpr char kText[] = "\ncrest-sim: interrupted\n";
  static_cast<void>(!write(2, kText, sizeof kText - 1));
  _exit(kInterrupted);
}

/// Architectures that the file has code for.
std::vector<Arch> architectures(std::span<const uint8_t> file) {
  std::vector<Arch> out;
  for (const TargetInfo& t : all_targets()) {
    auto code = extract_code_object(file, t.arch);
    if (!code) continue;
    auto object = CodeObject::parse(*code);
    if (object && (*object)->target().arch == t.arch) out.push_back(t.arch);
  }
  return out;
}

}  // namespace

Result<Object> load_object(const ObjectOptions& options) {
  Object o;
  auto file = read_file(options.file);
  if (!file) return Error{file.error()};
  o.file = std::move(*file);
  std::optional<Arch> arch;
  if (!options.arch.empty()) {
    arch = parse_arch(options.arch);
    if (!arch) return Error{fmt::format("--arch {}: gfx942, gfx950, gfx1100 and gfx1151 are known", options.arch)};
  } else {
    auto present = architectures(o.file);
    if (present.empty()) {
      auto reason = extract_code_object(o.file, Arch::kGfx942);
      auto parsed =
          reason ? CodeObject::parse(*reason) : Result<std::shared_ptr<const CodeObject>>(Error{reason.error()});
      return Error{fmt::format("{}: {}", options.file, parsed ? "no code for a known architecture" : parsed.error())};
    }
    if (present.size() > 1) {
      std::string names;
      for (Arch a : present) names += (names.empty() ? "" : ", ") + std::string(target_info(a).name);
      return Error{fmt::format("{} has code for {}: choose with --arch", options.file, names)};
    }
    arch = present[0];
  }
  auto memory = Memory::create();
  if (!memory) return Error{memory.error()};
  o.memory = *memory;
  auto device = Device::create(*arch, o.memory);
  if (!device) return Error{device.error()};
  o.device = std::move(*device);
  auto module = o.device->load(o.file);
  if (!module) return Error{fmt::format("{}: {}", options.file, module.error())};
  o.module = *module;
  return o;
}

Result<const Kernel*> find_kernel(const CodeObject& object, const std::string& name) {
  if (const Kernel* exact = object.find_kernel(name)) return exact;
  std::vector<const Kernel*> similar;
  for (const Kernel& k : object.kernels())
    if (k.name.find(name) != std::string::npos) similar.push_back(&k);
  if (similar.size() == 1) return similar[0];
  std::string names;
  const auto& kernels = object.kernels();
  for (size_t n = 0; n < kernels.size() && n < 20; ++n) names += "\n  " + kernels[n].name;
  if (kernels.size() > 20) names += fmt::format("\n  and {} more (crest-sim list)", kernels.size() - 20);
  return Error{fmt::format("{} \"{}\"; the object has:{}", similar.empty() ? "no kernel" : "several kernels contain",
                           name, names)};
}

Result<Dim3> parse_dim3(const std::string& text, const char* what) {
  uint32_t values[3] = {1, 1, 1};
  int used = 0, count = sscanf(text.c_str(), "%u,%u,%u%n", &values[0], &values[1], &values[2], &used);
  std::string again = count == 1   ? fmt::format("{}", values[0])
                      : count == 2 ? fmt::format("{},{}", values[0], values[1])
                                   : fmt::format("{},{},{}", values[0], values[1], values[2]);
  if (count < 1 || again != text || !values[0] || !values[1] || !values[2])
    return Error{fmt::format("{} {}: one to three positive numbers with commas, for example 64 or 16,16", what, text)};
  return Dim3{values[0], values[1], values[2]};
}

Result<Launch> prepare(const RunOptions& options) {
  Launch launch;
  auto object = load_object(options.object);
  if (!object) return Error{object.error()};
  launch.object = std::move(*object);
  auto kernel = find_kernel(launch.object.module->object(), options.kernel);
  if (!kernel) return Error{kernel.error()};
  launch.kernel = *kernel;
  auto grid = parse_dim3(options.grid, "--grid"), block = parse_dim3(options.block, "--block");
  if (!grid) return Error{grid.error()};
  if (!block) return Error{block.error()};
  std::vector<ArgumentSpec> specs;
  for (size_t n = 0; n < options.arguments.size(); ++n) {
    auto spec = parse_argument(options.arguments[n], launch.object.device->target().arch, options.seed + n);
    if (!spec) return Error{spec.error()};
    specs.push_back(std::move(*spec));
  }
  if (options.kernarg.empty()) {
    auto bound = bind_arguments(*launch.kernel, specs, *launch.object.memory);
    if (!bound) return Error{bound.error()};
    launch.arguments = std::move(*bound);
  } else {
    if (!specs.empty()) return Error{"--kernarg and --arg exclude each other"};
    auto bytes = read_file(options.kernarg);
    if (!bytes) return Error{bytes.error()};
    launch.arguments.bytes = std::move(*bytes);
  }
  auto checks = CheckOptions::parse(options.checks);
  if (!checks) return Error{fmt::format("--checks {}: {}", options.checks, checks.error())};
  launch.checks = *checks;
  LaunchConfig& c = launch.config;
  c.grid = *grid;
  c.block = *block;
  c.dynamic_lds_bytes = options.lds_bytes;
  c.threads = options.threads;
  c.strict_matrix = options.strict_matrix;
  c.max_wave_instructions = options.max_instructions;
  return launch;
}

void run(Launch& launch, Profile* profile) {
  if (profile) launch.config.observers.push_back(profile);
  std::unique_ptr<Checker> checker;
  if (launch.checks.any()) {
    checker = std::make_unique<Checker>(launch.checks);
    launch.config.observers.push_back(checker.get());
    for (const PlacedBuffer& b : launch.arguments.buffers)
      if (b.unwritten) checker->mark_uninitialised(b.address, b.bytes);
  }
  struct sigaction action{};
  action.sa_handler = interrupt;
  sigaction(SIGINT, &action, nullptr);
  const Dim3& g = launch.config.grid;
  Watch watch(uint64_t(g.x) * g.y * g.z);
  launch.result =
      launch.object.device->launch(*launch.object.module, launch.kernel->name, launch.config, launch.arguments.bytes);
  if (checker) launch.findings = checker->take_reports();
  launch.config.observers.clear();
}

}  // namespace crest_sim::cli
