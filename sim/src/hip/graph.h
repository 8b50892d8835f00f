// Graphs: explicit and captured. An instantiated graph runs its nodes one after another in an order that respects the
// dependencies, which is one of the orders HIP allows.
#pragma once

#include "hip/operation.h"

namespace crest_sim::hip {

struct Node {
  Graph* graph = nullptr;
  Operation operation;
  std::vector<Node*> after;
  const Node* origin = nullptr;  ///< in a clone: the node it was made from
};

struct Graph {
  ~Graph();
  Machine* machine = nullptr;
  std::vector<std::unique_ptr<Node>> nodes;

  bool holds(const Node* node) const;
  std::vector<Node*> dependents(const Node* node) const;
  /// Order of execution; `ok` becomes false if the dependencies have a cycle.
  std::vector<Node*> order(bool& ok) const;
};

struct GraphExec {
  struct Step {
    Operation operation;
    const Node* node;  ///< that it was made from; only compared, never followed
    std::vector<size_t> after;
  };
  std::vector<Step> steps;
  Mark last;  ///< launches of one executable graph do not overlap
};

struct Capture {
  std::shared_ptr<Graph> graph;
  const Stream* origin = nullptr;
  hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
  const ThreadState* owner = nullptr;
  bool invalid = false;
  unsigned long long id = 0;
};

std::shared_ptr<Graph> make_graph(Machine& machine);
/// Null if a dependency is no node of the graph.
Node* add_node(Machine& machine, Graph& graph, Operation operation, const std::vector<Node*>& after);
std::shared_ptr<Graph> clone_graph(Machine& machine, const Graph& graph);
hipError_t run_graph(Machine& machine, const Graph& graph);
hipError_t run_event(Machine& machine, const EventOperation& operation);
hipGraphNodeType type_of(const Operation& operation);

hipError_t capture_operation(Machine& machine, Stream& stream, Operation operation);
void invalidate_capture(Machine& machine, Capture& capture);
/// Whether a stream that synchronises with the device's null stream is being captured.
bool machine_is_capturing(Machine& machine, int device);
/// Calls that may not be made while a capture is going on which the calling thread's mode protects; such a call spoils
/// the capture. Needs the lock.
hipError_t forbid_while_capturing(Machine& machine);

}  // namespace crest_sim::hip
