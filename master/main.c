/* The master: reads the settings, binds, starts the broker and the workers, supervises.
 * It parses nothing that came from outside and holds no client connection. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/scoreboard.h"
#include "master/account.h"
#include "master/export.h"
#include "master/handover.h"
#include "master/listener.h"
#include "master/notify.h"
#include "master/settings.h"
#include "master/status_command.h"
#include "master/status_file.h"
#include "master/supervise.h"
#include "master/takeover.h"
#include "master/token_command.h"

static struct settings settings;
static struct account account;
static struct listeners listeners;
static struct handover handover;
static struct takeover takeover;
static char program[HANDOFF_PATH];
static char error[SETTINGS_ERROR_SIZE];

static const char *
lookup_environment(const char *name)
{
    return getenv(name);
}

static _Noreturn void
refuse(void)
{
    fprintf(stderr, "[Server] %s\n", error);
    exit(1);
}

/* The token passes through our memory once: no core file, no debugger of the same
 * account. No new privileges, for all that is started from here too: the broker needs
 * that for its own filter, so a command that wants `sudo` would not work behind it in
 * any case. */
static void
drop_what_we_can(void)
{
    struct rlimit core;

    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (getrlimit(RLIMIT_CORE, &core) == 0) {
        core.rlim_cur =
            0; /* the hard one stays: commands of the broker may want their own */
        setrlimit(RLIMIT_CORE, &core);
    }
}

/* Started with a standard descriptor closed, we would get a socket as "stderr" and
 * write the log into it. */
static void
fill_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

static bool
is_setting(const char *name, size_t len)
{
    const struct setting *row;

    for (size_t i = 0; (row = settings_row(i)) != NULL; i++)
        if (strlen(row->name) == len && memcmp(row->name, name, len) == 0)
            return true;
    return false;
}

/* A misspelled SSEBENCH_WEBUI_HOSTED must not leave a server writable. What Kubernetes sets for
 * a service of our name is not meant for us. */
static void
refuse_unknown(void)
{
    static const char prefix[] = "SSEBENCH_WEBUI_";

    for (char **e = environ; *e != NULL; e++) {
        size_t len = strcspn(*e, "=");
        const char *rest = *e + sizeof prefix - 1;

        if (strncmp(*e, prefix, sizeof prefix - 1) != 0 || is_setting(*e, len) ||
            strncmp(rest, "SERVICE_", 8) == 0 || strncmp(rest, "PORT", 4) == 0)
            continue;
        settings_refuse(error,
                        "Unknown setting %.*s. Unset it, or correct its name: "
                        "ssebench-webui --help lists them.",
                        (int)(len < 80 ? len : 80), *e);
        refuse();
    }
}

static void
read_settings(void)
{
    refuse_unknown();
    if (settings_read(lookup_environment, &settings, error) != 0 ||
        account_choose(&settings, &account, error) != 0)
        refuse();
    settings.kept_token = takeover.kept_token;
    settings.tokens_given |= takeover.tokens_there != 0;
}

/* What the program before this one left: `text` is the number of its descriptor. */
static void
read_takeover(const char *text)
{
    int fd = atoi(text);
    int status = fd > STDERR_FILENO ? takeover_read(fd, &takeover) : -EBADF;

    if (status != 0) {
        settings_refuse(error, "Nothing to take over, or of another version: %s. Restart "
                               "the server.", strerror(-status));
        refuse();
    }
}

static int
run_check(void)
{
    read_settings();
    if (listener_check(&settings, error) != 0 ||
        settings_check_state_dir(&settings, account.own_uid, error) != 0)
        refuse();
    settings_print_values(stdout, &settings);
    fflush(stdout);
    settings_print_doubts(stderr, &settings);
    return 0;
}

/* Before the exchange: could this program go on with those settings and that state? */
static int
run_check_takeover(const char *text)
{
    char path[HANDOFF_PATH];

    read_takeover(text);
    if (handover_find_program("worker", "ssebench-webui-worker", path) != 0 ||
        handover_find_program("broker", "ssebench-webui-broker", path) != 0) {
        settings_refuse(error, "The programs of the server are not where they belong.");
        refuse();
    }
    run_check();
    if (takeover.tokens_there && !settings.tokens_there) {
        settings_refuse(error, "%s is gone. Revoke tokens with: ssebench-webui token revoke NAME",
                        settings_show(settings.tokens_file));
        refuse();
    }
    return 0;
}

static int
run_option(const char *option)
{
    if (strcmp(option, "--version") == 0)
        printf("ssebench-webui %s\n", handover_version());
    else if (strcmp(option, "--help") == 0)
        settings_print_help(stdout);
    else if (strcmp(option, "--settings-markdown") == 0)
        settings_print_markdown(stdout);
    else if (strcmp(option, "--settings-man") == 0)
        settings_print_man(stdout);
    else if (strcmp(option, "--check") == 0)
        return run_check();
    else {
        fprintf(stderr,
                "[Server] Unknown option %s. All settings come from the environment; "
                "ssebench-webui --help lists them.\n",
                option);
        return 1;
    }
    return 0;
}

static void
log_start(void)
{
    log_event(LOG_LEVEL_INFO, "started", "version=%s workers=%u backend=%s",
              handover_version(), settings.workers,
              settings.backend[0] != '\0' ? settings.backend : "docker");
    if (handover.worker.has_token && handover.worker.n_tokens == 0)
        log_event(LOG_LEVEL_WARNING, "no-token", "file=%s effect=\"nobody gets in\"",
                  log_quote(settings.tokens_file, strlen(settings.tokens_file)));
    if (settings.catalog_deprecated)
        log_event(LOG_LEVEL_WARNING, "deprecated",
                  "setting=SSEBENCH_CATALOG_URL use=SSEBENCH_CATALOG");
}

/* Where the next program will lie: as we were called, or, without a path, as we were found. A
 * link that a package moves to its new version is followed then, not now. */
static void
find_program(const char *called)
{
    ssize_t n = -1;

    if (called[0] == '/' && strlen(called) < sizeof(program))
        strcpy(program, called);
    else
        n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (n > 0)
        program[n] = '\0';
}

static void
open_listeners(bool taking_over)
{
    int status = taking_over ? takeover_listeners(&takeover, &settings, &listeners, error)
                             : listener_open(&settings, &listeners, error);

    if (status != 0)
        refuse();
}

/* For `status`. Its signal must not end us before we listen to it (supervise.c). */
static void
prepare_status(void)
{
    struct status status = {&settings, &handover, &listeners, (uint64_t)time(NULL)};
    int board = fcntl(handover.scoreboard, F_DUPFD_CLOEXEC, 0);

    if (board < 0 || scoreboard_map(board, settings.workers + 1, UINT32_MAX) != 0)
        log_event(LOG_LEVEL_WARNING, "no-counters", "error=%s", strerrorname_np(errno));
    signal(SIGUSR1, SIG_IGN);
    status_file_open(&status, account.own_uid, account.own_gid);
}

int
main(int argc, char **argv)
{
    bool taking_over = argc == 3 && strcmp(argv[1], "--take-over") == 0;

    fill_standard_fds();
    find_program(argc > 0 ? argv[0] : "");
    drop_what_we_can();
    if (argc > 1 && strcmp(argv[1], "export") == 0)
        return export_exec(argv + 1);
    if (argc > 1 && strcmp(argv[1], "token") == 0)
        return token_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "status") == 0)
        return status_command(argc - 1, argv + 1);
    if (argc == 3 && strcmp(argv[1], "--check-take-over") == 0)
        return run_check_takeover(argv[2]);
    if (taking_over)
        read_takeover(argv[2]);
    else if (argc > 1)
        return run_option(argv[1]);
#ifdef SSEBENCH_PRISONER
    if (getenv("SSEBENCH_PRISONER") == NULL) {
        fprintf(stderr, "[Server] Built with -Dprisoner=true, for tests/attack only.\n");
        return 1;
    }
#endif
    read_settings();
    log_init("master", -1, (enum log_level)settings.log_level);
    if (settings_make_state_dir(&settings, account.own_uid, account.own_gid, error) !=
        0)
        refuse();
    open_listeners(taking_over);
    if (handover_new(&settings, &account, &listeners, &handover, error) != 0)
        refuse();
    if (takeover.kept_token)
        handover_keep_token(&handover, takeover.token_proof);
    explicit_bzero(takeover.token_proof, sizeof(takeover.token_proof));
    notify_init(); /* after listener_open, which reads LISTEN_FDS */
    log_start();
    prepare_status();
    return supervise_run(&settings, &handover, &listeners, program,
                         taking_over ? &takeover : NULL);
}
