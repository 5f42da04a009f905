#include "history_services.h"

namespace berth::serve {
namespace {

/// `read` makes a question of the parameters.
template <class Read>
http::Service service(history::History& history, const Read& read) {
  return [&history, read](const http::Call& call, http::Reply reply) {
    auto question = read(call.parameters);
    if (!question) {
      reply(http::refusal(400, question.error().message));
      return;
    }
    history.ask(std::move(*question), [reply = std::move(reply)](history::HistoryAnswer answer) {
      http::Page page = http::make_page(answer.http_status, http::kJson, std::move(answer.json));
      if (page.status != 200) page.tag.clear();
      reply(std::move(page));
    });
  };
}

}  // namespace

http::ByPath<http::Service> history_services(history::History& history, const std::string& hostname) {
  http::ByPath<http::Service> services;
  services["/api/v1/history"] = service(history, device_question);
  services["/api/v1/hosts/" + hostname + "/history"] = services["/api/v1/history"];
  services["/api/v1/usage"] = service(history, usage_question);
  services["/api/v1/past-leases"] = service(history, leases_question);
  return services;
}

}  // namespace berth::serve
