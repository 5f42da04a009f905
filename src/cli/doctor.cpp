// Each check is a function that adds what it found; none stops the others.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <span>

#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/release.h"
#include "berth/command/shared_options.h"
#include "berth/doctor/doctor_cuda.h"
#include "berth/doctor/doctor_directory.h"
#include "berth/jobs/add_job.h"
#include "berth/lease/domain.h"
#include "berth/site/site_file.h"
#include "berth/source/source.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"
#include "berth/view/answers_json.h"
#include "berth/view/doctor.h"

namespace berth::cli {
namespace {

using view::Finding;
using view::Level;
using Findings = std::vector<Finding>;

void add(Findings& findings, Findings more) {
  std::ranges::move(more, std::back_inserter(findings));
}

void check_driver(const Result<Snapshot>& read, Findings& findings) {
  if (!read) {
    findings.push_back(
        {Level::fail, "driver", read.error().message, "without it nothing can be picked or leased"});
    return;
  }
  const Snapshot& snapshot = *read;
  std::string found = fmt::format("{} answers by {}, with {}",
                                  snapshot.driver_version.empty() ? "the driver" : snapshot.driver_version,
                                  snapshot.source, counted(snapshot.devices.size(), "device"));
  if (snapshot.stale_reason) {
    findings.push_back({Level::fail, "driver", *snapshot.stale_reason,
                        fmt::format("`dmesg | grep -i {}` shows what the driver reported; often only a "
                                    "reboot helps",
                                    view::vendor_of_first(snapshot).log_pattern)});
  } else if (snapshot.devices.empty()) {
    findings.push_back({Level::warn, "driver", std::move(found),
                        fmt::format("in a container, start it with the GPUs ({})",
                                    view::vendor_of_first(snapshot).container_help)});
  } else {
    findings.push_back({Level::pass, "driver", std::move(found), ""});
  }
  for (const std::string& note : snapshot.notes) findings.push_back({Level::warn, "driver", note, ""});
}

/// The library and the kernel module come apart when a driver is upgraded under a running machine.
void check_versions(const Result<Snapshot>& read, Findings& findings) {
  if (!read || !sys::variable("BERTH_SIM").empty() || read->driver_version.empty()) return;
  const Vendor vendor = view::vendor_of_first(*read);
  if (!vendor.one_version) return;
  const auto module = sys::read_whole(fmt::format("/sys/module/{}/version", vendor.module));
  if (!module) return;
  const std::string loaded = module->substr(0, module->find_first_of(" \n"));
  // Behind it are those of other makers.
  const std::string library = read->driver_version.substr(0, read->driver_version.find(','));
  if (loaded == library) {
    findings.push_back({Level::pass, "driver versions", "library and kernel module are both " + loaded, ""});
    return;
  }
  findings.push_back({Level::fail, "driver versions",
                      fmt::format("the library is {}, the loaded kernel module {}", library, loaded),
                      fmt::format("reboot, or unload and load the {} modules", vendor.module)});
}

/// The files that a job opens. Not of a simulated machine, which has none.
void check_permissions(std::span<const Vendor> here, Findings& findings) {
  if (!sys::variable("BERTH_SIM").empty()) return;
  const source::DeviceFiles files = source::device_files(here);
  if (!files.shut.empty()) {
    findings.push_back({Level::fail, "permissions",
                        fmt::format("no access to {}", fmt::join(files.shut, ", ")),
                        "ask for membership in the group that owns them (often video or render)"});
  } else if (files.seen > 0) {
    findings.push_back({Level::pass, "permissions", "the GPUs' device files can be opened", ""});
  }
}

/// A lease that outlives its command is meant so, or an ssh-agent or a tmux that somebody forgot.
void check_left_behind(Findings& findings) {
  const auto domain = leasing::find_domain({});
  if (!domain) return;
  const auto books = domain->store->look(store::Extent::leases);
  if (!books) return;
  for (const auto& [id, holders] : command::left_behind(*domain->store, books->ledger)) {
    std::string names;
    for (const Holder& holder : holders)
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", holder.pid, holder.command);
    findings.push_back(
        {Level::warn, "leases",
         fmt::format("the command of lease {} has ended, and what it started still holds it: {}",
                     short_name(books->ledger, id), names),
         fmt::format("berth release {} ends both; an ssh-agent or tmux that is to stay is "
                     "started outside of the lease",
                     short_name(books->ledger, id))});
  }
}

void check_logout(Findings& findings) {
  if (const auto warning = jobs::logout_warning())
    findings.push_back({Level::warn, "jobs", warning->what, warning->advice});
}

class Doctor : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.about =
        "Looks at everything that leases and readings depend on, and says how to mend what is wrong. Starts "
        "CUDA once in a process of its own, and tries each GPU that nobody has. Changes nothing. "
        "The status is 0 unless something FAILs.\n"
        "\n"
        "    berth doctor";
    syntax.flag("Options", "json", "as JSON (docs/schema/doctor.json)", json_);
    syntax.add(command::source_option(kind_));
  }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    const Findings findings = examine(environment);
    const bool failed =
        std::ranges::any_of(findings, [](const Finding& each) { return each.level == Level::fail; });
    return command::Output{.out = json_ ? view::doctor_json(findings)
                                        : view::doctor_report(findings, "leases or readings are",
                                                              command::Environment::style_of(1)),
                           .status = failed ? 1 : 0};
  }

 private:
  Findings examine(command::Environment& environment) const {
    Findings findings;
    const auto source = environment.source(kind_);
    const Result<Snapshot> read =
        source ? (*source)->read(readings_for_listing()) : std::unexpected(source.error());
    check_driver(read, findings);
    check_versions(read, findings);
    if (read) {
      const auto files = site::read_site_files();
      add(findings,
          view::device_findings(*read, files ? files->policy : SitePolicy(), leasing::inherited_masks()));
      add(findings, doctor::examine_passed_over(*read));
      add(findings, doctor::examine_cuda(*read, environment.access(kind_), command::own_environment()));
    }
    const std::vector<Vendor> here = read ? view::vendors_in(*read) : std::vector<Vendor>{};
    check_permissions(here.empty() ? vendors() : here, findings);
    std::vector<std::string> uuids;
    for (const Device& device : read ? read->devices : std::vector<Device>{}) uuids.push_back(device.uuid);
    add(findings, doctor::examine_lease_directory(store::choose_lease_directory(), uuids));
    check_left_behind(findings);
    add(findings, doctor::examine_site_files(read ? &*read : nullptr, store::choose_lease_directory().path));
    check_logout(findings);
    std::error_code ignored;
    add(findings, doctor::distributions_beside_ours(std::filesystem::canonical("/proc/self/exe", ignored)));
    return findings;
  }

  source::SourceKind kind_ = source::SourceKind::kAutomatic;
  bool json_ = false;
};

}  // namespace

BERTH_COMMAND(make_doctor, Doctor);

}  // namespace berth::cli
