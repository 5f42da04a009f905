#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "berth/api/cuda.h"
#include "extension.h"

namespace berth::python {
namespace {

using Wait = std::unique_ptr<LeaseWait>;

Wait start(const Request& request, const std::string& note, std::optional<std::int64_t> wait_ms, bool mask,
           const std::vector<std::string>& variables, const std::vector<std::string>& beside) {
  LeaseTerms terms{.note = note,
                   .wait = std::nullopt,
                   .mask = mask ? MaskUse::inherit : MaskUse::ignore,
                   .variables = variables,
                   .beside = beside};
  if (wait_ms) terms.wait = std::chrono::milliseconds(*wait_ms);
  return std::make_unique<LeaseWait>(value_or_raise(LeaseWait::start(request, terms)));
}

// Python's own handlers run between two steps of its interpreter, not in ours: a signal ends the
// sleep, and what its handler raises ends the wait.
void sleep(const LeaseWait& wait) {
  {
    const nb::gil_scoped_release unlocked;
    wait.sleep();
  }
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

std::unique_ptr<Lease> take_lease(LeaseWait& wait) {
  return wait.lease() == nullptr ? nullptr : std::make_unique<Lease>(std::move(*wait.lease()));
}

void bind_standing(nb::module_& module) {
  nb::class_<Ticket>(module, "Ticket", "A request that others see in the queue.")
      .def_prop_ro("id", [](const Ticket& it) { return to_text(it.id); })
      .def_prop_ro("pid", [](const Ticket& it) { return it.taker.pid; })
      .def_ro("user", &Ticket::user)
      .def_ro("command", &Ticket::command)
      .def_ro("note", &Ticket::note)
      .def("__repr__", [](const Ticket& it) {
        return fmt::format("Ticket({}, user='{}', pid={}, command='{}')", to_text(it.id), it.user,
                           it.taker.pid, it.command);
      });
  nb::class_<Standing>(module, "Standing",
                       "How things stand with a request in the queue. str() of it says so in one "
                       "line.")
      .def_ro("position", &Standing::position, "1: first of those who could be given the same devices")
      .def_prop_ro(
          "waited_s", [](const Standing& it) { return it.waited.count(); }, "seconds")
      .def_ro("behind", &Standing::behind, "the one before it; None for the first")
      .def_ro("starts_at_s", &Standing::starts_at_s,
              "about when it starts if whoever has a time takes all of it, seconds since the epoch; None: "
              "somebody before it has no time")
      .def_ro("reason", &Standing::reason, "what it waits for, or behind whom")
      .def("__str__", &in_one_line)
      .def("__repr__", [](const Standing& it) { return fmt::format("Standing('{}')", in_one_line(it)); });
}

std::unique_ptr<CudaPlaceholder> take_placeholder(const std::vector<std::size_t>& ordinals) {
  auto taken = [&] {
    const nb::gil_scoped_release unlocked;
    return CudaPlaceholder::take(ordinals);
  }();
  return std::make_unique<CudaPlaceholder>(value_or_raise(std::move(taken)));
}

void bind_cuda(nb::module_& module) {
  module.def("cuda_is_up", &cuda_is_up,
             "Whether CUDA has read CUDA_VISIBLE_DEVICES in this process already.");
  nb::class_<CudaPlaceholder>(module, "CudaPlaceholder", "A context and a little memory on some devices.")
      .def_static("take", &take_placeholder, nb::arg("ordinals"))
      .def("release", &CudaPlaceholder::release);
}

// Written here because no handler of Python's runs between the end of `berth.lease()` and the
// `with` that is to end the lease: it would run at the first step of a function of Python.
nb::object enter(nb::object lease) {
  if (lease.attr("_held").is_none()) lease.attr("_acquire")();
  if (const nb::object layer = lease.attr("_layer"); !layer.is_none()) layer.attr("is_block") = true;
  return lease;
}

// A Ctrl-C in the middle of the end would leave the rest of it undone.
void leave(const nb::object& lease, const nb::args& exception) {
  try {
    lease.attr("_leave")(*exception);
  } catch (nb::python_error&) {
    lease.attr("_leave")(*exception);
    throw;
  }
}

void bind_signals(nb::module_& module) {
  struct Entered {};
  nb::class_<Entered>(module, "Entered", "What `with` enters.")
      .def(nb::init<>())
      .def("__enter__", &enter, nb::sig("def __enter__(self) -> object"))
      .def("__exit__", &leave, nb::sig("def __exit__(self, *exception: object) -> None"));
  module.def(
      "check_signals",
      [] {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
      },
      "Lets handlers of signals that have come run now.");
}

// "well", "badly" or "by_others".
void release(Lease& lease, const std::string& ending) {
  Ending how{};
  lease.release(read_value(ending, how) ? how : Ending::by_others);
}

std::optional<std::string> receipt_text(Lease& lease) {
  const nb::gil_scoped_release unlocked;
  return lease.receipt();
}

void bind_held(nb::module_& module) {
  nb::class_<Lease>(module, "HeldLease", "The lease itself; berth.Lease is what programs use.")
      .def_prop_ro("id", &Lease::id)
      .def_prop_ro("path", &Lease::path)
      .def_prop_ro(
          "devices", [](const Lease& it) { return as_tuple(it.devices()); },
          nb::sig("def devices(self) -> tuple[Device, ...]"))
      .def_prop_ro("visible_devices", &Lease::visible_devices)
      .def_prop_ro(
          "variables", [](const Lease& it) { return as_dict(it.variables()); },
          nb::sig("def variables(self) -> dict[str, str]"))
      .def_prop_ro(
          "unset", [](const Lease& it) { return as_tuple(it.unset()); },
          nb::sig("def unset(self) -> tuple[str, ...]"))
      .def_prop_ro(
          "ordinals", [](const Lease& it) { return as_tuple(it.ordinals()); },
          nb::sig("def ordinals(self) -> tuple[int | None, ...]"))
      .def_prop_ro(
          "notes", [](const Lease& it) { return as_tuple(it.notes()); },
          nb::sig("def notes(self) -> tuple[str, ...]"))
      .def("release", &release, nb::arg("ending"))
      .def("receipt", &receipt_text);
}

}  // namespace

void bind_lease(nb::module_& module) {
  bind_cuda(module);
  bind_standing(module);
  bind_signals(module);
  bind_held(module);
  nb::class_<LeaseWait>(module, "LeaseWait", "A request for a lease while it is being answered.")
      .def_static("start", &start, nb::arg("request"), nb::arg("note"), nb::arg("wait_ms").none(),
                  nb::arg("mask"), nb::arg("variables"), nb::arg("beside"))
      .def("fileno", &LeaseWait::descriptor)
      .def("sleep", &sleep)
      .def("look", [](LeaseWait& it) { return value_or_raise(it.look()); })
      .def("cancel", &LeaseWait::cancel)
      .def("take_lease", &take_lease, nb::sig("def take_lease(self) -> HeldLease | None"));
}

}  // namespace berth::python
