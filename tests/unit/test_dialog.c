/* Dialogs as documents: what is kept, cleaned, cut, and in what memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/json_read.h"
#include "drop_newlines.h"
#include "worker/dialog_read.h"

static int
file_of(const char *bytes, size_t len)
{
    int fd = memfd_create("dialog", MFD_CLOEXEC);

    assert_true(fd >= 0);
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, bytes + at, len - at);

        assert_true(n > 0);
        at += (size_t)n;
    }
    return fd;
}

/* The whole document; checks that every step adds something and stays small. */
static void
read_all(const char *bytes, size_t len, double since, uint32_t most, struct buf *out)
{
    struct dialog_reader *r = dialog_reader_new(file_of(bytes, len), len, since, most);
    int more;

    assert_non_null(r);
    buf_init(out, 0);
    do {
        size_t before = out->len;

        more = dialog_reader_fill(r, out);
        assert_true(more >= 0);
        assert_int_equal(more == 1, out->len > before);
        assert_true(out->len - before <= 3 * DIALOG_WINDOW + 64);
    } while (more == 1);
    assert_int_equal(more, 0);
    dialog_reader_free(r);
}

static const struct {
    const char *label;
    const char *file;
    double since;
    uint32_t most;
    const char *document;
} cases[] = {
    {"empty", "", -1, 10, "{\"entries\":[]}"},
    {"two", "{\"seq\":0}\n{\"seq\":1}\n", -1, 10, "{\"entries\":[{\"seq\":0},{\"seq\":1}]}"},
    {"no newline at the end", "{\"seq\":0}\n{\"seq\":1}", -1, 10,
     "{\"entries\":[{\"seq\":0},{\"seq\":1}]}"},
    {"half last line", "{\"seq\":0}\n{\"seq\":1,\"a", -1, 10, "{\"entries\":[{\"seq\":0}]}"},
    {"since", "{\"seq\":0}\n{\"seq\":1}\n{\"seq\":2}\n", 1, 10, "{\"entries\":[{\"seq\":2}]}"},
    {"since beyond", "{\"seq\":0}\n", 99, 10, "{\"entries\":[]}"},
    {"order and repetition as written", "{\"seq\":2}\n{\"seq\":1}\n{\"seq\":2}\n", -1, 10,
     "{\"entries\":[{\"seq\":2},{\"seq\":1},{\"seq\":2}]}"},
    {"fraction", "{\"seq\":0.5}\n{\"seq\":1e300}\n", 0, 10,
     "{\"entries\":[{\"seq\":0.5},{\"seq\":1e300}]}"},
    {"negative is not above -1", "{\"seq\":-1}\n{\"seq\":-0.5}\n", -1, 10,
     "{\"entries\":[{\"seq\":-0.5}]}"},
    {"rubbish between", "\n\nnot json\n[1]\n5\n{\"seq\":\"1\"}\n{}\n{\"seq\":3}\nnull\n", -1, 10,
     "{\"entries\":[{\"seq\":3}]}"},
    {"CRLF", "{\"seq\":0}\r\n{\"seq\":1}\r\n", -1, 10,
     "{\"entries\":[{\"seq\":0}\r,{\"seq\":1}\r]}"},
    {"invalid UTF-8 is replaced", "{\"seq\":0,\"a\":\"x\xffy\xe2\x82z\"}\n", -1, 10,
     "{\"entries\":[{\"seq\":0,\"a\":\"x\xef\xbf\xbdy\xef\xbf\xbdz\"}]}"},
    {"at the limit", "{\"seq\":0}\n{\"seq\":1}\n", -1, 2,
     "{\"entries\":[{\"seq\":0},{\"seq\":1}]}"},
    {"over the limit", "{\"seq\":0}\n{\"seq\":1}\n{\"seq\":2}\n", -1, 2,
     "{\"entries\":[{\"seq\":0},{\"seq\":1}],\"truncated\":true}"},
    {"only rubbish over the limit", "{\"seq\":0}\nx\n{\"seq\":\"a\"}\n", -1, 1,
     "{\"entries\":[{\"seq\":0}]}"},
};

static void
test_cases(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out;

        read_all(cases[i].file, strlen(cases[i].file), cases[i].since, cases[i].most, &out);
        drop_newlines(&out);
        if (strcmp(out.data, cases[i].document) != 0)
            fail_msg("%s: %s", cases[i].label, out.data);
        buf_done(&out);
    }
}

/* Lines around the window's size, whose multi-byte text meets every border. */
static void
test_long_lines(void **state)
{
    static const int around[] = {-70000, -9, -3, -2, -1, 0, 1, 2, 3, 65536, 200001, 3000000};

    for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
        size_t text_len = (size_t)((int)DIALOG_WINDOW * 2 + around[i]) / 3 * 3;
        struct buf file, out;
        struct json_doc *doc;
        const struct json_value *entry;

        buf_init(&file, 0);
        buf_add_str(&file, "{\"seq\":0}\n{\"seq\":1,\"a\":\"");
        for (size_t n = 0; n < text_len; n += 3)
            buf_add(&file, "\xe2\x82\xac", 3);
        buf_add_str(&file, "\"}\n{\"seq\":2}\n");
        read_all(file.data, file.len, -1, 10, &out);
        doc = json_parse(out.data, out.len, true, NULL);
        assert_non_null(doc);
        entry = json_get(json_root(doc), "entries");
        assert_int_equal(entry->len, 3);
        assert_int_equal(json_get(entry->first->next, "a")->len, text_len);
        assert_null(strstr(out.data, "\xef\xbf\xbd"));
        json_doc_free(doc);
        buf_done(&file);
        buf_done(&out);
    }
}

/* A long line that is no entry costs nothing but the look at it. */
static void
test_long_rubbish(void **state)
{
    struct buf file, out;

    buf_init(&file, 0);
    buf_add_str(&file, "{\"a\":\"");
    for (unsigned i = 0; i < 300000; i++)
        buf_add(&file, "x", 1);
    buf_add_str(&file, "\"}\n{\"seq\":1}\n[");
    for (unsigned i = 0; i < 300000; i++)
        buf_add(&file, "[", 1);
    read_all(file.data, file.len, -1, 10, &out);
    drop_newlines(&out);
    assert_string_equal(out.data, "{\"entries\":[{\"seq\":1}]}");
    buf_done(&file);
    buf_done(&out);
}

/* The file shrinks after it was opened: what is there is told, and the document ends. */
static void
test_shrunk(void **state)
{
    static const char text[] = "{\"seq\":0}\n{\"seq\":1}\n";
    struct dialog_reader *r =
        dialog_reader_new(file_of(text, sizeof text - 1), 1000000, -1, 10);
    struct buf out;

    buf_init(&out, 0);
    while (dialog_reader_fill(r, &out) == 1)
        assert_true(out.len < 1000);
    drop_newlines(&out);
    assert_string_equal(out.data, "{\"entries\":[{\"seq\":0},{\"seq\":1}]}");
    dialog_reader_free(r);
    buf_done(&out);
}

static const struct {
    const char *text;
    bool valid;
    double value;
} sinces[] = {
    {"0", true, 0},      {"17", true, 17},  {"007", true, 7}, {"99999999999999999999", true, 1e20},
    {"", false, 0},      {"-1", false, 0},  {"1.5", false, 0}, {"+1", false, 0},
    {" 1", false, 0},    {"1 ", false, 0},  {"1e3", false, 0}, {"0x1", false, 0},
    {"abc", false, 0},   {"\xd9\xa1", false, 0},
};

static void
test_since(void **state)
{
    for (size_t i = 0; i < sizeof sinces / sizeof *sinces; i++) {
        double value = -2;
        bool valid = dialog_since_parse(sinces[i].text, &value);

        if (valid != sinces[i].valid || (valid && value != sinces[i].value) ||
            (!valid && value != -2))
            fail_msg("since '%s'", sinces[i].text);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),   cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_long_rubbish), cmocka_unit_test(test_shrunk),
        cmocka_unit_test(test_since),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
