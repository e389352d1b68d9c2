/* OpenCode's stream cut at every byte, and which events belong to a session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/limits.h"
#include "worker/opencode_stream.h"

/* --- events ---------------------------------------------------------------------------- */

static bool
collect(void *ctx, const char *data, size_t len)
{
    struct buf *out = ctx;

    if (data == NULL)
        buf_add_str(out, "(too long)");
    else
        buf_add(out, data, len);
    buf_add_str(out, "|");
    return true;
}

static const struct {
    const char *label, *stream, *events;
} streams[] = {
    {"one", "data: {\"a\":1}\n\n", "{\"a\":1}|"},
    {"two", "data: 1\n\ndata: 2\n\n", "1|2|"},
    {"no blank behind the colon", "data:1\n\n", "1|"},
    {"one blank only is not the data's", "data:  1\n\n", " 1|"},
    {"carriage returns", "data: 1\r\n\r\n", "1|"},
    {"several lines are one event", "data: 1\ndata: 2\n\n", "1\n2|"},
    {"other fields", "event: x\nid: 1\nretry: 5\n: comment\ndata: 1\n\n", "1|"},
    {"an event without data", "event: x\n\n\n\ndata: 1\n\n", "1|"},
    {"not over", "data: 1\n", ""},
    {"nothing", "", ""},
    {"no field", "nonsense\ndatum: 1\n\n", ""},
};

static void
test_streams(void **state)
{
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++)
        for (size_t step = 1; step <= strlen(streams[i].stream) + 1; step++) {
            struct opencode_stream s;
            struct buf out;
            size_t len = strlen(streams[i].stream);

            opencode_stream_init(&s);
            buf_init(&out, 0);
            buf_add_str(&out, "");
            for (size_t at = 0; at < len; at += step)
                opencode_stream_feed(&s, streams[i].stream + at,
                                     len - at < step ? len - at : step, collect, &out);
            if (strlen(streams[i].events) != out.len ||
                memcmp(streams[i].events, out.data != NULL ? out.data : "", out.len) != 0)
                fail_msg("%s, in steps of %zu: %s", streams[i].label, step, out.data);
            buf_done(&out);
            opencode_stream_done(&s);
        }
}

static void
test_too_long(void **state)
{
    struct opencode_stream s;
    struct buf out;
    char *piece = malloc(1024 * 1024);

    assert_non_null(piece);
    memset(piece, 'x', 1024 * 1024);
    opencode_stream_init(&s);
    buf_init(&out, 0);
    opencode_stream_feed(&s, "data: ", 6, collect, &out);
    for (size_t sent = 0; sent <= LIMIT_OPENCODE_EVENT; sent += 1024 * 1024)
        opencode_stream_feed(&s, piece, 1024 * 1024, collect, &out);
    opencode_stream_feed(&s, "\n\ndata: 1\n\n", 11, collect, &out);
    assert_int_equal(out.len, strlen("(too long)|1|"));
    assert_memory_equal(out.data, "(too long)|1|", out.len);
    buf_done(&out);
    opencode_stream_done(&s);
    free(piece);
}

/* --- sessions ------------------------------------------------------------------------------ */

static const struct {
    const char *label, *event;
    bool passes;
} events[] = {
    {"nobody's", "{\"type\":\"server.heartbeat\",\"properties\":{}}", true},
    {"no properties", "{\"type\":\"x\"}", true},
    {"properties of another form", "{\"type\":\"x\",\"properties\":[1]}", true},
    {"ours", "{\"type\":\"session.idle\",\"properties\":{\"sessionID\":\"ses_1\"}}", true},
    {"another's", "{\"type\":\"session.idle\",\"properties\":{\"sessionID\":\"ses_2\"}}", false},
    {"a longer name", "{\"type\":\"x\",\"properties\":{\"sessionID\":\"ses_11\"}}", false},
    {"another's part", "{\"type\":\"x\",\"properties\":{\"part\":{\"sessionID\":\"ses_2\"}}}", false},
    {"our part", "{\"type\":\"x\",\"properties\":{\"part\":{\"sessionID\":\"ses_1\"}}}", true},
    {"another's message", "{\"type\":\"x\",\"properties\":{\"message\":{\"sessionID\":\"ses_2\"}}}", false},
    {"another's info", "{\"type\":\"message.updated\",\"properties\":{\"info\":{\"sessionID\":\"ses_2\"}}}", false},
    {"another session itself", "{\"type\":\"session.updated\",\"properties\":{\"info\":{\"id\":\"ses_2\"}}}", false},
    {"our session itself", "{\"type\":\"session.updated\",\"properties\":{\"info\":{\"id\":\"ses_1\"}}}", true},
    {"a message's id is no session's", "{\"type\":\"message.updated\",\"properties\":{\"info\":{\"id\":\"msg_2\",\"sessionID\":\"ses_1\"}}}", true},
    {"a child is born", "{\"type\":\"session.created\",\"properties\":{\"info\":{\"id\":\"ses_3\",\"parentID\":\"ses_1\"}}}", true},
    {"and asks", "{\"type\":\"permission.asked\",\"properties\":{\"sessionID\":\"ses_3\"}}", true},
    {"a grandchild", "{\"type\":\"session.created\",\"properties\":{\"sessionID\":\"ses_4\",\"info\":{\"id\":\"ses_4\",\"parentID\":\"ses_3\"}}}", true},
    {"another's child", "{\"type\":\"session.created\",\"properties\":{\"info\":{\"id\":\"ses_5\",\"parentID\":\"ses_2\"}}}", false},
    {"is still another's", "{\"type\":\"x\",\"properties\":{\"sessionID\":\"ses_5\"}}", false},
    {"an error without a session", "{\"type\":\"session.error\",\"properties\":{\"error\":{}}}", true},
};

static void
test_filter(void **state)
{
    struct opencode_filter f = {.session = "ses_1"}, open = {.session = ""};

    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        struct json_doc *doc =
            json_parse(events[i].event, strlen(events[i].event), false, NULL);

        if (doc == NULL)
            fail_msg("%s: no JSON", events[i].label);
        if (opencode_filter_passes(&f, json_root(doc)) != events[i].passes)
            fail_msg("%s", events[i].label);
        if (!opencode_filter_passes(&open, json_root(doc)))
            fail_msg("without a filter: %s", events[i].label);
        json_doc_free(doc);
    }
}

static void
test_children_are_bounded(void **state)
{
    struct opencode_filter f = {.session = "ses_1"};
    char id[16];

    for (unsigned i = 0; i < 3 * OPENCODE_CHILDREN; i++) {
        snprintf(id, sizeof id, "ses_c%u", i);
        opencode_filter_add_child(&f, id);
        opencode_filter_add_child(&f, id);
    }
    assert_int_equal(f.n_children, OPENCODE_CHILDREN);
    assert_true(opencode_filter_has(&f, "ses_c0"));
    assert_false(opencode_filter_has(&f, id));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_children_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
