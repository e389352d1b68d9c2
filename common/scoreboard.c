/* Counters in shared memory, one page a worker. */
#include "common/scoreboard.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    const char *all;             /* read only, n_pages pages */
    struct scoreboard_page *own; /* NULL: no page of ours */
    uint32_t n_pages;
} board;

/* What the process before us had open was closed with it; what it counted stays. */
static void
clear_gauges(struct scoreboard_page *page)
{
    static const enum score gauges[] = {
        SCORE_CONNECTIONS, SCORE_WEBSOCKETS, SCORE_FEED_VIEWERS, SCORE_LOG_VIEWERS,
        SCORE_TERMINALS,   SCORE_LAUNCHES,   SCORE_TTYS,
    };

    for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
        atomic_store_explicit(&page->value[gauges[i]], 0, memory_order_relaxed);
}

int
scoreboard_map(int fd, uint32_t n_pages, uint32_t own)
{
    size_t size = (size_t)n_pages * SCOREBOARD_PAGE_SIZE;
    void *all = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    void *page = NULL;

    if (all == MAP_FAILED)
        return -errno;
    if (own < n_pages) {
        page = mmap(NULL, SCOREBOARD_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                    (off_t)own * SCOREBOARD_PAGE_SIZE);
        if (page == MAP_FAILED) {
            int r = -errno;

            munmap(all, size);
            return r;
        }
        clear_gauges(page);
    }
    close(fd);
    board.all = all;
    board.own = page;
    board.n_pages = n_pages;
    return 0;
}

void
scoreboard_add(enum score score, int64_t amount)
{
    if (board.own != NULL)
        atomic_fetch_add_explicit(&board.own->value[score], (uint64_t)amount,
                                  memory_order_relaxed);
}

void
scoreboard_set(enum score score, uint64_t value)
{
    if (board.own != NULL)
        atomic_store_explicit(&board.own->value[score], value, memory_order_relaxed);
}

static uint64_t
value_of(uint32_t page, enum score score)
{
    const struct scoreboard_page *p =
        (const void *)(board.all + (size_t)page * SCOREBOARD_PAGE_SIZE);

    return atomic_load_explicit(&p->value[score], memory_order_relaxed);
}

uint64_t
scoreboard_max(enum score score)
{
    uint64_t max = 0;

    for (uint32_t i = 0; i < board.n_pages; i++)
        if (value_of(i, score) > max)
            max = value_of(i, score);
    return max;
}

uint64_t
scoreboard_sum(enum score score)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < board.n_pages; i++)
        sum += value_of(i, score);
    return sum;
}
