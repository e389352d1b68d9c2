/* The send queue of a WebSocket: pieces, order, byte counts, message ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/ws.h"
#include "worker/ws_queue.h"

static void
push(struct ws_queue *queue, const char *text, bool first, bool last)
{
    struct ws_entry entry = {ws_bytes_new(text, strlen(text)), false, first, last};
    assert_int_equal(ws_queue_push(queue, entry), 0);
}

struct piece_case {
    const char *text;
    bool first, last;
};

static void
expect(struct ws_queue *queue, size_t most, const struct piece_case *want)
{
    struct ws_piece piece;
    assert_true(ws_queue_peek(queue, most, &piece));
    assert_int_equal(piece.len, strlen(want->text));
    assert_memory_equal(piece.at, want->text, piece.len);
    assert_int_equal(piece.first, want->first);
    assert_int_equal(piece.last, want->last);
    ws_queue_taken(queue, &piece);
}

static void
test_pieces(void **state)
{
    static const struct piece_case want[] = {
        {"abc", true, false}, {"def", false, false}, {"g", false, true}, /* a long message */
        {"", true, true},                                              /* an empty one */
        {"xyz", true, true},                                           /* exactly one piece */
        {"par", true, false}, {"t", false, false},                     /* one in parts */
        {"end", false, true},
    };
    struct ws_queue queue = {0};
    push(&queue, "abcdefg", true, true);
    push(&queue, "", true, true);
    push(&queue, "xyz", true, true);
    push(&queue, "part", true, false);
    push(&queue, "end", false, true);
    assert_int_equal(queue.bytes, 17);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
        expect(&queue, 3, &want[i]);
    struct ws_piece piece;
    assert_false(ws_queue_peek(&queue, 3, &piece));
    assert_int_equal(queue.bytes, 0);
    assert_null(queue.entries); /* an idle socket keeps no ring */
}

static void
test_ring_wraps(void **state)
{
    struct ws_queue queue = {0};
    char text[2] = "a";
    unsigned in = 0, out = 0;
    for (unsigned round = 0; round < 200; round++) {
        for (unsigned i = 0; i < 3; i++) {
            text[0] = (char)('a' + in++ % 26);
            push(&queue, text, true, true);
        }
        for (unsigned i = 0; i < 2; i++) {
            text[0] = (char)('a' + out++ % 26);
            expect(&queue, 64, &(struct piece_case){text, true, true});
        }
    }
    assert_int_equal(queue.n, 200);
    assert_int_equal(queue.bytes, 200);
    ws_queue_clear(&queue);
    assert_int_equal(queue.bytes, 0);
}

static void
test_shared_bytes(void **state)
{
    struct ws_queue a = {0}, b = {0};
    struct ws_bytes *bytes = ws_bytes_new("shared", 6);
    assert_int_equal(ws_queue_push(&a, (struct ws_entry){ws_bytes_ref(bytes), false, true,
                                                         true}), 0);
    assert_int_equal(ws_queue_push(&b, (struct ws_entry){ws_bytes_ref(bytes), false, true,
                                                         true}), 0);
    ws_bytes_unref(bytes);
    ws_queue_clear(&a);
    expect(&b, 64, &(struct piece_case){"shared", true, true});
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_ring_wraps),
        cmocka_unit_test(test_shared_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
