#pragma once

namespace berth::view {

/// Every document is an object that begins with "kind" and "version"; docs/schema has a schema for
/// each kind. A key is never missing: an unknown value is null. Texts are as `printable_lines`
/// gives them.
enum class Layout {
  lines,  ///< indented, for files and people
  line,   ///< one line, for streams
};

}  // namespace berth::view
