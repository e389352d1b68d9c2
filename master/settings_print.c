/* The settings for people: --help, the README's table, --check. */
#include "master/settings.h"

#include <string.h>

static void
print_default(FILE *out, const struct setting *row)
{
    if (row->shown != NULL)
        fprintf(out, "%s", row->shown);
    else
        fprintf(out, "`%s`", row->fallback);
}

const char *
settings_meaning(const struct setting *row)
{
    static char text[512];

    if (row->kind != SETTING_NUMBER)
        return row->meaning;
    snprintf(text, sizeof text, "%s %u to %u.", row->meaning, row->min, row->max);
    return text;
}

void
settings_print_help(FILE *out)
{
    const struct setting *row;

    fprintf(
        out,
        "Usage: ssebench-webui [--check | --help | --settings-man | "
        "--settings-markdown | --version]\n"
        "       ssebench-webui export --results DIR --out DIR\n"
        "       ssebench-webui token add NAME --role view|operate|full [--expires WHEN]\n"
        "       ssebench-webui token list | token revoke NAME\n"
        "       ssebench-webui status [--json]\n"
        "\n"
        "Serve the web UI for SSEBench runs. All settings come from the environment.\n"
        "\n"
        "  --check              read the settings, print them without secrets, exit "
        "0,\n"
        "                       or 1 when the server would not start with them\n"
        "  --settings-markdown  print the list below as a Markdown table\n"
        "  --settings-man       the same for a manual page\n"
        "  --version            print the version\n"
        "  export               write finished runs as a site for any static host\n"
        "  token                make, list and revoke named tokens (WHEN: 30d, 12h, a date)\n"
        "  status               tell of the servers that run here: exit 0, 1 one ended\n"
        "                       unexpectedly, 3 none\n"
        "\n"
        "SIGTERM and SIGINT stop the server, SIGHUP reads the files of\n"
        "tokens and origins again, SIGUSR2 exchanges it for the version\n"
        "that is installed.\n"
        "\n"
        "Environment:\n");
    for (size_t i = 0; (row = settings_row(i)) != NULL; i++) {
        fprintf(out, "  %s (default: ", row->name);
        print_default(out, row);
        fprintf(out, ")\n      %s\n", settings_meaning(row));
    }
}

void
settings_print_markdown(FILE *out)
{
    const struct setting *row;

    fprintf(out, "| Variable | Default | Meaning |\n|---|---|---|\n");
    for (size_t i = 0; (row = settings_row(i)) != NULL; i++) {
        fprintf(out, "| `%s` | ", row->name);
        print_default(out, row);
        fprintf(out, " | %s |\n", settings_meaning(row));
    }
}

static void
print_texts(FILE *out, const char *name, const char *first, size_t stride, size_t n)
{
    fprintf(out, "%s=", name);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", first + i * stride);
    fprintf(out, "\n");
}

static void
print_roots(FILE *out, const struct settings *s)
{
    fprintf(out, "results=");
    for (const char *at = s->roots; *at != '\0'; at += strlen(at) + 1)
        fprintf(out, "%s%s", at == s->roots ? "" : ":", at);
    fprintf(out, "\n");
}

/* Below its least: not given, and found out by whoever needs it. */
static void
print_number(FILE *out, const struct setting *row, uint32_t value)
{
    fprintf(out, "%s=", row->name);
    if (value >= row->min)
        fprintf(out, "%u\n", value);
    else
        fprintf(out, "unset (%s)\n", row->shown);
}

static void
print_row(FILE *out, const struct setting *row, const struct settings *s)
{
    static const char *const levels[] = {"", "error", "warning", "info", "debug"};
    const char *at = (const char *)s + row->offset;

    switch (row->kind) {
    case SETTING_NUMBER:
        print_number(out, row, *(const uint32_t *)(const void *)at);
        break;
    case SETTING_FLAG:
        fprintf(out, "%s=%d\n", row->name, *(const bool *)at);
        break;
    case SETTING_PEERS:
        fprintf(out, "%s=%s\n", row->name, *(const bool *)at ? "any" : "own");
        break;
    case SETTING_LEVEL:
        fprintf(out, "%s=%s\n", row->name, levels[*(const uint32_t *)(const void *)at]);
        break;
    case SETTING_ORIGINS:
        print_texts(out, row->name, at, HANDOFF_ORIGIN_SIZE, s->n_origins);
        break;
    case SETTING_PROXIES:
        print_texts(out, row->name, at, HANDOFF_ADDRESS_SIZE, s->n_proxies);
        break;
    case SETTING_TEXT:
    case SETTING_WORD:
    case SETTING_HOST:
    case SETTING_BASE:
    case SETTING_URL:
        fprintf(out, "%s=%s\n", row->name, at);
        break;
    case SETTING_TOKEN:
    case SETTING_PASSED:
        break;
    }
}

void
settings_print_values(FILE *out, const struct settings *s)
{
    const struct setting *row;

    for (size_t i = 0; (row = settings_row(i)) != NULL; i++)
        print_row(out, row, s);
    fprintf(out, "token=%s\n", s->token[0] != '\0' ? "set" : "none");
    fprintf(out, "tokens=%u\n", s->tokens.n);
    print_roots(out, s);
}
