/* Argument vectors and the durable records of launches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker/documents.h"
#include "broker/launch_argv.h"
#include "broker/launch_record.h"

#define ID "8ad31f4b-3e0f-4ec8-8cb8-b2935e00d97d"
#define HEAD "uv run ssebench run "
#define TAIL " --mode=sandbox --run-id=" ID " --keep-container "

static const struct {
    const char *label;
    struct launch_fields f;
    const char *line;
} VECTORS[] = {
    {"least", {-1, -1, 1, 1, .agent = "a", .task = "t", .model = "m"},
     HEAD "--model=m --agent=a --task=t" TAIL "--local=/l o"},
    {"remote", {-1, -1, 1, 2, .agent = "a", .task = "t", .model = "m/n"},
     HEAD "--model=m/n --agent=a --task=t" TAIL "--catalog=http://c"},
    {"reference", {-1, -1, 1, 1, .agent = "reference", .task = "t", .model = "m"},
     HEAD "--agent=reference --task=t" TAIL "--local=/l o"},
    {"all",
     {60, 0, 1, 1, 2, .n_plugins = 2, .agent = "a", .task = "t", .model = "m",
      .plugins = {"p", "q"}},
     HEAD "--model=m --agent=a --task=t" TAIL
          "--local=/l o --timeout=60 --difficulty=0 --egress=open --plugin=p --plugin=q"},
    {"values like options", {-1, -1, 1, 1, 1, .agent = "--x", .task = "t", .model = "-m $(id) ;"},
     HEAD "--model=-m $(id) ; --agent=--x --task=t" TAIL "--local=/l o --egress=restricted"},
};

static void
test_vectors(void **state)
{
    static char *const before[] = {(char *)"uv", (char *)"run", (char *)"ssebench", NULL};

    for (size_t i = 0; i < sizeof(VECTORS) / sizeof(VECTORS[0]); i++) {
        struct launch_argv v;
        char line[2048], cut[16];

        print_message("%s\n", VECTORS[i].label);
        assert_int_equal(launch_argv_build(&v, before, &VECTORS[i].f, ID, "/l o", "http://c"), 0);
        launch_argv_join(&v, 0, line, sizeof(line));
        assert_string_equal(line, VECTORS[i].line);
        assert_null(v.at[v.n]);
        assert_string_equal(v.at[3], "run");
        launch_argv_join(&v, 0, cut, sizeof(cut));
        assert_string_equal(cut + 12, "...");
        launch_argv_done(&v);
    }
}

static int
make_dir(char path[32])
{
    snprintf(path, 32, "/tmp/launch-test.XXXXXX");
    assert_non_null(mkdtemp(path));
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static struct launch_meta
a_meta(void)
{
    struct launch_fields f = {60, -1, 1, 1, 2, .n_plugins = 2, .agent = "a \"b\" \\ \t\x01\xc3\xa9",
                              .task = "t", .model = "m", .plugins = {"p", "q"}};
    struct launch_meta m = {.version = LAUNCH_RECORD_VERSION, .state = LAUNCH_RUNNING,
                            .start_ms = 1795979734986, .id = ID, .command = "uv run\nx",
                            .error = "\"\\u0000\""};

    launch_meta_set_fields(&m, &f);
    return m;
}

/* What was written comes back; anything else in its place does not. */
static void
test_meta(void **state)
{
    struct launch_meta m = a_meta(), again = {0};
    struct launch_fields f;
    char path[32], file[64], text[8192];
    int dir = make_dir(path), fd;
    ssize_t n;

    assert_int_equal(launch_meta_load(dir, &again), -ENOENT);
    assert_int_equal(launch_meta_save(dir, &m), 0);
    assert_int_equal(launch_meta_load(dir, &again), 0);
    assert_memory_equal(&m, &again, sizeof(m));
    assert_int_equal(launch_meta_get_fields(&again, &f), 0);
    assert_int_equal(f.n_plugins, 2);
    assert_string_equal(f.plugins[1], "q");
    snprintf(file, sizeof(file), "%s/meta.json", path);
    fd = open(file, O_RDWR);
    n = read(fd, text, sizeof(text));
    assert_true(n > 100);
    for (off_t len = 0; len < n; len++) { /* torn anywhere */
        assert_int_equal(ftruncate(fd, len), 0);
        assert_int_equal(launch_meta_load(dir, &again), -EBADMSG);
        assert_int_equal(pwrite(fd, text + len, (size_t)(n - len), len), n - len);
    }
    for (off_t at = 0; at < n; at++) { /* one byte of it is another */
        struct launch_meta other;
        char wrong = text[at] == '9' ? '8' : '9';

        assert_int_equal(pwrite(fd, &wrong, 1, at), 1);
        if (launch_meta_load(dir, &other) == 0)
            assert_memory_not_equal(&m, &other, sizeof(m));
        assert_int_equal(pwrite(fd, &text[at], 1, at), 1);
    }
    assert_int_equal(pwrite(fd, " ", 1, n), 1); /* longer */
    assert_int_equal(launch_meta_load(dir, &again), -EBADMSG);
    close(fd);
    unlink(file);
    close(dir);
    rmdir(path);
}

static void
test_meta_of_others(void **state)
{
    static const struct {
        const char *label;
        size_t offset;
        int64_t value;
    } ROWS[] = {
        {"older version", offsetof(struct launch_meta, version), 0},
        {"newer version", offsetof(struct launch_meta, version), 2},
        {"no state", offsetof(struct launch_meta, state), 0},
        {"state", offsetof(struct launch_meta, state), LAUNCH_STATES},
        {"mode", offsetof(struct launch_meta, mode), 9},
        {"source", offsetof(struct launch_meta, source), -1},
        {"timeout", offsetof(struct launch_meta, timeout), 604801},
        {"difficulty", offsetof(struct launch_meta, difficulty), 5},
        {"interrupted", offsetof(struct launch_meta, interrupted), 2},
    };
    char path[32], file[64];
    int dir = make_dir(path);

    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        struct launch_meta m = a_meta(), again;

        print_message("%s\n", ROWS[i].label);
        memcpy((char *)&m + ROWS[i].offset, &ROWS[i].value, sizeof(int64_t));
        assert_int_equal(launch_meta_save(dir, &m), 0);
        assert_int_equal(launch_meta_load(dir, &again), -EBADMSG);
    }
    snprintf(file, sizeof(file), "%s/meta.json", path);
    unlink(file);
    assert_int_equal(symlink("/proc/version", file), 0);
    assert_int_equal(launch_meta_load(dir, &(struct launch_meta){0}), -ELOOP);
    unlink(file);
    close(dir);
    rmdir(path);
}

static void
test_processes(void **state)
{
    char boot[40];

    launch_boot_id(boot);
    assert_int_equal(strlen(boot), 36);
    assert_true(launch_start_ticks(getpid()) > 0);
    assert_int_equal(launch_start_ticks(0), -1);
    assert_int_equal(launch_start_ticks(1 << 30), -1);
}

static void
test_manifest_url(void **state)
{
    static const struct {
        const char *location, *url; /* NULL: none */
    } ROWS[] = {
        {"http://h", "http://h/manifest.json"},
        {"http://h/", "http://h/manifest.json"},
        {"HTTPS://h/a//", "HTTPS://h/a/manifest.json"},
        {"https://h/a.json", "https://h/a.json"},
        {"https://h/a?b=/c#d", "https://h/a/manifest.json?b=/c"},
        {"https://h/a.json?k", "https://h/a.json?k"},
        {"/a/b", NULL},
        {"ftp://h/a.json", NULL},
    };

    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        char url[256];
        int found = documents_manifest_url(ROWS[i].location, url, sizeof(url));

        assert_int_equal(found != 0, ROWS[i].url != NULL);
        if (ROWS[i].url)
            assert_string_equal(url, ROWS[i].url);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),        cmocka_unit_test(test_meta),
        cmocka_unit_test(test_meta_of_others), cmocka_unit_test(test_processes),
        cmocka_unit_test(test_manifest_url),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
