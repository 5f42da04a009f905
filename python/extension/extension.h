#pragma once

#include <nanobind/nanobind.h>

#include "berth/api/berth.h"

// The extension has no logic: names and types of Python for what berth/api/berth.h has. A list is a
// tuple, what is absent is None, an error is an exception.
namespace berth::python {

namespace nb = nanobind;

void bind_values(nb::module_& module);
void bind_questions(nb::module_& module);
void bind_lease(nb::module_& module);

/// Raises the exception of berth._errors that the error's code names, with `findings` as its
/// verdicts.
[[noreturn]] void raise(const Error& error, const std::vector<Finding>& findings = {});

template <class T, class E>
T value_or_raise(std::expected<T, E> result) {
  if (result) {
    if constexpr (std::is_void_v<T>)
      return;
    else
      return std::move(*result);
  }
  if constexpr (std::is_same_v<E, Refusal>) {
    raise(result.error(), result.error().findings);
  } else {
    raise(result.error());
  }
}

template <class Range>
nb::tuple as_tuple(const Range& values) {
  nb::list list;
  for (const auto& value : values) list.append(nb::cast(value, nb::rv_policy::copy));
  return nb::tuple(list);
}

template <class Pairs>
nb::dict as_dict(const Pairs& pairs) {
  nb::dict dict;
  for (const auto& [key, value] : pairs) dict[nb::cast(key)] = nb::cast(value);
  return dict;
}

}  // namespace berth::python
