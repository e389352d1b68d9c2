/* Orders a key of the key maker as the broker does: ask_keymaker PROGRAM URL [MODEL]. Prints
 * what came of it: "done=0|1 status=N key=... error=...". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/keymaker/order.h"

static int
run(const char *program, int in, int out)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        dup2(in, STDIN_FILENO);
        dup2(out, STDOUT_FILENO);
        execl(program, program, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        exit(2);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int
main(int argc, char **argv)
{
    static struct keymaker_order o = {.task = KEYMAKER_MAKE};
    static struct keymaker_answer a;
    int in = memfd_create("order", 0), out = memfd_create("answer", 0), status;

    if (argc < 3 || argc > 4 || in < 0 || out < 0)
        return 2;
    snprintf(o.proxy_url, sizeof o.proxy_url, "%s", argv[2]);
    snprintf(o.base_url, sizeof o.base_url, "http://127.0.0.1:1/v1");
    strcpy(o.master_key, "sk-master-canary");
    snprintf(o.model, sizeof o.model, "%s", argc == 4 ? argv[3] : "some-model");
    strcpy(o.alias, "webui-assistant-some-run-00000000");
    if (write(in, &o, sizeof o) != sizeof o)
        return 2;
    status = run(argv[1], in, out);
    if (pread(out, &a, sizeof a, 0) != sizeof a)
        memset(&a, 0, sizeof a);
    printf("done=%u status=%d key=%.*s error=%.*s\n", a.done, status, (int)sizeof a.key - 1, a.key,
           (int)sizeof a.error - 1, a.error);
    return 0;
}
