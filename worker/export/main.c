/*
 * ssebench-webui-export: finished runs as a site that any static host serves (contract 10.9).
 * Started by the master for `ssebench-webui export`; no server is needed or asked.
 * Distrusts: everything below the results directory. It opens its two folders, locks itself in
 * (fence.h: read beneath the one, write beneath the other, nothing else), and only then parses.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "common/json_write.h"
#include "worker/export/fence.h"
#include "worker/export/page_files.h"
#include "worker/export/results.h"
#include "worker/export/run_document.h"
#include "worker/export/site.h"
#include "worker/iso_time.h"
#include "worker/run_render.h"
#include "worker/runs_results.h"

static const char usage[] =
    "Usage: ssebench-webui export --results DIR --out DIR\n"
    "\n"
    "Write the finished runs below a results directory as a site that any static host\n"
    "serves: the page, data/health.json, data/runs.json and data/runs/ID.json.\n"
    "\n"
    "  --results DIR  where the runs are, for example results\n"
    "  --out DIR      made if it is not there; if not empty, it must be an earlier export,\n"
    "                 which is replaced\n";

struct export {
    const char *results_path, *out_path;
    int results_fd, out_fd, data_fd, runs_fd;
    struct results results;
    struct results_table *table;
    const struct finished_run *const *runs; /* of the table */
    size_t n_runs;
};

static _Noreturn void
fail(const char *what, const char *which, int error)
{
    fprintf(stderr, "[Export] %s %s: %s.\n", what, which, strerror(-error));
    exit(1);
}

static _Noreturn void
refuse(const char *why)
{
    fprintf(stderr, "[Export] %s\n\n%s", why, usage);
    exit(1);
}

static void
read_arguments(int argc, char **argv, struct export *e)
{
    static const struct option options[] = {
        {"results", required_argument, NULL, 'r'},
        {"out", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    int found;

    opterr = 0;
    while ((found = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (found) {
        case 'r':
            e->results_path = optarg;
            break;
        case 'o':
            e->out_path = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            refuse("Unknown option, or one without its directory.");
        }
    }
    if (optind < argc)
        refuse("There is nothing to give but options.");
    if (e->results_path == NULL || *e->results_path == '\0')
        refuse("Say where the runs are: --results DIR.");
    if (e->out_path == NULL || *e->out_path == '\0')
        refuse("Say where to write: --out DIR.");
}

/* The marker comes first: an export that is cut off can be begun anew. */
static void
open_folders(struct export *e)
{
    static const char marker[] =
        "Written by `ssebench-webui export`, which may replace all of it.\n";
    int error;

    e->results_fd = open(e->results_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (e->results_fd < 0)
        fail("Cannot read", e->results_path, -errno);
    e->out_fd = site_open(e->out_path);
    if (e->out_fd == -ENOTEMPTY) {
        fprintf(stderr,
                "[Export] %s is not empty and no earlier export (it has no %s): nothing was "
                "written.\n",
                e->out_path, SITE_MARKER);
        exit(1);
    }
    if (e->out_fd < 0)
        fail("Cannot write to", e->out_path, e->out_fd);
    error = site_write(e->out_fd, SITE_MARKER, marker, sizeof marker - 1);
    if (error != 0)
        fail("Cannot write to", e->out_path, error);
}

static void
lock_in(const struct export *e)
{
    bool landlock = false;
    int error;

    tzset(); /* so that no later call opens /etc/localtime */
    error = fence_up(e->results_fd, e->out_fd, &landlock);
    if (error != 0)
        fail("Cannot confine", "the export", error);
    if (!landlock)
        fprintf(stderr, "[Export] Missing fence: no Landlock in this kernel, so the paths "
                        "this program can open are not limited.\n");
}

static void
make_folders(struct export *e)
{
    e->data_fd = site_folder(e->out_fd, "data");
    e->runs_fd = e->data_fd < 0 ? e->data_fd : site_folder(e->data_fd, "runs");
    if (e->runs_fd < 0)
        fail("Cannot write to", e->out_path, e->runs_fd);
}

static void
read_runs(struct export *e)
{
    uint64_t key[2];
    int error;

    if (getrandom(key, sizeof key, 0) != sizeof key)
        fail("Cannot read", "random numbers", -EIO);
    e->table = results_table_new(key);
    error = e->table == NULL ? -ENOMEM : results_read(&e->results, e->results_fd, e->table);
    if (error != 0)
        fail("Cannot read", e->results_path, error);
    if (e->results.n_skipped > 0)
        fprintf(stderr, "[Export] %zu directories were left out: too many, or too deep.\n",
                e->results.n_skipped);
    e->runs = results_table_sorted(e->table, &e->n_runs);
    if (e->runs == NULL && e->results.n_dirs > 0 && e->n_runs > 0)
        fail("Cannot sort", "the runs", -ENOMEM);
}

static void
write_run(const struct export *e, const struct finished_run *run)
{
    char name[SITE_NAME];
    struct site_file f;
    int error, unread;

    /* The ID is a file's name: policy/run_id.h leaves no other character in it. */
    snprintf(name, sizeof name, "%s.json", run->run_id);
    site_file_begin(&f, e->runs_fd, name);
    unread = run_document_write(&e->results, run, &f);
    if (unread != 0 && f.error == 0)
        f.error = unread;
    error = site_file_end(&f);
    if (error != 0)
        fail(unread != 0 ? "Cannot read the files of" : "Cannot write the run", run->run_id, error);
}

static void
write_list(const struct export *e)
{
    struct site_file f;
    struct json_writer w;
    int error;

    site_file_begin(&f, e->data_fd, "runs.json");
    buf_add_str(&f.out, "{\"containers\":[");
    for (size_t i = 0; i < e->n_runs; i++) {
        const struct run_row row = {.done = e->runs[i]};

        if (i > 0)
            buf_add_str(&f.out, ",\n");
        json_begin(&w, &f.out);
        run_render(&w, &row);
        site_file_flush(&f, false);
    }
    buf_add_str(&f.out, "]");
    if (e->results.n_skipped > 0)
        buf_add_str(&f.out, ",\"resultsCut\":\"Some directories were left out when this site "
                            "was made: too many, or too deep\"");
    buf_add_str(&f.out, "}\n");
    error = site_file_end(&f);
    if (error != 0)
        fail("Cannot write", "data/runs.json", error);
}

static void
write_health(const struct export *e)
{
    char now[ISO_TIME_SIZE];
    struct site_file f;
    int error;

    iso_time_format(iso_time_now_ms(), now);
    site_file_begin(&f, e->data_fd, "health.json");
    buf_add_format(&f.out,
                   "{\"status\":\"ok\",\"version\":\"%s\",\"runner\":true,\"backend\":\"static\","
                   "\"terminal\":false,\"assistant\":false,\"hosted\":true,\"timestamp\":\"%s\"}\n",
                   SSEBENCH_WEBUI_VERSION, now);
    error = site_file_end(&f);
    if (error != 0)
        fail("Cannot write", "data/health.json", error);
}

static bool
is_exported(void *ctx, const char *name)
{
    const struct export *e = ctx;
    size_t len = strlen(name);
    char id[SITE_NAME];

    if (len < 6 || len >= sizeof id || strcmp(name + len - 5, ".json") != 0)
        return false;
    snprintf(id, sizeof id, "%.*s", (int)len - 5, name);
    return results_table_find(e->table, id) != NULL;
}

int
main(int argc, char **argv)
{
    struct export e = {0};
    int error;

    read_arguments(argc, argv, &e);
    open_folders(&e);
    lock_in(&e);
    make_folders(&e);
    read_runs(&e);
    for (size_t i = 0; i < e.n_runs; i++)
        write_run(&e, e.runs[i]);
    write_list(&e);
    write_health(&e);
    error = page_files_write(e.out_fd);
    if (error == 0) /* runs that an earlier export had; the list no longer names them */
        error = site_sweep(e.runs_fd, is_exported, &e);
    if (error != 0)
        fail("Cannot write to", e.out_path, error);
    printf("[Export] %zu runs written to %s\n", e.n_runs, e.out_path);
    results_table_free(e.table);
    results_done(&e.results);
    return 0;
}
