#pragma once

#include <string>
#include <vector>

#include "berth/net/delta_chunks.h"
#include "berth/net/gzip.h"
#include "berth/net/listener.h"

namespace berth::net {

/// The text for one client of an event stream, compressed if the client accepts that. Keeps the
/// memory of the buffers until the next buffers are asked for.
class EventText {
 public:
  explicit EventText(bool is_packed) : is_packed_(is_packed) {}

  using Buffers = std::vector<asio::const_buffer>;

  Buffers start(const std::string& head) const {
    Buffers buffers{asio::buffer(head)};
    if (is_packed_) buffers.push_back(asio::buffer(GzipFrame::start()));
    return buffers;
  }

  Buffers following(http::Parts parts) {
    parts_ = std::move(parts);
    Buffers buffers;
    for (http::Part& part : parts_) {
      if (!is_packed_) {
        buffers.push_back(asio::buffer(*part.text));
        continue;
      }
      part.packed = packed_form(part);
      frame_.take(*part.packed, part.text->size());
      buffers.push_back(asio::buffer(part.packed->bytes));
    }
    return buffers;
  }

  Buffers following(const DeltaChunk& delta) {
    delta_ = delta.packed;
    frame_.take(*delta_, delta.bytes);
    return {asio::buffer(delta_->bytes)};
  }

  Buffers end() {
    if (!is_packed_) return {};
    end_ = frame_.end();
    return {asio::buffer(end_)};
  }

 private:
  bool is_packed_;
  GzipFrame frame_;
  http::Parts parts_;
  net::SharedPacked delta_;
  std::string end_;
};

}  // namespace berth::net
