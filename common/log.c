/* Rendering and carrying log lines; what came from elsewhere is escaped, always. */
#include "common/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/channel.h"

static const char *log_role = "?";
static int log_fd = -1; /* control channel, or -1: stderr */
static enum log_level log_most = LOG_LEVEL_INFO;
static unsigned long log_dropped;

static const char *
level_name(uint32_t level)
{
    static const char *const names[] = {"?", "error", "warning", "info", "debug"};

    return names[level <= LOG_LEVEL_DEBUG ? level : 0];
}

void
log_init(const char *role, int control_fd, enum log_level most)
{
    log_role = role;
    log_fd = control_fd;
    log_most = most;
}

/* Bytes that may stand in a line as they are. Everything from 0x7f up is escaped: C1 controls
 * and U+2028 would otherwise reach a terminal or split a line. */
static bool
is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f;
}

static size_t
escape(char *out, size_t out_size, const char *text, size_t len, bool quoting)
{
    size_t n = 0;

    for (size_t i = 0; i < len && n + 5 < out_size; i++) {
        unsigned char c = (unsigned char)text[i];

        if (is_plain(c) && !(quoting && (c == '"' || c == '\\')))
            out[n++] = (char)c;
        else
            n += (size_t)snprintf(out + n, out_size - n, "\\x%02x", c);
    }
    out[n] = '\0';
    return n;
}

static void
print_line(const char *role, uint32_t level, const char *text)
{
    char line[4 * LIMIT_LOG_LINE + 128];
    struct timespec now;
    struct tm tm;
    int n;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    n = snprintf(line, sizeof line, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ %s %s %s\n",
                 tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                 tm.tm_sec, now.tv_nsec / 1000000, level_name(level), role, text);
    if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
        return; /* stderr is gone: nowhere to say it */
}

static void
send_line(uint32_t level, const char *text, size_t len)
{
    struct control_log message = {.head = {CONTROL_LOG, level}};

    if (len > sizeof message.text)
        len = sizeof message.text;
    memcpy(message.text, text, len);
    if (channel_send(log_fd, &message, sizeof message.head + len, NULL, 0) != 0)
        log_dropped++;
}

void
log_event(enum log_level level, const char *event, const char *format, ...)
{
    char text[LIMIT_LOG_LINE];
    va_list args;
    int n, m;

    if (level > log_most)
        return;
    n = snprintf(text, sizeof text, "%s ", event);
    va_start(args, format);
    m = vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    if (m < 0)
        return;
    if (log_fd >= 0)
        send_line(level, text, strlen(text));
    else
        log_relay(log_role, level, text, strlen(text));
}

void
log_relay(const char *role, uint32_t level, const char *text, size_t len)
{
    char line[4 * LIMIT_LOG_LINE + 1];

    if (level < LOG_LEVEL_ERROR || level > LOG_LEVEL_DEBUG)
        level = LOG_LEVEL_WARNING; /* a child that invents levels is worth a look */
    if (level > log_most)
        return;
    if (len > LIMIT_LOG_LINE)
        len = LIMIT_LOG_LINE;
    escape(line, sizeof line, text, len, false);
    print_line(role, level, line);
}

const char *
log_quote(const char *text, size_t len)
{
    static char out[LIMIT_LOG_LINE];

    if (len > LIMIT_LOG_LINE / 4)
        len = LIMIT_LOG_LINE / 4;
    out[0] = '"';
    escape(out + 1, sizeof out - 2, text, len, true);
    strcat(out, "\"");
    return out;
}

void
log_die(const char *format, ...)
{
    char text[LIMIT_LOG_LINE];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_event(LOG_LEVEL_ERROR, "fatal", "%s", text);
    exit(1);
}
