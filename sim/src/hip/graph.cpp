#include "hip/graph.h"

#include <algorithm>

namespace crest_sim::hip {

Graph::~Graph() {
  for (const auto& node : nodes) machine->nodes.erase(node.get());
}

bool Graph::holds(const Node* node) const { return machine->nodes.count(node) != 0 && node->graph == this; }

std::vector<Node*> Graph::dependents(const Node* node) const {
  std::vector<Node*> out;
  for (const auto& other : nodes)
    if (std::find(other->after.begin(), other->after.end(), node) != other->after.end()) out.push_back(other.get());
  return out;
}

std::vector<Node*> Graph::order(bool& ok) const {
  std::map<const Node*, size_t> index;
  for (size_t i = 0; i < nodes.size(); ++i) index[nodes[i].get()] = i;
  std::vector<size_t> missing(nodes.size());
  std::vector<std::vector<size_t>> next(nodes.size());
  std::set<size_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    missing[i] = nodes[i]->after.size();
    for (const Node* before : nodes[i]->after) next[index.at(before)].push_back(i);
    if (missing[i] == 0) ready.insert(i);
  }
  std::vector<Node*> out;
  while (!ready.empty()) {
    size_t i = *ready.begin();
    ready.erase(ready.begin());
    out.push_back(nodes[i].get());
    for (size_t n : next[i])
      if (--missing[n] == 0) ready.insert(n);
  }
  ok = out.size() == nodes.size();
  return out;
}

std::shared_ptr<Graph> make_graph(Machine& machine) {
  auto graph = std::make_shared<Graph>();
  graph->machine = &machine;
  return graph;
}

Node* add_node(Machine& machine, Graph& graph, Operation operation, const std::vector<Node*>& after) {
  for (const Node* node : after)
    if (!graph.holds(node)) return nullptr;
  auto node = std::make_unique<Node>();
  node->graph = &graph;
  node->operation = std::move(operation);
  for (Node* before : after)
    if (std::find(node->after.begin(), node->after.end(), before) == node->after.end()) node->after.push_back(before);
  machine.nodes.insert(node.get());
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().get();
}

std::shared_ptr<Graph> clone_graph(Machine& machine, const Graph& graph) {
  auto clone = make_graph(machine);
  std::map<const Node*, Node*> made;
  for (const auto& node : graph.nodes) {
    Operation operation = node->operation;
    if (auto* child = std::get_if<ChildOperation>(&operation)) child->graph = clone_graph(machine, *child->graph);
    Node* copy = add_node(machine, *clone, std::move(operation), {});
    copy->origin = node.get();
    made[node.get()] = copy;
  }
  for (const auto& node : graph.nodes)
    for (const Node* before : node->after) made[node.get()]->after.push_back(made.at(before));
  return clone;
}

hipError_t run_graph(Machine& machine, const Graph& graph) {
  bool ok = true;
  for (const Node* node : graph.order(ok))
    if (hipError_t e = execute(machine, node->operation)) return e;
  return ok ? hipSuccess : hipErrorInvalidValue;
}

hipError_t run_event(Machine& machine, const EventOperation& operation) {
  std::unique_lock lock(machine.mutex);
  if (!operation.record) return machine.wait(lock, operation.event->mark);
  auto mark = std::make_shared<Task>();
  mark->done = true;
  mark->finished = std::chrono::steady_clock::now();
  operation.event->mark = mark;
  machine.changed.notify_all();
  return hipSuccess;
}

hipGraphNodeType type_of(const Operation& operation) {
  if (std::holds_alternative<KernelOperation>(operation)) return hipGraphNodeTypeKernel;
  if (std::holds_alternative<CopyOperation>(operation)) return hipGraphNodeTypeMemcpy;
  if (std::holds_alternative<FillOperation>(operation)) return hipGraphNodeTypeMemset;
  if (std::holds_alternative<HostOperation>(operation)) return hipGraphNodeTypeHost;
  if (std::holds_alternative<ChildOperation>(operation)) return hipGraphNodeTypeGraph;
  if (auto* e = std::get_if<EventOperation>(&operation))
    return e->record ? hipGraphNodeTypeEventRecord : hipGraphNodeTypeWaitEvent;
  return hipGraphNodeTypeEmpty;
}

hipError_t capture_operation(Machine& machine, Stream& stream, Operation operation) {
  if (stream.capture->invalid) return hipErrorStreamCaptureInvalidated;
  if (std::holds_alternative<FreeOperation>(operation)) {
    invalidate_capture(machine, *stream.capture);
    return hipErrorStreamCaptureUnsupported;
  }
  Node* node = add_node(machine, *stream.capture->graph, std::move(operation), stream.frontier);
  if (!node) {  // a node was destroyed behind the capture's back
    invalidate_capture(machine, *stream.capture);
    return hipErrorStreamCaptureInvalidated;
  }
  stream.frontier = {node};
  return hipSuccess;
}

void invalidate_capture(Machine&, Capture& capture) { capture.invalid = true; }

bool machine_is_capturing(Machine& machine, int device) {
  for (const auto& s : machine.devices[static_cast<size_t>(device)]->streams) {
    if (!s->capture || !s->blocking()) continue;
    s->capture->invalid = true;
    return true;
  }
  return false;
}

hipError_t forbid_while_capturing(Machine& machine) {
  const ThreadState& thread = this_thread();
  if (thread.capture_mode == hipStreamCaptureModeRelaxed) return hipSuccess;
  for (const auto& d : machine.devices)
    for (const auto& s : d->streams) {
      if (!s->capture || s->capture->mode == hipStreamCaptureModeRelaxed) continue;
      bool own = s->capture->owner == &thread;
      bool other = s->capture->mode == hipStreamCaptureModeGlobal && thread.capture_mode == hipStreamCaptureModeGlobal;
      if (!own && !other) continue;
      s->capture->invalid = true;
      return hipErrorStreamCaptureUnsupported;
    }
  return hipSuccess;
}

}  // namespace crest_sim::hip
