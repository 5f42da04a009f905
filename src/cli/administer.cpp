#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "berth/base/text.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/command/shared_options.h"
#include "berth/lease/domain.h"
#include "berth/lease/look.h"
#include "berth/lease/original_locks.h"
#include "berth/request/request.h"
#include "berth/site/site_file.h"
#include "berth/store/lease_directory.h"
#include "berth/sys/process.h"

namespace berth::cli {
namespace {

constexpr std::string_view kExcludeAbout =
    "Takes these GPUs out: from now on Berth grants them to nobody, also after a reboot, and everybody is "
    "told the reason. Leases that are there go on. It is root's way to do what [[excluded]] in the site "
    "file does; `berth include` by root ends it. GPU: an index, a UUID or the start of one.\n"
    "\n"
    "    sudo berth exclude 3 --because \"memory errors; the repair is on Friday\"";

class Exclude : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "GPU...";
    syntax.about = kExcludeAbout;
    syntax.text("Options", "because", "TEXT", "why, for all who ask for a GPU", because_);
    syntax.add(command::source_option(options_.source));
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.empty() || because_.empty())
      return fail(ErrorCode::usage, "exclude which GPU, and why? berth exclude GPU... --because TEXT");
    BERTH_LET(auto domain, command::find_domain());
    BERTH_LET(const auto session,
              command::open_session_at(leasing::machine_around(std::move(domain)), environment, options_));
    BERTH_LET(const auto world, session.look(Request{}));
    BERTH_LET(const auto uuids, uuids_named(words, world.facts.snapshot));
    const auto excluded = site::exclude(site::standard_site_file_paths().excluded, uuids, because_);
    if (!excluded && excluded.error().os_error != 0 && ::geteuid() != 0)
      return std::unexpected(
          context(excluded.error(), "only root takes a GPU from everybody: sudo berth exclude"));
    BERTH_DO(excluded);
    return command::Output{.out =
                               fmt::format("excluded GPU {} for all users; `sudo berth include` ends that\n",
                                           device_labels(uuids, world.facts.snapshot))};
  }

 private:
  std::string because_;
  command::RequestOptions options_;
};

}  // namespace

BERTH_COMMAND(make_exclude, Exclude);

namespace {

constexpr std::string_view kIncludeAbout =
    "Ends that your requests pass these GPUs over because of runs that died on them (state \"passed over\" "
    "of berth list): what has run until now counts no more. Root does so for all users. GPU: an index, a "
    "UUID or the start of one. By root it also ends what `berth exclude` has done.\n"
    "\n"
    "    berth include 3";

class Include : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "GPU...";
    syntax.about = kIncludeAbout;
    syntax.add(command::source_option(options_.source));
  }

  Result<command::Output> run(command::Environment& environment, const command::Words& words) override {
    if (words.empty()) return fail(ErrorCode::usage, "include which GPU? berth include GPU...");
    BERTH_LET(auto domain, command::find_domain());
    BERTH_LET(const auto session,
              command::open_session_at(leasing::machine_around(std::move(domain)), environment, options_));
    BERTH_LET(const auto world, session.look(Request{}));
    PastRun included{0, world.looked_at, 0, Ending::included, {}};
    BERTH_LET(included.devices, uuids_named(words, world.facts.snapshot));
    const auto is_passed_over = [&](const std::string& uuid) {
      return world.facts.passed_over.contains(uuid);
    };
    const bool was_passed_over = std::ranges::any_of(included.devices, is_passed_over);
    bool was_excluded = false;
    const std::string excluded = site::standard_site_file_paths().excluded;
    if (!excluded.empty() && ::access(excluded.c_str(), W_OK) == 0) {
      BERTH_LET(was_excluded, site::end_exclusion(excluded, included.devices));
    }
    const std::string still_excluded = was_excluded ? "" : excluded_in_words(world, included.devices);
    if (!session.domain().store->note_outcome(included) && !was_excluded && still_excluded.empty())
      return fail(ErrorCode::failure,
                  "cannot write to {}/outcomes, so no GPU is passed over because of your runs; "
                  "`sudo berth init` makes this folder",
                  session.domain().store->path());
    const std::string labels = device_labels(included.devices, world.facts.snapshot);
    const std::string_view of_whom = ::geteuid() == 0 ? "all users" : "yours";
    command::Output output;
    if (was_passed_over || was_excluded)
      output.out = fmt::format("included GPU {}: requests of {} may have it again\n", labels, of_whom);
    else if (still_excluded.empty())
      output.err = fmt::format("berth: GPU {} was not excluded, and no requests of {} passed it over\n",
                               labels, ::geteuid() == 0 ? "root's" : of_whom);
    else
      output.err = command::as_lines({still_excluded});
    return output;
  }

 private:
  // "": the site excludes none of them.
  static std::string excluded_in_words(const leasing::World& world, const std::vector<std::string>& uuids) {
    const auto verdicts = judge(Request{}, world.ledger, world.facts);
    for (const Verdict& verdict : verdicts ? *verdicts : std::vector<Verdict>()) {
      if (verdict.failed != Clause::not_excluded || std::ranges::find(uuids, verdict.uuid) == uuids.end())
        continue;
      const std::string label = device_labels({verdict.uuid}, world.facts.snapshot);
      return fmt::format(
          "GPU {} is {}. Only root ends that: sudo berth include {}, or its [[excluded]] in the "
          "site file",
          label, verdict.reason, label);
    }
    return "";
  }

  command::RequestOptions options_;
};

}  // namespace

BERTH_COMMAND(make_include, Include);

namespace {

constexpr std::string_view kInitAbout =
    "For the administrator, once on each machine. Makes /run/berth, which all users then share and "
    "in which only root can remove other users' tickets; a file for each GPU; and a line in "
    "/etc/tmpfiles.d that makes all of it again at each boot. From then on short requests wait less, "
    "unless the site file says otherwise (expect). Run it again to repair what has "
    "changed and to add new GPUs: it disturbs no lease. If jobs hold or wait for leases in "
    "/tmp/berth, which serves a machine without /run/berth, it makes nothing, because users of "
    "/run/berth would not see these leases.\n"
    "\n"
    "    sudo berth init";

class Init : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.about = kInitAbout;
    syntax.text("Options", "root", "DIR", "in the file system below DIR: an image", root_);
    syntax.flag(
        "Options", "force",
        "also while /tmp/berth is in use: GPUs leased there can be granted again; and set the order of the "
        "queue while requests wait",
        force_);
    syntax.add(command::source_option(source_));
  }

  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    if (::geteuid() != 0)
      return fail(ErrorCode::usage, "init makes files that belong to root: sudo berth init");
    if (root_.empty() && !sys::variable("BERTH_SIM").empty())
      return fail(
          ErrorCode::usage,
          "init would change this machine and not the simulated one: add --root DIR, or leave out --sim");
    while (root_.ends_with('/')) root_.pop_back();
    command::Output output;
    const std::vector<std::string> uuids = devices(environment, output);
    BERTH_LET(const auto site, store::make_site_directory(root_, uuids, force_, lines_for_originals(output)));
    for (const std::string& sentence : site.done) output.out += printable(sentence) + "\n";
    if (site.sets_order) output.out += order_in_lines();
    if (site.done.empty() && !site.sets_order) output.out = "nothing to do: all is as it should be\n";
    for (const std::string& sentence : site.trouble)
      output.err += fmt::format("berth: {}\n", printable(sentence));
    return output;
  }

 private:
  std::string order_in_lines() const {
    const auto files = site_files();
    const bool says = files && files->policy.says_expect;
    return fmt::format(
        "the order of the queue is new: a request comes first if it has waited longest for its length, so "
        "short ones wait less\n"
        "{}\n"
        "to see what it changes here: berth simulate --from-history --since 30d --expect none\n",
        says ? "the site file has the key expect, so this order holds only if you take that key out"
             : "to have first come, first served, write expect = \"none\" into /etc/berth.toml");
  }

  Result<site::SiteFiles> site_files() const {
    if (root_.empty()) return site::read_site_files();
    return site::read_site_files({.site = root_ + "/etc/berth.toml", .user = ""});
  }

  std::vector<std::string> devices(command::Environment& environment, command::Output& output) const {
    const auto source = environment.source(source_);
    const auto snapshot = source ? (*source)->read(ReadingKind::mig) : std::unexpected(source.error());
    std::vector<std::string> uuids;
    if (!snapshot) {
      output.err = fmt::format(
          "berth: {}; no device files are made: the first to lease a device makes its file and owns it, "
          "until berth init runs again\n",
          snapshot.error().message);
      return uuids;
    }
    for (const Device& device : snapshot->devices) {
      if (!device.uuid.empty()) uuids.push_back(device.uuid);
    }
    return uuids;
  }

  /// Lines of tmpfiles.d for the locks of originals that the site file names.
  std::string lines_for_originals(command::Output& output) const {
    const auto files = site_files();
    if (!files) {
      output.err += fmt::format("berth: {}; locks of original programs that it names are not made at boot\n",
                                files.error().message);
      return "";
    }
    std::string lines;
    for (const leasing::BootFile& file : leasing::boot_files(files->policy.original_locks, root_))
      lines += fmt::format("{} {} {:04o} root root -\n", file.folder ? 'd' : 'f', file.path, file.mode);
    return lines;
  }

  std::string root_;
  bool force_ = false;
  source::SourceKind source_ = source::SourceKind::kAutomatic;
};

}  // namespace

BERTH_COMMAND(make_init, Init);

}  // namespace berth::cli
