#include "extension.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

namespace berth::python {

void raise(const Error& error, const std::vector<Finding>& findings) {
  const nb::object type =
      nb::module_::import_("berth._errors").attr(std::string(outcome_of(error.code).python).c_str());
  const nb::object exception = type(error.message, as_tuple(findings));
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw nb::python_error();
}

}  // namespace berth::python

NB_MODULE(_berth, module) {
  // A lease that nobody has released at the end of the program is no mistake.
  nanobind::set_leak_warnings(false);
  module.attr("version") = berth::version();
  berth::python::bind_values(module);
  berth::python::bind_questions(module);
  berth::python::bind_lease(module);
}
