/*
 * Two lines from inside a container.
 * Distrusts: the container; its agent may have replaced the very shell that printed them.
 */
#include "broker/keymaker/read_model.h"

#include <string.h>

#include "common/utf8.h"

/* The next line without blanks around it. */
static size_t
take_line(const char **at, const char *end, const char **ret_text)
{
    const char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));

    if (stop == NULL)
        stop = end;
    *at = stop < end ? stop + 1 : end;
    while (line < stop && (*line == ' ' || *line == '\t'))
        line++;
    while (stop > line && (stop[-1] == ' ' || stop[-1] == '\t' || stop[-1] == '\r'))
        stop--;
    *ret_text = line;
    return (size_t)(stop - line);
}

static bool
is_plain(const char *text, size_t len, bool ascii)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c < 0x20 || c == 0x7f || (ascii && (c == ' ' || c > 0x7e || c == '"')))
            return false;
    }
    return ascii || utf8_valid(text, len);
}

static bool
is_http(const char *text, size_t len)
{
    return (len > 7 && memcmp(text, "http://", 7) == 0) ||
           (len > 8 && memcmp(text, "https://", 8) == 0);
}

bool
model_is_one(const char *name, size_t len)
{
    static const char all[] = "all-", models[] = "-models", none[] = "no-default-models";
    const size_t n_all = sizeof all - 1, n_models = sizeof models - 1;

    if (memchr(name, '*', len) != NULL)
        return false;
    if (len == sizeof none - 1 && memcmp(name, none, len) == 0)
        return false;
    return len < n_all + n_models || memcmp(name, all, n_all) != 0 ||
           memcmp(name + len - n_models, models, n_models) != 0;
}

int
read_model(const char *printed, size_t len, char *ret_base_url, char *ret_model)
{
    const char *at = printed, *end, *url, *model;
    size_t url_len, model_len;

    if (len > KEYMAKER_PRINTED_SIZE)
        return -1;
    end = printed + len;
    url_len = take_line(&at, end, &url);
    model_len = take_line(&at, end, &model);
    if (url_len == 0 || model_len == 0)
        return 0;
    if (url_len >= KEYMAKER_URL_SIZE || model_len >= MESSAGE_MODEL_SIZE ||
        !is_plain(url, url_len, true) || !is_http(url, url_len) ||
        !is_plain(model, model_len, false) || !model_is_one(model, model_len))
        return -1;
    memcpy(ret_base_url, url, url_len);
    memcpy(ret_model, model, model_len);
    return 0;
}
