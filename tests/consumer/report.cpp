#include <xgrad/report.hpp>

int main() {
  xgrad::Report report("consumer");
  report.point("loss", 0, 0.5);
  report.write("consumer.html");
}
