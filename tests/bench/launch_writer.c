/* A command that costs nothing itself: writes when it began, then timed lines. The task's name
 * says how: t-LINES-BLOCK-PAUSE_MS[-stay]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const char *
option(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, strlen(name)) == 0)
            return argv[i] + strlen(name);
    return "";
}

int
main(int argc, char **argv)
{
    double began = now();
    const char *state = getenv("SSEBENCH_STANDIN_STATE");
    int lines = 0, block = 0, pause_ms = 0;
    char path[4096], text[65536];
    FILE *f;

    if (argc > 2 && strcmp(argv[1], "runs") == 0) {
        puts(strcmp(argv[2], "list") == 0
                 ? "{\"backend\":\"none\",\"supports_exec\":true,\"runs\":[]}"
                 : "{\"runs\":[]}");
        return 0;
    }
    sscanf(option(argc, argv, "--task="), "t-%d-%d-%d", &lines, &block, &pause_ms);
    snprintf(path, sizeof path, "%s/at-%s", state, option(argc, argv, "--run-id="));
    f = fopen(path, "w");
    fprintf(f, "%.6f\n", began);
    fclose(f);
    for (int done = 0; done < lines;) {
        size_t len = 0;

        for (int i = 0; i < block && done < lines; i++, done++)
            len += (size_t)snprintf(text + len, sizeof text - len, "at %.6f %08d\n", now(), done);
        if (write(1, text, len) != (ssize_t)len)
            return 1;
        usleep((useconds_t)pause_ms * 1000);
    }
    while (strstr(option(argc, argv, "--task="), "-stay") != NULL)
        pause();
    return 0;
}
