#include "berth/jobs/output_bound.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <string_view>

#include "berth/sys/system_error.h"

namespace berth::jobs {
namespace {

Result<void> overwrite(int file, std::string_view text, off_t at) {
  const ssize_t written = ::pwrite(file, text.data(), text.size(), at);
  if (written < 0) return sys::fail_errno("writing into the output");
  if (written != std::ssize(text))
    return std::unexpected(sys::system_error(ENOSPC, "writing into the output"));
  return {};
}

}  // namespace

Result<OutputBound> OutputBound::open(const std::string& path, std::uint64_t limit) {
  sys::Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return sys::fail_errno("opening " + path);
  return OutputBound(std::move(file), limit);
}

// The file itself says it, so that a task that is run again, or looked after by another process,
// goes on.
OutputCut OutputBound::cut_so_far(std::uint64_t size) const {
  const std::uint64_t begin = cut_begin(limit_);
  if (size <= begin) return {};
  const off_t data = ::lseek(file_.get(), static_cast<off_t>(begin), SEEK_DATA);
  if (data < 0) return errno == ENXIO ? OutputCut{begin, size} : OutputCut{};
  return {begin, static_cast<std::uint64_t>(data)};
}

Result<std::uint64_t> OutputBound::keep() {
  struct stat status{};
  if (::fstat(file_.get(), &status) != 0) return sys::fail_errno("examining the output");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size <= limit_) return 0;
  const OutputCut so_far = cut_so_far(size);
  const auto cut = next_cut(size, so_far, limit_);
  if (!cut) return bytes_cut(so_far, limit_);
  // The mark first: whoever is killed in between has not cut without a word. What it has replaced
  // comes back if nothing can be cut.
  const std::string mark = cut_mark(*cut, limit_);
  const auto at = static_cast<off_t>(cut->begin - mark.size());
  std::string before(mark.size(), '\0');
  const ssize_t got = ::pread(file_.get(), before.data(), before.size(), at);
  if (got < 0) return sys::fail_errno("reading the output");
  // The job has made its output shorter meanwhile: the next look decides anew.
  if (got != std::ssize(before)) return bytes_cut(so_far, limit_);
  auto done = overwrite(file_.get(), mark, at);
  if (done && ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                          static_cast<off_t>(cut->begin), static_cast<off_t>(cut->end - cut->begin)) != 0)
    done = sys::fail_errno("cutting the output, which is not bounded here");
  if (!done) {
    [[maybe_unused]] const auto restored = overwrite(file_.get(), before, at);
    return std::unexpected(done.error());
  }
  return bytes_cut(*cut, limit_);
}

}  // namespace berth::jobs
