#pragma once

#include "../train/trainer.hpp"
#include "communicator.hpp"

namespace xgrad::mpi {

/// fit() on several ranks, each of which calls it with a step() that trains together with the others, as by
/// ShardedStep.
///
/// Rank 0 shows progress, saves, observes and writes the metrics; save() must not wait for the others, and
/// must take less time than their timeout (WorldOptions::timeout). All ranks call evaluate(), and the run
/// ends if it returns false on any. A signal to one rank (also SIGUSR1, which mpirun forwards) ends the run
/// of all after the same step. An exception on one rank aborts the run of all.
///
/// Before the first step, throws ValueError on all ranks, with the differences, unless all have the same
/// version of xgrad, precision of matrix products, number of steps, first step and state of the default
/// generator; rank 0 warns if their processors have different instruction sets, as the weights then depend on
/// the assignment of work.
TrainingLog fit(Communicator& ranks, std::size_t steps, const std::function<StepResult(std::size_t)>& step,
                FitOptions options = {});

}  // namespace xgrad::mpi
