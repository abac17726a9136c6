#include <xgrad/mpi/world.hpp>

int main() {
  const xgrad::mpi::World world;
  return world.size() == 1 ? 0 : 1;
}
