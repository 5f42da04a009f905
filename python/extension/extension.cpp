#include "extension.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "berth/api/lease_helper_client.h"
#include "berth/base/text.h"

namespace berth::python {

void raise(const Error& error, const std::vector<Finding>& findings) {
  const nb::object type =
      nb::module_::import_("berth._errors").attr(std::string(outcome_of(error.code).python).c_str());
  const nb::object exception = type(printable_lines(error.message), as_tuple(findings));
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw nb::python_error();
}

}  // namespace berth::python

NB_MODULE(_berth, module) {
  // A lease that nobody has released at the end of the program is no mistake.
  nanobind::set_leak_warnings(false);
  module.attr("version") = berth::version();
  module.def(
      "program", [] { return berth::python::value_or_raise(berth::api::find_program()); },
      "The path of the program that serves this process.");
  berth::python::bind_values(module);
  berth::python::bind_questions(module);
  berth::python::bind_lease(module);
}
