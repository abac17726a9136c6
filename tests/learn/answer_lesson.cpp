// Answers requests of the interactive lesson, one a line, as the page's worker does
#include <iostream>
#include <string>

#include "../../learn/lesson.hpp"

int main() {
  learn::Lesson lesson;
  for (std::string request; std::getline(std::cin, request);)
    std::cout << lesson.answer(request) << std::endl;
  return 0;
}
