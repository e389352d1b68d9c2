/* What is kept of a launch in its folder: meta.json (the broker's: what was asked for and what
 * became of it) and keeper.json (the keeper's: the process and how it ended). */
#ifndef BROKER_LAUNCH_RECORD_H
#define BROKER_LAUNCH_RECORD_H

#include <stdint.h>

#include "common/messages.h"
#include "policy/launch.h"

#define LAUNCH_RECORD_VERSION 1

/* Names in a launch's folder. */
#define LAUNCH_META "meta.json"
#define LAUNCH_KEEPER "keeper.json"
#define LAUNCH_OUTPUT "output"
#define LAUNCH_PIPE "pipe"     /* FIFO: the CLI's stdout and stderr */
#define LAUNCH_SOCKET "socket" /* the keeper's */
#define LAUNCH_LOCK "lock"     /* held by the keeper while it lives */

struct launch_meta {
    int64_t version; /* LAUNCH_RECORD_VERSION */
    int64_t state;   /* enum launch_state; LAUNCH_CLEARED: forgotten, its process goes on */
    int64_t interrupted;
    int64_t start_ms;
    int64_t timeout, difficulty;
    int64_t mode, source, egress;
    char id[MESSAGE_LAUNCH_ID_SIZE];
    char task[LAUNCH_NAME_SIZE];
    char agent[LAUNCH_NAME_SIZE];
    char model[LAUNCH_MODEL_SIZE];
    char plugins[LAUNCH_PLUGINS * LAUNCH_PLUGIN_SIZE]; /* comma between names */
    char key[65];                                      /* hex digest, or "" */
    char command[MESSAGE_COMMAND_SIZE];                /* for people */
    char error[MESSAGE_ERROR_SIZE];
};

struct launch_keeper_record {
    int64_t version;
    int64_t pid;         /* of the child, leader of its process group; 0: not started yet */
    int64_t start_ticks; /* /proc/<pid>/stat field 22: tells it from a later process */
    int64_t started_ms;
    int64_t ended_ms;    /* 0: it has not ended */
    int64_t exit_status; /* 0..255, 128 + signal; -1: not known */
    int64_t lost;        /* bytes of output that found no room on the disk */
    char boot_id[40];    /* of the kernel that runs it */
};

/* 0 or -errno as in broker/record.h. */
int
launch_meta_save(int dir_fd, const struct launch_meta *meta);
int
launch_meta_load(int dir_fd, struct launch_meta *ret_meta);
int
launch_keeper_save(int dir_fd, const struct launch_keeper_record *record);
int
launch_keeper_load(int dir_fd, struct launch_keeper_record *ret_record);

/* What was asked for, to and from its record. -EBADMSG: a record that no launch of ours has. */
void
launch_meta_set_fields(struct launch_meta *meta, const struct launch_fields *f);
int
launch_meta_get_fields(const struct launch_meta *meta, struct launch_fields *ret_fields);

/* This kernel's boot, or "" where it does not tell. */
void
launch_boot_id(char ret[40]);

/* When process `pid` started, in ticks; -1: there is none. */
int64_t
launch_start_ticks(int64_t pid);

#endif
