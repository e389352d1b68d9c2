/* Making and unmaking the broker's parts, in the order in which they need each other. */
#include "broker/broker.h"

#include <errno.h>
#include <sys/random.h>

#include "broker/assistant.h"
#include "broker/child.h"
#include "broker/cli.h"
#include "broker/connect.h"
#include "broker/dispatch.h"
#include "broker/documents.h"
#include "broker/launchables.h"
#include "broker/launches.h"
#include "broker/litellm.h"
#include "broker/logs.h"
#include "broker/peer_uid.h"
#include "broker/results_scan.h"
#include "broker/run_dirs.h"
#include "broker/runs_list.h"
#include "broker/tty.h"
#include "broker/watch.h"
#include "common/monotonic.h"

uint64_t
broker_now_ms(void)
{
    return monotonic_ms();
}

int
broker_init(struct broker *b)
{
    if (getrandom(&b->epoch, sizeof b->epoch, 0) != sizeof b->epoch)
        return -EIO;
    b->epoch = b->epoch >> 2 | 1; /* not 0, and room to count from it */
    b->children = children_new(b->base, b->config.cli, b->config.checkout);
    b->cli = cli_new(b);
    b->logs = logs_new(b);
    b->litellm = litellm_new(b);
    b->assistants = assistants_new(b);
    b->dispatch = dispatch_new(b);
    b->run_dirs = run_dirs_new(b);
    if (b->litellm == NULL || b->assistants == NULL)
        return -ENOMEM;
    if (b->children == NULL || b->cli == NULL || b->logs == NULL || b->dispatch == NULL ||
        b->run_dirs == NULL)
        return -ENOMEM;
    b->results_scan = results_scan_new(b);
    b->runs_list = runs_list_new(b);
    if (b->results_scan == NULL || b->runs_list == NULL)
        return -ENOMEM;
    b->launchables = launchables_new(b->config.checkout, b->config.local_tasks,
                                     b->config.catalog[0] != '\0');
    b->documents = documents_new(b);
    b->launches = launches_new(b);
    if (b->launchables == NULL || b->documents == NULL || b->launches == NULL)
        return -ENOMEM;
    b->connects = connects_new(b);
    b->watches = watches_new(b);
    b->ttys = ttys_new(b);
    if (b->connects == NULL || b->watches == NULL || b->ttys == NULL)
        return -ENOMEM;
    b->peer_uid = peer_uid_new(); /* NULL: every peer is unknown, and refused where it matters */
    return 0;
}

void
broker_done(struct broker *b)
{
    ttys_free(b->ttys); /* first: the end of a channel would end what is free by then */
    b->ttys = NULL;
    children_free(b->children);
    dispatch_free(b->dispatch);
    launches_free(b->launches);
    launchables_free(b->launchables);
    documents_free(b->documents);
    connects_free(b->connects);
    watches_free(b->watches);
    cli_free(b->cli);
    logs_free(b->logs);
    litellm_free(b->litellm);
    assistants_free(b->assistants);
    runs_list_free(b->runs_list);
    results_scan_free(b->results_scan);
    run_dirs_free(b->run_dirs);
    peer_uid_free(b->peer_uid);
}
