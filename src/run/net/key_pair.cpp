#include "berth/net/key_pair.h"

#include "berth/base/fail.h"

#include <openssl/err.h>
#include <openssl/x509err.h>

namespace berth::net {
namespace {

Error unreadable(std::string_view what, const std::string& file, const boost::system::error_code& error) {
  return {ErrorCode::failure, fmt::format("reading the {} {}: {}", what, file, error.message())};
}

bool is_of_another(const boost::system::error_code& error) {
  const auto code = static_cast<unsigned long>(error.value());
  return ERR_GET_LIB(code) == ERR_LIB_X509 && ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH;
}

}  // namespace

Result<void> use_key_pair(boost::asio::ssl::context& context, const std::string& certificate,
                          const std::string& key) {
  boost::system::error_code error;
  (void)context.use_certificate_chain_file(certificate, error);
  if (error) return std::unexpected(unreadable("certificate", certificate, error));
  (void)context.use_private_key_file(key, boost::asio::ssl::context::pem, error);
  if (error && !is_of_another(error)) return std::unexpected(unreadable("key", key, error));
  // OpenSSL keeps a certificate and a key of two kinds side by side, and then no handshake
  // succeeds.
  if (!error && SSL_CTX_check_private_key(context.native_handle()) == 1) return {};
  return fail(ErrorCode::failure,
              "the key {} is not that of the certificate {}: give those that were made together", key,
              certificate);
}

}  // namespace berth::net
