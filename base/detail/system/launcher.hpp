#pragma once

// Environment variables that mpirun and other launchers set in the processes they start: those of Open MPI,
// of MPICH, and of PMIx, which has none for the number of processes.

#include <cstddef>
#include <cstdlib>
#include <optional>

namespace xgrad::detail {

/// The rank of this process; empty without a launcher.
inline std::optional<std::size_t> launched_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (const char* rank = std::getenv(variable)) return std::strtoul(rank, nullptr, 10);
  }
  return std::nullopt;
}

/// The number of processes: 1 if the launcher does not say, 0 without a launcher.
inline std::size_t launched_processes() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* count = std::getenv(variable)) return std::strtoul(count, nullptr, 10);
  }
  return launched_rank() ? 1 : 0;
}

}  // namespace xgrad::detail
