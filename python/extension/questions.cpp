#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "berth/base/record.h"
#include "berth/request/request_fields.h"
#include "extension.h"

namespace berth::python {
namespace {

MaskUse mask_use(bool obey) {
  return obey ? MaskUse::inherit : MaskUse::ignore;
}

Snapshot look() {
  auto seen = [] {
    const nb::gil_scoped_release unlocked;
    return snapshot();
  }();
  return value_or_raise(std::move(seen));
}

nb::tuple explain(const Request& request, bool mask) {
  auto found = [&] {
    const nb::gil_scoped_release unlocked;
    return why(request, mask_use(mask));
  }();
  return as_tuple(value_or_raise(std::move(found)));
}

Picked choose_now(const Request& request, bool mask) {
  auto picked = [&] {
    const nb::gil_scoped_release unlocked;
    return pick(request, mask_use(mask));
  }();
  return value_or_raise(std::move(picked));
}

/// As the option of this name.
void set(Request& request, const std::string& option, const std::string& value) {
  const RequestField* const field = find_request_field(option);
  if (field == nullptr) raise({ErrorCode::usage, "there is no such option"});
  if (field->kind != RequestValue::condition) return value_or_raise(set_field(*field, value, request));
  // A verdict names the condition that a device does not meet: here its part.
  const Expression condition = value_or_raise(Expression::parse(value));
  for (const Expression& part : condition.conjuncts()) request.conditions.push_back(part);
}

void bind_request(nb::module_& module) {
  nb::class_<Request>(module, "Request", "A request in the making.")
      .def(nb::init<>())
      .def_rw("admitted", &Request::admitted)
      .def("set", &set, nb::arg("option"), nb::arg("value"))
      .def("check", [](const Request& it) { value_or_raise(check(it)); });
}

nb::object clause(const Finding& finding) {
  if (!finding.verdict.failed) return nb::none();
  return nb::cast(std::string(to_text(*finding.verdict.failed)));
}

void bind_verdict(nb::module_& module) {
  nb::class_<Culprit>(module, "Culprit", "Who stands in the way.")
      .def_ro("user", &Culprit::user)
      .def_ro("pid", &Culprit::pid)
      .def_ro("command", &Culprit::command)
      .def_ro("since_s", &Culprit::since_s, "seconds since the epoch, 0 when unknown")
      .def_prop_ro(
          "lease",
          [](const Culprit& it) -> std::optional<std::string> {
            if (!it.lease) return std::nullopt;
            return to_text(*it.lease);
          },
          "id of their lease; None: they have none")
      .def_ro("note", &Culprit::note)
      .def("__repr__", [](const Culprit& it) {
        return fmt::format("Culprit(user='{}', pid={}, command='{}')", it.user, it.pid, it.command);
      });
  nb::class_<Finding>(module, "Verdict",
                      "For one device and one request: free, or the first question that it fails.")
      .def_ro("device", &Finding::device)
      .def_prop_ro("free", [](const Finding& it) { return it.verdict.free(); })
      .def_prop_ro("clause", &clause, nb::sig("def clause(self) -> str | None"),
                   "the question that it fails, such as 'not_leased'; None when it is free")
      .def_prop_ro(
          "reason", [](const Finding& it) { return it.verdict.reason; }, "in words; '' when it is free")
      .def_prop_ro(
          "culprits", [](const Finding& it) { return as_tuple(it.verdict.culprits); },
          nb::sig("def culprits(self) -> tuple[Culprit, ...]"))
      .def_prop_ro(
          "free_bytes", [](const Finding& it) { return it.verdict.free_bytes; },
          "memory free for a new lease")
      .def("__repr__", [](const Finding& it) {
        return fmt::format("Verdict(GPU {}: {})", label(it.device),
                           it.verdict.free() ? "free" : it.verdict.reason);
      });
}

std::string repr(const Picked& picked) {
  return fmt::format("Choice({})", picked.visible_devices);
}

std::vector<unsigned> indices(const Picked& picked) {
  std::vector<unsigned> all;
  for (const Device& device : picked.devices) all.push_back(device.index);
  return all;
}

std::vector<std::string> uuids(const Picked& picked) {
  std::vector<std::string> all;
  for (const Device& device : picked.devices) all.push_back(device.uuid);
  return all;
}

void bind_choice(nb::module_& module) {
  nb::class_<Picked>(module, "Choice",
                     "The devices that a request gets at this moment. str() of it is the value for "
                     "CUDA_VISIBLE_DEVICES, or what the maker has instead.")
      .def_prop_ro(
          "ids", [](const Picked& it) { return as_tuple(indices(it)); },
          nb::sig("def ids(self) -> tuple[int, ...]"), "indices, as `berth list` has them")
      .def_prop_ro(
          "uuids", [](const Picked& it) { return as_tuple(uuids(it)); },
          nb::sig("def uuids(self) -> tuple[str, ...]"))
      .def_prop_ro(
          "devices", [](const Picked& it) { return as_tuple(it.devices); },
          nb::sig("def devices(self) -> tuple[Device, ...]"))
      .def_ro("visible_devices", &Picked::visible_devices, "the value of the first of `variables`")
      .def_prop_ro(
          "variables", [](const Picked& it) { return as_dict(it.variables); },
          nb::sig("def variables(self) -> dict[str, str]"),
          "what shows a job these devices and no others: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, or "
          "ROCR_VISIBLE_DEVICES")
      .def_prop_ro(
          "notes", [](const Picked& it) { return as_tuple(it.notes); },
          nb::sig("def notes(self) -> tuple[str, ...]"), "what is to be known about the choice")
      .def("__len__", [](const Picked& it) { return it.devices.size(); })
      .def("__str__", [](const Picked& it) { return it.visible_devices; })
      .def("__repr__", [](const Picked& it) { return repr(it); });
}

}  // namespace

void bind_questions(nb::module_& module) {
  bind_request(module);
  bind_verdict(module);
  bind_choice(module);
  module.def(
      "seconds", [](const std::string& text) { return value_or_raise(seconds_from_text(text)); },
      nb::arg("text"));
  module.def("snapshot", &look);
  module.def("why", &explain, nb::arg("request"), nb::arg("mask"),
             nb::sig("def why(request: Request, mask: bool) -> tuple[Verdict, ...]"));
  module.def("pick", &choose_now, nb::arg("request"), nb::arg("mask"));
}

}  // namespace berth::python
