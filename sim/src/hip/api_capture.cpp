// Stream capture.
#include "hip/graph.h"

using namespace crest_sim::hip;

namespace {

template <class Body>
hipError_t with_stream(hipStream_t handle, Body&& body) {
  return call([&](Machine& m) {
    std::unique_lock lock(m.mutex);
    auto s = m.stream(handle);
    return s ? body(m, s) : hipErrorInvalidHandle;
  });
}

hipStreamCaptureStatus status_of(const Stream& s) {
  if (!s.capture) return hipStreamCaptureStatusNone;
  return s.capture->invalid ? hipStreamCaptureStatusInvalidated : hipStreamCaptureStatusActive;
}

/// Everything captured must lead to the origin stream.
bool joined(const Capture& capture, const Stream& origin) {
  std::set<const Node*> leaves;
  for (const auto& node : capture.graph->nodes) leaves.insert(node.get());
  for (const auto& node : capture.graph->nodes)
    for (const Node* before : node->after) leaves.erase(before);
  for (const Node* node : origin.frontier) leaves.erase(node);
  return leaves.empty();
}

hipError_t end(Machine& m, const std::shared_ptr<Stream>& s, hipGraph_t* graph) {
  auto capture = s->capture;
  if (!capture) return hipErrorIllegalState;
  if (capture->origin != s.get()) return hipErrorStreamCaptureUnmatched;
  if (capture->mode == hipStreamCaptureModeThreadLocal && capture->owner != &this_thread())
    return hipErrorStreamCaptureWrongThread;
  bool complete = joined(*capture, *s);
  for (const auto& d : m.devices)
    for (const auto& other : d->streams)
      if (other->capture == capture) {
        other->capture = nullptr;
        other->frontier.clear();
      }
  capture->origin = nullptr;
  if (graph) *graph = nullptr;
  if (capture->invalid) return hipErrorStreamCaptureInvalidated;
  if (!complete) return hipErrorStreamCaptureUnjoined;
  if (!graph) return hipErrorInvalidValue;
  m.graphs.add(capture->graph);
  *graph = reinterpret_cast<hipGraph_t>(capture->graph.get());
  return hipSuccess;
}

}  // namespace

extern "C" {

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  return with_stream(stream, [&](Machine& m, const std::shared_ptr<Stream>& s) {
    static unsigned long long next_id = 0;
    if (mode < hipStreamCaptureModeGlobal || mode > hipStreamCaptureModeRelaxed) return hipErrorInvalidValue;
    if (s->is_null) return hipErrorStreamCaptureUnsupported;
    if (s->capture) return hipErrorIllegalState;
    auto capture = std::make_shared<Capture>();
    capture->graph = make_graph(m);
    capture->origin = s.get();
    capture->mode = mode;
    capture->owner = &this_thread();
    capture->id = ++next_id;
    s->capture = std::move(capture);
    s->frontier.clear();
    return hipSuccess;
  });
}
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  return with_stream(stream, [&](Machine& m, const std::shared_ptr<Stream>& s) { return end(m, s, graph); });
}
hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus* status) {
  return with_stream(stream, [&](Machine&, const std::shared_ptr<Stream>& s) {
    if (!status) return hipErrorInvalidValue;
    *status = status_of(*s);
    return hipSuccess;
  });
}
hipError_t hipStreamGetCaptureInfo_v2(hipStream_t stream, hipStreamCaptureStatus* status, unsigned long long* id,
                                      hipGraph_t* graph, const hipGraphNode_t** dependencies, size_t* count) {
  return with_stream(stream, [&](Machine&, const std::shared_ptr<Stream>& s) {
    if (!status) return hipErrorInvalidValue;
    *status = status_of(*s);
    if (*status != hipStreamCaptureStatusActive) return hipSuccess;
    if (id) *id = s->capture->id;
    if (graph) *graph = reinterpret_cast<hipGraph_t>(s->capture->graph.get());
    if (dependencies) *dependencies = reinterpret_cast<const hipGraphNode_t*>(s->frontier.data());
    if (count) *count = s->frontier.size();
    return hipSuccess;
  });
}
hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus* status, unsigned long long* id) {
  return hipStreamGetCaptureInfo_v2(stream, status, id, nullptr, nullptr, nullptr);
}
hipError_t hipStreamUpdateCaptureDependencies(hipStream_t stream, hipGraphNode_t* dependencies, size_t count,
                                              unsigned flags) {
  return with_stream(stream, [&](Machine&, const std::shared_ptr<Stream>& s) {
    if (flags > hipStreamSetCaptureDependencies || (count && !dependencies)) return hipErrorInvalidValue;
    if (status_of(*s) != hipStreamCaptureStatusActive) return hipErrorIllegalState;
    std::vector<Node*> nodes = flags == hipStreamAddCaptureDependencies ? s->frontier : std::vector<Node*>();
    for (size_t i = 0; i < count; ++i) {
      auto* node = reinterpret_cast<Node*>(dependencies[i]);
      if (!s->capture->graph->holds(node)) return hipErrorInvalidValue;
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    }
    s->frontier = nodes;
    return hipSuccess;
  });
}
hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  return call([&](Machine&) {
    if (!mode || *mode < hipStreamCaptureModeGlobal || *mode > hipStreamCaptureModeRelaxed) return hipErrorInvalidValue;
    std::swap(*mode, this_thread().capture_mode);
    return hipSuccess;
  });
}
}
