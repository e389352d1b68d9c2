/*
 * The key maker: reads, for the broker, the two things of the assistant that others wrote:
 * what a container says of its model, and what the LiteLLM proxy answers. One order, one
 * answer, then it ends.
 *
 * Why a program of its own: the proxy's answer holds a key that no worker may see (design
 * R4), and the process that may exec and open must not parse (R1). This one can do neither:
 * when it begins to read, all that is left to it is reading, writing and memory (for TLS random
 * numbers and the time as well).
 *
 * stdin: sealed memfd with struct keymaker_order; stdout: memfd for struct keymaker_answer.
 * Distrusts: the container's words and the proxy's.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker/keymaker/fence.h"
#include "broker/keymaker/order.h"
#include "broker/keymaker/proxy.h"
#include "broker/keymaker/read_model.h"
#include "common/json_read.h"
#include "common/json_write.h"
#include "common/limits.h"

static int
fail(struct keymaker_answer *a, const char *why)
{
    snprintf(a->error, sizeof a->error, "%s", why);
    return -1;
}

/* Contract 9.1: exactly these three, in this order. */
static void
render_generate(const struct keymaker_order *o, struct buf *out)
{
    struct json_writer w;

    json_begin(&w, out);
    json_object_open(&w);
    json_key(&w, "models");
    json_array_open(&w);
    json_cstring(&w, o->model);
    json_array_close(&w);
    json_key(&w, "max_budget");
    json_int(&w, 5);
    json_key(&w, "key_alias");
    json_cstring(&w, o->alias);
    json_object_close(&w);
}

static void
render_delete(const struct keymaker_order *o, struct buf *out)
{
    struct json_writer w;

    json_begin(&w, out);
    json_object_open(&w);
    json_key(&w, o->key[0] != '\0' ? "keys" : "key_aliases");
    json_array_open(&w);
    json_cstring(&w, o->key[0] != '\0' ? o->key : o->alias);
    json_array_close(&w);
    json_object_close(&w);
}

/* Contract 9.2. */
static int
render_config(const struct keymaker_order *o, const char *key, struct keymaker_answer *a)
{
    struct json_writer w;
    struct buf out, text;
    size_t len = strlen(o->base_url);
    int r = 0;

    while (len > 0 && o->base_url[len - 1] == '/')
        len--;
    buf_init(&out, sizeof a->config - 1);
    buf_init(&text, 0);
    buf_add_format(&text, "%.*s/v1", (int)len, o->base_url);
    json_begin(&w, &out);
    json_object_open(&w);
    json_key(&w, "provider");
    json_object_open(&w);
    json_key(&w, "ssebench");
    json_object_open(&w);
    json_key(&w, "npm");
    json_cstring(&w, "@ai-sdk/openai-compatible");
    json_key(&w, "name");
    json_cstring(&w, "SSEBench LiteLLM");
    json_key(&w, "options");
    json_object_open(&w);
    json_key(&w, "baseURL");
    json_string(&w, text.data, text.len);
    json_key(&w, "apiKey");
    json_cstring(&w, key);
    json_object_close(&w);
    json_key(&w, "models");
    json_object_open(&w);
    json_key(&w, o->model);
    json_object_open(&w);
    json_key(&w, "name");
    json_cstring(&w, o->model);
    json_object_close(&w);
    json_object_close(&w);
    json_object_close(&w);
    json_object_close(&w);
    buf_reset(&text);
    buf_add_format(&text, "ssebench/%s", o->model);
    json_key(&w, "model");
    json_string(&w, text.data, text.len);
    json_object_close(&w);
    if (out.failed || text.failed)
        r = fail(a, "The model's name is too long");
    else
        memcpy(a->config, out.data, out.len);
    buf_done(&out);
    buf_done(&text);
    return r;
}

/* A key goes into an environment and a header: visible ASCII or nothing. */
static bool
key_is_plain(const char *key)
{
    size_t len = strlen(key);

    if (len == 0 || len >= KEYMAKER_SECRET_SIZE)
        return false;
    for (size_t i = 0; i < len; i++)
        if (key[i] < 0x21 || key[i] > 0x7e)
            return false;
    return true;
}

static int
read_key(const struct keymaker_order *o, const char *body, size_t len,
         struct keymaker_answer *a)
{
    struct json_doc *doc = json_parse(body, len, false, NULL);
    const char *key = doc != NULL ? json_text(json_get(json_root(doc), "key")) : NULL;
    int r = -1;

    if (key == NULL || !key_is_plain(key))
        fail(a, "The LiteLLM proxy answered without a key");
    else if (render_config(o, key, a) == 0)
        r = 0, memcpy(a->key, key, strlen(key));
    json_doc_free(doc);
    return r;
}

static int
ask_proxy(const struct keymaker_order *o, struct keymaker_answer *a)
{
    bool make = o->task == KEYMAKER_MAKE;
    static struct proxy proxy;
    struct buf body, answer;
    const char *text;
    size_t len;
    int status;

    if (make && !model_is_one(o->model, strlen(o->model)))
        return fail(a, "The model's name stands for more than one model");
    buf_init(&body, 0);
    buf_init(&answer, LIMIT_PROXY_ANSWER);
    if (make)
        render_generate(o, &body);
    else
        render_delete(o, &body);
    if (proxy_connect(&proxy, o->proxy_url, a->error) != 0)
        return -1;
    fence_up(proxy.tls);
    if (proxy_post(&proxy, make ? "/key/generate" : "/key/delete", o->master_key, &body, &answer,
                   a->error) != 0)
        return -1;
    if (proxy_answer_split(&answer, &status, &text, &len) != 0)
        return fail(a, "The LiteLLM proxy answered something that is not HTTP");
    if (status < 200 || status > 299) {
        snprintf(a->error, sizeof a->error, "The LiteLLM proxy refused: HTTP %d", status);
        return -1;
    }
    return make ? read_key(o, text, len, a) : 0;
}

int
main(void)
{
    static struct keymaker_order o;
    static struct keymaker_answer a;
    int r = -1;

    fence_early();
    if (pread(STDIN_FILENO, &o, sizeof o, 0) != sizeof o)
        return 2;
    switch ((enum keymaker_task)o.task) {
    case KEYMAKER_READ:
        fence_up(false);
        r = read_model(o.printed, o.printed_len, a.base_url, a.model);
        if (r != 0)
            fail(&a, "The container's model or its address cannot be used");
        break;
    case KEYMAKER_MAKE:
    case KEYMAKER_REVOKE:
        r = ask_proxy(&o, &a);
        break;
    }
    a.done = r == 0;
    if (write(STDOUT_FILENO, &a, sizeof a) != sizeof a)
        _exit(2);
    _exit(0);
}
