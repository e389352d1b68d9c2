/* For those who watch the server: GET /healthz and GET /api/metrics. */
#include "worker/metrics.h"

#include <string.h>

#include "common/scoreboard.h"
#include "worker/broker_link.h"
#include "worker/exchange.h"
#include "worker/worker.h"

static const struct {
    const char *name, *type, *help;
} METRICS[SCORE_COUNT] = {
    [SCORE_CONNECTIONS] = {"connections", "gauge", "Connections open now."},
    [SCORE_WEBSOCKETS] = {"websockets", "gauge", "WebSockets open now."},
    [SCORE_REQUESTS] = {"requests_total", "counter", "Requests answered."},
    [SCORE_REFUSED] = {"refused_total", "counter", "Requests refused by a rule or the reader."},
    [SCORE_BAD_TOKENS] = {"bad_tokens_total", "counter", "Wrong tokens offered."},
    [SCORE_FEED_VIEWERS] = {"feed_viewers", "gauge", "Viewers of dialogs now."},
    [SCORE_LOG_VIEWERS] = {"log_viewers", "gauge", "Viewers of logs now."},
    [SCORE_TERMINALS] = {"terminals", "gauge", "Viewers of terminals now."},
    [SCORE_LAUNCHES] = {"launches", "gauge", "Launched runs at work now."},
    [SCORE_TTYS] = {"terminals_open", "gauge", "Terminals now, watched or not."},
    [SCORE_LIMITED] = {"limited_total", "counter", "Connections turned away at a cap."},
    [SCORE_SLOW_TURNS] = {"slow_turns_total", "counter",
                          "Turns of a worker's loop that took over 5 ms."},
    [SCORE_LONGEST_TURN_US] = {"longest_turn_microseconds", "gauge",
                               "The longest turn of a worker's loop since its start."},
};

/* Of all workers together. */
static int64_t
value_of(enum score score)
{
    int64_t sum;

    if (score == SCORE_LONGEST_TURN_US)
        return (int64_t)scoreboard_max(score);
    /* A worker that was killed took what it had open along: no gauge below zero. */
    sum = (int64_t)scoreboard_sum(score);
    return sum < 0 ? 0 : sum;
}

void
handle_healthz(struct exchange *x)
{
    static const char OK[] = "ok\n", AWAY[] = "unavailable\n";

    if (broker_link_up() && !worker_stopping())
        exchange_static(x, 200, "text/plain", OK, sizeof(OK) - 1);
    else
        exchange_static(x, 503, "text/plain", AWAY, sizeof(AWAY) - 1);
}

void
handle_metrics(struct exchange *x)
{
    const struct worker_config *c = worker_config();
    struct buf body;

    buf_init(&body, 0);
    buf_add_format(&body,
                   "# HELP ssebench_webui_info The server's version.\n"
                   "# TYPE ssebench_webui_info gauge\n"
                   "ssebench_webui_info{version=\"%s\"} 1\n"
                   "# HELP ssebench_webui_workers Worker processes.\n"
                   "# TYPE ssebench_webui_workers gauge\n"
                   "ssebench_webui_workers %u\n",
                   c->server_version, c->n_workers);
    for (unsigned i = 0; i < SCORE_COUNT; i++)
        buf_add_format(&body,
                       "# HELP ssebench_webui_%s %s\n# TYPE ssebench_webui_%s %s\n"
                       "ssebench_webui_%s %lld\n",
                       METRICS[i].name, METRICS[i].help, METRICS[i].name, METRICS[i].type,
                       METRICS[i].name, (long long)value_of((enum score)i));
    exchange_text(x, 200, "text/plain; version=0.0.4", &body);
}
