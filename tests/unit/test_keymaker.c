/* What the key maker reads: two lines of a container, the head of a proxy's answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "broker/keymaker/proxy.h"
#include "broker/keymaker/read_model.h"

#define LONG_64 "0123456789012345678901234567890123456789012345678901234567890123"
#define LONG_256 LONG_64 LONG_64 LONG_64 LONG_64

static const struct {
    const char *label, *printed;
    int result;
    const char *url, *model;
} printed[] = {
    {"both", "http://litellm:4000\ngpt-6\n", 0, "http://litellm:4000", "gpt-6"},
    {"https, blanks, CR", " https://p/ \r\n m/x y \r\n", 0, "https://p/", "m/x y"},
    {"no end of line", "http://p\nm", 0, "http://p", "m"},
    {"more lines are not looked at", "http://p\nm\nx\n", 0, "http://p", "m"},
    {"no address", "\nm\n", 0, "", ""},
    {"no model", "http://p\n\n", 0, "", ""},
    {"nothing", "", 0, "", ""},
    {"one line", "http://p\n", 0, "", ""},
    {"another scheme", "file:///etc/passwd\nm\n", -1, "", ""},
    {"scheme alone", "http://\nm\n", -1, "", ""},
    {"control byte in the address", "http://p\x01q\nm\n", -1, "", ""},
    {"blank in the address", "http://p q\nm\n", -1, "", ""},
    {"quote in the address", "http://p\"q\nm\n", -1, "", ""},
    {"control byte in the model", "http://p\nm\x1b[31m\n", -1, "", ""},
    {"model is no UTF-8", "http://p\nm\xff\n", -1, "", ""},
    {"model of 256 bytes", "http://p\n" LONG_256 "\n", 0, "http://p", LONG_256},
    {"model of 257 bytes", "http://p\n" LONG_256 "x\n", -1, "", ""},
    {"all models of the proxy", "http://p\nall-proxy-models\n", -1, "", ""},
    {"all models of a team", "http://p\n all-team-models \n", -1, "", ""},
    {"all models of an organisation", "http://p\nall-org-models\n", -1, "", ""},
    {"the default models", "http://p\nno-default-models\n", -1, "", ""},
    {"every model", "http://p\n*\n", -1, "", ""},
    {"every model of a provider", "http://p\nopenai/*\n", -1, "", ""},
    {"a pattern", "http://p\ngpt-*-mini\n", -1, "", ""},
    {"names that are but like them", "http://p\nall-models\n", 0, "http://p", "all-models"},
    {"a longer name", "http://p\nx-all-team-models\n", 0, "http://p", "x-all-team-models"},
    {"another longer name", "http://p\nall-team-models-7b\n", 0, "http://p", "all-team-models-7b"},
    {"address too long", "http://" LONG_256 LONG_256 "\nm\n", -1, "", ""},
};

static void
test_model(void **state)
{
    for (size_t i = 0; i < sizeof printed / sizeof printed[0]; i++) {
        char url[KEYMAKER_URL_SIZE] = "", model[MESSAGE_MODEL_SIZE] = "";
        int r = read_model(printed[i].printed, strlen(printed[i].printed), url, model);

        if (r != printed[i].result || strcmp(url, printed[i].url) != 0 ||
            strcmp(model, printed[i].model) != 0)
            fail_msg("%s: %d, %s, %s", printed[i].label, r, url, model);
    }
}

static const struct {
    const char *label, *answer;
    int status; /* -1: not HTTP */
    const char *body;
} answers[] = {
    {"plain", "HTTP/1.1 200 OK\r\nA: b\r\n\r\n{}", 200, "{}"},
    {"no reason", "HTTP/1.0 401\r\n\r\n", 401, ""},
    {"head not over", "HTTP/1.1 200 OK\r\nA: b\r\n", -1, NULL},
    {"no number", "HTTP/1.1 2x0 OK\r\n\r\n", -1, NULL},
    {"another protocol", "SSH-2.0-OpenSSH_9.2\r\n\r\n", -1, NULL},
    {"HTTP/2", "HTTP/2 200\r\n\r\n", -1, NULL},
    {"short", "HTTP/1.1", -1, NULL},
};

static void
test_answer(void **state)
{
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct buf b;
        int status = -1;
        const char *body = NULL;
        size_t len = 0;
        int r;

        buf_init(&b, 0);
        buf_add_str(&b, answers[i].answer);
        r = proxy_answer_split(&b, &status, &body, &len);
        if (r == 0 ? status != answers[i].status || len != strlen(answers[i].body) ||
                         memcmp(body, answers[i].body, len) != 0
                   : answers[i].status != -1)
            fail_msg("%s: %d, %d", answers[i].label, r, status);
        buf_done(&b);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
