#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/command/environment.h"
#include "berth/hosts/lab_hosts.h"
#include "berth/screen/model/top.h"
#include "berth/source/source.h"

namespace berth::cli {

/// Looks again and again in a thread of its own, and runs slow commands there. A look lasts as long
/// as the driver hangs, and the keys must not wait for it.
class TopLooker {
 public:
  struct Options {
    std::int64_t every_s = 2;
    source::SourceKind source{};
    std::vector<LabHost> hosts{};  ///< of a lab; empty: this machine
  };
  /// What is new from the thread since the last `take`.
  struct News {
    std::shared_ptr<const view::TopSight> sight;  ///< null: nothing new
    std::optional<view::TopAnswer> answer{};      ///< the result of `perform`
  };

  /// Begins at once. The thread lives as long as the process, because a look that hangs could not
  /// be ended. `environment` must live as long.
  static Result<std::unique_ptr<TopLooker>> start(Options options, command::Environment& environment);

  TopLooker(const TopLooker&) = delete;
  TopLooker& operator=(const TopLooker&) = delete;
  ~TopLooker();

  /// Readable when there is news.
  int descriptor() const;
  News take();
  /// Looks now, without waiting until the next look is due.
  void look_now();
  /// Runs berth with these words, and then looks.
  void perform(std::vector<std::string> words);

 private:
  class Body;
  explicit TopLooker(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace berth::cli
