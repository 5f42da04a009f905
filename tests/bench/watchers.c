// watchers PORT WATCHERS TICKETS HOSTS   the limit of the agents of a lab: as many connections to the gateway
// of an etcd on 127.0.0.1, each of which is told of every ticket. Some of them write the tickets,
// each one after another. It understands nothing of what it is told: it only counts. Prints
// "waiting" when every connection has been told of all tickets, then for each line on standard
// input how much processor time it has used, in ns, and of how many changes the slowest watcher has
// been told.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kWriters = 16, kMostEvents = 256, kPieceBytes = 1 << 16, kTextBytes = 1 << 15, kMostFiles = 1 << 16 };

struct connection {
  int file;
  int is_writer;
  long told;       // the tickets, or the answers
  size_t matched;  // so much of what is counted has been read
  long body_left;  // of the answer to a writer; -1: its header is being read
  char header[1024];
  size_t header_bytes;
};

static const char kChange[] = "\"kv\":{";
static long next_ticket, tickets, hosts, slowest;
static char piece[kPieceBytes], text[kTextBytes], body[kTextBytes], value[kTextBytes];

static int stop(const char* what) {
  perror(what);
  exit(1);
}

static void base64(const char* from, char* to) {
  static const char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t left = strlen(from); left > 0;) {
    const unsigned size = left < 3 ? (unsigned)left : 3;
    unsigned bits = 0;
    for (unsigned i = 0; i < 3; ++i) bits = bits << 8U | (i < size ? (unsigned char)from[i] : 0U);
    for (unsigned i = 0; i < 4; ++i) *to++ = i <= size ? kDigits[bits >> (18U - 6U * i) & 63U] : '=';
    from += size;
    left -= size;
  }
  *to = '\0';
}

static int connect_to(int port) {
  const int one = 1;
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  const struct sockaddr_in place = {.sin_family = AF_INET,
                                    .sin_port = htons((unsigned short)port),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (file < 0 || connect(file, (const struct sockaddr*)&place, sizeof place) != 0) stop("connect");
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return file;
}

static void post(int file, const char* path) {
  const int length =
      snprintf(text, sizeof text, "POST /v3/%s HTTP/1.1\r\nHost: etcd\r\nContent-Length: %zu\r\n\r\n%s", path,
               strlen(body), body);
  if (send(file, text, (size_t)length, MSG_NOSIGNAL) != length) stop("send");
}

static void watch(int file) {
  char from[64], to[64];
  base64("/berth/1/ticket/", from);
  base64("/berth/1/ticket0", to);
  snprintf(body, sizeof body, "{\"create_request\":{\"key\":\"%s\",\"range_end\":\"%s\"}}", from, to);
  post(file, "watch");
}

// What a ticket of Berth's says.
static void write_ticket(int file) {
  static char words[kTextBytes / 2];
  char key[128];
  char name[96];
  if (next_ticket == tickets) return;
  snprintf(name, sizeof name, "/berth/1/ticket/desk%ld-%032lx", next_ticket % hosts, next_ticket);
  size_t used =
      (size_t)snprintf(words, sizeof words, "{\"home\":\"desk%ld\",\"hosts\":[", next_ticket % hosts);
  for (long i = 0; i < hosts; ++i)
    used += (size_t)snprintf(words + used, sizeof words - used, "%s\"gpu%ld\"", i == 0 ? "" : ",", i);
  snprintf(words + used, sizeof words - used, "],\"joined\":[],\"lane\":1,\"uid\":0}");
  base64(name, key);
  base64(words, value);
  snprintf(body, sizeof body, "{\"key\":\"%.127s\",\"value\":\"%.24000s\"}", key, value);
  post(file, "kv/put");
  ++next_ticket;
}

static void count_changes(struct connection* watcher, ssize_t length) {
  for (ssize_t i = 0; i < length; ++i) {
    if (piece[i] == kChange[watcher->matched])
      ++watcher->matched;
    else
      watcher->matched = piece[i] == kChange[0];
    if (watcher->matched < sizeof kChange - 1) continue;
    watcher->matched = 0;
    ++watcher->told;
  }
}

static void read_answer(struct connection* writer, ssize_t length) {
  for (ssize_t i = 0; i < length; ++i) {
    if (writer->body_left < 0) {
      if (writer->header_bytes + 1 < sizeof writer->header) writer->header[writer->header_bytes++] = piece[i];
      writer->header[writer->header_bytes] = '\0';
      if (strstr(writer->header, "\r\n\r\n") == NULL) continue;
      const char* said = strstr(writer->header, "Content-Length: ");
      if (said == NULL || strstr(writer->header, " 200 ") == NULL) {
        fprintf(stderr, "%s\n", writer->header);
        exit(1);
      }
      writer->body_left = strtol(said + 16, NULL, 10);
    } else {
      --writer->body_left;
    }
    if (writer->body_left != 0) continue;
    writer->body_left = -1;
    writer->header_bytes = 0;
    write_ticket(writer->file);
  }
}

static void answer_asker(void) {
  struct timespec used;
  if (read(STDIN_FILENO, text, sizeof text) <= 0) exit(0);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  printf("%lld %ld\n", used.tv_sec * 1000000000LL + used.tv_nsec, slowest);
  fflush(stdout);
}

int main(int count, char** words) {
  if (count != 5) return 2;
  const int port = atoi(words[1]);
  const long watchers = atol(words[2]);
  tickets = atol(words[3]);
  hosts = atol(words[4]);
  const struct rlimit most = {kMostFiles, kMostFiles};
  setrlimit(RLIMIT_NOFILE, &most);
  struct connection* all = calloc((size_t)watchers + kWriters, sizeof *all);
  const int events = epoll_create1(0);
  if (all == NULL || events < 0) return 1;
  struct epoll_event asked = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(events, EPOLL_CTL_ADD, STDIN_FILENO, &asked);
  for (long i = 0; i < watchers + kWriters; ++i) {
    struct connection* each = &all[i];
    *each = (struct connection){.file = connect_to(port), .is_writer = i >= watchers, .body_left = -1};
    asked.data.ptr = each;
    epoll_ctl(events, EPOLL_CTL_ADD, each->file, &asked);
    if (each->is_writer) continue;
    watch(each->file);
    // Until etcd says that it watches.
    if (recv(each->file, piece, sizeof piece, 0) <= 0) stop("watch");
  }
  for (long i = watchers; i < watchers + kWriters; ++i) write_ticket(all[i].file);
  for (int is_told = 0;;) {
    struct epoll_event ready[kMostEvents];
    const int number = epoll_wait(events, ready, kMostEvents, -1);
    for (int i = 0; i < number; ++i) {
      struct connection* each = ready[i].data.ptr;
      if (each == NULL) {
        answer_asker();
        continue;
      }
      const ssize_t length = recv(each->file, piece, sizeof piece, 0);
      if (length <= 0) stop("etcd has ended a connection");
      if (each->is_writer)
        read_answer(each, length);
      else
        count_changes(each, length);
    }
    slowest = watchers > 0 ? all[0].told : 0;
    for (long i = 0; i < watchers; ++i)
      if (all[i].told < slowest) slowest = all[i].told;
    if (is_told || slowest < tickets) continue;
    is_told = 1;
    puts("waiting");
    fflush(stdout);
  }
}
