/* The page's files, out of the program's own memory. */
#include "worker/export/page_files.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "worker/export/site.h"
#include "worker/page_assets.h"

#define INDEX "/index.html"

/* In the place of what the page was built with. The policy is the server's (worker/page.c), but
 * for what a <meta> may not say: frame-ancestors. */
static const struct {
    const char *built, *here;
} changes[] = {
    {"<html lang=\"en\">", "<html lang=\"en\" data-mode=\"static\">"},
    {"<head>",
     "<head>\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
     "script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
     "connect-src 'self'; manifest-src 'self'; base-uri 'self'; form-action 'none'; "
     "require-trusted-types-for 'script'; trusted-types ssebench\">"},
    {"<base href=\"/\">", "<base href=\"./\">"},
};

/* 0; -EBADMSG: the page has changed and this file has not. */
static int
render_index(const struct page_asset *asset, struct buf *out)
{
    const char *at = (const char *)asset->plain, *end = (const char *)asset->plain_end;

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        size_t built_len = strlen(changes[i].built);
        const char *found = memmem(at, (size_t)(end - at), changes[i].built, built_len);

        if (found == NULL)
            return -EBADMSG;
        buf_add(out, at, (size_t)(found - at));
        buf_add_str(out, changes[i].here);
        at = found + built_len;
    }
    buf_add(out, at, (size_t)(end - at));
    return out->failed ? -ENOMEM : 0;
}

static int
write_index(int out_fd, const struct page_asset *asset)
{
    struct buf text;
    int error;

    buf_init(&text, 0);
    error = render_index(asset, &text);
    if (error == 0)
        error = site_write(out_fd, asset->path + 1, text.data, text.len);
    buf_done(&text);
    return error;
}

/* The page lies flat, or in one folder ("/assets/page-1a2b3c.js"). */
static int
write_asset(int out_fd, const struct page_asset *asset)
{
    const char *name = strrchr(asset->path, '/') + 1;
    size_t len = (size_t)(asset->plain_end - asset->plain);
    size_t folder_len = (size_t)(name - asset->path);
    char folder[SITE_NAME];
    int fd, error;

    if (folder_len == 1)
        return site_write(out_fd, name, asset->plain, len);
    if (folder_len - 2 >= sizeof folder)
        return -ENAMETOOLONG;
    snprintf(folder, sizeof folder, "%.*s", (int)folder_len - 2, asset->path + 1);
    fd = site_folder(out_fd, folder);
    if (fd < 0)
        return fd;
    error = site_write(fd, name, asset->plain, len);
    close(fd);
    return error;
}

static bool
is_asset(void *ctx, const char *name)
{
    for (size_t i = 0; i < n_page_assets; i++)
        if (strncmp(page_assets[i].path, "/assets/", 8) == 0 &&
            strcmp(page_assets[i].path + 8, name) == 0)
            return true;
    return false;
}

int
page_files_write(int out_fd)
{
    const struct page_asset *index = NULL;
    int error = 0, fd;

    for (size_t i = 0; error == 0 && i < n_page_assets; i++)
        if (strcmp(page_assets[i].path, INDEX) == 0)
            index = &page_assets[i];
        else
            error = write_asset(out_fd, &page_assets[i]);
    if (error == 0)
        error = index != NULL ? write_index(out_fd, index) : -ENOENT;
    if (error != 0)
        return error;
    fd = site_folder(out_fd, "assets");
    if (fd < 0)
        return fd;
    error = site_sweep(fd, is_asset, NULL);
    close(fd);
    return error;
}
