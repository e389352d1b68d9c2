/* Fuzz entry of summaries and of the CLI's listing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/run_id.h"
#include "worker/runs_live.h"
#include "worker/runs_results.h"
#include "worker/summary_read.h"

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char dir[] = "task/model/agent/run";
    char *text = malloc(len > 0 ? len : 1);
    struct finished_run *run;
    struct live_list list;
    const char *reason = NULL;
    int r;

    if (text == NULL)
        return 0;
    memcpy(text, bytes, len);
    run = summary_read(text, len, dir, sizeof dir - 1);
    if (run != NULL && (run->run_id == NULL || !policy_run_id_valid(run->run_id, strlen(run->run_id))))
        abort();
    free(run);
    r = live_list_parse(text, len, &list, &reason);
    if (r == 0) {
        for (size_t i = 0; i < list.n_runs; i++) {
            const char *id = list.runs[i].id;

            if (!policy_run_id_valid(id, strlen(id)) || live_list_find(&list, id) != &list.runs[i])
                abort();
        }
        live_list_done(&list);
    } else if (reason == NULL) {
        abort();
    }
    free(text);
    return 0;
}
