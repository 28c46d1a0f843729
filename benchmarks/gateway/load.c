// A load client for servers that speak Kafka's protocol: one thread, epoll, a closed loop.
//
//     load [OPTION ...] HOST PORT FRAME-FILE
//
//     -c N     connections (1)
//     -d N     requests in flight on each connection (1)
//     -w S     seconds before the measurement (1)
//     -s S     seconds of the measurement (5)
//     -n N     measure from the first request, and stop after N answers
//     -p PIDS  processes whose CPU time is measured, separated by commas
//     -a FILE  write the first answer, without its length, to a file
//     -t       use TLS, without a check of the server's certificate (built with -DWITH_TLS)
//     -i       keep the connections open after the result, until standard input ends
//
// It sends the frame of the file over and over, each time with a new correlation id. Answers must
// come in the order of the requests, and all must have the same length. The result is JSON.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 1024 * 1024, EVENTS = 256, CORRELATION_ID = 8, HEAD = 8, PROCESSES = 16 };
enum { GIVE_UP_SECONDS = 60 };

struct connection {
    int socket;
    void *tls;
    // A ring of one frame for each request in flight. `queued` and `sent` count bytes for ever.
    char *ring;
    uint64_t queued, sent;
    uint64_t requests, answers;
    double *begun;
    char head[HEAD];
    size_t head_bytes, body_left;
    bool waits_to_write;
};

static struct {
    int connections, depth;
    double warm_up, seconds;
    uint64_t requests;
    const char *answer_file;
    bool tls, idle;
    int processes, pids[PROCESSES];
} options = {.connections = 1, .depth = 1, .warm_up = 1, .seconds = 5};

static char buffer[BUFFER];
static char *frame;
static size_t frame_bytes;
static int poller;
static FILE *answer_file;
static struct connection *connections;
static uint64_t requests_left = UINT64_MAX;
static int64_t answer_bytes = -1;
static double measure_from, measure_to;
static uint64_t answers, in_flight;
static uint32_t *latencies;  // in units of 10 ns
static size_t latencies_size;

static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void read_frame(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail("%s: %s", path, strerror(errno));
    fseek(file, 0, SEEK_END);
    frame_bytes = ftell(file);
    rewind(file);
    frame = malloc(frame_bytes);
    if (frame_bytes < CORRELATION_ID + 4 || fread(frame, 1, frame_bytes, file) != frame_bytes)
        fail("%s has no frame", path);
    fclose(file);
}

// --- TLS ---

#ifdef WITH_TLS
#include <openssl/ssl.h>

static void *tls_connect(int socket) {
    static SSL_CTX *context;
    if (!context) {
        context = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS);
    }
    SSL *tls = SSL_new(context);
    SSL_set_fd(tls, socket);
    if (SSL_connect(tls) != 1) fail("the TLS handshake failed");
    return tls;
}

// Return a count of bytes, or 0 if the socket has to be waited for.
static size_t tls_count(SSL *tls, int count) {
    if (count > 0) return count;
    int error = SSL_get_error(tls, count);
    if (error != SSL_ERROR_WANT_WRITE && error != SSL_ERROR_WANT_READ)
        fail("the server closed a TLS connection");
    return 0;
}

static size_t tls_send(void *tls, const char *bytes, size_t count) {
    return tls_count(tls, SSL_write(tls, bytes, count));
}

static size_t tls_receive(void *tls) {
    return tls_count(tls, SSL_read(tls, buffer, BUFFER));
}
#else
static void *tls_connect(int socket) {
    fail("built without TLS, which connection %d needs", socket);
    return NULL;
}

static size_t tls_send(void *tls, const char *bytes, size_t count) {
    return tls && bytes ? count : 0;
}

static size_t tls_receive(void *tls) {
    return tls != NULL;
}
#endif

// --- Connections ---

static void watch(struct connection *connection, int operation) {
    struct epoll_event event = {.data.ptr = connection};
    event.events = EPOLLIN | (connection->waits_to_write ? EPOLLOUT : 0);
    if (epoll_ctl(poller, operation, connection->socket, &event)) fail("epoll_ctl");
}

static void open_connection(struct connection *connection, const char *host, const char *port) {
    int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail("%s is not an IPv4 address", host);
    connection->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection->socket, (struct sockaddr *)&address, sizeof address))
        fail("%s:%s: %s", host, port, strerror(errno));
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (options.tls) connection->tls = tls_connect(connection->socket);
    fcntl(connection->socket, F_SETFL, O_NONBLOCK);
    connection->ring = malloc(frame_bytes * options.depth);
    connection->begun = calloc(options.depth, sizeof(double));
    for (int i = 0; i < options.depth; i++)
        memcpy(connection->ring + i * frame_bytes, frame, frame_bytes);
    watch(connection, EPOLL_CTL_ADD);
}

// Return the bytes that were sent, or 0 if the socket takes none now.
static size_t send_some(struct connection *connection, const char *bytes, size_t count) {
    if (connection->tls) return tls_send(connection->tls, bytes, count);
    ssize_t sent = send(connection->socket, bytes, count, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) fail("send: %s", strerror(errno));
    return sent < 0 ? 0 : sent;
}

// Return the bytes that were received, or 0 if there are none now.
static size_t receive_some(struct connection *connection) {
    if (connection->tls) return tls_receive(connection->tls);
    ssize_t count = recv(connection->socket, buffer, BUFFER, 0);
    if (count < 0 && errno == EAGAIN) return 0;
    if (count <= 0) fail("the server closed a connection");
    return count;
}

// --- Requests ---

static void queue_request(struct connection *connection, double time) {
    if (!requests_left) return;
    requests_left--;
    in_flight++;
    int slot = connection->requests % options.depth;
    uint32_t id = htonl((uint32_t)connection->requests);
    memcpy(connection->ring + slot * frame_bytes + CORRELATION_ID, &id, sizeof id);
    connection->begun[slot] = time;
    connection->requests++;
    connection->queued += frame_bytes;
}

static void send_queued(struct connection *connection) {
    size_t ring_bytes = frame_bytes * options.depth;
    bool waits = false;
    while (connection->sent < connection->queued && !waits) {
        size_t from = connection->sent % ring_bytes;
        size_t count = connection->queued - connection->sent;
        if (count > ring_bytes - from) count = ring_bytes - from;
        size_t sent = send_some(connection, connection->ring + from, count);
        connection->sent += sent;
        waits = sent == 0;
    }
    if (waits != connection->waits_to_write) {
        connection->waits_to_write = waits;
        watch(connection, EPOLL_CTL_MOD);
    }
}

// --- Answers ---

static void record(double seconds) {
    if (answers == latencies_size) {
        latencies_size = latencies_size ? latencies_size * 2 : 1 << 16;
        latencies = realloc(latencies, latencies_size * sizeof *latencies);
        if (!latencies) fail("no memory for latencies");
    }
    latencies[answers++] = seconds < 40 ? seconds * 1e8 : UINT32_MAX;
}

static void on_answer(struct connection *connection, double time) {
    int slot = connection->answers % options.depth;
    connection->answers++;
    in_flight--;
    if (time >= measure_from && time < measure_to) record(time - connection->begun[slot]);
    queue_request(connection, time);
}

static void keep(struct connection *connection, const char *bytes, size_t count) {
    if (answer_file && connection == connections && connection->answers == 0)
        fwrite(bytes, 1, count, answer_file);
}

static void on_head(struct connection *connection) {
    uint32_t length, id;
    memcpy(&length, connection->head, sizeof length);
    memcpy(&id, connection->head + 4, sizeof id);
    if (connection->answers == connection->requests) fail("an answer without a request");
    if (ntohl(id) != (uint32_t)connection->answers)
        fail("the answer to request %u came in place of %u", ntohl(id), connection->answers);
    if (answer_bytes < 0) answer_bytes = ntohl(length);
    if (answer_bytes != ntohl(length))
        fail("an answer of %u bytes after one of %ld", ntohl(length), (long)answer_bytes);
    connection->body_left = ntohl(length) - 4;
    keep(connection, connection->head + 4, 4);
}

// Return how many of the bytes belong to the answer that arrives now.
static size_t take(struct connection *connection, const char *bytes, size_t count, double time) {
    size_t taken = HEAD - connection->head_bytes;
    if (taken) {
        if (taken > count) taken = count;
        memcpy(connection->head + connection->head_bytes, bytes, taken);
        connection->head_bytes += taken;
        if (connection->head_bytes < HEAD) return taken;
        on_head(connection);
    } else {
        taken = count < connection->body_left ? count : connection->body_left;
        keep(connection, bytes, taken);
        connection->body_left -= taken;
    }
    if (!connection->body_left) {
        connection->head_bytes = 0;
        on_answer(connection, time);
    }
    return taken;
}

static void on_event(struct connection *connection) {
    size_t count;
    do {
        count = receive_some(connection);
        double time = now();
        for (size_t done = 0; done < count;)
            done += take(connection, buffer + done, count - done, time);
        send_queued(connection);
        // TLS may have decrypted more than it returned, which epoll does not know.
    } while (connection->tls && count);
}

static void serve_events(double until) {
    struct epoll_event events[EVENTS];
    double left = until - now();
    int ready = epoll_wait(poller, events, EVENTS, left > 0 ? (int)(left * 1000) + 1 : 0);
    for (int i = 0; i < ready; i++) on_event(events[i].data.ptr);
}

// --- The measurement ---

// Return the CPU seconds of a process: user and system time, the fields 14 and 15 of its stat.
static double cpu_seconds(int pid) {
    char path[64], text[1024];
    unsigned long user, system;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) fail("process %d does not exist", pid);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    // The name in parentheses may hold spaces.
    const char *fields = strrchr(text, ')') + 2;
    if (sscanf(fields, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        fail("%s cannot be read", path);
    return (double)(user + system) / sysconf(_SC_CLK_TCK);
}

static double all_cpu_seconds(void) {
    double sum = 0;
    for (int i = 0; i < options.processes; i++) sum += cpu_seconds(options.pids[i]);
    return sum;
}

static int by_size(const void *one, const void *other) {
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return a < b ? -1 : a > b;
}

static double percentile(int percent) {
    return answers ? latencies[(answers - 1) * percent / 100] / 100.0 : 0;
}

static void print_result(double seconds, double cpu) {
    if (!answers) fail("no request was answered");
    qsort(latencies, answers, sizeof *latencies, by_size);
    printf("{\"answers\": %lu, \"seconds\": %.6f, \"cpu_seconds\": %.2f, ", answers, seconds, cpu);
    printf("\"bytes\": %lu, ", answers * (frame_bytes + answer_bytes + 4));
    printf("\"p50_us\": %.2f, \"p99_us\": %.2f}\n", percentile(50), percentile(99));
    fflush(stdout);
}

static void measure(void) {
    double begin = now();
    // With a number of requests everything counts, until the last answer.
    bool counted = options.requests > 0;
    measure_from = counted ? begin : begin + options.warm_up;
    measure_to = counted ? begin + GIVE_UP_SECONDS : measure_from + options.seconds;
    for (int i = 0; i < options.connections; i++) {
        for (int j = 0; j < options.depth; j++) queue_request(&connections[i], now());
        send_queued(&connections[i]);
    }
    while (!counted && now() < measure_from) serve_events(measure_from);
    double cpu = all_cpu_seconds();
    measure_from = now();
    if (!counted) measure_to = measure_from + options.seconds;
    while (now() < measure_to && (in_flight || !counted)) serve_events(measure_to);
    print_result(now() - measure_from, all_cpu_seconds() - cpu);
}

static void read_pids(char *text) {
    for (char *pid = strtok(text, ","); pid; pid = strtok(NULL, ",")) {
        if (options.processes == PROCESSES) fail("too many processes");
        options.pids[options.processes++] = atoi(pid);
    }
}

static void read_options(int count, char **arguments) {
    for (int option; (option = getopt(count, arguments, "c:d:w:s:n:p:a:ti")) != -1;) {
        switch (option) {
        case 'c': options.connections = atoi(optarg); break;
        case 'd': options.depth = atoi(optarg); break;
        case 'w': options.warm_up = atof(optarg); break;
        case 's': options.seconds = atof(optarg); break;
        case 'n': options.requests = requests_left = strtoull(optarg, NULL, 10); break;
        case 'p': read_pids(optarg); break;
        case 'a': options.answer_file = optarg; break;
        case 't': options.tls = true; break;
        case 'i': options.idle = true; break;
        default: exit(2);
        }
    }
    if (count - optind != 3 || options.connections < 1 || options.depth < 1)
        fail("usage: load [OPTION ...] HOST PORT FRAME-FILE");
}

// Many systems allow 1,024 open files unless a program asks for more.
static void allow_many_files(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int count, char **arguments) {
    allow_many_files();
    read_options(count, arguments);
    read_frame(arguments[optind + 2]);
    // A server that does not answer must not hold up the benchmark.
    alarm(GIVE_UP_SECONDS + options.warm_up + options.seconds);
    if (options.answer_file && !(answer_file = fopen(options.answer_file, "wb")))
        fail("%s: %s", options.answer_file, strerror(errno));
    poller = epoll_create1(0);
    connections = calloc(options.connections, sizeof *connections);
    for (int i = 0; i < options.connections; i++)
        open_connection(&connections[i], arguments[optind], arguments[optind + 1]);
    measure();
    if (answer_file) fclose(answer_file);
    if (options.idle) {
        alarm(0);
        while (getchar() != EOF) continue;
    }
    return 0;
}
