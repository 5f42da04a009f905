// `berth __lease` stands in the queue for a host program, which has it on a socket as its standard
// input (src/run/api/lease_messages.h). The lease is the host's from the start: its ticket
// names the host, and the descriptors go to the host with the grant. This process then ends, so
// that nobody but the host and its forks holds the lease. Another process, which holds nothing of
// the lease, keeps the receipt (src/run/receipts/library_receipts.h).

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "berth/answers/answers.h"
#include "berth/api/lease_messages.h"
#include "berth/base/error.h"
#include "berth/command/command.h"
#include "berth/lease/session.h"
#include "berth/receipts/library_receipts.h"
#include "berth/receipts/make_receipt.h"
#include "berth/receipts/receipts_on_disk.h"
#include "berth/source/source.h"
#include "berth/supervise/take_lease.h"
#include "berth/sys/file.h"
#include "berth/sys/process.h"
#include "berth/sys/socket.h"
#include "berth/view/refusal.h"

namespace berth::cli {
namespace {

constexpr int kSocket = STDIN_FILENO;

void end_without_host(int) {
  const int before = errno;
  char byte = 0;
  const ssize_t length = ::recv(kSocket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (length == 0 || (length < 0 && errno == ECONNRESET)) ::_exit(0);
  errno = before;
}

// Whatever this process sleeps in, the host's leaving ends it: the kernel ends its ticket with it.
Result<void> end_with_host() {
  struct sigaction action{};
  action.sa_handler = end_without_host;
  action.sa_flags = SA_RESTART;
  if (::sigaction(SIGIO, &action, nullptr) != 0 || ::fcntl(kSocket, F_SETOWN, ::getpid()) != 0 ||
      ::fcntl(kSocket, F_SETFL, ::fcntl(kSocket, F_GETFL) | O_ASYNC) != 0)
    return sys::fail_errno("watching the process that asks for a lease");
  end_without_host(SIGIO);
  return {};
}

Result<api::LeaseAsk> read_ask() {
  std::string text;
  while (api::first_record(text) == 0) {
    pollfd ready{kSocket, POLLIN, 0};
    ::poll(&ready, 1, -1);
    BERTH_LET(const auto received, sys::receive_message(kSocket));
    text += received.text;
    if (received.ended)
      return fail(ErrorCode::usage, "__lease is for Berth's libraries: it is asked over a socket");
  }
  auto ask = api::decode_ask(text);
  if (!ask) return ask;
  BERTH_DO(source::check_version(ask->version, version()));
  return ask;
}

// "NAME=value", or "NAME" for one that is not there.
void take_variables(const std::vector<std::string>& variables) {
  for (const std::string& variable : variables) {
    const std::size_t end = variable.find('=');
    const std::string name = variable.substr(0, end);
    if (end == std::string::npos)
      ::unsetenv(name.c_str());
    else
      ::setenv(name.c_str(), variable.c_str() + end + 1, 1);
  }
}

class LeaseHelper : public command::Command {
 public:
  Result<command::Output> run(command::Environment& environment, const command::Words&) override {
    auto answered = answer(environment);
    // If the answer cannot be sent, the asking process is gone.
    if (!answered) (void)send(api::LeaseRefused{answered.error(), {}});
    return command::Output{};
  }

 private:
  static Result<void> send(const api::LeaseMessage& message, std::span<const int> descriptors = {}) {
    return sys::send_message(kSocket, api::encode(message), descriptors);
  }

  Result<void> answer(command::Environment& environment) {
    BERTH_LET(auto ask, read_ask());
    BERTH_DO(end_with_host());
    take_variables(ask.variables);
    BERTH_LET(const auto sampling, receipts::sampling_times(ask.request.clean));
    BERTH_LET(const auto session,
              leasing::Session::open(environment.access(source::SourceKind::kAutomatic),
                                     ask.ignore_mask ? MaskUse::ignore : MaskUse::inherit));
    receipt_.emplace(kSocket, receipts::machine_directory(session.domain()), source::SourceKind::kAutomatic,
                     sampling);
    receipt_->begin();
    std::string command = sys::process_command(host_);
    auto settled = receipts::settle_memory(std::move(ask.request), command);
    ask.request = std::move(settled.request);
    memory_told_ = std::move(settled.told);
    leasing::TicketWords words{
        .command = std::move(command),
        .note = ask.note,
        .request = view::request_in_words(ask.request),
        .host = static_cast<std::uint32_t>(host_),
    };
    words.earlier_runs = receipts::earlier_runs_of(words.command);
    for (const std::string& text : ask.beside) {
      if (const auto id = ticket_id_from_text(text)) words.beside.push_back(*id);
    }
    const leasing::OnWait on_wait{
        [this](const Standing& standing, const Snapshot& snapshot) { tell(standing, snapshot); }, true};
    BERTH_LET(auto acquired, session.acquire(ask.request, words, patience_of(ask), on_wait));
    if (const auto* refusal = std::get_if<leasing::ExplainedRefusal>(&acquired)) return refuse(*refusal);
    auto& lease = std::get<leasing::HeldLease>(acquired);
    BERTH_DO(hand_over(session, lease));
    receipt_->keep(session.domain(), std::move(lease));
    // The host waits for the end of this process, and the kernel frees its memory faster.
    ::_exit(0);
  }

  static Patience patience_of(const api::LeaseAsk& ask) {
    Patience patience;
    patience.wait = !ask.wait || ask.wait->count() > 0;
    patience.limit = ask.wait;
    return patience;
  }

  void tell(const Standing& standing, const Snapshot& snapshot) {
    receipt_->end();
    // A fork of the host may still have the other end.
    if (::getppid() != host_) ::_exit(0);
    // A host that does not listen is not written to, until it does.
    if (!sys::is_all_read(kSocket)) return;
    (void)send(view::told(standing, snapshot, answers::plain_style()));
  }

  static Result<void> refuse(const leasing::ExplainedRefusal& refusal) {
    const Snapshot& snapshot = refusal.world.facts.snapshot;
    const view::Style style = answers::plain_style();
    BERTH_DO(send(snapshot));
    return send(api::LeaseRefused{answers::in_words(refusal, style),
                                  answers::with_reasons(refusal.verdicts, snapshot, style)});
  }

  Result<void> hand_over(const leasing::Session& session, const leasing::HeldLease& lease) const {
    const leasing::Domain& domain = session.domain();
    if (::getppid() != host_) ::_exit(0);
    const Ticket& ticket = lease.ticket();
    const std::vector<int> descriptors = lease.descriptors();
    supervise::keep_locks_until_used(lease);
    BERTH_DO(send(lease.world().facts.snapshot));
    std::vector<std::string> notes = leasing::notes_on(lease);
    if (!memory_told_.empty()) notes.push_back(memory_told_);
    const api::LeaseGranted granted{ticket.id,
                                    std::filesystem::absolute(domain.store->path()),
                                    domain.path_of(ticket.id),
                                    ticket.devices,
                                    answers::all_notes(session, std::move(notes)),
                                    ticket.promise_bytes,
                                    session.policy().mask == MaskForm::uuid};
    return send(granted, descriptors);
  }

  pid_t host_ = ::getppid();
  std::optional<receipts::HandedReceipt> receipt_;
  std::string memory_told_;  ///< what --memory auto came to; "": it was not asked
};

}  // namespace

BERTH_COMMAND(make_lease_helper, LeaseHelper);

}  // namespace berth::cli
