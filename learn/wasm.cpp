// What the page's worker calls.

#include <string>

#include <emscripten/emscripten.h>

#include "lesson.hpp"

/// The reply to a request, both JSON in UTF-8; it stays until the next call.
extern "C" EMSCRIPTEN_KEEPALIVE const char* lesson_answer(const char* request) {
  static learn::Lesson lesson;
  static std::string reply;
  reply = lesson.answer(request);
  return reply.c_str();
}
