/*
 * Orders to the key maker: one small process each, told everything by memfd, nothing by its
 * command line or environment.
 * Distrusts: the key maker, once it has begun to read what others wrote (its answer is fixed
 * in layout and checked), and its punctuality.
 */
#include "broker/litellm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/child.h"
#include "broker/dotenv.h"
#include "common/handoff.h"
#include "common/limits.h"

struct work {
    struct litellm *litellm;
    LIST_ENTRY(work) link;
    struct child *child;
    int answer_fd;
    litellm_fn fn;
    void *ctx;
};

struct litellm {
    struct broker *broker;
    LIST_HEAD(, work) list;
    unsigned n_works;
    char program[HANDOFF_PATH];
};

struct litellm *
litellm_new(struct broker *b)
{
    struct litellm *l = calloc(1, sizeof *l);
    const char *slash = strrchr(b->config.keeper, '/');

    if (l == NULL)
        return NULL;
    l->broker = b;
    LIST_INIT(&l->list);
    /* Beside the keeper, wherever that was found. */
    snprintf(l->program, sizeof l->program, "%.*s/ssebench-webui-keymaker",
             slash != NULL ? (int)(slash - b->config.keeper) : 0, b->config.keeper);
    return l;
}

static void
work_free(struct work *w)
{
    LIST_REMOVE(w, link);
    w->litellm->n_works--;
    if (w->answer_fd >= 0)
        close(w->answer_fd);
    free(w);
}

void
litellm_free(struct litellm *l)
{
    if (l == NULL)
        return;
    while (!LIST_EMPTY(&l->list))
        work_free(LIST_FIRST(&l->list));
    free(l);
}

bool
litellm_is_full(const struct litellm *l)
{
    return l->n_works >= LIMIT_KEYMAKERS;
}

bool
litellm_has_master_key(const struct litellm *l)
{
    char key[KEYMAKER_SECRET_SIZE];
    bool has = dotenv_setting(l->broker->config.checkout, "LITELLM_MASTER_KEY", key,
                              sizeof key) == 0;

    explicit_bzero(key, sizeof key);
    return has;
}

/* Contract 9.1: the port by the same rule as the key; our setting goes before it. */
static void
proxy_address(const struct broker *b, char *out, size_t size)
{
    char port[8];
    char *end;
    unsigned long n = 0;

    if (b->config.litellm_url[0] != '\0') {
        snprintf(out, size, "%s", b->config.litellm_url);
        return;
    }
    if (dotenv_setting(b->config.checkout, "LITELLM_PORT", port, sizeof port) == 0) {
        n = strtoul(port, &end, 10);
        if (*end != '\0' || n > 65535)
            n = 0;
    }
    snprintf(out, size, "http://127.0.0.1:%lu", n != 0 ? n : 4000);
}

static bool
answer_valid(const struct keymaker_answer *a)
{
    return a->done <= 1 && message_string_valid(a->base_url, sizeof a->base_url) &&
           message_string_valid(a->model, sizeof a->model) &&
           message_string_valid(a->key, sizeof a->key) &&
           message_string_valid(a->config, sizeof a->config) &&
           message_string_valid(a->error, sizeof a->error);
}

static void
on_exit_status(void *ctx, int exit_status)
{
    struct work *w = ctx;
    litellm_fn fn = w->fn;
    void *fn_ctx = w->ctx;
    static struct keymaker_answer a; /* one loop, one answer at a time */

    if (exit_status != 0 || pread(w->answer_fd, &a, sizeof a, 0) != sizeof a ||
        !answer_valid(&a)) {
        memset(&a, 0, sizeof a);
        snprintf(a.error, sizeof a.error,
                 exit_status == 128 + SIGALRM ? "The LiteLLM proxy did not answer within %u s"
                                              : "The key maker failed",
                 LIMIT_KEYMAKER_MS / 1000);
    }
    work_free(w); /* first: `fn` may have another order, and there is room for one */
    fn(fn_ctx, &a);
    explicit_bzero(&a, sizeof a);
}

/* Its environment: where the system's certificates are, if that was set. */
static void
make_environment(char *const *all, char **out)
{
    size_t n = 0;

    for (; *all != NULL && n < 2; all++)
        if (strncmp(*all, "SSL_CERT_FILE=", 14) == 0 || strncmp(*all, "SSL_CERT_DIR=", 13) == 0)
            out[n++] = *all;
    out[n] = NULL;
}

/* Safe: the program is fixed; the order is a sealed memory file that only it holds. */
static int
act_order(struct litellm *l, const struct keymaker_order *order, struct work *w)
{
    struct children *all = l->broker->children;
    char *argv[] = {l->program, NULL};
    char *env[3];
    struct child_spec spec = {.argv = argv, .env = env, .fn = on_exit_status, .ctx = w};
    char error[256];
    int null_fd, r;

    make_environment(children_environment(all), env);
    spec.in_fd = handoff_seal("order", order, sizeof *order);
    if (spec.in_fd < 0)
        return spec.in_fd;
    null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    spec.out_fd = w->answer_fd;
    spec.err_fd = null_fd;
    r = null_fd < 0 ? -errno
                    : child_start_spec(all, &spec, &w->child, error, sizeof error);
    if (null_fd >= 0)
        close(null_fd);
    close(spec.in_fd);
    return r;
}

int
litellm_order(struct litellm *l, struct keymaker_order *order, litellm_fn fn, void *ctx)
{
    struct work *w;
    int r = 0;

    if (litellm_is_full(l))
        return -EBUSY;
    w = calloc(1, sizeof *w);
    if (w == NULL)
        return -ENOMEM;
    *w = (struct work){.litellm = l, .fn = fn, .ctx = ctx};
    LIST_INSERT_HEAD(&l->list, w, link);
    l->n_works++;
    w->answer_fd = memfd_create("answer", MFD_CLOEXEC);
    if (w->answer_fd < 0)
        r = -errno;
    if (r == 0 && order->task != KEYMAKER_READ) {
        proxy_address(l->broker, order->proxy_url, sizeof order->proxy_url);
        r = dotenv_setting(l->broker->config.checkout, "LITELLM_MASTER_KEY",
                           order->master_key, sizeof order->master_key);
    }
    if (r == 0)
        r = act_order(l, order, w);
    explicit_bzero(order, sizeof *order);
    if (r < 0)
        work_free(w);
    return r;
}

void
litellm_redact(char *text, const char *secret)
{
    size_t len = strlen(secret);

    if (len < 4) /* no key is that short, and every text would be stars */
        return;
    for (char *at = text; (at = strstr(at, secret)) != NULL; at += len)
        memset(at, '*', len);
}

void
litellm_redact_master(const struct litellm *l, char *text)
{
    char key[KEYMAKER_SECRET_SIZE];

    if (dotenv_setting(l->broker->config.checkout, "LITELLM_MASTER_KEY", key, sizeof key) == 0)
        litellm_redact(text, key);
    explicit_bzero(key, sizeof key);
}
