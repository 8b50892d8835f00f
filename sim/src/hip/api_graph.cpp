// Graphs as a whole: making, cloning, edges, instantiation, launch, update.
#include <algorithm>

#include "hip/graph.h"
#include "hip/graph_calls.h"

using namespace crest_sim::hip;

namespace {

template <class Body>
hipError_t with_graph(hipGraph_t handle, Body&& body) {
  return call([&](Machine& m) {
    std::lock_guard lock(m.mutex);
    auto g = m.graphs.find(handle);
    return g ? body(m, g) : hipErrorInvalidValue;
  });
}

template <class Body>
hipError_t with_node(hipGraphNode_t handle, Body&& body) {
  return call([&](Machine& m) {
    std::lock_guard lock(m.mutex);
    auto* node = reinterpret_cast<Node*>(handle);
    return m.nodes.count(node) ? body(m, node) : hipErrorInvalidValue;
  });
}

/// HIP's way of returning lists: the count alone, or as many as fit, the rest of the places null.
hipError_t give(const std::vector<Node*>& nodes, hipGraphNode_t* out, size_t* count) {
  if (!count) return hipErrorInvalidValue;
  if (out) {
    for (size_t i = 0; i < *count; ++i)
      out[i] = i < nodes.size() ? reinterpret_cast<hipGraphNode_t>(nodes[i]) : nullptr;
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
  return hipSuccess;
}

hipError_t instantiate(Machine& m, const Graph& graph, GraphExec& exec) {
  bool ok = false;
  std::vector<Node*> order = graph.order(ok);
  if (!ok) return hipErrorInvalidValue;
  exec.steps.clear();
  std::map<const Node*, size_t> index;
  for (Node* node : order) {
    Operation operation = node->operation;
    if (auto* child = std::get_if<ChildOperation>(&operation)) child->graph = clone_graph(m, *child->graph);
    std::vector<size_t> after;
    for (const Node* before : node->after) after.push_back(index.at(before));
    index[node] = exec.steps.size();
    exec.steps.push_back({std::move(operation), node, std::move(after)});
  }
  return hipSuccess;
}

/// Drops a graph and the graphs of its child nodes from the handles.
void forget(Machine& m, const std::shared_ptr<Graph>& graph) {
  for (const auto& node : graph->nodes)
    if (auto* child = std::get_if<ChildOperation>(&node->operation)) forget(m, child->graph);
  m.graphs.remove(graph.get());
}

hipError_t edges(Machine& m, hipGraph_t graph, const hipGraphNode_t* from, const hipGraphNode_t* to, size_t count,
                 bool add) {
  std::lock_guard lock(m.mutex);
  auto g = m.graphs.find(graph);
  if (!g || (count && (!from || !to))) return hipErrorInvalidValue;
  for (int pass = 0; pass < 2; ++pass)  // all are checked before one is changed
    for (size_t i = 0; i < count; ++i) {
      auto* a = reinterpret_cast<Node*>(from[i]);
      auto* b = reinterpret_cast<Node*>(to[i]);
      if (!g->holds(a) || !g->holds(b) || a == b) return hipErrorInvalidValue;
      auto known = std::find(b->after.begin(), b->after.end(), a);
      if ((known != b->after.end()) == add && pass == 0) return hipErrorInvalidValue;
      if (pass == 0) continue;
      if (add)
        b->after.push_back(a);
      else if (known != b->after.end())
        b->after.erase(known);
    }
  return hipSuccess;
}

template <class Make>
hipError_t change(hipGraphExec_t exec, hipGraphNode_t node, Make&& make) {
  return call([&](Machine& m) {
    Operation operation;
    if (hipError_t e = make(m, operation)) return e;
    std::lock_guard lock(m.mutex);
    auto x = m.execs.find(exec);
    if (!x) return hipErrorInvalidValue;
    for (GraphExec::Step& step : x->steps) {
      if (step.node != reinterpret_cast<Node*>(node)) continue;
      if (step.operation.index() != operation.index()) return hipErrorInvalidValue;
      step.operation = std::move(operation);
      return hipSuccess;
    }
    return hipErrorInvalidValue;
  });
}

/// Whether a new graph has the shape of the instantiated one; its parameters are then taken over.
hipGraphExecUpdateResult update(Machine& m, GraphExec& exec, const Graph& graph, const Node*& culprit) {
  GraphExec fresh;
  if (instantiate(m, graph, fresh)) return hipGraphExecUpdateError;
  if (fresh.steps.size() != exec.steps.size()) return hipGraphExecUpdateErrorTopologyChanged;
  for (size_t i = 0; i < fresh.steps.size(); ++i) {
    culprit = fresh.steps[i].node;
    if (fresh.steps[i].after != exec.steps[i].after) return hipGraphExecUpdateErrorTopologyChanged;
    if (type_of(fresh.steps[i].operation) != type_of(exec.steps[i].operation))
      return hipGraphExecUpdateErrorNodeTypeChanged;
  }
  culprit = nullptr;
  for (size_t i = 0; i < fresh.steps.size(); ++i) exec.steps[i].operation = std::move(fresh.steps[i].operation);
  return hipGraphExecUpdateSuccess;
}

}  // namespace

extern "C" {

hipError_t hipGraphCreate(hipGraph_t* graph, unsigned flags) {
  return call([&](Machine& m) {
    if (!graph || flags) return hipErrorInvalidValue;
    std::lock_guard lock(m.mutex);
    auto g = make_graph(m);
    *graph = reinterpret_cast<hipGraph_t>(g.get());
    m.graphs.add(std::move(g));
    return hipSuccess;
  });
}
hipError_t hipGraphDestroy(hipGraph_t graph) {
  return with_graph(graph, [](Machine& m, std::shared_ptr<Graph> g) {
    forget(m, g);
    return hipSuccess;
  });
}
hipError_t hipGraphClone(hipGraph_t* clone, hipGraph_t graph) {
  return with_graph(graph, [&](Machine& m, const std::shared_ptr<Graph>& g) {
    if (!clone) return hipErrorInvalidValue;
    auto copy = clone_graph(m, *g);
    *clone = reinterpret_cast<hipGraph_t>(copy.get());
    m.graphs.add(std::move(copy));
    return hipSuccess;
  });
}
hipError_t hipGraphNodeFindInClone(hipGraphNode_t* node, hipGraphNode_t original, hipGraph_t clone) {
  return with_graph(clone, [&](Machine&, const std::shared_ptr<Graph>& g) {
    if (!node) return hipErrorInvalidValue;
    for (const auto& n : g->nodes)
      if (original && n->origin == reinterpret_cast<const Node*>(original)) {
        *node = reinterpret_cast<hipGraphNode_t>(n.get());
        return hipSuccess;
      }
    return hipErrorInvalidValue;
  });
}

hipError_t hipGraphAddDependencies(hipGraph_t graph, const hipGraphNode_t* from, const hipGraphNode_t* to,
                                   size_t count) {
  return call([&](Machine& m) { return edges(m, graph, from, to, count, true); });
}
hipError_t hipGraphRemoveDependencies(hipGraph_t graph, const hipGraphNode_t* from, const hipGraphNode_t* to,
                                      size_t count) {
  return call([&](Machine& m) { return edges(m, graph, from, to, count, false); });
}
hipError_t hipGraphDestroyNode(hipGraphNode_t handle) {
  return with_node(handle, [](Machine& m, Node* node) {
    Graph& g = *node->graph;
    if (auto* child = std::get_if<ChildOperation>(&node->operation)) forget(m, child->graph);
    for (const auto& other : g.nodes) std::erase(other->after, node);
    for (const auto& d : m.devices)
      for (const auto& s : d->streams) std::erase(s->frontier, node);
    m.nodes.erase(node);
    std::erase_if(g.nodes, [&](const auto& n) { return n.get() == node; });
    return hipSuccess;
  });
}

hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t* nodes, size_t* count) {
  return with_graph(graph, [&](Machine&, const std::shared_ptr<Graph>& g) {
    std::vector<Node*> all;
    for (const auto& n : g->nodes) all.push_back(n.get());
    return give(all, nodes, count);
  });
}
hipError_t hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t* nodes, size_t* count) {
  return with_graph(graph, [&](Machine&, const std::shared_ptr<Graph>& g) {
    std::vector<Node*> roots;
    for (const auto& n : g->nodes)
      if (n->after.empty()) roots.push_back(n.get());
    return give(roots, nodes, count);
  });
}
hipError_t hipGraphGetEdges(hipGraph_t graph, hipGraphNode_t* from, hipGraphNode_t* to, size_t* count) {
  return with_graph(graph, [&](Machine&, const std::shared_ptr<Graph>& g) {
    if (!count || !from != !to) return hipErrorInvalidValue;
    std::vector<Node*> starts, ends;
    for (const auto& n : g->nodes)
      for (Node* before : n->after) starts.push_back(before), ends.push_back(n.get());
    size_t room = *count;
    if (hipError_t e = give(starts, from, count)) return e;
    return give(ends, to, to ? &room : count);
  });
}
hipError_t hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType* type) {
  return with_node(node, [&](Machine&, Node* n) {
    if (!type) return hipErrorInvalidValue;
    *type = type_of(n->operation);
    return hipSuccess;
  });
}
hipError_t hipGraphNodeGetDependencies(hipGraphNode_t node, hipGraphNode_t* nodes, size_t* count) {
  return with_node(node, [&](Machine&, Node* n) { return give(n->after, nodes, count); });
}
hipError_t hipGraphNodeGetDependentNodes(hipGraphNode_t node, hipGraphNode_t* nodes, size_t* count) {
  return with_node(node, [&](Machine&, Node* n) { return give(n->graph->dependents(n), nodes, count); });
}

hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* exec, hipGraph_t graph, unsigned long long flags) {
  return with_graph(graph, [&](Machine& m, const std::shared_ptr<Graph>& g) {
    if (!exec || (flags & ~0xfull)) return hipErrorInvalidValue;
    auto x = std::make_shared<GraphExec>();
    if (hipError_t e = instantiate(m, *g, *x)) return e;
    *exec = reinterpret_cast<hipGraphExec_t>(x.get());
    m.execs.add(std::move(x));
    return hipSuccess;
  });
}
hipError_t hipGraphInstantiate(hipGraphExec_t* exec, hipGraph_t graph, hipGraphNode_t* error_node, char* log,
                               size_t log_bytes) {
  if (error_node) *error_node = nullptr;
  if (log && log_bytes) log[0] = 0;
  return hipGraphInstantiateWithFlags(exec, graph, 0);
}
hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  return call([&](Machine& m) {
    std::lock_guard lock(m.mutex);
    return m.execs.remove(exec) ? hipSuccess : hipErrorInvalidValue;
  });
}
hipError_t hipGraphUpload(hipGraphExec_t exec, hipStream_t stream) {
  return call([&](Machine& m) {
    std::unique_lock lock(m.mutex);
    if (!m.execs.find(exec)) return hipErrorInvalidValue;
    return enqueue(m, lock, m.stream(stream), EmptyOperation{});
  });
}

/// The steps are copied, so the executable graph may be changed or destroyed while the launch waits its turn.
hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
  return call([&](Machine& m) {
    std::lock_guard lock(m.mutex);
    auto x = m.execs.find(exec);
    auto s = m.stream(stream);
    if (!x) return hipErrorInvalidValue;
    if (!s) return hipErrorInvalidHandle;
    if (s->capture) {
      s->capture->invalid = true;
      return hipErrorStreamCaptureUnsupported;
    }
    if (s->is_null && machine_is_capturing(m, s->device)) return hipErrorStreamCaptureImplicit;
    auto run = [&m, steps = x->steps] {
      for (const GraphExec::Step& step : steps)
        if (hipError_t e = execute(m, step.operation)) return e;
      return hipSuccess;
    };
    std::vector<Mark> after;
    if (x->last) after.push_back(x->last);
    x->last = m.submit(s, run, after);
    return hipSuccess;
  });
}

hipError_t hipGraphExecUpdate(hipGraphExec_t exec, hipGraph_t graph, hipGraphNode_t* error_node,
                              hipGraphExecUpdateResult* result) {
  return with_graph(graph, [&](Machine& m, const std::shared_ptr<Graph>& g) {
    auto x = m.execs.find(exec);
    if (!x) return hipErrorInvalidValue;
    const Node* culprit = nullptr;
    hipGraphExecUpdateResult r = update(m, *x, *g, culprit);
    if (result) *result = r;
    if (error_node) *error_node = reinterpret_cast<hipGraphNode_t>(const_cast<Node*>(culprit));
    return r == hipGraphExecUpdateSuccess ? hipSuccess : hipErrorGraphExecUpdateFailure;
  });
}
hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const hipKernelNodeParams* parameters) {
  return change(exec, node, [&](Machine& m, Operation& out) { return kernel_operation(m, parameters, out); });
}
hipError_t hipGraphExecMemsetNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const hipMemsetParams* parameters) {
  return change(exec, node, [&](Machine& m, Operation& out) { return memset_operation(m, parameters, out); });
}
hipError_t hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t exec, hipGraphNode_t node, void* to, const void* from,
                                             size_t bytes, hipMemcpyKind kind) {
  return change(exec, node, [&](Machine& m, Operation& out) { return copy_operation(m, to, from, bytes, kind, out); });
}
hipError_t hipGraphExecHostNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                         const hipHostNodeParams* parameters) {
  return change(exec, node, [&](Machine&, Operation& out) { return host_operation(parameters, out); });
}
}
