// Copies bytes between clients and one server, and does nothing else: the least that any proxy in
// user space costs. One thread, epoll, sockets that do not block, recv and send.
//
//     proxy HOST PORT [LISTENING-PORT]
//
// It listens on 127.0.0.1 and prints the port. Addresses are numbers, not names.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { BUFFER = 256 * 1024, EVENTS = 256 };

// One side of a proxied connection. `held` are bytes that its socket did not take yet; while there
// are any, the proxy does not read from the peer.
struct side {
    int socket;
    struct side *peer;
    char *held;
    size_t held_from, held_to;
    bool closed;
    struct side *next_closed;
};

static int poller;
static char buffer[BUFFER];
static struct side *closed_sides;

static void fail(const char *action) {
    perror(action);
    exit(1);
}

static struct sockaddr_in address_of(const char *host, const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        fprintf(stderr, "%s is not an IPv4 address\n", host);
        exit(1);
    }
    return address;
}

static void watch(struct side *side, int operation) {
    bool may_read = side->peer->held == NULL;
    struct epoll_event event = {.data.ptr = side};
    event.events = (may_read ? EPOLLIN : 0) | (side->held ? EPOLLOUT : 0);
    if (epoll_ctl(poller, operation, side->socket, &event)) fail("epoll_ctl");
}

// Close both sides. Their memory is freed after the round of events, which may name them again.
static void close_both(struct side *side) {
    struct side *both[] = {side, side->peer};
    for (int i = 0; i < 2; i++) {
        if (both[i]->closed) continue;
        close(both[i]->socket);
        both[i]->closed = true;
        both[i]->next_closed = closed_sides;
        closed_sides = both[i];
    }
}

static void free_closed(void) {
    while (closed_sides) {
        struct side *side = closed_sides;
        closed_sides = side->next_closed;
        free(side->held);
        free(side);
    }
}

static void hold(struct side *side, const char *bytes, size_t count) {
    side->held = malloc(count);
    if (!side->held) fail("malloc");
    memcpy(side->held, bytes, count);
    side->held_from = 0;
    side->held_to = count;
    watch(side, EPOLL_CTL_MOD);
    watch(side->peer, EPOLL_CTL_MOD);
}

static void on_readable(struct side *side) {
    ssize_t count = recv(side->socket, buffer, BUFFER, 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
        close_both(side);
        return;
    }
    ssize_t sent = send(side->peer->socket, buffer, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) sent = 0;
    if (sent < 0)
        close_both(side);
    else if (sent < count)
        hold(side->peer, buffer + sent, count - sent);
}

static void on_writable(struct side *side) {
    size_t left = side->held_to - side->held_from;
    ssize_t sent = send(side->socket, side->held + side->held_from, left, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) {
        close_both(side);
        return;
    }
    side->held_from += sent;
    if (side->held_from < side->held_to) return;
    free(side->held);
    side->held = NULL;
    watch(side, EPOLL_CTL_MOD);
    watch(side->peer, EPOLL_CTL_MOD);
}

static struct side *new_side(int socket) {
    int on = 1;
    struct side *side = calloc(1, sizeof *side);
    if (!side) fail("calloc");
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    side->socket = socket;
    return side;
}

// Accept a client and connect it to the server. The connection waits, which takes microseconds on
// loopback; afterwards neither socket blocks.
static void on_client(int listener, const struct sockaddr_in *server) {
    int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (client < 0) return;
    int upstream = socket(AF_INET, SOCK_STREAM, 0);
    if (upstream < 0 || connect(upstream, (const struct sockaddr *)server, sizeof *server)) {
        perror("connect");
        close(client);
        if (upstream >= 0) close(upstream);
        return;
    }
    fcntl(upstream, F_SETFL, O_NONBLOCK);
    struct side *sides[] = {new_side(client), new_side(upstream)};
    sides[0]->peer = sides[1];
    sides[1]->peer = sides[0];
    watch(sides[0], EPOLL_CTL_ADD);
    watch(sides[1], EPOLL_CTL_ADD);
}

static int listening(struct sockaddr_in address) {
    int on = 1;
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, size)) fail("bind");
    if (listen(listener, 4096)) fail("listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static void on_event(struct epoll_event *event) {
    struct side *side = event->data.ptr;
    if (!side->closed && event->events & EPOLLOUT) on_writable(side);
    // A peer that still holds bytes gets them before the end of the connection is noticed.
    bool may_read = !side->closed && !side->peer->held;
    if (may_read && event->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_readable(side);
    else if (!side->closed && event->events & EPOLLERR) close_both(side);
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: proxy HOST PORT [LISTENING-PORT]\n");
        return 2;
    }
    struct sockaddr_in server = address_of(arguments[1], arguments[2]);
    int listener = listening(address_of("127.0.0.1", count > 3 ? arguments[3] : "0"));
    poller = epoll_create1(0);
    struct epoll_event accepting = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, listener, &accepting)) fail("epoll_ctl");
    for (;;) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(poller, events, EVENTS, -1);
        if (ready < 0 && errno != EINTR) fail("epoll_wait");
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr)
                on_event(&events[i]);
            else
                on_client(listener, &server);
        }
        free_closed();
    }
}
