#include <fmt/format.h>

#include "berth/base/error.h"
#include "berth/base/text.h"
#include "berth/cli/commands.h"
#include "berth/cli/invocation.h"
#include "berth/view/answers_json.h"

// The commands that only speak of Berth itself.
namespace berth::cli {
namespace {

class Version : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.about = "    berth version";
    syntax.flag("Options", "json", "as JSON (docs/schema/version.json)", json_);
  }
  Result<command::Output> run(command::Environment&, const command::Words&) override {
    return command::Output{.out =
                               json_ ? view::version_json(version()) : fmt::format("berth {}\n", version())};
  }

 private:
  bool json_ = false;
};

class Help : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "[COMMAND]";
    syntax.about = "    berth help run";
    syntax.flag("Options", "all", "a line for each command", all_);
    for (const Row& row : rows()) {
      if (!row.summary.empty()) syntax.words.push_back(row.name);
    }
  }
  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    if (words.empty()) return command::Output{.out = all_ ? help_on_all() : general_help()};
    const Row* row = find_row(words.front());
    if (row == nullptr || words.size() > 1) {
      return fail(ErrorCode::usage, "there is no command '{}'; `berth help` lists them",
                  fmt::join(words, " "));
    }
    const std::unique_ptr<command::Command> command = row->make();
    std::optional<std::string> sim;
    return command::Output{.out = help_text(full_syntax(*row, *command, sim), full_name(*row), row->summary)};
  }

 private:
  bool all_ = false;
};

}  // namespace

BERTH_COMMAND(make_version, Version);
BERTH_COMMAND(make_help, Help);

// The manual page is made from the same table and the same options that dispatch and help read.

namespace {

constexpr std::string_view kOpening = R"(.SH NAME
berth \- look at GPUs, pick, lease and show them
.SH SYNOPSIS
.B berth
.RB [ \-\-sim
.IR MACHINE ]
.RI [ COMMAND ]
.RI [ OPTIONS ]
.SH DESCRIPTION
Berth gives every GPU job a berth: it looks at the GPUs of a machine, picks the right ones, and leases
them so that nobody else gets them. There is no daemon, and nobody needs to be root. A lease is held by the
kernel for as long as a process of the job lives, and ends by itself, also after kill \-9.
.PP
Without a command it lists the GPUs.
)";

constexpr std::string_view kClosing = R"(.SH EXIT STATUS
.TP
.B 0
done;
.B list
also where there is no GPU,
.B why
also where the answer is no
.TP
.B 1
something failed: a file, a system call, a check of
.BR doctor ;
.BR verify :
the job strays from its lease, or that cannot be known
.TP
.B 2
the command line is wrong
.TP
.B 69
there is no driver, or nothing on this machine can ever satisfy the request
.TP
.B 75
not now;
.BR verify :
nothing of the job computes on any GPU at this moment
.TP
.B 124
a wait ran out
.PP
.B run
ends as its command: with its status, by its signal, with 126 or 127 where it could not be started.
A failing status leaves nothing on the standard output.
.SH ENVIRONMENT
.TP
.BR CUDA_VISIBLE_DEVICES " (AMD GPUs: " ROCR_VISIBLE_DEVICES )
limits the candidates, unless
.B \-\-mask ignore
is given;
.B run
sets it for its command, and
.B CUDA_DEVICE_ORDER=PCI_BUS_ID
with the first; with the second it takes
.BR HIP_VISIBLE_DEVICES ", " GPU_DEVICE_ORDINAL " and " CUDA_VISIBLE_DEVICES
away, by which ROCm would choose among the GPUs of the lease
.TP
.B BERTH_DIR
the lease directory, in place of /run/berth or /tmp/berth
.TP
.B BERTH_LEASE
set for the command: the lease that it runs in
.TP
.B BERTH_VERIFY
how long after its start
.B run
looks whether the command keeps to its lease: a time, or never
.TP
.B BERTH_SITE_FILE
the site file, in place of /etc/berth.toml; it has to be there
.TP
.B BERTH_SSH
the ssh of
.BR \-\-anywhere ,
with options: ssh \-F lab.conf
.TP
.B NO_COLOR
no colours, where it is set to anything
.TP
.B COLUMNS
the width of a terminal
.SH FILES
.TP
.I /etc/berth.toml
what the site lays down
.TP
.I ~/.config/berth.toml
what the user lays down beside it; it may only narrow the site's, except for its hosts
.TP
.I /run/berth, /tmp/berth
the lease directory: the first if an administrator made it
.SH SEE ALSO
.BR nvidia\-smi (1),
.BR flock (1)
)";

/// Text as roff: no character of it means anything else than itself.
std::string roff(std::string_view text) {
  std::string result;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) result += "\\&";
    line_begins = c == '\n';
    switch (c) {
      case '\\':
        result += "\\e";
        break;
      case '-':
        result += "\\-";
        break;
      case '~':
        result += "\\(ti";
        break;
      case '`':
        result += "\\(ga";
        break;
      case '^':
        result += "\\(ha";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string about_in_roff(std::string_view about) {
  std::string text;
  while (!about.empty()) {
    const std::size_t end = about.find("\n\n");
    const std::string_view paragraph = about.substr(0, end);
    text += paragraph.starts_with(' ') ? fmt::format(".PP\n.nf\n{}\n.fi\n", roff(paragraph))
                                       : fmt::format(".PP\n{}\n", roff(paragraph));
    if (end == std::string_view::npos) break;
    about.remove_prefix(end + 2);
  }
  return text;
}

std::string option_in_roff(const command::Option& each) {
  const std::string letter = each.letter == 0 ? "" : fmt::format("\\-{}, ", each.letter);
  const std::string argument = argument_of(each);
  const std::string value = argument.empty() ? "" : fmt::format("\\fI{}\\fR", roff(argument));
  return fmt::format(".TP\n\\fB{}\\-\\-{}\\fR{}\n{}\n", letter, roff(each.name), value, roff(each.help));
}

class Manual : public command::Command {
 public:
  Result<command::Output> run(command::Environment&, const command::Words&) override {
    std::string text =
        fmt::format(".TH BERTH 1 \"\" \"berth {}\" \"User Commands\"\n{}.SH COMMANDS\n", version(), kOpening);
    for (const Row& row : rows()) {
      if (row.summary.empty()) continue;
      const auto command = row.make();
      std::optional<std::string> sim;
      const command::Syntax syntax = full_syntax(row, *command, sim);
      text +=
          fmt::format(".SS \"berth {}{}{}\"\n{}.\n{}", row.name, syntax.options.empty() ? "" : " [OPTIONS]",
                      syntax.arguments.empty() ? std::string() : " " + roff(syntax.arguments),
                      roff(row.summary), about_in_roff(syntax.about));
      for (const command::Option& each : syntax.options) text += option_in_roff(each);
    }
    return command::Output{.out = text + std::string(kClosing)};
  }
};

}  // namespace

BERTH_COMMAND(make_manual, Manual);

}  // namespace berth::cli
