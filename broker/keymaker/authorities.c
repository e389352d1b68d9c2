/* OpenSSL's own way opens a folder's files when a certificate asks for them: behind the fence. */
#include "broker/keymaker/authorities.h"

#include <dirent.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A certificate by the hash of its name ("002c0b4f.0"); the folder has each under other names too. */
static bool
is_hashed(const char *name)
{
    size_t n = strspn(name, "0123456789abcdef");

    return n == 8 && name[n] == '.' && name[n + 1] != '\0' &&
           name[n + 1 + strspn(name + n + 1, "0123456789")] == '\0';
}

static void
load_folder(X509_STORE *store, const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *e;
    char file[PATH_MAX];

    if (dir == NULL)
        return;
    while ((e = readdir(dir)) != NULL)
        if (is_hashed(e->d_name) &&
            snprintf(file, sizeof file, "%s/%s", path, e->d_name) < (int)sizeof file)
            X509_STORE_load_file(store, file);
    closedir(dir);
}

/* The variable's value, or what OpenSSL was built with. */
static const char *
setting(const char *variable, const char *built)
{
    const char *value = getenv(variable);

    return value != NULL ? value : built;
}

void
authorities_load(X509_STORE *store)
{
    const char *at = setting(X509_get_default_cert_dir_env(), X509_get_default_cert_dir());
    char folder[PATH_MAX];

    X509_STORE_load_file(store, setting(X509_get_default_cert_file_env(),
                                        X509_get_default_cert_file()));
    for (size_t len; *at != '\0'; at += len + (at[len] == ':')) {
        len = strcspn(at, ":");
        if (len > 0 && len < sizeof folder) {
            memcpy(folder, at, len);
            folder[len] = '\0';
            load_folder(store, folder);
        }
    }
    ERR_clear_error();
}
