#include "berth/jobs/attach.h"

#include "berth/command/command.h"
#include "berth/jobs/model/attached.h"
#include "berth/jobs/named_job.h"
#include "berth/jobs/runner.h"

namespace berth::cli {
namespace {

constexpr std::string_view kAttachAbout =
    "Connects your terminal to that of a running job of yours which was submitted with --tty: you see what "
    "it shows and type into it, and it gets the size of your window. Ctrl-\\ takes your terminal back, and "
    "the job goes on, as it does if this program is killed or your connection breaks. Several terminals may "
    "be attached at once: all show the same, and what is typed at any of them counts. When the job ends, "
    "this ends with its status.\n"
    "\n"
    "    berth submit --tty -- python -m pdb train.py\n"
    "    berth attach 12";

class Attach : public command::Command {
 public:
  void syntax(command::Syntax& syntax) override {
    syntax.arguments = "JOB";
    syntax.words_command = jobs::kWordsOfJobs;
    syntax.about = kAttachAbout;
    syntax.option("Options", "detach-key", "KEY",
                  R"(the key that takes your terminal back: ^A is Ctrl-A (default ^\))",
                  command::into(detach_key_, detach_key_from_text));
  }

  Result<command::Output> run(command::Environment&, const command::Words& words) override {
    if (words.size() != 1) return fail(ErrorCode::usage, "attach to which job? One; `berth jobs` has them");
    BERTH_LET(const auto spool, jobs::open_spool());
    BERTH_LET(const auto named, named_jobs(spool, words));
    return jobs::attach(spool, named.front(), detach_key_);
  }

 private:
  char detach_key_ = kDetachKey;
};

}  // namespace

BERTH_COMMAND(make_attach, Attach);

}  // namespace berth::cli
