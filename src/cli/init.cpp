#include <unistd.h>

#include <fmt/format.h>

#include "berth/base/printable.h"
#include "berth/command/command.h"
#include "berth/command/field_options.h"
#include "berth/lease/original_locks.h"
#include "berth/site/site_file.h"
#include "berth/store/site_directory.h"
#include "berth/sys/environment.h"

namespace berth::cli {
namespace {

constexpr std::string_view kInitAbout =
    "For the administrator, once on each machine. Makes /run/berth, which all users then share and "
    "in which only root can remove other users' tickets; a file for each GPU; and a line in "
    "/etc/tmpfiles.d that makes all of it again at each boot. Run it again to repair what has "
    "changed and to add new GPUs: it disturbs no lease. If jobs hold or wait for leases in "
    "/tmp/berth, which serves a machine without /run/berth, it makes nothing, because users of "
    "/run/berth would not see these leases.";

class Init : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.about = kInitAbout;
    syntax.text("Options", "root", "DIR", "in the file system below DIR: an image", root_);
    syntax.flag("Options", "force", "also while /tmp/berth is in use: GPUs leased there can be granted again",
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
    if (site.done.empty()) output.out = "nothing to do: all is as it should be\n";
    for (const std::string& sentence : site.trouble)
      output.err += fmt::format("berth: {}\n", printable(sentence));
    return output;
  }

 private:
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
    const auto files = root_.empty() ? site::read_site_files()
                                     : site::read_site_files({.site = root_ + "/etc/berth.toml", .user = ""});
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
