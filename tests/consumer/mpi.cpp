#include <xgrad/mpi.hpp>

int main() {
  const xgrad::mpi::World world;
  return world.size() == 1 ? 0 : 1;
}
