#include "berth/cli/peer_options.h"

#include "berth/http/settings.h"

namespace berth::cli {

void add_peer_options(command::Syntax& syntax, std::string_view group, PeerOptions& options) {
  syntax.text(group, "token-file", "FILE", "the file with the token that it asks for", options.token_file);
  syntax.text(group, "ca-file", "FILE", "who may sign its certificate", options.trust.authorities);
  syntax.text(group, "cert-file", "FILE", "the certificate that it asks for", options.trust.certificate);
  syntax.text(group, "key-file", "FILE", "that certificate's key", options.trust.key);
  syntax.flag(group, "insecure", "ask over plain HTTP without a token", options.insecure);
}

Result<http::Peer> peer_of(const PeerOptions& options) {
  auto peer = http::peer_from_url(options.url);
  if (!peer) return peer;
  peer->authorities = options.trust.authorities;
  peer->certificate = options.trust.certificate;
  peer->key = options.trust.key;
  peer->insecure = options.insecure;
  if (!options.token_file.empty()) {
    BERTH_LET(auto token, http::read_token(options.token_file));
    peer->token = std::move(token);
  }
  if (auto checked = http::check(*peer); !checked)
    return fail(ErrorCode::usage, checked.error().message + " (here with --insecure)");
  return peer;
}

}  // namespace berth::cli
