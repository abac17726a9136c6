#pragma once

// Text to learn a language from.

#include <string>
#include <vector>

namespace apps {

/// The texts of a UTF-8 file, plain or compressed by gzip, with blank lines between; for an empty path the
/// 500 of the Brown corpus, a sentence a line. Throws std::runtime_error, `FILE:LINE: what must hold, got
/// what`, for a line that is not UTF-8 or too long, and for a file without any text.
std::vector<std::string> texts_of(const std::string& path);

/// The lines of such a file as one text, blank ones too, each with a newline at its end; for an empty path
/// the texts of the Brown corpus with blank lines between. Throws std::runtime_error like texts_of().
std::string whole_text_of(const std::string& path);

/// The text of such a file with its own line ends, but without a byte order mark. Throws std::runtime_error
/// like texts_of().
std::string exact_text_of(const std::string& path);

}  // namespace apps
