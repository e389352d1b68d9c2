/* Every bound of the server that a client, a container or a file can reach, in one place. */
#ifndef COMMON_LIMITS_H
#define COMMON_LIMITS_H

/* --- one HTTP request (worker) ---------------------------------------------------- */
#define LIMIT_REQUEST_LINE 8192u     /* bytes; longer: 414. Browsers stop far below it */
#define LIMIT_HEAD 16384u            /* bytes, request line and fields; longer: 431 */
#define LIMIT_FIELDS 64u             /* header fields in one request; more: 431 */
#define LIMIT_BODY (64u * 1024u)     /* bytes; the largest legal body is a chat message */
#define LIMIT_HEAD_MS 10000u         /* absolute deadline for a whole head */
#define LIMIT_BODY_MS 15000u         /* absolute deadline for a whole body */
#define LIMIT_IDLE_MS 75000u         /* a kept-alive connection without a request */
#define LIMIT_WRITE_STALL_MS 60000u  /* an answer of which the peer takes nothing */
#define LIMIT_PATH_SEGMENT 256u      /* decoded bytes of one path segment */

/* --- connections (worker) ----------------------------------------------------------- */
#define LIMIT_CONNECTIONS_PER_ADDRESS 1024u /* one remote address, all workers together;
                                               loopback and Unix peers are exempt: a TLS
                                               proxy is one address */
#define LIMIT_ACCEPTS_PER_WAKE 16u   /* so that one burst cannot starve what is open */
#define LIMIT_BAD_TOKENS_PER_MINUTE 30u /* per address, then 429 for failing ones only */

/* --- WebSocket (worker) --------------------------------------------------------------- */
#define LIMIT_WS_MESSAGE (64u * 1024u)  /* bytes of one message from a client; over: 1009 */
#define LIMIT_WS_QUEUE (1024u * 1024u)  /* bytes waiting for one client before its source is
                                           paused; a broadcast past it ends that client */
#define LIMIT_WS_FRAGMENT (64u * 1024u) /* bytes we send in one frame */
#define LIMIT_WS_PING_MS 20000u         /* under every proxy's 25..60 s idle limit */
#define LIMIT_WS_CLOSE_MS 5000u         /* wait for the peer's close frame */
#define LIMIT_LOG_PIECE (16u * 1024u)   /* bytes of a log line in one message; longer lines
                                           come in pieces */
#define LIMIT_LOG_SHARED (4u * 1024u * 1024u) /* bytes of a log kept for late and slow viewers
                                           of one follower */

/* --- files and documents ---------------------------------------------------------------- */
#define LIMIT_RUN_FILE (32u * 1024u * 1024u) /* contract 4.4: 33,554,432 bytes */
#define LIMIT_SUMMARY (8u * 1024u * 1024u)   /* contract 2.10: 8,388,608 bytes */
#define LIMIT_DIALOG_FILE (1024u * 1024u * 1024u) /* bytes of a dialog that is opened: of a run
                                           that goes on all of it is passed on, of one that is
                                           over the first LIMIT_RUN_FILE */
#define LIMIT_DIALOG_ENTRIES 200000u         /* contract 4.4 */
#define LIMIT_JSON_DEPTH 64u                 /* nesting; no document of the product has 10 */
#define LIMIT_RUNS 200000u                   /* finished runs a worker keeps in its table */

/* --- the command line interface (broker) ---------------------------------------------------- */
#define LIMIT_CLI_MS 60000u               /* any short call; then SIGTERM, SIGKILL to the group */
#define LIMIT_CLI_GRACE_MS 2000u          /* between the two signals */
#define LIMIT_CLI_OUTPUT (32u * 1024u * 1024u) /* bytes of one listing */
#define LIMIT_CLI_ERROR 512u              /* bytes of stderr kept: its last line */
#define LIMIT_CLI_CALLS 32u               /* children at once; then "busy" */
#define LIMIT_FOLLOWERS 256u              /* `runs logs --follow` children of all workers */
#define LIMIT_FOLLOWERS_PER_WORKER 128u   /* so that one worker cannot take them all */
#define LIMIT_LIST_AGE_MS 1500u           /* an answer while people look is no older */
#define LIMIT_LIST_WAIT_MS 2000u          /* no caller waits longer for the CLI */
#define LIMIT_LIST_INTEREST_MS 5000u      /* without a caller for so long, refreshing stops */
#define LIMIT_SCAN_AGE_MS 3000u           /* contract 10.2: finished runs */
#define LIMIT_SCAN_BATCH (4u * 1024u * 1024u) /* bytes of summaries in one answer */
#define LIMIT_SCAN_SLICE_US 2000u         /* the walk's turn before others are served */
#define LIMIT_SCAN_NODES 500000u          /* directories remembered, vanished ones too */
#define LIMIT_SCAN_DEPTH 32u              /* directory levels below a results root */
#define LIMIT_ROOTS 16u                   /* results roots */

/* --- launches (broker, keeper, worker) --------------------------------------------------------- */
#define LIMIT_LAUNCHES 1000u             /* remembered, ended ones included; then the oldest
                                            ended ones go */
#define LIMIT_LAUNCH_POLL_MS 2000u       /* contract 10.2: is the run listed yet? */
#define LIMIT_LAUNCH_GRACE_MS 30000u     /* SIGTERM to SIGKILL: over the 20 s the CLI gives its
                                            container */
#define LIMIT_LAUNCH_OUTPUT (64u * 1024u * 1024u) /* bytes of output on disk; past it the older
                                            half is dropped, and the cut is told */
#define LIMIT_LAUNCH_HELD (1024u * 1024u) /* bytes kept in memory while the disk is full */
#define LIMIT_LAUNCH_LINES 5000u         /* contract 10.2: lines served of one launch */
#define LIMIT_LAUNCH_TAIL (8u * 1024u * 1024u) /* bytes in which they are looked for */
#define LIMIT_LAUNCH_TELL_MS 10u         /* between two looks at who has grown */
#define LIMIT_LAUNCH_START_MS 10000u     /* a keeper that has not reported by then failed */
#define LIMIT_LAUNCHABLES_AGE_MS 250u    /* the checkout is not read more often */
#define LIMIT_LAUNCHABLES_FILE (1024u * 1024u) /* bytes of one YAML file */
#define LIMIT_LAUNCHABLES 20000u         /* names of one kind */
#define LIMIT_CATALOG (16u * 1024u * 1024u) /* bytes of a manifest; the pilot's has 160 KB */
#define LIMIT_CATALOG_MS 10000u          /* contract 8: fetching it */
#define LIMIT_DOCTOR_AGE_MS 15000u       /* contract 10.2 */

/* --- the assistant (broker, keymaker, worker) ----------------------------------------------------- */
#define LIMIT_ASSISTANTS 256u            /* runs whose assistant the broker knows */
#define LIMIT_ASSISTANT_CHOICE_MS 30000u /* contract 9.1: how long "no model, no key" holds */
#define LIMIT_ASSISTANT_READY_MS 10000u  /* contract 9.3: nobody waits longer for a start */
#define LIMIT_ASSISTANT_HUNG_MS 60000u   /* a server that old and not up is started anew */
#define LIMIT_KEYMAKER_MS 10000u         /* contract 9.1: one request to the proxy */
#define LIMIT_KEYMAKERS 16u              /* of them at once */
#define LIMIT_REVOKE_MS 4000u            /* what the broker's stop may take for its keys */
#define LIMIT_OPENCODE_ANSWER (16u * 1024u * 1024u) /* bytes of one answer; 6.5 MB were seen */
#define LIMIT_OPENCODE_EVENT (16u * 1024u * 1024u) /* bytes of one event; 5 MB were seen */
#define LIMIT_OPENCODE_CALL_MS 30000u    /* a call that is no prompt */
#define LIMIT_OPENCODE_PROBE_MS 2000u    /* contract 9.3: is it up? */
#define LIMIT_PROXY_ANSWER (256u * 1024u) /* bytes of the proxy's answer that are looked at */
#define LIMIT_DOTENV (1024u * 1024u)     /* bytes of .env */

/* --- live runs (broker, worker) ------------------------------------------------------------------ */
#define LIMIT_ENDPOINTS 1024u            /* addresses remembered; then the oldest goes */
#define LIMIT_ENDPOINT_AGE_MS 30000u     /* contract 10.2 */
#define LIMIT_CONNECTS 512u              /* connections under way, of all workers */
#define LIMIT_CONNECT_MS 2000u           /* a container's address answers at once or not */
#define LIMIT_WATCHES 1024u              /* run directories watched for all workers */
#define LIMIT_WATCHES_PER_WORKER 512u    /* so that one worker cannot take them all */
#define LIMIT_WATCH_TELL_MS 2u           /* between two events of one watch */
#define LIMIT_TASK_CONFIG (1024u * 1024u) /* bytes of a task's config.yaml that are read */
#define LIMIT_UPSTREAM_HEAD 16384u       /* bytes of a daemon's answer head */
#define LIMIT_UPSTREAM_BODY (32u * 1024u * 1024u) /* bytes of a daemon's answer */
#define LIMIT_UPSTREAM_MS 5000u          /* contract 10.2: a daemon request as a whole */
#define LIMIT_UPSTREAM_HEALTH_MS 2000u   /* contract 10.2 */
#define LIMIT_UPSTREAM_HELD (128u * 1024u * 1024u) /* bytes of answers in one worker's memory */
#define LIMIT_UPSTREAMS 1024u            /* requests to containers at once, of one worker */

/* --- terminals (broker, worker) ------------------------------------------------------------------ */
#define LIMIT_TTYS 256u                  /* terminals at once, ended ones nobody fetched included */
#define LIMIT_TTYS_PER_RUN 16u
#define LIMIT_TTY_VIEWERS 8u             /* of one terminal */
#define LIMIT_TTY_SIZE 1000u             /* columns or rows */
#define LIMIT_TTY_RING (256u * 1024u)    /* bytes of output kept for who comes back */
#define LIMIT_TTY_QUEUE (64u * 1024u)    /* bytes read and not yet with the kernel's socket */
#define LIMIT_TTY_CREDIT (384u * 1024u)  /* bytes sent and not yet shown, for a client that counts:
                                            a whole scrollback and some output after it */
#define LIMIT_TTY_INPUT (1024u * 1024u)  /* bytes of input that its program does not take */
#define LIMIT_TTY_DRAIN_MS 100u          /* unwatched output: 64 KiB each time, then rest */
#define LIMIT_TTY_TAKE_MS 2000u          /* the reader before must have left by then */
#define LIMIT_TTY_INSIDE_MS 20000u       /* a call that looks for processes in a container */
#define LIMIT_TTY_RECORD_MS 100u         /* between two looks of a recording at the ring */
#define LIMIT_TTY_RECORDING (64u * 1024u * 1024u) /* bytes of a recording, its last mark aside */
#define LIMIT_TTY_STOP_MS 3000u          /* of the broker's stop, for ending them inside */

/* --- processes ------------------------------------------------------------------------------- */
#define LIMIT_WORKERS 64u
#define LIMIT_WORKER_MEMORY (2048ul * 1024u * 1024u) /* bytes of address space: several times
                                        the largest listing with every cache full; a leak
                                        ends the worker before it ends the machine */
#define LIMIT_BROKER_PENDING 1024u   /* unanswered requests of one worker at the broker */
#define LIMIT_LOG_LINE 1024u         /* bytes of one log line */
#define LIMIT_RESTARTS 24u           /* of one role within LIMIT_RESTARTS_MS, then the server
                                        stops with a reason: a machine without memory for
                                        20 s does not end it */
#define LIMIT_RESTARTS_MS 30000u
#define LIMIT_ALIVE_MS 5000u         /* how often a child says that its loop turns */
#define LIMIT_SILENT_MS 20000u       /* says nothing for so long: it may hang */
#define LIMIT_SILENT_MORE_MS 10000u  /* nor in this while: it does, and is replaced. Two, since
                                        after a pause of the whole machine all were silent */
#define LIMIT_STOP_MS 10000u         /* graceful stop of a child before SIGKILL */
#define LIMIT_DRAIN_MS 30000u        /* workers of the program before: their last answers */
#define LIMIT_DRAIN_ASKED_MS 3000u   /* its broker: what they still wait for; and its end */
#define LIMIT_DRAIN_BROKER_MS 6000u
#define LIMIT_DRAIN_FRESH_MS 1500u   /* a connection of theirs that never asked for anything */
#define LIMIT_CHECK_MS 20000u        /* the new program's look at the settings */

#endif
