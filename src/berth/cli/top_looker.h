#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/cli/anywhere.h"
#include "berth/cli/environment.h"
#include "berth/render/top.h"
#include "berth/source/source.h"

namespace berth::cli {

/// Looks again and again in a thread of its own, and does there what takes its time: a look lasts as long as
/// the driver hangs, and the keys must not wait for it.
class TopLooker {
 public:
  struct Options {
    std::int64_t every_s = 2;
    source::SourceKind source{};
    std::vector<LabHost> hosts{};  ///< of a lab; empty: this machine
  };
  /// What the thread has come to, all of it anew.
  struct News {
    std::shared_ptr<const render::TopSight> sight;  ///< null: nothing new
    std::optional<std::string> said{};              ///< what came of `perform`
  };

  /// Begins at once. The thread lives as long as the process: a look that hangs could not be ended.
  /// `environment` must live as long.
  static Result<std::unique_ptr<TopLooker>> start(Options options, Environment& environment);

  TopLooker(const TopLooker&) = delete;
  TopLooker& operator=(const TopLooker&) = delete;
  ~TopLooker();

  /// Readable when there is news.
  int descriptor() const;
  News take();
  /// Does not wait until the next look is due.
  void look_now();
  /// Runs berth with these words, and looks then.
  void perform(std::vector<std::string> words);

 private:
  class Body;
  explicit TopLooker(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace berth::cli
