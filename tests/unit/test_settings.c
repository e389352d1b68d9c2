/* Settings as a table: environment in, outcome or refusal out; no refusal repeats a
 * secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/control.h"
#include "master/listener.h"
#include "master/settings.h"

#define LONG_TOKEN "0123456789abcdef"

static const char *env_names[8], *env_values[8];
static size_t n_env;
static char dir[] = "/tmp/test-settings-XXXXXX";
static char error[SETTINGS_ERROR_SIZE];
static struct settings s;

static const char *
lookup(const char *name)
{
    for (size_t i = 0; i < n_env; i++)
        if (strcmp(env_names[i], name) == 0)
            return env_values[i];
    return strcmp(name, "HOME") == 0 ? dir : NULL;
}

static void
set(const char *name, const char *value)
{
    env_names[n_env] = name;
    env_values[n_env++] = value;
}

static int
read_with(const char *name, const char *value)
{
    n_env = 0;
    error[0] = '\0';
    if (name != NULL)
        set(name, value);
    return settings_read(lookup, &s, error);
}

static void
test_defaults(void **state)
{
    char expected[256];

    assert_int_equal(read_with(NULL, NULL), 0);
    assert_int_equal(s.port, 3001);
    assert_string_equal(s.host, "127.0.0.1");
    assert_string_equal(s.cli, "uv run ssebench");
    assert_true(s.terminal);
    assert_false(s.hosted);
    assert_false(s.peers_any);
    assert_true(s.pty_cleanup);
    assert_int_equal(s.pty_interval_ms, 30000);
    assert_int_equal(s.pty_orphan_ms, 300000);
    assert_true(s.workers >= 2);
    assert_int_equal(s.log_level, LOG_LEVEL_INFO);
    assert_string_equal(s.token, "");
    assert_string_equal(s.catalog, "");
    assert_string_equal(s.checkout, dir);
    snprintf(expected, sizeof(expected), "%s/datasets/pilot", dir);
    assert_string_equal(s.local_tasks, expected);
    snprintf(expected, sizeof(expected), "%s/.local/state/ssebench-webui", dir);
    assert_string_equal(s.state_dir, expected);
    snprintf(expected, sizeof(expected), "%s/results", dir);
    assert_string_equal(s.roots, expected);
    assert_string_equal(s.roots + strlen(s.roots) + 1, "");
}

static const struct {
    const char *name, *value;
    const char *says; /* part of the refusal; NULL: accepted */
} cases[] = {
    {"PORT", "0", NULL},
    {"PORT", " 65535 ", NULL},
    {"PORT", "", NULL},
    {"PORT", "65536", "PORT=65536 is not a whole number from 0 to 65535"},
    {"PORT", "-1", "PORT=-1"},
    {"PORT", "+1", "PORT=+1"},
    {"PORT", "0x50", "PORT=0x50"},
    {"PORT", "3001.5", "PORT=3001.5"},
    {"PORT", "99999999999999999999", "PORT=99999999999999999999"},
    {"SSEBENCH_WEBUI_HOST", "  ", NULL},
    {"SSEBENCH_WEBUI_HOST", "::1", NULL},
    {"SSEBENCH_WEBUI_HOST", "localhost", NULL},
    {"SSEBENCH_WEBUI_HOST", "unix:/run/x.sock", NULL},
    {"SSEBENCH_WEBUI_HOST", "unix:x.sock", "unix:/absolute/path"},
    {"SSEBENCH_WEBUI_HOST", "http://127.0.0.1", "without scheme"},
    {"SSEBENCH_WEBUI_HOST", "[::1]", "brackets"},
    {"SSEBENCH_WEBUI_TOKEN", LONG_TOKEN, NULL},
    {"SSEBENCH_WEBUI_TOKEN", " " LONG_TOKEN "\n", NULL},
    {"SSEBENCH_WEBUI_TOKEN", "0123456789abcde",
     "must be at least 16 characters without spaces"},
    {"SSEBENCH_WEBUI_TOKEN", "0123456789 abcdefgh",
     "must be at least 16 characters without"},
    {"SSEBENCH_WEBUI_TOKEN_FILE", "/nonexistent/token", "cannot be opened"},
    {"SSEBENCH_WEBUI_TOKEN_FILE", "/dev/null", "not a regular file"},
    {"SSEBENCH_WEBUI_CORS_ORIGINS", "https://bench.example.org", NULL},
    {"SSEBENCH_WEBUI_CORS_ORIGINS", "https://a.example/, HTTP://B.example:81 ,", NULL},
    {"SSEBENCH_WEBUI_CORS_ORIGINS", "*", "* is not an origin"},
    {"SSEBENCH_WEBUI_CORS_ORIGINS", "https://a.example/path",
     "without a path or wildcard"},
    {"SSEBENCH_WEBUI_CORS_ORIGINS", "https://ok.example,bench.example.org",
     "bench.example.org"},
    {"SSEBENCH_WEBUI_CORS_ORIGINS", "null", "null is not an origin"},
    {"SSEBENCH_WEBUI_PEERS", "any", NULL},
    {"SSEBENCH_WEBUI_PEERS", "all", "Set own or any"},
    {"SSEBENCH_WEBUI_TERMINAL", "No", NULL},
    {"SSEBENCH_WEBUI_TERMINAL", "maybe",
     "SSEBENCH_WEBUI_TERMINAL=maybe cannot be read"},
    {"SSEBENCH_WEBUI_HOSTED", "maybe", "SSEBENCH_WEBUI_HOSTED=maybe cannot be read"},
    {"SSEBENCH_WEBUI_HOSTED", "2", "cannot be read"},
    {"PTY_ENABLE_CLEANUP", "false", NULL},
    {"PTY_CLEANUP_INTERVAL", "10", "from 100 to"},
    {"SSEBENCH_WEBUI_WORKERS", "0", "from 1 to 64"},
    {"SSEBENCH_WEBUI_WORKERS", "65", "one per core"},
    {"SSEBENCH_WEBUI_MAX_CONNECTIONS", "15", "from 16 to"},
    {"SSEBENCH_WEBUI_MAX_LAUNCHES", "0", "4 per core"},
    {"SSEBENCH_WEBUI_BASE_PATH", "/", NULL},
    {"SSEBENCH_WEBUI_BASE_PATH", "/a/b.c/", NULL},
    {"SSEBENCH_WEBUI_BASE_PATH", "a/b", "is not a prefix"},
    {"SSEBENCH_WEBUI_BASE_PATH", "/a//b", "is not a prefix"},
    {"SSEBENCH_WEBUI_BASE_PATH", "/a/../b", "is not a prefix"},
    {"SSEBENCH_WEBUI_BASE_PATH", "/.", "is not a prefix"},
    {"SSEBENCH_WEBUI_BASE_PATH", "/a\"><script>", "is not a prefix"},
    {"SSEBENCH_WEBUI_LITELLM_URL", "https://proxy.example:4000/llm", NULL},
    {"SSEBENCH_WEBUI_LITELLM_URL", "proxy.example", "is not a plain URL"},
    {"SSEBENCH_WEBUI_LITELLM_URL", "http://u:sesamsesam@h/", "is not a plain URL"},
    {"LITELLM_PORT", "0", "from 1 to 65535"},
    {"SSEBENCH_WEBUI_LOG_LEVEL", "Debug", NULL},
    {"SSEBENCH_WEBUI_LOG_LEVEL", "loud", "error, warning, info or debug"},
    {"SSEBENCH_WEBUI_USER", "no such", "is not a name"},
    {"SSEBENCH_BACKEND", "kubernetes", NULL},
    {"SSEBENCH_BACKEND", "a\"b", "is not a name"},
    {"SSEBENCH_CLI", "python3 -m ssebench", NULL},
    {"SSEBENCH_CLI", "a\nb", "control character"},
    {"SSEBENCH_PATH", "/nonexistent", "SSEBENCH_PATH=/nonexistent is not a directory"},
    {"SSEBENCH_WEBUI_RESULTS", "/usr:/tmp", NULL},
    {"SSEBENCH_WEBUI_RESULTS", "/usr:/nonexistent", "/nonexistent is not a directory"},
};

static void
test_values(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = read_with(cases[i].name, cases[i].value);

        if (cases[i].says == NULL && status != 0)
            fail_msg("%s=%s refused: %s", cases[i].name, cases[i].value, error);
        if (cases[i].says != NULL && status == 0)
            fail_msg("%s=%s accepted", cases[i].name, cases[i].value);
        if (cases[i].says != NULL && strstr(error, cases[i].says) == NULL)
            fail_msg("%s=%s says: %s", cases[i].name, cases[i].value, error);
        if (cases[i].says != NULL && strstr(error, cases[i].name) == NULL)
            fail_msg("%s is not named in: %s", cases[i].name, error);
    }
}

static void
test_secrets_are_not_repeated(void **state)
{
    assert_int_not_equal(read_with("SSEBENCH_WEBUI_TOKEN", "sesam oeffne dich"), 0);
    assert_null(strstr(error, "sesam"));
    assert_int_not_equal(
        read_with("SSEBENCH_WEBUI_LITELLM_URL", "http://u:sesamsesam@h/"), 0);
    assert_null(strstr(error, "sesam"));
}

static void
test_secrets_are_not_printed(void **state)
{
    char text[65536] = "";
    FILE *out = fmemopen(text, sizeof(text), "w");

    assert_int_equal(read_with("SSEBENCH_WEBUI_TOKEN", "sesamsesamsesamsesam"), 0);
    settings_print_values(out, &s);
    fclose(out);
    assert_null(strstr(text, "sesam"));
    assert_non_null(strstr(text, "token=set"));
    assert_non_null(strstr(text, "SSEBENCH_WEBUI_HOST=127.0.0.1"));
}

static void
test_results(void **state)
{
    assert_int_equal(read_with("SSEBENCH_WEBUI_BASE_PATH", "/a/b//"), 0);
    assert_string_equal(s.base_path, "/a/b");
    assert_int_equal(
        read_with("SSEBENCH_WEBUI_CORS_ORIGINS", "https://A.example/,http://b:81"), 0);
    assert_int_equal(s.n_origins, 2);
    assert_string_equal(s.origins[0], "https://a.example:443");
    assert_string_equal(s.origins[1], "http://b:81");
    assert_int_equal(read_with("SSEBENCH_WEBUI_TOKEN", " " LONG_TOKEN "\n"), 0);
    assert_string_equal(s.token, LONG_TOKEN);
    assert_int_equal(read_with("LITELLM_PORT", "4001"), 0);
    assert_string_equal(s.litellm_url, "http://127.0.0.1:4001");
    assert_int_equal(read_with("PTY_ENABLE_CLEANUP", "false"), 0);
    assert_false(s.pty_cleanup);
}

static const struct {
    const char *host, *token;
    const char *refusal; /* the exact text; NULL: may listen */
} hosts[] = {
    {"127.0.0.1", NULL, NULL},
    {"127.8.8.8", NULL, NULL},
    {"::1", NULL, NULL},
    {"localhost", NULL, NULL},
    {"LOCALHOST", NULL, NULL},
    {"::ffff:127.0.0.1", NULL, NULL},
    {"unix:/tmp/x", NULL, NULL},
    {"0.0.0.0", LONG_TOKEN, NULL},
    {"::", LONG_TOKEN, NULL},
    {"0.0.0.0", NULL,
     "Refusing to listen on 0.0.0.0 without SSEBENCH_WEBUI_TOKEN. Set a token, or keep "
     "SSEBENCH_WEBUI_HOST on a loopback address (default 127.0.0.1)."},
    {"::", NULL,
     "Refusing to listen on :: without SSEBENCH_WEBUI_TOKEN. Set a token, or keep "
     "SSEBENCH_WEBUI_HOST on a loopback address (default 127.0.0.1)."},
    {"10.1.2.3", NULL,
     "Refusing to listen on 10.1.2.3 without SSEBENCH_WEBUI_TOKEN. Set a token, or "
     "keep "
     "SSEBENCH_WEBUI_HOST on a loopback address (default 127.0.0.1)."},
    {"0", NULL, /* inet_aton's short form of 0.0.0.0 */
     "Refusing to listen on 0 without SSEBENCH_WEBUI_TOKEN. Set a token, or keep "
     "SSEBENCH_WEBUI_HOST on a loopback address (default 127.0.0.1)."},
};

static void
test_address_rule(void **state)
{
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        assert_int_equal(read_with("SSEBENCH_WEBUI_HOST", hosts[i].host), 0);
        if (hosts[i].token != NULL)
            strcpy(s.token, hosts[i].token);
        if (hosts[i].refusal == NULL) {
            if (listener_check(&s, error) != 0)
                fail_msg("%s: %s", hosts[i].host, error);
            continue;
        }
        assert_int_not_equal(listener_check(&s, error), 0);
        assert_string_equal(error, hosts[i].refusal);
    }
}

static void
write_file(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

static const struct {
    const char *text;
    mode_t mode;
    const char *says;
} token_files[] = {
    {LONG_TOKEN "\n", 0600, NULL},
    {"\n " LONG_TOKEN " \n\n", 0400, NULL},
    {LONG_TOKEN, 0440, NULL}, /* what systemd's credentials look like */
    {LONG_TOKEN, 0644, "has mode 0644"},
    {LONG_TOKEN, 0604, "has mode 0604"},
    {LONG_TOKEN, 0660, "has mode 0660"},
    {"sesamsesam", 0600, "at least 16 characters without spaces"},
    {"sesamsesam sesamsesam", 0600, "at least 16 characters without spaces"},
    {"", 0600, "at least 16 characters without spaces"},
};

static void
test_token_file(void **state)
{
    char path[64], token[POLICY_TOKEN_MAX];

    snprintf(path, sizeof(path), "%s/token", dir);
    for (size_t i = 0; i < sizeof(token_files) / sizeof(token_files[0]); i++) {
        int status;

        write_file(path, token_files[i].text, token_files[i].mode);
        status = settings_read_token_file(path, token, error);
        if (token_files[i].says == NULL) {
            assert_int_equal(status, 0);
            assert_string_equal(token, LONG_TOKEN);
        } else {
            assert_int_not_equal(status, 0);
            if (strstr(error, token_files[i].says) == NULL ||
                strstr(error, "sesam") != NULL)
                fail_msg("row %zu says: %s", i, error);
        }
        unlink(path);
    }
    assert_int_equal(mkfifo(path, 0600), 0); /* must not block */
    assert_int_not_equal(settings_read_token_file(path, token, error), 0);
    unlink(path);
}

static void
test_two_token_sources(void **state)
{
    read_with("SSEBENCH_WEBUI_TOKEN", LONG_TOKEN);
    set("SSEBENCH_WEBUI_TOKEN_FILE", "/x");
    assert_int_not_equal(settings_read(lookup, &s, error), 0);
    assert_non_null(strstr(error, "Set one of them"));
}

static void
test_paths(void **state)
{
    char expected[256];

    /* Contract 13.15: one meaning of a relative data set, the checkout's. */
    read_with("SSEBENCH_PATH", "/usr");
    set("SSEBENCH_LOCAL_TASKS", "share/doc");
    set("SSEBENCH_CATALOG", "rel.json");
    set("SSEBENCH_CATALOG_URL", "http://old.example");
    assert_int_equal(settings_read(lookup, &s, error), 0);
    assert_string_equal(s.local_tasks, "/usr/share/doc");
    snprintf(expected, sizeof(expected), "%s/rel.json", dir);
    assert_string_equal(s.catalog, expected);
    assert_false(s.catalog_deprecated);
    assert_int_equal(read_with("SSEBENCH_CATALOG_URL", "http://old.example"), 0);
    assert_string_equal(s.catalog, "http://old.example");
    assert_true(s.catalog_deprecated);
    assert_int_equal(read_with("SSEBENCH_CATALOG", "HTTPS://x.example/m.json"), 0);
    assert_string_equal(s.catalog, "HTTPS://x.example/m.json");
    assert_int_equal(read_with("XDG_STATE_HOME", "/var/tmp"), 0);
    assert_string_equal(s.state_dir, "/var/tmp/ssebench-webui");
    assert_int_equal(read_with("XDG_STATE_HOME", "relative"), 0);
    snprintf(expected, sizeof(expected), "%s/.local/state/ssebench-webui", dir);
    assert_string_equal(s.state_dir, expected);
    assert_int_equal(read_with("SSEBENCH_WEBUI_RESULTS", "/usr:/tmp"), 0);
    assert_string_equal(s.roots + strlen(s.roots) + 1, "/usr");
}

static void
test_state_dir(void **state)
{
    char path[64];
    struct stat st;

    assert_int_equal(read_with(NULL, NULL), 0);
    assert_int_equal(settings_make_state_dir(&s, geteuid(), getegid(), error), 0);
    assert_int_equal(stat(s.state_dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(settings_make_state_dir(&s, geteuid(), getegid(), error), 0);
    assert_int_equal(chmod(s.state_dir, 0755), 0);
    assert_int_not_equal(settings_make_state_dir(&s, geteuid(), getegid(), error), 0);
    assert_non_null(strstr(error, "has mode 0755"));
    snprintf(path, sizeof(path), "%s/link", dir);
    assert_int_equal(symlink("/tmp", path), 0);
    strcpy(s.state_dir, path);
    assert_int_not_equal(settings_make_state_dir(&s, geteuid(), getegid(), error), 0);
    assert_non_null(strstr(error, "is not a directory"));
    unlink(path);
}

static void
test_socket_file(void **state)
{
    char path[64], host[96];
    struct listeners l, second;
    struct stat st;

    snprintf(path, sizeof(path), "%s/s.sock", dir);
    snprintf(host, sizeof(host), "unix:%s", path);
    assert_int_equal(read_with("SSEBENCH_WEBUI_HOST", host), 0);
    assert_int_equal(listener_open(&s, &l, error), 0);
    assert_true(l.is_unix);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_not_equal(listener_open(&s, &second, error), 0); /* alive: not stolen */
    assert_non_null(strstr(error, "address already in use"));
    close(l.item[0].fd); /* as after a SIGKILL: the file stays, nobody listens */
    assert_int_equal(listener_open(&s, &second, error), 0);
    listener_close(&second);
    assert_int_not_equal(stat(path, &st), 0);
    write_file(path, "precious", 0600);
    assert_int_not_equal(listener_open(&s, &l, error), 0);
    assert_int_equal(stat(path, &st), 0);
    unlink(path);
}

static void
test_ports(void **state)
{
    struct listeners l, second;
    unsigned port = 0;

    assert_int_equal(read_with("PORT", "0"), 0);
    assert_int_equal(listener_open(&s, &l, error), 0);
    assert_int_equal(sscanf(l.item[0].label, "127.0.0.1:%u", &port), 1);
    assert_true(port > 0);
    s.port = port;
    assert_int_not_equal(listener_open(&s, &second, error), 0);
    assert_non_null(strstr(error, "Cannot listen on 127.0.0.1:"));
    assert_non_null(strstr(error, ": address already in use. "));
    listener_close(&l);
}

/* The relative paths of the cases above start in an empty directory. */
static int
enter_dir(void **state)
{
    return mkdtemp(dir) != NULL ? chdir(dir) : -1;
}

static int
remove_dir(void **state)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    return chdir("/") == 0 ? system(command) : -1;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_secrets_are_not_repeated),
        cmocka_unit_test(test_secrets_are_not_printed),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_address_rule),
        cmocka_unit_test(test_token_file),
        cmocka_unit_test(test_two_token_sources),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_state_dir),
        cmocka_unit_test(test_socket_file),
        cmocka_unit_test(test_ports),
    };

    return cmocka_run_group_tests(tests, enter_dir, remove_dir);
}
