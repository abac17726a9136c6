#pragma once

#include <initializer_list>
#include <map>
#include <string>

#include "../exporter.hpp"

namespace xgrad::onnx::detail {

/// Adds the nodes of an op, and registers its result.
template <class T>
using Emitter = void (*)(Exporter<T>& to, const OpPair<T>& op);

/// Emitters by name of xgrad's ops.
template <class T>
using EmitterTable = std::map<std::string, Emitter<T>>;

template <class T>
void add_emitter(EmitterTable<T>& all, Emitter<T> emitter, std::initializer_list<const OpInfo*> ops) {
  for (const OpInfo* op : ops) all.emplace(op->name, emitter);
}

/// Whether ops of this name can be exported.
bool has_emitter(const std::string& op);

template <class T>
void add_elementwise_emitters(EmitterTable<T>& all);
template <class T>
void add_shape_emitters(EmitterTable<T>& all);
template <class T>
void add_network_emitters(EmitterTable<T>& all);
template <class T>
void add_reduction_emitters(EmitterTable<T>& all);
template <class T>
void add_window_emitters(EmitterTable<T>& all);
template <class T>
void add_recurrent_emitters(EmitterTable<T>& all);

}  // namespace xgrad::onnx::detail
