#include "berth/site/site_file.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace berth::site::site_file_test {
namespace {

TEST_CASE("a site file lays down what its keys say") {
  const auto policy = apply_site_text({}, R"(
hidden_tolerance = "1G"
default_wait = "2h"
assumed_time = "1d"
time = "48h"
time_grace = "2m"
idle_leases = "45m"
job_output = "10M"
keep_jobs = "forever"
tenant_gpus = 2
tenant_time = "30m"
shares_per_gpu = 4
leave_free = 2
trust_leases = [2, "GPU-7"]
ignored_programs = ["Xorg", "gnome-shell"]
ignored_users = ["gdm"]
[[excluded]]
device = 3
reason = "drives the screen"
[[excluded]]
device = "GPU-5a1c"
reason = "on loan"
)",
                                      "/etc/berth.toml", false);
  REQUIRE(policy);
  CHECK(policy->hidden_tolerance_bytes == 1ULL << 30U);
  CHECK(policy->default_wait_s == 7200);
  CHECK(policy->queue.assumed_s == 86400);
  CHECK(policy->most_time_s == 172800);
  CHECK(policy->time_grace_s == 120);
  CHECK(policy->idle_leases_s == 2700);
  CHECK(policy->job_output_bytes == 10ULL << 20U);
  CHECK_FALSE(policy->keep_jobs_s);
  CHECK(policy->tenant_gpus == 2);
  CHECK(policy->tenant_time_s == 1800);
  CHECK(policy->shares_per_gpu == 4);
  CHECK(policy->leave_free == 2);
  CHECK(policy->trust_leases == std::vector<std::string>{"2", "GPU-7"});
  CHECK(policy->ignored_programs == std::vector<std::string>{"Xorg", "gnome-shell"});
  CHECK(policy->ignored_users == std::vector<std::string>{"gdm"});
  CHECK(policy->excluded == std::vector<ExcludedDevice>{{"3", "drives the screen"}, {"GPU-5a1c", "on loan"}});
  CHECK(apply_site_text({}, "", "x", false) == SitePolicy{});
}

TEST_CASE("a site file is a regular file of at most 1 MiB") {
  const std::string folder = std::filesystem::temp_directory_path() / "berth-site-file-XXXXXX";
  std::string made = folder;
  REQUIRE(::mkdtemp(made.data()) != nullptr);
  const auto said = [](const std::string& path) {
    const auto files = read_site_files({path, ""});
    return files ? std::string() : files.error().message;
  };
  CHECK(said("/dev/null").empty());
  CHECK(said(made + "/none").empty());
  CHECK(said("/dev/zero") == "the site file /dev/zero is not a regular file");
  CHECK(said(made) == fmt::format("the site file {} is not a regular file", made));
  const std::string fifo = made + "/fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(said(fifo) == fmt::format("the site file {} is not a regular file", fifo));
  const std::string big = made + "/big";
  std::ofstream(big) << std::string((1U << 20U) - 1, '#') << '\n';
  CHECK(said(big).empty());
  std::ofstream(big, std::ios::app) << '\n';
  CHECK(said(big) == fmt::format("the site file {} is longer than 1 MiB", big));
  std::filesystem::remove_all(made);
}

TEST_CASE("a letter where a value should be is an error with its line") {
  const auto policy = apply_site_text({}, "default_wait = \"1h\"\ntime = 19\u00e9-05-2", "f", false);
  REQUIRE_FALSE(policy);
  CHECK(policy.error().message.starts_with("f:2: "));
}

TEST_CASE("locks of other programs have a path with one place for the GPU, a kind, and perhaps a user") {
  const auto site =
      apply_site_text({},
                      "[[foreign_locks]]\npath = \"/tmp/a/{index}\"\nkind = \"flock\"\n"
                      "[[foreign_locks]]\npath = \"~/{pci}.x\"\nkind = \"file\"\nuser = \"ada\"",
                      "f", false);
  REQUIRE(site);
  const std::vector<OriginalLock> read{{"/tmp/a/{index}", OriginalLockKind::flock, "", false, ""},
                                       {"~/{pci}.x", OriginalLockKind::file, "ada", false, ""}};
  CHECK(site->original_locks == read);
  const auto both =
      apply_site_text(*site, "[[foreign_locks]]\npath = \"/tmp/{uuid}\"\nkind = \"fcntl\"", "u", true);
  REQUIRE(both);
  CHECK(both->original_locks.size() == 3);
  const auto wrong = [](std::string_view row) {
    return apply_site_text({}, fmt::format("[[foreign_locks]]\n{}", row), "f", false).error().message;
  };
  constexpr std::string_view kPath =
      "f:1: the path of [[foreign_locks]] begins with / or ~/, and has one of {index}, {uuid} and {pci} for "
      "the "
      "GPU";
  for (const std::string_view path :
       {"a/{index}", "/tmp/lock", "/tmp/{gpu}", "/tmp/{index}{uuid}", "/tmp/{index"})
    CHECK(wrong(fmt::format("path = \"{}\"\nkind = \"flock\"", path)) == kPath);
  CHECK(wrong("kind = \"flock\"") == kPath);
  CHECK(wrong("path = \"/tmp/{index}\"") ==
        "f:1: the kind of [[foreign_locks]] is \"flock\", \"fcntl\" or \"file\"");
  CHECK(wrong("paht = \"/tmp/{index}\"") ==
        "f:2: unknown key 'paht' in [[foreign_locks]], did you mean path?");
}

TEST_CASE("folders of gpu_scheduler's locks are added up, a user's own too") {
  const auto site = apply_site_text({}, "gpu_scheduler_locks = [\"/tmp/gpu_locks\"]", "f", false);
  REQUIRE(site);
  const auto both = apply_site_text(*site, "gpu_scheduler_locks = [\"~/.gpu_locks\"]", "u", true);
  REQUIRE(both);
  CHECK(both->original_locks ==
        std::vector{lock_of_gpu_scheduler("/tmp/gpu_locks"), lock_of_gpu_scheduler("~/.gpu_locks")});
  CHECK(apply_site_text({}, "gpu_scheduler_locks = [\"locks\"]", "f", false).error().message ==
        "f:1: gpu_scheduler_locks: a folder begins with / or ~/");
  const auto file = apply_site_text({}, "safe_gpu_locks = [\"/tmp/lock\"]", "f", false);
  REQUIRE(file);
  CHECK(file->original_locks == std::vector{lock_of_safe_gpu("/tmp/lock")});
  CHECK(apply_site_text({}, "safe_gpu_locks = [\"lock\"]", "f", false).error().message ==
        "f:1: safe_gpu_locks: a file begins with / or ~/");
}

TEST_CASE("a key that is not known is kept with file and line, beside all that is") {
  const auto policy = apply_site_text({}, "default_wait = \"1h\"\ntolerance = 3", "f", false);
  REQUIRE(policy);
  CHECK(policy->default_wait_s == 3600);
  CHECK(policy->not_understood ==
        std::vector<std::string>{"f:2: unknown key 'tolerance'; docs/manual.md lists the keys"});
}

TEST_CASE("for a misspelt key the right one is named, and nothing else") {
  const auto policy = apply_site_text({}, "default_wiat = \"1h\"", "f", false);
  REQUIRE(policy);
  CHECK(policy->not_understood ==
        std::vector<std::string>{"f:1: unknown key 'default_wiat', did you mean default_wait?"});
  CHECK(apply_site_text({}, "[limits]\nwiating = 2", "f", false).error().message ==
        "f:2: unknown key 'wiating' in [limits], did you mean waiting?");
}

TEST_CASE("a text without its quotes is shown with them") {
  const auto fault = [](const char* text) { return apply_site_text({}, text, "f", false).error().message; };
  CHECK(fault("# rules\ndefault_wait = 2h  # long\n") ==
        "f:2: default_wait = 2h: a time needs quotes: default_wait = \"2h\"");
  CHECK(fault("order=fair") == "f:1: order = fair: a text needs quotes: order = \"fair\"");
  CHECK(fault("job_output = 100M\r\n") ==
        "f:1: job_output = 100M: a size needs quotes: job_output = \"100M\"");
  CHECK(fault("time = 1-00:00:00 # a day") ==
        "f:1: time = 1-00:00:00: a time needs quotes: time = \"1-00:00:00\"");
  CHECK(fault("default_wait = forever") ==
        "f:1: default_wait = forever: a text needs quotes: default_wait = \"forever\"");
  for (const char* other : {"default_wait = \"2h", "{broken}", "[limits", "hosts = [1, ]]"})
    CHECK_FALSE(fault(other).contains("needs quotes"));
}

TEST_CASE("a time or a size without its unit is asked for it") {
  const auto fault = [](const char* text) { return apply_site_text({}, text, "f", false).error().message; };
  CHECK(fault("default_wait = \"600\"") ==
        "f:1: default_wait: 600 of what? write 600s or 600m, or \"forever\"");
  CHECK(fault("hidden_tolerance = \"512\"") == "f:1: hidden_tolerance: 512 of what? write 512G or 512M");
  CHECK(fault("job_output = \"100\"") == "f:1: job_output: 100 of what? write 100G or 100M");
  CHECK(fault("limits.time = \"8\"") == "f:1: limits.time: 8 of what? write 8h or 8m");
}

TEST_CASE("a file that BERTH_SITE_FILE names and that is not there stops what grants") {
  const auto files = read_site_files({.site = "/nowhere/site.toml", .user = "", .site_is_named = true});
  REQUIRE(files);
  REQUIRE(files->policy.not_understood.size() == 1);
  CHECK(files->policy.not_understood.front().starts_with(
      "BERTH_SITE_FILE=/nowhere/site.toml names a file that is not there: "));
  CHECK(read_site_files({.site = "/nowhere/site.toml", .user = ""})->policy.not_understood.empty());
  CHECK(read_site_files({.site = "/dev/null", .user = "", .site_is_named = true})
            ->policy.not_understood.empty());
}

TEST_CASE("what is malformed is named with file and line, and never skipped") {
  struct Row {
    const char* text;
    const char* message;
  };
  for (const Row& row :
       {Row{"commands = \"some\"", "f:1: commands must be \"full\", \"program\" or \"none\""},
        Row{"mask = \"UUID\"", "f:1: mask must be \"index\" or \"uuid\""},
        Row{"hidden_tolerance = 512",
            "f:1: hidden_tolerance must be a text in quotes, with its unit: hidden_tolerance = \"512M\""},
        Row{"ignored_users = \"gdm\"", "f:1: ignored_users must be a list of texts in quotes"},
        Row{"ignored_users = [\"gdm\",\n 3]", "f:2: an entry of ignored_users must be a text in quotes"},
        Row{"job_output = \"1K\"", "f:1: job_output must be a size from 1 MiB up, such as \"100M\""},
        Row{"tenant_gpus = 0", "f:1: tenant_gpus must be a number from 1 to 1024"},
        Row{"tenant_gpus = \"2\"", "f:1: tenant_gpus must be a number from 1 to 1024"},
        Row{"trust_leases = 0",
            "f:1: trust_leases must be a list of devices: trust_leases = [0, \"GPU-5a1c\"]"},
        Row{"shares_per_gpu = 0", "f:1: shares_per_gpu must be a number from 1 to 1000"},
        Row{"leave_free = -1", "f:1: leave_free must be a number of GPUs, 0 to 10000"},
        Row{"time = 3600", "f:1: time must be a text in quotes, with its unit: time = \"2h\""},
        Row{"time = \"0\"", "f:1: time must be at least 1s and at most 365d"},
        Row{"time = \"1000000000h\"", "f:1: time must be at least 1s and at most 365d"},
        Row{"time_grace = \"366d\"", "f:1: time_grace must be at least 1s and at most 365d"},
        Row{"[limits]\ngpus = -1", "f:2: limits.gpus must be a number of GPUs, 0 to 10000"},
        Row{"[limits]\ngpus = \"2\"", "f:2: limits.gpus must be a number of GPUs, 0 to 10000"},
        Row{"limits = 3", "f:1: limits is a table: [limits]"},
        Row{"[limits]\nusers = 3", "f:2: limits.users is a table of names: [limits.users]"},
        Row{"[limits]\ncards = 3",
            "f:2: unknown key 'cards' in [limits]; allowed: gpus, lab_gpus, waiting, time, users, groups, "
            "hours"},
        Row{"[limits]\nwaiting = \"2\"", "f:2: limits.waiting must be a number of requests, 0 to 10000"},
        Row{"[limits]\ntime = 2",
            "f:2: limits.time must be a text in quotes, with its unit: limits.time = \"2h\""},
        Row{"[limits.users]\nada = { cards = 2 }",
            "f:2: unknown key 'cards' in limits.users.ada; allowed: gpus, lab_gpus, waiting, time"},
        Row{"[limits]\nhours = 3", "f:2: limits.hours is a list of tables: [[limits.hours]]"},
        Row{"[[limits.hours]]\ngpus = 2",
            "f:1: [[limits.hours]] must say when: when = \"Mon-Fri 08:00-18:00\""},
        Row{"[[limits.hours]]\nwhen = \"at night\"",
            "f:2: 'at night' names no hours of the week: write \"Mon-Fri 08:00-18:00\", \"Sat,Sun\" or "
            "\"22:00-06:00\""},
        Row{"[[limits.hours]]\nwhen = \"Sat\"\ncards = 2",
            "f:3: unknown key 'cards' in [[limits.hours]]; allowed: gpus, lab_gpus, waiting, time, when, "
            "users, groups"},
        Row{"[excluded]\ndevice = 3", "f:1: excluded is a list of tables: [[excluded]]"},
        Row{"[[excluded]]\nreason = \"x\"",
            "f:1: [[excluded]] must name a device: an index, a UUID or the start of one"},
        Row{"[[excluded]]\ndevice = 3", "f:1: [[excluded]] must give a reason: users will be told it"},
        Row{"[[excluded]]\nuuid = 3", "f:2: unknown key 'uuid' in [[excluded]]; allowed: device, reason"}}) {
    const auto policy = apply_site_text({}, row.text, "f", false);
    REQUIRE(!policy);
    CHECK(policy.error().code == ErrorCode::failure);
    CHECK(policy.error().message == row.message);
  }
  const auto broken = apply_site_text({}, "default_wait = \"2h\"\nx = = 3", "f", false);
  REQUIRE(!broken);
  CHECK(broken.error().message.starts_with("f:2: "));
  CHECK(apply_site_text({}, "default_wait = \"soon\"", "f", false)
            .error()
            .message.starts_with("f:1: default_wait: "));
}

TEST_CASE("a user's file may only narrow the site's") {
  SitePolicy site;
  site.default_wait_s = 3600;
  site.idle_leftovers_s = 3600;
  site.commands = CommandVisibility::program;
  CHECK(apply_site_text(site, "commands = \"none\"", "u", true)->commands == CommandVisibility::none);
  CHECK(apply_site_text(site, "mask = \"uuid\"", "u", true)->mask == MaskForm::uuid);
  CHECK(apply_site_text(site, "mask = \"index\"", "u", true));
  site.mask = MaskForm::uuid;
  site.most_time_s = 48 * 3600;
  site.tenant_gpus = 2;
  site.tenant_time_s = 60;
  site.shares_per_gpu = 2;
  site.leave_free = 2;
  CHECK(apply_site_text(site, "leave_free = 3", "u", true)->leave_free == 3);
  CHECK(apply_site_text(site, "shares_per_gpu = 1", "u", true)->shares_per_gpu == 1);
  CHECK(apply_site_text(site, "tenant_gpus = 1\ntenant_time = \"5s\"", "u", true)->tenant_gpus == 1);
  const auto narrowed =
      apply_site_text(site,
                      "hidden_tolerance = \"64M\"\ndefault_wait = \"10m\"\ntime = \"24h\"\ntime_grace = "
                      "\"5s\"\n[[excluded]]\ndevice = 0\nreason = \"loud\"",
                      "u", true);
  REQUIRE(narrowed);
  CHECK(narrowed->hidden_tolerance_bytes == 64ULL << 20U);
  CHECK(narrowed->default_wait_s == 600);
  CHECK(narrowed->most_time_s == 24 * 3600);
  CHECK(narrowed->time_grace_s == 5);
  CHECK(narrowed->excluded.size() == 1);
  for (const char* text :
       {"hidden_tolerance = \"1G\"", "default_wait = \"2h\"", "default_wait = \"forever\"",
        "idle_leftovers = \"2h\"", "commands = \"full\"", "mask = \"index\"", "assumed_time = \"1m\"",
        "time = \"3d\"", "time_grace = \"31s\"", "job_output = \"2G\"", "keep_jobs = \"31d\"",
        "tenant_gpus = 3", "trust_leases = [0]", "shares_per_gpu = 3", "leave_free = 1",
        "tenant_time = \"61s\"", "ignored_programs = [\"x\"]", "ignored_users = [\"x\"]"}) {
    CHECK_MESSAGE(!apply_site_text(site, text, "u", true), text);
  }
}

TEST_CASE(
    "the agent that keeps the queue of the lab is named by the whole path of its socket, by a user as well") {
  const auto site = apply_site_text({}, "store = \"/run/berth-serve/store.sock\"", "f", false);
  REQUIRE(site.has_value());
  CHECK(site->store_socket == "/run/berth-serve/store.sock");
  CHECK(apply_site_text(*site, "store = \"/tmp/own\"", "g", true)->store_socket == "/tmp/own");
  for (const char* bad : {"store = true", "store = \"store.sock\"", "store = \"\""}) {
    CAPTURE(bad);
    CHECK_FALSE(apply_site_text({}, bad, "f", false).has_value());
  }
}

TEST_CASE(
    "connections to other machines are kept, unless the site or a user says that each call makes its own") {
  CHECK(SitePolicy{}.connection == ConnectionLife::kept);
  const auto site = apply_site_text({}, "connection = \"each\"", "f", false);
  REQUIRE(site.has_value());
  CHECK(site->connection == ConnectionLife::each);
  CHECK(apply_site_text(*site, "connection = \"kept\"", "g", true)->connection == ConnectionLife::kept);
  for (const char* bad : {"connection = true", "connection = \"shared\"", "connection = \"\""}) {
    CAPTURE(bad);
    CHECK_FALSE(apply_site_text({}, bad, "f", false).has_value());
  }
}

TEST_CASE("a hub is a URL or a table, a user's own hosts replace it, and it replaces the site's hosts") {
  const auto plain = apply_site_text({}, "hub = \"https://hub:8420\"", "f", false);
  REQUIRE(plain.has_value());
  CHECK(plain->hub == HubAccess{"https://hub:8420"});
  const auto whole = apply_site_text(
      {}, "hub = { url = \"http://hub\", token_file = \"/t\", ca_file = \"/c\", insecure = true }", "f",
      false);
  REQUIRE(whole.has_value());
  CHECK(whole->hub == HubAccess{"http://hub", "/t", "/c", true});
  const auto hosts = apply_site_text(*whole, "hosts = [\"mine\"]", "g", true);
  REQUIRE(hosts.has_value());
  CHECK(hosts->hub == HubAccess{});
  const auto again = apply_site_text(*hosts, "hub = \"http://other\"", "g", true);
  REQUIRE(again.has_value());
  CHECK(again->hub.url == "http://other");
  CHECK(again->hosts.empty());
  for (const char* bad :
       {"hub = 3", "hub = \"hub\"", "hub = { token_file = \"/t\" }",
        "hub = { url = \"http://hub\", insecure = 1 }", "hub = { url = \"http://hub\", port = 3 }",
        "hub = \"http://hub\"\nhosts = [\"gpu1\"]"}) {
    CAPTURE(bad);
    const auto read = apply_site_text({}, bad, "f", false);
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().message.starts_with("f:1: "));
  }
}

TEST_CASE(
    "hosts are names or tables, a user's own list replaces the site's, and a bad name is told with its "
    "line") {
  const auto site =
      apply_site_text({}, "hosts = [\"gpu1\", { name = \"gpu2\", program = \"/opt/berth\" }]", "f", false);
  REQUIRE(site);
  CHECK(site->hosts == std::vector<LabHost>{{"gpu1"}, {"gpu2", "/opt/berth"}});
  const auto user = apply_site_text(*site, "hosts = [\"mine\"]", "g", true);
  REQUIRE(user);
  CHECK(user->hosts == std::vector<LabHost>{{"mine"}});
  for (const char* bad : {"hosts = \"gpu1\"", "hosts = [\"-v\"]", "hosts = [3]", "hosts = [\"a\", \"a\"]",
                          "hosts = [{ program = \"b\" }]", "hosts = [{ name = \"a\", program = \"a b\" }]",
                          "hosts = [{ name = \"a\", port = 3 }]"}) {
    CAPTURE(bad);
    const auto refused = apply_site_text({}, bad, "f", false);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.starts_with("f:1: "));
  }
}

TEST_CASE("labels and the name of a host are words of the site, each once") {
  const auto site =
      apply_site_text({}, "host_name = \"gpu1\"\nlabels = [\"nvlink\", \"room:b12\"]", "f", false);
  REQUIRE(site);
  CHECK(site->host == HostFacts{"gpu1", {"nvlink", "room:b12"}});
  for (const char* bad : {"labels = \"nvlink\"", "labels = [\"two words\"]", "labels = [\"a\", \"a\"]",
                          "labels = [3]", "host_name = \"\"", "host_name = \"a b\""}) {
    const auto refused = apply_site_text({}, bad, "f", false);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.starts_with("f:1: "));
  }
  for (const char* own : {"labels = [\"nvlink\"]", "host_name = \"gpu1\""}) {
    const auto refused = apply_site_text(*site, own, "g", true);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("only /etc/berth.toml may set") != std::string::npos);
  }
}

}  // namespace
}  // namespace berth::site::site_file_test
