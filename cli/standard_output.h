#pragma once

#include <string>

namespace headway::cli {

/// Opens /dev/null in place of standard streams that the caller closed, so that no file of ours gets their numbers, and
/// makes a reader that went away (`| head`) an error of the write instead of a signal.
void prepare_standard_streams();

/// Writes all of `text` to standard output. Throws std::runtime_error when it cannot be written (closed, full disk);
/// a reader that went away is no error: the text has gone as far as somebody wanted it.
void print(const std::string& text);

/// Writes a message to standard error, with "headway: " in front and a newline behind.
void complain(const std::string& message);

}  // namespace headway::cli
