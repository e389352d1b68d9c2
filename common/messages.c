/* The table of message shapes, and the rule for strings in fixed arrays. */
#include "common/messages.h"

#include <string.h>

#define ASK(request, fds, answer, answer_fds)                                              \
    .request_len = sizeof(struct request), .request_fds = (fds),                           \
    .answer_len = sizeof(struct answer), .answer_fds_max = (answer_fds)

static const struct message_shape shapes[MESSAGE_TYPES] = {
    [MESSAGE_HELLO] = {.name = "HELLO", ASK(request_hello, 0, answer_hello, 0),
                       .before_hello = true},
    [MESSAGE_RUNS_LIST] = {.name = "RUNS_LIST",
                           ASK(request_runs_list, 0, answer_runs_list, 1)},
    [MESSAGE_RESULTS_SCAN] = {.name = "RESULTS_SCAN",
                              ASK(request_results_scan, 0, answer_results_scan, 1)},
    [MESSAGE_RUN_LOCATE] = {.name = "RUN_LOCATE",
                            ASK(request_run_locate, 0, answer_run_locate, 0)},
    [MESSAGE_RUN_FILE] = {.name = "RUN_FILE",
                          ASK(request_run_file, 0, answer_run_file, 1)},
    [MESSAGE_RUN_STOP] = {.name = "RUN_STOP", ASK(request_run, 0, answer_run, 0)},
    [MESSAGE_RUN_REMOVE] = {.name = "RUN_REMOVE", ASK(request_run, 0, answer_run, 0)},
    [MESSAGE_RUN_LOGS] = {.name = "RUN_LOGS", ASK(request_run_logs, 0, answer_run_logs, 1)},
    [MESSAGE_CHILD_END] = {.name = "CHILD_END",
                           ASK(request_child_end, 0, answer_plain, 0)},
    [MESSAGE_PEER_UID] = {.name = "PEER_UID",
                          ASK(request_peer_uid, 1, answer_peer_uid, 0)},
    [MESSAGE_EVENT_CHILD] = {.name = "EVENT_CHILD",
                             .event_len = sizeof(struct event_child)},
    [MESSAGE_LAUNCHABLES] = {.name = "LAUNCHABLES",
                             ASK(request_launchables, 0, answer_launchables, 1)},
    [MESSAGE_CATALOG] = {.name = "CATALOG", ASK(request_plain, 0, answer_document, 1)},
    [MESSAGE_DOCTOR] = {.name = "DOCTOR", ASK(request_plain, 0, answer_document, 1)},
    [MESSAGE_LAUNCH] = {.name = "LAUNCH", ASK(request_launch, 0, answer_launch, 0)},
    [MESSAGE_LAUNCH_CANCEL] = {.name = "LAUNCH_CANCEL",
                               ASK(request_launch_ref, 0, answer_plain, 0)},
    [MESSAGE_LAUNCH_CLEAR] = {.name = "LAUNCH_CLEAR",
                              ASK(request_launch_ref, 0, answer_plain, 0)},
    [MESSAGE_LAUNCH_WATCH] = {.name = "LAUNCH_WATCH",
                              ASK(request_launch_watch, 0, answer_plain, 0)},
    [MESSAGE_LAUNCH_OUTPUT] = {.name = "LAUNCH_OUTPUT",
                               ASK(request_launch_ref, 0, answer_launch_output, 1)},
    [MESSAGE_EVENT_LAUNCH] = {.name = "EVENT_LAUNCH",
                              .event_len = sizeof(struct event_launch)},
    [MESSAGE_TTY_OPEN] = {.name = "TTY_OPEN", ASK(request_tty_open, 0, answer_tty, 1)},
    [MESSAGE_TTY_JOIN] = {.name = "TTY_JOIN", ASK(request_tty_join, 0, answer_tty, 1)},
    [MESSAGE_TTY_TAKE] = {.name = "TTY_TAKE", ASK(request_tty_ref, 0, answer_tty, 1)},
    [MESSAGE_TTY_LEAVE] = {.name = "TTY_LEAVE", ASK(request_tty_ref, 0, answer_plain, 0)},
    [MESSAGE_TTY_LIST] = {.name = "TTY_LIST", ASK(request_plain, 0, answer_tty_list, 1)},
    [MESSAGE_TTY_END] = {.name = "TTY_END", ASK(request_tty_end, 0, answer_plain, 0)},
    [MESSAGE_EVENT_TTY] = {.name = "EVENT_TTY", .event_len = sizeof(struct event_tty)},
    [MESSAGE_EVENT_LAUNCH_OUTPUT] = {.name = "EVENT_LAUNCH_OUTPUT",
                                     .event_len = sizeof(struct event_launch_output)},
    [MESSAGE_ASSISTANT_START] = {.name = "ASSISTANT_START",
                                 ASK(request_assistant, 0, answer_assistant, 0)},
    [MESSAGE_RUN_CONNECT] = {.name = "RUN_CONNECT",
                             ASK(request_run_connect, 0, answer_run_connect, 1)},
    [MESSAGE_RUN_WATCH] = {.name = "RUN_WATCH",
                           ASK(request_run_watch, 0, answer_run_watch, 0)},
    [MESSAGE_RUN_UNWATCH] = {.name = "RUN_UNWATCH",
                             ASK(request_run_unwatch, 0, answer_plain, 0)},
    [MESSAGE_TOKEN_SHOW] = {.name = "TOKEN_SHOW",
                            ASK(request_token_show, 0, answer_plain, 0)},
    [MESSAGE_EVENT_FILE] = {.name = "EVENT_FILE", .event_len = sizeof(struct event_file)},
    [MESSAGE_TASK_FILE] = {.name = "TASK_FILE",
                           ASK(request_task_file, 0, answer_run_file, 1)},
};

const struct message_shape *
message_shape(uint16_t type)
{
    if (type >= MESSAGE_TYPES || shapes[type].name == NULL)
        return NULL;
    return &shapes[type];
}

bool
message_string_valid(const char *array, size_t size)
{
    size_t len = strnlen(array, size);

    if (len == size)
        return false;
    for (size_t i = len; i < size; i++)
        if (array[i] != '\0')
            return false;
    return true;
}

void
message_string_set(char *array, size_t size, const char *text)
{
    size_t len = strnlen(text, size - 1);

    memset(array, 0, size);
    memcpy(array, text, len);
}
