/*
 * The CLI's listing of live runs, shared by all workers and refreshed behind their backs
 * while people look. Nobody waits longer than LIMIT_LIST_WAIT_MS, whatever the CLI does, and
 * a failure is remembered as a failure, never as a listing.
 */
#ifndef BROKER_RUNS_LIST_H
#define BROKER_RUNS_LIST_H

struct broker;
struct runs_list;

/* Begins the first listing. NULL: no memory. */
struct runs_list *
runs_list_new(struct broker *b);
void
runs_list_free(struct runs_list *list);

/* A run was stopped or removed: what is known, or being asked, is no longer fresh. */
void
runs_list_invalidate(struct runs_list *list);

/* Somebody of the broker itself wants to look (launches_on_listing and
 * assistants_on_listing hear what comes of it): a
 * call begins unless one that is fresh enough is known or under way. */
void
runs_list_look(struct runs_list *list);

#endif
