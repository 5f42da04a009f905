// bare_http PORT FILE   the limit of an agent: on 127.0.0.1, answers whatever is asked with the bytes of FILE
// under one header. One thread, one loop. It reads no request, only where each ends.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kMostBytes = 1 << 20, kMostEvents = 256, kRequestBytes = 4096 };

static char answer[kMostBytes];
static size_t answer_bytes;

static int load_answer(const char* path) {
  static char body[kMostBytes / 2];
  const int file = open(path, O_RDONLY);
  const ssize_t length = file < 0 ? -1 : read(file, body, sizeof body);
  if (length < 0) return 1;
  answer_bytes = (size_t)snprintf(
      answer, sizeof answer,
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zd\r\n\r\n", length);
  memcpy(answer + answer_bytes, body, (size_t)length);
  answer_bytes += (size_t)length;
  return 0;
}

static int listen_at(int port) {
  const int one = 1;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in place = {.sin_family = AF_INET,
                              .sin_port = htons((unsigned short)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (struct sockaddr*)&place, sizeof place) != 0 || listen(listener, 1024) != 0) exit(1);
  return listener;
}

static void write_answer(int client) {
  for (size_t done = 0; done < answer_bytes;) {
    const ssize_t more = send(client, answer + done, answer_bytes - done, MSG_NOSIGNAL);
    if (more <= 0) return;
    done += (size_t)more;
  }
}

// A request without body ends with an empty line. One that comes in two pieces is none of wrk's.
static void serve(int client) {
  char request[kRequestBytes];
  const ssize_t length = recv(client, request, sizeof request, MSG_DONTWAIT);
  if (length == 0 || (length < 0 && errno != EAGAIN)) {
    close(client);
    return;
  }
  if (length >= 4 && memcmp(request + length - 4, "\r\n\r\n", 4) == 0) write_answer(client);
}

int main(int count, char** words) {
  if (count != 3 || load_answer(words[2]) != 0) return 2;
  const int one = 1;
  const int loop = epoll_create1(0);
  const int listener = listen_at(atoi(words[1]));
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
  struct epoll_event events[kMostEvents];
  epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    const int ready = epoll_wait(loop, events, kMostEvents, -1);
    for (int i = 0; i < ready; ++i) {
      if (events[i].data.fd != listener) {
        serve(events[i].data.fd);
        continue;
      }
      struct epoll_event client = {.events = EPOLLIN, .data.fd = accept(listener, NULL, NULL)};
      setsockopt(client.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      if (client.data.fd >= 0) epoll_ctl(loop, EPOLL_CTL_ADD, client.data.fd, &client);
    }
  }
}
