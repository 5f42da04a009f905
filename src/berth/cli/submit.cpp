#include <unistd.h>

#include <array>
#include <chrono>
#include <climits>
#include <set>

#include <fmt/format.h>

#include "berth/cli/command.h"
#include "berth/cli/command_hint.h"
#include "berth/cli/job_request.h"
#include "berth/cli/job_runner.h"
#include "berth/cli/question.h"
#include "berth/core/vendor.h"
#include "berth/sys/clock.h"
#include "berth/sys/job_process.h"
#include "berth/sys/system_error.h"

namespace berth::cli {
namespace {

constexpr std::string_view kSubmitAbout =
    "Stores COMMAND as a job, with its folder and its environment, prints the number of the job, and "
    "ends. The job runs when it is its turn in the queue and its GPUs are free, as with `berth run`, "
    "even if you have logged out. `berth log JOB` shows its output. Options end at the first word of "
    "COMMAND.\n"
    "\n"
    "    berth submit -J train -- python train.py\n"
    "    for i in $(seq 40); do berth submit -- python train.py $i; done\n"
    "    berth jobs\n"
    "\n"
    "Of your jobs with the same request, one stands in the queue of the machine at a time, so nobody "
    "waits behind all of them. A job runs at most once; one that was cut off by kill -9 or a reboot "
    "is `interrupted`.";

constexpr std::size_t kLongestName = 100;

// A job is for the machine: what a lease told this process is not for it.
std::set<std::string_view> names_of_a_lease() {
  std::set<std::string_view> names{"BERTH_LEASE", "BERTH_PROMPT"};
  for (const Vendor& vendor : vendors()) {
    names.insert(vendor.mask_variable);
    if (!vendor.order_variable.empty()) names.insert(vendor.order_variable);
  }
  return names;
}

std::vector<std::string> environment_of_job() {
  std::set<std::string_view> left_out;
  if (!variable("BERTH_LEASE").empty()) left_out = names_of_a_lease();
  left_out.insert("BERTH_JOB");
  left_out.insert("BERTH_JOB_NAME");
  std::vector<std::string> kept;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text = *each;
    if (!left_out.contains(text.substr(0, text.find('=')))) kept.emplace_back(text);
  }
  return kept;
}

// Jobs are rivals of each other that ask for the same, at the same place and under the same masks.
std::string rivals_of(const std::vector<std::string>& request, const std::vector<std::string>& environment) {
  std::set<std::string_view> telling = names_of_a_lease();
  telling.insert("BERTH_DIR");
  std::string text;
  for (const std::string& word : request) text += word + "\n";
  for (const std::string& each : environment) {
    if (telling.contains(std::string_view(each).substr(0, each.find('=')))) text += each + "\n";
  }
  return text;
}

Result<std::string> current_folder() {
  std::array<char, PATH_MAX> buffer;
  if (::getcwd(buffer.data(), buffer.size()) == nullptr) return sys::fail_errno("looking where we are");
  return std::string(buffer.data());
}

class Submit : public Command {
 public:
  Syntax syntax() override {
    Syntax syntax;
    syntax.arguments = "[--] COMMAND [ARG...]";
    syntax.about = kSubmitAbout;
    syntax.options_end_at_first_word = true;
    syntax.options.push_back({"The job",
                              'J',
                              "job-name",
                              "NAME",
                              "what it is called in `berth jobs`, `list` and `queue`",
                              {},
                              [this](std::string_view value) -> Result<void> {
                                if (value.empty() || value.size() > kLongestName)
                                  return fail(ErrorCode::usage,
                                              fmt::format("must have 1 to {} characters", kLongestName));
                                job_.name = value;
                                return {};
                              }});
    add_job_request(syntax, lease_, job_.request);
    return syntax;
  }

  Result<Output> run(Environment&, const std::vector<std::string>& words) override {
    if (words.empty())
      return fail(ErrorCode::usage, "submit which command? berth submit [OPTIONS] -- COMMAND [ARG...]");
    BERTH_DO(settle(lease_));
    // Two hours in line are a bad way to learn of a misspelt word.
    if (const auto missing = sys::cannot_start(words)) {
      return Output{.err = as_lines({missing->message + command_hint(words)}),
                    .status = missing->exit_status};
    }
    job_.words = words;
    BERTH_LET(job_.folder, current_folder());
    const std::vector<std::string> environment = environment_of_job();
    job_.rivals = rivals_of(job_.request, environment);
    job_.submitted_s = std::chrono::duration_cast<std::chrono::seconds>(sys::wall_now()).count();
    BERTH_LET(auto spool, open_spool());
    BERTH_LET(const std::uint64_t number, spool.add(job_, environment));
    Output output{.out = fmt::format("{}\n", number)};
    if (const auto runner = ensure_runner(spool, number); !runner)
      output.err =
          as_lines({fmt::format("job {} is kept, and waits until `berth jobs` can start a runner: {}", number,
                                runner.error().message)});
    return output;
  }

 private:
  Job job_;
  LeaseOptions lease_;
};

}  // namespace

std::unique_ptr<Command> make_submit() {
  return std::make_unique<Submit>();
}

}  // namespace berth::cli
