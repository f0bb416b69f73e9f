/*
 * What the specs ask of their image of a hostpath driver: a proxy of a Unix socket. Each connection to the socket is joined with one that
 * comes over TCP, from the test's own process. Arguments: --endpoint=PATH --proxy-endpoint=tcp://:PORT.
 */
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int unix_listener(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) {
    fprintf(stderr, "%s: too long\n", path);
    exit(1);
  }
  strcpy(address.sun_path, path);
  unlink(path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 64)) fail(path);
  return fd;
}

static int tcp_listener(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = INADDR_ANY};
  int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on)) fail("socket");
  if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 64)) fail("bind");
  return fd;
}

static int pump(int from, int to) {
  char buffer[65536];
  ssize_t count = read(from, buffer, sizeof buffer);
  if (count <= 0) return 0;
  for (ssize_t done = 0; done < count;) {
    ssize_t wrote = write(to, buffer + done, count - done);
    if (wrote <= 0) return 0;
    done += wrote;
  }
  return 1;
}

static void join(int a, int b) {
  struct pollfd ends[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
  while (poll(ends, 2, -1) > 0) {
    if (ends[0].revents && !pump(a, b)) break;
    if (ends[1].revents && !pump(b, a)) break;
  }
  exit(0);
}

int main(int count, char **arguments) {
  const char *endpoint = "";
  int port = 0;
  for (int i = 1; i < count; i++) {
    if (!strncmp(arguments[i], "--endpoint=", 11)) endpoint = arguments[i] + 11;
    if (!strncmp(arguments[i], "--proxy-endpoint=", 17)) port = atoi(strrchr(arguments[i], ':') + 1);
  }
  if (!strncmp(endpoint, "unix://", 7)) endpoint += 7;
  if (!*endpoint || !port) {
    fprintf(stderr, "only the proxy of a socket is there: --endpoint=PATH --proxy-endpoint=tcp://:PORT\n");
    return 1;
  }
  signal(SIGCHLD, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  int listener = unix_listener(endpoint), proxy = tcp_listener(port);
  for (;;) {
    int from = accept(listener, 0, 0), to = accept(proxy, 0, 0);
    if (from < 0 || to < 0) fail("accept");
    if (fork() == 0) join(from, to);
    close(from);
    close(to);
  }
}
