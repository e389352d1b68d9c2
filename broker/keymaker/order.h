/*
 * What the broker orders of its key maker and gets back: one fixed struct each way, by memfd.
 * Nobody but these two reads them; both come from one build.
 */
#ifndef BROKER_KEYMAKER_ORDER_H
#define BROKER_KEYMAKER_ORDER_H

#include <stdint.h>

#include "common/messages.h"

#define KEYMAKER_URL_SIZE 512u
#define KEYMAKER_SECRET_SIZE 512u
#define KEYMAKER_ALIAS_SIZE 64u
#define KEYMAKER_PRINTED_SIZE 4096u
#define KEYMAKER_CONFIG_SIZE 4096u
#define KEYMAKER_ERROR_SIZE 256u

enum keymaker_task {
    KEYMAKER_READ = 1, /* what the container printed of its model -> base_url, model */
    KEYMAKER_MAKE,     /* base_url, model, alias -> key, config */
    KEYMAKER_REVOKE,   /* key, or alias when no key is known */
};

struct keymaker_order {
    uint32_t task; /* enum keymaker_task */
    uint32_t printed_len;
    char printed[KEYMAKER_PRINTED_SIZE]; /* READ: two lines, hostile */
    char proxy_url[KEYMAKER_URL_SIZE];   /* MAKE, REVOKE: of LiteLLM */
    char master_key[KEYMAKER_SECRET_SIZE];
    char base_url[KEYMAKER_URL_SIZE];
    char model[MESSAGE_MODEL_SIZE];
    char alias[KEYMAKER_ALIAS_SIZE];
    char key[KEYMAKER_SECRET_SIZE];
};

struct keymaker_answer {
    uint32_t done; /* 0: `error` says why, in words of ours that hold no secret */
    char base_url[KEYMAKER_URL_SIZE]; /* READ; "" with `done`: the container has no model */
    char model[MESSAGE_MODEL_SIZE];
    char key[KEYMAKER_SECRET_SIZE];      /* MAKE */
    char config[KEYMAKER_CONFIG_SIZE];   /* MAKE: OpenCode's configuration, JSON */
    char error[KEYMAKER_ERROR_SIZE];
};

#endif
