#pragma once

// toml++ as Berth uses it. Errors come back as values: its exceptions are off.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// Without this, numbers are read through iostreams, and the locales go into the program with them.
#define TOML_FLOAT_CHARCONV 1
// Its parser asserts, and aborts, on some malformed input that it then reports as an error all the same.
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>
