/* --settings-man: the settings as the body of a manual page's section. */
#include "master/settings.h"

#include <string.h>

/* Text of the table as roff: hyphens that stay hyphens, no accidental requests, `code` bold. */
static void
print_roff(FILE *out, const char *text)
{
    bool bold = false;

    for (; *text != '\0'; text++) {
        if (*text == '`') {
            bold = !bold;
            fputs(bold ? "\\fB" : "\\fR", out);
        } else if (*text == '\\') {
            fputs("\\e", out);
        } else if (*text == '-') {
            fputs("\\-", out);
        } else if (*text == '~') {
            fputs("\\(ti", out);
        } else {
            fputc(*text, out);
        }
    }
    if (bold)
        fputs("\\fR", out);
}

void
settings_print_man(FILE *out)
{
    const struct setting *row;

    for (size_t i = 0; (row = settings_row(i)) != NULL; i++) {
        fputs(".TP\n\\fB", out);
        print_roff(out, row->name);
        fputs("\\fR\n\\&", out);
        print_roff(out, settings_meaning(row));
        fputs(" Default: ", out);
        print_roff(out, row->shown != NULL ? row->shown : row->fallback);
        fputs(".\n", out);
    }
}
