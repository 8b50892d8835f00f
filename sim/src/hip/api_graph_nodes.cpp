// Nodes of graphs: made by hand, read, changed.
#include "hip/graph.h"
#include "hip/graph_calls.h"
#include "hip/registered.h"

namespace crest_sim::hip {

hipError_t kernel_operation(Machine& m, const hipKernelNodeParams* p, Operation& out) {
  if (!p || !p->func) return hipErrorInvalidValue;
  std::shared_ptr<Function> f;
  if (hipError_t e = find_kernel(m, p->func, f)) return e;
  KernelOperation k;
  if (hipError_t e = make_launch(m, f, p->gridDim, p->blockDim, p->sharedMemBytes, p->kernelParams, p->extra, k))
    return e;
  out = std::move(k);
  return hipSuccess;
}

hipError_t memset_operation(Machine& m, const hipMemsetParams* p, Operation& out) {
  if (!p || !p->dst) return hipErrorInvalidValue;
  FillOperation f{static_cast<uint8_t*>(p->dst), p->value, p->elementSize, p->width, p->height, p->pitch};
  if (p->elementSize == 1) f.value &= 0xff;
  out = f;
  return check(m, out);
}

hipError_t copy_operation(Machine& m, void* to, const void* from, size_t bytes, hipMemcpyKind kind, Operation& out) {
  if (!to || !from) return hipErrorInvalidValue;
  CopyOperation c;
  c.to = static_cast<uint8_t*>(to);
  c.from = static_cast<const uint8_t*>(from);
  c.width = c.to_pitch = c.from_pitch = bytes;
  c.kind = kind;
  out = c;
  return check(m, out);
}

hipError_t host_operation(const hipHostNodeParams* p, Operation& out) {
  if (!p || !p->fn) return hipErrorInvalidValue;
  out = HostOperation{[fn = p->fn, data = p->userData] { fn(data); }, *p};
  return hipSuccess;
}

}  // namespace crest_sim::hip

using namespace crest_sim::hip;

namespace {

hipError_t copy_3d(const hipMemcpy3DParms* p, Operation& out) {
  if (!p) return hipErrorInvalidValue;
  if (p->srcArray || p->dstArray) {
    explain_once("hipGraphAddMemcpyNode: arrays are not supported");
    return hipErrorNotSupported;
  }
  if (!p->srcPtr.ptr || !p->dstPtr.ptr) return hipErrorInvalidValue;
  auto at = [](const hipPitchedPtr& base, const hipPos& pos) {
    return static_cast<uint8_t*>(base.ptr) + (pos.z * base.ysize + pos.y) * base.pitch + pos.x;
  };
  CopyOperation c;
  c.to = at(p->dstPtr, p->dstPos);
  c.from = at(p->srcPtr, p->srcPos);
  c.width = p->extent.width;
  c.height = p->extent.height;
  c.depth = p->extent.depth;
  c.to_pitch = p->dstPtr.pitch;
  c.from_pitch = p->srcPtr.pitch;
  c.to_slice = p->dstPtr.pitch * p->dstPtr.ysize;
  c.from_slice = p->srcPtr.pitch * p->srcPtr.ysize;
  c.kind = p->kind;
  out = c;
  return hipSuccess;
}

/// `make` fills the operation; it runs without the lock.
template <class Make>
hipError_t add(hipGraphNode_t* out, hipGraph_t graph, const hipGraphNode_t* dependencies, size_t count, Make&& make) {
  return call([&](Machine& m) {
    if (!out || (count && !dependencies)) return hipErrorInvalidValue;
    *out = nullptr;
    Operation operation;
    if (hipError_t e = make(m, operation)) return e;
    std::lock_guard lock(m.mutex);
    auto g = m.graphs.find(graph);
    if (!g) return hipErrorInvalidValue;
    std::vector<Node*> after;
    for (size_t i = 0; i < count; ++i) {
      auto* node = reinterpret_cast<Node*>(dependencies[i]);
      if (std::find(after.begin(), after.end(), node) != after.end()) return hipErrorInvalidValue;
      after.push_back(node);
    }
    Node* node = add_node(m, *g, std::move(operation), after);
    if (!node) return hipErrorInvalidValue;
    *out = reinterpret_cast<hipGraphNode_t>(node);
    return hipSuccess;
  });
}

hipError_t event_operation(Machine& m, hipEvent_t event, bool record, Operation& out) {
  std::lock_guard lock(m.mutex);
  auto e = m.events.find(event);
  if (!e) return hipErrorInvalidValue;
  out = EventOperation{e, record};
  return hipSuccess;
}

/// The operation of a node, if it is of type T.
template <class T, class Body>
hipError_t with_node(hipGraphNode_t handle, Body&& body) {
  return call([&](Machine& m) {
    std::lock_guard lock(m.mutex);
    auto* node = reinterpret_cast<Node*>(handle);
    if (!m.nodes.count(node)) return hipErrorInvalidValue;
    T* operation = std::get_if<T>(&node->operation);
    return operation ? body(m, *operation) : hipErrorInvalidValue;
  });
}

/// Replaces a node's operation by one of the same type.
template <class Make>
hipError_t replace(hipGraphNode_t handle, Make&& make) {
  return call([&](Machine& m) {
    Operation operation;
    if (hipError_t e = make(m, operation)) return e;
    std::lock_guard lock(m.mutex);
    auto* node = reinterpret_cast<Node*>(handle);
    if (!m.nodes.count(node) || node->operation.index() != operation.index()) return hipErrorInvalidValue;
    node->operation = std::move(operation);
    return hipSuccess;
  });
}

}  // namespace

extern "C" {

hipError_t hipGraphAddKernelNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies,
                                 size_t count, const hipKernelNodeParams* parameters) {
  return add(node, graph, dependencies, count,
             [&](Machine& m, Operation& out) { return kernel_operation(m, parameters, out); });
}
hipError_t hipGraphAddMemcpyNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies,
                                 size_t count, const hipMemcpy3DParms* parameters) {
  return add(node, graph, dependencies, count, [&](Machine& m, Operation& out) {
    hipError_t e = copy_3d(parameters, out);
    return e ? e : check(m, out);
  });
}
hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies,
                                   size_t count, void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  return add(node, graph, dependencies, count,
             [&](Machine& m, Operation& out) { return copy_operation(m, to, from, bytes, kind, out); });
}
hipError_t hipGraphAddMemsetNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies,
                                 size_t count, const hipMemsetParams* parameters) {
  return add(node, graph, dependencies, count,
             [&](Machine& m, Operation& out) { return memset_operation(m, parameters, out); });
}
hipError_t hipGraphAddHostNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies, size_t count,
                               const hipHostNodeParams* parameters) {
  return add(node, graph, dependencies, count,
             [&](Machine&, Operation& out) { return host_operation(parameters, out); });
}
hipError_t hipGraphAddEmptyNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies,
                                size_t count) {
  return add(node, graph, dependencies, count, [](Machine&, Operation&) { return hipSuccess; });
}
hipError_t hipGraphAddChildGraphNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies,
                                     size_t count, hipGraph_t child) {
  return add(node, graph, dependencies, count, [&](Machine& m, Operation& out) {
    std::lock_guard lock(m.mutex);
    auto g = m.graphs.find(child);
    bool ok = false;
    if (!g || child == graph || (g->order(ok), !ok)) return hipErrorInvalidValue;
    auto own = clone_graph(m, *g);
    m.graphs.add(own);
    out = ChildOperation{own};
    return hipSuccess;
  });
}
hipError_t hipGraphAddEventRecordNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies,
                                      size_t count, hipEvent_t event) {
  return add(node, graph, dependencies, count,
             [&](Machine& m, Operation& out) { return event_operation(m, event, true, out); });
}
hipError_t hipGraphAddEventWaitNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies,
                                    size_t count, hipEvent_t event) {
  return add(node, graph, dependencies, count,
             [&](Machine& m, Operation& out) { return event_operation(m, event, false, out); });
}

hipError_t hipGraphChildGraphNodeGetGraph(hipGraphNode_t node, hipGraph_t* graph) {
  return with_node<ChildOperation>(node, [&](Machine&, ChildOperation& c) {
    if (!graph) return hipErrorInvalidValue;
    *graph = reinterpret_cast<hipGraph_t>(c.graph.get());
    return hipSuccess;
  });
}
/// The arguments come back as one buffer inside the node, in the form of `extra`.
hipError_t hipGraphKernelNodeGetParams(hipGraphNode_t node, hipKernelNodeParams* parameters) {
  return with_node<KernelOperation>(node, [&](Machine&, KernelOperation& k) {
    if (!parameters) return hipErrorInvalidValue;
    k.packed_bytes = k.arguments.size();
    void* list[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, k.arguments.data(), HIP_LAUNCH_PARAM_BUFFER_SIZE, &k.packed_bytes,
                    HIP_LAUNCH_PARAM_END};
    std::copy(std::begin(list), std::end(list), k.extra);
    parameters->func = k.function.get();
    parameters->gridDim = {k.config.grid.x, k.config.grid.y, k.config.grid.z};
    parameters->blockDim = {k.config.block.x, k.config.block.y, k.config.block.z};
    parameters->sharedMemBytes = k.config.dynamic_lds_bytes;
    parameters->kernelParams = nullptr;
    parameters->extra = k.extra;
    return hipSuccess;
  });
}
hipError_t hipGraphKernelNodeSetParams(hipGraphNode_t node, const hipKernelNodeParams* parameters) {
  return replace(node, [&](Machine& m, Operation& out) { return kernel_operation(m, parameters, out); });
}
hipError_t hipGraphMemsetNodeGetParams(hipGraphNode_t node, hipMemsetParams* parameters) {
  return with_node<FillOperation>(node, [&](Machine&, FillOperation& f) {
    if (!parameters) return hipErrorInvalidValue;
    *parameters = {f.to, f.element_bytes, f.height, f.pitch, f.value, f.width};
    return hipSuccess;
  });
}
hipError_t hipGraphMemsetNodeSetParams(hipGraphNode_t node, const hipMemsetParams* parameters) {
  return replace(node, [&](Machine& m, Operation& out) { return memset_operation(m, parameters, out); });
}
hipError_t hipGraphMemcpyNodeSetParams1D(hipGraphNode_t node, void* to, const void* from, size_t bytes,
                                         hipMemcpyKind kind) {
  return replace(node, [&](Machine& m, Operation& out) { return copy_operation(m, to, from, bytes, kind, out); });
}
hipError_t hipGraphHostNodeGetParams(hipGraphNode_t node, hipHostNodeParams* parameters) {
  return with_node<HostOperation>(node, [&](Machine&, HostOperation& h) {
    if (!parameters) return hipErrorInvalidValue;
    *parameters = h.parameters;
    return hipSuccess;
  });
}
hipError_t hipGraphHostNodeSetParams(hipGraphNode_t node, const hipHostNodeParams* parameters) {
  return replace(node, [&](Machine&, Operation& out) { return host_operation(parameters, out); });
}
}
