/*
 * The other end of a terminal: ending `docker exec` on this host leaves the shell in the
 * container. So a second call finds the session's leader when it starts, and another ends the
 * whole session (every job is a process group of its own) and looks whether it is gone.
 * Distrusts: the container. What it found it keeps inside, in a file of its own account; here
 * only exit statuses arrive, never a byte to be parsed (design R1).
 */
#include <stdlib.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/cli.h"
#include "broker/tty.h"
#include "common/log.h"

#define STATUS_LEFT 4 /* of the second script: something outlived SIGKILL */

/* f PID: parent, session, terminal, start time and state of a process, from the kernel.
 * has PID ENTRY: is that in its environment? lead TAG: find the leader that carries it: of
 * those that do it leads a session on a terminal, and its parent does not (so no tmux). */
#define READ_PROCESS                                                                      \
    "d=$HOME/.ssebench-webui-tty\n"                                                       \
    "f() { read -r l 2>/dev/null < /proc/$1/stat || return 1\n"                           \
    " set -- ${l##*) }; Z=$1 P=$2 S=$4 T=$5 B=${20}; }\n"                                 \
    "has() { tr '\\0' '\\n' 2>/dev/null < /proc/$1/environ | grep -qxF \"$2\"; }\n"      \
    "here() { has $1 \"HOME=$HOME\"; }\n"                                                \
    "lead() { for q in /proc/[0-9]*; do q=${q#/proc/}; f $q || continue\n"                \
    "  [ \"$S\" = \"$q\" ] && [ \"$T\" != 0 ] || continue; p=$P b=$B\n"                  \
    "  has $q \"" TTY_MARK "=$1\" && here $q || continue\n"                               \
    "  [ \"$p\" != 0 ] && has $p \"" TTY_MARK "=$1\" && here $p || { p=$q; return 0; }\n"  \
    " done; return 1; }\n"

/* $1: tag; $2: "marked", or nothing. Not marked, a candidate leads a session on a terminal,
 * began about when this script did, lives in this container, has a parent that does not, and
 * is nobody else's: mkdir decides between two scripts. Where several fit, the oldest: calls
 * come in order. */
static const char find_script[] = READ_PROCESS
    "umask 77; mkdir -p \"$d\" || exit 5\n"
    "f $$; now=$B; n=0\n"
    "while [ \"$2\" = marked ] && [ $n -lt 40 ]; do\n"
    " if lead $1; then echo \"$p $b\" > \"$d/$1\"; exit 0; fi\n"
    " n=$((n+1)); sleep 0.2\n"
    "done\n"
    "while [ $n -lt 40 ]; do\n"
    " best=\n"
    " for q in /proc/[0-9]*; do q=${q#/proc/}; f $q || continue\n"
    "  [ \"$S\" = \"$q\" ] && [ \"$T\" != 0 ] && [ \"$B\" -ge $((now-300)) ] || continue\n"
    "  p=$P b=$B; [ -e \"$d/$q.$b\" ] && continue\n"
    "  here $q || continue; [ \"$p\" != 0 ] && here $p && continue\n"
    "  if [ -z \"$best\" ] || [ \"$b\" -lt \"$first\" ]; then best=$q first=$b; fi\n"
    " done\n"
    " if [ -n \"$best\" ] && mkdir \"$d/$best.$first\" 2>/dev/null; then\n"
    "  echo \"$best $first\" > \"$d/$1\"; exit 0; fi\n"
    " n=$((n+1)); sleep 0.2\n"
    "done\n"
    "exit 3\n";

/* $1: tag, $2: "end", or "look": the program ended by itself, so its background jobs stay, as
 * after any shell, unless the leader is still there. */
static const char end_script[] = READ_PROCESS
    "read -r p b 2>/dev/null < \"$d/$1\" || { [ \"$2\" = end ] && lead $1; } || exit 0\n"
    "members() { m=; for q in /proc/[0-9]*; do q=${q#/proc/}\n"
    " f $q && [ \"$S\" = \"$p\" ] && [ \"$Z\" != Z ] && m=\"$m $q\"; done; [ -n \"$m\" ]; }\n"
    "clean() { rm -f \"$d/$1\"; rmdir \"$d/$p.$b\" \"$d\" 2>/dev/null; }\n"
    "if f $p; then [ \"$B\" = \"$b\" ] || { clean $1; exit 0; }\n"
    "elif [ \"$2\" = look ]; then clean $1; exit 0; fi\n"
    "n=0; while members && [ $n -lt 30 ]; do\n"
    " if [ $n = 0 ]; then kill -HUP $m; kill -CONT $m; fi 2>/dev/null\n"
    " [ $n -ge 10 ] && kill -KILL $m 2>/dev/null\n"
    " sleep 0.1; n=$((n+1)); done\n"
    "clean $1; members && exit 4\n"
    "exit 0\n";

static void
on_found(void *ctx, struct cli_result *result);

/* What is called: `script` in the container of `run_id`, for the session `tag`. */
struct inside_call {
    const char *run_id, *tag, *script, *mode;
};

/* Safe: the script is a constant, its arguments are a checked run ID and hex digits. */
static int
call(struct broker *b, const struct inside_call *i, cli_done_fn fn, void *ctx)
{
    const char *const args[] = {"runs", "exec", i->run_id, "--", "sh", "-c",
                                i->script, "sh", i->tag, i->mode, NULL};
    struct cli_call c = {.args = args, .timeout_ms = LIMIT_TTY_INSIDE_MS, .own_bound = true,
                         .fn = fn, .ctx = ctx};
    char error[LIMIT_CLI_ERROR];

    return cli_start(b->cli, &c, error);
}

static void
look(struct tty *t)
{
    struct inside_call i = {t->run_id, t->tag, find_script, t->marked ? "marked" : ""};

    t->inside = INSIDE_LOOKING;
    if (call(t->all->broker, &i, on_found, t) < 0)
        t->inside = INSIDE_UNKNOWN;
}

/* Not marked: one of a run at a time: two that look together could each find the other's. The oldest
 * goes first; the list begins with the newest. */
static void
find_next(struct ttys *all, const char *run_id)
{
    struct tty *t, *oldest = NULL;

    LIST_FOREACH(t, &all->list, link) {
        if (t->marked || strcmp(t->run_id, run_id) != 0)
            continue;
        if (t->inside == INSIDE_LOOKING)
            return;
        if (t->inside == INSIDE_WAITING)
            oldest = t;
    }
    if (oldest != NULL)
        look(oldest);
}

static void
on_found(void *ctx, struct cli_result *result)
{
    struct tty *t = ctx;
    bool found = result->outcome == CLI_EXITED && result->exit_status == 0;

    t->inside = found ? INSIDE_KNOWN : INSIDE_UNKNOWN;
    if (!found && t->child != NULL)
        log_event(LOG_LEVEL_INFO, "tty-not-found-inside", "terminal=%u status=%d", t->number,
                  result->exit_status);
    find_next(t->all, t->run_id);
    if (t->child == NULL)
        tty_inside_end(t);
}

void
tty_inside_find(struct tty *t)
{
    t->inside = INSIDE_WAITING;
    if (t->marked)
        look(t);
    else
        find_next(t->all, t->run_id);
}

/* Is something left, or can nobody tell? */
static bool
is_left(const struct cli_result *result)
{
    return result->outcome != CLI_EXITED || result->exit_status == STATUS_LEFT;
}

/* A container that is gone meanwhile answers with another status: nothing is left then. */
static void
on_ended(void *ctx, struct cli_result *result)
{
    struct tty *t = ctx;

    t->clear = !is_left(result);
    if (!t->clear) {
        t->all->leftovers++;
        log_event(LOG_LEVEL_WARNING, "tty-left-inside", "terminal=%u status=%d", t->number,
                  result->exit_status);
    }
    t->inside = INSIDE_GONE;
    tty_settle(t);
}

int
tty_inside_end_left(struct broker *b, const char *run_id, const char *tag, cli_done_fn fn,
                    void *ctx)
{
    struct inside_call i = {run_id, tag, end_script, "end"};

    return call(b, &i, fn, ctx);
}

void
tty_inside_end(struct tty *t)
{
    struct inside_call i = {t->run_id, t->tag, end_script, t->ending ? "end" : "look"};

    if (t->inside == INSIDE_LOOKING || t->inside == INSIDE_ENDING)
        return; /* on_found comes here again */
    if (t->inside == INSIDE_WAITING)
        t->inside = INSIDE_UNKNOWN; /* it ended before anybody could look */
    /* By its mark it is found now, where it was not before. */
    if ((t->inside == INSIDE_KNOWN || (t->marked && t->ending)) &&
        call(t->all->broker, &i, on_ended, t) == 0) {
        t->inside = INSIDE_ENDING;
        return;
    }
    t->clear = t->inside == INSIDE_UNKNOWN && !t->ending;
    if (!t->clear)
        t->all->leftovers++; /* nobody can tell */
    t->inside = INSIDE_GONE;
    tty_settle(t);
}
