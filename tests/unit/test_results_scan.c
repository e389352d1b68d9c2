/* The walk over results and the files it leads to: links, odd files, changes, generations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/dispatch.h"
#include "broker/results_scan.h"
#include "broker/run_dirs.h"
#include "broker_fixture.h"
#include "common/limits.h"

static const char script[] = "#!/bin/sh\necho '{}'\n";

/* What a worker knows after having read all records. */
struct seen_run {
    uint64_t ref;
    char dir[512];
    char summary[64]; /* its first bytes */
    unsigned n_times; /* records that brought it */
};

struct seen {
    uint64_t epoch, generation;
    unsigned n_runs, n_answers, n_records, n_gone, n_renewals;
    enum scan_cut cut;
    struct seen_run runs[4096];
};

static struct fixture fx;
static struct seen seen;

static struct seen_run *
run_of(const char *dir)
{
    for (unsigned i = 0; i < seen.n_runs; i++)
        if (strcmp(seen.runs[i].dir, dir) == 0)
            return &seen.runs[i];
    return NULL;
}

static void
take_gone(uint64_t ref)
{
    seen.n_gone++;
    for (unsigned i = 0; i < seen.n_runs; i++)
        if (seen.runs[i].ref == ref)
            seen.runs[i] = seen.runs[--seen.n_runs];
}

static void
take_record(const struct scan_record *r, const char *body)
{
    char dir[512];
    struct seen_run *run;

    seen.n_records++;
    if (r->gone) {
        assert_int_equal(r->dir_len + r->summary_len, 0);
        take_gone(r->ref);
        return;
    }
    assert_true(r->dir_len < sizeof dir);
    memcpy(dir, body, r->dir_len);
    dir[r->dir_len] = '\0';
    run = run_of(dir);
    if (run == NULL) {
        assert_true(seen.n_runs < 4096);
        run = &seen.runs[seen.n_runs++];
        *run = (struct seen_run){.ref = r->ref};
        strcpy(run->dir, dir);
    }
    assert_int_equal(run->ref, r->ref);
    run->n_times++;
    memset(run->summary, 0, sizeof run->summary);
    memcpy(run->summary, body + r->dir_len,
           r->summary_len < sizeof run->summary ? r->summary_len : sizeof run->summary - 1);
}

static void
take_records(int fd, size_t size)
{
    const char *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    size_t at = 0;

    assert_true(p != MAP_FAILED);
    while (at < size) {
        const struct scan_record *r = (const struct scan_record *)(p + at);
        size_t len = sizeof *r + r->dir_len + r->summary_len;

        assert_true(at + len <= size);
        take_record(r, p + at + sizeof *r);
        for (; len % 8 != 0; len++)
            assert_int_equal(p[at + len], 0);
        at += len;
    }
    assert_int_equal(at, size);
    munmap((void *)p, size);
}

/* As a worker does: ask until there is no more. */
static void
scan_all(void)
{
    bool more = true;

    seen.n_answers = seen.n_records = seen.n_gone = 0;
    while (more) {
        struct request_results_scan q = {.epoch = seen.epoch,
                                         .generation = seen.generation};
        const struct answer_results_scan *a = fixture_ask(&fx, MESSAGE_RESULTS_SCAN, &q, -1);

        assert_non_null(a);
        assert_int_equal(a->status, ANSWER_OK);
        assert_int_equal(fx.packet.n_fds, a->size > 0);
        if (a->epoch != seen.epoch)
            seen.n_runs = 0;
        seen.n_renewals += a->epoch != seen.epoch;
        seen.epoch = a->epoch;
        seen.generation = a->generation;
        seen.cut = (enum scan_cut)a->cut;
        seen.n_answers++;
        more = a->more;
        if (a->size > 0)
            take_records(fx.packet.fds[0], a->size);
    }
}

/* The next request walks anew, whatever its age. */
static void
walk_again(void)
{
    results_scan_expire(fx.b.results_scan);
    scan_all();
}

/* Set a file's or folder's times back, so that clocks cannot hide a change. */
static void
age(const char *path)
{
    struct timespec t[2] = {{1000000000, 0}, {1000000000, 0}};

    assert_int_equal(utimensat(AT_FDCWD, fixture_path(&fx, path), t, AT_SYMLINK_NOFOLLOW), 0);
}

static void
put_summary(const char *dir, const char *text)
{
    char path[600];

    snprintf(path, sizeof path, "results/%s/summary.json", dir);
    fixture_put(&fx, path, text);
}

static void
put_link(const char *path, const char *target)
{
    unlink(fixture_path(&fx, path)); /* a link that is there would be written through */
    fixture_put(&fx, path, "");      /* the parents */
    unlink(fixture_path(&fx, path));
    assert_int_equal(symlink(target, fixture_path(&fx, path)), 0);
}

/* RUN_FILE: status, and the descriptor's first bytes in `text`. */
static enum answer_status
read_file(uint64_t ref, enum run_file file, char text[64])
{
    struct request_run_file q = {.epoch = seen.epoch, .ref = ref, .file = file};
    const struct answer_run_file *a = fixture_ask(&fx, MESSAGE_RUN_FILE, &q, -1);
    ssize_t n;

    assert_non_null(a);
    assert_int_equal(fx.packet.n_fds, a->status == ANSWER_OK);
    if (a->status == ANSWER_OK) {
        n = read(fx.packet.fds[0], text, 63);
        text[n > 0 ? n : 0] = '\0';
        assert_int_equal(fcntl(fx.packet.fds[0], F_GETFL) & O_ACCMODE, O_RDONLY);
    }
    return (enum answer_status)a->status;
}

static uint64_t
locate(const char *task, const char *model, const char *agent, const char *run_id,
       enum answer_status expected)
{
    struct request_run_locate q = {0};
    const struct answer_run_locate *a;

    strcpy(q.task, task);
    strcpy(q.model, model);
    strcpy(q.agent, agent);
    strcpy(q.run_id, run_id);
    a = fixture_ask(&fx, MESSAGE_RUN_LOCATE, &q, -1);
    assert_non_null(a);
    assert_int_equal(a->status, expected);
    return a->ref;
}

static void
a_root_may_appear_later(void **state)
{
    (void)state;
    scan_all();
    assert_int_equal(seen.n_runs, 0);
    put_summary("task/model/agent/r1", "one");
    walk_again();
    assert_int_equal(seen.n_runs, 1);
    assert_string_equal(run_of("task/model/agent/r1")->summary, "one");
}

static void
depth_and_names_are_free(void **state)
{
    (void)state;
    put_summary("task/vendor/deep/model/agent/r2", "two");
    put_summary("task/m\xc3\xb6\xff\n\"/agent/r3", "three");
    put_summary("short", "four");
    walk_again();
    assert_int_equal(seen.n_runs, 4);
    assert_string_equal(run_of("task/vendor/deep/model/agent/r2")->summary, "two");
    assert_string_equal(run_of("task/m\xc3\xb6\xff\n\"/agent/r3")->summary, "three");
    assert_non_null(run_of("short"));
}

static void
nothing_below_a_summary_is_seen(void **state)
{
    (void)state;
    put_summary("task/model/agent/r1/archive/fake", "fake");
    walk_again();
    assert_null(run_of("task/model/agent/r1/archive/fake"));
    /* A folder of that name is no summary. */
    fixture_put(&fx, "results/odd/summary.json/inner/summary.json", "inner");
    walk_again();
    assert_non_null(run_of("odd/summary.json/inner"));
}

/* A run that goes on: its result.json is there from the start, its archive is the agent's. */
static void
an_agent_gets_nothing_listed(void **state)
{
    (void)state;
    put_summary("task/model/agent/going/archive/x", "forged");
    put_summary("task/model/agent/going/plugins/deep/x", "copied");
    walk_again(); /* somebody's folder of runs, as far as can be seen */
    assert_non_null(run_of("task/model/agent/going/archive/x"));
    fixture_put(&fx, "results/task/model/agent/going/result.json", "");
    walk_again();
    assert_null(run_of("task/model/agent/going/archive/x"));
    assert_null(run_of("task/model/agent/going/plugins/deep/x"));
    age("results/task/model/agent/going");
    walk_again(); /* remembers the folder: what is below it is only looked after */
    put_summary("task/model/agent/going/archive", "forged");
    put_summary("task/model/agent/going/archive/y", "forged");
    walk_again();
    assert_null(run_of("task/model/agent/going/archive"));
    assert_null(run_of("task/model/agent/going/archive/y"));
    put_summary("task/model/agent/going", "over");
    walk_again();
    assert_string_equal(run_of("task/model/agent/going")->summary, "over");
}

/* Folders of that name, and what older releases wrote one level up, hide nobody's runs. */
static void
other_folders_are_walked_into(void **state)
{
    (void)state;
    put_summary("archive/batch/run", "kept");
    fixture_put(&fx, "results/result.json", "");
    fixture_put(&fx, "results/task/model/older/result.json", "{}");
    fixture_put(&fx, "results/task/model/older/going/result.json", "");
    put_summary("task/model/older/run", "newer");
    put_summary("task/model/older/archive", "forged");
    put_summary("task/model/older/archive/x", "forged");
    walk_again();
    assert_non_null(run_of("archive/batch/run"));
    assert_non_null(run_of("task/model/older/run"));
    assert_null(run_of("task/model/older/archive"));
    assert_null(run_of("task/model/older/archive/x"));
    age("results/task/model/older");
    walk_again();
    put_summary("task/model/older/going", "over");
    walk_again();
    assert_string_equal(run_of("task/model/older/going")->summary, "over");
}

static void
the_root_itself_is_no_run(void **state)
{
    (void)state;
    fixture_put(&fx, "results/summary.json", "root");
    walk_again();
    assert_null(run_of(""));
    assert_non_null(run_of("task/model/agent/r1"));
}

static void
links_are_not_followed(void **state)
{
    unsigned n_before = seen.n_runs;

    (void)state;
    fixture_put(&fx, "outside/run/summary.json", "outside");
    put_link("results/task/model/agent/latest", "r1");
    put_link("results/task/link", "../../outside");
    put_link("results/link", fixture_path(&fx, "outside"));
    put_link("results/task/model/linked/summary.json", "../../../../outside/run/summary.json");
    walk_again();
    assert_int_equal(seen.n_runs, n_before);
}

static void
odd_summaries_are_dropped(void **state)
{
    unsigned n_before = seen.n_runs;
    static char large[LIMIT_SUMMARY + 2];
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    fixture_put(&fx, "results/fifo/x", "");
    assert_int_equal(mkfifo(fixture_path(&fx, "results/fifo/summary.json"), 0644), 0);
    fixture_put(&fx, "results/sock/x", "");
    strcpy(addr.sun_path, fixture_path(&fx, "results/sock/summary.json"));
    assert_int_equal(bind(s, (struct sockaddr *)&addr, sizeof addr), 0);
    close(s);
    memset(large, 'x', LIMIT_SUMMARY + 1);
    put_summary("toolarge", large);
    large[LIMIT_SUMMARY] = '\0';
    put_summary("justfits", large);
    put_summary("empty", "");
    walk_again();
    assert_int_equal(seen.n_runs, n_before + 2);
    assert_non_null(run_of("justfits"));
    assert_non_null(run_of("empty"));
    unlink(fixture_path(&fx, "results/justfits/summary.json"));
    unlink(fixture_path(&fx, "results/toolarge/summary.json"));
}

static void
only_changes_are_told(void **state)
{
    unsigned n_times;

    (void)state;
    age("results/task/model/agent/r1/summary.json");
    walk_again();
    n_times = run_of("short")->n_times;
    put_summary("short", "changed, and longer");
    walk_again();
    assert_int_equal(run_of("short")->n_times, n_times + 1);
    assert_string_equal(run_of("short")->summary, "changed, and longer");
    assert_int_equal(seen.n_records, 1);
}

/* Same size, replaced by rename: the inode tells. */
static void
a_replaced_summary_is_told(void **state)
{
    char fresh[4096];

    (void)state;
    fixture_put(&fx, "results/short/.new", "CHANGED, AND LONGER");
    strcpy(fresh, fixture_path(&fx, "results/short/.new"));
    assert_int_equal(rename(fresh, fixture_path(&fx, "results/short/summary.json")), 0);
    walk_again();
    assert_string_equal(run_of("short")->summary, "CHANGED, AND LONGER");
}

static void
what_vanishes_is_told(void **state)
{
    (void)state;
    unlink(fixture_path(&fx, "results/short/summary.json"));
    walk_again();
    assert_null(run_of("short"));
    assert_int_equal(seen.n_gone, 1);
    walk_again();
    assert_int_equal(seen.n_records, 0);
    put_summary("short", "back");
    walk_again();
    assert_string_equal(run_of("short")->summary, "back");
}

static void
a_whole_tree_that_vanishes_is_told(void **state)
{
    char away[4096];

    (void)state;
    assert_non_null(run_of("task/vendor/deep/model/agent/r2"));
    strcpy(away, fixture_path(&fx, "away"));
    assert_int_equal(rename(fixture_path(&fx, "results/task/vendor"), away), 0);
    walk_again();
    assert_null(run_of("task/vendor/deep/model/agent/r2"));
    assert_int_equal(rename(away, fixture_path(&fx, "results/task/vendor")), 0);
    walk_again();
    assert_non_null(run_of("task/vendor/deep/model/agent/r2"));
}

/* A folder swapped for a link to a folder with a summary. */
static void
a_swapped_folder_vanishes(void **state)
{
    char away[4096];

    (void)state;
    strcpy(away, fixture_path(&fx, "away2"));
    assert_int_equal(rename(fixture_path(&fx, "results/task/vendor"), away), 0);
    put_link("results/task/vendor", away);
    walk_again();
    assert_null(run_of("task/vendor/deep/model/agent/r2"));
    unlink(fixture_path(&fx, "results/task/vendor"));
    assert_int_equal(rename(away, fixture_path(&fx, "results/task/vendor")), 0);
    walk_again();
    assert_non_null(run_of("task/vendor/deep/model/agent/r2"));
}

static void
a_root_that_vanishes_takes_its_runs(void **state)
{
    unsigned n_before = seen.n_runs;
    char away[4096];

    (void)state;
    strcpy(away, fixture_path(&fx, "away3"));
    assert_int_equal(rename(fixture_path(&fx, "results"), away), 0);
    walk_again();
    assert_int_equal(seen.n_runs, 0);
    assert_int_equal(rename(away, fixture_path(&fx, "results")), 0);
    walk_again();
    assert_int_equal(seen.n_runs, n_before);
}

/* A worker that starts later hears of what is there, and of all of it. */
static void
a_new_worker_gets_everything(void **state)
{
    unsigned n_before = seen.n_runs;

    (void)state;
    fixture_new_worker(&fx, true);
    memset(&seen, 0, sizeof seen);
    scan_all();
    assert_int_equal(seen.n_runs, n_before);
}

static void
another_epoch_gets_everything(void **state)
{
    unsigned n_before = seen.n_runs;

    (void)state;
    seen.epoch ^= 1;
    seen.n_renewals = 0;
    scan_all();
    assert_int_equal(seen.n_renewals, 1);
    assert_int_equal(seen.n_runs, n_before);
}

/* --- files ------------------------------------------------------------------------------ */

static void
files_are_opened(void **state)
{
    static const struct {
        enum run_file file;
        const char *path;
    } files[] = {
        {RUN_FILE_SUMMARY, "summary.json"},       {RUN_FILE_RESULT, "result.json"},
        {RUN_FILE_FINAL_PATCH, "final.patch"},    {RUN_FILE_REFERENCE_PATCH, "reference.patch"},
        {RUN_FILE_REVIEW, "post-review.txt"},     {RUN_FILE_DIALOG, "archive/dialog.jsonl"},
        {RUN_FILE_AGENT_LOG, "agent.log"},        {RUN_FILE_EVALUATOR_LOG, "evaluator.log"},
    };
    uint64_t ref = run_of("task/model/agent/r1")->ref;

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[200], text[64];

        snprintf(path, sizeof path, "results/task/model/agent/r1/%s", files[i].path);
        unlink(fixture_path(&fx, path));
        assert_int_equal(read_file(ref, files[i].file, text), ANSWER_NOT_FOUND);
        fixture_put(&fx, path, files[i].path);
        assert_int_equal(read_file(ref, files[i].file, text), ANSWER_OK);
        assert_string_equal(text, files[i].path);
    }
}

static void
odd_files_are_missing(void **state)
{
    uint64_t ref = run_of("task/model/agent/r1")->ref;
    const char *log = "results/task/model/agent/r1/agent.log";
    const char *archive = "results/task/model/agent/r1/archive";
    char text[64], away[4096];
    int fd;

    (void)state;
    unlink(fixture_path(&fx, log));
    put_link(log, "/proc/version");
    assert_int_equal(read_file(ref, RUN_FILE_AGENT_LOG, text), ANSWER_NOT_FOUND);
    put_link(log, "evaluator.log");
    assert_int_equal(read_file(ref, RUN_FILE_AGENT_LOG, text), ANSWER_NOT_FOUND);
    unlink(fixture_path(&fx, log));
    assert_int_equal(mkfifo(fixture_path(&fx, log), 0644), 0);
    assert_int_equal(read_file(ref, RUN_FILE_AGENT_LOG, text), ANSWER_NOT_FOUND);
    unlink(fixture_path(&fx, log));
    fixture_put(&fx, log, NULL);
    assert_int_equal(read_file(ref, RUN_FILE_AGENT_LOG, text), ANSWER_NOT_FOUND);
    rmdir(fixture_path(&fx, log));
    fd = open(fixture_path(&fx, log), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(fd, LIMIT_RUN_FILE), 0);
    assert_int_equal(read_file(ref, RUN_FILE_AGENT_LOG, text), ANSWER_OK);
    assert_int_equal(ftruncate(fd, LIMIT_RUN_FILE + 1), 0);
    assert_int_equal(read_file(ref, RUN_FILE_AGENT_LOG, text), ANSWER_TOO_LARGE);
    close(fd);
    /* A link in the middle of the way. */
    strcpy(away, fixture_path(&fx, "results/task/model/agent/r1/archive2"));
    assert_int_equal(rename(fixture_path(&fx, archive), away), 0);
    put_link(archive, "archive2");
    assert_int_equal(read_file(ref, RUN_FILE_DIALOG, text), ANSWER_NOT_FOUND);
    unlink(fixture_path(&fx, archive));
    assert_int_equal(rename(away, fixture_path(&fx, archive)), 0);
    assert_int_equal(read_file(ref, RUN_FILE_DIALOG, text), ANSWER_OK);
}

static void
a_device_is_missing(void **state)
{
    uint64_t ref = run_of("task/model/agent/r1")->ref;
    const char *path = "results/task/model/agent/r1/post-review.txt";
    char text[64];

    (void)state;
    unlink(fixture_path(&fx, path));
    if (mknod(fixture_path(&fx, path), S_IFCHR | 0644, 0x103) != 0)
        skip(); /* not root */
    assert_int_equal(read_file(ref, RUN_FILE_REVIEW, text), ANSWER_NOT_FOUND);
}

static void
references_are_the_brokers(void **state)
{
    char text[64];
    uint64_t ref = run_of("task/model/agent/r1")->ref;

    (void)state;
    assert_int_equal(read_file(0, RUN_FILE_SUMMARY, text), ANSWER_NOT_FOUND);
    assert_int_equal(read_file(1, RUN_FILE_SUMMARY, text), ANSWER_NOT_FOUND); /* the root */
    assert_int_equal(read_file(1000000, RUN_FILE_SUMMARY, text), ANSWER_NOT_FOUND);
    assert_int_equal(read_file(ref | 1ull << 32, RUN_FILE_SUMMARY, text), ANSWER_NOT_FOUND);
    seen.epoch++; /* not "there is no such file": the asker's table is an old one */
    assert_int_equal(read_file(ref, RUN_FILE_SUMMARY, text), ANSWER_BUSY);
    seen.epoch--;
    assert_int_equal(read_file(ref, RUN_FILE_SUMMARY, text), ANSWER_OK);
}

static void
live_runs_are_located(void **state)
{
    char text[64];
    uint64_t ref;

    (void)state;
    locate("task", "model", "agent", "live", ANSWER_NOT_FOUND);
    fixture_put(&fx, "results/task/model/agent/live/agent.log", "alive");
    ref = locate("task", "model", "agent", "live", ANSWER_OK);
    assert_int_equal(read_file(ref, RUN_FILE_AGENT_LOG, text), ANSWER_OK);
    assert_string_equal(text, "alive");
    walk_again();
    assert_null(run_of("task/model/agent/live"));
    put_summary("task/model/agent/live", "over");
    walk_again();
    assert_int_equal(run_of("task/model/agent/live")->ref, ref);
    locate("task", "link", "agent", "live", ANSWER_NOT_FOUND);
    fixture_put(&fx, "outside/model/agent/stranger/agent.log", "no");
    locate("link", "model", "agent", "stranger", ANSWER_NOT_FOUND);
    assert_int_equal(locate("task", "vendor/deep/model", "agent", "r2", ANSWER_OK),
                     run_of("task/vendor/deep/model/agent/r2")->ref);
}

/* More than one batch, and more than one slice. */
/* Its listing is made anew at once; a run must not be in neither of the two. */
static void
what_a_stopped_run_wrote_is_told(void **state)
{
    struct request_run q = {.run_id = "r1"};
    const struct answer_run *a;
    unsigned n_before;

    (void)state;
    walk_again();
    n_before = seen.n_runs;
    put_summary("task/stopped/agent/run", "{}");
    a = fixture_ask(&fx, MESSAGE_RUN_STOP, &q, -1);
    assert_non_null(a);
    assert_int_equal(a->status, ANSWER_OK);
    scan_all();
    assert_int_equal(seen.n_runs, n_before + 1);
}

static void
many_runs_come_in_batches(void **state)
{
    static char text[8192];
    unsigned n_before = seen.n_runs;

    (void)state;
    memset(text, 'y', sizeof text - 1);
    for (unsigned i = 0; i < 1500; i++) {
        char dir[64];

        snprintf(dir, sizeof dir, "many/m%u/agent/run-%u", i % 7, i);
        put_summary(dir, text);
    }
    walk_again();
    assert_int_equal(seen.n_runs, n_before + 1500);
    assert_true(seen.n_answers >= 3);
    fixture_new_worker(&fx, true);
    memset(&seen, 0, sizeof seen);
    scan_all();
    assert_int_equal(seen.n_runs, n_before + 1500);
    assert_int_equal(seen.n_records - seen.n_gone, seen.n_runs);
}

static void
what_is_too_deep_is_told(void **state)
{
    char dir[256] = "deep", away[4096];

    (void)state;
    assert_int_equal(seen.cut, SCAN_CUT_NONE);
    for (unsigned i = 1; i < LIMIT_SCAN_DEPTH; i++)
        strcat(dir, "/d");
    put_summary(dir, "the last");
    walk_again();
    assert_non_null(run_of(dir));
    assert_int_equal(seen.cut, SCAN_CUT_NONE);
    strcat(dir, "x/d");
    put_summary(dir, "one further");
    walk_again();
    assert_null(run_of(dir));
    assert_int_equal(seen.cut, SCAN_CUT_DEPTH);
    scan_all(); /* without another walk */
    assert_int_equal(seen.cut, SCAN_CUT_DEPTH);
    strcpy(away, fixture_path(&fx, "away4"));
    assert_int_equal(rename(fixture_path(&fx, "results/deep"), away), 0);
    walk_again();
    assert_int_equal(seen.cut, SCAN_CUT_NONE);
}

/* One root has far more than its half of the table: the other has the rest of its own. */
static void
one_root_leaves_the_others_room(void **state)
{
    struct run_dirs *rd = fx.b.run_dirs;

    (void)state;
    walk_again();
    rd->max = rd->n_dirs + 8;
    put_summary("task/model/agent/late", "late");
    walk_again();
    assert_null(run_of("task/model/agent/late"));
    assert_int_equal(seen.cut, SCAN_CUT_DIRECTORIES);
    fixture_put(&fx, "results2/other/run/summary.json", "other");
    walk_again();
    assert_non_null(run_of("other/run"));
    assert_int_equal(seen.cut, SCAN_CUT_DIRECTORIES);
    rd->max = LIMIT_SCAN_NODES;
    walk_again();
    assert_non_null(run_of("task/model/agent/late"));
    assert_int_equal(seen.cut, SCAN_CUT_NONE);
}

/* Full, and mostly of what has vanished: it makes room by itself. */
static void
a_full_table_starts_anew(void **state)
{
    struct run_dirs *rd = fx.b.run_dirs;
    char away[4096];

    (void)state;
    strcpy(away, fixture_path(&fx, "away5"));
    assert_int_equal(rename(fixture_path(&fx, "results/many"), away), 0);
    walk_again();
    seen.n_renewals = 0;
    rd->max = rd->n_dirs;
    put_summary("task/model/agent/room", "room");
    walk_again();
    assert_int_equal(seen.cut, SCAN_CUT_DIRECTORIES);
    for (unsigned i = 0; i < 5 && run_of("task/model/agent/room") == NULL; i++)
        walk_again(); /* a request that is there first is answered from the old one */
    assert_non_null(run_of("task/model/agent/room"));
    assert_int_equal(seen.n_renewals, 1);
    assert_int_equal(seen.cut, SCAN_CUT_NONE);
    rd->max = LIMIT_SCAN_NODES;
    assert_int_equal(rename(away, fixture_path(&fx, "results/many")), 0);
    walk_again();
}

static void
the_table_can_start_anew(void **state)
{
    unsigned n_before = seen.n_runs;

    (void)state;
    seen.n_renewals = 0;
    results_scan_renew(fx.b.results_scan);
    scan_all();
    assert_int_equal(seen.n_renewals, 1);
    assert_int_equal(seen.n_runs, n_before);
}

static int
setup(void **state)
{
    (void)state;
    char *roots = fx.b.config.roots;

    fixture_prepare(&fx, script);
    stpcpy(stpcpy(roots + strlen(roots) + 1, fx.dir), "/results2");
    fixture_start(&fx, true);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    fixture_stop(&fx);
    return 0;
}

int
main(void)
{
    /* In this order: one tree grows through all of them. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_root_may_appear_later),
        cmocka_unit_test(depth_and_names_are_free),
        cmocka_unit_test(nothing_below_a_summary_is_seen),
        cmocka_unit_test(an_agent_gets_nothing_listed),
        cmocka_unit_test(other_folders_are_walked_into),
        cmocka_unit_test(the_root_itself_is_no_run),
        cmocka_unit_test(links_are_not_followed),
        cmocka_unit_test(odd_summaries_are_dropped),
        cmocka_unit_test(only_changes_are_told),
        cmocka_unit_test(a_replaced_summary_is_told),
        cmocka_unit_test(what_vanishes_is_told),
        cmocka_unit_test(a_whole_tree_that_vanishes_is_told),
        cmocka_unit_test(a_swapped_folder_vanishes),
        cmocka_unit_test(a_root_that_vanishes_takes_its_runs),
        cmocka_unit_test(a_new_worker_gets_everything),
        cmocka_unit_test(another_epoch_gets_everything),
        cmocka_unit_test(files_are_opened),
        cmocka_unit_test(odd_files_are_missing),
        cmocka_unit_test(a_device_is_missing),
        cmocka_unit_test(references_are_the_brokers),
        cmocka_unit_test(live_runs_are_located),
        cmocka_unit_test(what_a_stopped_run_wrote_is_told),
        cmocka_unit_test(many_runs_come_in_batches),
        cmocka_unit_test(what_is_too_deep_is_told),
        cmocka_unit_test(one_root_leaves_the_others_room),
        cmocka_unit_test(a_full_table_starts_anew),
        cmocka_unit_test(the_table_can_start_anew),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
