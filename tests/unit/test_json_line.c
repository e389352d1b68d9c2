/* The line scanner: what is one JSON object with a numeric seq, whatever the cuts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "worker/json_line.h"

static const struct {
    const char *label;
    const char *line;
    bool wanted;
    double seq;
} cases[] = {
    {"plain", "{\"seq\":0}", true, 0},
    {"blanks and CR", " \t{ \"seq\" : 12 , \"a\" : [ ] } \r", true, 12},
    {"negative", "{\"seq\":-3}", true, -3},
    {"fraction", "{\"seq\":1.5}", true, 1.5},
    {"exponent", "{\"seq\":1E+2}", true, 100},
    {"huge", "{\"seq\":1e999}", true, INFINITY},
    {"all literals", "{\"a\":true,\"b\":false,\"c\":null,\"seq\":1}", true, 1},
    {"nested", "{\"a\":{\"b\":[1,{\"seq\":9}]},\"seq\":2}", true, 2},
    {"escapes in strings", "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\",\"seq\":3}", true, 3},
    {"escaped name", "{\"\\u0073eq\":4}", true, 4},
    {"the last one counts", "{\"seq\":1,\"seq\":2}", true, 2},
    {"invalid UTF-8 in a string", "{\"a\":\"\xff\xc3\",\"seq\":5}", true, 5},
    {"empty members", "{\"\":{},\"a\":[],\"seq\":6}", true, 6},
    {"number at the end of an array", "{\"a\":[1,2],\"seq\":7}", true, 7},
    {"the last one is no number", "{\"seq\":1,\"seq\":\"2\"}", false, 0},
    {"text seq", "{\"seq\":\"1\"}", false, 0},
    {"null seq", "{\"seq\":null}", false, 0},
    {"seq in an object", "{\"seq\":{\"x\":1}}", false, 0},
    {"seq in an array", "{\"seq\":[1]}", false, 0},
    {"seq only deeper", "{\"a\":{\"seq\":1}}", false, 0},
    {"longer name", "{\"seqs\":1}", false, 0},
    {"shorter name", "{\"se\":1}", false, 0},
    {"no seq", "{\"a\":1}", false, 0},
    {"empty line", "", false, 0},
    {"blank line", "  \t", false, 0},
    {"array", "[{\"seq\":1}]", false, 0},
    {"number", "1", false, 0},
    {"text", "\"seq\"", false, 0},
    {"half", "{\"seq\":1", false, 0},
    {"half string", "{\"seq\":1,\"a\":\"x", false, 0},
    {"two objects", "{\"seq\":1}{\"seq\":2}", false, 0},
    {"garbage behind", "{\"seq\":1} x", false, 0},
    {"garbage before", "x{\"seq\":1}", false, 0},
    {"trailing comma", "{\"seq\":1,}", false, 0},
    {"missing comma", "{\"seq\":1 \"a\":2}", false, 0},
    {"missing colon", "{\"seq\" 1}", false, 0},
    {"leading zero", "{\"seq\":01}", false, 0},
    {"plus sign", "{\"seq\":+1}", false, 0},
    {"bare point", "{\"seq\":1.}", false, 0},
    {"point first", "{\"seq\":.5}", false, 0},
    {"bare exponent", "{\"seq\":1e}", false, 0},
    {"minus alone", "{\"seq\":-}", false, 0},
    {"NaN", "{\"seq\":NaN}", false, 0},
    {"cut literal", "{\"a\":tru,\"seq\":1}", false, 0},
    {"long literal", "{\"a\":truex,\"seq\":1}", false, 0},
    {"single quotes", "{'seq':1}", false, 0},
    {"control byte in a string", "{\"a\":\"\x01\",\"seq\":1}", false, 0},
    {"bad escape", "{\"a\":\"\\x\",\"seq\":1}", false, 0},
    {"bad hex", "{\"a\":\"\\u00g0\",\"seq\":1}", false, 0},
    {"wrong closing", "{\"a\":[1},\"seq\":1}", false, 0},
    {"byte order mark", "\xef\xbb\xbf{\"seq\":1}", false, 0},
    {"high byte outside strings", "{\"seq\":1\xff}", false, 0},
    {"comment", "{/*x*/\"seq\":1}", false, 0},
};

static void
check(const char *label, const char *line, size_t len, bool wanted, double seq)
{
    for (size_t cut = 0; cut <= len; cut++) {
        struct json_line s;
        double got = 0;
        bool is;

        json_line_begin(&s);
        json_line_feed(&s, line, cut);
        json_line_feed(&s, line + cut, len - cut);
        is = json_line_end(&s, &got);
        if (is != wanted || (is && got != seq))
            fail_msg("%s, cut at %zu: %d %g", label, cut, is, got);
    }
}

static void
test_cases(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(cases[i].label, cases[i].line, strlen(cases[i].line), cases[i].wanted,
              cases[i].seq);
}

static void
test_nul(void **state)
{
    check("NUL between", "{\"seq\":1}\0", 10, false, 0);
    check("NUL in a string", "{\"a\":\"\0\",\"seq\":1}", 17, false, 0);
}

/* 64 levels are read, 65 are not: the stack of the scanner is one word. */
static void
test_depth(void **state)
{
    for (unsigned depth = 62; depth <= 65; depth++) {
        char line[512] = "{\"seq\":1,\"a\":";

        for (unsigned i = 1; i < depth; i++)
            strcat(line, i % 2 ? "[" : "{\"seq\":");
        for (unsigned i = depth - 1; i >= 1; i--)
            strcat(line, i % 2 ? "]" : i == depth - 1 ? "2}" : "}");
        strcat(line, "}");
        check("depth", line, strlen(line), depth <= 64, 1);
    }
}

static void
test_long_number(void **state)
{
    char line[1024] = "{\"seq\":";

    memset(line + 7, '9', 400);
    strcpy(line + 407, "}");
    check("400 digits", line, strlen(line), true, INFINITY);
    memset(line + 7, '9', 401);
    strcpy(line + 408, "}");
    check("401 digits", line, strlen(line), false, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_long_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
