#include "hip/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "report/output_file.h"

namespace crest_sim::hip {
namespace {

uint64_t capacity_of(Arch arch) {
  switch (arch) {
    case Arch::kGfx942:
      return uint64_t(192) << 30;
    case Arch::kGfx950:
      return uint64_t(288) << 30;
    case Arch::kGfx1100:
      return uint64_t(24) << 30;
    case Arch::kGfx1151:
      return uint64_t(96) << 30;
  }
  return 0;
}

thread_local bool is_worker = false;

}  // namespace

ThreadState& this_thread() {
  thread_local ThreadState state;
  return state;
}

void explain(const std::string& text) { std::fputs(fmt::format("crest-sim: {}\n", text).c_str(), stderr); }

void explain_once(const std::string& text) {
  static std::mutex mutex;
  static auto* known = new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (known->insert(text).second) explain(text);
}

std::string DeviceState::arch_name() const {
  std::string name(target().name);
  return target().cdna ? name + ":sramecc+:xnack-" : name;
}

Machine* Machine::get() {
  static Machine* machine = [] {
    auto* m = new Machine;
    Status status = m->start();
    if (!status) {
      explain(status.error());
      return static_cast<Machine*>(nullptr);
    }
    std::atexit([] {
      if (is_worker) return;
      Machine::get()->drain();
      Machine::get()->write_report();
    });
    return m;
  }();
  return machine;
}

Status Machine::start() {
  auto read = options_from_environment();
  if (!read) return Error{read.error()};
  options = *read;
  if (options.checks.any()) checker = std::make_unique<Checker>(options.checks);
  if (!options.report_file.empty())
    profile = std::make_unique<Profile>(ProfileOptions{options.follow_approximate, true});
  auto memory_made = Memory::create();
  if (!memory_made) return Error{memory_made.error()};
  memory = *memory_made;
  for (size_t i = 0; i < options.devices.size(); ++i) {
    auto state = std::make_unique<DeviceState>();
    state->ordinal = static_cast<int>(i);
    auto sim = Device::create(options.devices[i], memory, state->ordinal);
    if (!sim) return Error{sim.error()};
    state->sim = std::move(*sim);
    state->capacity = options.memory_bytes ? options.memory_bytes : capacity_of(options.devices[i]);
    state->visible = uint64_t(1) << i;
    state->null_stream = std::make_shared<Stream>();
    state->null_stream->device = state->ordinal;
    state->null_stream->is_null = true;
    state->streams.push_back(state->null_stream);
    devices.push_back(std::move(state));
  }
  return Unit{};
}

void Machine::note_unwritten(uint64_t base, uint64_t bytes) {
  if (checker && options.checks[CheckKind::kUninitialised]) checker->mark_uninitialised(base, bytes);
}
void Machine::note_written(const void* pointer, uint64_t bytes) {
  if (checker && bytes) checker->mark_initialised(reinterpret_cast<uint64_t>(pointer), bytes);
}

void Machine::write_report() const {
  if (!profile) return;
  // Several processes may share the setting: %p stands for the process.
  std::string path = options.report_file;
  if (size_t at = path.find("%p"); at != std::string::npos) path.replace(at, 2, fmt::format("{}", getpid()));
  ProfileReport report = profile->report();
  std::string text = path.ends_with(".json") ? report.to_json(true) : report.to_text();
  if (auto s = write_file(path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}); !s) explain(s.error());
}

DeviceState& Machine::current() { return *devices[static_cast<size_t>(this_thread().device)]; }

DeviceState* Machine::device(int ordinal) {
  return ordinal >= 0 && static_cast<size_t>(ordinal) < devices.size() ? devices[static_cast<size_t>(ordinal)].get()
                                                                       : nullptr;
}

std::shared_ptr<Stream> Machine::create_stream(int device, unsigned flags, int priority) {
  auto s = std::make_shared<Stream>();
  s->device = device;
  s->flags = flags;
  s->priority = priority;
  devices[static_cast<size_t>(device)]->streams.push_back(s);
  streams.add(s);
  return s;
}

std::shared_ptr<Stream> Machine::stream(hipStream_t handle) {
  if (handle == nullptr || handle == hipStreamLegacy) return current().null_stream;
  if (handle != hipStreamPerThread) return streams.find(handle);
  ThreadState& thread = this_thread();
  std::weak_ptr<Stream>& own = thread.streams[thread.device];
  if (auto s = own.lock()) return s;
  auto s = create_stream(thread.device, hipStreamDefault, 0);
  own = s;
  return s;
}

Mark Machine::submit(const std::shared_ptr<Stream>& stream, std::function<hipError_t()> run, std::vector<Mark> after,
                     bool cleanup) {
  auto task = std::make_shared<Task>();
  task->run = std::move(run);
  task->cleanup = cleanup;
  auto wait_for = [&](const Mark& mark) {
    if (mark && (!mark->done || mark->status != hipSuccess)) task->after.push_back(mark);
  };
  for (const Mark& mark : after) wait_for(mark);
  DeviceState& d = *devices[static_cast<size_t>(stream->device)];
  if (stream->is_null) {
    for (const auto& other : d.streams)
      if (other != stream && other->blocking()) wait_for(other->last);
  } else if (stream->blocking()) {
    wait_for(d.null_stream->last);
  }
  stream->queue.push_back(task);
  stream->last = task;
  if (!stream->running) {
    stream->running = true;
    std::thread([this, stream] { work(stream); }).detach();
  }
  changed.notify_all();
  return task;
}

void Machine::work(std::shared_ptr<Stream> stream) {
  is_worker = true;
  this_thread().device = stream->device;
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return !stream->queue.empty() || stream->closing; });
    if (stream->queue.empty()) break;
    Mark task = stream->queue.front();
    hipError_t status = stream->error;
    for (const Mark& mark : task->after) {
      changed.wait(lock, [&] { return mark->done; });
      if (status == hipSuccess) status = mark->status;
    }
    if (task->run && (status == hipSuccess || task->cleanup)) {
      lock.unlock();
      hipError_t own = task->run();
      lock.lock();
      if (status == hipSuccess) status = own;
    }
    task->run = nullptr;
    task->after.clear();
    task->status = status;
    if (stream->error == hipSuccess) stream->error = status;
    task->finished = std::chrono::steady_clock::now();
    task->done = true;
    stream->queue.pop_front();
    changed.notify_all();
  }
  std::erase(devices[static_cast<size_t>(stream->device)]->streams, stream);
  stream->running = false;
}

hipError_t Machine::wait(std::unique_lock<std::mutex>& lock, const Mark& mark) {
  if (!mark) return hipSuccess;
  changed.wait(lock, [&] { return mark->done; });
  return mark->status;
}

hipError_t Machine::wait_all(std::unique_lock<std::mutex>& lock, int device) {
  std::vector<std::pair<std::shared_ptr<Stream>, Mark>> marks;
  for (const auto& s : devices[static_cast<size_t>(device)]->streams) marks.emplace_back(s, s->last);
  hipError_t first = hipSuccess;
  for (const auto& [stream, mark] : marks) {
    hipError_t e = wait(lock, mark);
    if (first == hipSuccess && !stream->closing) first = e;  // a destroyed stream takes its error with it
  }
  return first;
}

void Machine::drain() {
  std::unique_lock lock(mutex);
  exiting = true;
  for (size_t i = 0; i < devices.size(); ++i) wait_all(lock, static_cast<int>(i));
}

}  // namespace crest_sim::hip
