#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../../base/detail/text/json_tree.hpp"
#include "../report.hpp"
#include "recording.hpp"

// Not installed: the data of a report.

namespace xgrad::detail {

/// Empty, or of a recorded type.
using AnyArray = std::variant<std::monostate, Array<float>, Array<double>>;

template <class V>
using ByStep = std::map<std::size_t, V>;

struct Curve {
  std::vector<std::int64_t> steps;
  std::vector<double> values;
};

struct AttentionSnapshot {
  AnyArray weights, gradient;
};

struct AttentionRecord {
  JsonTree head;  // identifies it
  JsonTree masked;
  ByStep<AttentionSnapshot> snapshots;
};

/// A value of a graph at a step; its arrays are empty if not kept.
struct ValueSnapshot {
  JsonTree statistics, gradient_statistics;
  AnyArray value, gradient;
};

struct GraphRecord {
  JsonTree head;
  ByStep<std::vector<ValueSnapshot>> snapshots;
  std::set<std::size_t> values, gradients;  // ids of those kept at all steps, not only at the last

  /// Keeps the inputs of the formulas of attention weights and of their gradient, which are small.
  template <class T>
  void keep_at_all_steps(const std::vector<RecordedValue<T>>& all, std::size_t weights);

  void drop_early_arrays();
};

/// Histograms of a parameter.
struct Histograms {
  JsonTree shape;
  ByStep<JsonTree> snapshots;
};

/// Data by name or in the order of addition.
struct CollectedRun {
  JsonTree run = JsonTree::object();
  std::vector<std::string> notes;
  std::set<std::size_t> steps;
  std::vector<std::pair<std::string, Curve>> curves;
  std::vector<std::pair<std::string, Histograms>> parameters;
  std::map<std::string, AnyArray> before;  // weights at the last call of parameters()
  std::vector<AttentionRecord> attention;
  std::vector<std::pair<JsonTree, ByStep<JsonTree>>> predictions;
  std::vector<GraphRecord> graphs;
  std::map<std::uint64_t, std::vector<JsonTree>> tensors;  // by recording, in this order

  /// The entry with this name; a new one at the end if it is missing.
  template <class V, class K>
  static V& entry(std::vector<std::pair<K, V>>& list, const K& name) {
    for (auto& [known, value] : list) {
      if (known == name) return value;
    }
    return list.emplace_back(name, V{}).second;
  }

  /// Returns the graph's index. Keeps all values of its last step, and those of attention and statistics of
  /// all steps.
  template <class T>
  std::size_t add_graph(const std::string& name, const RecordedGraph<T>& graph, std::size_t step);

  template <class T>
  void add_attention(const ReportExample& example, const RecordedGraph<T>& graph, std::size_t place_of_graph,
                     std::size_t step);

  /// In the format of docs/report_format.md; omits data beyond the size limit, with a note.
  std::string json() const;
};

}  // namespace xgrad::detail
