// Many agents in one process, for a hub to ask: it listens on COUNT ports of 127.0.0.1 from FIRST
// on, and answers each GET with a line of FILE, in turn by the port (of OTHER, where the path is
// nvgpu's /gpu_status), in which the five letters @PORT stand for the port, and @S for two digits
// that are others each time. The last SLOW of them take their time, MS milliseconds. A kept
// connection may ask again. Prints "ready" when it listens, and on SIGTERM how many questions it
// answered.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kInput = 4096, kEvents = 256, kBacklog = 16 };

struct Text {
  char* bytes;
  size_t size;
};

struct Connection {
  int file;
  unsigned port;  // 0: this one listens
  size_t read, written, size;
  char* answer;
  long long due_ms;
  struct Connection* next;  // of those whose answer is not due
  int gone;
  char input[kInput];
};

struct Texts {
  struct Text* lines;
  size_t count;
};

static struct Texts own, nvgpus;
static unsigned long answered;
static volatile sig_atomic_t ended;
static struct Connection *first_slow, **last_slow = &first_slow;
static unsigned slow_from;
static long long slow_ms;
static int events;

static void end(int signal) {
  (void)signal;
  ended = 1;
}

static void die(const char* what) {
  perror(what);
  exit(1);
}

static long long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static struct Texts read_file(const char* path) {
  struct Texts texts = {NULL, 0};
  FILE* file = fopen(path, "r");
  if (file == NULL) die(path);
  struct Text line = {NULL, 0};
  for (ssize_t got; (got = getline(&line.bytes, &line.size, file)) > 0; line = (struct Text){NULL, 0}) {
    line.size = (size_t)got;
    texts.lines = realloc(texts.lines, (texts.count + 1) * sizeof line);
    if (texts.lines == NULL) die(path);
    texts.lines[texts.count++] = line;
  }
  free(line.bytes);
  fclose(file);
  if (texts.count == 0) die(path);
  return texts;
}

static void write_answer(struct Connection* connection) {
  while (connection->written < connection->size) {
    const ssize_t sent = write(connection->file, connection->answer + connection->written,
                               connection->size - connection->written);
    if (sent < 0) return;  // the kernel takes more later, or the other end is gone and reading will tell
    connection->written += (size_t)sent;
  }
  free(connection->answer);
  connection->answer = NULL;
}

static void fill_in(char* mark, unsigned port) {
  char digits[6];
  if (strncmp(mark, "@PORT", 5) == 0) {
    snprintf(digits, sizeof digits, "%05u", port % 100000);
    memcpy(mark, digits, 5);
  } else if (strncmp(mark, "@S", 2) == 0) {
    snprintf(digits, sizeof digits, "%02u", 10 + (unsigned)random() % 90);
    memcpy(mark, digits, 2);
  }
}

static void make_answer(struct Connection* connection) {
  const struct Texts* texts =
      strncmp(connection->input, "GET /gpu_status", 15) == 0 && nvgpus.count > 0 ? &nvgpus : &own;
  const struct Text* text = &texts->lines[connection->port % texts->count];
  connection->answer = malloc(text->size + 200);
  const int head =
      sprintf(connection->answer,
              "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", text->size);
  char* body = connection->answer + head;
  memcpy(body, text->bytes, text->size + 1);
  for (char* mark = strchr(body, '@'); mark != NULL; mark = strchr(mark + 1, '@'))
    fill_in(mark, connection->port);
  connection->size = (size_t)head + text->size;
  connection->written = 0;
  ++answered;
}

static void answer(struct Connection* connection) {
  make_answer(connection);
  if (connection->port < slow_from) {
    write_answer(connection);
    return;
  }
  connection->due_ms = now_ms() + slow_ms;
  connection->next = NULL;
  *last_slow = connection;
  last_slow = &connection->next;
}

static void forget(struct Connection* connection) {
  close(connection->file);
  connection->gone = 1;
  for (const struct Connection* each = first_slow; each != NULL; each = each->next) {
    if (each == connection) return;  // freed when it is due
  }
  free(connection->answer);
  free(connection);
}

static void read_request(struct Connection* connection) {
  const ssize_t got =
      read(connection->file, connection->input + connection->read, kInput - 1 - connection->read);
  if (got < 0 && errno == EAGAIN) {
    if (connection->answer != NULL) write_answer(connection);
    return;
  }
  if (got <= 0 || connection->read + (size_t)got >= kInput - 1) {
    forget(connection);
    return;
  }
  connection->read += (size_t)got;
  connection->input[connection->read] = '\0';
  if (strstr(connection->input, "\r\n\r\n") == NULL) return;
  connection->read = 0;
  answer(connection);
}

static void watch(int file, unsigned port, unsigned kinds) {
  struct Connection* connection = calloc(1, sizeof *connection);
  connection->file = file;
  connection->port = port;
  struct epoll_event event = {kinds, {.ptr = connection}};
  if (epoll_ctl(events, EPOLL_CTL_ADD, file, &event) != 0) die("epoll_ctl");
}

static void take_client(const struct Connection* listener) {
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  const int file = accept4(listener->file, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (file < 0) return;
  getsockname(file, (struct sockaddr*)&address, &size);
  watch(file, ntohs(address.sin_port), EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP);
}

static void listen_at(unsigned port) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(file, (struct sockaddr*)&address, sizeof address) != 0) die("bind");
  if (listen(file, kBacklog) != 0) die("listen");
  watch(file, 0, EPOLLIN);
}

static int milliseconds_to_wait(void) {
  if (first_slow == NULL) return -1;
  const long long left = first_slow->due_ms - now_ms();
  return left > 0 ? (int)left : 0;
}

static void send_what_is_due(void) {
  while (first_slow != NULL && first_slow->due_ms <= now_ms()) {
    struct Connection* connection = first_slow;
    first_slow = connection->next;
    if (first_slow == NULL) last_slow = &first_slow;
    if (!connection->gone) {
      write_answer(connection);
      continue;
    }
    free(connection->answer);
    free(connection);
  }
}

static void prepare(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  signal(SIGPIPE, SIG_IGN);
  struct sigaction action = {.sa_handler = end};
  sigaction(SIGTERM, &action, NULL);
  events = epoll_create1(EPOLL_CLOEXEC);
}

static void serve(void) {
  struct epoll_event happened[kEvents];
  while (!ended) {
    const int number = epoll_wait(events, happened, kEvents, milliseconds_to_wait());
    for (int i = 0; i < number; ++i) {
      struct Connection* connection = happened[i].data.ptr;
      if (connection->port == 0) {
        take_client(connection);
      } else {
        read_request(connection);
      }
    }
    send_what_is_due();
  }
}

int main(int count, char** words) {
  if (count < 4) {
    fprintf(stderr, "usage: agents FIRST COUNT FILE [OTHER [SLOW MS]]\n");
    return 2;
  }
  const unsigned first = (unsigned)atoi(words[1]);
  const unsigned agents = (unsigned)atoi(words[2]);
  own = read_file(words[3]);
  if (count > 4) nvgpus = read_file(words[4]);
  slow_from = first + agents - (count > 5 ? (unsigned)atoi(words[5]) : 0);
  slow_ms = count > 6 ? atoi(words[6]) : 0;
  prepare();
  for (unsigned i = 0; i < agents; ++i) listen_at(first + i);
  printf("ready\n");
  fflush(stdout);
  serve();
  printf("%lu answers\n", answered);
  return 0;
}
