/* Files of a git diff: every form of header and every trap inside hunks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "worker/diff_files.h"

static const struct {
    const char *label;
    const char *diff;
    const char *files; /* "status path +a -d[ binary]" lines */
} cases[] = {
    {"empty", "", ""},
    {"no diff at all", "hello\n--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n", ""},
    {"modified",
     "diff --git a/src/a.c b/src/a.c\nindex 1..2 100644\n--- a/src/a.c\n+++ b/src/a.c\n"
     "@@ -1,2 +1,3 @@\n x\n-old\n+new\n+more\n",
     "modified src/a.c +2 -1\n"},
    {"two files, no newline at the end",
     "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
     "\\ No newline at end of file\ndiff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-1\n+2",
     "modified a +1 -1\nmodified b +1 -1\n"},
    {"added and deleted",
     "diff --git a/n b/n\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 "
     "@@\n+x\ndiff --git a/o b/o\ndeleted file mode 100644\nindex 1..0\n--- a/o\n+++ "
     "/dev/null\n@@ -1 +0,0 @@\n-x\n",
     "added n +1 -0\ndeleted o +0 -1\n"},
    {"rename without change",
     "diff --git a/old name b/new name\nsimilarity index 100%\nrename from old name\nrename to "
     "new name\n",
     "renamed new name +0 -0\n"},
    {"rename with blanks and b/ inside",
     "diff --git a/x b/y b/z b/w\nsimilarity index 90%\nrename from x b/y\nrename to z b/w\n"
     "--- a/x b/y\t\n+++ b/z b/w\t\n@@ -1 +1 @@\n-a\n+b\n",
     "renamed z b/w +1 -1\n"},
    {"copy is a new file",
     "diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n", "added y +0 -0\n"},
    {"blanks in the name",
     "diff --git a/my file.txt b/my file.txt\n--- a/my file.txt\t\n+++ b/my file.txt\t\n"
     "@@ -1 +1 @@\n-a\n+b\n",
     "modified my file.txt +1 -1\n"},
    {"name that holds the separator, mode only",
     "diff --git a/p b/q b/p b/q\nold mode 100644\nnew mode 100755\n",
     "modified p b/q +0 -0\n"},
    {"quoted and octal",
     "diff --git \"a/caf\\303\\251.txt\" \"b/caf\\303\\251.txt\"\nnew file mode 100644\n"
     "--- /dev/null\n+++ \"b/caf\\303\\251.txt\"\n@@ -0,0 +1 @@\n+x\n",
     "added caf\xc3\xa9.txt +1 -0\n"},
    {"quoted escapes", "diff --git \"a/t\\tq\\\"b\\\\n\" \"b/t\\tq\\\"b\\\\n\"\nold mode 1\n",
     "modified t\tq\"b\\n +0 -0\n"},
    {"only the second is quoted",
     "diff --git a/plain \"b/\\303\\244\"\nrename from plain\nrename to \"\\303\\244\"\n",
     "renamed \xc3\xa4 +0 -0\n"},
    {"only the first is quoted",
     "diff --git \"a/\\303\\244\" b/plain\nrename from \"\\303\\244\"\nrename to plain\n",
     "renamed plain +0 -0\n"},
    {"binary", "diff --git a/i.png b/i.png\nindex 1..2 100644\nBinary files a/i.png and b/i.png "
               "differ\n",
     "modified i.png +0 -0 binary\n"},
    {"binary patch",
     "diff --git a/i b/i\nindex 1..2\nGIT binary patch\nliteral 3\nKc-muN\n\nliteral "
     "2\nJc-muM\n\ndiff --git a/j b/j\nold mode 1\n",
     "modified i +0 -0 binary\nmodified j +0 -0\n"},
    {"--- and +++ inside hunks",
     "diff --git a/q.sql b/q.sql\n--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- old comment\n"
     "+++ new\n+---\n-+++\n",
     "modified q.sql +2 -2\n"},
    {"headers inside hunks are content",
     "diff --git a/d b/d\n--- a/d\n+++ b/d\n@@ -1 +1,3 @@\n+diff --git a/x b/x\n diff --git a/y "
     "b/y\n-deleted file mode 1\n+rename to z\n@@ -9 +9 @@ new file mode\n+x\n",
     "modified d +3 -1\n"},
    {"CRLF headers and content",
     "diff --git a/w b/w\r\nnew file mode 100644\r\n--- /dev/null\r\n+++ b/w\r\n@@ -0,0 +1 "
     "@@\r\n+x\r\n",
     "added w +1 -0\n"},
    {"CR content with LF headers",
     "diff --git a/w b/w\n--- a/w\n+++ b/w\n@@ -1 +1 @@\n-x\r\n+y\r\n", "modified w +1 -1\n"},
    {"file became a link: told once",
     "diff --git a/l b/l\ndeleted file mode 100644\n--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
     "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+t\n",
     "modified l +1 -1\n"},
    {"no prefixes", "diff --git x/y x/y\n--- x/y\n+++ x/y\n@@ -1 +1 @@\n-a\n+b\n",
     "modified x/y +1 -1\n"},
    {"text before the first file", "commit 1\n\n    +x\n\ndiff --git a/a b/a\n@@ -1 +1 @@\n+y\n",
     "modified a +1 -0\n"},
    {"empty lines in hunks", "diff --git a/a b/a\n@@ -1,3 +1,4 @@\n\n+y\n\n \n",
     "modified a +1 -0\n"},
    {"broken quotes", "diff --git \"a/x b/x\nold mode 1\n", ""},
    {"broken quotes, saved by +++", "diff --git \"a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n+1\n",
     "modified x +1 -0\n"},
    {"nothing behind the header", "diff --git \ndiff --git a/a b/a\n", "modified a +0 -0\n"},
};

static void
add_line(void *ctx, const struct diff_file *file)
{
    struct buf *out = ctx;

    buf_add_format(out, "%s %.*s +%llu -%llu%s\n", diff_status_name(file->status),
                   (int)file->path_len, file->path, (unsigned long long)file->additions,
                   (unsigned long long)file->deletions, file->binary ? " binary" : "");
}

static void
test_cases(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = strlen(cases[i].diff);

        for (size_t cut = 0; cut <= len; cut++) {
            struct diff_files d;
            struct buf out;

            buf_init(&out, 0);
            buf_add_str(&out, "");
            diff_files_init(&d, add_line, &out);
            diff_files_feed(&d, cases[i].diff, cut);
            diff_files_feed(&d, cases[i].diff + cut, len - cut);
            diff_files_end(&d);
            if (strcmp(out.data, cases[i].files) != 0)
                fail_msg("%s, cut at %zu:\n%s", cases[i].label, cut, out.data);
            diff_files_done(&d);
            buf_done(&out);
        }
    }
}

/* A header of a megabyte is cut, not kept. */
static void
test_bounded(void **state)
{
    struct diff_files d;
    struct buf out;

    buf_init(&out, 0);
    buf_add_str(&out, "");
    diff_files_init(&d, add_line, &out);
    diff_files_feed(&d, "diff --git ", 11);
    for (unsigned i = 0; i < 1000000; i++)
        diff_files_feed(&d, "x", 1);
    assert_true(d.line.len <= DIFF_FILES_LINE);
    diff_files_feed(&d, "\ndiff --git a/a b/a\n@@ -1 +1 @@\n+", 33);
    for (unsigned i = 0; i < 1000000; i++)
        diff_files_feed(&d, "y", 1);
    assert_true(d.line.cap <= 2 * DIFF_FILES_LINE);
    diff_files_end(&d);
    assert_string_equal(out.data, "modified a +1 -0\n");
    diff_files_done(&d);
    buf_done(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
