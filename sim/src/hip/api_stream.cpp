// Streams, callbacks and events.
#include "hip/graph.h"

using namespace crest_sim::hip;

namespace {

hipError_t create(hipStream_t* out, unsigned flags, int priority) {
  return call([&](Machine& m) {
    if (!out || (flags & ~unsigned(hipStreamNonBlocking))) return hipErrorInvalidValue;
    std::lock_guard lock(m.mutex);
    auto s = m.create_stream(m.current().ordinal, flags, std::clamp(priority, -1, 1));
    *out = reinterpret_cast<hipStream_t>(s.get());
    return hipSuccess;
  });
}

template <class Body>
hipError_t with_stream(hipStream_t handle, Body&& body) {
  return call([&](Machine& m) {
    std::unique_lock lock(m.mutex);
    auto s = m.stream(handle);
    return s ? body(m, lock, s) : hipErrorInvalidHandle;
  });
}

template <class Body>
hipError_t with_event(hipEvent_t handle, Body&& body) {
  return call([&](Machine& m) {
    std::unique_lock lock(m.mutex);
    auto e = m.events.find(handle);
    return e ? body(m, lock, e) : hipErrorInvalidHandle;
  });
}

hipError_t join(Machine& m, std::unique_lock<std::mutex>&, const std::shared_ptr<Stream>& s,
                const std::shared_ptr<Event>& e) {
  if (e->capture && e->capture->origin) {
    if (s->capture && s->capture != e->capture) {
      s->capture->invalid = e->capture->invalid = true;
      return hipErrorStreamCaptureMerge;
    }
    if (s->is_null) return hipErrorStreamCaptureImplicit;
    s->capture = e->capture;
    for (Node* n : e->frontier)
      if (std::find(s->frontier.begin(), s->frontier.end(), n) == s->frontier.end()) s->frontier.push_back(n);
    return hipSuccess;
  }
  if (s->capture) {
    if (!e->mark) return hipSuccess;
    s->capture->invalid = true;
    return hipErrorStreamCaptureIsolation;
  }
  if (e->mark) m.submit(s, nullptr, {e->mark});
  return hipSuccess;
}

}  // namespace

extern "C" {

hipError_t hipStreamCreate(hipStream_t* stream) { return create(stream, hipStreamDefault, 0); }
hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) { return create(stream, flags, 0); }
hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int priority) {
  return create(stream, flags, priority);
}

hipError_t hipStreamDestroy(hipStream_t handle) {
  return call([&](Machine& m) {
    std::lock_guard lock(m.mutex);
    auto s = m.streams.find(handle);
    if (!s) return hipErrorInvalidHandle;
    if (s->capture) s->capture->invalid = true;
    if (s->capture && s->capture->origin == s.get()) s->capture->origin = nullptr;
    s->capture = nullptr;
    s->closing = true;
    m.streams.remove(handle);
    if (!s->running) std::erase(m.devices[static_cast<size_t>(s->device)]->streams, s);
    m.changed.notify_all();
    return hipSuccess;
  });
}

hipError_t hipStreamSynchronize(hipStream_t handle) {
  return with_stream(handle, [](Machine& m, auto& lock, const std::shared_ptr<Stream>& s) {
    if (s->capture) {
      s->capture->invalid = true;
      return hipErrorStreamCaptureUnsupported;
    }
    if (!s->is_null) return m.wait(lock, s->last);
    // The null stream is done when the streams that it waits for are.
    if (machine_is_capturing(m, s->device)) return hipErrorStreamCaptureImplicit;
    return m.wait(lock, m.submit(s, nullptr));
  });
}

hipError_t hipStreamQuery(hipStream_t handle) {
  return with_stream(handle, [](Machine& m, auto&, const std::shared_ptr<Stream>& s) {
    if (s->capture) {
      s->capture->invalid = true;
      return hipErrorStreamCaptureUnsupported;
    }
    if (s->is_null && machine_is_capturing(m, s->device)) return hipErrorStreamCaptureImplicit;
    auto idle = [](const Stream& x) { return !x.last || x.last->done; };
    hipError_t status = s->error;
    bool ready = idle(*s);
    if (s->is_null)
      for (const auto& other : m.devices[static_cast<size_t>(s->device)]->streams) {
        if (!other->blocking()) continue;
        ready = ready && idle(*other);
        if (status == hipSuccess) status = other->error;
      }
    if (!ready) return hipErrorNotReady;
    return status;
  });
}

hipError_t hipStreamGetFlags(hipStream_t handle, unsigned* flags) {
  return with_stream(handle, [&](Machine&, auto&, const std::shared_ptr<Stream>& s) {
    if (!flags) return hipErrorInvalidValue;
    *flags = s->flags;
    return hipSuccess;
  });
}
hipError_t hipStreamGetPriority(hipStream_t handle, int* priority) {
  return with_stream(handle, [&](Machine&, auto&, const std::shared_ptr<Stream>& s) {
    if (!priority) return hipErrorInvalidValue;
    *priority = s->priority;
    return hipSuccess;
  });
}
hipError_t hipStreamGetDevice(hipStream_t handle, hipDevice_t* device) {
  return with_stream(handle, [&](Machine&, auto&, const std::shared_ptr<Stream>& s) {
    if (!device) return hipErrorInvalidValue;
    *device = s->device;
    return hipSuccess;
  });
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  return with_stream(stream, [&](Machine& m, auto& lock, const std::shared_ptr<Stream>& s) {
    auto e = m.events.find(event);
    if (!e) return hipErrorInvalidHandle;
    if (flags > 1) return hipErrorInvalidValue;
    return join(m, lock, s, e);
  });
}

hipError_t hipStreamAddCallback(hipStream_t handle, hipStreamCallback_t callback, void* data, unsigned flags) {
  return with_stream(handle, [&](Machine& m, auto&, const std::shared_ptr<Stream>& s) {
    if (!callback || flags) return hipErrorInvalidValue;
    if (s->capture) {
      s->capture->invalid = true;
      return hipErrorStreamCaptureUnsupported;
    }
    // A callback also runs in a stream that has failed, and is told so.
    std::weak_ptr<Stream> weak = s;
    auto run = [&m, weak, handle, callback, data] {
      hipError_t status = hipSuccess;
      {
        std::lock_guard inner(m.mutex);
        if (auto stream = weak.lock()) status = stream->error;
        if (m.exiting) return hipSuccess;
      }
      callback(handle, status, data);
      return hipSuccess;
    };
    m.submit(s, run, {}, true);
    return hipSuccess;
  });
}

hipError_t hipLaunchHostFunc(hipStream_t handle, hipHostFn_t function, void* data) {
  return with_stream(handle, [&](Machine& m, auto& lock, const std::shared_ptr<Stream>& s) {
    if (!function) return hipErrorInvalidValue;
    return enqueue(m, lock, s, HostOperation{[function, data] { function(data); }, {function, data}});
  });
}

hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  return call([&](Machine& m) {
    constexpr unsigned kKnown =
        hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess | 0x20000000u | 0x40000000u | 0x80000000u;
    if (!event || (flags & ~kKnown)) return hipErrorInvalidValue;
    if ((flags & hipEventInterprocess) && !(flags & hipEventDisableTiming)) return hipErrorInvalidValue;
    std::lock_guard lock(m.mutex);
    auto e = std::make_shared<Event>();
    e->device = m.current().ordinal;
    e->flags = flags;
    *event = reinterpret_cast<hipEvent_t>(e.get());
    m.events.add(std::move(e));
    return hipSuccess;
  });
}
hipError_t hipEventCreate(hipEvent_t* event) { return hipEventCreateWithFlags(event, hipEventDefault); }

hipError_t hipEventDestroy(hipEvent_t event) {
  return call([&](Machine& m) {
    std::lock_guard lock(m.mutex);
    return m.events.remove(event) ? hipSuccess : hipErrorInvalidHandle;
  });
}

hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned flags) {
  return with_stream(stream, [&](Machine& m, auto& lock, const std::shared_ptr<Stream>& s) {
    auto e = m.events.find(event);
    if (!e) return hipErrorInvalidHandle;
    if (flags > hipEventRecordExternal) return hipErrorInvalidValue;
    if (s->device != e->device) return hipErrorInvalidHandle;
    if (s->capture && flags == hipEventRecordExternal) return enqueue(m, lock, s, EventOperation{e, true});
    if (s->capture) {
      if (s->capture->invalid) return hipErrorStreamCaptureInvalidated;
      e->capture = s->capture;
      e->frontier = s->frontier;
      e->mark = nullptr;
      return hipSuccess;
    }
    if (s->is_null && machine_is_capturing(m, s->device)) return hipErrorStreamCaptureImplicit;
    e->capture = nullptr;
    e->frontier.clear();
    e->mark = m.submit(s, nullptr);
    return hipSuccess;
  });
}
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return hipEventRecordWithFlags(event, stream, hipEventRecordDefault);
}

hipError_t hipEventSynchronize(hipEvent_t event) {
  return with_event(event, [](Machine& m, auto& lock, const std::shared_ptr<Event>& e) {
    if (e->capture) return hipErrorCapturedEvent;
    return m.wait(lock, e->mark);
  });
}
hipError_t hipEventQuery(hipEvent_t event) {
  return with_event(event, [](Machine&, auto&, const std::shared_ptr<Event>& e) {
    if (e->capture) return hipErrorCapturedEvent;
    if (!e->mark) return hipSuccess;
    return e->mark->done ? e->mark->status : hipErrorNotReady;
  });
}

hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  return with_event(start, [&](Machine& m, auto&, const std::shared_ptr<Event>& a) {
    auto b = m.events.find(stop);
    if (!milliseconds) return hipErrorInvalidValue;
    if (!b || !a->mark || !b->mark || ((a->flags | b->flags) & hipEventDisableTiming)) return hipErrorInvalidHandle;
    if (a->device != b->device) return hipErrorInvalidHandle;
    if (!a->mark->done || !b->mark->done) return hipErrorNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(b->mark->finished - a->mark->finished).count();
    return a->mark->status ? a->mark->status : b->mark->status;
  });
}
}
