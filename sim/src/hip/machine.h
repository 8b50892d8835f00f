// State behind the HIP calls: devices, streams, events, modules and graphs of the process. Handles are the addresses of
// these objects and are looked up, never trusted: a stale or made-up handle is an error.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "crest_sim/device.h"
#include "crest_sim/hip/hip_runtime_api.h"
#include "crest_sim/profile.h"
#include "hip/options.h"

namespace crest_sim::hip {

template <class T>
class Handles {
 public:
  std::shared_ptr<T> find(const void* handle) const {
    auto it = objects_.find(handle);
    return it == objects_.end() ? nullptr : it->second;
  }
  void add(std::shared_ptr<T> object) {
    const void* key = object.get();
    objects_.emplace(key, std::move(object));
  }
  bool remove(const void* handle) { return objects_.erase(handle) != 0; }
  template <class Predicate>
  void remove_if(Predicate&& predicate) {
    std::erase_if(objects_, [&](const auto& entry) { return predicate(*entry.second); });
  }

 private:
  std::unordered_map<const void*, std::shared_ptr<T>> objects_;
};

/// Something that a stream does. Also the mark that events and other streams wait for.
struct Task {
  std::function<hipError_t()> run;           ///< may be empty
  std::vector<std::shared_ptr<Task>> after;  ///< of other streams
  bool cleanup = false;                      ///< runs even if the stream has failed (frees, callbacks)
  bool done = false;
  hipError_t status = hipSuccess;
  std::chrono::steady_clock::time_point finished;
};
using Mark = std::shared_ptr<Task>;

struct Capture;

struct Stream {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  bool is_null = false;
  bool closing = false;
  bool running = false;  ///< has a worker
  std::deque<Mark> queue;
  Mark last;
  hipError_t error = hipSuccess;  ///< of the first task that failed; later ones are skipped
  std::shared_ptr<Capture> capture;
  std::vector<struct Node*> frontier;  ///< while capturing: what the next node depends on

  bool blocking() const { return !(flags & hipStreamNonBlocking); }
};

struct Event {
  int device = 0;
  unsigned flags = 0;
  Mark mark;                         ///< null until recorded
  std::shared_ptr<Capture> capture;  ///< recorded inside this capture, at:
  std::vector<struct Node*> frontier;
};

struct Buffer {
  uint64_t bytes = 0;
  int device = 0;
  hipMemoryType type = hipMemoryTypeDevice;
  unsigned flags = 0;
  bool attached = false;   ///< memory of another process
  bool permanent = false;  ///< a managed variable's: outlives hipDeviceReset
};

struct LoadedModule;
struct Function {
  std::shared_ptr<LoadedModule> module;
  const Kernel* kernel = nullptr;
  int dynamic_lds_limit = 0;
};
struct LoadedModule {
  int device = 0;
  std::shared_ptr<Module> code;
  std::map<std::string, std::weak_ptr<Function>> functions;  ///< handles that exist
};

struct DeviceState {
  int ordinal = 0;
  std::unique_ptr<Device> sim;
  uint64_t capacity = 0, used = 0, peak = 0;
  uint64_t visible = 0;  ///< bit per device whose memory this one may access
  uint64_t release_threshold = 0;
  unsigned flags = 0;
  std::map<hipLimit_t, size_t> limits;
  std::shared_ptr<Stream> null_stream;
  std::vector<std::shared_ptr<Stream>> streams;  ///< also closing ones until they are empty

  const TargetInfo& target() const { return sim->target(); }
  std::string arch_name() const;  ///< as gcnArchName has it
};

struct Graph;
struct GraphExec;

/// One per process, never destroyed: worker threads may outlive main().
class Machine {
 public:
  /// Null if the environment is wrong or memory is missing; the reason was printed.
  static Machine* get();

  DeviceState& current();
  DeviceState* device(int ordinal);
  /// Resolves null, legacy and per-thread handles; null if there is no such stream. Needs the lock.
  std::shared_ptr<Stream> stream(hipStream_t handle);
  std::shared_ptr<Stream> create_stream(int device, unsigned flags, int priority);
  /// Appends to the stream, after what the null-stream rules say. Needs the lock.
  Mark submit(const std::shared_ptr<Stream>& stream, std::function<hipError_t()> run, std::vector<Mark> after = {},
              bool cleanup = false);
  /// Returns the task's status; releases the lock meanwhile.
  hipError_t wait(std::unique_lock<std::mutex>& lock, const Mark& mark);
  hipError_t wait_all(std::unique_lock<std::mutex>& lock, int device);
  /// Waits for everything in all devices, without running the program's own functions any more.
  void drain();
  /// For the check of uninitialised values: what was allocated, and what the host's calls have written.
  void note_unwritten(uint64_t base, uint64_t bytes);
  void note_written(const void* pointer, uint64_t bytes);
  /// Writes the report that CREST_SIM_REPORT asks for.
  void write_report() const;

  std::mutex mutex;
  std::condition_variable changed;
  Options options;
  std::shared_ptr<Memory> memory;
  std::unique_ptr<Profile> profile;  ///< if a report is wanted
  std::unique_ptr<Checker> checker;  ///< if checks are wanted; launches then run one after another, so that each
                                     ///< finding goes to its own stream
  std::mutex checked_launch;
  std::vector<std::unique_ptr<DeviceState>> devices;
  std::map<uint64_t, Buffer> buffers;  ///< by base address
  Handles<Stream> streams;
  Handles<Event> events;
  Handles<LoadedModule> modules;
  Handles<Function> functions;
  Handles<Graph> graphs;
  Handles<GraphExec> execs;
  std::set<const struct Node*> nodes;  ///< of all graphs
  bool exiting = false;

 private:
  Status start();
  void work(std::shared_ptr<Stream> stream);
};

/// What belongs to a thread of the program.
struct ThreadState {
  int device = 0;
  hipError_t last_error = hipSuccess;
  struct Configuration {
    dim3 grid, block;
    size_t shared_bytes;
    hipStream_t stream;
  };
  std::vector<Configuration> configurations;
  std::map<int, std::weak_ptr<Stream>> streams;  ///< hipStreamPerThread, by device
  std::vector<int> contexts;
  hipStreamCaptureMode capture_mode = hipStreamCaptureModeGlobal;
};
ThreadState& this_thread();

/// A line on stderr that says what an error code cannot.
void explain(const std::string& text);
/// The same, once per text.
void explain_once(const std::string& text);

/// Body of every call: starts the machine, remembers an error for hipGetLastError, lets no exception out.
template <class Body>
hipError_t call(Body&& body) noexcept {
  hipError_t status = hipErrorUnknown;
  try {
    Machine* machine = Machine::get();
    status = machine ? body(*machine) : hipErrorNoDevice;
  } catch (const std::bad_alloc&) {
    status = hipErrorOutOfMemory;
  } catch (const std::exception& e) {
    explain(e.what());
  }
  if (status != hipSuccess) this_thread().last_error = status;
  return status;
}

}  // namespace crest_sim::hip
