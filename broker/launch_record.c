/*
 * The two records of a launch, and what tells a process from a later one of its number.
 * Distrusts: whoever edited the files; what they hold is checked like a request.
 */
#include "broker/launch_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/record.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const struct record_field meta_fields[] = {
    RECORD_INT_OF(launch_meta, version),    RECORD_TEXT_OF(launch_meta, id),
    RECORD_TEXT_OF(launch_meta, command),   RECORD_TEXT_OF(launch_meta, task),
    RECORD_INT_OF(launch_meta, start_ms),   RECORD_INT_OF(launch_meta, state),
    RECORD_TEXT_OF(launch_meta, error),     RECORD_INT_OF(launch_meta, interrupted),
    RECORD_TEXT_OF(launch_meta, agent),     RECORD_TEXT_OF(launch_meta, model),
    RECORD_TEXT_OF(launch_meta, plugins),   RECORD_INT_OF(launch_meta, mode),
    RECORD_INT_OF(launch_meta, source),     RECORD_INT_OF(launch_meta, egress),
    RECORD_INT_OF(launch_meta, timeout),    RECORD_INT_OF(launch_meta, difficulty),
    RECORD_TEXT_OF(launch_meta, key),
};

static const struct record_field keeper_fields[] = {
    RECORD_INT_OF(launch_keeper_record, version),
    RECORD_INT_OF(launch_keeper_record, pid),
    RECORD_INT_OF(launch_keeper_record, start_ticks),
    RECORD_TEXT_OF(launch_keeper_record, boot_id),
    RECORD_INT_OF(launch_keeper_record, started_ms),
    RECORD_INT_OF(launch_keeper_record, ended_ms),
    RECORD_INT_OF(launch_keeper_record, exit_status),
    RECORD_INT_OF(launch_keeper_record, lost),
};

int
launch_meta_save(int dir_fd, const struct launch_meta *meta)
{
    return record_save(dir_fd, LAUNCH_META, meta_fields, N(meta_fields), meta);
}

static bool
is_sound(const struct launch_meta *m)
{
    struct launch_fields fields;

    return m->version == LAUNCH_RECORD_VERSION && m->state >= LAUNCH_QUEUED &&
           m->state < LAUNCH_STATES && policy_launch_id_valid(m->id) &&
           (m->interrupted == 0 || m->interrupted == 1) &&
           launch_meta_get_fields(m, &fields) == 0;
}

int
launch_meta_load(int dir_fd, struct launch_meta *ret_meta)
{
    struct launch_meta meta;
    int r = record_load(dir_fd, LAUNCH_META, meta_fields, N(meta_fields), &meta, sizeof meta);

    if (r == 0 && !is_sound(&meta))
        r = -EBADMSG;
    if (r == 0)
        *ret_meta = meta;
    return r;
}

int
launch_keeper_save(int dir_fd, const struct launch_keeper_record *record)
{
    return record_save(dir_fd, LAUNCH_KEEPER, keeper_fields, N(keeper_fields), record);
}

int
launch_keeper_load(int dir_fd, struct launch_keeper_record *ret_record)
{
    struct launch_keeper_record record;
    int r = record_load(dir_fd, LAUNCH_KEEPER, keeper_fields, N(keeper_fields), &record,
                        sizeof record);

    if (r == 0 && (record.version != LAUNCH_RECORD_VERSION || record.pid < 0))
        r = -EBADMSG;
    if (r == 0)
        *ret_record = record;
    return r;
}

void
launch_meta_set_fields(struct launch_meta *m, const struct launch_fields *f)
{
    size_t len = 0;

    message_string_set(m->task, sizeof m->task, f->task);
    message_string_set(m->agent, sizeof m->agent, f->agent);
    message_string_set(m->model, sizeof m->model, f->model);
    memset(m->plugins, 0, sizeof m->plugins);
    for (unsigned i = 0; i < f->n_plugins; i++) {
        if (i > 0)
            m->plugins[len++] = ',';
        memcpy(m->plugins + len, f->plugins[i], strlen(f->plugins[i]));
        len += strlen(f->plugins[i]);
    }
    m->mode = f->mode;
    m->source = f->source;
    m->egress = f->egress;
    m->timeout = f->timeout;
    m->difficulty = f->difficulty;
}

static int
get_plugins(const struct launch_meta *m, struct launch_fields *f)
{
    const char *at = m->plugins;

    while (*at != '\0') {
        size_t len = strcspn(at, ",");

        if (f->n_plugins == LAUNCH_PLUGINS || len == 0 || len >= LAUNCH_PLUGIN_SIZE)
            return -EBADMSG;
        memcpy(f->plugins[f->n_plugins++], at, len);
        at += len;
        if (*at == ',')
            at++;
    }
    return 0;
}

int
launch_meta_get_fields(const struct launch_meta *m, struct launch_fields *ret_fields)
{
    struct launch_fields f = {0};

    message_string_set(f.task, sizeof f.task, m->task);
    message_string_set(f.agent, sizeof f.agent, m->agent);
    message_string_set(f.model, sizeof f.model, m->model);
    if (m->mode < 0 || m->mode >= LAUNCH_MODE_BAD || m->source < 0 ||
        m->source >= LAUNCH_SOURCE_BAD || m->egress < 0 || m->egress >= LAUNCH_EGRESS_BAD ||
        m->timeout < LAUNCH_NUMBER_ABSENT || m->timeout > LAUNCH_TIMEOUT_MAX ||
        m->difficulty < LAUNCH_NUMBER_ABSENT || m->difficulty > 4)
        return -EBADMSG;
    f.mode = (uint8_t)m->mode;
    f.source = (uint8_t)m->source;
    f.egress = (uint8_t)m->egress;
    f.timeout = (int32_t)m->timeout;
    f.difficulty = (int32_t)m->difficulty;
    if (get_plugins(m, &f) != 0)
        return -EBADMSG;
    *ret_fields = f;
    return 0;
}

/* Read a small file of /proc; NUL-terminated, "" when it cannot be read. */
static void
read_proc(const char *path, char *into, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, into, size - 1) : 0;

    if (fd >= 0)
        close(fd);
    into[n > 0 ? n : 0] = '\0';
}

void
launch_boot_id(char ret[40])
{
    memset(ret, 0, 40);
    read_proc("/proc/sys/kernel/random/boot_id", ret, 40);
    ret[strcspn(ret, "\n")] = '\0';
}

int64_t
launch_start_ticks(int64_t pid)
{
    char path[64], text[1024], *at;

    if (pid <= 0)
        return -1;
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    read_proc(path, text, sizeof text);
    at = strrchr(text, ')'); /* the name may hold anything */
    if (at == NULL || at[1] == '\0' || at[2] == 'Z' || at[2] == 'X')
        return -1;
    at += 2;
    for (unsigned field = 3; field < 22; field++) {
        at = strchr(at, ' ');
        if (at == NULL)
            return -1;
        at++;
    }
    return strtoll(at, NULL, 10);
}
