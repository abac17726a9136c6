#pragma once

// The body of a training program, on all ranks that mpirun has started.

#include <functional>

#include "../training/training_options.hpp"

namespace apps {

namespace detail {

/// Gives the options the program's name and the ranks, and calls the body.
int run_on_ranks(const char* name, RunOptions& options, const std::function<int()>& body);

}  // namespace detail

/// Runs the body of a training program on all ranks that mpirun has started, of which rank 0 prints and
/// writes its files: body(options), where the options of the others name no file but what is read.
template <class Options, class Body>
int run_training(const char* name, Options options, const Body& body) {
  return detail::run_on_ranks(name, options, [&] {
    if constexpr (requires { options.save; }) {
      if (!options.leads()) options.save.clear();
    }
    return body(options);
  });
}

}  // namespace apps
